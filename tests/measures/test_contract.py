"""What every measure keeps to, whatever it measures: run for all of them over all cases."""

import copy
import inspect
import math
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import CASES, Case, case, mlp
from torch import Tensor, nn

import regionscope as rs
from regionscope.cli import bounds as command
from regionscope.measures.table import BOUNDS_DEFAULTS
from regionscope.results import joint_estimate, options_in_words

# small enough for all cases, and with something to count
OPTIONS: dict[str, dict[str, Any]] = {
    "local_complexity": {"draws": 4, "sigma": 0.3},
    "boundary_crossings": {"radius": 0.5, "directions": 3},
    "local_region_count": {"radius": 0.3},
    "robust_accuracy": {"radius": 0.1, "restarts": 2, "steps": 5},
}
BY_PLACE = {"local_complexity", "local_region_count"}  # noise and planes go by a point's place in the data
PAIRS = [(name, each) for name in rs.MEASURES for each in CASES]
pairs = pytest.mark.parametrize(("name", "each"), PAIRS)
names = pytest.mark.parametrize("name", rs.MEASURES)


@cache
def made(each: str) -> tuple[Case, rs.Network, Tensor]:
    """A case, its network, and a label for each of its points: not always the largest output."""
    found = case(each)
    outputs = found.model(found.points).detach().flatten(1)
    return found, rs.trace(found.model, found.points[:1]), outputs.argmax(dim=1) // 2 * 2


def measured(name: str, model: Any, data: Any, labels: Any, **options: Any) -> rs.Estimate:
    return rs.MEASURES[name].estimate(model, data, labels, **OPTIONS.get(name, {}) | options)


@cache
def whole(name: str, each: str) -> rs.Estimate | None:
    """The measure at all points of a case; None if there is none, and that is said."""
    found, net, labels = made(each)
    refusal = None
    if rs.MEASURES[name].needs_labels and math.prod(net.output_shape) == 1:
        refusal = "at least two outputs"
    if name == "local_region_count" and math.prod(net.input_shape) == 1:
        refusal = "has no planes"
    if refusal is None:
        return measured(name, net, found.points, labels)
    with pytest.raises(ValueError, match=refusal):
        measured(name, net, found.points, labels)
    return None


def assert_same(one: rs.Estimate, other: rs.Estimate, tolerance: float = 0.0) -> None:
    """Estimates of the same points agree, bit for bit if no tolerance is given."""
    assert type(one) is type(other)
    for name in ("per_point", "per_layer", "point_stderr", "per_unit"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
    assert (one.name, one.exact, one.quantity) == (other.name, other.exact, other.quantity)
    assert one.to_dict()["options"] == other.to_dict()["options"] and one.piecewise_linear == other.piecewise_linear


def rounding(net: rs.Network) -> float:
    return 1e-9 if net.dtype is torch.float64 else 2e-4


# what comes back


@pairs
def test_there_is_one_number_a_point_and_layers_add_up_to_it(name: str, each: str) -> None:
    found, net, _ = made(each)
    result = whole(name, each)
    if result is None:
        return
    assert result.n == len(found.points) and result.per_point.dtype == np.float64
    assert result.name and result.quantity and not np.isnan(result.per_point).any()
    if result.per_layer is not None:
        assert result.per_layer.shape == (result.n, net.layers)
        np.testing.assert_allclose(result.per_layer.sum(axis=1), result.per_point, rtol=1e-6)
    columns = result.columns()
    assert columns[result.name] is result.per_point and all(len(column) == result.n for column in columns.values())
    summary = result.to_dict()
    assert summary["mean"] == result.per_point.mean() and summary["n"] == result.n
    assert summary["piecewise_linear"] is True and "smooth" not in repr(result)


@pairs
def test_a_model_and_its_network_are_measured_alike(name: str, each: str) -> None:
    found, _, labels = made(each)
    result = whole(name, each)
    if result is not None:
        assert_same(measured(name, found.model, found.points, labels), result)


@pairs
def test_batches_change_nothing(name: str, each: str) -> None:
    found, net, labels = made(each)
    result = whole(name, each)
    if result is not None:
        assert_same(measured(name, net, found.points, labels, batch_size=2), result, rounding(net))


@pairs
def test_parts_make_up_the_whole(name: str, each: str) -> None:
    found, net, labels = made(each)
    options: dict[str, Any] = {"robust_accuracy": {"restarts": 1}}.get(name, {})
    if whole(name, each) is None or name in BY_PLACE:
        return
    result = measured(name, net, found.points, labels, **options)
    x, y = found.points, labels
    halves = [slice(0, 1), slice(1, None)]
    turns = [slice(0, None, 2), slice(1, None, 2)]
    for parts, interleaved in ((halves, False), (turns, True)):
        estimates = [measured(name, net, x[part], y[part], **options) for part in parts]
        joint = joint_estimate(estimates, interleaved=interleaved)
        assert_same(joint, result, rounding(net))
        for column, values in result.columns().items():
            np.testing.assert_allclose(joint.columns()[column], values, rtol=rounding(net), atol=rounding(net))


@pairs
def test_the_first_points_are_measured_as_if_there_were_no_others(name: str, each: str) -> None:
    found, net, labels = made(each)
    result = whole(name, each)
    if result is not None:
        k = len(found.points) - 2
        some = measured(name, net, found.points[:k], labels[:k])
        np.testing.assert_allclose(some.per_point, result.per_point[:k], rtol=rounding(net), atol=rounding(net))


@pairs
def test_estimates_join_point_by_point(name: str, each: str) -> None:
    result = whole(name, each)
    if result is None:
        return
    one_after_another, by_turns = (joint_estimate([result] * 2, interleaved=turns).columns() for turns in (False, True))
    for column, values in result.columns().items():
        np.testing.assert_array_equal(one_after_another[column], np.concatenate([values, values]))
        np.testing.assert_array_equal(by_turns[column], np.repeat(values, 2))


@pairs
def test_one_point_is_enough(name: str, each: str) -> None:
    found, net, labels = made(each)
    result = whole(name, each)
    if result is not None:
        alone = measured(name, net, found.points[:1], labels[:1])
        assert alone.n == 1 and alone.mean == alone.per_point[0]
        assert alone.mean == pytest.approx(result.per_point[0], rel=rounding(net), abs=rounding(net))
        if alone.exact and not isinstance(alone, rs.Share):
            assert math.isnan(alone.stderr), "one point does not say how others differ"
            assert "± ?, " in repr(alone) and ", n = 1, " in repr(alone)


# what goes in


DATA: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "tensors": lambda x, y: list(x.split(2)),
    "tuples": lambda x, y: list(zip(x.split(2), y.split(2), strict=True)),
    "dicts": lambda x, y: [{"index": 3, "image": a, "label": b} for a, b in zip(x.split(2), y.split(2), strict=True)],
    "loader": lambda x, y: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=2),
    "array": lambda x, y: x.double().numpy(),
    "arrays": lambda x, y: [(part.double().numpy(), None) for part in x.split(2)],
    "backwards": lambda x, y: x.flip(0).numpy()[::-1],
    "with gradients": lambda x, y: x.clone().requires_grad_(),
}


@pytest.mark.parametrize("kind", DATA)
@names
def test_data_may_come_in_any_form(name: str, kind: str) -> None:
    for each in ("dense", "conv", "dense_float64"):
        found, net, labels = made(each)
        result = whole(name, each)
        assert result is not None
        data = DATA[kind](found.points, labels)
        assert_same(measured(name, net, data, labels.numpy() if "array" in kind else labels), result)
        assert not isinstance(data, Tensor) or data.grad is None


@names
def test_arrays_go_to_models_in_their_dtype_and_tensors_must_have_it(name: str) -> None:
    found, _, labels = made("dense")
    assert_same(measured(name, found.model, found.points.double().numpy(), labels), whole(name, "dense"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"points are torch\.float64"):
        measured(name, found.model, found.points.double(), labels)
    with pytest.raises(TypeError, match="an array of int64"):
        measured(name, found.model, found.points.long().numpy(), labels)


@names
def test_points_of_another_shape_are_refused(name: str) -> None:
    found, net, labels = made("dense")
    with pytest.raises(ValueError, match=r"points must be \(n, 4\), got \(7, 2, 2\); flatten images first"):
        measured(name, net, found.points.view(-1, 2, 2), labels)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        measured(name, net, found.points, labels, batch_size=0)
    with pytest.raises(ValueError, match="NaN"):
        measured(name, net, found.points / 0, labels)


SEVERAL: dict[str, Callable[[list[Any]], Any]] = {
    "array": np.array,
    "tensor": torch.tensor,
    "tensor with gradients": lambda values: torch.tensor(values, dtype=torch.float64, requires_grad=True),
    "numbers of numpy": lambda values: [np.float64(value) for value in values],
    "tensors": lambda values: [torch.tensor(value) for value in values],
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_numbers_may_come_in_any_form(kind: str) -> None:
    found, net, _ = made("dense_float64")
    x, several, close = found.points, SEVERAL[kind], 1e-6
    plain = [0.25, 0.5][: net.layers] + [0.5] * (net.layers - 2)

    def complexity(sigma: Any) -> float:
        return rs.local_complexity(net, x, sigma=sigma, draws=2, generator=torch.Generator().manual_seed(0)).mean

    assert complexity(several(plain)) == pytest.approx(complexity(plain), rel=close)
    assert complexity(several([0.25])[0]) == pytest.approx(complexity(0.25), rel=close)
    with pytest.raises(ValueError, match=f"one number or {net.layers}, one a layer; got {net.layers + 1}"):
        complexity(several([0.5] * (net.layers + 1)))
    frame = torch.eye(4)[:2]
    radii = rs.boundary_crossings(net, x, radius=several([0.25, 0.5]), frame=frame)
    assert [c.mean for c in radii] == [c.mean for c in rs.boundary_crossings(net, x, radius=[0.25, 0.5], frame=frame)]
    alone = rs.boundary_crossings(net, x, radius=several([0.5])[0], frame=frame)
    assert alone.mean == radii[1].mean
    if "gradients" not in kind and kind != "numbers of numpy":
        first = rs.boundary_crossings(net, x, radius=0.5, frame=frame, layers=several([1]))
        assert first.mean == rs.boundary_crossings(net, x, radius=0.5, frame=frame, layers=[1]).mean
    sides = [
        [b.left for b in rs.bounds(net, x, sigma=sigma, eps=eps, draws=1, generator=torch.Generator().manual_seed(0))]
        for sigma, eps in ((0.25, 0.5), several([0.25, 0.5]))
    ]
    assert sides[1] == pytest.approx(sides[0], rel=close, nan_ok=True)
    with pytest.raises(ValueError, match="sigma must be one number for all layers, got 2"):
        rs.bounds(net, x, sigma=several([0.25, 0.5]))


def test_a_monitor_tells_arrays_among_its_options(tmp_path: Any) -> None:
    found, net, _ = made("dense")
    options = {"local_complexity": {"sigma": torch.tensor([0.25, 0.5][: net.layers])}}
    with rs.Monitor(found.model, {"x": found.points}, measures=options, run=tmp_path / "run", strict=True) as monitor:
        monitor(0)
    told = rs.Run.open(tmp_path / "run").config["measures"]["local_complexity"]["sigma"]
    assert told == [0.25, 0.5][: net.layers]


# what stays as it was


@contextmanager
def left_alone(model: nn.Module, *points: Tensor) -> Iterator[None]:
    """Weights, gradients, modes, points and every global random state are the same afterwards."""
    for p in model.parameters():
        p.grad = torch.full_like(p, 7.0)
    model.train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d | nn.Dropout):
            module.eval()

    def state() -> list[Any]:
        tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters()), *points, torch.get_rng_state()]
        flags = [p.requires_grad for p in model.parameters()], [m.training for m in model.modules()]
        hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
        seeds = torch.from_numpy(np.random.get_state()[1])  # type: ignore[index]
        return [*(t.clone() for t in tensors if t is not None), seeds.clone(), flags, hooks]

    before, enabled = state(), torch.is_grad_enabled()
    yield
    assert torch.is_grad_enabled() == enabled
    for one, other in zip(before, state(), strict=True):
        assert one.equal(other) if isinstance(one, Tensor) else one == other


@pairs
def test_the_model_and_all_random_states_are_left_alone(name: str, each: str) -> None:
    if whole(name, each) is None:
        return
    found, _, labels = made(each)
    model = copy.deepcopy(found.model)
    with left_alone(model, found.points, labels):
        measured(name, model, found.points, labels)


@pytest.mark.parametrize("name", [name for name, measure in rs.MEASURES.items() if measure.random])
def test_the_seed_alone_says_what_is_drawn(name: str) -> None:
    found, net, labels = made("dense")
    some: dict[str, dict[str, Any]] = {
        "total_variation": {"method": "random", "target": 0},
        "local_rank": {"method": "random", "directions": 1},
    }
    options = some.get(name, {})
    results = [measured(name, net, found.points, labels, seed=seed, **options) for seed in (3, 3, 4)]
    assert_same(results[0], results[1])
    if name != "robust_accuracy":  # which is 0 or 1 at each point
        assert not np.array_equal(results[0].per_point, results[2].per_point)


@pytest.mark.parametrize("name", [name for name, measure in rs.MEASURES.items() if not measure.random])
def test_what_draws_nothing_takes_no_generator(name: str) -> None:
    found, net, labels = made("dense")
    with pytest.raises(TypeError, match="generator"):
        measured(name, net, found.points, labels, generator=torch.Generator())


# results


@pairs
def test_results_can_be_copied_and_sent_to_other_processes(name: str, each: str) -> None:
    result = whole(name, each)
    if result is None:
        return
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert_same(again, result)
        assert repr(again) == repr(result) and again.to_dict() == result.to_dict()
        assert [f.name for f in fields(again)] == [f.name for f in fields(result)]


# what a measure is called with in several ways: by its defaults, or by these
WAYS: dict[str, list[dict[str, Any]]] = {
    "local_complexity": [{"method": "random", "directions": 3}, {"draws": 5, "good": False}, {"weight_noise": True}],
    "boundary_crossings": [{"directions": 50}, {"shared_frame": False, "layers": [1]}, {"frame": torch.eye(4)[:2]}],
    "local_rank": [{"method": "random", "directions": 50}, {"eps": 0}, {"relative": True, "method": "gram"}],
    "total_variation": [{"method": "combinations"}, {"method": "gram"}, {"target": 0, "method": "random"}],
    "boundary_distance": [{"norm": "L1"}, {"good": True}],
    "good_units": [{"per_unit": True}],
    "local_region_count": [{"shape": "disc"}, {"axes": torch.eye(4)[:2]}],
    "robust_accuracy": [{"attack": a} for a in ("none", "fgsm", "apgd")] + [{"bounds": (-99.1, 99.1), "norm": "l2"}],
    "certified_radius": [],
}
NO_SAY = {"per_unit", "max_cells"}  # in the number, whatever they are


@names
def test_the_options_that_a_result_tells_give_it_again(name: str) -> None:
    found, net, labels = made("dense")
    measure = rs.MEASURES[name]
    told: set[str] = set()
    for way in [OPTIONS.get(name, {}), *WAYS[name]]:
        result = measure.estimate(net, found.points, labels, **way)
        again = measure.estimate(net, found.points, labels, **result.options)
        np.testing.assert_array_equal(again.per_point, result.per_point)
        assert again.to_dict()["options"] == result.to_dict()["options"]
        assert result.options.get("method") != "auto" and result.options.get("attack", "pgd") is not None
        told |= result.options.keys()
    assert told == measure.defaults.keys() - NO_SAY


@names
def test_options_that_a_number_means_little_without_are_printed_once(name: str) -> None:
    found, net, labels = made("dense")
    for way in [{}, *WAYS[name]]:
        result = rs.MEASURES[name].estimate(net, found.points, labels, **way)
        words = options_in_words(result.options)
        needed = {"sigma", "eps", "radius", "norm", "bounds", "draws"} & result.options.keys()
        assert needed <= {word.split()[0] for word in words}
        assert ("directions" in result.options) == any(word.startswith("directions ") for word in words)
        title = " ".join(result.plot().get_title().split())
        plt.close("all")
        for word in words:
            for shown in (repr(result), result._repr_html_(), f"{title} {result.quantity}"):
                assert shown.count(word) == 1, (word, shown)
        for option in needed:
            assert option not in result.quantity


def test_results_tell_what_was_really_taken() -> None:
    found, net, labels = made("dense")
    x = found.points
    assert rs.boundary_crossings(net, x, radius=0.5).options["directions"] == 4, "as many as the input has"
    assert rs.local_complexity(net, x, draws=5).options["draws"] == 4, "pairs"
    shallow = rs.local_complexity(mlp(4, 6, 2), x, good=False, draws=5)
    assert "draws" not in shallow.options and shallow.exact, "none has to be drawn"
    penalty = rs.local_complexity(net, x, differentiable=True)
    assert penalty.options.items() >= {"draws": 1, "method": "random", "directions": 1}.items()
    assert rs.total_variation(net, x).options["method"] == "reverse"
    pgd = rs.robust_accuracy(net, x, labels, radius=0.4, bounds=(-99.1, 99.1)).options
    assert pgd["step_size"] == 0.1 and pgd["bounds"] == tuple(torch.tensor([-99.1, 99.1]).tolist())
    assert "bounds" not in rs.robust_accuracy(net, x, labels).options
    own = rs.robust_accuracy(net, x, labels, attack=lambda network, points, classes: points)
    assert own.options == {"attack": "<lambda>"} and pickle.loads(pickle.dumps(own)).options == own.options
    frame = rs.boundary_crossings(net, x, radius=0.5, frame=torch.eye(4)[:2])
    assert frame.options["frame"].shape == (2, 4) and "frame" not in frame.to_dict()["options"]
    assert "shared_frame" not in frame.options, "none was drawn"
    line = rs.expected_line_regions(net, x[0], x[1], sigma=0.2, samples=4, draws=4)
    assert line.options == {"sigma": 0.2, "samples": 4, "draws": 4} and "sigma 0.2, draws 4" in repr(line)


@names
def test_progress_is_shown_if_asked_for(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    found, net, labels = made("dense")
    measured(name, net, found.points, labels)
    assert capfd.readouterr().err == ""
    measured(name, net, found.points, labels, show_progress=True)
    assert "100%" in capfd.readouterr().err


@names
def test_the_table_names_every_option_of_a_measure_with_the_default_it_has(name: str) -> None:
    measure = rs.MEASURES[name]
    taken = inspect.signature(measure.function).parameters
    filled_in = {"model", "data", "labels", "generator", "differentiable"}
    assert len(set(measure.options)) == len(measure.options)
    assert set(measure.options) == taken.keys() - filled_in
    assert measure.random == ("generator" in taken) and measure.needs_labels == ("labels" in taken)
    has_to_be_told = {option for option in measure.options if taken[option].default is inspect.Parameter.empty}
    assert has_to_be_told <= measure.defaults.keys()
    assert measure.options[-3:] == ("batch_size", "allow_smooth", "show_progress")
    for option in measure.defaults.keys() - has_to_be_told:
        assert taken[option].default in (None, measure.defaults[option])  # None: as the call asks for
    assert (measure.watching or {}).keys() <= {"points", *measure.options}


@names
def test_the_table_says_what_a_measure_is_called_with(name: str) -> None:
    found, net, labels = made("dense")
    measure = rs.MEASURES[name]
    assert getattr(rs, name) is measure.function
    assert measure.share == isinstance(whole(name, "dense"), rs.Share)
    needed = [labels] if measure.needs_labels else []
    assert_same(measure(net, found.points, *needed, **seeded(measure)), measure.estimate(net, found.points, labels))
    watching = {option: value for option, value in (measure.watching or {}).items() if option != "points"}
    measure.check({**measure.defaults, **watching})
    with pytest.raises(TypeError, match=f"{name} has no option 'nonsense' here; it has .*batch_size"):
        measure.check({"nonsense": 1})
    if measure.needs_labels:
        with pytest.raises(ValueError, match=f"{name} needs labels"):
            measure.estimate(net, found.points)


def test_the_inequalities_take_their_defaults_from_the_table() -> None:
    for taken in (inspect.signature(rs.bounds).parameters, inspect.signature(command.bounds).parameters):
        for option, value in BOUNDS_DEFAULTS.items():
            found = taken.get(option, taken.get("constants"))
            assert found is not None and found.default in (value, None)
    assert BOUNDS_DEFAULTS["sigma"] == rs.MEASURES["local_complexity"].defaults["sigma"]
    assert BOUNDS_DEFAULTS["eps"] == rs.MEASURES["local_rank"].defaults["eps"]


def test_a_wrong_option_is_told_before_anything_is_watched() -> None:
    found, _, _ = made("dense")
    with pytest.raises(TypeError, match="local_rank has no option 'epsilon' here; it has eps"):
        rs.Monitor(found.model, {"x": found.points}, measures={"local_rank": {"epsilon": 0.1, "points": 3}})


def seeded(measure: Any) -> dict[str, Any]:
    return {"generator": torch.Generator().manual_seed(0)} if measure.random else {}


# the edges


AFFINE: dict[str, float | str] = {
    "local_complexity": "no activation sites",
    "boundary_crossings": 0.0,
    "local_rank": "no activation sites",
    "total_variation": 5.0,
    "boundary_distance": math.inf,
    "good_units": 0.0,
    "local_region_count": 1.0,
    "robust_accuracy": 1.0,
    "certified_radius": 2.0 / math.hypot(3.0, 4.0),
}


@names
def test_a_network_without_sites_bends_nowhere(name: str) -> None:
    model = nn.Linear(2, 2).double()
    model.weight.data = torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double()
    model.bias.data.zero_()
    x, labels = torch.tensor([[2.0, -1.0], [-2.0, 1.0]]).double(), torch.tensor([0, 1])  # outputs 2 and 0, -2 and 0
    expected = AFFINE[name]
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            measured(name, model, x, labels)
    else:
        assert measured(name, model, x, labels).per_point == pytest.approx([expected] * 2)


@names
def test_units_of_smooth_networks_are_measured_but_not_their_regions(name: str) -> None:
    torch.manual_seed(0)
    model, x, labels = mlp(3, 6, 6, 2, act=nn.GELU), torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    net = rs.trace(model, x, allow_smooth=True)
    with pytest.raises(rs.UnsupportedModel, match="allow_smooth=True"):
        measured(name, model, x, labels)
    if name in ("local_region_count", "certified_radius"):
        with pytest.raises(ValueError, match="not piecewise linear"):
            measured(name, net, x, labels)
        with pytest.raises(ValueError, match="not piecewise linear"):
            measured(name, model, x, labels, allow_smooth=True)
    else:
        result = measured(name, net, x, labels)
        assert_same(measured(name, model, x, labels, allow_smooth=True), result)
        assert result.to_dict()["piecewise_linear"] is False
        assert repr(result).endswith(", of a smooth network)") and "of a smooth network" in result._repr_html_()
        assert "smooth network" in " ".join(result.plot().get_title().split())
        plt.close("all")


# those that are in no table

OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "complexity_density": lambda net, x: rs.complexity_density(net, x, sigma=0.3, draws=2, generator=torch.Generator()),
    "singular_values": rs.singular_values,
    "neighbourhood_deformation": lambda net, x: rs.neighbourhood_deformation(
        net, x, radius=0.5, directions=3, generator=torch.Generator()
    ),
    "confirmed_crossings": lambda net, x: rs.confirmed_crossings(
        net, x, radius=0.5, directions=3, generator=torch.Generator()
    ),
    "compare_complexities": lambda net, x: (
        rs.compare_complexities(net, x, radius=0.5, directions=3, generator=torch.Generator()).measures
    ),
    "bounds": lambda net, x: rs.bounds(net, x, generator=torch.Generator()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_take_the_same_data_and_leave_the_same_alone(name: str) -> None:
    found, _, labels = made("dense_float64")
    model = copy.deepcopy(found.model)
    with left_alone(model, found.points):
        expected = list(numbers(OTHERS[name](model, found.points)))
        assert len(expected) >= len(found.points)
        for kind in ("tuples", "dicts", "array"):
            again = list(numbers(OTHERS[name](model, DATA[kind](found.points, labels))))
            assert again == pytest.approx(expected, abs=1e-6), kind


def numbers(result: Any) -> Iterator[float]:
    """All that a result holds."""
    if isinstance(result, Tensor | np.ndarray):
        yield from result.ravel().tolist()
    elif isinstance(result, list | tuple):
        yield from (number for entry in result for number in numbers(entry))
    elif isinstance(result, dict):
        yield from numbers(list(result.values()))
    elif is_dataclass(result):
        yield from numbers([getattr(result, f.name) for f in fields(result)])
    elif isinstance(result, int | float):
        yield float(result)
