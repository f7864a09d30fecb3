"""Monitoring: complete, harmless and within its means."""

import json
import math
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from cases import mlp
from faults import full_disk
from torch import Tensor, nn
from torch.multiprocessing.spawn import start_processes

import regionscope as rs
from regionscope.machine import one_core_each
from regionscope.results import SMOOTH, Share
from regionscope.runs import watched
from regionscope.runs.report import summary

POINTS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
LABELS = (POINTS[:, 0] > 0).long()


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
    )


def trained(model: nn.Module, watch: Any = lambda step, **_: None, steps: int = 30) -> list[Tensor]:
    """The weights and buffers after training, with what momentum and dropout and random numbers made of them."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(1)
    np.random.seed(1)
    for step in range(steps):
        watch(step)
        rows = torch.randint(len(POINTS), (6,))
        loss = nn.functional.cross_entropy(model(POINTS[rows]), LABELS[rows]) + 0 * np.random.rand()
        optimiser.zero_grad()
        loss.backward()
        watch(1000 + step, loss=loss.item())  # with gradients there
        optimiser.step()
    return [*model.state_dict().values(), torch.rand(3), torch.tensor(np.random.rand(3))]


ALL: dict[str, dict[str, Any]] = {name: {} for name in rs.MEASURES} | {"boundary_crossings": {"directions": 3}}


def test_training_is_the_same_bit_for_bit() -> None:
    alone = trained(network())
    model = network()
    plane = rs.Plane.through(*POINTS[:3])
    monitor = rs.Monitor(model, {"train": (POINTS, LABELS)}, measures=ALL, planes={"three": plane}, strict=True,
                         steps=lambda step: step % 10 == 0)  # fmt: skip
    watched = trained(model, monitor)
    assert all(torch.equal(a, b) for a, b in zip(alone, watched, strict=True))
    assert monitor.cost.records == 6
    assert model.training


def test_a_record_holds_what_was_asked_for(tmp_path: Path) -> None:
    seen: list[tuple[int, dict[str, float]]] = []

    class Keep:
        def log(self, step: int, values: dict[str, float]) -> None:
            seen.append((step, values))

        def close(self) -> None:
            seen.append((-1, {}))

    model = network()
    plane = rs.Plane.through(*POINTS[:3])
    measures: dict[str, Any] = {
        "boundary_crossings": {"radius": 0.2, "directions": 4},
        "robust_accuracy": {"points": 5},
        "norm": lambda model, x: sum(p.norm().item() for p in model.parameters()),
    }
    probes: dict[str, Any] = {"train": (POINTS, LABELS), "bare": POINTS[:4]}
    with rs.Monitor(model, probes, measures=measures, steps=[0, 5], planes={"three": plane}, run=tmp_path / "run",
                    loggers=[Keep()]) as monitor:  # fmt: skip
        assert [monitor(step, loss=0.5) is not None for step in range(6)] == [True, *[False] * 4, True]
    run = rs.Run.open(tmp_path / "run")
    assert run.steps == [0, 5]
    record = run.read(5)
    model.eval()
    expected = rs.boundary_crossings(
        model, POINTS, radius=0.2, directions=4, generator=torch.Generator().manual_seed(0)
    )
    assert record.probes["train"]["boundary_crossings"]["mean"] == expected.mean
    assert record.probes["train"]["robust_accuracy"]["n"] == 5
    assert "robust_accuracy" not in record.probes["bare"]
    assert record.scalars == {"loss": 0.5}
    assert record.planes == {"three": len(rs.plane_cells(model, plane))}
    assert len(run.plane(5, "three")) == record.planes["three"]
    assert torch.equal(run.weights(5)["0.weight"], model.state_dict()["0.weight"])
    assert run.config["probes"]["train"]["points"] == 12
    assert [step for step, _ in seen] == [0, 5, -1]
    assert seen[0][1]["train/norm"] == sum(p.norm().item() for p in model.parameters())
    first = run.read(0).probes["train"]["boundary_crossings"]
    assert seen[0][1]["train/boundary_crossings/layer2"] == first["per_layer"][1]


def test_a_model_is_traced_once_a_record_and_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[tuple[int, ...]] = []

    def counted(model: Any, x: Tensor, **options: Any) -> rs.Network:
        traced.append(tuple(x.shape[1:]))
        return rs.trace(model, x, **options)

    monkeypatch.setattr(watched, "trace", counted)
    plane = rs.Plane.through(*POINTS[:3])
    probes = {"train": POINTS, "test": POINTS[:5]}
    monitor = rs.Monitor(network(), probes, measures=["total_variation", "good_units"], planes={"three": plane})
    monitor(0)
    monitor(1)
    assert traced == [(4,), (4,)]
    traced.clear()
    images = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    sides = {str(side): torch.rand(2, 1, side, side) for side in (4, 5)}
    record = rs.Monitor(images, sides, measures=["total_variation", "good_units"], strict=True)(0)
    assert traced == [(1, 4, 4), (1, 5, 5)]
    assert record is not None
    assert record.probes["5"]["total_variation"]["mean"] == pytest.approx(rs.total_variation(images, sides["5"]).mean)


def test_a_probe_that_cannot_be_measured_does_not_spoil_the_others() -> None:
    probes = {"bad": torch.full((2, 4), float("nan")), "good": POINTS}
    monitor = rs.Monitor(network(), probes, measures=["total_variation"])
    with pytest.warns(UserWarning, match="bad/total_variation could not be measured"):
        record = monitor(0)
    assert record is not None
    assert list(record.errors) == ["bad/total_variation"] and list(record.probes["good"]) == ["total_variation"]


def test_a_measure_that_fails_is_recorded_and_training_goes_on(tmp_path: Path) -> None:
    def broken(model: nn.Module, x: Tensor) -> float:
        raise ZeroDivisionError("no luck")

    measures: dict[str, Any] = {"broken": broken, "total_variation": {}}
    monitor = rs.Monitor(network(), {"train": POINTS}, measures=measures, run=tmp_path / "run")
    with pytest.warns(UserWarning, match="no luck"):
        monitor(0)
    record = rs.Run.open(tmp_path / "run").read(0)
    assert record.errors == {"train/broken": "ZeroDivisionError: no luck"}
    assert record.probes["train"]["total_variation"]["mean"] == rs.total_variation(network().eval(), POINTS).mean
    strict = rs.Monitor(network(), {"train": POINTS}, measures=measures, strict=True)
    with pytest.raises(ZeroDivisionError, match="no luck"):
        strict(0)


def test_every_run_warns_once_of_a_measure_that_fails_also_at_the_same_line() -> None:
    def broken(model: nn.Module, x: Tensor) -> float:
        raise ZeroDivisionError("no luck")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # once a line and text, as Python does where nobody says otherwise
        for _ in range(2):
            monitor = rs.Monitor(network(), {"train": POINTS}, measures={"broken": broken})
            for step in range(3):
                monitor(step)
    assert len(told) == 2 and {warning.filename for warning in told} == {__file__}


def test_weights_that_are_nan_are_an_error_of_the_measure() -> None:
    model = network()
    next(model.parameters()).data.fill_(float("nan"))
    monitor = rs.Monitor(model, {"train": POINTS}, measures=["boundary_crossings"])
    with pytest.warns(UserWarning, match="holds NaN"):
        record = monitor(0, loss=float("nan"))
    assert record is not None
    assert record.probes["train"] == {}


def test_a_disk_that_is_full_costs_the_step_only(tmp_path: Path) -> None:
    monitor = rs.Monitor(mlp(4, 200, 2), {"train": POINTS}, measures=["total_variation"], run=tmp_path / "run")
    monitor(0)
    with full_disk(), pytest.warns(UserWarning, match="step 1 could not be written"):
        monitor(1)
    monitor(2)
    assert rs.Run.open(tmp_path / "run").steps == [0, 2]


def test_a_disk_that_is_full_at_the_end_leaves_the_run_open_to_others(tmp_path: Path) -> None:
    monitor = rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"], run=tmp_path / "run")
    monitor(0)
    with full_disk(1), pytest.warns(UserWarning, match="what monitoring cost could not be written"):
        monitor.close()
    rs.Run.resume(tmp_path / "run").close()


def test_a_second_monitor_on_a_directory_is_refused(tmp_path: Path) -> None:
    first = rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"], run=tmp_path / "run")
    first(0)
    with pytest.raises(rs.RunExists, match="already"):
        rs.Monitor(network(), {"train": POINTS}, run=tmp_path / "run")
    with pytest.raises(rs.RunLocked, match="another monitor"):
        rs.Monitor(network(), {"train": POINTS}, run=tmp_path / "run", resume=True)
    first.close()
    again = rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"], run=tmp_path / "run", resume=True)
    assert again(0) is None, "recorded before"
    assert again(1) is not None
    again.close()
    with pytest.raises(ValueError, match="is of other probes; name another directory"):
        rs.Monitor(network(), {"train": POINTS + 1}, run=tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match="is of another model and other probes"):
        rs.Monitor(nn.Linear(POINTS[0].numel(), 1), {"test": POINTS}, run=tmp_path / "run", resume=True)
    rs.Run.resume(tmp_path / "run").close()  # it is not locked


def test_a_cell_of_a_notebook_can_be_run_again(tmp_path: Path) -> None:
    for seed in (0, 1):
        with rs.Monitor(network(), {"train": POINTS}, measures=[], run=tmp_path, seed=seed, overwrite=True) as monitor:
            monitor(seed)
    assert rs.Run.open(tmp_path).steps == [1]
    with pytest.raises(ValueError, match="say one of them"):
        rs.Monitor(network(), {"train": POINTS}, run=tmp_path, resume=True, overwrite=True)


def test_a_budget_thins_the_records_and_says_so() -> None:
    def slow(model: nn.Module, x: Tensor) -> float:
        time.sleep(0.02)
        return 0.0

    monitor = rs.Monitor(network(), {"train": POINTS}, measures={"slow": slow}, budget=0.2)

    def train() -> None:
        for step in range(60):
            monitor(step)
            time.sleep(0.01)

    with pytest.warns(UserWarning, match="more than 20%"):
        train()
    cost = monitor.cost
    assert cost.left_out > 20
    assert cost.records + cost.left_out == 60
    assert cost.share < 0.25
    assert "left out" in str(cost)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["nothing"]}, "there is no measure 'nothing'"),
        ({"measures": "local_rank"}, "write \\['local_rank'\\]"),
        ({"measures": ["robust_accuracy"]}, "needs labels"),
        ({"probes": {"train": POINTS[:0]}}, "probe 'train'"),
        ({"probes": {}}, "nothing to watch: give probes, sets of points by name, or planes"),
        ({"probes": {"train": (POINTS, LABELS[:3])}}, "12 points and 3 labels"),
        ({"budget": 0.0}, "budget"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        rs.Monitor(network(), **{"probes": {"train": POINTS}, **options})


def test_steps_are_spaced_on_a_logarithmic_scale() -> None:
    steps = rs.log_steps(100_000, 50)
    assert steps[0] == 0 and steps[1] == 1 and steps[-1] == 100_000
    assert steps == sorted(set(steps))
    assert len(rs.log_steps(5, 50)) == 6
    assert rs.log_steps(2, 2) == [0, 2] and rs.log_steps(1, 2) == [0, 1], "two steps are the two ends"
    assert all(rs.log_steps(total, count)[-1] == total for total in range(1, 30) for count in range(2, 9))
    with pytest.raises(ValueError, match="total"):
        rs.log_steps(0, 5)


def test_probes_follow_the_model_to_another_dtype() -> None:
    monitor = rs.Monitor(network().double(), {"train": (POINTS, LABELS)}, measures=["certified_radius"], strict=True)
    assert monitor(0) is not None


def test_compiled_models_are_measured() -> None:
    model = network()
    compiled = torch.compile(model, backend="eager")
    measures = ["boundary_crossings", "total_variation"]
    options: dict[str, Any] = {"measures": {name: ALL[name] for name in measures}}
    found = [rs.Monitor(m, {"train": POINTS}, **options)(0) for m in (model, compiled)]
    assert found[0] is not None and found[1] is not None
    assert found[0].probes == found[1].probes


def one_of_two(rank: int, folder: str) -> None:
    """A process of two that train together."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(network())
    measures = {name: ALL[name] for name in ("boundary_crossings", "total_variation", "boundary_distance")}
    with rs.Monitor(model, {"train": POINTS[:11]}, measures=measures, run=f"{folder}/run", strict=True) as monitor:
        for step in range(2):
            monitor(step)
            model(POINTS).sum().backward()
    dist.destroy_process_group()


def test_a_process_without_points_of_its_own_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "own_part", lambda: slice(len(POINTS), None))
    watch = rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"])
    record = watch(0)
    assert record is not None and not record.flat() and not record.errors


def test_processes_share_the_points_and_the_first_writes(tmp_path: Path) -> None:
    start_processes(one_of_two, (str(tmp_path),), nprocs=2, start_method="spawn")
    measures = {name: ALL[name] for name in ("boundary_crossings", "total_variation", "boundary_distance")}
    alone = rs.Monitor(network(), {"train": POINTS[:11]}, measures=measures)(0)
    assert alone is not None
    run = rs.Run.open(tmp_path / "run")
    assert run.steps == [0, 1]
    for name, found in run.read(0).probes["train"].items():
        assert found["n"] == 11
        assert found["mean"] == pytest.approx(alone.probes["train"][name]["mean"])


def test_processes_draw_each_their_own_and_share_what_all_points_share(monkeypatch: pytest.MonkeyPatch) -> None:
    measures: dict[str, Any] = {"local_complexity": {}, "boundary_crossings": {}}
    seen = []
    for rank in (0, 0, 1):
        monkeypatch.setattr("regionscope.runs.watched.own_number", lambda rank=rank: rank)
        record = rs.Monitor(network(), {"train": POINTS[:5]}, measures=measures)(0)
        assert record is not None
        seen.append(record.probes["train"])
    assert seen[0] == seen[1]
    assert seen[2]["boundary_crossings"] == seen[0]["boundary_crossings"]
    assert seen[2]["local_complexity"]["mean"] != seen[0]["local_complexity"]["mean"]


def test_inequalities_are_recorded_row_by_row(tmp_path: Path) -> None:
    """LC Fig. 9: how tight the bounds are while a network trains."""
    monitor = rs.Monitor(mlp(4, 6, 6, 1), {"train": POINTS}, measures={"bounds": rs.bounds}, run=tmp_path, strict=True)
    for step in range(2):
        monitor(step)
    rows = rs.bounds(mlp(4, 6, 6, 1), POINTS)
    names = [f"train/bounds/{bound.form}/left" for bound in rows if bound.left == bound.left]
    assert len(set(names)) == len(names) > 20
    assert all(rs.Run.open(tmp_path).curve(name)[0] == [0, 1] for name in names)


def test_a_model_that_cannot_be_traced_is_tried_once_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def refused(model: Any, x: Tensor, **options: Any) -> rs.Network:
        tried.append(len(x))
        raise rs.UnsupportedModel("it has a sine")

    monkeypatch.setattr(watched, "trace", refused)
    probes = {name: POINTS + k for k, name in enumerate(("a", "b", "c"))}
    monitor = rs.Monitor(mlp(4, 6, 2), probes, measures=["total_variation", "local_rank"])
    with pytest.warns(UserWarning, match="it has a sine"):
        record = monitor(0)
    assert tried == [1] and record is not None and len(record.errors) == 6
    tried.clear()
    probes["a"] = torch.full_like(POINTS, math.nan)  # of which nothing is said of the other points
    with pytest.warns(UserWarning, match="it has a sine"):
        rs.Monitor(mlp(4, 6, 2), probes, measures=["total_variation"], seconds_per_record=None)(0)
    assert tried == [1, 1]


def test_a_probe_of_one_point_has_1_point() -> None:
    assert "probes: a (1 point)" in repr(rs.Monitor(mlp(4, 6, 2), {"a": POINTS[:1]}, measures=["total_variation"]))


def test_every_option_in_effect_is_in_the_runs_file(tmp_path: Path) -> None:
    x, y = torch.rand(6, 3) * 4 - 1, torch.arange(6) % 2
    measures = {"local_complexity": {"sigma": 0.2}, "robust_accuracy": {}, "boundary_crossings": {}}
    rs.Monitor(mlp(3, 4, 2), {"a": (x, y), "b": 9 * x[:1]}, measures=measures, run=tmp_path / "run").close()
    told = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["measures"]
    assert told["local_complexity"].items() >= {"sigma": 0.2, "draws": 2, "directions": 4, "good": True}.items()
    assert told["boundary_crossings"].items() >= {"radius": 0.05, "directions": 3, "shared_frame": True}.items()
    values = torch.cat([x, 9 * x[:1]])
    assert told["robust_accuracy"]["bounds"] == [float(values.min()), float(values.max())]
    assert told["robust_accuracy"].items() >= {"radius": 8 / 255, "norm": "Linf", "restarts": 1, "steps": 10}.items()
    assert rs.Run.open(tmp_path / "run").label("boundary_crossings") == "boundary crossings, radius 0.05, directions 3"


def test_labels_name_the_options_that_measures_were_really_taken_with(tmp_path: Path) -> None:
    torch.manual_seed(0)
    asked = {"local_rank": {"method": "random"}, "boundary_crossings": {"frame": torch.eye(3)[:2]}}
    with rs.Monitor(
        mlp(3, 4, 2), {"a": torch.randn(5, 3)}, measures=asked, run=tmp_path / "run", strict=True
    ) as monitor:
        record = monitor(0)
    assert record is not None
    run = rs.Run.open(tmp_path / "run")
    for name in asked:
        assert run.read(0).probes["a"][name]["options"] == record.probes["a"][name]["options"]
    assert run.label("a/local_rank") == "local rank at a, eps 0.1, directions 3"
    assert run.label("boundary_crossings") == "boundary crossings, radius 0.05, directions 2"
    assert "frame" in run.config["measures"]["boundary_crossings"]


def test_runs_say_whether_the_network_is_smooth(tmp_path: Path) -> None:
    measures = {"own": lambda model, x: model(x)[:, 0], "total_variation": {}}
    for name, act in {"smooth": nn.GELU, "linear": nn.ReLU}.items():
        with rs.Monitor(mlp(4, 4, 2, act=act), {"a": POINTS}, measures=measures, run=tmp_path / name) as monitor:
            monitor(0)
        run = rs.Run.open(tmp_path / name)
        assert run.piecewise_linear is (name == "linear")
        assert run.read(0).probes["a"]["own"]["piecewise_linear"] is None, "nobody asks a function of the user's"
        assert (SMOOTH in summary(run).splitlines()) is (name == "smooth") is ("network: smooth" in repr(run))
    file = tmp_path / "smooth" / "steps" / "000000000" / "measures.json"
    stored = json.loads(file.read_text())
    for found in stored["probes"]["a"].values():  # as older versions have written it
        del found["piecewise_linear"], found["options"]
    file.write_text(json.dumps(stored))
    old = rs.Run.open(tmp_path / "smooth")
    assert old.piecewise_linear is None and SMOOTH not in summary(old) and not old.missing
    assert old.label("total_variation") == "total variation"


def test_attacks_keep_to_the_range_of_all_probes_unless_they_are_told_otherwise(monkeypatch: Any) -> None:
    x = np.array([[0.1, 0.3], [0.7, 0.2]])  # float64, of which float32 rounds beyond the ends
    model, seen = mlp(2, 4, 2), []
    y = model(torch.from_numpy(x).float()).argmax(dim=1).numpy()

    def attack(outputs: object, x: Tensor, labels: object, settings: Any, starts: object) -> Tensor:
        seen.append(settings.bounds)
        return x

    monkeypatch.setattr("regionscope.measures.robustness.worst_points", attack)
    as_the_model_has_it = (float(np.float32(0.1)), float(np.float32(0.7)))
    for options, bounds in (({}, as_the_model_has_it), ({"bounds": (-1, 1)}, (-1, 1))):
        rs.Monitor(model, {"a": (x, y)}, measures={"robust_accuracy": options}, strict=True)(0)
        assert seen.pop() == bounds


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attacks_on_half_precision_models_have_a_box_that_holds_the_probes(dtype: torch.dtype) -> None:
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    assert float(x.max().to(dtype)) != float(x.max()), "rounding moves the ends of the box"
    monitor = rs.Monitor(
        mlp(4, 6, 2).to(dtype), {"a": (x, torch.arange(64) % 2)}, measures=["robust_accuracy"], strict=True
    )
    record = monitor(0)
    assert record is not None and record.probes["a"]["robust_accuracy"]["n"] == 64


def test_probes_in_bfloat16_are_told_apart(tmp_path: Path) -> None:
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    hashes = []
    for name, points in (("one", x), ("two", x + 1)):
        rs.Monitor(mlp(4, 6, 2), {"a": points}, measures=["total_variation"], run=tmp_path / name)(0)
        config = json.loads((tmp_path / name / "run.json").read_text())["config"]
        hashes.append(config["probes"]["a"]["sha256"])
    assert hashes[0] != hashes[1]


def test_a_measure_of_your_own_may_return_truths_or_bfloat16() -> None:
    own = {"right": lambda model, x: model(x).argmax(dim=1) >= 0, "rounded": lambda model, x: x[:, 0].bfloat16()}
    record = rs.Monitor(mlp(4, 6, 2), {"a": torch.rand(10, 4)}, measures=own, strict=True)(0)
    assert record is not None
    right, share = record.probes["a"]["right"], Share("right", np.ones(10))
    assert right["mean"] == 1 and right["stderr"] == share.stderr > 0, "it is a share: all of ten is not all of them"
    assert record.probes["a"]["rounded"]["n"] == 10


def test_a_network_is_watched_as_its_model_is(tmp_path: Path) -> None:
    model = network().eval()
    weight = model.get_parameter("0.weight")
    found = []
    for name, given in (("model", model), ("network", rs.trace(model, POINTS))):
        with rs.Monitor(given, {"train": (POINTS.double().numpy(), LABELS.numpy())}, measures=ALL, strict=True,
                        planes={"three": rs.Plane.through(*POINTS[:3])}, run=tmp_path / name) as monitor:  # fmt: skip
            found.append(monitor(0))
            weight.data.mul_(2)
            found.append(monitor(1))
            weight.data.div_(2)
    model_before, model_after, before, after = (record.flat() for record in found if record is not None)
    assert before == model_before and after == model_after != before
    kept, whole = (rs.Run.open(tmp_path / name).weights(1) for name in ("network", "model"))
    assert kept.keys() == whole.keys() - {"1.num_batches_tracked"}, "all that the function depends on"
    assert all(torch.equal(kept[name], whole[name]) for name in kept)


def test_a_measure_of_ones_own_returns_a_number_or_one_a_point() -> None:
    own: dict[str, Any] = {
        "number": lambda model, x: 3,
        "tensor": lambda model, x: model(x).sum(),
        "points": lambda model, x: model(x)[:, :1],
        "array": lambda model, x: model(x)[:, 0].detach().double().numpy(),
        "list": lambda model, x: model(x)[:, 0].tolist(),
    }
    model = network().eval()
    record = rs.Monitor(model, {"x": POINTS}, measures=own, strict=True)(0)
    assert record is not None
    values, numbers = model(POINTS)[:, 0].detach().double().numpy(), record.flat()
    assert (numbers["x/number"], numbers["x/number/stderr"]) == (3.0, None)
    assert numbers["x/tensor"] == pytest.approx(float(model(POINTS).detach().sum()))
    for name in ("points", "array", "list"):
        assert numbers[f"x/{name}"] == pytest.approx(values.mean())
        assert numbers[f"x/{name}/stderr"] == pytest.approx(values.std(ddof=1) / len(values) ** 0.5)


@pytest.mark.parametrize(
    ("returned", "message"), [("text", "wrong returned str"), (torch.zeros(5), r"wrong returned shape \(5,\) at 12")]
)
def test_what_is_no_number_is_refused_with_what_a_measure_returns(returned: Any, message: str) -> None:
    monitor = rs.Monitor(network(), {"x": POINTS}, measures={"wrong": lambda model, x: returned}, strict=True)
    with pytest.raises((TypeError, ValueError), match=f"of your own returns a number.*{message}"):
        monitor(0)


def test_points_without_a_name_are_refused() -> None:
    with pytest.raises(TypeError, match=r'probes are sets of points by name, such as {"train": x}, got Tensor'):
        rs.Monitor(network(), POINTS)  # type: ignore[arg-type]


@pytest.fixture
def two_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def usual_record(own: Any = lambda model, points: 1.0) -> dict[str, Any]:
    probes = {"train": POINTS, "test": POINTS + 0.1, "far": 10 * POINTS}
    record = rs.Monitor(network(), probes, measures=[*watched.USUAL, "good_units"], strict=True)(0)
    assert record is not None
    rs.Monitor(network(), probes, measures={"own": own}, strict=True)(0)
    return record.flat()


def test_a_record_has_the_same_numbers_on_one_core_and_on_several(two_cores: None, monkeypatch: Any) -> None:
    workers = list[int]()
    part = watched._part

    def noted(*args: Any) -> Any:
        workers.append(threading.get_ident())
        return part(*args)

    monkeypatch.setattr(watched, "_part", noted)
    several = usual_record()
    assert threading.get_ident() not in workers
    torch.set_num_threads(1)
    workers.clear()
    assert usual_record() == several
    assert set(workers) == {threading.get_ident()}


def test_measures_on_several_cores_leave_torch_its_cores(two_cores: None) -> None:
    usual_record()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2


def test_measures_of_ones_own_are_called_in_the_callers_thread(two_cores: None) -> None:
    threads = list[int]()

    def own(model: Any, points: torch.Tensor) -> float:
        threads.append(threading.get_ident())
        return 1.0

    usual_record(own)
    assert threads == 3 * [threading.get_ident()]


@pytest.mark.parametrize("settings", [torch.inference_mode, torch.no_grad, lambda: torch.device("cpu")])
def test_what_is_set_for_the_callers_thread_holds_in_all_measures(two_cores: None, settings: Any) -> None:
    seen = []

    def task() -> None:
        seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))

    with settings():
        list(one_core_each(3 * [task]))
        assert seen == 3 * [(torch.is_grad_enabled(), torch.is_inference_mode_enabled())]


def test_the_cost_of_a_resumed_run_is_that_of_its_new_records(tmp_path: Path) -> None:
    def watched(resume: bool) -> rs.Monitor:
        return rs.Monitor(
            network(),
            {"train": POINTS},
            measures=["good_units"],
            run=tmp_path / "run",
            resume=resume,
            checkpoints=False,
        )

    with watched(False) as first:
        first(0), first(1)
    assert str(first.cost).startswith("2 records in ") and first.cost.earlier == 0
    with watched(True) as second:
        second(1), second(2)
    assert str(second.cost).startswith("1 new record in ") and second.cost.earlier == 2
    assert rs.Run.open(tmp_path / "run").status["monitoring"].startswith("1 new record in ")


def test_a_monitor_prints_the_means_of_a_record_if_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = rs.Monitor(network(), {"train": POINTS}, measures=["good_units"], show_progress=True)
    record = monitor(3, loss=0.5)
    assert record is not None
    mean = record.probes["train"]["good_units"]["mean"]
    assert capsys.readouterr().out == f"step 3: loss 0.5, train/good_units {mean:.4g}\n"


def test_a_full_disk_ends_a_strict_monitor(tmp_path: Path) -> None:
    monitor = rs.Monitor(network(), {"train": POINTS}, measures=["good_units"], run=tmp_path / "run", strict=True)
    with full_disk(1), pytest.raises(OSError, match="File too large"):
        monitor(0)


def test_measures_of_ones_own_may_return_an_estimate_or_nothing() -> None:
    measures: dict[str, Any] = {"variation": rs.total_variation, "nothing": lambda model, x: None}
    record = rs.Monitor(network(), {"train": POINTS}, measures=measures, strict=True)(0)
    assert record is not None
    expected = rs.total_variation(network().eval(), POINTS)
    assert list(record.probes["train"]) == ["variation"]
    assert record.probes["train"]["variation"]["mean"] == pytest.approx(expected.mean, rel=1e-6)


def test_functions_without_weights_are_watched_where_their_points_are() -> None:
    record = rs.Monitor(torch.relu, {"x": POINTS.double()}, measures=["local_rank"], strict=True)(0)
    assert record is not None
    assert record.probes["x"]["local_rank"]["mean"] == POINTS.shape[1]


def test_a_probe_that_is_one_point_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"probe 'one' must be a batch \(n, ...\), got shape \(4,\)"):
        rs.Monitor(network(), {"one": POINTS[0]})
