// Three images make a plane: a sheet of images to choose them from.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Images } from "./protocol";
import { json, type Transport } from "./transport";

interface PickerProps {
  to: Transport;
  run: string;
  onPlane: (plane: string) => void;
  onClose: () => void;
}

const PAGE = 200;
export const SHEET = { start: 0, count: PAGE }; // the first page, which exported files have too

export function Picker({ to, run, onPlane, onClose }: PickerProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [images, setImages] = useState<Images | null>(null);
  const [sheet, setSheet] = useState<string | null>(null);
  const [chosen, setChosen] = useState<number[]>([]);
  const [start, setStart] = useState(0);
  const [message, setMessage] = useState("");

  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    json<Images>(to, "/api/images", { run, start, count: PAGE }).then(async (found) => {
      setImages(found);
      setSheet(found.sheet ? await to.picture("/api/sheet", { run, start, count: PAGE }) : null);
    }, (error: Error) => setMessage(error.message));
  }, [run, start]);

  const toggle = (index: number) =>
    setChosen((before) => (before.includes(index) ? before.filter((i) => i !== index) : before.length < 3 ? [...before, index] : before));
  return (
    <dialog ref={dialog} class="picker" aria-label="choose three images" onClose={onClose}>
      <h2>A plane through three images</h2>
      <p role="status">
        {message || (chosen.length < 3 ? `Choose ${3 - chosen.length} more.` : "Ready.")} {chosen.length > 0 && `Chosen: ${chosen.join(", ")}.`}
      </p>
      <div class="sheet">
        {images &&
          [...Array(images.count).keys()].map((i) => (
            <ImageButton key={start + i} images={images} sheet={sheet} i={i} chosen={chosen.includes(start + i)} onClick={() => toggle(start + i)} />
          ))}
      </div>
      <div class="row">
        <button type="button" disabled={start === 0} onClick={() => setStart(Math.max(0, start - PAGE))}>← earlier</button>
        <button type="button" disabled={!images || start + PAGE >= images.total} onClick={() => setStart(start + PAGE)}>later →</button>
        <span class="grow" />
        <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
        <button type="button" class="primary" disabled={chosen.length < 3} onClick={() => (onPlane(`through:${chosen.join(",")}`), dialog.current?.close())}>
          Show the plane
        </button>
      </div>
    </dialog>
  );
}

const SIDE = 36; // pixels of an image on the sheet

interface ImageButtonProps {
  images: Images;
  sheet: string | null;
  i: number;
  chosen: boolean;
  onClick: () => void;
}

function ImageButton({ images, sheet, i, chosen, onClick }: ImageButtonProps) {
  const label = images.labels?.[i];
  const style = sheet
    ? {
        backgroundImage: `url("${sheet}")`,
        backgroundSize: `${SIDE * images.columns}px auto`,
        backgroundPosition: `-${SIDE * (i % images.columns)}px -${SIDE * Math.floor(i / images.columns)}px`,
      }
    : {};
  const name = `image ${images.start + i}${label === undefined ? "" : `, class ${label}`}`;
  return (
    <button type="button" class="thumb" aria-pressed={chosen} aria-label={name} title={name} style={style} onClick={onClick}>
      {sheet ? "" : (label ?? images.start + i)}
    </button>
  );
}
