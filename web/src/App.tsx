// The explorer: runs, curves, and one or two planes.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useJson, useRuns } from "./answers";
import { Charts } from "./Charts";
import { COLOURINGS, type Colouring } from "./colours";
import { Picker } from "./Picker";
import { PlanePanel, planeOf } from "./PlanePanel";
import type { Curves, PlaneEntry, Run } from "./protocol";
import { RunList, told } from "./RunList";
import { read, START, written, type Panel, type View } from "./state";
import "./style.css";
import type { Transport } from "./transport";
import { nearestOf } from "./words";

interface AppProps {
  to: Transport;
  addressed: boolean; // whether the view belongs behind the # of the page's address
}

const KEYS = "Keys: arrows pan, + and − zoom, 0 the whole plane, [ and ] step back and on, c next colouring.";
const LOOK = 120; // ms that the cursor rests on a curve before its step is shown

export function App({ to, addressed }: AppProps) {
  const runs = useRuns(to);
  const [view, setView] = useView(addressed);
  const [looked, setLooked] = useState<number | null>(null); // the step under the cursor
  const [picking, setPicking] = useState(false);
  const [theme, setTheme] = useState<"light" | "dark" | null>(null); // null: as the system
  const dark = useDark(theme);
  const all = runs.value?.runs ?? [];
  const first = chosenRun(all, view.panels[0]!);
  const curves = useJson<Curves>(to, "/api/curves", first ? { run: first.id } : null, first?.records);
  const planes = useJson<{ planes: PlaneEntry[] }>(to, "/api/planes", first ? { run: first.id } : null, first?.records);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);

  const change = useCallback((part: Partial<View>) => setView((before) => ({ ...before, ...part })), []);
  const setPanel = (k: number, part: Partial<Panel>) => setView((before) => ({ ...before, panels: before.panels.map((p, i) => (i === k ? { ...p, ...part } : p)) }));
  const choose = (id: string) => setView((before) => ({ ...before, panels: [{ run: id, step: null }, ...before.panels.slice(1)], viewport: null }));

  if (runs.error) return <p class="explorer message" role="alert">{runs.error}</p>;
  if (!runs.value) return <p class="explorer empty" role="status">Loading…</p>;
  if (!first) return <p class="explorer empty">There are no runs here as yet. They appear when they are written.</p>;
  const step = (panel: Panel, run: Run, k: number) => (k === 0 ? looked : null) ?? panel.step ?? run.recorded.at(-1) ?? 0;
  const look = (found: number | null) => {
    clearTimeout(rest.current);
    rest.current = setTimeout(() => setLooked(found), found === null ? 0 : LOOK);
  };
  const keys = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(target.tagName)) return;
    const { recorded } = first;
    const at = recorded.indexOf(nearestOf(recorded, step(view.panels[0]!, first, 0)) ?? 0);
    if (event.key === "[" && at > 0) setPanel(0, { step: recorded[at - 1]! });
    else if (event.key === "]" && at + 1 < recorded.length) setPanel(0, { step: recorded[at + 1]! });
    else if (event.key === "c") change({ colouring: after(view.colouring) });
  };
  const chosenPlane = planeOf(first, view.plane);
  const known = new Set(planes.value?.planes.map((p) => p.id));

  return (
    <div class="explorer" data-theme={dark ? "dark" : "light"} data-lm-suppress-shortcuts="true" onKeyDown={keys}>
      <header>
        <h1>regionscope</h1>
        <p class="about">{first.name}: {told(first)}</p>
        <button type="button" onClick={() => setTheme(dark ? "light" : "dark")}>{dark ? "Light" : "Dark"}</button>
      </header>
      {all.length > 1 && <RunList to={to} runs={all} chosen={first.id} onChoose={choose} />}
      <main>
        <div class="curves">
          <label class="option"><input type="checkbox" checked={view.log} onChange={() => change({ log: !view.log })} /> logarithmic time</label>
          {curves.error && <p class="message" role="alert">{curves.error}</p>}
          {curves.value && (
            <Charts curves={curves.value} step={step(view.panels[0]!, first, 0)} log={view.log} dark={dark} onStep={(found) => setPanel(0, { step: found })} onLook={look} />
          )}
        </div>
        <div class="planes">
          <div class="row tools">
            {chosenPlane && <label>
              Plane{" "}
              <select value={chosenPlane} onChange={(event) => change({ plane: event.currentTarget.value, viewport: null })}>
                {planes.value?.planes.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
                {!known.has(chosenPlane) && <option value={chosenPlane}>{chosenPlane.replace("through:", "through images ").replaceAll(",", ", ")}</option>}
              </select>
            </label>}
            {first.network && first.images && <button type="button" onClick={() => setPicking(true)}>Choose three images…</button>}
            <label>
              Colour by{" "}
              <select value={view.colouring} onChange={(event) => change({ colouring: event.currentTarget.value as Colouring })}>
                {Object.entries(COLOURINGS).map(([id, name]) => <option key={id} value={id} disabled={id === "density" && !first.network}>{name}</option>)}
              </select>
            </label>
            {first.images && <label class="option"><input type="checkbox" checked={view.images} onChange={() => change({ images: !view.images })} /> all images</label>}
            <label class="option">
              <input type="checkbox" checked={view.panels.length > 1} onChange={() => change({ panels: view.panels.length > 1 ? view.panels.slice(0, 1) : [view.panels[0]!, { run: first.id, step: first.recorded[0] ?? null }] })} />
              {" "}side by side
            </label>
          </div>
          {!first.network && first.network_reason && <p class="note">{first.network_reason}</p>}
          <div class={`panels n${view.panels.length}`}>
            {view.panels.map((panel, k) => {
              const run = chosenRun(all, panel)!;
              return (
                <PlanePanel
                  key={k} to={to} name={`panel-${k + 1}`} runs={k ? all : []} run={run} step={step(panel, run, k)} view={view} dark={dark}
                  onRun={(id) => setPanel(k, { run: id, step: null })} onStep={(found) => setPanel(k, { step: found })} onView={change}
                />
              );
            })}
          </div>
          <p class="help">{KEYS}</p>
        </div>
      </main>
      {picking && <Picker to={to} run={first.id} onPlane={(plane) => change({ plane, viewport: null })} onClose={() => setPicking(false)} />}
    </div>
  );
}

function chosenRun(runs: Run[], panel: Panel): Run | undefined {
  return runs.find((run) => run.id === panel.run) ?? runs[0];
}

function after(colouring: Colouring): Colouring {
  const all = Object.keys(COLOURINGS) as Colouring[];
  return all[(all.indexOf(colouring) + 1) % all.length]!;
}

/** The view, kept behind the # of the address so that it can be shared. */
function useView(addressed: boolean): [View, (change: (before: View) => View) => void] {
  const [view, setView] = useState<View>(() => (addressed ? read(location.hash) : START));
  useEffect(() => {
    if (!addressed) return;
    const timer = setTimeout(() => history.replaceState(null, "", `#${written(view)}`), 100);
    return () => clearTimeout(timer);
  }, [view]);
  useEffect(() => {
    if (!addressed) return;
    const follow = () => setView(read(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return [view, setView];
}

function useDark(theme: "light" | "dark" | null): boolean {
  const asks = matchMedia("(prefers-color-scheme: dark)");
  const [system, setSystem] = useState(asks.matches);
  useEffect(() => {
    const follow = () => setSystem(asks.matches);
    asks.addEventListener("change", follow);
    return () => asks.removeEventListener("change", follow);
  }, []);
  return theme === null ? system : theme === "dark";
}
