import { describe, expect, it } from "vitest";
import { changed } from "../src/answers";
import { alone, fromAxis, onAxis, powers, shifted, span } from "../src/Charts";
import { cellColours, limits, probeHue, rasterColours } from "../src/colours";
import { csvOf, svgOf } from "../src/downloads";
import { centresOf, classAt, classLabels, Finder, nearest, sidesOf, toSegment, unitName } from "../src/locating";
import { planeOf } from "../src/PlanePanel";
import { block, type Cells, type PlaneInfo, type Raster, type Run } from "../src/protocol";
import { ends, fans } from "../src/scene";
import { read, START, written } from "../src/state";
import { address, notebook, Refusal, refusal, stored } from "../src/transport";
import { contains, suffices, visible, wanted, whole, zoomed } from "../src/viewport";
import { nearestOf, number } from "../src/words";
import { halves } from "./blocks";

const cells = block(halves()) as Cells;
const plane: PlaneInfo = {
  id: "p", name: "p", domain: [[-6, -6], [6, -6], [6, 6], [-6, 6]], window: { x: 0, y: 0, hx: 6, hy: 6 },
  least: 1e-13, most: 6000, inputs: [784], anchors: [],
};

describe("a block", () => {
  it("is read without copying, arrays by name", () => {
    expect(cells.cells).toBe(2);
    expect([...cells.corners]).toEqual([0, 1, 4, 5, 1, 2, 3, 4]);
    expect(cells.vertices.buffer).toBe(cells.corners.buffer);
  });
  it("that is none is refused", () => {
    expect(() => block(new ArrayBuffer(16))).toThrow("no block");
  });
});

describe("locating", () => {
  const finder = new Finder(cells);
  it("finds the cell under a place, and none outside", () => {
    expect([finder.at(-0.5, 0), finder.at(0.5, 0.9), finder.at(2, 0)]).toEqual([0, 1, -1]);
  });
  it("finds the nearest boundary, never the rim", () => {
    const near = nearest(cells, sidesOf(cells), 0, -0.25, -0.99)!;
    expect(near).toEqual({ edge: 0, distance: 0.25 });
  });
  it("measures to the ends of segments too", () => {
    expect(toSegment(3, 4, -1, 0, 0, 0)).toBe(5);
    expect(toSegment(1, 1, 0, 0, 0, 0)).toBeCloseTo(Math.SQRT2);
  });
  it("tells the class on each side of a decision inside a cell", () => {
    expect([classAt(cells, 0, -0.5, 0), classAt(cells, 1, 0.9, -0.5), classAt(cells, 1, 0.1, 0.5)]).toEqual([0, 0, 1]);
  });
  it("puts the name of each class into its largest cell", () => {
    const centres = centresOf(cells);
    expect(classLabels(cells, centres, { ...cells.window, x: 3.4, hx: 0.3 }).map(({ name }) => name)).toEqual(["dog"]); // of those in sight
    expect(classLabels(cells, centres, cells.window).map(({ x, y }) => finder.at((x - 3) / 0.5, (y - 4) / 0.5))).toEqual([0, 1]);
  });
  it("names units in the shape of their site", () => {
    expect([unitName(5, [2, 4]), unitName(5, [8])]).toEqual(["(1, 1)", "5"]);
  });
});

describe("triangles", () => {
  it("are fans over the corners of each cell", () => {
    const { triangles, owners, places, ofCells } = fans(cells);
    expect([...triangles.subarray(0, ofCells)]).toEqual([0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7]);
    expect([...triangles.subarray(ofCells)]).toEqual([8, 9, 10, 11, 12, 13]); // pieces of the second cell
    expect([...owners]).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    expect([...places.subarray(16, 18)]).toEqual([0, -1]);
  });
});

describe("lines", () => {
  it("are the ends of boundaries by layer, then of the decision boundary, without the rim", () => {
    const { places, strokes } = ends(cells);
    expect(strokes).toEqual([{ layer: 1, first: 0, count: 1 }, { layer: "decision", first: 1, count: 1 }]);
    const [a, b] = [...cells.edge_vertices.subarray(0, 2)].map((k) => [...cells.vertices.subarray(2 * k, 2 * k + 2)]);
    expect([...places.subarray(0, 8)]).toEqual([...a!, ...b!, ...cells.decision!]);
    expect(places.length % (4 * 2048)).toBe(0); // whole rows of a texture
  });
  it("of deep layers come first, so that those of the first are on top", () => {
    const deep = { ...cells, edge_layer: cells.edge_layer.map((layer, e) => (e ? layer || 3 : layer)), decision: undefined };
    expect(ends(deep).strokes).toEqual([{ layer: 3, first: 0, count: cells.edge_layer.length - 1 }, { layer: 1, first: cells.edge_layer.length - 1, count: 1 }]);
  });
});

describe("the viewport", () => {
  it("keeps the place under the cursor when it zooms, to any depth", () => {
    let view = whole(plane);
    for (let k = 0; k < 40; k++) {
      const before = visible(view, 1);
      const place = before.x + 0.3 * before.hx;
      view = zoomed(view, 2, 0.3, -0.2, 1, plane);
      const after = visible(view, 1);
      expect(Math.abs(after.x + 0.3 * after.hx - place)).toBeLessThan(1e-15 * 6);
    }
    expect(view.h).toBeCloseTo(6 / 2 ** 40, 20);
  });
  it("stops where float64 does", () => {
    expect(zoomed(whole(plane), 1e30, 0, 0, 1, plane).h).toBe(plane.least);
    expect(zoomed(whole(plane), 1e-30, 0, 0, 1, plane).h).toBe(plane.most);
  });
  it("is wider where the canvas is", () => {
    expect(visible({ x: 0, y: 0, h: 1 }, 2)).toEqual({ x: 0, y: 0, hx: 2, hy: 1 });
    expect(visible({ x: 0, y: 0, h: 1 }, 0.5)).toEqual({ x: 0, y: 0, hx: 1, hy: 2 });
  });
  it("needs nothing new for small pans, and something for large ones", () => {
    const window = visible(whole(plane), 1);
    const loaded = wanted(window, plane);
    expect(suffices(loaded, window, true)).toBe(true);
    expect(suffices(loaded, { ...window, x: 2 }, true)).toBe(true);
    expect(suffices(loaded, { ...window, x: 4 }, true)).toBe(false);
  });
  it("needs something new deep inside what is loaded, and at once where it was a raster", () => {
    const loaded = wanted(visible(whole(plane), 1), plane);
    const deep = { x: 0, y: 0, hx: 0.5, hy: 0.5 };
    expect(contains(loaded, deep)).toBe(true);
    expect(suffices(loaded, deep, true)).toBe(false);
    expect(suffices(loaded, { ...deep, hx: 5, hy: 5 }, false)).toBe(false);
  });
});

describe("the address", () => {
  it("says a view and reads it again", () => {
    const view = {
      ...START, panels: [{ run: "a/b c", step: 0 }, { run: null, step: 12 }], plane: "through:1,2,3",
      viewport: { x: -1.0000000000000002, y: 2, h: 1e-9 }, colouring: "gradient" as const, hidden: [2, 3], decision: false, images: true, log: false,
    };
    expect(read(`#${written(view)}`)).toEqual(view);
    expect(written(START)).toBe("");
  });
  it("that makes no sense is the start", () => {
    expect(read("#x=NaN&y=1&h=-3&colour=constructor&hidden=a,-1,0.5&step=&panels=9")).toEqual(START);
  });
  it("of a question has one spelling", () => {
    expect(address("/api/cells", { step: 3, run: "a/b", view: undefined })).toBe("/api/cells?run=a%2Fb&step=3");
  });
});

describe("transports", () => {
  it("answer out of a file whatever the window", async () => {
    const to = stored({ "/api/cells?plane=recorded%3Aa&run=r&step=1": { type: "application/octet-stream", base64: btoa("RSX") } });
    const body = await to.ask("/api/cells", { run: "r", step: 1, plane: "recorded:a", view: "v", x: 1, y: 2, hx: 3, hy: 4 });
    expect(new TextDecoder().decode(body)).toBe("RSX");
    await expect(to.ask("/api/cells", { run: "r", step: 2, plane: "recorded:a" })).rejects.toThrow("regionscope view");
    expect(await to.picture("/api/image", { run: "r", index: 1 })).toBeNull();
  });
  it("carry refusals with their kind", () => {
    const body = new TextEncoder().encode('{"error": {"kind": "refused", "message": "no"}}').buffer;
    expect(refusal(422, body)).toMatchObject({ status: 422, kind: "refused", message: "no" });
    expect(refusal(500, new ArrayBuffer(0))).toBeInstanceOf(Refusal);
  });
  it("ask a kernel and match answers by number", async () => {
    const sent: { id: number; ask: string }[] = [];
    let answer: (message: { id: number; status: number; type: string }, buffers: DataView[]) => void = () => undefined;
    const to = notebook({ send: (m) => sent.push(m as never), on: (_, call) => void (answer = call) });
    const [first, second] = [to.ask("/api/runs", {}), to.ask("/api/curves", { run: "x" })];
    const body = (text: string) => [new DataView(new TextEncoder().encode(text).buffer)];
    answer({ id: 2, status: 200, type: "" }, body("two"));
    answer({ id: 1, status: 404, type: "" }, body('{"error": {"kind": "unknown", "message": "gone"}}'));
    await expect(first).rejects.toThrow("gone");
    expect(new TextDecoder().decode(await second)).toBe("two");
    expect(sent[1]!.ask).toBe("/api/curves?run=x");
  });
});

describe("colours", () => {
  it("tell classes, and scales of numbers, apart", () => {
    const { rgba, scale } = cellColours(cells, "gradient", false);
    expect(scale).toMatchObject({ low: 1, high: 100, log: true });
    expect([...rgba.slice(0, 4)]).not.toEqual([...rgba.slice(4, 8)]);
    expect(rgba.length).toBe(4 * (2 + 2)); // pieces have their class in any case
    expect(cellColours(cells, "class", false).scale).toBeNull();
    expect(cellColours(cells, "size", true).scale!.high).toBeCloseTo(0.5);
  });
  it("of curves are lighter on a dark ground", () => {
    expect([probeHue("train", 0, false), probeHue("train", 0, true)]).toEqual(["#7b3fa0", "#b08cc6"]);
  });
  it("leave zeros and infinities out of scales", () => {
    expect(limits([0, 1e-30, 2, Infinity])).toEqual({ low: 2e-6, high: 2 });
    expect(limits([0])).toEqual({ low: 1, high: 1 });
  });
  it("show a raster per length of the plane", () => {
    const raster = { kind: "raster", quantity: "boundary_density", values: new Float32Array([1, 4]), window: { scale: 0.5 }, label: "l" };
    expect(rasterColours(raster as unknown as Raster, false).scale).toMatchObject({ low: 2, high: 8 });
  });
});

describe("files", () => {
  it("hold every cell in plane coordinates", () => {
    const lines = csvOf(cells).trim().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[1]!.split(",").slice(0, 4)).toEqual(["0", "2.75", "4", "0.5"]);
  });
  it("draw cells, boundaries that are shown, and decisions", () => {
    const look = { colouring: "class" as const, hidden: new Set<number>(), decision: true, dark: false };
    const svg = svgOf(cells, cells.window, look);
    expect(svg.match(/<path/g)).toHaveLength(6); // two classes of cells, and of pieces over them; a layer; a decision
    expect(svgOf(cells, cells.window, { ...look, hidden: new Set([1]), decision: false }).match(/<path/g)).toHaveLength(4);
  });
});

describe("words and curves", () => {
  it("write numbers short", () => {
    expect([number(1234.567), number(1e-7), number(null), number(0), number(123456)]).toEqual(["1,235", "1.00e-7", "–", "0", "123,456"]);
  });
  it("find the nearest step", () => {
    expect([nearestOf([0, 10, 100], 40), nearestOf([], 1)]).toEqual([10, null]);
  });
  it("put steps on a logarithmic axis from 0 on", () => {
    expect(onAxis(0, true)).toBe(0);
    expect(fromAxis(onAxis(999, true), true)).toBeCloseTo(999);
  });
  it("have one tick for one record, in the middle of the axis", () => {
    for (const step of [0, 1, 999, 1e9]) {
      const place = onAxis(step, true);
      expect(powers([place])).toEqual([place]);
      expect(span([place])).toEqual([place - 0.5, place + 0.5]);
    }
  });
  it("have few ticks for more records, at powers of ten or at the ends", () => {
    const steps = (...found: number[]) => powers(found.map((s) => onAxis(s, true))).map((x) => Math.round(fromAxis(x, true)));
    expect(steps(0, 1)).toEqual([0, 1]);
    expect(steps(1000, 1001)).toEqual([1000, 1001]);
    expect(steps(500, 700, 2000)).toEqual([500, 2000]);
    expect(steps(0, 3, 2000)).toEqual([0, 1, 10, 100, 1000]);
    expect(span([2, 3, 7])).toEqual([2, 7]);
  });
  it("are a dot where there is one value", () => {
    expect([alone([1]), alone([null, 0, null]), alone([1, 2]), alone([null])]).toEqual([true, true, false, false]);
  });
  it("shift bands where there is an error", () => {
    expect(shifted([1, null, 3], [2, 1, null], 1)).toEqual([3, null, null]);
    expect(shifted([1, 2], [0.5, null], -1)).toEqual([0.5, null]);
  });
  it("follow runs that change, come and go", () => {
    const run = (id: string, step: number) => ({ id, step }) as Run;
    const changes = new Map<string, Run | null>([["a", run("a", 2)], ["b", null], ["c", run("c", 1)]]);
    expect(changed([run("a", 1), run("b", 1)], changes).map((r) => [r.id, r.step])).toEqual([["a", 2], ["c", 1]]);
  });
  it("show another plane only if the run can", () => {
    const run = { planes: ["recorded:a"], network: false } as unknown as Run;
    expect(planeOf(run, "through:1,2,3")).toBe("recorded:a");
    expect(planeOf({ ...run, network: true }, "through:1,2,3")).toBe("through:1,2,3");
    expect(planeOf({ ...run, network: true }, "recorded:b")).toBe("recorded:a");
  });
});
