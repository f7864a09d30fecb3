// Files out of a view: pictures, vectors, numbers, and a plane over training.

import { GIFEncoder, applyPalette, quantize } from "gifenc";
import { BOUNDARY, cellColours, css, layerColour } from "./colours";
import type { Cells, Window } from "./protocol";
import type { Look } from "./scene";

export function save(data: Blob | string, name: string, type = "text/plain"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(typeof data === "string" ? new Blob([data], { type }) : data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function savePng(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((blob) => blob && save(blob, name));
}

/** The cells of a window as lines of CSV: places in plane coordinates, exact numbers as they were sent. */
export function csvOf(cells: Cells): string {
  const { x, y, scale } = cells.window;
  const lines = ["cell,x,y,area,class,gradient_norm,pattern,layer,corners"];
  for (let i = 0; i < cells.cells; i++) {
    const places = cornersOf(cells, i);
    const [u, v] = [0, 1].map((k) => places.reduce((sum, p) => sum + p[k]!, 0) / places.length) as [number, number];
    const numbers = [x + scale * u, y + scale * v, cells.area[i]! * scale * scale, cells.class?.[i] ?? "", cells.gradient?.[i] ?? ""];
    lines.push([i, ...numbers, cells.pattern[i]!.toString(16).padStart(8, "0"), cells.layer[i], places.length].join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** The visible cells as SVG: fills by colour, boundaries by layer, the decision boundary. */
export function svgOf(cells: Cells, window: Window, look: Look, width = 800): string {
  const height = Math.round((width * window.hy) / window.hx);
  const { scale } = cells.window;
  const px = (u: number) => (0.5 * width * (1 + (u * scale + cells.window.x - window.x) / window.hx)).toFixed(2);
  const py = (v: number) => (0.5 * height * (1 - (v * scale + cells.window.y - window.y) / window.hy)).toFixed(2);
  const { rgba } = cellColours(cells, look.colouring, look.dark);
  const fills = new Map<string, string[]>();
  const pieces = look.colouring === "class" ? (cells.piece_cell?.length ?? 0) : 0; // over the cells that they are of
  for (let i = 0; i < cells.cells + pieces; i++) {
    const colour = css([rgba[4 * i]!, rgba[4 * i + 1]!, rgba[4 * i + 2]!]);
    const corners = i < cells.cells ? cornersOf(cells, i) : pieceOf(cells, i - cells.cells);
    const path = `M${corners.map(([u, v]) => `${px(u)} ${py(v)}`).join("L")}Z`;
    const layer = i < cells.cells ? colour : `${colour} `; // pieces come after all cells
    fills.set(layer, [...(fills.get(layer) ?? []), path]);
  }
  const strokes = new Map<number, string[]>();
  cells.edge_layer.forEach((layer, e) => {
    if (layer === 0 || look.hidden.has(layer)) return;
    const [a, b] = [2 * cells.edge_vertices[2 * e]!, 2 * cells.edge_vertices[2 * e + 1]!];
    const at = (k: number) => `${px(cells.vertices[k]!)} ${py(cells.vertices[k + 1]!)}`;
    strokes.set(layer, [...(strokes.get(layer) ?? []), `M${at(a)}L${at(b)}`]);
  });
  const decision = [...Array((cells.decision?.length ?? 0) / 4).keys()].map((s) => {
    const [a, b, c, d] = cells.decision!.subarray(4 * s, 4 * s + 4);
    return `M${px(a!)} ${py(b!)}L${px(c!)} ${py(d!)}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    ...[...fills].map(([colour, paths]) => `<path fill="${colour.trim()}" d="${paths.join("")}"/>`),
    ...[...strokes].map(([layer, paths]) => `<path fill="none" stroke="${css(layerColour(layer, cells.layers, look.dark))}" stroke-width="0.7" d="${paths.join("")}"><title>layer ${layer}</title></path>`),
    look.decision && decision.length ? `<path fill="none" stroke="${BOUNDARY}" stroke-width="2" d="${decision.join("")}"><title>decision boundary</title></path>` : "",
    "</svg>\n",
  ].join("\n");
}

function pieceOf(cells: Cells, i: number): [number, number][] {
  const places = cells.piece_places!.subarray(2 * cells.piece_offsets![i]!, 2 * cells.piece_offsets![i + 1]!);
  return [...Array(places.length / 2).keys()].map((k) => [places[2 * k]!, places[2 * k + 1]!]);
}

function cornersOf(cells: Cells, i: number): [number, number][] {
  return [...cells.corners.subarray(cells.offsets[i]!, cells.offsets[i + 1]!)].map((k) => [cells.vertices[2 * k]!, cells.vertices[2 * k + 1]!]);
}

/** A GIF of what a canvas shows at one step after another. */
export async function gifOf(canvas: HTMLCanvasElement, steps: readonly number[], show: (step: number) => Promise<void>, told: (done: number) => void): Promise<Blob> {
  const encoder = GIFEncoder();
  const copy = document.createElement("canvas");
  copy.width = 480;
  copy.height = Math.round((480 * canvas.height) / canvas.width);
  const pen = copy.getContext("2d", { willReadFrequently: true })!;
  for (const [k, step] of steps.entries()) {
    await show(step);
    pen.drawImage(canvas, 0, 0, copy.width, copy.height);
    pen.font = "14px sans-serif";
    pen.fillStyle = "#ffffffcc";
    pen.fillRect(4, copy.height - 24, 16 + pen.measureText(`step ${step}`).width, 20);
    pen.fillStyle = "#000";
    pen.fillText(`step ${step}`, 12, copy.height - 9);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    const palette = quantize(data, 256);
    encoder.writeFrame(applyPalette(data, palette), copy.width, copy.height, { palette, delay: k === steps.length - 1 ? 2000 : 250 });
    told(k + 1);
  }
  encoder.finish();
  return new Blob([encoder.bytes() as Uint8Array<ArrayBuffer>], { type: "image/gif" });
}
