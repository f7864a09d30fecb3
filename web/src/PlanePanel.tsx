// A panel with all that belongs to it: run, step, plane, and what can be saved of them.

import { useRef, useState } from "preact/hooks";
import { useAnswer, useJson } from "./answers";
import { csvOf, gifOf, save, savePng, svgOf } from "./downloads";
import { Legend } from "./Legend";
import type { Pictures } from "./Marks";
import { SHEET } from "./Picker";
import { PlaneView } from "./PlaneView";
import type { Cells, Images, PlaneInfo, Raster, Run } from "./protocol";
import type { Scene } from "./scene";
import type { View } from "./state";
import { TimeBar } from "./TimeBar";
import { points as askedPoints, type Transport } from "./transport";
import { visible, whole } from "./viewport";
import { count, nearestOf, number } from "./words";

interface PlanePanelProps {
  to: Transport;
  name: string;
  runs: Run[];
  run: Run;
  step: number;
  view: View;
  dark: boolean;
  onRun: (id: string) => void;
  onStep: (step: number) => void;
  onView: (change: Partial<View>) => void;
}

export function PlanePanel({ to, name, runs, run, step, view, dark, onRun, onStep, onView }: PlanePanelProps) {
  const plane = planeOf(run, view.plane);
  const info = useJson<PlaneInfo>(to, "/api/plane", plane ? { run: run.id, plane } : null);
  const listed = useJson<{ planes: { id: string; steps: number[] }[] }>(to, "/api/planes", { run: run.id }, run.records);
  const points = useAnswer(view.images && plane ? `${run.id} ${plane}` : null, () => askedPoints(to, { run: run.id, plane: plane! }));
  const [shown, setShown] = useState<{ content: Cells | Raster; scene: Scene } | null>(null);
  const panel = useRef<HTMLElement>(null);
  const images = useJson<Images>(to, "/api/images", run.images ? { run: run.id, ...SHEET } : null);
  const pictures = useRef(new Map<string, Promise<string | null>>());
  const [making, setMaking] = useState("");

  const steps = run.network ? run.recorded : (listed.value?.planes.find((p) => p.id === plane)?.steps ?? run.recorded);
  const at = nearestOf(steps, step);
  const picture = (index: number) => {
    const key = `${run.id} ${index}`;
    if (!pictures.current.has(key)) pictures.current.set(key, to.picture("/api/image", { run: run.id, index }));
    return pictures.current.get(key)!;
  };
  const ready = () => panel.current?.querySelector("figure")?.dataset.ready === "yes";
  const file = (end: string) => `${run.id.replaceAll("/", "-")}-step${at}${end}`;
  const look = { colouring: view.colouring, hidden: new Set(view.hidden), decision: view.decision, dark };
  const cells = shown?.content.kind === "cells" ? shown.content : null;

  const film = async () => {
    const show = async (each: number) => {
      onStep(each);
      await new Promise((done) => setTimeout(done, 50));
      for (let k = 0; k < 600 && !(ready() && panel.current?.dataset.step === String(each)); k++) await new Promise((done) => setTimeout(done, 50));
    };
    const made = await gifOf(shown!.scene.canvas, steps, show, (done) => setMaking(`${done} of ${steps.length} steps`));
    setMaking("");
    save(made, file(".gif"));
  };

  return (
    <section class="panel" ref={panel} data-step={at} aria-label={`plane of ${name}`}>
      <div class="row">
        {runs.length > 1 && (
          <select aria-label={`run of ${name}`} value={run.id} onChange={(event) => onRun(event.currentTarget.value)}>
            {runs.map((r) => <option key={r.id} value={r.id}>{r.name}</option>)}
          </select>
        )}
        {plane && <details class="menu">
          <summary>Save</summary>
          <div>
            <button type="button" disabled={!shown} onClick={() => savePng(shown!.scene.canvas, file(".png"))}>PNG</button>
            <button type="button" disabled={!cells} onClick={() => save(svgOf(cells!, windowOf(panel.current!, info.value!, view), look), file(".svg"), "image/svg+xml")}>SVG</button>
            <button type="button" disabled={!cells} onClick={() => save(csvOf(cells!), file(".csv"), "text/csv")}>CSV</button>
            <button type="button" disabled={!shown || making !== ""} onClick={() => void film()}>GIF over training</button>
          </div>
        </details>}
        {making && <span role="status">GIF: {making}</span>}
      </div>
      {info.error && <p class="message" role="alert">{info.error}</p>}
      {!plane && (
        <p class="empty">
          This run has no planes. A monitor that is given <code>planes</code> records them, and <code>regionscope view</code> with{" "}
          <code>--model</code> and <code>--points</code> lays one through points of yours.
        </p>
      )}
      {info.value && at !== null && (
        <PlaneView
          to={to} name={name} run={run.id} step={at} recomputed={run.network} plane={info.value}
          viewport={view.viewport} onViewport={(viewport) => onView({ viewport })}
          colouring={view.colouring} hidden={view.hidden} decision={view.decision} dark={dark}
          points={points.value} showImages={view.images} picture={images.value?.sheet ? picture : null}
          onLoaded={(content, scene) => setShown({ content, scene })}
        />
      )}
      {steps.length > 1 && at !== null && <TimeBar name={name} steps={steps} step={at} ready={ready} onStep={onStep} />}
      {shown && (
        <Legend
          content={shown.content} scale={shown.scene.scale} colouring={view.colouring} hidden={view.hidden} decision={view.decision} dark={dark}
          onHidden={(hidden) => onView({ hidden })} onDecision={(decision) => onView({ decision })}
        />
      )}
      {view.images && points.value && <Nearby distances={points.value.distance} picture={images.value?.sheet ? picture : null} />}
    </section>
  );
}

/** The plane to show: the one that is asked for if the run can show it, or its first. */
export function planeOf(run: Run, asked: string | null): string | null {
  if (asked !== null && (run.planes.includes(asked) || (run.network && !asked.startsWith("recorded:")))) return asked;
  return run.planes[0] ?? null;
}

function windowOf(panel: HTMLElement, plane: PlaneInfo, view: View) {
  const canvas = panel.querySelector("canvas")!;
  return visible(view.viewport ?? whole(plane), canvas.clientWidth / canvas.clientHeight);
}

const NEAREST = 8;
const ON_IT = 1e-6; // an image that the plane was laid through, but for rounding

/** How far all images are from the plane, and the nearest of them. */
function Nearby({ distances, picture }: { distances: Float32Array; picture: Pictures | null }) {
  const order = [...distances.keys()].sort((a, b) => distances[a]! - distances[b]!);
  const nearest = order.slice(0, NEAREST);
  const sources = useAnswer(picture && nearest.join(), () => Promise.all(nearest.map(picture!)));
  return (
    <div class="nearby">
      <p>
        {count(distances.length, "image")}: median distance from the plane {number(distances[order[Math.floor(order.length / 2)]!]!)}, nearest
      </p>
      <ul>
        {nearest.map((i, k) => (
          <li key={i}>
            {sources.value?.[k] && <img src={sources.value[k]!} alt={`image ${i}`} width={32} height={32} />} {distances[i]! < ON_IT ? "on it" : number(distances[i]!)}
          </li>
        ))}
      </ul>
    </div>
  );
}
