// Curves of every measure over training, with one crosshair for all of them.

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { probeHue } from "./colours";
import type { Curves, Measure, Phases, Scalar, Segment, Values } from "./protocol";
import { nearestOf, number } from "./words";

interface ChartsProps {
  curves: Curves;
  step: number;
  log: boolean;
  dark: boolean;
  onStep: (step: number) => void; // chosen
  onLook: (step: number | null) => void; // under the cursor
}

const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3]];

export function Charts(props: ChartsProps) {
  const { curves } = props;
  const accuracies = [...curves.scalars.filter((s) => s.axis === "accuracy"), ...robust(curves)];
  const losses = curves.scalars.filter((s) => s.axis !== "accuracy");
  const measures = curves.measures.filter((m) => m.axis !== "accuracy");
  if (!curves.steps.length) return <p class="empty">No records as yet.</p>;
  return (
    <div class="charts">
      {measures.map((measure) => (
        <Chart key={measure.name} {...props} title={measure.label} note={measure.kind} lines={measureLines(measure, props.dark)} accuracies={accuracies} />
      ))}
      {losses.length > 0 && <Chart {...props} title="loss" note="" lines={losses.map((s, k) => scalarLine(s, k, props.dark))} accuracies={accuracies} />}
      {measures.length + losses.length === 0 && <Chart {...props} title="accuracy" note="" lines={[]} accuracies={accuracies} />}
      {curves.phases && <PhaseWords phases={curves.phases} />}
      <Table curves={curves} />
    </div>
  );
}

/** Robust accuracies, which are measures, as curves on the axis of accuracies. */
function robust(curves: Curves): Scalar[] {
  return curves.measures
    .filter((m) => m.axis === "accuracy")
    .flatMap((m) => m.probes.map((p) => ({ name: `${p.name}/${m.name}`, label: `${p.name} ${m.label}`, axis: "accuracy" as const, values: p.mean })));
}

interface Line {
  label: string;
  values: Values;
  low: Values | null;
  high: Values | null;
  hue: string;
  dash: number[];
  hollow?: boolean; // its dot, if there is but one value
}

function measureLines(measure: Measure, dark: boolean): Line[] {
  return measure.probes.map((probe, k) => ({
    label: probe.name,
    values: probe.mean,
    low: shifted(probe.mean, probe.stderr, -1),
    high: shifted(probe.mean, probe.stderr, 1),
    hue: probeHue(probe.name, k, dark),
    dash: DASHES[k % DASHES.length]!,
  }));
}

function scalarLine(scalar: Scalar, k: number, dark: boolean): Line {
  const probe = scalar.name.split(/[/_]/)[0]!;
  return { label: scalar.label, values: scalar.values, low: null, high: null, hue: probeHue(probe, k, dark), dash: DASHES[k % DASHES.length]! };
}

/** A curve moved by its errors; no point where there is none to tell. */
export function shifted(mean: Values, error: Values, by: 1 | -1): Values {
  return mean.map((m, i) => (m === null || error[i] === null || error[i] === undefined ? null : m + by * error[i]!));
}

/** Whether a curve is one value, which no line goes through. */
export const alone = (values: ArrayLike<number | null | undefined>) => Array.from(values).filter((v) => v !== null && v !== undefined).length === 1;

/** Where a step is on the axis: steps from 0 on, on a logarithmic scale. */
export const onAxis = (step: number, log: boolean) => (log ? Math.log10(step + 1) : step);
export const fromAxis = (x: number, log: boolean) => (log ? 10 ** x - 1 : x);

function Chart(props: ChartsProps & { title: string; note: string; lines: Line[]; accuracies: Scalar[] }) {
  const { curves, title, note, lines, accuracies, log, dark, step } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const calls = useRef(props);
  calls.current = props;
  const data = useMemo(() => columns(curves.steps, lines, accuracies, log), [curves, log]);

  useEffect(() => {
    const element = box.current!;
    const made = new uPlot(options(calls, lines, accuracies, element.clientWidth || 400), data, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth || 400, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [lines.length, accuracies.length, log, dark]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => plot.current?.redraw(false), [step]);

  return (
    <section class="chart" aria-label={`${title}: ${spoken(curves, lines, step)}`}>
      <h3>
        {title} {note && <small>{note}</small>}
      </h3>
      <div ref={box} />
      <ul class="key">
        {lines.map((line) => (
          <Key key={line.label} line={line} />
        ))}
        {accuracies.map((scalar, k) => (
          <Key key={scalar.name} line={accuracyLine(scalar, k, dark)} />
        ))}
        {curves.steps.length > 1 && lines.some((line) => line.low) && <li>band: ± standard error over points</li>}
      </ul>
    </section>
  );
}

const HEIGHT = 170;

function Key({ line }: { line: Line }) {
  return (
    <li>
      <svg width="22" height="8" aria-hidden="true">
        {alone(line.values) ? (
          <circle cx="11" cy="4" r="3" stroke={line.hue} fill={line.hollow ? "none" : line.hue} />
        ) : (
          <line x1="0" y1="4" x2="22" y2="4" stroke={line.hue} stroke-width="2" stroke-dasharray={line.dash.join(" ")} />
        )}
      </svg>{" "}
      {line.label}
    </li>
  );
}

function accuracyLine(scalar: Scalar, k: number, dark: boolean): Line {
  return { ...scalarLine(scalar, k, dark), dash: [1, 3], hollow: true };
}

function columns(steps: number[], lines: Line[], accuracies: Scalar[], log: boolean): uPlot.AlignedData {
  const curves = lines.flatMap((line) => [line.values, line.low ?? line.values, line.high ?? line.values]);
  return [steps.map((s) => onAxis(s, log)), ...curves, ...accuracies.map((s) => s.values)] as uPlot.AlignedData;
}

function options(calls: { current: ChartsProps & { title: string } }, lines: Line[], accuracies: Scalar[], width: number): uPlot.Options {
  const { log, dark } = calls.current;
  const colour = (name: string) => getComputedStyle(document.querySelector(".explorer")!).getPropertyValue(name);
  const axis = { stroke: () => colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const hidden = { stroke: "transparent", points: { show: false } };
  const dot = (line: Line) => ({ show: (u: uPlot, k: number) => alone(u.data[k]!), size: 8, fill: line.hollow ? "transparent" : line.hue, stroke: line.hue });
  const drawn = (line: Line, width: number) => ({ label: line.label, stroke: line.hue, width, dash: line.dash, points: dot(line), spanGaps: true });
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    scales: { x: { time: false, range: (u) => span(u.data[0]) }, share: { range: [0, 1] } },
    series: [
      {},
      ...lines.flatMap((line) => [drawn(line, 2), hidden, hidden]),
      ...accuracies.map((s, k) => ({ ...drawn(accuracyLine(s, k, dark), 1.5), scale: "share" })),
    ],
    bands: lines.flatMap((line, k) => (line.low ? [{ series: [3 * k + 3, 3 * k + 2] as [number, number], fill: `${line.hue}22` }] : [])),
    axes: [
      log ? { ...axis, splits: (u) => powers(u.data[0]), values: (_, at) => at.map((x) => number(Math.round(fromAxis(x, true)), 2)) } : { ...axis, incrs: WHOLE },
      { ...axis, size: 56, values: (_, at) => at.map((v) => number(v)) },
      ...(accuracies.length ? [{ ...axis, scale: "share", side: 1 as const, grid: { show: false }, size: 40 }] : []),
    ],
    cursor: { sync: { key: "regionscope" }, drag: { x: false, y: false }, y: false },
    hooks: {
      drawClear: [(u) => shadePhases(u, calls.current.curves.phases, calls.current.log, { ascent: colour("--ascent"), descent: colour("--descent") })],
      draw: [(u) => markStep(u, onAxis(calls.current.step, calls.current.log), colour("--ink"))],
      setCursor: [(u) => u.cursor.event?.isTrusted && calls.current.onLook(stepAt(u, calls.current))],
      ready: [
        (u) => {
          u.over.addEventListener("click", () => {
            const step = stepAt(u, calls.current);
            if (step !== null) calls.current.onStep(step);
          });
          u.over.addEventListener("mouseleave", () => calls.current.onLook(null));
        },
      ],
    },
  };
}

const WHOLE = Array.from({ length: 16 }, (_, k) => [10 ** k, 2 * 10 ** k, 5 * 10 ** k]).flat(); // between ticks: no step is a fraction

/** What the axis shows: from the first record to the last, and one alone in the middle. */
export function span(places: ArrayLike<number>): [number, number] {
  const [first, last] = [places[0] ?? 0, places[places.length - 1] ?? 0];
  return first < last ? [first, last] : [first - 0.5, first + 0.5];
}

/** Ticks on a logarithmic axis: 0 and the powers of ten among the records, or the first and the last record. */
export function powers(places: ArrayLike<number>): number[] {
  const [first, last] = [places[0] ?? 0, places[places.length - 1] ?? 0];
  const found = [0];
  for (let k = 0; k <= Math.ceil(last); k++) found.push(onAxis(10 ** k, true));
  const among = found.filter((x) => x >= first && x <= last);
  return among.length > 1 ? among : [...new Set([first, last])];
}

function stepAt(u: uPlot, props: ChartsProps): number | null {
  const left = u.cursor.left ?? -1;
  if (left < 0) return null;
  const at = u.posToVal(left, "x");
  const { steps } = props.curves;
  const places = steps.map((s) => onAxis(s, props.log));
  const near = nearestOf(places, at);
  return near === null ? null : steps[places.indexOf(near)]!;
}

function shadePhases(u: uPlot, phases: Phases | null, log: boolean, fills: Record<Segment["kind"], string>): void {
  for (const segment of phases?.segments ?? []) {
    const [a, b] = [segment.first, segment.last].map((s) => u.valToPos(onAxis(s, log), "x", true)) as [number, number];
    u.ctx.fillStyle = fills[segment.kind];
    u.ctx.fillRect(a, u.bbox.top, b - a, u.bbox.height);
  }
}

function markStep(u: uPlot, at: number, stroke: string): void {
  const x = u.valToPos(at, "x", true);
  u.ctx.save();
  u.ctx.strokeStyle = stroke;
  u.ctx.setLineDash([4, 4]);
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}

function spoken(curves: Curves, lines: Line[], step: number): string {
  const at = curves.steps.indexOf(step);
  return at < 0 ? "" : `at step ${step} ${lines.map((line) => `${line.label} ${number(line.values[at])}`).join(", ")}`;
}

function PhaseWords({ phases }: { phases: Phases }) {
  const parts = phases.segments.map((s) => `${s.name} from step ${number(s.first)} to ${number(s.last)}`);
  return (
    <p class="phases">
      <strong>Phases</strong> of {phases.measure.replaceAll("_", " ")} at {phases.probe}: {parts.join(", ")}. Ascents are shaded warm, descents cool.{" "}
      {phases.grokked ? `It groks: memorised at ${number(phases.memorised)}, generalised at ${number(phases.generalised)}.` : ""}
    </p>
  );
}

function Table({ curves }: { curves: Curves }) {
  const rows = [
    ...curves.scalars.map((s) => [s.label, s.values] as const),
    ...curves.measures.flatMap((m) => m.probes.map((p) => [`${p.name} ${m.label}`, p.mean] as const)),
    ...curves.planes.map((p) => [`regions on plane ${p.name}`, p.cells] as const),
  ];
  return (
    <details class="table">
      <summary>All numbers as a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="all numbers">
        <table>
          <thead>
            <tr>
              <th scope="col">step</th>
              {curves.steps.map((s) => <th key={s} scope="col">{s.toLocaleString("en")}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map(([label, values]) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                {values.map((v, i) => <td key={i}>{number(v)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
