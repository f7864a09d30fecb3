// Small blocks as the server sends them, written by hand from docs/explorer-format.md.

type Numbers = Float32Array | Float64Array | Int32Array | Uint32Array | Int16Array | Uint8Array;

const NAMES: Record<string, string> = {
  Float32Array: "float32", Float64Array: "float64", Int32Array: "int32", Uint32Array: "uint32", Int16Array: "int16", Uint8Array: "uint8",
};

export function packed(header: object, arrays: Record<string, [Numbers, number[]]>): ArrayBuffer {
  let room = 8192;
  const places: Record<string, object> = {};
  for (const [name, [values, shape]] of Object.entries(arrays)) {
    places[name] = { type: NAMES[values.constructor.name], shape, offset: room };
    room += Math.ceil(values.byteLength / 8) * 8;
  }
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays: places }).padEnd(8184, " "));
  const buffer = new ArrayBuffer(room);
  new Uint8Array(buffer).set(new TextEncoder().encode("RSX1"));
  new DataView(buffer).setUint32(4, 8184, true);
  new Uint8Array(buffer).set(text, 8);
  for (const [name, [values]] of Object.entries(arrays)) {
    new Uint8Array(buffer).set(new Uint8Array(values.buffer), (places[name] as { offset: number }).offset);
  }
  return buffer;
}

/** The square [-1, 1]^2 around (3, 4), of half-side 0.5, cut at u = 0: two cells, one inner edge by unit 5 of a 2 x 4 site. */
export function halves(): ArrayBuffer {
  const header = {
    kind: "cells", exact: true, undecided: 0, cells: 2, run: "r", step: 7, plane: "given:p", recorded: false, outputs: 2, layers: 1,
    window: { x: 3, y: 4, hx: 0.5, hy: 0.5, scale: 0.5 }, classes: ["cat", "dog"], seconds: 0,
    sites: [{ name: "1", kind: "relu", layer: 1, units: 8, shape: [2, 4] }],
  };
  return packed(header, {
    vertices: [new Float32Array([-1, -1, 0, -1, 1, -1, 1, 1, 0, 1, -1, 1]), [6, 2]],
    offsets: [new Uint32Array([0, 4, 8]), [3]],
    corners: [new Uint32Array([0, 1, 4, 5, 1, 2, 3, 4]), [8]],
    area: [new Float32Array([2, 2]), [2]],
    class: [new Int16Array([0, 1]), [2]],
    gradient: [new Float32Array([1, 100]), [2]],
    pattern: [new Uint32Array([0, 2 ** 31]), [2]],
    layer: [new Uint8Array([1, 1]), [2]],
    edge_vertices: [new Uint32Array([1, 4, 0, 1]), [2, 2]],
    edge_cells: [new Int32Array([0, 1, 0, -1]), [2, 2]],
    edge_site: [new Int16Array([0, -1]), [2]],
    edge_unit: [new Int32Array([5, -1]), [2]],
    edge_layer: [new Uint8Array([1, 0]), [2]],
    edge_length: [new Float32Array([2, 1]), [2]],
    decision: [new Float32Array([0, -1, 0, 1]), [1, 2, 2]],
    decision_classes: [new Int16Array([0, 1]), [1, 2]],
    piece_offsets: [new Uint32Array([0, 3, 6]), [3]],
    piece_places: [new Float32Array([0, -1, 1, -1, 1, 1, 0, -1, 1, 1, 0, 1]), [6, 2]],
    piece_cell: [new Uint32Array([1, 1]), [2]],
    piece_class: [new Int16Array([0, 1]), [2]],
  });
}
