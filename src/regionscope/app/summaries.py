"""What is told of runs in words and numbers: the list of them, their curves, their planes."""

from collections.abc import Sequence
from typing import Any

from regionscope.app.library import Exhibit, check_inside
from regionscope.app.viewer import Viewer
from regionscope.app.windows import Window, limits
from regionscope.files import plain
from regionscope.geometry.planes import Plane
from regionscope.results import kind_in_words
from regionscope.runs.phases import Phases
from regionscope.runs.record import Record
from regionscope.runs.run import SIGNAL, Run, run_state

ABOUT = ("dataset", "size", "model", "depth", "width", "activation", "loss", "optimiser", "lr", "weight_decay", "seed")
SCORES = ("loss", "train_accuracy", "test_loss", "test_accuracy")
SAME = 1e-6  # an image so near an anchor, as a share of the plane, is the one that the plane was laid through


def run_summary(viewer: Viewer, exhibit: Exhibit) -> dict[str, Any]:
    """An entry of the list of runs."""
    run = exhibit.run
    status = {} if run is None else _status(run)
    steps = exhibit.steps
    training = {} if run is None else run.config.get("training", {})
    return {
        "id": exhibit.id, "name": exhibit.id, "state": "given" if run is None else run_state(run),
        "step": status.get("step", steps[-1] if steps else None), "steps": status.get("steps"),
        "records": 0 if run is None else len(steps), "recorded": steps, "reason": status.get("reason"),
        "network": exhibit.model is not None, "network_reason": exhibit.reason,
        "images": exhibit.images is not None, "planes": list(viewer.plane_names(exhibit)),
        "scores": {name: status[name] for name in SCORES if name in status},
        "about": {name: training[name] for name in ABOUT if training.get(name) is not None},
    }  # fmt: skip


def _status(run: Run) -> dict[str, Any]:
    check_inside(run.path, run.files())
    return run.status


# curves


def curves(viewer: Viewer, exhibit: Exhibit) -> dict[str, Any]:
    """All that was recorded over the steps."""
    run = exhibit.run
    if run is None:
        return {"steps": [], "label": exhibit.id, "measures": [], "scalars": [], "planes": [], "phases": None}
    steps = run.steps
    records = [viewer.library.check(exhibit, step).read(step) for step in steps]
    pairs = dict.fromkeys((m, p) for record in records for p, found in record.probes.items() for m in found)
    measures: dict[str, list[str]] = {}
    for measure, probe in pairs:
        measures.setdefault(measure, []).append(probe)
    scalars = dict.fromkeys(name for record in records for name in record.scalars)
    planes = dict.fromkeys(name for record in records for name in record.planes)
    found = {
        "steps": steps, "label": exhibit.id,
        "measures": [
            found for name, probes in measures.items() if (found := _measure(run, records, name, probes)) is not None
        ],
        "scalars": [
            {
                "name": name, "label": name.replace("_", " "), "axis": _axis(name),
                "values": [record.scalars.get(name) for record in records],
            }
            for name in scalars
        ],
        "planes": [{"name": name, "cells": [record.planes.get(name) for record in records]} for name in planes],
        "phases": _phases(run),
    }  # fmt: skip
    return dict(plain(found))


def _measure(run: Run, records: Sequence[Record], name: str, probes: Sequence[str]) -> dict[str, Any] | None:
    """A measure at all probes; None if it is not one number."""
    found = {probe: [record.probes.get(probe, {}).get(name, {}) for record in records] for probe in probes}
    told = [entry for entries in found.values() for entry in entries if "mean" in entry]
    if not told:
        return None
    exact, quantity = bool(told[-1].get("exact", False)), str(told[-1].get("quantity", ""))
    return {
        "name": name, "label": run.label(name), "exact": exact, "axis": _axis(name), "quantity": quantity,
        "kind": kind_in_words(exact, quantity, told[-1].get("piecewise_linear")),
        "probes": [_probe(probe, entries) for probe, entries in found.items()],
    }  # fmt: skip


def _probe(name: str, entries: Sequence[Any]) -> dict[str, Any]:
    means, errors = ([entry.get(part) for entry in entries] for part in ("mean", "stderr"))
    sizes = [entry.get("n") for entry in entries]
    layers = max((len(entry.get("per_layer") or ()) for entry in entries), default=0)
    by_layer = [[_entry(entry.get("per_layer"), k) for entry in entries] for k in range(layers)]
    n = next((size for size in reversed(sizes) if size is not None), None)
    return {"name": name, "mean": means, "stderr": errors, "n": n, "layers": by_layer or None}


def _entry(values: list[Any] | None, k: int) -> Any:
    return values[k] if values and k < len(values) else None


def _axis(name: str) -> str:
    return "accuracy" if name.endswith("accuracy") else "loss" if name.endswith("loss") else "value"


def _phases(run: Run) -> dict[str, Any] | None:
    if not run.has_phases():
        return None
    kept = run.status.get("phases") if run.status.get("state") == "finished" else None
    found, (probe, measure) = Phases.from_dict(kept) if kept else run.phases(), SIGNAL
    told = found.to_dict()
    names = [{"name": name, **segment} for name, segment in zip(found.names, told["segments"], strict=True)]
    return {"measure": measure, "probe": probe, **told, "segments": names}


# planes


def plane_list(viewer: Viewer, exhibit: Exhibit) -> dict[str, Any]:
    """The planes to begin with."""
    found = viewer.plane_names(exhibit)
    return {"planes": [{"id": i, "name": _plane_label(i), "steps": steps} for i, steps in found.items()]}


def _plane_label(name: str) -> str:
    kind, _, rest = name.partition(":")
    return f"through images {rest.replace(',', ', ')}" if kind == "through" else rest or name


def plane_summary(viewer: Viewer, exhibit: Exhibit, name: str) -> dict[str, Any]:
    """Where a plane is, and what it was laid through."""
    plane = viewer.plane(exhibit, name)
    least, most = limits(plane)
    window = Window.of(plane).to_dict()
    return {
        "id": name, "name": _plane_label(name), "domain": plane.domain.tolist(),
        "window": {part: window[part] for part in ("x", "y", "hx", "hy")}, "least": least, "most": most,
        "inputs": list(plane.origin.shape), "anchors": _anchors(viewer, exhibit, plane),
    }  # fmt: skip


def _anchors(viewer: Viewer, exhibit: Exhibit, plane: Plane) -> list[dict[str, Any]]:
    """The points that a plane was laid through, with the images that are there."""
    images, found = viewer.images(exhibit), []
    near = images is not None and images.points[0].numel() == plane.origin.numel() and len(plane.anchors) > 0
    flat = images.points.flatten(1).double() if near and images is not None else None
    points = plane.points(plane.anchors).flatten(1) if len(plane.anchors) else ()
    for place, point in zip(plane.anchors.tolist(), points, strict=True):
        index = None
        if flat is not None:
            far = (flat - point).norm(dim=1)
            nearest = int(far.argmin())
            index = nearest if float(far[nearest]) <= SAME * Window.of(plane).scale else None
        label = images.label(index) if images is not None and index is not None else None
        found.append({"place": place, "index": index, "label": label})
    return found
