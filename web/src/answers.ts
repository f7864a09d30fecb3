// Answers that components wait for: the newest one, or why there is none.

import { useEffect, useState } from "preact/hooks";
import type { Run, Runs } from "./protocol";
import { json, type Parameters, type Transport } from "./transport";

export interface Answer<T> {
  value: T | null;
  error: string | null;
}

/** What a function finds, asked anew when the key changes; a key of null asks nothing. The old answer stays until then. */
export function useAnswer<T>(key: string | null, find: () => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, error: null });
  useEffect(() => {
    if (key === null) return setAnswer({ value: null, error: null });
    let here = true;
    find().then(
      (value) => here && setAnswer({ value, error: null }),
      (error: Error) => here && setAnswer({ value: null, error: error.message }),
    );
    return () => void (here = false);
  }, [key]);
  return answer;
}

export function useJson<T>(to: Transport, path: string, parameters: Parameters | null, version: unknown = ""): Answer<T> {
  const key = parameters && `${path} ${JSON.stringify(parameters)} ${version}`;
  return useAnswer<T>(key, () => json<T>(to, path, parameters!));
}

/** The runs, kept as they change while they are being written. */
export function useRuns(to: Transport): Answer<Runs> {
  const first = useJson<Runs>(to, "/api/runs", {});
  const [changes, setChanges] = useState<ReadonlyMap<string, Run | null>>(new Map());
  useEffect(() => {
    if (!first.value?.live) return;
    const told = (id: string, run: Run | null) => setChanges((before) => new Map(before).set(id, run));
    return to.follow((run) => told(run.id, run), (id) => told(id, null));
  }, [first.value?.live]);
  if (!first.value) return first;
  return { value: { ...first.value, runs: changed(first.value.runs, changes) }, error: null };
}

export function changed(runs: Run[], changes: ReadonlyMap<string, Run | null>): Run[] {
  const known = new Set(runs.map((run) => run.id));
  const fresh = [...changes.values()].filter((run): run is Run => run !== null && !known.has(run.id));
  return [...runs.map((run) => (changes.has(run.id) ? changes.get(run.id)! : run)).filter(Boolean), ...fresh];
}
