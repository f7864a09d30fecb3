// Which cell is under the cursor, and what is next to it. Cells are convex, so a look at their sides tells.

import type { Cells, Window } from "./protocol";

const BUCKETS = 64;

/** A grid over the window of the cells: in each field, the cells whose bounding box meets it. */
export class Finder {
  private readonly fields: Uint32Array;
  private readonly starts: Uint32Array;
  private readonly low: [number, number];
  private readonly size: [number, number];

  constructor(private readonly cells: Cells) {
    const { hx, hy, scale } = cells.window;
    this.low = [-hx / scale, -hy / scale];
    this.size = [(2 * hx) / scale / BUCKETS, (2 * hy) / scale / BUCKETS];
    const boxes = new Uint8Array(4 * cells.cells);
    const counts = new Uint32Array(BUCKETS * BUCKETS + 1);
    for (let i = 0; i < cells.cells; i++) {
      const box = this.box(i);
      boxes.set(box, 4 * i);
      this.each(box, (field) => counts[field + 1]!++);
    }
    for (let f = 0; f < BUCKETS * BUCKETS; f++) counts[f + 1]! += counts[f]!;
    this.starts = counts.slice();
    this.fields = new Uint32Array(counts[BUCKETS * BUCKETS]!);
    const next = counts.slice();
    for (let i = 0; i < cells.cells; i++) this.each(boxes.subarray(4 * i, 4 * i + 4), (field) => (this.fields[next[field]!++] = i));
  }

  /** The cell at a place relative to the window, or -1. */
  at(x: number, y: number): number {
    const column = Math.floor((x - this.low[0]) / this.size[0]);
    const row = Math.floor((y - this.low[1]) / this.size[1]);
    if (column < 0 || row < 0 || column >= BUCKETS || row >= BUCKETS) return -1;
    const field = row * BUCKETS + column;
    for (let k = this.starts[field]!; k < this.starts[field + 1]!; k++) if (this.holds(this.fields[k]!, x, y)) return this.fields[k]!;
    return -1;
  }

  private holds(cell: number, x: number, y: number): boolean {
    const { offsets, corners, vertices } = this.cells;
    const [from, to] = [offsets[cell]!, offsets[cell + 1]!];
    for (let k = from; k < to; k++) {
      const a = 2 * corners[k]!;
      const b = 2 * corners[k + 1 < to ? k + 1 : from]!;
      const [ax, ay] = [vertices[a]!, vertices[a + 1]!];
      if ((vertices[b]! - ax) * (y - ay) - (vertices[b + 1]! - ay) * (x - ax) < 0) return false;
    }
    return true;
  }

  private box(cell: number): [number, number, number, number] {
    const { offsets, corners, vertices } = this.cells;
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let k = offsets[cell]!; k < offsets[cell + 1]!; k++) {
      const [x, y] = [vertices[2 * corners[k]!]!, vertices[2 * corners[k]! + 1]!];
      [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x), Math.max(y1, y)];
    }
    const field = (value: number, axis: 0 | 1) =>
      Math.min(Math.max(Math.floor((value - this.low[axis]) / this.size[axis]), 0), BUCKETS - 1);
    return [field(x0, 0), field(y0, 1), field(x1, 0), field(y1, 1)];
  }

  private each([c0, r0, c1, r1]: ArrayLike<number> & Iterable<number>, visit: (field: number) => void): void {
    for (let r = r0!; r <= r1!; r++) for (let c = c0!; c <= c1!; c++) visit(r * BUCKETS + c);
  }
}

/** The class at a place of a cell: of the piece that holds it, where the decision changes inside the cell. */
export function classAt(cells: Cells, cell: number, x: number, y: number): number {
  for (let i = 0; i < (cells.piece_cell?.length ?? 0); i++) {
    if (cells.piece_cell![i] !== cell) continue;
    const places = cells.piece_places!.subarray(2 * cells.piece_offsets![i]!, 2 * cells.piece_offsets![i + 1]!);
    const n = places.length / 2;
    const left = (k: number) => {
      const [ax, ay, b] = [places[2 * k]!, places[2 * k + 1]!, 2 * ((k + 1) % n)];
      return (places[b]! - ax) * (y - ay) - (places[b + 1]! - ay) * (x - ax) >= 0;
    };
    if ([...Array(n).keys()].every(left)) return cells.piece_class![i]!;
  }
  return cells.class![cell]!;
}

/** The mean corner of every cell, in plane coordinates. */
export function centresOf(cells: Cells): Float64Array {
  const { offsets, corners, vertices, window } = cells;
  const found = new Float64Array(2 * cells.cells);
  for (let i = 0; i < cells.cells; i++) {
    const share = window.scale / (offsets[i + 1]! - offsets[i]!);
    [found[2 * i], found[2 * i + 1]] = [window.x, window.y];
    for (let k = offsets[i]!; k < offsets[i + 1]!; k++) {
      found[2 * i]! += share * vertices[2 * corners[k]!]!;
      found[2 * i + 1]! += share * vertices[2 * corners[k]! + 1]!;
    }
  }
  return found;
}

const INSIDE = 0.92; // of a window: a name there is not cut off

/** A name in the middle of the largest visible cell of each class: what colours say, without them. */
export function classLabels(cells: Cells, centres: Float64Array, window: Window): { name: string; x: number; y: number }[] {
  const largest = new Map<number, number>();
  cells.class?.forEach((k, i) => {
    const far = Math.max(Math.abs(centres[2 * i]! - window.x) / window.hx, Math.abs(centres[2 * i + 1]! - window.y) / window.hy);
    if (far < INSIDE && cells.area[i]! > (cells.area[largest.get(k) ?? -1] ?? 0)) largest.set(k, i);
  });
  return [...largest].map(([k, i]) => ({ name: cells.classes[k] ?? String(k), x: centres[2 * i]!, y: centres[2 * i + 1]! }));
}

interface Nearest {
  edge: number;
  distance: number; // in units of the window's scale
}

/** The edges of each cell that are boundaries, as (starts, edges). */
export function sidesOf(cells: Cells): { starts: Uint32Array; edges: Uint32Array } {
  const counts = new Uint32Array(cells.cells + 1);
  const inner = (e: number) => cells.edge_site[e]! >= 0;
  const each = (visit: (cell: number, edge: number) => void) => {
    for (let e = 0; e < cells.edge_site.length; e++) {
      for (const side of [0, 1]) {
        const cell = cells.edge_cells[2 * e + side]!;
        if (cell >= 0 && inner(e)) visit(cell, e);
      }
    }
  };
  each((cell) => counts[cell + 1]!++);
  for (let i = 0; i < cells.cells; i++) counts[i + 1]! += counts[i]!;
  const [edges, next] = [new Uint32Array(counts[cells.cells]!), counts.slice()];
  each((cell, e) => (edges[next[cell]!++] = e));
  return { starts: counts, edges };
}

/** The nearest boundary of a cell to a place in it: as cells are convex, the nearest of its own sides. */
export function nearest(cells: Cells, sides: ReturnType<typeof sidesOf>, cell: number, x: number, y: number): Nearest | null {
  let found: Nearest | null = null;
  for (let k = sides.starts[cell]!; k < sides.starts[cell + 1]!; k++) {
    const edge = sides.edges[k]!;
    const [a, b] = [2 * cells.edge_vertices[2 * edge]!, 2 * cells.edge_vertices[2 * edge + 1]!];
    const distance = toSegment(x, y, cells.vertices[a]!, cells.vertices[a + 1]!, cells.vertices[b]!, cells.vertices[b + 1]!);
    if (!found || distance < found.distance) found = { edge, distance };
  }
  return found;
}

export function toSegment(x: number, y: number, ax: number, ay: number, bx: number, by: number): number {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const t = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0;
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}

/** A unit in words: its number in the shape of its site, such as (3, 12, 7). */
export function unitName(unit: number, shape: number[]): string {
  const places: number[] = [];
  for (const size of [...shape].reverse()) {
    places.unshift(unit % size);
    unit = Math.floor(unit / size);
  }
  return places.length === 1 ? String(places[0]) : `(${places.join(", ")})`;
}
