"""The valid forms of the papers' inequalities hold on every network, the printed ones fail on counterexamples."""

import json
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from cases import CASES, case, mlp
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import regionscope as rs
from regionscope.inequalities import representation
from regionscope.inequalities.bound import ROUNDING, Samples, standard_errors, verdict
from regionscope.inequalities.chains import chain_of

NETWORKS = 8  # of each drawn shape


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices are faster so, above all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(found: list[rs.Bound], reference: str) -> tuple[rs.Bound, rs.Bound]:
    """The printed and the valid form of an inequality."""
    printed, valid = [b for b in found if b.reference == reference]
    assert printed.printed and not valid.printed
    return printed, valid


def set_to(model: nn.Sequential, *weights: Sequence[Sequence[float]] | Tensor, biases: Sequence[float] = ()) -> None:
    """Fill the linear layers with weights, and with a bias each (0 if not given)."""
    layers = [m for m in model if isinstance(m, nn.Linear)]
    for k, (layer, weight) in enumerate(zip(layers, weights, strict=True)):
        layer.weight.data = torch.as_tensor(weight, dtype=layer.weight.dtype)
        layer.bias.data.fill_(biases[k] if k < len(biases) else 0.0)


def assert_valid_forms_hold(found: list[rs.Bound]) -> None:
    for b in found:
        if b.printed or b.note.startswith("not available") or b.reference == "HR Cor. 8":
            continue  # the last holds for the mean over noise, not for every draw: it has a test of its own
        xi = b.terms["xi"].value if "xi" in b.terms else 0.0  # may be nearly all of what it is taken off
        assert b.left <= b.right + ROUNDING * (abs(b.left) + abs(b.right) + xi), b
        assert b.holds is not False, b


shapes = st.tuples(
    st.integers(1, 20), st.lists(st.integers(1, 64), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 2**31)
)


def check_networks(shape: tuple[int, list[int], int, int], networks: int) -> None:
    inputs, widths, outputs, seed = shape
    generator = torch.Generator().manual_seed(seed)
    model = mlp(inputs, *widths, outputs).double()
    x = torch.randn(4, inputs, generator=generator, dtype=torch.float64)
    net = rs.trace(model, x)
    for _ in range(networks):
        scale, sigma, eta, eps = (10 ** (3 * torch.rand(4, generator=generator) - 1.5)).tolist()
        for p in model.parameters():
            size = scale / math.sqrt(p.shape[-1]) if p.dim() > 1 else scale / 3
            p.data = size * torch.randn(p.shape, generator=generator, dtype=p.dtype)
        points = x * 10 ** float(2 * torch.rand(1, generator=generator) - 1)
        found = rs.bounds(net, points, sigma=sigma, eta=eta, eps=eps, draws=2, generator=generator)
        assert_valid_forms_hold(found)


@settings(max_examples=40)
@given(shapes)
def test_the_valid_forms_hold_on_hundreds_of_networks_in_thousands_of_draws(
    shape: tuple[int, list[int], int, int],
) -> None:
    check_networks(shape, NETWORKS)


@pytest.mark.exhaustive
@settings(max_examples=2000)
@given(shapes)
def test_the_valid_forms_hold_on_many_more_networks(shape: tuple[int, list[int], int, int]) -> None:
    check_networks(shape, 4 * NETWORKS)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("constants", ["product", "data"])
def test_the_valid_forms_hold_on_every_case(name: str, constants: str) -> None:
    made = case(name)
    net = rs.trace(made.model, made.points)
    if not net.sites or not net.piecewise_linear:
        with pytest.raises(ValueError, match="piecewise-linear networks with at least one activation"):
            rs.bounds(net, made.points)
        return
    found = rs.bounds(net, made.points, sigma=0.3, eps=0.2, constants_from=constants)
    assert_valid_forms_hold(found)
    assert json.loads(json.dumps([b.to_dict() for b in found], allow_nan=False))


def test_masks_break_the_printed_gradient_constant() -> None:
    model = mlp(1, 2, 1, 1)
    set_to(model, [[1.0], [-1.0]], [[1.0, 1.0]], [[1.0]])
    printed, valid = rows(rs.bounds(model, torch.ones(2, 1), sigma=0.01), "LC Cor. 13 (C_grad)")
    assert printed.left == pytest.approx(1.0) and printed.right == pytest.approx(math.sqrt(2))
    # W_1 alone saves the printed maximum; steeper behind it, nothing does
    set_to(model, [[1.0], [-1.0]], [[5.0, 5.0]], [[1.0]])
    printed, valid = rows(rs.bounds(model, torch.ones(2, 1), sigma=0.01), "LC Cor. 13 (C_grad)")
    assert printed.left == pytest.approx(5.0) and printed.right == pytest.approx(math.sqrt(2))
    assert (printed.holds, valid.holds) == (False, True)
    assert valid.right == pytest.approx(10.0)


def test_masks_break_the_printed_lipschitz_constant_and_theorem_7() -> None:
    model = mlp(1, 1, 1, 2, 1)
    set_to(model, [[1.0]], [[1.0]], [[100.0], [-100.0]], [[1.0, 1.0]], biases=[0.0, 1.0])
    third = model[4]
    assert isinstance(third, nn.Linear)
    third.bias.data = torch.tensor([1.0, -1.0])  # so that every unit is seen where it bends
    found = rs.bounds(model, torch.ones(2, 1), sigma=0.01)
    printed, valid = rows(found, "LC eq. 42 (C_l)")
    assert printed.left == pytest.approx(100.0) and printed.right == pytest.approx(math.sqrt(2))
    assert (printed.holds, valid.holds) == (False, True)
    printed, valid = rows(found, "LC Thm 7 (13)")
    assert printed.left == pytest.approx((300 / math.sqrt(2) - 202) * printed.terms["c_eta"].value)
    assert printed.right == printed.terms["B"].value == 0.0
    assert (printed.holds, valid.holds) == (False, True)


def test_with_the_output_counted_as_a_layer_theorem_7_fails_for_one_unit() -> None:
    model = mlp(1, 1, 1)
    set_to(model, [[1.0]], [[1.0]])
    _, valid = rows(rs.bounds(model, torch.full((2, 1), 1.0), sigma=0.01, eta=0.001), "LC Thm 7 (13)")
    t = {name: term.value for name, term in valid.terms.items()}
    assert 2 * t["TV"] * t["c_eta"] / t["C_1"] - t["xi"] > t["LC"] >= 1 * t["TV"] * t["c_eta"] / t["C_1"] - t["xi"]


def test_the_xi_of_the_proof_breaks_the_lower_bound_of_corollary_3() -> None:
    sigma, a = 0.1, 1.0
    model = mlp(1, 1, 1)
    set_to(model, [[1.0]], [[1.0]], biases=[-a])  # beta = a, z = -a
    printed, valid = rows(rs.bounds(model, torch.full((2, 1), -a), sigma=sigma, eta=1.98 * a), "LC Cor. 3 (8)")
    assert printed.left > 20 * printed.right > 0
    assert (printed.holds, valid.holds) == (False, True)


def test_two_breakpoints_break_the_upper_bound_of_corollary_3() -> None:
    model = mlp(1, 1, 1, act=nn.Hardtanh)
    set_to(model, [[1.0]], [[1.0]])
    printed, valid = rows(rs.bounds(model, torch.zeros(2, 1), sigma=2.0), "LC Cor. 3 (7)")
    assert (printed.holds, valid.holds) == (False, True)


def test_many_units_in_one_dimension_break_theorem_5_and_corollary_14() -> None:
    model = mlp(1, 200, 1)
    set_to(model, torch.ones(200, 1), torch.ones(1, 200))
    found = rs.bounds(model, torch.zeros(2, 1), eps=0.01)
    for reference in ("LC Thm 5 (11)", "LC Cor. 14 (31)"):
        printed, valid = rows(found, reference)
        assert printed.left == pytest.approx(200.0) and printed.right == pytest.approx(math.sqrt(200), rel=1e-3)
        assert (printed.holds, valid.holds) == (False, True)
        assert valid.ratio == pytest.approx(1.0, rel=1e-3)  # the valid form is attained here


def test_a_large_eps_breaks_the_second_part_of_theorem_5() -> None:
    model = mlp(3, 3, 1)
    set_to(model, 10 * torch.eye(3), torch.ones(1, 3))
    printed, valid = rows(rs.bounds(model, torch.zeros(2, 3), sigma=1.0, eta=0.1, eps=10.0), "LC Thm 5 (12)")
    assert printed.left == 3 and printed.right == pytest.approx(0.3 * math.exp(0.005))
    assert (printed.holds, valid.holds) == (False, True)
    assert valid.right == pytest.approx(3 * math.exp(0.005))


def test_an_eta_beyond_all_noise_says_nothing() -> None:
    model = mlp(2, 3, 1)
    set_to(model, torch.eye(2).repeat(2, 1)[:3], torch.ones(1, 3))
    for sigma in (0.01, 1 / 37, 1 / 38.5):  # exp(-eta^2 / 2 sigma^2) underflows, or nearly
        found = rs.bounds(model, torch.ones(2, 2), sigma=sigma, eta=1.0)
        assert_valid_forms_hold(found)
    assert rows(rs.bounds(model, torch.ones(2, 2), sigma=0.01, eta=1.0), "LC Thm 5 (12)")[1].right == math.inf


def test_random_networks_break_proposition_8() -> None:
    torch.manual_seed(0)
    model = mlp(3, 64, 1)
    for layer in (model[0], model[2]):
        assert isinstance(layer, nn.Linear)
        nn.init.kaiming_normal_(layer.weight)
        layer.bias.data.zero_()
    printed, valid = rows(rs.bounds(model, 0.1 * torch.randn(50, 3), sigma=1.0), "LC Prop. 8 (14)")
    assert (printed.holds, valid.holds) == (False, True)


def test_no_bound_by_the_function_alone_can_hold() -> None:
    model = mlp(1, 1, 1)
    ratios = []
    for a in (1.0, 100.0, 10_000.0):  # the same function every time
        set_to(model, [[a]], [[1 / a]])
        printed, valid = rows(rs.bounds(model, torch.zeros(2, 1), sigma=1.0), "LC Prop. 8 (14)")
        assert printed.right == pytest.approx(2.0, rel=1e-6)  # R^2: the cost does not see a
        assert valid.holds
        ratios.append(printed.ratio)
    assert ratios == pytest.approx([ratios[0], 100 * ratios[0], 10_000 * ratios[0]], rel=1e-6)


def test_proposition_17_needs_the_change_of_the_exponential() -> None:
    before, after = mlp(1, 1, 1), mlp(1, 1, 1)
    set_to(before, [[100.0]], [[1.0]])
    set_to(after, [[100.0]], [[1.0]], biases=[1.0])
    printed, valid = rs.complexity_change(before, after, torch.zeros(2, 1), sigma=1.0)
    assert printed.left == pytest.approx(100 * (1 - math.exp(-0.5)) / math.sqrt(2 * math.pi))
    assert printed.right == pytest.approx(1 / math.sqrt(2 * math.pi))
    assert (printed.holds, valid.holds) == (False, True)


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(1, 32), st.integers(0, 2**31))
def test_the_valid_form_of_proposition_17_holds(inputs: int, width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    before, after = mlp(inputs, width, 1).double(), mlp(inputs, width, 1).double()
    scale, move, sigma = (10 ** (2 * torch.rand(3, generator=generator) - 1)).tolist()
    for p, q in zip(before.parameters(), after.parameters(), strict=True):
        p.data = scale * torch.randn(p.shape, generator=generator, dtype=p.dtype)
        q.data = p.data + move * torch.randn(p.shape, generator=generator, dtype=p.dtype)
    x = torch.randn(6, inputs, generator=generator, dtype=torch.float64)
    _, valid = rs.complexity_change(before, after, x, sigma=sigma)
    assert valid.left <= valid.right * (1 + 1e-9)


def test_a_unit_that_gets_its_first_outgoing_weight_makes_complexity_jump() -> None:
    model = mlp(1, 1, 1)
    jumps = []
    for v in (0.0, 1e-9):
        set_to(model, [[1.0]], [[v]])
        jumps.append(rs.local_complexity(model, torch.zeros(1, 1), sigma=1.0).mean)
    assert jumps == pytest.approx([0.0, 1 / math.sqrt(2 * math.pi)])  # so Prop. 17 needs more than v != 0


def test_proposition_17_is_about_one_hidden_layer() -> None:
    with pytest.raises(ValueError, match="one hidden layer of ReLU units"):
        rs.complexity_change(mlp(2, 3, 3, 1), mlp(2, 3, 3, 1), torch.zeros(1, 2), sigma=1.0)
    with pytest.raises(ValueError, match="different widths"):
        rs.complexity_change(mlp(2, 3, 1), mlp(2, 4, 1), torch.zeros(1, 2), sigma=1.0)


def test_a_change_of_complexity_takes_data_as_all_functions_do() -> None:
    torch.manual_seed(0)
    before, after, x = mlp(2, 3, 1), mlp(2, 3, 1), torch.randn(6, 2)
    sides = [
        [(bound.left, bound.right) for bound in rs.complexity_change(before, after, data, sigma=1.0)]
        for data in (x, x.double().numpy(), [(part, None) for part in x.split(4)], iter(x.split(4)))
    ]
    assert all(found == sides[0] for found in sides)
    with pytest.raises(ValueError, match=r"points must be \(n, 2\), got \(3, 2, 2\)"):
        rs.complexity_change(rs.trace(before, x), after, x.view(3, 2, 2), sigma=1.0)
    with pytest.raises(ValueError, match="NaN"):
        rs.complexity_change(before, after, x / 0, sigma=1.0)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(0, 2**31), st.booleans())
def test_a_certificate_never_passes_the_true_adversarial_distance(
    widths: list[int], seed: int, histogram: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = mlp(1, *widths, 1).double()
    for p in model.parameters():
        p.data = torch.randn(p.shape, generator=generator, dtype=p.dtype)
    x = torch.randn(12, 1, generator=generator, dtype=torch.float64)
    found = rs.univariate_certificate(
        model, x, density=np.histogram(x.numpy(), bins=5, density=True) if histogram else None
    )
    assert found.holds
    grid = torch.linspace(*found.domain, 4_001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        there, at = model(grid)[:, 0], model(x)[:, 0]
    step = float(grid[1, 0] - grid[0, 0])
    for x0, v, distance in zip(x[:, 0].tolist(), at.tolist(), found.distance, strict=True):
        wrong = grid[:, 0][there * (1 if v >= 0 else -1) < 0]
        nearest = float((wrong - x0).abs().min()) if len(wrong) else math.inf
        assert distance <= nearest + 1e-12
        assert nearest == math.inf or distance >= nearest - 1.001 * step
    slopes = ((there[1:] - there[:-1]).abs() / step).numpy()
    if not histogram:
        assert found.total_variation == pytest.approx(slopes.mean(), rel=1e-2, abs=1e-9)


def test_the_certificate_of_a_straight_line_is_as_computed_by_hand() -> None:
    model = nn.Linear(1, 1).double()
    model.weight.data.fill_(1.0)
    model.bias.data.fill_(0.0)
    x = torch.tensor([[-2.0], [0.5], [2.0]], dtype=torch.float64)
    heights, edges = np.array([0.05, 0.8, 0.05]), np.array([-2.0, 0.0, 1.0, 4.0])
    found = rs.univariate_certificate(model, x, density=(heights, edges))
    assert found.total_variation == pytest.approx(1.0)
    np.testing.assert_allclose(found.distance, [2.0, 0.5, 2.0])
    # at 0.5, a density of 1/0.5 would be needed: nothing is certified
    np.testing.assert_allclose(found.certified, [0.0, 0.0, 0.0])
    model.bias.data.fill_(3.0)
    found = rs.univariate_certificate(model, x, density=(heights, edges))
    np.testing.assert_allclose(found.certified, [0.0, 0.5, 0.0])  # 1/3.5 is below 0.8, above 0.05
    assert (found.distance == np.inf).all()
    summary = json.loads(json.dumps(found.to_dict()))
    assert summary["total_variation"] == pytest.approx(found.total_variation)
    assert summary["certified"] == pytest.approx(0.5 / 3)


def test_a_certificate_needs_one_input_and_one_output() -> None:
    with pytest.raises(ValueError, match="one input and one output"):
        rs.univariate_certificate(mlp(2, 3, 1), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="outside the support"):
        rs.univariate_certificate(mlp(1, 3, 1), torch.tensor([[0.0], [9.0]]), density=([1.0], [0.0, 1.0]))
    with pytest.raises(ValueError, match=r"density must be heights \(k,\) and rising edges"):
        rs.univariate_certificate(mlp(1, 3, 1), torch.zeros(1, 1), density=([1.0], [1.0, 0.0]))


def test_the_representation_cost_is_the_least_norm_over_rescalings() -> None:
    torch.manual_seed(0)
    model = mlp(3, 5, 4, 2).double()
    found = rs.representation_cost(model)
    theta = [p.detach() for p in model.parameters()]
    assert found.norm == pytest.approx(math.sqrt(sum(float(p.square().sum()) for p in theta)))
    logs = [torch.zeros(n, dtype=torch.float64, requires_grad=True) for n in (5, 4)]
    optimiser = torch.optim.LBFGS(logs, max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16)

    def square() -> Tensor:
        optimiser.zero_grad()
        a, b = (t.exp() for t in logs)
        w1, b1, w2, b2, w3, b3 = theta
        parts = (a[:, None] * w1, a * b1, b[:, None] * w2 / a, b * b2, w3 / b, b3)
        total = torch.stack([p.square().sum() for p in parts]).sum()
        total.backward()
        return total

    optimiser.step(square)
    assert found.cost == pytest.approx(math.sqrt(float(square().detach())), rel=1e-9)
    assert found.ratio >= 1 and 0 < found.imbalance < 1
    assert found.to_dict() == {"cost": found.cost, "norm": found.norm, "imbalance": found.imbalance}


def test_rescaling_units_changes_the_norm_but_not_the_cost() -> None:
    torch.manual_seed(1)
    model = mlp(3, 6, 5, 1).double()
    before = rs.representation_cost(model)
    scale = torch.rand(6, dtype=torch.float64) * 10 + 0.01
    first, second = model[0], model[2]
    assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)
    first.weight.data *= scale[:, None]
    first.bias.data *= scale
    second.weight.data /= scale
    after = rs.representation_cost(model)
    assert after.cost == pytest.approx(before.cost, rel=1e-9)
    assert after.norm > before.norm


def test_one_hidden_layer_is_balanced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    model = mlp(3, 5, 2).double()
    found = rs.representation_cost(model)
    monkeypatch.setattr(representation, "SWEEPS", 1)
    assert rs.representation_cost(model).cost == pytest.approx(found.cost, rel=1e-12)


def test_dead_units_cost_nothing() -> None:
    model = mlp(2, 2, 1).double()
    set_to(model, [[0.0, 0.0], [3.0, 4.0]], [[7.0, 5.0]])
    assert rs.representation_cost(model).cost == pytest.approx(math.sqrt(50.0))


def test_networks_without_free_rescalings_have_no_representation_cost() -> None:
    with pytest.raises(ValueError, match="dense layers one after another"):
        rs.representation_cost(mlp(2, 3, 1, act=nn.Hardtanh))
    made = case("conv")
    with pytest.raises(ValueError, match="give an example"):
        rs.representation_cost(made.model)
    with pytest.raises(ValueError, match="dense layers one after another"):
        rs.representation_cost(made.model, made.points)


@pytest.mark.parametrize("name", ["dense", "conv", "batch_norm", "hard_tanh", "prelu"])
def test_the_maps_and_slopes_of_a_chain_give_the_jacobian(name: str) -> None:
    made = case(name)
    net = rs.trace(made.model, made.points).frozen()
    chain = chain_of(net)
    assert chain is not None and chain.matrices is not None
    for x in made.points.double():
        pieces = net.patterns(x[None])[0].split([site.units for site in net.sites])
        found = chain.matrices[0]
        for slopes, piece, matrix in zip(chain.slopes, pieces, chain.matrices[1:], strict=True):
            found = matrix @ (slopes.gather(0, piece.long()[None])[0][:, None] * found)
        wanted = torch.func.jacrev(lambda p: net.program.pruned([net.output]).run(p[None])[0])(x)
        torch.testing.assert_close(found, wanted.reshape(found.shape))


@pytest.mark.parametrize("name", ["residual", "max_pool", "functional"])
def test_networks_that_are_no_chains_say_which_rows_they_lack(name: str) -> None:
    made = case(name)
    net = rs.trace(made.model, made.points)
    assert chain_of(net) is None
    printed, valid = rows(rs.bounds(net, made.points), "LC Thm 7 (13)")
    assert printed.holds is valid.holds is None
    assert valid.verdict == "no verdict" and "no chain" in valid.note


def test_norms_of_large_maps_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = case("conv")
    net = rs.trace(made.model, made.points)
    exact = chain_of(net)
    monkeypatch.setattr("regionscope.inequalities.chains.EXACT_SIDE", 0)
    bounded = chain_of(net)
    assert exact is not None and bounded is not None
    for a, b in zip(exact.maps, bounded.maps, strict=True):
        assert a.exact and not b.exact
        assert a.norm <= b.norm * (1 + 1e-12) <= 10 * a.norm
    monkeypatch.setattr("regionscope.inequalities.chains.ENTRIES", 0)
    found = rs.bounds(net, made.points)
    assert_valid_forms_hold(found)
    assert "not available" in rows(found, "LC Thm 5 (11)")[0].note


def test_the_terms_are_those_of_the_measures() -> None:
    torch.manual_seed(0)
    model, x = mlp(4, 10, 8, 2).double(), torch.randn(200, 4).double()
    found = rs.bounds(model, x, sigma=0.1, eps=0.3, draws=64, generator=torch.Generator().manual_seed(0))
    terms = {name: term for b in found if not b.printed for name, term in b.terms.items()}
    generator = torch.Generator().manual_seed(1)
    lc = rs.local_complexity(model, x, sigma=0.1, draws=64, generator=generator)
    assert abs(terms["LC"].value - lc.mean) < 0.2 * terms["LC"].stderr
    assert terms["LC"].stderr == pytest.approx(lc.stderr, rel=0.1)
    s = rs.local_complexity(model, x, sigma=0.1, draws=64, good=False, density=False, generator=generator)
    assert abs(terms["S"].value - s.mean) < 0.2 * terms["S"].stderr
    small = rs.bounds(model, x, sigma=1e-9, eps=0.3, draws=1)  # hardly any noise
    terms = {name: t for b in small if b.reference in ("LC Thm 5 (11)", "LC Thm 7 (13)") for name, t in b.terms.items()}
    rank = rs.local_rank(model, x, eps=0.3).per_layer
    assert rank is not None
    assert [terms["LR_1"].value, terms["LR_2"].value] == pytest.approx(rank.mean(axis=0).tolist())
    assert terms["TV"].value == pytest.approx(rs.total_variation(model, x).mean)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    x = np.random.default_rng(0).normal(size=50)
    samples = Samples({"x": x, "y": 2 * x + 1}, {})
    assert samples.term(lambda m: m["x"]).stderr == pytest.approx(x.std(ddof=1) / math.sqrt(50))
    assert samples.term(lambda m: m["y"] - 2 * m["x"]).stderr == pytest.approx(0, abs=1e-12)  # they share their points
    alone = Samples({"x": x[:1]}, {}).term(lambda m: m["x"])
    assert alone.value == x[0] and math.isnan(alone.stderr)


@pytest.mark.parametrize("widths", [(1, 1), (3, 20), (10, 30, 30)])
@pytest.mark.parametrize("sigma", [0.01, 10.0])
def test_the_distance_bound_holds_with_many_draws(widths: tuple[int, ...], sigma: float) -> None:
    torch.manual_seed(0)
    model, x = mlp(*widths, 1).double(), torch.randn(30, widths[0]).double()
    found = rs.bounds(model, x, sigma=sigma, draws=100, generator=torch.Generator().manual_seed(0))
    _, valid = rows(found, "HR Cor. 8")
    assert valid.left < valid.right
    if sigma == 10.0:  # where all densities are nearly C_bias and units many, it is attained up to a factor of 2
        assert valid.ratio > 0.3 or widths == (1, 1)


def test_verdicts_are_statistical() -> None:
    assert verdict(1.0, 1.0, 0.0) is True
    assert verdict(1.0, 1.2, 0.3) is None and verdict(1.2, 1.0, 0.3) is None
    assert verdict(1.0, 1.4, 0.3) is True and verdict(1.4, 1.0, 0.3) is False
    assert verdict(1.0, math.inf, math.nan) is True
    assert standard_errors(100_000) == pytest.approx(3.0, rel=1e-3) and standard_errors(4) > 9
    assert verdict(math.nan, 1.0, 0.0) is None and verdict(1.0, 2.0, math.nan) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"eta": -1.0}, "eta must be positive"),
        ({"eps": 0.0}, "eps must be positive"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"constants_from": "luck"}, "constants_from must be one of product, data"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.bounds(mlp(2, 3, 1), torch.zeros(2, 2), **options)  # type: ignore[arg-type]


def test_a_network_that_nowhere_bends_has_no_inequalities() -> None:
    with pytest.raises(ValueError, match="at least one activation"):
        rs.bounds(nn.Linear(2, 1), torch.zeros(2, 2))


def chain_of_units(*numbers: float) -> nn.Sequential:
    """One unit a layer, weights and biases in turn."""
    model = mlp(*[1] * (len(numbers) // 2 + 1)).double()
    set_to(model, *[[[w]] for w in numbers[::2]], biases=numbers[1::2])
    return model


def terms_of(model: nn.Module, x: Tensor, **options: float) -> tuple[dict[str, float], rs.Bound]:
    """The terms of Cor. 3 (8) in its valid form, and that row."""
    found = rs.bounds(model, x, generator=torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    assert_valid_forms_hold(found)
    _, valid = rows(found, "LC Cor. 3 (8)")
    return {name: term.value for name, term in valid.terms.items()}, valid


def test_a_unit_is_good_by_the_noise_of_the_others() -> None:
    # relu(x - n1) - 0.02 - n2: the first bend is seen if the second unit is open where the first gives 0,
    # P(n2 < -0.02); by its own noise it would always be seen at x = 1, where it is open
    p = float(torch.distributions.Normal(0.0, 0.05).cdf(torch.tensor(-0.02)))
    for place in (0.0, 1.0):
        x = torch.full((4000, 1), place, dtype=torch.float64)
        t, _ = terms_of(chain_of_units(1.0, 0.0, 1.0, -0.02, 1.0, 0.0), x, sigma=0.05, draws=1)
        assert t["B"] == pytest.approx(1 - p, abs=0.04)
        if place == 0.0:
            first = p / (0.05 * math.sqrt(2 * math.pi))
            second = rs.local_complexity(
                chain_of_units(1.0, 0.0, 1.0, -0.02, 1.0, 0.0), x[:1].expand(10_000, 1), sigma=0.05, draws=2,
                generator=torch.Generator().manual_seed(1),
            ).per_layer  # fmt: skip
            assert second is not None
            assert t["LC"] == pytest.approx(first + second[:, 1].mean(), rel=0.06)


def test_a_bend_that_a_closed_unit_hides_has_no_complexity() -> None:
    # relu(100 relu(x - n1) - 0.2 - n2): the second unit is closed where the first bends, however the first is moved
    x = torch.linspace(-1, 1, 401, dtype=torch.float64)[:, None]
    model = chain_of_units(1.0, 0.0, 100.0, -0.2, 1.0, 0.0)
    t, _ = terms_of(model, x, sigma=0.05, draws=16)
    assert t["B"] == pytest.approx(1.0, abs=0.01)
    lc = rs.local_complexity(model, x, sigma=0.05, draws=64, generator=torch.Generator().manual_seed(1))
    assert t["LC"] == pytest.approx(lc.mean, abs=4 * (lc.stderr + 0.05))


def brute_force_goods(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> float:
    """How many units of a dense ReLU network are good when put to their bend: an open unit in every later layer."""
    total = 0
    for layer in range(len(weights) - 1):
        for unit in range(len(weights[layer])):
            h, open_ = x, True
            for k, (w, b) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
                h = (w @ h + b).clamp_min(0)
                if k == layer:
                    h[unit] = 0.0
                open_ = open_ and (k <= layer or bool((h > 0).any()))
            total += open_
    return total


def test_the_number_that_are_not_good_is_that_of_a_count_unit_by_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    model = mlp(2, 6, 3, 2, 1).double()
    x = torch.randn(20, 2, dtype=torch.float64)
    parameters = [p.detach() for p in model.parameters()]
    expected = sum(11 - brute_force_goods(parameters[::2], parameters[1::2], point) for point in x) / 20
    assert 0 < expected < 11
    t, _ = terms_of(model, x, sigma=1e-9, draws=1)
    assert t["B"] == pytest.approx(expected)
    monkeypatch.setattr("regionscope.inequalities.sampling.LOOKS", 1)  # drawn, at large noise so that all have weight
    many, few = terms_of(model, x.repeat(200, 1), sigma=0.7, draws=1)[0], t
    monkeypatch.undo()
    few = terms_of(model, x.repeat(200, 1), sigma=0.7, draws=1)[0]
    assert many["B"] == pytest.approx(few["B"], rel=0.05) and many["LC"] == pytest.approx(few["LC"], rel=0.05)
    assert many["B"] != few["B"]


def test_hanin_and_rolnick_print_constants_in_corollary_7() -> None:
    model, sigma = chain_of_units(1.0, 0.0, 100.0, 0.0, 1.0, 0.0), 0.2
    x = torch.zeros(2, 1, dtype=torch.float64)  # where the first unit is open for half of the noise
    found = rs.bounds(model, x, sigma=sigma, draws=1000, generator=torch.Generator().manual_seed(0))
    printed, restated = [b for b in found if b.source == "HR Cor. 7"]
    C = printed.terms["C_grad"].value
    assert abs(C - 50) < 5  # a mean over the noise; the largest gradient met is 100
    assert printed.right == pytest.approx(2 * 2 * C / (sigma * math.sqrt(2 * math.pi)))
    assert restated.right == pytest.approx(101 / (sigma * math.sqrt(2 * math.pi)))
    assert printed.holds and restated.holds
    assert "as restated" in str(restated) and "as restated" not in str(printed)
    assert (printed.printed, restated.printed) == (True, False)
    hard = rs.bounds(mlp(3, 5, 1, act=nn.Hardtanh), torch.randn(4, 3), sigma=sigma)
    printed, _ = [b for b in hard if b.source == "HR Cor. 7"]
    t = {name: term.value for name, term in printed.terms.items()}
    assert t["T"] == 2 and t["units"] == 5
    assert printed.right == pytest.approx(2 * t["T"] * t["units"] * t["C_grad"] * t["C_bias"])


def test_rows_say_where_they_stand_in_the_papers() -> None:
    found = rs.bounds(mlp(2, 3, 1), torch.randn(4, 2), generator=torch.Generator().manual_seed(0))
    (row, _) = [b for b in found if b.reference == "LC Prop. 8 (14)"]
    assert row.source == row.to_dict()["source"] == "LC Prop. 8"
    for b in found:
        assert b.source in str(b) and b.to_dict()["source"] == b.source
        assert b.source.split()[0] in ("LC", "HR") and b.reference.startswith(b.source)
    assert {b.to_dict()["kind"] for b in found} == {"printed", "valid", "as restated"}
    assert len({b.form for b in found}) == len(found)
    page = row._repr_html_()
    assert row.form in page and f"{row.left:.5g}" in page and row.verdict in page
