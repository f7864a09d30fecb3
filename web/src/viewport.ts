// The visible part of a plane. All in float64, so that zooming has no end before the numbers do.

import type { PlaneInfo, Window } from "./protocol";

/** Centre in plane coordinates, and half of the shorter visible side. */
export interface Viewport {
  x: number;
  y: number;
  h: number;
}

export function whole(plane: PlaneInfo): Viewport {
  const { x, y, hx, hy } = plane.window;
  return { x, y, h: Math.max(hx, hy) };
}

/** The window that is visible on a canvas with this ratio of width to height. */
export function visible(view: Viewport, aspect: number): Window {
  return { x: view.x, y: view.y, hx: view.h * Math.max(1, aspect), hy: view.h * Math.max(1, 1 / aspect) };
}

/** Zoom by a factor so that the place at (u, v), from -1 to 1 on the canvas, stays where it is. */
export function zoomed(view: Viewport, factor: number, u: number, v: number, aspect: number, plane: PlaneInfo): Viewport {
  const h = Math.min(Math.max(view.h / factor, plane.least), plane.most);
  const before = visible(view, aspect);
  const after = visible({ ...view, h }, aspect);
  return { x: view.x + u * (before.hx - after.hx), y: view.y + v * (before.hy - after.hy), h };
}

export function contains(outer: Window, inner: Window): boolean {
  return (
    Math.abs(inner.x - outer.x) + inner.hx <= outer.hx * (1 + 1e-9) &&
    Math.abs(inner.y - outer.y) + inner.hy <= outer.hy * (1 + 1e-9)
  );
}

const MARGIN = 1.5; // how much more than is visible is asked for, so that panning a little needs nothing new
const DEEPER = 8; // how far one can zoom into what is loaded: float32 of it is then as fine as a thousandth of a pixel

/** What to ask for to show a window. */
export function wanted(window: Window, plane: PlaneInfo): Window {
  const { hx, hy } = window;
  return { ...window, hx: Math.min(hx * MARGIN, plane.most), hy: Math.min(hy * MARGIN, plane.most) };
}

/** Whether what is loaded shows this window as well as anything could. */
export function suffices(loaded: Window, window: Window, exact: boolean): boolean {
  const deep = Math.max(loaded.hx / window.hx, loaded.hy / window.hy);
  return contains(loaded, window) && deep <= (exact ? DEEPER : MARGIN * 1.01);
}
