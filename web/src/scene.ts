// Draws cells with WebGL 2: filled polygons, boundaries by layer, the decision boundary; or a raster.

import { BOUNDARY, cellColours, layerColour, rasterColours, rgb, type Colouring, type RGB, type Scale } from "./colours";
import type { Cells, Raster, Window } from "./protocol";

const TEXELS = 2048; // a row of a texture: colours of cells, ends of edges

const FILL = `#version 300 es
precision highp float;
precision highp sampler2D;
layout(location = 0) in vec2 place;
layout(location = 1) in uint cell;
uniform vec4 map; // factor x, y and shift x, y
uniform sampler2D colours;
flat out vec4 colour;
void main() {
  colour = texelFetch(colours, ivec2(int(cell) % ${TEXELS}, int(cell) / ${TEXELS}), 0);
  gl_Position = vec4(place * map.xy + map.zw, 0.0, 1.0);
}`;

// Six corners an edge out of a table, not instances: software renderers draw those one by one.
const LINE = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D ends; // of an edge each
uniform vec4 map;
uniform vec2 pixel; // half the canvas in pixels
uniform float width;
out float across;
void main() {
  int edge = gl_VertexID / 6, corner = gl_VertexID % 6;
  bool end = corner == 2 || corner == 3 || corner == 5, left = corner == 1 || corner >= 4;
  vec4 both = texelFetch(ends, ivec2(edge % ${TEXELS}, edge / ${TEXELS}), 0);
  vec2 a = both.xy * map.xy + map.zw, b = both.zw * map.xy + map.zw;
  vec2 along = (b - a) * pixel;
  float size = length(along);
  vec2 normal = size > 0.0 ? vec2(-along.y, along.x) / size : vec2(0.0, 1.0);
  across = (0.5 * width + 0.5) * (left ? 1.0 : -1.0);
  gl_Position = vec4((end ? b : a) + normal * across / pixel, 0.0, 1.0);
}`;

const FLAT = `#version 300 es
precision highp float;
flat in vec4 colour;
out vec4 shown;
void main() { shown = colour; }`;

const SMOOTH = `#version 300 es
precision highp float;
uniform vec3 colour;
uniform float width;
in float across;
out vec4 shown;
void main() {
  float cover = clamp(0.5 * width + 0.5 - abs(across), 0.0, 1.0);
  shown = vec4(colour * cover, cover);
}`;

const PICTURE = `#version 300 es
precision highp float;
layout(location = 0) in vec2 place;
uniform vec4 map;
uniform vec2 size;
out vec2 at;
void main() { at = 0.5 + 0.5 * place / size; gl_Position = vec4(place * map.xy + map.zw, 0.0, 1.0); }`;

const SHOWN = `#version 300 es
precision highp float;
uniform sampler2D colours;
in vec2 at;
out vec4 shown;
void main() { shown = texture(colours, at); }`;

export interface Look {
  colouring: Colouring;
  hidden: ReadonlySet<number>; // layers whose boundaries are not shown
  decision: boolean;
  dark: boolean;
}

interface Loaded {
  content: Cells | Raster;
  fills: WebGLVertexArrayObject;
  corners: number; // indices of triangles of cells
  pieces: number; // and of those with pieces of cells by their class over them
  strokes: Stroke[];
  ends: WebGLTexture | null; // of all strokes
  colours: WebGLTexture;
  buffers: WebGLBuffer[];
}

/** Edges that look alike: those of a layer, or the decision boundary. */
interface Stroke {
  layer: number | "decision";
  first: number;
  count: number;
}

export class Scene {
  private readonly gl: WebGL2RenderingContext;
  private readonly fill: WebGLProgram;
  private readonly line: WebGLProgram;
  private readonly picture: WebGLProgram;
  private loaded: Loaded | null = null;
  scale: Scale | null = null; // of the colours that are shown

  constructor(readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which the explorer draws with");
    this.gl = gl;
    this.fill = program(gl, FILL, FLAT);
    this.line = program(gl, LINE, SMOOTH);
    this.picture = program(gl, PICTURE, SHOWN);
  }

  /** Take what is to be drawn from now on. */
  load(content: Cells | Raster, look: Look): void {
    this.unload();
    this.loaded = content.kind === "cells" ? this.loadedCells(content) : this.loadedRaster(content);
    this.paint(look);
  }

  /** Colour what is loaded. */
  paint(look: Look): void {
    if (!this.loaded) return;
    const { content, colours } = this.loaded;
    const painted = content.kind === "cells" ? cellColours(content, look.colouring, look.dark) : rasterColours(content, look.dark);
    this.scale = painted.scale;
    const { gl } = this;
    gl.bindTexture(gl.TEXTURE_2D, colours);
    const [columns, rows] =
      content.kind === "cells" ? [TEXELS, Math.max(1, Math.ceil(painted.rgba.length / 4 / TEXELS))] : [content.size[1], content.size[0]];
    const texels = new Uint8Array(4 * columns * rows);
    texels.set(painted.rgba);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, columns, rows, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
  }

  draw(window: Window, look: Look): void {
    const { gl, canvas, loaded } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    const [r, g, b] = look.dark ? [0.09, 0.095, 0.115] : [1, 1, 1];
    gl.clearColor(r!, g!, b!, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!loaded) return;
    const { x, y, scale } = loaded.content.window;
    const map = [scale / window.hx, scale / window.hy, (x - window.x) / window.hx, (y - window.y) / window.hy] as const;
    const use = (made: WebGLProgram) => {
      gl.useProgram(made);
      gl.uniform4f(gl.getUniformLocation(made, "map"), ...map);
    };
    gl.bindTexture(gl.TEXTURE_2D, loaded.colours);
    gl.bindVertexArray(loaded.fills);
    if (loaded.content.kind === "raster") {
      use(this.picture);
      const { hx, hy } = loaded.content.window;
      gl.uniform2f(gl.getUniformLocation(this.picture, "size"), hx / scale, hy / scale);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
      return;
    }
    use(this.fill);
    gl.drawElements(gl.TRIANGLES, look.colouring === "class" ? loaded.pieces : loaded.corners, gl.UNSIGNED_INT, 0);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    use(this.line);
    gl.bindVertexArray(null);
    gl.bindTexture(gl.TEXTURE_2D, loaded.ends);
    gl.uniform2f(gl.getUniformLocation(this.line, "pixel"), canvas.width / 2, canvas.height / 2);
    for (const { layer, first, count } of loaded.strokes) {
      if (layer === "decision" ? !look.decision : look.hidden.has(layer)) continue;
      const [colour, width] = pen(layer, loaded.content.layers, look.dark);
      gl.uniform3f(gl.getUniformLocation(this.line, "colour"), colour[0] / 255, colour[1] / 255, colour[2] / 255);
      gl.uniform1f(gl.getUniformLocation(this.line, "width"), width * (devicePixelRatio || 1));
      gl.drawArrays(gl.TRIANGLES, 6 * first, 6 * count);
    }
    gl.disable(gl.BLEND);
  }

  private loadedCells(cells: Cells): Loaded {
    const { gl } = this;
    const { places, owners, triangles, ofCells } = fans(cells);
    const buffers: WebGLBuffer[] = [];
    const buffer = (target: number, data: ArrayBufferView<ArrayBuffer>) => {
      const made = gl.createBuffer();
      buffers.push(made);
      gl.bindBuffer(target, made);
      gl.bufferData(target, data, gl.STATIC_DRAW);
    };
    const fills = gl.createVertexArray();
    gl.bindVertexArray(fills);
    buffer(gl.ARRAY_BUFFER, places);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    buffer(gl.ARRAY_BUFFER, owners);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_INT, 0, 0);
    buffer(gl.ELEMENT_ARRAY_BUFFER, triangles);
    gl.bindVertexArray(null);
    const { places: both, strokes } = ends(cells);
    const table = texture(gl, gl.NEAREST);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, TEXELS, both.length / 4 / TEXELS, 0, gl.RGBA, gl.FLOAT, both);
    return { content: cells, fills, corners: ofCells, pieces: triangles.length, strokes, ends: table, colours: texture(gl, gl.NEAREST), buffers };
  }

  private loadedRaster(raster: Raster): Loaded {
    const { gl } = this;
    const { hx, hy, scale } = raster.window;
    const [u, v] = [hx / scale, hy / scale];
    const fills = gl.createVertexArray();
    gl.bindVertexArray(fills);
    const made = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-u, -v, u, -v, -u, v, u, v]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(null);
    return { content: raster, fills, corners: 4, pieces: 4, strokes: [], ends: null, colours: texture(gl, gl.LINEAR), buffers: [made] };
  }

  private unload(): void {
    const { gl, loaded } = this;
    if (!loaded) return;
    loaded.buffers.forEach((made) => gl.deleteBuffer(made));
    gl.deleteVertexArray(loaded.fills);
    [loaded.colours, loaded.ends].forEach((made) => gl.deleteTexture(made));
    this.loaded = null;
  }
}

/** Cells as triangles, and then their pieces: all corners, the number of the cell or piece that each belongs to, and fans. */
export function fans(cells: Cells): {
  places: Float32Array<ArrayBuffer>;
  owners: Uint32Array<ArrayBuffer>;
  triangles: Uint32Array<ArrayBuffer>;
  ofCells: number; // so many of the triangles' corners
} {
  const pieces = cells.piece_cell?.length ?? 0;
  const own = cells.corners.length;
  const count = own + (cells.piece_places?.length ?? 0) / 2;
  const places = new Float32Array(2 * count);
  for (let k = 0; k < own; k++) {
    places[2 * k] = cells.vertices[2 * cells.corners[k]!]!;
    places[2 * k + 1] = cells.vertices[2 * cells.corners[k]! + 1]!;
  }
  if (cells.piece_places) places.set(cells.piece_places, 2 * own);
  const owners = new Uint32Array(count);
  const triangles = new Uint32Array(3 * Math.max(0, count - 2 * (cells.cells + pieces)));
  let next = 0;
  const fan = (owner: number, from: number, to: number) => {
    for (let k = from; k < to; k++) {
      owners[k] = owner;
      if (k < from + 2) continue;
      triangles[next++] = from;
      triangles[next++] = k - 1;
      triangles[next++] = k;
    }
  };
  for (let i = 0; i < cells.cells; i++) fan(i, cells.offsets[i]!, cells.offsets[i + 1]!);
  const ofCells = next;
  for (let i = 0; i < pieces; i++) fan(cells.cells + i, own + cells.piece_offsets![i]!, own + cells.piece_offsets![i + 1]!);
  return { places, owners, triangles, ofCells };
}

/** The ends of all edges but the rim, and of the decision boundary, filled up to whole rows of a texture: deep layers first, so that the first is on top. */
export function ends(cells: Cells): { places: Float32Array<ArrayBuffer>; strokes: Stroke[] } {
  const { vertices, edge_vertices, edge_layer } = cells;
  const counts = new Uint32Array(256);
  for (const layer of edge_layer) counts[layer]!++;
  const [strokes, next, segments] = [[] as Stroke[], new Uint32Array(256), (cells.decision?.length ?? 0) / 4];
  let total = 0;
  for (let layer = 255; layer > 0; layer--) {
    next[layer] = total;
    if (counts[layer]) strokes.push({ layer, first: total, count: counts[layer]! });
    total += counts[layer]!;
  }
  if (segments) strokes.push({ layer: "decision", first: total, count: segments });
  const places = new Float32Array(4 * TEXELS * Math.max(1, Math.ceil((total + segments) / TEXELS)));
  for (let e = 0; e < edge_layer.length; e++) {
    if (edge_layer[e] === 0) continue;
    const [at, a, b] = [4 * next[edge_layer[e]!]!++, 2 * edge_vertices[2 * e]!, 2 * edge_vertices[2 * e + 1]!];
    places[at] = vertices[a]!;
    places[at + 1] = vertices[a + 1]!;
    places[at + 2] = vertices[b]!;
    places[at + 3] = vertices[b + 1]!;
  }
  if (cells.decision) places.set(cells.decision, 4 * total);
  return { places, strokes };
}

/** The colour and thickness of lines: deeper layers are thinner. */
function pen(layer: number | "decision", layers: number, dark: boolean): [RGB, number] {
  if (layer === "decision") return [rgb(BOUNDARY), 2.5];
  return [layerColour(layer, layers, dark), 1.3 - (0.8 * (layer - 1)) / Math.max(1, layers - 1)];
}

function texture(gl: WebGL2RenderingContext, filter: number): WebGLTexture {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

function program(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(kind)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader) ?? "shader");
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made) ?? "program");
  return made;
}
