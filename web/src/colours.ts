// Colours of cells, layers and curves. What colour says is also said in words: in legends and under the cursor.

import type { Cells, Raster } from "./protocol";

export type RGB = [number, number, number];

const HUES: Record<string, string> = { train: "#7b3fa0", test: "#e66f00", random: "#2a7fc1", uniform: "#2a7fc1" };
const OTHERS = ["#1b8a6b", "#b8437f", "#777777", "#8c6d1f"];
export const BOUNDARY = "#d62728";

/** The colour of a probe's curves; lighter on a dark ground, where purple is hard to see. */
export function probeHue(name: string, number: number, dark: boolean): string {
  const hue = HUES[name] ?? OTHERS[number % OTHERS.length]!;
  return dark ? `#${mixed(rgb(hue), [255, 255, 255], 0.4).map((c) => Math.round(c).toString(16).padStart(2, "0")).join("")}` : hue;
}

export function rgb(hex: string): RGB {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)) as RGB;
}

// ten classes that can be told apart, after Okabe and Ito, then by hue
const CLASSES: RGB[] = [
  [86, 180, 233], [230, 159, 0], [0, 158, 115], [240, 228, 66], [204, 121, 167],
  [0, 114, 178], [213, 94, 0], [153, 153, 153], [145, 92, 200], [170, 205, 120],
];

export function classColour(k: number): RGB {
  return k < CLASSES.length ? CLASSES[Math.max(k, 0)]! : hue(k * 0.618034, 0.55, 0.6);
}

// viridis, at nine places
const RAMP: RGB[] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

export function ramp(t: number): RGB {
  const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  return mixed(RAMP[low]!, RAMP[low + 1]!, at - low);
}

export function mixed(a: RGB, b: RGB, t: number): RGB {
  return [0, 1, 2].map((k) => a[k]! + t * (b[k]! - a[k]!)) as RGB;
}

export function hue(h: number, saturation: number, lightness: number): RGB {
  const part = (n: number) => {
    const k = (n + (h - Math.floor(h)) * 12) % 12;
    return 255 * (lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [part(0), part(8), part(4)];
}

export const css = ([r, g, b]: RGB) => `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;

/** The colour of a layer's boundaries, from the first (dark) to the last (light), on a light or dark ground. */
export function layerColour(layer: number, layers: number, dark: boolean): RGB {
  const t = layers > 1 ? (layer - 1) / (layers - 1) : 0;
  return dark ? mixed(ramp(0.45 + 0.55 * t), [255, 255, 255], 0.15) : ramp(0.75 * t);
}

export const COLOURINGS = {
  class: "class",
  gradient: "gradient norm",
  pattern: "pattern",
  layer: "layer of the last cut",
  size: "region size",
  density: "local complexity density",
  none: "nothing",
} as const;

export type Colouring = keyof typeof COLOURINGS;

/** What a scale of colours runs over, for its legend; null where colours are names. */
export interface Scale {
  low: number;
  high: number;
  log: boolean;
  label: string;
}

const paler = (c: RGB, dark: boolean): RGB => mixed(c, dark ? [22, 24, 29] : [255, 255, 255], 0.45);

/** RGBA of every cell, then of every piece by its class; and the scale that colours are on. */
export function cellColours(cells: Cells, colouring: Colouring, dark: boolean): { rgba: Uint8Array; scale: Scale | null } {
  const pieces = cells.piece_class ?? new Int16Array(0);
  const rgba = new Uint8Array(4 * (cells.cells + pieces.length));
  const paint = (from: number, count: number, colour: (i: number) => RGB) => {
    for (let i = 0; i < count; i++) put(rgba, from + i, colour(i));
  };
  const scaled = (values: ArrayLike<number>, unit: number, label: string): Scale => {
    const { low, high } = limits(values);
    const shade = shading(low, high, dark);
    paint(0, cells.cells, (i) => shade(values[i]!));
    return { low: low * unit, high: high * unit, log: true, label };
  };
  const palette = (size: number, colour: (k: number) => RGB) => Array.from({ length: size }, (_, k) => paler(colour(k), dark));
  const classes = palette(cells.classes.length, classColour);
  const layers = palette(cells.layers + 1, (layer) => layerColour(Math.max(layer, 1), cells.layers, dark));
  const { scale } = cells.window;
  paint(cells.cells, pieces.length, (i) => classes[pieces[i]!]!);
  if (colouring === "gradient" && cells.gradient) return { rgba, scale: scaled(cells.gradient, 1, "gradient norm") };
  if (colouring === "size") return { rgba, scale: scaled(cells.area, scale * scale, "area of the region") };
  if (colouring === "class" && cells.class) paint(0, cells.cells, (i) => classes[cells.class![i]!]!);
  else if (colouring === "pattern") paint(0, cells.cells, (i) => paler(hue(cells.pattern[i]! / 2 ** 32, 0.6, 0.55), dark));
  else if (colouring === "layer") paint(0, cells.cells, (i) => layers[cells.layer[i]!]!);
  else paint(0, cells.cells, () => (dark ? [28, 31, 37] : [250, 250, 248]));
  return { rgba, scale: null };
}

function put(rgba: Uint8Array, at: number, [r, g, b]: RGB): void {
  rgba[4 * at] = r;
  rgba[4 * at + 1] = g;
  rgba[4 * at + 2] = b;
  rgba[4 * at + 3] = 255;
}

const SHADES = 256;

/** The colours of numbers on a logarithmic scale. */
function shading(low: number, high: number, dark: boolean): (value: number) => RGB {
  const shades = Array.from({ length: SHADES }, (_, k) => paler(ramp(k / (SHADES - 1)), dark));
  const unit = (SHADES - 1) / (Math.log(high / low) || 1);
  return (value) => shades[Math.min(Math.round(unit * Math.log(Math.max(value, low) / low)), SHADES - 1) || 0]!;
}

/** RGBA of every pixel of a raster, and its scale. */
export function rasterColours(raster: Raster, dark: boolean): { rgba: Uint8Array; scale: Scale } {
  const { low, high } = limits(raster.values);
  const rgba = new Uint8Array(4 * raster.values.length);
  const shade = shading(low, high, dark);
  raster.values.forEach((v, i) => put(rgba, i, shade(v)));
  const unit = raster.quantity === "boundary_density" ? 1 / raster.window.scale : 1;
  return { rgba, scale: { low: low * unit, high: high * unit, log: true, label: raster.label } };
}

/** The smallest and largest that colours tell apart: positive, the largest at most 10^6 times the smallest. */
export function limits(values: ArrayLike<number>): { low: number; high: number } {
  let [low, high] = [Infinity, 0];
  for (let i = 0; i < values.length; i++) {
    const v = values[i]!;
    if (v > 0 && v < low) low = v;
    if (v > high && Number.isFinite(v)) high = v;
  }
  if (!high) return { low: 1, high: 1 };
  return { low: Math.max(low, high * 1e-6), high };
}
