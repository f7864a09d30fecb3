// The runs that there are: how each is doing, with a picture.

import { useEffect, useState } from "preact/hooks";
import type { Run } from "./protocol";
import type { Transport } from "./transport";
import { count, number } from "./words";

interface RunListProps {
  to: Transport;
  runs: Run[];
  chosen: string | null;
  onChoose: (id: string) => void;
}

export function RunList({ to, runs, chosen, onChoose }: RunListProps) {
  return (
    <nav class="runs" aria-label="runs">
      <h2>Runs</h2>
      <ul>
        {runs.map((run) => (
          <li key={run.id}>
            <button type="button" class="run" aria-current={run.id === chosen} title={told(run)} onClick={() => onChoose(run.id)}>
              {run.planes.some((id) => id.startsWith("recorded:")) ? <Thumbnail to={to} run={run} /> : <span class="blank" />}
              <span class="name">{run.name}</span>
              <span class={`state ${run.state}`}>{told(run)}</span>
              <span class="scores">
                {Object.entries(run.scores).map(([name, value]) => `${name.replaceAll("_", " ")} ${number(value)}`).join(", ")}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const MARKS: Record<string, string> = { running: "▶", finished: "✓", stopped: "❚❚", failed: "✕", killed: "✕", incomplete: "…" };

/** How a run is doing, in words. */
export function told(run: Run): string {
  const far = run.state === "given" ? "a model" : `${MARKS[run.state] ?? "●"} ${run.state}`;
  const step = run.step === null ? "" : `, step ${run.step.toLocaleString("en")}${run.steps ? ` of ${run.steps.toLocaleString("en")}` : ""}`;
  return `${far}${step}, ${count(run.records, "record")}${run.reason ? `: ${run.reason}` : ""}`;
}

function Thumbnail({ to, run }: { to: Transport; run: Run }) {
  const [source, setSource] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    void to.picture("/api/thumbnail", { run: run.id }).then((found) => here && setSource(found));
    return () => void (here = false);
  }, [run.id, run.records]);
  return source ? <img src={source} alt="" width={56} height={56} /> : <span class="blank" />;
}
