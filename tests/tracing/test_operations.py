"""Every operation in the tables: lifted over points and differentiated as at each point alone, or refused."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from calls import Live, Slot, at, filled, live_sets, name_of, operation, samples_of, schema, slots
from functions import REFUSED, TRACED, Function
from samples import OTHERS, SAMPLES, SITES, Arguments
from torch import Tensor, nn

import regionscope as rs
from regionscope.tracing import lifting
from regionscope.tracing.activations import PAIRWISE, PIECEWISE_LINEAR
from regionscope.tracing.decompositions import PLAYED
from regionscope.tracing.forward import Forward
from regionscope.tracing.lifting import Shape, lifted
from regionscope.tracing.operations import AFFINE, IGNORED, TABLE
from regionscope.tracing.steps import Step
from regionscope.tracing.trace import as_written, recorded_alone

aten = torch.ops.aten
Model = Callable[[Tensor], Tensor]
Call = Callable[..., list[Tensor]]
BENT = dict.fromkeys([*PIECEWISE_LINEAR, *PAIRWISE, *PLAYED, "rrelu_with_noise"])  # the last is taken for a leaky ReLU
N = 3  # points


def prepared(key: str, arguments: Arguments) -> Arguments:
    """With what depends on memory: noise that RReLU does not draw in eval mode, and strides from a known start."""
    if name_of(key) in ("rrelu_with_noise", "rrelu_with_noise_"):
        return arguments | {"noise": torch.empty_like(arguments["self"])}
    return arguments | ({"self": arguments["self"].clone()} if key == "as_strided" else {})


def calling(key: str) -> Call:
    """An operation as a function whose results are those that the table vouches for."""
    outputs = AFFINE[key].outputs if key in AFFINE else 1 if key in PLAYED else None

    def call(**arguments: Any) -> list[Tensor]:
        made = operation(key)(**prepared(key, arguments))
        return (list(made) if isinstance(made, list | tuple) else [made])[:outputs]

    return call


def freely(key: str) -> Call:
    """Any overload as a function: with memory of its own to write to."""

    def call(**arguments: Any) -> list[Tensor]:
        for p in schema(key).arguments:
            if p.is_out:
                places = p.name in ("indices", "max_values", "min_indices")
                blank = [torch.empty(0, dtype=torch.int64 if places else torch.float64) for _ in range(2)]
                arguments[p.name] = blank if isinstance(p.type, torch.ListType) else blank[0]
            elif p.is_write and p.name == "self":
                arguments["self"] = arguments["self"].clone()
        made = operation(key)(**prepared(key, arguments))
        made = arguments["out"] if made is None else made
        return list(made) if isinstance(made, list | tuple) else [made]

    return call


def works(key: str, arguments: Arguments) -> bool:
    try:
        freely(key)(**arguments)
    except (RuntimeError, TypeError, IndexError):
        return False
    return True


# how points may come before they are taken one by one
WAYS: tuple[Callable[[Tensor], Sequence[Tensor]], ...] = (
    lambda x: x.unbind(),
    lambda x: x.T.contiguous().unbind(1),
    lambda x: x.flatten().split(x.shape[1]),
    lambda x: [p.flatten().flip(0) for p in x.flip(1)[None].split(1, dim=1)],
)


def one_by_one(call: Call, arguments: Arguments, live: Live, way: int = 0) -> Model:
    """The call at one point after the other."""
    shapes = [at(arguments, slot).shape for slot in live]

    def one(p: Tensor) -> Tensor:
        parts = [part.reshape(shape) for part, shape in zip(p.split(sizes(arguments, live)), shapes, strict=True)]
        made = call(**filled(arguments, dict(zip(live, parts, strict=True))))
        return torch.cat([m.reshape(-1) for m in made]).to(p.dtype)

    return lambda x: torch.stack([one(p) for p in WAYS[way](x)])


def all_at_once(call: Call, arguments: Arguments, live: Live, axis: int) -> Model:
    """The call at all points together, which lie along an axis of every tensor."""
    shapes = [at(arguments, slot).shape for slot in live]
    rank = len(shapes[0])

    def moved(dim: int) -> int:
        return dim % rank + (dim % rank >= axis)

    dims = {
        name: [moved(d) for d in a] if isinstance(a, list) else moved(a)
        for name, a in arguments.items()
        if name in ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
    }
    fixed = {(name, k): a.unsqueeze(axis) for name, k in slots(arguments) if (a := at(arguments, (name, k))).dim()}

    def made(x: Tensor) -> list[Tensor]:
        parts = [
            part.reshape(len(x), *shape).movedim(0, axis)
            for part, shape in zip(x.split(sizes(arguments, live), dim=1), shapes, strict=True)
        ]
        return call(**filled(arguments, fixed | dict(zip(live, parts, strict=True))) | dims)

    few, many = (made(torch.zeros(n, sum(sizes(arguments, live)), dtype=torch.float64)) for n in (7, 11))
    axes = [[i for i in range(a.dim()) if a.shape[i] != b.shape[i]] for a, b in zip(few, many, strict=True)]

    def model(x: Tensor) -> Tensor:
        rows = [m.movedim(place, 0).reshape(len(x), -1) for m, (place,) in zip(made(x), axes, strict=True)]
        return torch.cat(rows, dim=1)

    return model


def sizes(arguments: Arguments, live: Live) -> list[int]:
    return [at(arguments, slot).numel() for slot in live]


def points(d: int) -> Tensor:
    return torch.randn(N, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


# what has to hold


def assert_close(found: Any, expected: Tensor, tolerance: float) -> None:
    found = torch.as_tensor(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance), (found - expected).abs().max()


def assert_lifted(net: rs.Network, x: Tensor, tolerance: float) -> None:
    """Every step gives at each of several points what it gives there alone."""

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
        made = lifted(step, values, shapes)
        alone = [step.run({i: values[i][k] if i in shapes else values[i] for i in step.used}) for k in range(len(x))]
        for result, *expected in zip(made, *alone, strict=True):
            assert_close(result, torch.stack(expected), tolerance)
        return made

    net.program.resume({0: x[:, None]}, act=act)


def assert_right(model: Model, d: int, tolerance: float = 1e-12) -> None:
    """An affine function of d numbers and its ReLU: values and derivatives, by differences, which are exact here."""
    x = points(d)
    net = rs.trace(lambda x: torch.cat([z := model(x), z.relu()], dim=1), x[:1])
    z = torch.cat([model(p) for p in x.split(1)])
    for n in (1, 2, N):
        assert_close(net(x[:n]), torch.cat([z, z.relu()], dim=1)[:n], tolerance)
    (entering,) = net.preactivations(x)
    assert_close(entering.reshape(z.shape), z, tolerance)
    assert_lifted(net, x, tolerance)
    jacobian = (model(torch.eye(d, dtype=x.dtype)) - model(torch.zeros(1, d, dtype=x.dtype))).T
    steepness = (jacobian**2 * (1 + (z > 0).double())[:, :, None]).sum(dim=(1, 2)).sqrt()
    for method in ("jacobian", "gram"):
        assert_close(rs.total_variation(net, x, method=method).per_point, steepness, 10 * tolerance)
    slopes = jacobian.norm(dim=1)
    distances = torch.where(slopes > 1e-9, z.abs() / slopes, torch.inf)
    assert_close(rs.boundary_distance(net, x).per_point, distances.amin(dim=1), 10 * tolerance)


def precision(arguments: Arguments) -> float:
    return 1e-6 if any(at(arguments, slot).dtype == torch.float32 for slot in slots(arguments)) else 1e-12


# the tables


def test_every_operation_in_the_tables_has_samples() -> None:
    assert SAMPLES.keys() == AFFINE.keys()
    assert SITES.keys() == BENT.keys()


def test_no_operation_is_in_the_table_twice() -> None:
    keys = [key for line in TABLE.strip().splitlines() for key in line.partition(":")[0].split()]
    assert len(keys) == len(AFFINE)


@pytest.mark.parametrize("key", AFFINE)
def test_the_table_speaks_of_arguments_that_exist_and_leaves_none_out(key: str) -> None:
    spoken = AFFINE[key].settings.union(*AFFINE[key].groups)
    names = {p.name for p in schema(key).arguments}
    assert spoken <= names
    assert names <= spoken | IGNORED.get(name_of(key), frozenset())


@pytest.mark.parametrize("key", [*AFFINE, *BENT])
def test_samples_call_the_operation_with_every_argument_off_its_default(key: str) -> None:
    samples = samples_of(key)
    for p in schema(key).arguments:
        if p.has_default_value() and p.name not in ("training", "generator"):
            given = [sample[p.name] for sample in samples if p.name in sample]
            assert any(isinstance(g, Tensor) or g != p.default_value for g in given), p.name


@pytest.mark.parametrize("key", AFFINE)
def test_an_affine_operation_is_itself_at_every_point_and_its_own_derivative(
    key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, arguments in enumerate(SAMPLES[key]):
        for k, live in enumerate(live_sets(key, arguments)):
            if d := sum(sizes(arguments, live)):
                model = one_by_one(calling(key), arguments, live, (number + k) % len(WAYS))
                assert_right(model, d, precision(arguments))
    assert "batching rule" not in capfd.readouterr().err, "torch.vmap has no rule for it"


ALONG = (
    "transpose.int slice.Tensor select.int split.Tensor split_with_sizes unbind.int unfold diagonal index_select flip"
    " roll rot90 cumsum sum.dim_IntList mean.dim squeeze.dim squeeze.dims narrow_copy cat neg alias add.Scalar"
    " mul.Scalar div.Scalar"
).split()


def shiftable(key: str, arguments: Arguments) -> bool:
    """Whether a sample says along which dimensions it goes, and has some."""
    names = [p.name for p in schema(key).arguments if p.name.startswith("dim")]
    ranks = {at(arguments, slot).dim() for slot in slots(arguments)}
    return ranks != {0} and len(ranks) == 1 and all(arguments.get(n) not in (None, []) for n in names)


@pytest.mark.parametrize("key", ALONG)
def test_points_may_lie_along_any_axis(key: str) -> None:
    samples = [arguments for arguments in SAMPLES[key] if shiftable(key, arguments)]
    assert samples
    for arguments in samples:
        live = tuple(slots(arguments))
        for axis in range(at(arguments, live[0]).dim() + 1):
            assert_right(all_at_once(calling(key), arguments, live, axis), sum(sizes(arguments, live)))


def in_place(key: str) -> Any:
    name, _, overload = key.partition(".")
    return getattr(getattr(aten, f"{name}_", None), overload or "default", None)


def writing(key: str) -> Call:
    """The in-place twin of an operation, on a copy."""

    def call(**arguments: Any) -> list[Tensor]:
        written = arguments["self"].clone()
        in_place(key)(**prepared(key, arguments) | {"self": written})
        return [written]

    return call


def writable(key: str, arguments: Arguments) -> bool:
    """Whether the result has the shape of what is written to, or that may change."""
    result = calling(key)(**arguments)[0]
    return result.shape == arguments["self"].shape or torch.Tag.inplace_view in in_place(key).tags


@pytest.mark.parametrize("key", [key for key in AFFINE if in_place(key) is not None])
def test_the_in_place_twin_of_an_affine_operation_is_as_good(key: str) -> None:
    samples = [arguments for arguments in SAMPLES[key] if writable(key, arguments)]
    assert samples
    for number, arguments in enumerate(samples):
        for live in live_sets(key, arguments):
            model = one_by_one(writing(key), arguments, live, number % len(WAYS))
            assert_right(model, sum(sizes(arguments, live)), precision(arguments))


@pytest.mark.parametrize("key", AFFINE)
def test_arguments_that_are_not_in_one_group_must_not_depend_on_the_input_together(key: str) -> None:
    groups = [group | IGNORED.get(name_of(key), frozenset()) for group in AFFINE[key].groups]
    for arguments in SAMPLES[key]:
        everywhere = slots(arguments)
        for live in [*itertools.combinations(everywhere, 1), *itertools.combinations(everywhere, 2)]:
            if not any({name for name, _ in live} <= group for group in groups):
                x = points(sum(sizes(arguments, live)))
                with pytest.raises(rs.UnsupportedModel, match=r"aten\."):
                    rs.trace(one_by_one(calling(key), arguments, live), x)


def cutting(key: str) -> list[tuple[Arguments, Slot]]:
    """Samples in which an operation makes integers: by its dtype, or because it writes into them."""
    found = []
    for arguments, slot in ((a, slot) for a in SAMPLES[key] for slot in slots(a)):
        if "dtype" in arguments:
            found.append((arguments | {"dtype": torch.int64}, slot))
        elif slot[0] in ("src", "source", "value", "values"):
            found.append((arguments | {"self": arguments["self"].long()}, slot))
    return [(arguments, slot) for arguments, slot in found if works(key, arguments)]


@pytest.mark.parametrize("key", [key for key in AFFINE if cutting(key)])
def test_what_cuts_off_fractions_is_refused(key: str) -> None:
    for arguments, slot in cutting(key):
        with pytest.raises(rs.UnsupportedModel, match=rf"aten\.{name_of(key)}.*not known to be affine"):
            rs.trace(one_by_one(calling(key), arguments, (slot,)), points(at(arguments, slot).numel()))


def test_a_number_takes_on_the_dtype_of_the_tensor_it_is_multiplied_with() -> None:
    x = points(3)
    net = rs.trace(lambda x: torch.stack([p.sum() * torch.ones(2) for p in x]), x)
    assert torch.equal(net(x), x.sum(dim=1, keepdim=True).float().expand(N, 2))


# what bends


def jacobians(model: Model, x: Tensor) -> Tensor:
    """(n, outputs, d) by central differences, exact to rounding where no boundary is near."""
    steps = 1e-5 * torch.eye(x.shape[1], dtype=x.dtype)
    return torch.stack([(model(p + steps) - model(p - steps)).T / 2e-5 for p in x])


def assert_bends(model: Model, x: Tensor, net: rs.Network | None = None) -> rs.Network:
    """A piecewise-linear function: its values, its derivatives, and that it is affine as far as no boundary is met."""
    net = net or rs.trace(model, x[:1])
    assert net.piecewise_linear
    y, jacobian = torch.cat([model(p) for p in x.split(1)]), jacobians(model, x)
    for n in (1, 2, N):
        assert_close(net(x[:n]).reshape(n, -1), y[:n], 1e-12)
    assert_lifted(net, x, 1e-12)
    for method in ("jacobian", "gram"):
        found = rs.total_variation(net, x, method=method).per_point
        assert_close(found, jacobian.norm(dim=(1, 2)), 1e-8)
    reach = torch.as_tensor(rs.boundary_distance(net, x).per_point).clamp(max=10.0)
    for seed in range(3):
        u = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=x.dtype)
        u *= (0.999 * reach / u.norm(dim=1))[:, None]
        assert_close(model(x + u), y + torch.einsum("nkd,nd->nk", jacobian, u), 1e-8)
    return net


def at_one_point(model: Model, x: Tensor) -> rs.Network:
    """The network of a model that has more sites for more points."""
    return as_written(recorded_alone(Forward(model, None, None), x, False), x)


def axes_of_points(key: str, arguments: Arguments) -> range:
    return range(1 if "pool" in key else at(arguments, ("self", None)).dim() + 1)


@pytest.mark.parametrize("key", PIECEWISE_LINEAR)
def test_an_activation_is_a_site_where_its_argument_enters(key: str) -> None:
    for arguments, axis in ((a, axis) for a in SITES[key] for axis in axes_of_points(key, a)):
        live: Live = (("self", None),)
        x = points(sum(sizes(arguments, live)))
        for call in (calling(key), *([writing(key)] if in_place(key) else [])):
            net = assert_bends(all_at_once(call, arguments, live, axis), x)
            (site,), (entering,) = net.sites, net.preactivations(x)
            assert torch.equal(entering.flatten(1).sort().values, x.sort().values)
            nearest = torch.stack([(x - b).abs().amin(dim=1) for b in site.breakpoints]).amin(dim=0)
            assert_close(rs.boundary_distance(net, x).per_point, nearest, 1e-12)


@pytest.mark.parametrize("key", PAIRWISE)
def test_a_competition_is_a_site_where_the_difference_enters(key: str) -> None:
    def difference(**arguments: Any) -> list[Tensor]:
        return [arguments["self"] - arguments["other"]]

    sets: list[Live] = [(("self", None),), (("other", None),), (("self", None), ("other", None))]
    for arguments, live in itertools.product(SITES[key], sets):
        for axis in range(1 + min(at(arguments, slot).dim() for slot in live)):
            x = points(sum(sizes(arguments, live)))
            net = assert_bends(all_at_once(calling(key), arguments, live, axis), x)
            entering = all_at_once(difference, arguments, live, axis)
            assert_close(net.preactivations(x)[0].flatten(1).sort().values, entering(x).sort().values, 1e-12)
            distances = entering(x).abs() / jacobians(entering, x).norm(dim=2)
            assert_close(rs.boundary_distance(net, x).per_point, distances.amin(dim=1), 1e-8)


@pytest.mark.parametrize("key", BENT)
def test_what_bends_is_itself_at_every_point(key: str) -> None:
    for arguments in SITES[key]:
        live: Live = (("self", None),)
        model, x = one_by_one(calling(key), arguments, live), points(sum(sizes(arguments, live)))
        assert assert_bends(model, x, at_one_point(model, x[:1])).units


@pytest.mark.parametrize("key", [key for key in PLAYED if key not in ("max", "min")])
def test_what_is_played_is_itself_at_all_points_together(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, axis in ((a, axis) for a in SITES[key] for axis in axes_of_points(key, a)):
        live: Live = (("self", None),)
        for call in (calling(key), *([writing(key)] if in_place(key) else [])):
            net = assert_bends(all_at_once(call, arguments, live, axis), points(sum(sizes(arguments, live))))
            assert net.units
    assert capfd.readouterr().err == ""


# the other overloads of the same names

NOT_TRIED = {
    "addmm.dtype addmm.dtype_out baddbmm.dtype baddbmm.dtype_out bmm.dtype bmm.dtype_out mm.dtype mm.dtype_out": "GPU",
    "copy.Dict_Tensor index.list_Tensor": "TorchScript: a dictionary, or the place of a tensor in a list",
    "where.Scalar": "no tensor of floats among its arguments",
}


def other_overloads() -> Iterator[str]:
    tables, left_out = {*AFFINE, *BENT}, " ".join(NOT_TRIED).split()
    for name, suffix in itertools.product(sorted({name_of(key) for key in tables}), ("", "_")):
        for overload in getattr(aten, name + suffix).overloads() if hasattr(aten, name + suffix) else ():
            rest = "" if overload == "default" else f".{overload}"
            takes_tensors = any("Tensor" in str(p.type) for p in schema(name + suffix + rest).arguments)
            if takes_tensors and name + rest not in tables and name + suffix + rest not in left_out:
                yield name + suffix + rest


def made_up(key: str) -> list[Arguments]:
    """Arguments of its own, or from the samples of overloads of the same name, if torch takes them."""
    names = [p.name for p in schema(key).arguments]
    siblings = [k for k in (*SAMPLES, *SITES) if name_of(k) == name_of(key).removesuffix("_")]
    samples = OTHERS.get(key) or [sample for k in siblings for sample in samples_of(k)]
    return [a for sample in samples if works(key, a := {n: sample[n] for n in names if n in sample})]


@pytest.mark.parametrize("key", list(other_overloads()))
def test_any_other_overload_is_refused_or_right(key: str) -> None:
    bent = name_of(key).removesuffix("_") in {name_of(k) for k in BENT}
    calls = [(a, slot) for a in made_up(key) for slot in slots(a) if at(a, slot).numel() > (1 if bent else 0)]
    assert calls
    for arguments, slot in calls:
        model = all_at_once(freely(key), arguments, (slot,), 0) if bent else one_by_one(freely(key), arguments, (slot,))
        x = points(at(arguments, slot).numel())
        if (refusal := refused(model, x)) is None:
            assert_bends(model, x)
        else:
            assert re.search(r"aten\.|never written|does not depend", refusal)


def refused(model: Function, x: Tensor) -> str | None:
    """Why a model is refused, if it is."""
    try:
        rs.trace(model, x)
    except rs.UnsupportedModel as error:
        return str(error)
    return None


# one tensor in several places of a call


def alike(arguments: Arguments, among: Sequence[Slot]) -> list[Slot]:
    """The places of tensors like the first that has one like it."""
    for first in among:
        wanted = at(arguments, first)
        found = [s for s in among if (a := at(arguments, s)).shape == wanted.shape and a.dtype == wanted.dtype]
        if len(found) > 1:
            return found
    return []


def with_one_tensor(key: str) -> list[tuple[Arguments, Live]]:
    """Samples in which one fixed tensor takes the places of all that are like it."""
    shared = []
    for arguments, live in ((a, live) for a in SAMPLES[key] for live in live_sets(key, a)):
        if places := alike(arguments, [slot for slot in slots(arguments) if slot not in live]):
            tensor = at(arguments, places[0]).abs() + 0.5
            shared.append((filled(arguments, dict.fromkeys(places, tensor)), live))
    return shared


@pytest.mark.parametrize("key", [key for key in AFFINE if with_one_tensor(key)])
def test_one_tensor_may_be_several_arguments(key: str) -> None:
    for arguments, live in with_one_tensor(key):
        assert_right(one_by_one(calling(key), arguments, live), sum(sizes(arguments, live)), precision(arguments))


def with_one_value(key: str) -> list[tuple[Arguments, list[Slot]]]:
    sets = ((a, live) for a in SAMPLES[key] for live in live_sets(key, a))
    return [(arguments, places) for arguments, live in sets if (places := alike(arguments, live))]


@pytest.mark.parametrize("key", [key for key in AFFINE if with_one_value(key)])
def test_one_value_may_be_several_arguments(key: str) -> None:
    for arguments, places in with_one_value(key):

        def call(places: list[Slot] = places, **given: Any) -> list[Tensor]:
            return calling(key)(**filled(given, dict.fromkeys(places, at(given, places[0]))))

        assert_right(one_by_one(call, arguments, (places[0],)), at(arguments, places[0]).numel(), precision(arguments))


# functions as people write them


@pytest.mark.parametrize("name", TRACED)
def test_a_function_that_is_traced_is_right(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, shape = TRACED[name]
    x = points(torch.Size(shape).numel())
    assert_bends(lambda x: function(x.reshape(-1, *shape)).reshape(len(x), -1), x)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_that_is_not_piecewise_linear_or_not_known_is_refused_by_name(name: str) -> None:
    with pytest.raises(rs.UnsupportedModel, match=r"aten\.\w+|\.numpy\(\)|\.tolist\(\)"):
        rs.trace(REFUSED[name], points(4))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3, padding=1, stride=2), nn.Conv2d(4, 6, 3, dilation=2, groups=2),
        nn.ConvTranspose2d(4, 6, 3, stride=2), nn.Conv2d(4, 6, 1, bias=False),
    ],
    ids=["strided", "dilated, in groups", "transposed", "1 x 1"],
)  # fmt: skip
def test_convolutions_of_few_points_at_once_are_those_of_all(layer: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    net = rs.trace(nn.Sequential(layer, nn.ReLU()).double(), torch.zeros(1, 4, 9, 8, dtype=torch.float64))
    x = torch.randn(40, 4, 9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    calls, run = list[int](), lifting._folded

    def counted(step: Step, *given: Any) -> list[Any] | None:
        calls.append(len(step.results))
        return run(step, *given)

    monkeypatch.setattr(lifting, "_folded", counted)
    all_together = net(x)
    assert len(calls) == 1
    monkeypatch.setattr(lifting, "COLUMNS", 1)
    assert torch.equal(net(x), all_together)
    assert len(calls) == 1 + -(-40 // torch.get_num_threads())
