// The recorded steps as a slider, to play through.

import { useEffect, useState } from "preact/hooks";

interface TimeBarProps {
  name: string;
  steps: readonly number[];
  step: number;
  ready: () => boolean; // whether the step before is shown
  onStep: (step: number) => void;
}

const FRAME = 250; // ms at least between two steps

export function TimeBar({ name, steps, step, ready, onStep }: TimeBarProps) {
  const [playing, setPlaying] = useState(false);
  const at = Math.max(0, steps.indexOf(step));
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      if (!ready()) return;
      if (at + 1 < steps.length) onStep(steps[at + 1]!);
      else setPlaying(false);
    }, FRAME);
    return () => clearInterval(timer);
  }, [playing, at, steps]);
  const toggle = () => {
    if (!playing && at === steps.length - 1) onStep(steps[0]!);
    setPlaying(!playing);
  };
  return (
    <div class="time">
      <button type="button" aria-label={playing ? `pause ${name}` : `play ${name}`} onClick={toggle}>{playing ? "❚❚" : "▶"}</button>
      <button type="button" aria-label={`step back in ${name}`} disabled={at === 0} onClick={() => onStep(steps[at - 1]!)}>‹</button>
      <input
        type="range" min={0} max={steps.length - 1} value={at} aria-label={`step of ${name}`} aria-valuetext={`step ${step}`}
        onInput={(event) => onStep(steps[Number(event.currentTarget.value)]!)}
      />
      <button type="button" aria-label={`step on in ${name}`} disabled={at >= steps.length - 1} onClick={() => onStep(steps[at + 1]!)}>›</button>
      <output>step {step.toLocaleString("en")}</output>
    </div>
  );
}
