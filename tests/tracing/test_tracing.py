"""Tracing: what it finds, that it is the model, what it leaves alone and what it refuses."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cases import CASES, Case, case, mlp
from oracles import hooked_inputs
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

import regionscope as rs
from regionscope.datasets.sets import mnist_sample
from regionscope.geometry.sweep import exact
from regionscope.measures.noise import constant_in_their_regions
from regionscope.tracing import operations
from regionscope.tracing.forward import Forward
from regionscope.tracing.network import kept_with
from regionscope.tracing.undisturbed import evaluated


@pytest.fixture(params=CASES)
def each(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


# what it finds


def test_sites_have_their_kinds_and_units(each: Case) -> None:
    net = rs.trace(each.model, each.points[:1])
    assert tuple(site.kind for site in net.sites) == each.kinds
    assert net.units == each.units
    assert net.piecewise_linear
    assert net.input_shape == tuple(each.points.shape[1:])
    assert net.output_shape == tuple(each.model(each.points).shape[1:])
    assert len({site.name for site in net.sites}) == len(net.sites)


def test_the_network_is_affine_inside_each_pattern(each: Case) -> None:
    check = rs.trace(each.model, each.points).verify(each.points, generator=torch.Generator().manual_seed(0))
    assert check.holds, check
    assert (check.radius > 0).all()


def test_the_network_gives_what_the_model_gives(each: Case) -> None:
    net = rs.trace(each.model, each.points[:1])
    for n in (1, 2, len(each.points)):
        assert torch.allclose(net(each.points[:n]), each.model(each.points[:n]), rtol=1e-5, atol=1e-6)


def test_preactivations_do_not_depend_on_the_batch_size(each: Case) -> None:
    net = rs.trace(each.model, each.points)
    whole = net.preactivations(each.points)
    assert [tuple(v.shape) for v in whole] == [(len(each.points), *site.shape) for site in net.sites]
    for batch_size in (1, 2, 100):
        assert net.patterns(each.points, batch_size=batch_size).equal(net.patterns(each.points))
        for a, b in zip(whole, net.preactivations(each.points, batch_size=batch_size), strict=True):
            assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["dense", "dense_float64", "conv", "shared_module", "hard_tanh", "batch_norm"])
def test_preactivations_are_what_enters_the_activation_modules(name: str) -> None:
    made = case(name)
    expected = hooked_inputs(made.model, made.points, (nn.ReLU, nn.LeakyReLU, nn.Hardtanh))
    for a, b in zip(rs.trace(made.model, made.points).preactivations(made.points), expected, strict=True):
        assert torch.equal(a, b)


def test_a_frozen_copy_is_double_and_stands_alone(each: Case) -> None:
    net = rs.trace(each.model, each.points)
    frozen = net.frozen()
    before = frozen(each.points.double())
    assert before.dtype == torch.float64
    assert torch.allclose(before.to(each.points.dtype), each.model(each.points), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        for p in each.model.parameters():
            p.add_(1.0)
    assert torch.equal(frozen(each.points.double()), before)
    assert torch.allclose(net(each.points), each.model(each.points), rtol=1e-5, atol=1e-5), "follows the model"


def test_names_are_paths_with_the_number_of_the_call() -> None:
    assert [s.name for s in rs.trace(case("shared_module").model, torch.zeros(1, 2)).sites] == ["act:0", "act:1"]
    assert [s.name for s in rs.trace(case("residual").model, torch.zeros(1, 3)).sites] == ["relu:0", "relu:1", "relu:2"]
    nested = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.MaxPool1d(2))
    names = [s.name for s in rs.trace(nested, torch.zeros(1, 1, 2)).sites]
    assert names == ["0.1:0", "1:0/1"]


def test_names_tell_sites_apart_whatever_modules_are_called() -> None:
    model = nn.Sequential()
    for name in ("a/1", "a:0", "a", "relu"):
        model.add_module(name, nn.ReLU())
    names = [s.name for s in rs.trace(lambda x: F.relu(model(model(x))).amax(1), torch.randn(1, 4)).sites]
    assert len(names) == len(set(names)) == 11


def test_data_that_is_put_in_the_place_of_other_data_is_followed() -> None:
    def model(x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        h.data = F.relu(x)
        return 2 * h

    x = torch.randn(5, 3)
    net = rs.trace(model, x)
    assert net.units == 3
    assert torch.equal(net(x), model(x))


def test_whoever_runs_a_program_sees_its_values_and_may_change_them() -> None:
    made = case("dense")
    net = rs.trace(made.model, made.points)
    seen: dict[int, Tensor] = {}
    net.program.run(made.points, seen.__setitem__)
    for site, values in zip(net.sites, net.preactivations(made.points), strict=True):
        assert torch.equal(seen[site.entry].flatten(1), values)
    last = net.sites[-1].exit
    *_, out = net.program.run(made.points, lambda value, tensor: 0 * tensor if value == last else None)
    *_, bias = made.model.parameters()
    assert torch.equal(out.flatten(1), bias.expand(len(made.points), -1))


def test_layers_count_activations_on_the_longest_path() -> None:
    assert [s.layer for s in rs.trace(case("residual").model, torch.zeros(1, 3)).sites] == [1, 2, 3]
    pool = rs.trace(case("max_pool").model, torch.zeros(1, 1, 8, 8))
    assert [s.layer for s in pool.sites] == [1, 2, 2, 2, 2, 3, 3]
    assert pool.layers == 3

    def branches(x: Tensor) -> Tensor:
        return F.relu(F.relu(x - 1) + x.abs())

    assert [s.layer for s in rs.trace(branches, torch.zeros(1, 2)).sites] == [1, 1, 2]


def test_patterns_count_the_breakpoints_below() -> None:
    net = rs.trace(nn.Hardtanh(), torch.zeros(1, 1))
    values = torch.tensor([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    assert net.patterns(values).flatten().tolist() == [0, 0, 1, 1, 2]


def test_gradients_flow_through_a_network() -> None:
    made = case("dense")
    x = made.points.clone().requires_grad_()
    *_, out = rs.trace(made.model, made.points).program.run(x)
    out.sum().backward()
    ours, x.grad = x.grad, None
    made.model(x).sum().backward()
    assert ours is not None and x.grad is not None
    assert torch.allclose(ours, x.grad)


def test_a_printed_network_is_a_table() -> None:
    lines = str(rs.trace(mlp(2, 8, 1), torch.zeros(1, 2))).splitlines()
    assert lines[0].split() == ["layer", "site", "kind", "breakpoints", "shape", "units"]
    assert lines[1].split() == ["1", "1:0", "relu", "0", "8", "8"]
    assert lines[2] == "Network(1 site, 8 units, 1 layer, piecewise linear)"


def test_verify_gives_no_verdict_on_a_boundary_and_says_so() -> None:
    net = rs.trace(nn.ReLU(), torch.zeros(1, 1))
    check = net.verify(torch.zeros(2, 1))
    assert check.radius.tolist() == [0, 0]
    assert not check.holds
    assert repr(check).startswith("Affinity(verdict: none; reason: all 2 points lie on boundaries of ':0', inside no")
    some = net.verify(torch.tensor([[0.0], [1.0]]))
    assert some.holds
    assert some.reason == "affine to rounding at 1 of 2 points; the others lie on boundaries of ':0', inside no region"


def test_verify_says_what_is_not_affine() -> None:
    check = rs.trace(nn.GELU(), torch.zeros(1, 1), allow_smooth=True).verify(torch.ones(3, 1))
    assert "verdict: does not hold; reason: not affine at 3 of 3 points: the defect is up to 0." in repr(check)


def test_verify_of_images_with_a_blank_background_says_where_competitors_tie() -> None:
    x = mnist_sample()[0][:4]
    check = rs.trace(nn.Sequential(nn.Conv2d(1, 2, 5), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 10)), x).verify(x)
    assert check.radius.tolist() == [0] * 4 and not check.holds
    assert "all 4 points lie on boundaries of '1:0/1', '1:0/2', inside no region: there is" in check.reason
    assert rs.trace(nn.MaxPool2d(2), x).verify(x + 0.01 * torch.rand_like(x)).holds, "as the advice is"


# what it takes


def test_the_same_function_in_any_style_has_the_same_sites() -> None:
    made = case("conv")
    compiled = torch.compile(made.model, backend="eager")
    for other in (compiled, nn.DataParallel(made.model), made.model.forward, lambda x: made.model(x)):
        net = rs.trace(other, made.points)
        assert tuple(s.kind for s in net.sites) == made.kinds
        assert torch.equal(net(made.points), made.model(made.points))


def test_dense_as_convolution_has_the_same_preactivations() -> None:
    dense = case("dense").model
    assert isinstance(dense, nn.Sequential)
    as_conv = nn.Sequential(nn.Unflatten(1, (4, 1, 1)), *map(convolution, dense), nn.Flatten())
    x = torch.randn(5, 4)
    ours = rs.trace(as_conv, x).preactivations(x)
    for a, b in zip(ours, rs.trace(dense, x).preactivations(x), strict=True):
        assert torch.allclose(a.flatten(1), b, atol=1e-6)


def convolution(layer: nn.Module) -> nn.Module:
    if not isinstance(layer, nn.Linear):
        return layer
    conv = nn.Conv2d(layer.in_features, layer.out_features, 1)
    conv.load_state_dict({"weight": layer.weight[:, :, None, None], "bias": layer.bias})
    return conv


AFFINE: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "upsampling": (nn.Upsample(scale_factor=2, mode="bilinear"), (1, 3, 3)),
    "padding": (nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d(1), nn.CircularPad2d(1)), (1, 3, 3)),
    "pixel shuffle": (nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)), (4, 2, 2)),
    "unfold and fold": (nn.Sequential(nn.Unfold(2), nn.Fold(3, 2)), (1, 3, 3)),
    "instance norm with its statistics": (nn.InstanceNorm2d(2, track_running_stats=True).eval(), (2, 3, 3)),
    "einsum": (lambda x: torch.einsum("nij,jk->nki", x, torch.arange(6.0).view(3, 2)), (2, 3)),
    "pieces": (lambda x: torch.cat([p * i for i, p in enumerate(x.chunk(3, dim=1))], 1).roll(1, 1), (6,)),
    "statistics of one point": (lambda x: x - x.mean(1, keepdim=True) + x.cumsum(1) / 3, (6,)),
    "fixed mask": (lambda x: torch.where(torch.tensor([True, False, True]), x, -2 * x), (3,)),
    "squeezing": (lambda x: x.unsqueeze(1).squeeze() * 2, (3,)),
    "stacked": (lambda x: torch.stack([x, 2 * x]).sum(0), (3,)),
    "a tensor's data": (lambda x: (x * 2).data + 1, (3,)),
    "detached": (lambda x: (x * 2).detach() + 1, (3,)),
}


@pytest.mark.parametrize("name", AFFINE)
def test_affine_functions_have_no_sites(name: str) -> None:
    function, shape = AFFINE[name]
    x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    net = rs.trace(function, x)
    assert net.sites == ()
    assert net.verify(x).holds
    assert torch.allclose(net(x[:1]), function(x)[:1], atol=1e-6)


def test_an_input_written_in_place_is_not_the_users() -> None:
    x = torch.randn(3, 2)
    before = x.clone()
    net = rs.trace(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 1)), x)
    net.preactivations(x)
    assert torch.equal(x, before)


def test_a_batch_may_be_a_tuple_or_dict() -> None:
    model, x = mlp(2, 3, 1), torch.randn(4, 2)
    for batch in ((x, torch.zeros(4)), [x], {"pixels": x, "label": torch.zeros(4)}):
        assert rs.trace(model, batch).units == 3


# what it leaves alone


class Counting(nn.Module):
    """Counts its calls in a buffer, as batch norm does."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp(2, 3, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.inner(x)  # type: ignore[no-any-return]


def state(model: nn.Module) -> dict[str, Any]:
    return {
        "tensors": {name: t.clone() for name, t in model.state_dict().items()},
        "versions": {name: (id(p), p.requires_grad, p.dtype, p.device) for name, p in model.named_parameters()},
        "grads": [p.grad for p in model.parameters()],
        "modes": [m.training for m in model.modules()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()],
        "global hooks": [
            len(nn.modules.module._global_forward_hooks), len(nn.modules.module._global_forward_pre_hooks)
        ],
        "random": torch.get_rng_state(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
    }  # fmt: skip


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    for key in before:
        assert all(
            torch.equal(a, b) if isinstance(a, Tensor) else a == b
            for a, b in zip(flat(before[key]), flat(after[key]), strict=True)
        ), key


def flat(thing: Any) -> list[Any]:
    return list(thing.values()) if isinstance(thing, dict) else thing if isinstance(thing, list) else [thing]


def test_tracing_and_reading_leave_the_model_as_it_was(each: Case) -> None:
    before = state(each.model)
    points = each.points.clone()
    net = rs.trace(each.model, each.points)
    net.preactivations(each.points)
    net.verify(each.points, generator=torch.Generator())
    assert_same(before, state(each.model))
    assert torch.equal(points, each.points)


class Watching(nn.Module):
    """Sets a hook at its first call that collects what it sees, as models do that return all hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.seen, self.cache = nn.Linear(2, 2), [], {}  # type: ignore[var-annotated]

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "ready"):
            self.inner.register_forward_hook(lambda module, arguments, result: self.seen.append(result))
            self.ready = True
        self.seen.clear()
        self.cache["last"] = last = F.relu(self.inner(x))
        return torch.stack(self.seen, dim=1).sum(1) + last


def test_hooks_lists_and_dicts_that_forward_fills_are_emptied() -> None:
    model, x = Watching(), torch.randn(3, 2)
    expected = F.relu(model.inner(x)) + model.inner(x)
    net = rs.trace(model, x)
    assert not model.inner._forward_hooks and model.seen == [] and model.cache == {} and not hasattr(model, "ready")
    assert torch.allclose(model(x), expected) and torch.allclose(net(x), expected)


def test_an_lstm_is_seen_through_its_gates() -> None:
    model, x = nn.LSTM(3, 4, batch_first=True), torch.randn(5, 2, 3)
    flags = torch.backends.mkldnn.enabled, torch.backends.cuda.flash_sdp_enabled()
    net = rs.trace(model, x[:1], output=0, allow_smooth=True)
    assert (torch.backends.mkldnn.enabled, torch.backends.cuda.flash_sdp_enabled()) == flags
    assert [site.kind for site in net.sites] == ["sigmoid", "sigmoid", "tanh", "sigmoid", "tanh"] * 2
    assert torch.allclose(net(x), model(x)[0], atol=1e-6)


def test_counters_keep_their_count() -> None:
    model = Counting()
    rs.trace(model, torch.zeros(1, 2))
    assert model.calls == 0


@pytest.mark.parametrize("train", [False, True])
def test_a_refused_model_is_left_as_it_was(train: bool) -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3), nn.Softmax(dim=-1)).train(
        train
    )
    x = torch.randn(4, 2)
    before = state(model)
    with pytest.raises(rs.UnsupportedModel):
        rs.trace(model, x)
    assert_same(before, state(model))


# what it refuses


class Head(nn.Module):
    def __init__(self, head: nn.Module | Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.body = mlp(4, 6, 6)
        self.head = head if isinstance(head, nn.Module) else Wrapped(head)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.body(x))


class Wrapped(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


SPARSE = torch.eye(6).to_sparse()
REFUSED: dict[str, tuple[nn.Module | Callable[[Tensor], Any], str]] = {
    "softmax": (nn.Softmax(dim=-1), r"'head' \(Softmax\).*until='head'"),
    "layer norm": (nn.LayerNorm(6), "'head'"),
    "product": (lambda x: x * x.flip(1), "multiplies input-dependent values"),
    "gate": (nn.GLU(), "multiplies"),
    "matrix product": (lambda x: x.unsqueeze(1) @ x.unsqueeze(2), "multiplies"),
    "square": (lambda x: x**2, "multiplies"),
    "division": (lambda x: 1 / x, "neither|divides"),
    "norm": (lambda x: x / x.norm(dim=1, keepdim=True), "'head'"),
    "comparison": (lambda x: torch.where(x > 0, x, 0.1 * x), "compares"),
    "sign": (torch.sign, "compares|continuous"),
    "rounding": (torch.round, "not continuous"),
    "sorting": (lambda x: x.sort(dim=1).values, "neither"),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x.view(-1, 1, 3, 2), x.view(-1, 1, 3, 2), x.view(-1, 1, 3, 2)),
        "'head'",
    ),
}
ALWAYS_REFUSED: dict[str, tuple[nn.Module | Callable[[Tensor], Any], str]] = {
    "batch norm in train mode": (nn.BatchNorm1d(6).train(), r"train mode.*model.eval\(\)"),
    "dropout in train mode": (nn.Dropout().train(), "random"),
    "noise": (lambda x: x + torch.randn(6), "random"),
    "random slopes": (nn.RReLU().train(), r"random numbers.*model.eval\(\)"),
    "control flow": (lambda x: x if x.sum() > 0 else -x, "data-dependent|compares"),
    "a number read": (lambda x: x * float(x[0, 0]), "data-dependent"),
    "batch size in the values": (lambda x: x * len(x), "other points of its batch"),
    "points mixed": (lambda x: x - x.mean(0), "other points"),
    "a sum over the batch": (lambda x: x.sum(), "points of a batch are mixed|one row"),
    "NumPy": (lambda x: x + torch.from_numpy(np.exp(x.detach().numpy())), "computed outside torch"),
    "no dependence": (lambda x: torch.zeros(len(x), 2), "does not depend on its input"),
    "points second": (lambda x: x.t(), "one row for every point"),
    "tuple": (lambda x: (x, x), "returns 2 values; pick one with output=0"),
    "dict": (lambda x: {"logits": x}, "dict with 'logits'; pick one with output="),
    "text": (lambda x: "yes", "returns str, not a tensor"),
    "out": (lambda x: torch.add(x, 1, out=torch.zeros_like(x)), "out="),
    "a sparse matrix": (lambda x: (SPARSE @ x.t()).t(), r"takes a tensor that is not dense.*\.to_dense\(\)"),
    "made sparse": (lambda x: (torch.eye(6).to_sparse() @ x.t()).t(), r"makes a tensor that is not dense"),
    "a state": (spectral_norm(nn.Linear(6, 6)).train(), r"forward changes 'head\..*_u' and computes with it"),
    "one point alone": (lambda x: x + 0 * x[1], "not one point alone"),
    "several at once": (lambda x: torch._foreach_add_([x], 1.0) or x, "several tensors at once"),
    "NumPy at batches only": (
        lambda x: x + (torch.from_numpy(np.zeros_like(x.detach().numpy())) if len(x) > 1 else torch.zeros_like(x)),
        "computed outside torch",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_piecewise_linear_is_refused_by_name(name: str) -> None:
    head, match = REFUSED[name]
    with pytest.raises(rs.UnsupportedModel, match=match):
        rs.trace(Head(head).eval(), torch.randn(2, 4))
    net = rs.trace(Head(head).eval(), torch.randn(2, 4), until="head")
    assert net.piecewise_linear
    assert net.output_shape == (6,)


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "sorting"])
def test_what_is_not_piecewise_linear_passes_when_smooth_is_allowed(name: str) -> None:
    torch.manual_seed(0)
    model, x = Head(REFUSED[name][0]).eval(), torch.randn(5, 4)
    net = rs.trace(model, x[:2], allow_smooth=True)
    assert not net.piecewise_linear
    assert net.sites[0].kind == "relu"
    assert torch.allclose(net(x), model(x), atol=1e-6, equal_nan=True)  # fused attention is rounded in another way


@pytest.mark.parametrize("name", ALWAYS_REFUSED)
def test_what_cannot_be_followed_is_always_refused(name: str) -> None:
    head, match = ALWAYS_REFUSED[name]
    for allow_smooth in (False, True):
        with pytest.raises(rs.UnsupportedModel, match=match):
            rs.trace(Head(head), torch.randn(2, 4), allow_smooth=allow_smooth)


def test_a_custom_operation_is_refused_by_name() -> None:
    @torch.library.custom_op("regionscope_test::relu", mutates_args=())
    def custom(x: Tensor) -> Tensor:
        return x.clamp_min(0)

    with pytest.raises(rs.UnsupportedModel, match=r"'head'.*regionscope_test.relu.*neither affine"):
        rs.trace(Head(custom), torch.randn(2, 4))


def test_a_buffer_that_keeps_the_input_is_refused() -> None:
    model = Counting()
    model.forward = lambda x: model.calls.copy_(x.sum()) + model.inner(x)  # type: ignore[method-assign]
    with pytest.raises(rs.UnsupportedModel, match="outlives the call"):
        rs.trace(model, torch.randn(2, 2))
    assert model.calls == 0


def test_one_output_of_several_can_be_picked() -> None:
    x = torch.randn(2, 4)
    assert rs.trace(Head(lambda x: {"logits": x, "loss": 0}), x, output="logits").output_shape == (6,)
    assert rs.trace(Head(lambda x: (x[:, :2], x)), x, output=0).output_shape == (2,)


def two_headed(x: Tensor) -> dict[str, Tensor]:
    h = F.relu(x - 1)
    return {"scores": h + x, "shares": torch.softmax(h, dim=1), "deep": F.relu(h - 1), "best": h.max(dim=1).values}


def test_what_the_picked_output_does_not_need_is_left_out() -> None:
    x = torch.randn(3, 4)
    for output, sites in {
        "scores": ["relu:0"],
        "deep": ["relu:0", "relu:1"],
        "best": ["relu:0", "max:0/1", "max:0/2"],
    }.items():
        for allow_smooth in (False, True):
            net = rs.trace(two_headed, x, output=output, allow_smooth=allow_smooth)
            assert [site.name for site in net.sites] == sites
            assert net.piecewise_linear and net.verify(x).holds
    with pytest.raises(rs.UnsupportedModel, match="_softmax"):
        rs.trace(two_headed, x, output="shares")
    assert not rs.trace(two_headed, x, output="shares", allow_smooth=True).piecewise_linear


def half_random() -> Tensor:
    mask = torch.ones(4)
    mask[:2].bernoulli_()
    return mask


NOISE: dict[str, Callable[[Tensor], Tensor]] = {
    "a factor": lambda x: F.relu(x) * torch.rand(4),
    "of the same shape": lambda x: F.relu(x + torch.randn_like(x)),
    "written into a part": lambda x: F.relu(x) * half_random(),
    "written among the values": lambda x: F.relu(x).index_fill_(1, torch.tensor([0]), torch.rand([])),
    "an order": lambda x: F.relu(x)[:, torch.randperm(4)],
    "read": lambda x: F.relu(x) if torch.rand([]) < 0.5 else -F.relu(x),
    "read by NumPy": lambda x: F.relu(x) * float(torch.rand(1).numpy()[0]),
    "of attention": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], dropout_p=0.5)[:, 0],
}


@pytest.mark.parametrize("name", NOISE)
def test_random_numbers_that_reach_the_output_are_refused(name: str) -> None:
    with pytest.raises(rs.UnsupportedModel, match=r"random numbers.*model.eval\(\)"):
        rs.trace(NOISE[name], torch.randn(2, 4), allow_smooth=True)


def test_random_numbers_that_do_not_reach_the_output_do_not_matter() -> None:
    def idle(x: Tensor) -> Tensor:
        h = F.relu(x)
        chance, mask = torch.rand([]), torch.rand(4)
        _ = h * mask, torch.randn_like(h), chance < 0.5
        return h * mask.fill_(2.0)

    net = rs.trace(idle, torch.randn(2, 4))
    assert net.units == 4 and net.verify(torch.randn(3, 4)).holds


def test_numbers_that_numpy_reads_of_constants_are_constants() -> None:
    net = rs.trace(lambda x: F.relu(x) * float(torch.full((1,), 3.0).numpy()[0]), torch.randn(2, 4))
    assert torch.equal(net(torch.ones(1, 4)), torch.full((1, 4), 3.0))


def test_a_model_that_asks_for_autocast_is_traced_in_the_dtype_of_its_weights() -> None:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def cast(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y: Tensor = inner(x)
        return y

    x = torch.randn(5, 4)
    net = rs.trace(cast, x)
    assert cast(x).dtype is torch.bfloat16 and net.output_shape == (2,)
    torch.testing.assert_close(net(x), inner(x).detach())


def test_positions_may_choose_from_a_table_where_smooth_is_allowed() -> None:
    table, x = torch.randn(4, 3), torch.randn(6, 4)
    net = rs.trace(lambda x: table[x.argmax(dim=1)] + x[:, :3].relu(), x, allow_smooth=True)
    torch.testing.assert_close(net(x), table[x.argmax(dim=1)] + x[:, :3].relu())


def test_an_array_is_an_example_in_the_dtype_of_the_model() -> None:
    net = rs.trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), np.ones((2, 4)))
    assert net.dtype is torch.float32 and net.units == 3


def test_an_argument_that_the_table_does_not_name_stands_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(x: Tensor) -> Tensor:
        return torch.add(x, x.relu(), alpha=2)

    assert rs.trace(doubled, torch.randn(2, 4)).units == 4
    known = operations.AFFINE["add.Tensor"]
    monkeypatch.setitem(operations.AFFINE, "add.Tensor", operations.Affine(known.groups, frozenset(), known.outputs))
    with pytest.raises(rs.UnsupportedModel, match=r"aten\.add\.Tensor"):
        rs.trace(doubled, torch.randn(2, 4))


def test_two_who_look_at_a_model_leave_it_in_its_mode_when_the_last_is_done() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train()
    with evaluated(model):
        with evaluated(model):
            assert not model[1].training
        assert not model.training and not model[1].training
    assert model.training and model[1].training


def test_positions_of_maxima_may_be_used_where_smooth_is_allowed() -> None:
    def gated(x: Tensor) -> Tensor:
        h = F.relu(x)
        return h * (torch.arange(4) == h.max(dim=1, keepdim=True).indices)

    x = torch.randn(6, 4)
    net = rs.trace(gated, x, allow_smooth=True)
    assert [site.kind for site in net.sites] == ["relu", "max", "max"] and not net.piecewise_linear
    assert torch.equal(net(x), gated(x))

    def jumps(x: Tensor) -> Tensor:
        return x + x.max(dim=1, keepdim=True).indices

    with pytest.raises(rs.UnsupportedModel, match=r"positions.*allow_smooth=True"):
        rs.trace(jumps, x)


def test_until_must_name_a_module_that_is_called() -> None:
    model = Head(nn.Identity())
    with pytest.raises(ValueError, match=r"no module of the model; it has body, body.0"):
        rs.trace(model, torch.randn(2, 4), until="tail")
    model.unused = nn.Identity()
    with pytest.raises(rs.UnsupportedModel, match="never called"):
        rs.trace(model, torch.randn(2, 4), until="unused")


def test_a_transformer_is_seen_through_the_units_of_its_mlp() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with pytest.raises(rs.UnsupportedModel, match="self_attn"):
        rs.trace(layer, torch.randn(2, 5, 8))
    net = rs.trace(layer, torch.randn(2, 5, 8), allow_smooth=True)
    assert [(s.kind, s.shape) for s in net.sites] == [("relu", (5, 16))]
    x = torch.randn(4, 5, 8)
    assert torch.allclose(net(x), layer(x), atol=1e-5)


PICTURE = torch.randn(1, 2, 5, 5, generator=torch.Generator().manual_seed(0))
BY_THEMSELVES: dict[str, Callable[[Tensor], Tensor]] = {
    "statistics of each point": lambda x: F.instance_norm(x.view(-1, 2, 3)),
    "places in a picture": lambda x: F.grid_sample(
        PICTURE.expand(len(x), -1, -1, -1), x.view(-1, 1, 3, 2).tanh(), align_corners=False
    ),
    "places in itself": lambda x: F.grid_sample(x.view(-1, 1, 2, 3), x.view(-1, 1, 3, 2).tanh(), align_corners=False),
}


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_what_is_smooth_is_done_at_each_point_by_itself(name: str) -> None:
    model, x = BY_THEMSELVES[name], torch.randn(7, 6)
    net = rs.trace(model, x[:1], allow_smooth=True)
    assert torch.allclose(net(x), model(x), atol=1e-6)


def test_entries_that_interlock_may_be_written() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.cat([x, 2 * x], dim=1).as_strided((len(x), 2, 3), (8, 3, 2))  # 0, 2, 4 and 3, 5, 7: none twice
        y += 1
        return torch.relu(y)

    x = torch.randn(5, 4)
    net = rs.trace(model, x[:1])
    assert torch.equal(net(x), model(x))
    assert net.units == 6


def test_an_activation_of_nothing_is_no_site() -> None:
    net = rs.trace(lambda x: torch.cat([torch.relu(x), torch.relu(x[:, :0])], dim=1), torch.zeros(1, 4))
    assert [site.units for site in net.sites] == [4]
    assert net.patterns(torch.ones(2, 4)).tolist() == [[1] * 4] * 2


# bad input


def test_an_error_of_the_model_itself_comes_through() -> None:
    def broken(x: Tensor) -> Tensor:
        raise IndexError("no such word")

    with pytest.raises(IndexError, match="no such word"):
        rs.trace(broken, torch.zeros(3, 4))


def test_bad_examples_are_named() -> None:
    model = mlp(4, 3, 1)
    for example, error, match in (
        (torch.zeros(0, 4), ValueError, "non-empty batch"),
        (torch.zeros(4), ValueError, "non-empty batch"),
        (torch.zeros(2, 4, dtype=torch.long), TypeError, "must be floats"),
        (torch.zeros(2, 4).double(), TypeError, r"float64.*the model is torch.float32.*example.to"),
        (torch.zeros(2, 4, device="meta"), TypeError, "on meta, the model is torch.float32 on cpu"),
        (torch.full((2, 4), torch.nan), ValueError, "NaN"),
        ("data", TypeError, "must be a tensor"),
    ):
        with pytest.raises(error, match=match):
            rs.trace(model, example)
    with pytest.raises(TypeError, match="must be a module or a callable"):
        rs.trace(3, torch.zeros(1, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_bad_weights_are_named(value: float) -> None:
    model = mlp(4, 3, 1)
    model[2].weight.data[0, 1] = value  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"'2.weight' of the model holds NaN or infinite values"):
        rs.trace(model, torch.randn(2, 4))


def test_bad_points_are_named() -> None:
    net = rs.trace(mlp(784, 3, 1), torch.zeros(1, 784))
    for x, error, match in (
        (torch.zeros(10, 28, 28), ValueError, r"points must be \(n, 784\), got \(10, 28, 28\); flatten images first"),
        (torch.zeros(10, 5), ValueError, r"got \(10, 5\)"),
        (torch.zeros(0, 784), ValueError, "got none"),
        (torch.zeros(1, 784).double(), TypeError, r"points are torch.float64.*convert"),
        (torch.full((1, 784), torch.inf), ValueError, "NaN or infinite"),
        (np.zeros((1, 784), int), TypeError, "must be a tensor or an array of floats .*, got an array of int64"),
        ([[0.0] * 784], TypeError, "must be a tensor or an array of floats .*, got list"),
    ):
        with pytest.raises(error, match=match):
            net.preactivations(x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        net.preactivations(torch.zeros(1, 784), batch_size=0)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        net.patterns(torch.zeros(1, 784), batch_size=0)


def test_a_model_can_be_copied_after_tracing() -> None:
    model = mlp(2, 3, 1)
    rs.trace(model, torch.zeros(1, 2))
    assert copy.deepcopy(model).state_dict().keys() == model.state_dict().keys()


def test_a_loop_over_the_points_is_traced_if_each_is_taken_alone() -> None:
    layer, x = nn.Linear(5, 4), torch.randn(3, 5)
    net = rs.trace(lambda x: torch.stack([torch.relu(layer(p)) for p in x]), x)
    assert (net.units, net.layers) == (4, 1)
    assert torch.allclose(net(x), torch.relu(layer(x)))
    for mixing in (
        lambda x: torch.stack([torch.relu(layer(p) - layer(x[0])) for p in x]),
        lambda x: torch.stack([torch.relu(layer(p)) * (i + 1) for i, p in enumerate(x)]),
    ):
        with pytest.raises(rs.UnsupportedModel, match="depend on the other points"):
            rs.trace(mixing, x)


def test_only_modules_of_torch_as_they_are_are_not_tried_further() -> None:
    def dense() -> nn.Sequential:
        return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))

    class Mine(nn.Linear):
        pass

    def familiar(model: nn.Module) -> bool:
        return Forward(model, None, None).familiar

    assert familiar(dense())
    hooked, replaced = dense(), dense()
    hooked[1].register_forward_hook(lambda module, arguments, result: result + 1)
    replaced[1].forward = lambda x: x.relu() if len(x) < 50 else x
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 4)))
    others = (nn.Sequential(Mine(2, 4)), hooked, replaced, normed, nn.Sequential(nn.MultiheadAttention(2, 1)))
    assert not any(map(familiar, others))
    with pytest.raises(rs.UnsupportedModel, match="depend on the other points"):
        rs.trace(replaced, torch.zeros(1, 2))
    everywhere = nn.modules.module.register_module_forward_hook(lambda module, arguments, result: None)
    try:
        assert not familiar(dense())
    finally:
        everywhere.remove()


def test_images_without_channels_are_refused_although_one_is_taken() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU())
    with pytest.raises((RuntimeError, rs.UnsupportedModel)):
        rs.trace(model, torch.zeros(3, 5, 5))


# what is kept with a network


def test_what_is_kept_with_a_network_is_made_once_and_left_behind_by_copies() -> None:
    net = rs.trace(mlp(2, 3, 1), torch.zeros(1, 2))
    made = list[object]()

    def found() -> int:
        made.append(None)
        return len(made)

    assert [kept_with(net, found, found), kept_with(net, found, found), kept_with(net, (found, 1), found)] == [1, 1, 2]
    assert kept_with(net.frozen(), found, found) == 3


def test_sweeps_and_measures_keep_different_things_with_a_network() -> None:
    net = rs.trace(mlp(2, 3, 1).double(), torch.ones(1, 2).double())
    values = net.preactivations(torch.ones(1, 2).double())
    places = torch.tensor([[0, net.sites[0].entry, 0, -1]])
    copied, frozen = exact(net), net.frozen()
    for each in (copied, frozen):
        assert constant_in_their_regions(each, values, places, otherwise=True).tolist() == [False]
    assert exact(copied) is copied
    assert exact(frozen) is not frozen
