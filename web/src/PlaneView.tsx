// One panel: the exact regions of a network at a step, to pan and zoom without end.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Colouring } from "./colours";
import { centresOf, classAt, classLabels, Finder, nearest, sidesOf, unitName } from "./locating";
import { Marks, type Pictures } from "./Marks";
import type { Cells, PlaneInfo, Points, Raster, Window } from "./protocol";
import { Scene, type Look } from "./scene";
import { cells as askedCells, Refusal, type Transport } from "./transport";
import { suffices, visible, wanted, whole, zoomed, type Viewport } from "./viewport";
import { count, number } from "./words";

interface PlaneViewProps {
  to: Transport;
  name: string; // of the panel
  run: string;
  step: number;
  recomputed: boolean; // whether cells can be had at any window
  plane: PlaneInfo;
  viewport: Viewport | null;
  onViewport: (viewport: Viewport | null) => void;
  colouring: Colouring;
  hidden: readonly number[];
  decision: boolean;
  dark: boolean;
  points: Points | null;
  showImages: boolean;
  picture: Pictures | null;
  onLoaded: (content: Cells | Raster, scene: Scene) => void;
}

interface Under {
  x: number; // in the plane
  y: number;
  words: [string, string][];
  spoken: boolean; // to those who use keys
}

interface Located {
  finder: Finder;
  sides: ReturnType<typeof sidesOf>;
}

const SETTLE = 40; // ms without a change before cells are asked for again: a wheel that turns says so more often
const PAN = 0.15; // of the window, by a key

export function PlaneView(props: PlaneViewProps) {
  const { plane, colouring, hidden, decision, dark } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const scene = useRef<Scene | null>(null);
  const [size, setSize] = useState<[number, number]>([1, 1]);
  const [content, setContent] = useState<Cells | Raster | null>(null);
  const [message, setMessage] = useState<string | null>(null);
  const [waiting, setWaiting] = useState(false);
  const [under, setUnder] = useState<Under | null>(null);
  const viewport = props.viewport ?? whole(plane);
  const aspect = size[0] / size[1];
  const window = visible(viewport, aspect);
  const look: Look = useMemo(() => ({ colouring, hidden: new Set(hidden), decision, dark }), [colouring, hidden, decision, dark]);
  const current = useRef(look); // for cells that arrive later
  current.current = look;
  const located = useMemo(() => (content?.kind === "cells" ? once(() => ({ finder: new Finder(content), sides: sidesOf(content) })) : null), [content]);

  const centres = useMemo(() => (content?.kind === "cells" && colouring === "class" ? centresOf(content) : null), [content, colouring]);
  const labels = centres ? classLabels(content as Cells, centres, window) : [];

  useLayoutEffect(() => {
    const element = canvas.current!;
    try {
      scene.current = new Scene(element);
    } catch (error) {
      setMessage(String((error as Error).message));
    }
    const observer = new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1;
      element.width = Math.max(1, Math.round(element.clientWidth * ratio));
      element.height = Math.max(1, Math.round(element.clientHeight * ratio));
      setSize([element.clientWidth || 1, element.clientHeight || 1]);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // what is loaded is asked for again only if it does not show the window
  const key = `${props.run} ${props.step} ${plane.id} ${colouring === "density"}`;
  const loadedKey = useRef("");
  const moved = useRef(-Infinity); // when cells were wanted last
  const there = content && loadedKey.current === key && (!props.recomputed || suffices(content.window, window, content.kind === "cells"));
  // before the browser paints: the server works while the old cells are drawn
  useLayoutEffect(() => {
    if (there || !scene.current || size[0] === 1) return;
    const stop = new AbortController();
    setWaiting(true);
    const load = async () => {
      try {
        const found = await asked(props, window, stop.signal);
        loadedKey.current = key;
        scene.current?.load(found, current.current);
        setContent(found);
        setMessage(null);
        props.onLoaded(found, scene.current!);
      } catch (error) {
        if (stop.signal.aborted || (error instanceof Refusal && error.kind === "superseded")) return;
        setMessage((error as Error).message);
      }
      setWaiting(false);
    };
    const still = performance.now() - moved.current > SETTLE;
    moved.current = performance.now();
    const timer = still ? undefined : setTimeout(load, SETTLE);
    if (still) void load();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [there, key, window.x, window.y, window.hx, window.hy, size[0]]);

  useLayoutEffect(() => {
    scene.current?.paint(look);
    if (content && scene.current) props.onLoaded(content, scene.current);
  }, [look]);
  useLayoutEffect(() => scene.current?.draw(window, look), [content, look, window.x, window.y, window.hx, window.hy, size]);

  const place = (event: { clientX: number; clientY: number }): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  };
  const zoom = (factor: number, u = 0, v = 0) => props.onViewport(zoomed(viewport, factor, u, v, aspect, plane));
  const pan = (u: number, v: number) =>
    props.onViewport({ ...viewport, x: viewport.x - u * window.hx, y: viewport.y - v * window.hy });

  const hover = (u: number, v: number, spoken = false) => {
    const [x, y] = [window.x + u * window.hx, window.y + v * window.hy];
    setUnder(content ? { x, y, words: described(content, located, x, y), spoken } : null);
  };
  const gestures = useGestures({ place, pan, zoom, hover });

  useEffect(() => {
    const element = canvas.current!;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });

  const keys = (event: KeyboardEvent) => {
    const done: Record<string, () => void> = {
      ArrowLeft: () => pan(PAN, 0),
      ArrowRight: () => pan(-PAN, 0),
      ArrowUp: () => pan(0, -PAN),
      ArrowDown: () => pan(0, PAN),
      "+": () => zoom(1.5),
      "=": () => zoom(1.5),
      "-": () => zoom(1 / 1.5),
      "0": () => props.onViewport(null),
    };
    const act = done[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
    hover(0, 0, true);
  };

  const summary = content ? summarised(content) : waiting ? "computing regions" : "";
  return (
    <figure class="plane" data-ready={there && !waiting ? "yes" : "no"} data-panel={props.name}>
      <div class="stage">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`Linear regions of ${props.run} at step ${props.step}, ${summary}. Arrow keys pan, plus and minus zoom, 0 shows all.`}
          onKeyDown={keys}
          onDblClick={(event) => zoom(2, ...place(event))}
          {...gestures}
          onPointerLeave={() => setUnder(null)}
        />
        <Marks plane={plane} window={window} size={size} points={props.showImages ? props.points : null} picture={props.picture} labels={labels} />
        {under && <div class="crosshair" aria-hidden="true" style={crosshair(under, window)} />}
        {waiting && <div class="waiting" role="status">computing…</div>}
        {message && <p class="message" role="alert">{message}</p>}
        {content?.kind === "raster" && content.more_than !== null && (
          <p class="message" role="status">More than {content.more_than.toLocaleString("en")} regions: this is their density, estimated. Zoom in.</p>
        )}
        <div class="zoom">
          <button type="button" aria-label="zoom in" title="zoom in (+)" onClick={() => zoom(2)}>+</button>
          <button type="button" aria-label="zoom out" title="zoom out (−)" onClick={() => zoom(0.5)}>−</button>
          <button type="button" aria-label="show the whole plane" title="the whole plane (0)" onClick={() => props.onViewport(null)}>⤢</button>
        </div>
      </div>
      <figcaption>
        <strong>step {props.step.toLocaleString("en")}</strong> <span aria-live="polite">{summary}</span>
        <span class="window"> shown: {extent(window)}{props.viewport ? `, ${number(whole(plane).h / viewport.h)}×` : ""}</span>
        <dl class="under" aria-live={under?.spoken ? "polite" : "off"}>
          {(under?.words ?? []).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </figcaption>
    </figure>
  );
}

async function asked(props: PlaneViewProps, window: Window, signal: AbortSignal): Promise<Cells | Raster> {
  const { to, run, step, plane, name } = props;
  const { x, y, hx, hy } = wanted(window, plane);
  const where = props.recomputed ? { x, y, hx, hy } : {};
  const path = props.colouring === "density" && props.recomputed ? "/api/density" : "/api/cells";
  return askedCells(to, path, { run, step, plane: plane.id, view: name, ...where }, signal);
}

function summarised(content: Cells | Raster): string {
  if (content.kind === "raster") return `${content.label}, estimated`;
  const sure = content.exact ? "(exact)" : `(not exact: ${content.undecided.toLocaleString("en")} signs undecided)`;
  return `${count(content.cells, "region")} ${sure} in ${extent(content.window)}`;
}

/** Width and height of a window: what is loaded is larger than what is shown. */
function extent({ hx, hy }: Window): string {
  return `${number(2 * hx)} × ${number(2 * hy)}`;
}

/** What is under a place of the plane, in words. */
function described(content: Cells | Raster, located: (() => Located) | null, x: number, y: number): [string, string][] {
  const { scale } = content.window;
  const [u, v] = [(x - content.window.x) / scale, (y - content.window.y) / scale];
  const named = (k: number) => content.classes[k] ?? String(k);
  if (content.kind === "raster") {
    const [rows, columns] = content.size;
    const column = Math.floor(((u * scale) / content.window.hx + 1) * 0.5 * columns);
    const row = Math.floor(((v * scale) / content.window.hy + 1) * 0.5 * rows);
    if (column < 0 || row < 0 || column >= columns || row >= rows) return [];
    const unit = content.quantity === "boundary_density" ? 1 / scale : 1;
    const found: [string, string][] = [[content.label, number(content.values[row * columns + column]! * unit)]];
    if (content.class) found.push(["class", named(content.class[row * columns + column]!)]);
    return found;
  }
  const { finder, sides } = located!();
  const cell = finder.at(u, v);
  if (cell < 0) return [];
  const words: [string, string][] = [["area", number(content.area[cell]! * scale * scale)]];
  if (content.class) words.push(["class", named(classAt(content, cell, u, v))]);
  if (content.gradient) words.push(["gradient norm", number(content.gradient[cell]!)]);
  const near = nearest(content, sides, cell, u, v);
  if (near) {
    const site = content.sites[content.edge_site[near.edge]!]!;
    words.push(["nearest boundary", number(near.distance * scale)]);
    words.push(["its unit", `${unitName(content.edge_unit[near.edge]!, site.shape)} of ${site.name} (${site.kind}, layer ${content.edge_layer[near.edge]})`]);
  }
  return words;
}

/** What a function finds, looked for when it is first asked for: nobody waits for it who only zooms. */
function once<T>(find: () => T): () => T {
  let found: T | undefined;
  return () => (found ??= find());
}

function crosshair(under: Under, window: Window) {
  return { left: `${50 + (50 * (under.x - window.x)) / window.hx}%`, top: `${50 - (50 * (under.y - window.y)) / window.hy}%` };
}

interface Gestures {
  place: (event: PointerEvent) => [number, number];
  pan: (u: number, v: number) => void;
  zoom: (factor: number, u: number, v: number) => void;
  hover: (u: number, v: number) => void;
}

/** Drag to pan, pinch to zoom. */
function useGestures({ place, pan, zoom, hover }: Gestures) {
  const down = useRef(new Map<number, [number, number]>());
  return {
    onPointerDown(event: PointerEvent) {
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      down.current.set(event.pointerId, place(event));
    },
    onPointerMove(event: PointerEvent) {
      const [u, v] = place(event);
      const held = down.current;
      const before = held.get(event.pointerId);
      if (!before) return hover(u, v);
      if (held.size === 1) pan(u - before[0], v - before[1]);
      else {
        const [other] = [...held].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        const apart = (at: [number, number]) => Math.hypot(at[0] - other![0], at[1] - other![1]) || 1e-6;
        zoom(apart([u, v]) / apart(before), (u + other![0]) / 2, (v + other![1]) / 2);
      }
      held.set(event.pointerId, [u, v]);
    },
    onPointerUp: (event: PointerEvent) => void down.current.delete(event.pointerId),
    onPointerCancel: (event: PointerEvent) => void down.current.delete(event.pointerId),
  };
}
