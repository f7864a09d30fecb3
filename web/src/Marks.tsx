// The data on a plane: the points that it was laid through, and where all other images are nearest to it.

import { useEffect, useState } from "preact/hooks";
import type { Anchor, PlaneInfo, Points, Window } from "./protocol";
import { number } from "./words";

/** The picture of an image by its number, as an image element loads it. */
export type Pictures = (index: number) => Promise<string | null>;

interface MarksProps {
  plane: PlaneInfo;
  window: Window;
  size: [number, number];
  points: Points | null;
  picture: Pictures | null; // null: points are no images
  labels: { name: string; x: number; y: number }[];
}

const MOST = 2000; // marks that are drawn

export function Marks({ plane, window, size, points, picture, labels }: MarksProps) {
  const at = (x: number, y: number): [number, number] => [
    (size[0] / 2) * (1 + (x - window.x) / window.hx),
    (size[1] / 2) * (1 - (y - window.y) / window.hy),
  ];
  const inside = ([x, y]: [number, number]) => x > -20 && y > -20 && x < size[0] + 20 && y < size[1] + 20;
  const far = points ? Math.max(...points.distance, 1e-12) : 1;
  const near = points
    ? [...points.distance.keys()].filter((i) => inside(at(points.place[2 * i]!, points.place[2 * i + 1]!))).slice(0, MOST)
    : [];
  return (
    <svg class="marks" width={size[0]} height={size[1]} aria-hidden="true">
      {labels.map(({ name, x, y }) => {
        const place = at(x, y);
        return inside(place) && <text key={name} class="class" x={place[0]} y={place[1]}>{name}</text>;
      })}
      {near.map((i) => {
        const [x, y] = at(points!.place[2 * i]!, points!.place[2 * i + 1]!);
        const closeness = 1 - points!.distance[i]! / far;
        return (
          <circle key={i} cx={x} cy={y} r={1.5 + 3 * closeness} class="image" opacity={0.25 + 0.75 * closeness}>
            <title>{`image ${i}, class ${points!.class[i]}, ${number(points!.distance[i]!)} from the plane`}</title>
          </circle>
        );
      })}
      {plane.anchors.map((anchor, k) => {
        const place = at(...anchor.place);
        return inside(place) && <AnchorMark key={k} anchor={anchor} place={place} picture={picture} right={place[0] < size[0] - 50} />;
      })}
    </svg>
  );
}

interface AnchorMarkProps {
  anchor: Anchor;
  place: [number, number];
  right: boolean; // of the mark there is room
  picture: Pictures | null;
}

function AnchorMark({ anchor, place: [x, y], right, picture }: AnchorMarkProps) {
  const [source, setSource] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    if (anchor.index !== null && picture) void picture(anchor.index).then((found) => here && setSource(found));
    return () => void (here = false);
  }, [anchor.index, picture !== null]);
  const left = right ? x + 8 : x - 42;
  return (
    <g class="anchor">
      <circle cx={x} cy={y} r={4.5} />
      {source && <image href={source} x={left} y={y - 17} width={34} height={34} preserveAspectRatio="xMidYMid" />}
      {source && <rect x={left} y={y - 17} width={34} height={34} />}
      {anchor.label !== null && !source && <text x={x + 8} y={y + 4}>{anchor.label}</text>}
    </g>
  );
}
