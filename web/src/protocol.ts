// What the explorer is told: docs/explorer-format.md in types, and the reader of the binary block.

export interface Window {
  x: number;
  y: number;
  hx: number;
  hy: number;
}

export interface Run {
  id: string;
  name: string;
  state: "running" | "finished" | "stopped" | "failed" | "killed" | "recorded" | "given" | "incomplete";
  step: number | null;
  steps: number | null;
  records: number;
  recorded: number[];
  reason: string | null;
  network: boolean;
  network_reason: string | null;
  images: boolean;
  planes: string[];
  scores: Record<string, number | null>;
  about: Record<string, unknown>;
}

export interface Runs {
  version: string;
  live: boolean;
  runs: Run[];
}

export type Values = (number | null)[];

export interface Probe {
  name: string;
  mean: Values;
  stderr: Values;
  n: number | null;
  layers: Values[] | null;
}

export interface Measure {
  name: string;
  label: string;
  exact: boolean;
  kind: string; // exact, a bound or estimated, in words
  axis: "value" | "accuracy" | "loss";
  probes: Probe[];
}

export interface Scalar {
  name: string;
  label: string;
  axis: "value" | "accuracy" | "loss";
  values: Values;
}

export interface Segment {
  name: string;
  kind: "descent" | "ascent";
  first: number;
  last: number;
  change: number;
}

export interface Phases {
  measure: string;
  probe: string;
  segments: Segment[];
  peak: number | null;
  memorised: number | null;
  generalised: number | null;
  grokked: boolean;
  confidence: number | null;
}

export interface Curves {
  steps: number[];
  label: string;
  measures: Measure[];
  scalars: Scalar[];
  planes: { name: string; cells: Values }[];
  phases: Phases | null;
}

export interface PlaneEntry {
  id: string;
  name: string;
  steps: number[];
}

export interface Anchor {
  place: [number, number];
  index: number | null;
  label: string | null;
}

export interface PlaneInfo {
  id: string;
  name: string;
  domain: [number, number][];
  window: Window;
  least: number;
  most: number;
  inputs: number[];
  anchors: Anchor[];
}

export interface Images {
  total: number;
  start: number;
  count: number;
  shape: [number, number] | null;
  channels: number;
  columns: number;
  labels: string[] | null;
  classes: string[];
  sheet: string | null;
}

export interface Site {
  name: string;
  kind: string;
  layer: number;
  units: number;
  shape: number[];
}

interface Header {
  run: string;
  step: number;
  plane: string;
  exact: boolean;
  classes: string[];
  window: Window & { scale: number };
  seconds: number;
}

export interface Cells extends Header {
  kind: "cells";
  undecided: number;
  cells: number;
  recorded: boolean;
  layers: number;
  sites: Site[];
  vertices: Float32Array; // (v, 2), relative to the window
  offsets: Uint32Array; // (cells + 1)
  corners: Uint32Array;
  area: Float32Array;
  class?: Int16Array;
  gradient?: Float32Array;
  pattern: Uint32Array;
  layer: Uint8Array;
  edge_vertices: Uint32Array; // (e, 2)
  edge_cells: Int32Array; // (e, 2)
  edge_site: Int16Array;
  edge_unit: Int32Array;
  edge_layer: Uint8Array;
  edge_length: Float32Array;
  decision?: Float32Array; // (s, 2, 2)
  decision_classes?: Int16Array; // (s, 2)
  piece_offsets?: Uint32Array; // of the cells in which the decision changes, cut there
  piece_places?: Float32Array; // (q, 2)
  piece_cell?: Uint32Array;
  piece_class?: Int16Array;
}

export interface Raster extends Header {
  kind: "raster";
  quantity: "boundary_density" | "local_complexity";
  label: string;
  more_than: number | null;
  size: [number, number]; // rows, columns
  values: Float32Array;
  class?: Int16Array;
}

export interface Points {
  kind: "points";
  total: number;
  place: Float64Array; // (n, 2)
  distance: Float32Array;
  class: Int32Array;
}

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int16: Int16Array,
  uint16: Uint16Array,
  uint8: Uint8Array,
};

interface Place {
  type: keyof typeof ARRAYS;
  shape: number[];
  offset: number;
}

/** A binary block as one object: what its header says, and its arrays by name. Nothing is copied. */
export function block(buffer: ArrayBuffer): Cells | Raster | Points {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, false) !== 0x52535831) throw new Error("this is no block of the explorer");
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const { arrays, ...rest } = header as { arrays: Record<string, Place> };
  const found: Record<string, unknown> = { ...rest };
  for (const [name, { type, shape, offset }] of Object.entries(arrays)) {
    if (!(type in ARRAYS)) continue;
    found[name] = new ARRAYS[type](buffer, offset, shape.reduce((a, b) => a * b, 1));
  }
  return found as unknown as Cells | Raster | Points;
}
