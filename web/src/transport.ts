// Questions and answers: to a server, to a notebook's kernel, or to the table inside an exported file.

import { block, type Cells, type Points, type Raster, type Run } from "./protocol";

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

export type Parameters = Record<string, string | number | undefined>;

export interface Transport {
  /** The body of the answer, or a `Refusal`. */
  ask(path: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** An address that an image element can load. */
  picture(path: string, parameters: Parameters): Promise<string | null>;
  /** Calls back for every run that changes, and for those that are gone; returns how to stop. */
  follow(changed: (run: Run) => void, gone: (id: string) => void): () => void;
}

/** The address of a question in one spelling: parameters sorted, each encoded. */
export function address(path: string, parameters: Parameters): string {
  const parts = Object.entries(parameters)
    .filter((pair): pair is [string, string | number] => pair[1] !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length ? `${path}?${parts.join("&")}` : path;
}

export async function json<Answer>(to: Transport, path: string, parameters: Parameters = {}): Promise<Answer> {
  return JSON.parse(new TextDecoder().decode(await to.ask(path, parameters))) as Answer;
}

export async function cells(to: Transport, path: string, parameters: Parameters, signal?: AbortSignal): Promise<Cells | Raster> {
  return block(await to.ask(path, parameters, signal)) as Cells | Raster;
}

export async function points(to: Transport, parameters: Parameters): Promise<Points> {
  return block(await to.ask("/api/points", parameters)) as Points;
}

export function refusal(status: number, body: ArrayBuffer): Refusal {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(body)) as { error: { kind: string; message: string } };
    return new Refusal(status, error.kind, error.message);
  } catch {
    return new Refusal(status, "fault", `the server answered ${status}`);
  }
}

export const server: Transport = {
  async ask(path, parameters, signal) {
    const answer = await fetch(address(path, parameters), { signal, credentials: "same-origin" });
    const body = await answer.arrayBuffer();
    if (!answer.ok) throw refusal(answer.status, body);
    return body;
  },
  picture: async (path, parameters) => address(path, parameters),
  follow(changed, gone) {
    const source = new EventSource("/api/events");
    source.addEventListener("run", (event) => changed(JSON.parse(event.data) as Run));
    source.addEventListener("gone", (event) => gone((JSON.parse(event.data) as { id: string }).id));
    return () => source.close();
  },
};

interface Stored {
  type: string;
  json?: unknown;
  base64?: string;
}

const NOT_KEPT = new Set(["view", "max_cells", "x", "y", "hx", "hy"]);

/** Answers out of the table of an exported file. */
export function stored(answers: Record<string, Stored>): Transport {
  const found = (path: string, parameters: Parameters): Stored => {
    const kept = Object.fromEntries(Object.entries(parameters).filter(([name]) => !NOT_KEPT.has(name)));
    const answer = answers[address(path, kept)];
    if (!answer) throw new Refusal(404, "unknown", "this file does not hold that; open the run with regionscope view");
    return answer;
  };
  return {
    async ask(path, parameters) {
      const answer = found(path, parameters);
      if (answer.base64 === undefined) return new TextEncoder().encode(JSON.stringify(answer.json)).buffer;
      return Uint8Array.from(atob(answer.base64), (c) => c.charCodeAt(0)).buffer;
    },
    async picture(path, parameters) {
      try {
        const answer = found(path, parameters);
        return `data:${answer.type};base64,${answer.base64}`;
      } catch {
        return null;
      }
    },
    follow: () => () => undefined,
  };
}

/** The model of a notebook widget, as anywidget gives it. */
export interface Kernel {
  send(message: unknown): void;
  on(event: "msg:custom", callback: (message: { id: number; status: number; type: string }, buffers: DataView[]) => void): void;
}

/** Questions to the process behind a notebook. */
export function notebook(kernel: Kernel): Transport {
  const waiting = new Map<number, [(body: ArrayBuffer) => void, (error: Error) => void]>();
  let last = 0;
  kernel.on("msg:custom", ({ id, status }, buffers) => {
    const call = waiting.get(id);
    if (!call || !buffers[0]) return;
    waiting.delete(id);
    const part = buffers[0];
    const body = part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength) as ArrayBuffer;
    if (status === 200) call[0](body);
    else call[1](refusal(status, body));
  });
  const ask: Transport["ask"] = (path, parameters, signal) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, [resolve, reject]);
      signal?.addEventListener("abort", () => {
        waiting.delete(id);
        reject(new DOMException("superseded", "AbortError"));
      });
      kernel.send({ id, ask: address(path, parameters) });
    });
  return {
    ask,
    async picture(path, parameters) {
      try {
        return URL.createObjectURL(new Blob([await ask(path, parameters)], { type: "image/png" }));
      } catch {
        return null;
      }
    },
    follow: () => () => undefined,
  };
}
