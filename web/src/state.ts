// What a view shows, and its place behind the # of the address.

import { COLOURINGS, type Colouring } from "./colours";
import type { Viewport } from "./viewport";

/** One panel: a step of a run. `null` is the first run, or the last step. */
export interface Panel {
  run: string | null;
  step: number | null;
}

export interface View {
  panels: Panel[]; // one, or two side by side
  plane: string | null; // null: the first of the run
  viewport: Viewport | null; // null: the whole plane
  colouring: Colouring;
  hidden: number[]; // layers
  decision: boolean;
  images: boolean; // all training images, where they are nearest to the plane
  log: boolean; // time axis
}

export const START: View = {
  panels: [{ run: null, step: null }],
  plane: null,
  viewport: null,
  colouring: "class",
  hidden: [],
  decision: true,
  images: false,
  log: true,
};

/** What the address says, without the #; only what differs from the start. */
export function written(view: View): string {
  const said = new URLSearchParams();
  view.panels.forEach(({ run, step }, k) => {
    if (run !== null) said.set(k ? "run2" : "run", run);
    if (step !== null) said.set(k ? "step2" : "step", String(step));
    if (k) said.set("panels", "2");
  });
  if (view.plane !== null) said.set("plane", view.plane);
  if (view.viewport) for (const name of ["x", "y", "h"] as const) said.set(name, String(view.viewport[name]));
  if (view.colouring !== START.colouring) said.set("colour", view.colouring);
  if (view.hidden.length) said.set("hidden", view.hidden.join(","));
  if (!view.decision) said.set("decision", "0");
  if (view.images) said.set("images", "1");
  if (!view.log) said.set("log", "0");
  return said.toString();
}

/** The view that an address says; what makes no sense is as at the start. */
export function read(hash: string): View {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string): number | null => {
    const value = said.get(name);
    return value !== null && value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : null;
  };
  const panel = (suffix: string): Panel => ({ run: said.get(`run${suffix}`), step: number(`step${suffix}`) });
  const [x, y, h] = [number("x"), number("y"), number("h")];
  const colour = said.get("colour");
  return {
    panels: said.get("panels") === "2" ? [panel(""), panel("2")] : [panel("")],
    plane: said.get("plane"),
    viewport: x !== null && y !== null && h !== null && h > 0 ? { x, y, h } : null,
    colouring: colour !== null && Object.hasOwn(COLOURINGS, colour) ? (colour as Colouring) : START.colouring,
    hidden: (said.get("hidden") ?? "").split(",").map(Number).filter((layer) => Number.isInteger(layer) && layer > 0),
    decision: said.get("decision") !== "0",
    images: said.get("images") === "1",
    log: said.get("log") !== "0",
  };
}
