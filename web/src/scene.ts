// Draws cells with WebGL 2: filled polygons, boundaries by layer, the decision boundary; or a raster.

import { BOUNDARY, cellColours, layerColour, rasterColours, type Colouring, type RGB, type Scale } from "./colours";
import type { Cells, Raster, Window } from "./protocol";

const TEXELS = 2048; // cells a row of the texture of colours

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

const LINE = `#version 300 es
precision highp float;
layout(location = 0) in vec4 ends; // of an edge
layout(location = 1) in float layer;
uniform vec4 map;
uniform vec2 pixel; // half the canvas in pixels
uniform vec4 colours[64];
uniform float width;
flat out vec4 colour;
out float across;
void main() {
  vec2 a = ends.xy * map.xy + map.zw, b = ends.zw * map.xy + map.zw;
  vec2 along = (b - a) * pixel;
  float size = length(along);
  vec2 normal = size > 0.0 ? vec2(-along.y, along.x) / size : vec2(0.0, 1.0);
  bool end = gl_VertexID == 1 || gl_VertexID == 3;
  across = gl_VertexID < 2 ? -1.0 : 1.0;
  colour = colours[int(layer)];
  float thick = colour.a > 0.0 ? 0.5 * width * colour.a + 0.5 : 0.0;
  across *= thick;
  gl_Position = vec4((end ? b : a) + normal * across / pixel, 0.0, 1.0);
  colour = vec4(colour.rgb, thick);
}`;

const FLAT = `#version 300 es
precision highp float;
flat in vec4 colour;
out vec4 shown;
void main() { shown = colour; }`;

const SMOOTH = `#version 300 es
precision highp float;
flat in vec4 colour; // alpha is half the thickness
in float across;
out vec4 shown;
void main() {
  float cover = clamp(colour.a - abs(across), 0.0, 1.0);
  shown = vec4(colour.rgb * cover, cover);
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
  lines: WebGLVertexArrayObject | null;
  edges: number;
  decision: WebGLVertexArrayObject | null;
  segments: number;
  colours: WebGLTexture;
  buffers: WebGLBuffer[];
}

export class Scene {
  private readonly gl: WebGL2RenderingContext;
  private readonly fill: WebGLProgram;
  private readonly line: WebGLProgram;
  private readonly picture: WebGLProgram;
  private loaded: Loaded | null = null;
  scale: Scale | null = null; // of the colours that are shown

  constructor(readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which the explorer draws with");
    this.gl = gl;
    this.fill = program(gl, FILL, FLAT);
    this.line = program(gl, LINE, SMOOTH);
    this.picture = program(gl, PICTURE, SHOWN);
  }

  get content(): Cells | Raster | null {
    return this.loaded?.content ?? null;
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
    const ratio = devicePixelRatio || 1;
    gl.uniform2f(gl.getUniformLocation(this.line, "pixel"), canvas.width / 2, canvas.height / 2);
    this.strokes(loaded.lines!, loaded.edges, lineColours(loaded.content, look), ratio);
    if (look.decision && loaded.decision) this.strokes(loaded.decision, loaded.segments, [rgba(BOUNDARY)], 2.5 * ratio);
    gl.disable(gl.BLEND);
  }

  private strokes(lines: WebGLVertexArrayObject, count: number, colours: number[][], width: number): void {
    const { gl } = this;
    gl.bindVertexArray(lines);
    gl.uniform4fv(gl.getUniformLocation(this.line, "colours"), new Float32Array(colours.flat()));
    gl.uniform1f(gl.getUniformLocation(this.line, "width"), width);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
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
    const strokes = (ends: Float32Array<ArrayBuffer>, layers: Uint8Array<ArrayBuffer>) => {
      const lines = gl.createVertexArray();
      gl.bindVertexArray(lines);
      buffer(gl.ARRAY_BUFFER, ends);
      gl.enableVertexAttribArray(0);
      gl.vertexAttribPointer(0, 4, gl.FLOAT, false, 0, 0);
      gl.vertexAttribDivisor(0, 1);
      buffer(gl.ARRAY_BUFFER, layers);
      gl.enableVertexAttribArray(1);
      gl.vertexAttribPointer(1, 1, gl.UNSIGNED_BYTE, false, 0, 0);
      gl.vertexAttribDivisor(1, 1);
      return lines;
    };
    const edges = cells.edge_layer.length;
    const ends = new Float32Array(4 * edges);
    for (let k = 0; k < 2 * edges; k++) {
      ends[2 * k] = cells.vertices[2 * cells.edge_vertices[k]!]!;
      ends[2 * k + 1] = cells.vertices[2 * cells.edge_vertices[k]! + 1]!;
    }
    const lines = strokes(ends, cells.edge_layer.slice());
    const segments = (cells.decision?.length ?? 0) / 4;
    const decision = segments ? strokes(cells.decision!.slice(), new Uint8Array(segments)) : null;
    gl.bindVertexArray(null);
    return { content: cells, fills, corners: ofCells, pieces: triangles.length, lines, edges, decision, segments, colours: texture(gl, gl.NEAREST), buffers };
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
    const none = { lines: null, edges: 0, decision: null, segments: 0 };
    return { content: raster, fills, corners: 4, pieces: 4, ...none, colours: texture(gl, gl.LINEAR), buffers: [made] };
  }

  private unload(): void {
    const { gl, loaded } = this;
    if (!loaded) return;
    loaded.buffers.forEach((made) => gl.deleteBuffer(made));
    [loaded.fills, loaded.lines, loaded.decision].forEach((made) => gl.deleteVertexArray(made));
    gl.deleteTexture(loaded.colours);
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

/** The colour of each layer's boundaries; alpha is how thick they are, 0 if hidden. Deeper layers are thinner. */
function lineColours(cells: Cells, look: Look): number[][] {
  const made: number[][] = [[0, 0, 0, 0]]; // the rim
  for (let layer = 1; layer <= Math.min(cells.layers, 63); layer++) {
    const colour: RGB = layerColour(layer, cells.layers, look.dark);
    const thick = 1.3 - (0.8 * (layer - 1)) / Math.max(1, cells.layers - 1);
    made.push([...colour.map((c) => c / 255), look.hidden.has(layer) ? 0 : thick]);
  }
  return made;
}

function rgba(hex: string): number[] {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255).concat(1);
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
