// What lines and fills mean; layers can be hidden and shown.

import { BOUNDARY, classColour, css, layerColour, mixed, ramp, type Colouring, type Scale } from "./colours";
import type { Cells, Raster } from "./protocol";
import { number } from "./words";

interface LegendProps {
  content: Cells | Raster;
  scale: Scale | null;
  colouring: Colouring;
  hidden: readonly number[];
  decision: boolean;
  dark: boolean;
  onHidden: (hidden: number[]) => void;
  onDecision: (shown: boolean) => void;
}

export function Legend({ content, scale, colouring, hidden, decision, dark, onHidden, onDecision }: LegendProps) {
  const ground = dark ? ([22, 24, 29] as const) : ([255, 255, 255] as const);
  const layers = content.kind === "cells" ? present(content.edge_layer) : [];
  const classes = content.kind === "cells" && colouring === "class" && content.class ? present(content.class, -1) : [];
  const toggle = (layer: number) => onHidden(hidden.includes(layer) ? hidden.filter((l) => l !== layer) : [...hidden, layer]);
  return (
    <div class="legend">
      {layers.length > 0 && (
        <fieldset>
          <legend>Boundaries</legend>
          {layers.map((layer) => (
            <label key={layer}>
              <input type="checkbox" checked={!hidden.includes(layer)} onChange={() => toggle(layer)} />
              <Stroke colour={css(layerColour(layer, (content as Cells).layers, dark))} /> layer {layer}
            </label>
          ))}
          {content.kind === "cells" && !!content.decision?.length && (
            <label>
              <input type="checkbox" checked={decision} onChange={() => onDecision(!decision)} />
              <Stroke colour={BOUNDARY} width={3} /> decision
            </label>
          )}
        </fieldset>
      )}
      {classes.length > 0 && (
        <ul aria-label="classes">
          {classes.map((k) => (
            <li key={k}>
              <span class="swatch" style={{ background: css(mixed(classColour(k), [...ground], 0.45)) }} /> {content.classes[k] ?? k}
            </li>
          ))}
        </ul>
      )}
      {scale && <Bar scale={scale} ground={[...ground]} />}
    </div>
  );
}

function present(values: ArrayLike<number>, above = 0): number[] {
  const found = new Set<number>();
  for (let i = 0; i < values.length; i++) if (values[i]! > above) found.add(values[i]!);
  return [...found].sort((a, b) => a - b);
}

function Stroke({ colour, width = 2 }: { colour: string; width?: number }) {
  return (
    <svg width="20" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="20" y2="4" stroke={colour} stroke-width={width} />
    </svg>
  );
}

function Bar({ scale, ground }: { scale: Scale; ground: [number, number, number] }) {
  const stops = [0, 0.25, 0.5, 0.75, 1].map((t) => css(mixed(ramp(t), ground, 0.45)));
  return (
    <div class="bar">
      <span>{scale.label}{scale.log ? ", log scale" : ""}</span>
      <span class="ends">
        {number(scale.low)} <span class="gradient" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} /> {number(scale.high)}
      </span>
    </div>
  );
}
