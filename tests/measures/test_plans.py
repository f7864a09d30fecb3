"""Measures that fit their time: small networks as ever, large ones with fewer points and random directions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import mlp
from torch import nn

import regionscope as rs
from regionscope.measures import plans
from regionscope.measures.costs import Effort
from regionscope.measures.directions import MOST_DIRECTIONS, Directions
from regionscope.measures.plans import Plan, planned_measures, usual_measures
from regionscope.runs.watched import USUAL, Watched
from regionscope.training.models import resnet18

LARGE = {name: {**rs.MEASURES[name].defaults, **(rs.MEASURES[name].watching or {})} for name in USUAL}


def image_network(channels: int = 8) -> nn.Sequential:
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(channels * 26 * 26, 10))


IMAGES = torch.rand(100, 1, 28, 28, generator=torch.Generator().manual_seed(0))


def make_speed(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let a forward pass of a point take so long, a tangent half as long again, and twice that in float64."""
    monkeypatch.setattr(plans, "_seconds_a_pass", lambda net, points: seconds)
    monkeypatch.setattr(
        plans, "_seconds_a_tangent", lambda net, *_: (3.0 if net.dtype == torch.float64 else 1.5) * seconds
    )


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a forward pass of a point takes a tenth of a second."""
    make_speed(monkeypatch, 0.1)


def planned(net: rs.Network, seconds: float | None, **options: Any) -> Plan:
    return planned_measures(net, IMAGES, LARGE, seconds=seconds, **options)


@pytest.mark.usefixtures("slow")
def test_networks_of_the_papers_keep_their_defaults_however_slow_the_machine() -> None:
    for widths in ((784, 200, 200, 200, 200, 10), (784, 512, 512, 512, 10)):
        net = rs.trace(mlp(*widths), torch.zeros(1, 784))
        plan = planned_measures(net, torch.zeros(300, 784), LARGE, seconds=1.0, sizes=[300] * 3, optional=True)
        assert not plan.changed and plan.seconds > 1.0
        assert {name: {**how.options, "points": how.points} for name, how in plan.measures.items()} == {
            name: {"points": 300} | options for name, options in LARGE.items()
        }


@pytest.mark.usefixtures("slow")
def test_a_perceptron_that_takes_longer_than_the_time_says_why() -> None:
    text = rs.trace(mlp(4, 8, 8, 2), torch.zeros(1, 4)).describe(50)
    assert "more than the 60 s: perceptrons of a usual size are measured as asked for" in text


@pytest.mark.usefixtures("slow")
def test_a_residual_network_of_few_units_keeps_to_its_time() -> None:
    net = rs.trace(resnet18(10, width=4).eval(), torch.zeros(1, 3, 8, 8))
    assert net.units == 2176
    for plan, seconds in zip(plans.usual_plans(net, 200, 600.0, 200.0), (600.0, 200.0), strict=True):
        assert plan.changed and plan.seconds <= seconds
    bounds = plans.planned_bounds(net, torch.zeros(50, 3, 8, 8), draws=None, seconds=600.0)
    assert bounds.changed and bounds.seconds < bounds.whole


@pytest.mark.usefixtures("slow")
def test_a_large_network_keeps_to_its_time() -> None:
    net = rs.trace(image_network(), IMAGES[:1])
    for seconds in (200.0, 500.0, 2000.0):
        plan = planned(net, seconds)
        assert plan.changed and plan.whole > seconds
        assert 0.3 * seconds < plan.seconds <= seconds
    assert planned(net, 1e9).measures == planned(net, None).measures and not planned(net, None).changed
    assert planned(net, 1e9).whole == planned(net, 1e9).seconds == plan.whole


def test_a_machine_that_is_a_little_slower_makes_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    net = rs.trace(image_network(), IMAGES[:1])

    def plan(seconds: float) -> Plan:
        monkeypatch.setattr(plans, "busy_seconds", lambda *_: seconds)
        return planned(net, 500.0)

    times = [2 ** (k / 25) for k in range(-100, 100)]  # of a forward pass
    made = [plan(seconds) for seconds in times]
    changes = [k for k in range(1, len(made)) if made[k] != made[k - 1]]
    assert len(changes) == 16, "sixteen powers of the root of two"
    assert all(1 <= plans._coarse(seconds) / seconds < 2**0.5 for seconds in times)
    assert plan(0.0).whole > 0, "a clock that did not tick"


def test_a_pass_is_timed_on_one_thread_often_and_the_best_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    net, threads, many = rs.trace(image_network(), IMAGES[:1]), list[int](), torch.get_num_threads()

    def seconds(*_: object) -> float:
        threads.append(torch.get_num_threads())
        return 100.0 if len(threads) % 5 else 1.0  # it mostly waits for others

    monkeypatch.setattr(plans, "busy_seconds", seconds)
    assert plans._seconds_a_pass(net, IMAGES) == 1 / 22
    assert set(threads) == {1} and len(threads) > 5 and torch.get_num_threads() == many


@pytest.mark.usefixtures("slow")
def test_several_sets_of_points_share_the_time() -> None:
    net = rs.trace(image_network(), IMAGES[:1])
    alone, together = planned(net, 500.0), planned(net, 500.0, sizes=[100, 100, 30])
    assert together.seconds <= 500.0
    assert all(together.measures[name].points <= alone.measures[name].points for name in USUAL)
    assert together.measures["boundary_crossings"].points < alone.measures["boundary_crossings"].points


@pytest.mark.usefixtures("slow")
def test_what_is_given_stays() -> None:
    net = rs.trace(image_network(), IMAGES[:1])
    asked = LARGE | {"local_rank": {"eps": 0.1, "method": "jacobian", "points": 7}}
    for given, method in ((("method", "points"), "jacobian"), (("points",), "random")):
        plan = planned_measures(net, IMAGES, asked, seconds=500.0, given={"local_rank": given})
        assert plan.measures["local_rank"].points == 7 and plan.measures["local_rank"].options["method"] == method


@pytest.mark.usefixtures("slow")
def test_only_optional_measures_are_left_out_and_one_always_stays() -> None:
    net = rs.trace(image_network(), IMAGES[:1])
    for seconds in (20.0, 1e-3):
        kept = [how.points for how in planned(net, seconds, optional=True).measures.values()]
        assert 0 in kept and max(kept) >= 2
        assert all(how.points == 2 for how in planned(net, 1e-3).measures.values())
    plan = planned(net, 20.0, optional=True)
    assert plan.seconds <= 20.0 and "left out" in str(plan)


@pytest.mark.usefixtures("slow")
def test_draws_grow_with_the_time_where_all_points_are_taken_anyway() -> None:
    net, asked = rs.trace(image_network(), IMAGES[:1]), {"local_complexity": rs.MEASURES["local_complexity"].defaults}
    found = [planned_measures(net, IMAGES, asked, seconds=10.0**k).measures["local_complexity"] for k in range(2, 7)]
    assert [how.options["draws"] for how in found] == [2, 2, 8, 32, 32]
    assert all(how.points == 100 for how in found[2:]) and all(how.seconds <= 10.0**k for k, how in enumerate(found, 2))
    assert found[3].options["method"] == "random" and found[4].options["method"] == "auto"


@pytest.mark.usefixtures("slow")
def test_a_plan_says_what_was_chosen_and_how_long_it_takes() -> None:
    text = str(planned(rs.trace(image_network(), IMAGES[:1]), 500.0))
    assert "method random" in text and "points" in text
    assert "to keep within 500 s; as asked for it would take about" in text


def passes(effort: Effort) -> float:
    """What a point takes, in forward passes."""
    return effort.passes + 1.5 * (effort.random + effort.exact) + 3 * effort.double


def test_costs_grow_with_what_is_asked_for() -> None:
    net = rs.trace(image_network(2), IMAGES[:1])
    for name, measure in rs.MEASURES.items():
        assert passes(measure.cost(net, measure.effective({}))) > 0, name
    for name, option in (
        ("local_complexity", "draws"),
        ("boundary_crossings", "directions"),
        ("robust_accuracy", "steps"),
    ):
        measure = rs.MEASURES[name]
        few, many = (passes(measure.cost(net, measure.effective({option: k}))) for k in (2, 20))
        assert 5 < many / few <= 10, name
    for name, measure in rs.MEASURES.items():
        dear = measure.cost(net, measure.effective({}))
        for cheap in measure.cheaper[-1:]:
            work = measure.cost(net, measure.effective(cheap))
            assert passes(work) < passes(dear) and work.operations <= dear.operations, name


def test_a_chain_of_dense_layers_finds_its_tangents_once_for_all_draws() -> None:
    measure = rs.MEASURES["local_complexity"]
    costs = {}
    for model, shape in ((mlp(70, 80, 80, 2), (70,)), (image_network(2), (1, 28, 28))):
        net = rs.trace(model, torch.zeros(1, *shape))
        costs[shape] = [measure.cost(net, measure.effective({"draws": k})).exact for k in (8, 32)]
    assert costs[(70,)] == [70, 70] and costs[(1, 28, 28)] == [8 * 784, 32 * 784]


def test_tangents_are_timed_with_what_draws_them_where_a_measure_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    net, timed = rs.trace(image_network(2), IMAGES[:1]), list[tuple[str, torch.dtype]]()
    real = plans._seconds_a_tangent

    def noted(net: rs.Network, points: torch.Tensor, along: Directions) -> float:
        timed.append((along.method, points.dtype))
        return real(net, points, along)

    monkeypatch.setattr(plans, "_seconds_a_tangent", noted)
    for name, options, expected in (
        ("total_variation", {}, []),
        ("local_complexity", {"method": "random"}, [("random", torch.float32)]),
        ("local_complexity", {"method": "jacobian"}, [("jacobian", torch.float32)]),
        ("boundary_distance", {}, [("jacobian", torch.float64)]),
    ):
        measure = rs.MEASURES[name]
        speeds, effort = plans._Speeds(net, IMAGES), measure.cost(net, measure.effective(options))
        assert speeds.seconds(effort) == speeds.seconds(effort) > 0
        assert timed == expected, name
        timed.clear()


@pytest.mark.parametrize("name", ["local_complexity", "local_rank"])
def test_a_large_network_costs_what_the_random_directions_cost_that_it_is_measured_along(name: str) -> None:
    measure, width = rs.MEASURES[name], MOST_DIRECTIONS + 1
    net = rs.trace(mlp(width, width, 2), torch.zeros(1, width))
    auto, random = (measure.cost(net, measure.effective(options)) for options in ({}, {"method": "random"}))
    assert auto == random and auto.operations == 0


def test_a_monitor_says_its_plan_before_the_first_record_and_keeps_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_speed(monkeypatch, 0.1)
    options: dict[str, Any] = {"seconds_per_record": 150.0, "strict": True, "checkpoints": False}
    with rs.Monitor(image_network(), {"train": IMAGES[:40]}, run=tmp_path / "run", **options) as monitor:
        first = monitor(0)
    said = caplog.text
    assert "a record of this network" in said and "to keep within 150 s" in said
    assert first is not None
    run = rs.Run.open(tmp_path / "run")
    chosen = run.config["plan"]["measures"]
    points = {name: how["points"] for name, how in chosen.items() if how["points"]}
    assert {name: found["n"] for name, found in first.probes["train"].items()} == points
    assert run.config["measures"]["boundary_crossings"]["points"] == points["boundary_crossings"] < 40
    make_speed(monkeypatch, 1e-6)  # a faster machine goes on
    with rs.Monitor(image_network(), {"train": IMAGES[:40]}, run=tmp_path / "run", resume=True, **options) as monitor:
        second = monitor(1)
    assert second is not None and caplog.text == said
    assert second.probes["train"]["boundary_crossings"] == first.probes["train"]["boundary_crossings"]


def test_a_monitor_says_once_that_a_record_took_far_longer_than_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    x, model = torch.rand(30, 4), mlp(4, 8, 8, 2)
    options: dict[str, Any] = {"run": tmp_path / "run", "measures": ["total_variation"], "checkpoints": False}
    with rs.Monitor(model, {"x": x}, **options) as monitor:
        monitor(0)
        assert caplog.text == "", "of milliseconds nobody is told"
        monkeypatch.setattr("regionscope.runs.monitor.LONG", 0.0)
        monkeypatch.setattr(monitor, "_planned", 1e-9)
        monitor(1)
        monitor(2)
    assert caplog.text.count("a record took") == 1
    assert "measures={'total_variation': {'points': 16}}" in caplog.text and "seconds_per_record" in caplog.text
    caplog.clear()
    make_speed(monkeypatch, 1e-12)
    with rs.Monitor(model, {"x": x}, resume=True, **options) as monitor:
        monitor._follow_plan_of_run()
        assert monitor._planned == rs.Run.open(tmp_path / "run").config["plan"]["seconds"]
    with rs.Monitor(model, {"x": x}, measures=["total_variation"], planes={"p": rs.Plane.through(*x[:3])}) as monitor:
        monitor(0)
        assert "a record took" not in caplog.text, "the first one may have compiled"
        monitor(1)
    assert "times are estimates and 'p' not planned for" in caplog.text
    caplog.clear()
    with rs.Monitor(model, {"x": x}, measures=["total_variation"], seconds_per_record=None) as monitor:
        monitor(0)
        monitor(1)
    assert caplog.text == "", "without a limit nothing is planned"


def test_a_monitor_of_a_small_network_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.rand(30, 4)
    model = mlp(4, 8, 8, 2)
    found = [rs.Monitor(model, {"x": x}, seconds_per_record=limit)(0) for limit in (1e-9, None)]
    assert found[0] is not None and found[1] is not None
    assert found[0].probes == found[1].probes and capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="seconds_per_record must be positive or None, got 0"):
        rs.Monitor(model, {"x": x}, seconds_per_record=0)


def test_what_a_plan_leaves_out_is_not_watched_and_functions_of_the_user_are() -> None:
    measures = {"total_variation": {}, "local_rank": {"eps": 0.1}, "own": len}
    watched = Watched.of({"x": torch.rand(5, 4)}, measures, {}, 0)
    planned = {"points": 3, "chosen": {"points": 3, "eps": 0.5}}
    plan = {"measures": {"total_variation": {"points": 0, "chosen": {}}, "local_rank": planned, "own": planned}}
    followed = watched.as_planned(plan).measures
    assert followed["own"] is len and "total_variation" not in followed
    local_rank = followed["local_rank"]
    assert isinstance(local_rank, Mapping)
    assert (local_rank["points"], local_rank["eps"]) == (3, 0.1)  # what is given stays


def test_a_network_describes_itself_with_times() -> None:
    net = rs.trace(mlp(4, 8, 8, 2), torch.zeros(1, 4))
    text = net.describe(50)
    for name in usual_measures(net):
        assert name in text
    assert "local_region_count is taken if it is asked for: it takes as long as there are regions" in text
    assert "measured at 50 points" in text and "a record at 50 points" in text and text.count("s in all") == 2


@pytest.mark.usefixtures("slow")
def test_a_network_describes_itself_within_other_times() -> None:
    net = rs.trace(mlp(4, 8, 8, 2), torch.zeros(1, 4))
    text = net.describe(50, seconds=7.0, seconds_per_record=3.0)
    assert "more than the 7 s" in text and "more than the 3 s" in text


def test_what_smooth_networks_have_none_of_is_not_among_their_usual_measures() -> None:
    smooth = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    net = rs.trace(smooth, torch.zeros(1, 4), allow_smooth=True)
    assert set(usual_measures(rs.trace(mlp(4, 8, 2), torch.zeros(1, 4)))) - set(usual_measures(net)) == {
        "certified_radius"
    }
    assert "certified_radius" not in net.describe(50)
    x, labels = torch.randn(3, 4), torch.tensor([0, 1, 0])
    for measure in rs.MEASURES.values():
        if not measure.needs_regions:
            assert measure.estimate(smooth, x, labels, allow_smooth=True).n == 3
            continue
        with pytest.raises(ValueError, match="not piecewise linear"):
            measure.estimate(smooth, x, labels, allow_smooth=True)
