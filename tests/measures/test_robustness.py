"""Attacks and certificates against what is known exactly."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from cases import case, mlp
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures.attacks import Settings, halving_steps, search_starts, worst_points
from regionscope.measures.draws import Draws

STRONG = ("pgd", "apgd")
DUAL = {"L2": 2, "Linf": 1}  # the norm of the weights that belongs to a distance


def linear_classifier(classes: int, dtype: torch.dtype) -> tuple[nn.Linear, Tensor, Tensor]:
    """Without a bias, so that points can be scaled; its rows differ in size, so that the runner-up is not nearest."""
    torch.manual_seed(classes)
    model = nn.Linear(8, classes, bias=False)
    model.weight.data *= 4 * torch.rand(classes, 1)
    x = torch.randn(60, 8)
    labels = model(x).argmax(dim=1)
    return model.to(dtype), x.to(dtype), labels


def distances(model: nn.Linear, x: Tensor, labels: Tensor, norm: str) -> Tensor:
    """To the decision boundary of a linear classifier: the least margin over the dual norm of its slope."""
    w, x = model.weight.detach().double(), x.double()
    found = []
    for point, y in zip(x, labels.tolist(), strict=True):
        rows = [w[y] - w[k] for k in range(len(w)) if k != y]
        found.append(min(float(row @ point) / float(row.norm(p=DUAL[norm])) for row in rows))
    return torch.tensor(found, dtype=torch.float64)


def at_distance_one(model: nn.Linear, x: Tensor, labels: Tensor, norm: str) -> tuple[Tensor, Tensor]:
    """Points and labels, scaled; without points so near to the boundary that they would be scaled far beyond it."""
    d = distances(model, x, labels, norm)
    clear = d > 0.05 * d.max()
    return (x.double() / d[:, None])[clear].to(x.dtype), labels[clear]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("attack", STRONG)
def test_attacks_on_linear_classifiers_are_exact(attack: str, classes: int, norm: str, dtype: torch.dtype) -> None:
    model, x, labels = linear_classifier(classes, dtype)
    x, labels = at_distance_one(model, x, labels, norm)
    assert len(x) > 30
    assert rs.robust_accuracy(model, x, labels, attack, radius=0.999, norm=norm).mean == 1
    assert rs.robust_accuracy(model, x, labels, attack, radius=1.001, norm=norm).mean == 0


@pytest.mark.parametrize("norm", DUAL)
def test_fgsm_on_two_classes_is_exact(norm: str) -> None:
    model, x, labels = linear_classifier(2, torch.float64)
    x, labels = at_distance_one(model, x, labels, norm)
    assert rs.robust_accuracy(model, x, labels, "fgsm", radius=0.999, norm=norm).mean == 1
    assert rs.robust_accuracy(model, x, labels, "fgsm", radius=1.001, norm=norm).mean == 0


def bounded_distance(w: Tensor, x: Tensor, bounds: tuple[float, float]) -> float:
    """The l2 distance from x to w.x = 0 within bounds: by Lagrange, the nearest point is x - t w, clipped."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(w @ (x - middle * w).clamp(*bounds)) > 0 else (low, middle)
    nearest = (x - high * w).clamp(*bounds)
    return float((nearest - x).norm()) if float(w @ nearest) < 1e-9 else math.inf


@pytest.mark.parametrize("attack", STRONG)
def test_attacks_use_all_the_room_that_bounds_leave(attack: str) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 2, bias=False).double(), 2 * torch.rand(25, 8).double() - 1
    x = x.sign() * x.abs() ** 0.2  # most entries near a bound
    labels, net, found = model(x).argmax(dim=1), rs.trace(model, x), 0
    for point, y in zip(x, labels, strict=True):
        w = model.weight[y].detach() - model.weight[1 - y].detach()
        d, free = bounded_distance(w, point, (-1, 1)), float(w @ point) / float(w.norm())
        if 1.02 * free < d < math.inf:  # the bounds matter
            options: dict[str, Any] = {"norm": "L2", "bounds": (-1, 1), "restarts": 1, "steps": 50}
            one = rs.robust_accuracy(net, point[None], y[None], attack, radius=0.999 * d, **options)
            two = rs.robust_accuracy(net, point[None], y[None], attack, radius=1.001 * d, **options)
            assert (one.mean, two.mean) == (1, 0)
            found += 1
    assert found >= 10


@pytest.mark.parametrize("loss", ["margin", "cross-entropy"])
@pytest.mark.parametrize("bounds", [(-math.inf, math.inf), (-1.0, 1.0)])
@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("attack", ["pgd", "apgd", "fgsm"])
def test_attacks_stay_in_the_ball_and_the_bounds(
    attack: str, norm: str, bounds: tuple[float, float], loss: str
) -> None:
    torch.manual_seed(0)
    model, x = mlp(6, 16, 3), 2 * torch.rand(20, 2, 3) - 1
    labels, seen = torch.zeros(20, dtype=torch.int64), []

    def outputs(p: Tensor) -> Tensor:
        seen.append(p.detach())
        ahead = torch.tensor([9.0, 0.0, 0.0])  # never wrong, so that all points stay
        return torch.add(model(p.flatten(1)), ahead)

    settings = Settings(attack, 0.3, 20, None, norm, bounds, 4, loss)
    starts = search_starts(x, settings, Draws(torch.Generator().manual_seed(0)))
    best = worst_points(outputs, x, labels, settings, starts)
    away = torch.stack([*seen, best]) - x
    sizes = away.flatten(2).norm(p=math.inf if norm == "Linf" else 2, dim=2)
    assert sizes.max() <= 0.3 + 1e-6
    assert sizes.max() > 0.299, "they use the room they have"
    assert torch.stack(seen).min() >= bounds[0] and torch.stack(seen).max() <= bounds[1]


def test_random_starts_belong_to_points_whatever_the_batches() -> None:
    torch.manual_seed(0)
    x = torch.randn(60, 3)
    settings = Settings("pgd", 0.2, 1, 1e-9, "Linf", (-math.inf, math.inf), 4, "margin")
    labels = torch.zeros(60, dtype=torch.long)

    def outputs(p: Tensor) -> Tensor:  # nothing to climb: where a search starts is where it looks
        return torch.stack([torch.ones(len(p)), (p.sum(dim=1) * 1000).sin().detach()], dim=1)

    found = []
    for at_once in (60, 7):
        numbers = Draws(torch.Generator().manual_seed(0))
        found.append(
            torch.cat(
                [
                    worst_points(
                        outputs, part, labels[:at_once][: len(part)], settings, search_starts(part, settings, numbers)
                    )
                    for part in x.split(at_once)
                ]
            )
        )
    assert torch.equal(*found)
    assert ((found[0] - x).abs().amax(dim=1) > 0.05).any()


class Rugged(nn.Module):
    """Wrong at a tenth of all places, with hardly a way from one to another: luck alone finds them."""

    def forward(self, x: Tensor) -> Tensor:
        wave = (1e4 * x.sum(dim=1)).sin()
        return torch.stack([torch.full_like(wave, 0.95), wave], dim=1)


@pytest.mark.parametrize("norm", DUAL)
def test_random_starts_do_not_depend_on_who_else_is_right(norm: str) -> None:
    torch.manual_seed(0)
    model, x = Rugged().double(), torch.randn(40, 3).double()
    labels = model(x).argmax(dim=1)
    options: dict[str, Any] = {"radius": 0.2, "norm": norm, "steps": 1, "step_size": 1e-12, "restarts": 6}
    right = [
        rs.robust_accuracy(model, x, y, batch_size=at_once, allow_smooth=True, **options).per_point
        for y in (labels, torch.cat([1 - labels[:1], labels[1:]]), torch.cat([1 - labels[:8], labels[8:]]))
        for at_once in (40, 8)
    ]
    assert 5 < right[0].sum() < 35, "or nothing is told"
    assert right[2][0] == 0
    for found in right[1:4]:
        np.testing.assert_array_equal(found[1:], right[0][1:])
    for found in right[4:]:  # with none to attack in the first part
        np.testing.assert_array_equal(found[8:], right[0][8:])


def test_random_starts_fill_the_ball() -> None:
    x = torch.zeros(4000, 3)
    for norm, order in (("L2", 2.0), ("Linf", math.inf)):
        ball = Settings("pgd", 2.0, 1, None, norm, (-math.inf, math.inf), 1, "margin").around(x)
        sizes = ball.anywhere(Draws(torch.Generator().manual_seed(0)), 1).norm(p=order, dim=1) / 2
        for share in (0.5, 0.8):
            assert float((sizes < share).double().mean()) == pytest.approx(share**3, abs=0.03), "as volumes do"


def test_the_checkpoints_are_those_of_the_paper() -> None:
    assert sorted(halving_steps(100)) == [22, 41, 57, 70, 80, 87, 93, 99]


def to_boundary(cells: rs.PlaneCells, x: Tensor) -> Tensor:
    """The l2 distances from points to the decision boundary of a plane."""
    a, b = torch.from_numpy(cells.decision_boundary().segments).unbind(dim=1)
    t = ((x[:, None] - a) * (b - a)).sum(dim=2) / ((b - a) ** 2).sum(dim=1)
    nearest = a + t.clamp(0, 1)[..., None] * (b - a)
    return ((nearest - x[:, None]) ** 2).sum(dim=2).amin(dim=1).sqrt()


def test_attacks_find_nearly_all_that_exact_geometry_says_is_there_and_no_more() -> None:
    there = dict.fromkeys(STRONG, 0)
    missed = dict(there)
    for seed in range(4):
        torch.manual_seed(seed)
        model, x = mlp(2, 16, 16, 4).double(), torch.randn(100, 2).double()
        for p in model.parameters():
            p.data *= 2
        labels, plane = model(x).argmax(dim=1), rs.Plane.coordinates(torch.zeros(2).double(), radius=6.0)
        wrong = to_boundary(rs.plane_cells(model, plane), x) < 0.3
        for attack in STRONG:
            found = rs.robust_accuracy(model, x, labels, attack, radius=0.3, norm="L2").per_point == 0
            assert not (found & ~wrong.numpy()).any(), "what is not there cannot be found"
            there[attack] += int(wrong.sum())
            missed[attack] += int(wrong.sum()) - int(found.sum())
    assert min(there.values()) > 50
    assert all(missed[attack] <= 0.02 * there[attack] for attack in STRONG), missed


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("attack", STRONG)
def test_no_attack_succeeds_within_the_certified_radius(attack: str, seed: int) -> None:
    torch.manual_seed(seed)
    model, x = mlp(4, 12, 12, 3).double(), torch.randn(80, 4).double()
    labels = model(x).argmax(dim=1)
    radius = rs.certified_radius(model, x, labels).per_point
    for eps in np.quantile(radius, [0.3, 0.6, 0.9]):
        right = rs.robust_accuracy(model, x, labels, attack, radius=float(eps), norm="L2").per_point
        assert (right[radius > eps] == 1).all()


@pytest.mark.parametrize("name", ["conv", "residual", "max_pool", "maxout", "hard_tanh", "prelu", "patches"])
def test_no_attack_succeeds_within_the_certified_radius_of_any_kind_of_network(name: str) -> None:
    made = case(name)
    labels = made.model(made.points).argmax(dim=1)
    for x, y in zip(made.points, labels, strict=True):
        radius = rs.certified_radius(made.model, x[None], y[None]).mean
        right = rs.robust_accuracy(made.model, x[None], y[None], "apgd", radius=0.999 * radius, norm="L2", restarts=2)
        assert radius > 0
        assert right.mean == 1


def test_more_steps_and_restarts_find_no_less() -> None:
    torch.manual_seed(1)
    model, x = mlp(2, 16, 16, 4), torch.randn(200, 2)
    for p in model.parameters():
        p.data *= 2
    labels, net = model(x).argmax(dim=1), rs.trace(model, x)

    def right(**options: Any) -> Any:
        return rs.robust_accuracy(net, x, labels, "pgd", radius=0.5, step_size=0.1, **options).per_point

    by_steps = [right(steps=steps, restarts=1) for steps in (1, 2, 3, 5, 8, 13)]
    by_restarts = [right(steps=3, restarts=restarts) for restarts in (1, 2, 4, 8)]
    for series in (by_steps, by_restarts):
        assert all((more <= less).all() for less, more in pairwise(series))
        assert series[-1].mean() < series[0].mean()


def test_the_best_place_is_kept_though_the_attack_moves_on() -> None:
    def hill(x: Tensor) -> Tensor:
        return torch.cat([0 * x, 0.1 - (x - 0.6).abs()], dim=1)  # wrong from 0.5 to 0.7 only

    x, labels = torch.tensor([[0.0], [9.0]]), torch.tensor([0, 0])  # the second is too far away, so the search goes on
    for steps in (1, 2, 3, 4):  # the first goes to 0.55, 1.1, 0.55, 1.1
        right = rs.robust_accuracy(hill, x, labels, radius=2.0, step_size=0.55, steps=steps, restarts=1)
        assert right.per_point.tolist() == [0, 1]


def test_a_gradient_of_zero_makes_no_step_and_a_tiny_one_does() -> None:
    ball = Settings("pgd", 1.0, 1, None, "L2", (-math.inf, math.inf), 1, "margin").around(torch.zeros(2, 3))
    steps = ball.uphill(torch.tensor([[0.0, 0.0, 0.0], [3e-30, 0.0, -4e-30]]))
    assert torch.allclose(steps, torch.tensor([[0.0, 0.0, 0.0], [0.6, 0.0, -0.8]]))


def test_a_network_that_ignores_its_input_cannot_be_attacked() -> None:
    model = nn.Linear(3, 2)
    model.weight.data.zero_()
    model.bias.data = torch.tensor([0.0, 1.0])
    for attack in ("pgd", "apgd", "fgsm"):
        right = rs.robust_accuracy(model, torch.randn(4, 3), torch.tensor([1, 1, 0, 1]), attack, radius=5.0)
        assert right.per_point.tolist() == [1, 1, 0, 1]


# who is right, and what is attacked


def test_only_points_that_are_right_are_attacked() -> None:
    model, given = nn.Linear(2, 2, bias=False), []
    model.weight.data = torch.eye(2)

    def attack(outputs: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
        given.append((x.clone(), y.clone()))
        return x.flip(1) if len(given) == 1 else x

    x, labels = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0, 0, 1])
    assert rs.robust_accuracy(model, x, labels, attack).per_point.tolist() == [0, 0, 0, 0]
    assert torch.equal(given[0][0], x[[0, 3]]) and given[0][1].tolist() == [0, 1]
    assert rs.robust_accuracy(model, x, labels, attack).per_point.tolist() == [1, 0, 0, 1]
    assert rs.robust_accuracy(model, x[1:3], labels[1:3], attack).mean == 0
    assert len(given) == 2, "with none right there is nothing to attack"
    with pytest.raises(ValueError, match=r"must return points \(2, 2\), as it got them, not \(1, 2\)"):
        rs.robust_accuracy(model, x, labels, lambda outputs, x, y: x[:1])


def test_certificate_and_accuracy_agree_on_ties() -> None:
    model = nn.Linear(2, 3, bias=False).double()
    model.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).double()
    x = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]).double()
    for label in range(3):
        labels = torch.full((5,), label)
        right = rs.robust_accuracy(model, x, labels, "none").per_point
        assert right.tolist() == [0, float(label == 1), 0, 0, 0], "outputs 0 and 2 always tie"
        assert ((rs.certified_radius(model, x, labels).per_point > 0) == (right == 1)).all()


def test_a_certificate_needs_the_network_itself_to_be_right() -> None:
    model = nn.Linear(1, 2)
    model.weight.data, model.bias.data = torch.tensor([[1.0], [1.0]]), torch.tensor([1e-9, 0.0])
    x, labels = torch.tensor([[1.0]]), torch.tensor([0])
    assert rs.robust_accuracy(model, x, labels, "none").mean == 0, "a tie in float32"
    assert rs.certified_radius(model, x, labels).mean == 0
    assert rs.certified_radius(model.double(), x.double(), labels).mean == math.inf


def test_certified_radii_never_exceed_the_distance() -> None:
    for scale in (1e-3, 1.0, 1e6):
        model, x, labels = linear_classifier(3, torch.float64)
        exact = distances(model, scale * x, labels, "L2").numpy()
        found = rs.certified_radius(model, scale * x, labels).per_point
        assert (found < (1 - 5e-10) * exact).all()
        assert np.allclose(found, exact, rtol=1e-8)


def test_certified_radii_are_short_where_large_numbers_cancel() -> None:
    big = 2.0**40 / 3
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 2)).double()
    for p, value in zip(model.parameters(), ([[1.0]], [big], [[1.0], [0.0]], [-big, 0.0]), strict=True):
        p.data = torch.tensor(value).double()
    x = torch.linspace(1e-3, 1.0, 100).double()[:, None]  # the outputs are x and 0, after much rounding
    found = rs.certified_radius(model, x, torch.zeros(100, dtype=torch.int64)).per_point
    assert (found <= x[:, 0].numpy()).all()
    assert found[-1] > 0.9


def test_certificates_of_float32_networks_are_computed_in_float64() -> None:
    torch.manual_seed(0)
    model, x = mlp(5, 20, 20, 3), torch.randn(50, 5)
    labels = model(x).argmax(dim=1)
    found = rs.certified_radius(model, x, labels).per_point
    again = rs.certified_radius(model.double(), x.double(), labels).per_point
    assert np.array_equal(found, again)


@pytest.mark.parametrize("measure", [rs.certified_radius, rs.robust_accuracy])
@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (torch.tensor([0, -1]), "from 0 to 2, one an output, got -1"),
        (torch.tensor([0, 3]), "from 0 to 2, one an output, got 3"),
        (torch.tensor([0.0, 1.0]), "must be integers, the numbers of outputs, got torch.float32"),
        (torch.tensor([True, False]), "must be integers, the numbers of outputs, got torch.bool"),
        (torch.tensor([[0], [1]]), r"must be \(2,\), one a point, got \(2, 1\)"),
        (torch.tensor([0, 1, 2]), r"must be \(2,\), one a point, got \(3,\)"),
        (torch.tensor(0), r"must be \(2,\), one a point, got \(\)"),
    ],
)
def test_labels_that_name_no_output_are_refused(measure: Callable[..., Any], labels: Tensor, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        measure(mlp(2, 4, 3), torch.zeros(2, 2), labels)


@pytest.mark.parametrize("measure", [rs.certified_radius, rs.robust_accuracy])
def test_one_output_is_no_classifier(measure: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="at least two outputs"):
        measure(mlp(2, 4, 1), torch.zeros(2, 2), torch.tensor([0, 0]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_labels_may_be_small_integers(dtype: torch.dtype) -> None:
    model, x = mlp(2, 8, 3), torch.randn(30, 2)
    labels = model(x).argmax(dim=1)
    assert rs.robust_accuracy(model, x, labels.to(dtype), "none").mean == 1
    expected = rs.certified_radius(model, x, labels).per_point
    assert np.array_equal(rs.certified_radius(model, x, labels.to(dtype)).per_point, expected)


# how they are called


def test_attacks_draw_from_their_generator_only() -> None:
    model, x = mlp(6, 32, 4), torch.randn(100, 6)
    labels, state = model(x).argmax(dim=1), torch.get_rng_state()

    def right(seed: int) -> list[float]:
        generator = torch.Generator().manual_seed(seed)
        options: dict[str, Any] = {"radius": 0.2, "steps": 1, "restarts": 3, "generator": generator}
        return list(rs.robust_accuracy(model, x, labels, **options).per_point)

    assert right(1) == right(1)
    rs.robust_accuracy(model, x, labels)
    assert torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_attacks_work_where_gradients_are_off(mode: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    model = mlp(6, 32, 4)
    with mode():
        x = torch.randn(50, 6)
        labels = model(x).argmax(dim=1)
        assert rs.robust_accuracy(model, x, labels, radius=0.5).mean < 1
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("name", ["conv", "max_pool", "patches"])
@pytest.mark.parametrize("attack", ["pgd", "apgd", "fgsm"])
def test_images_and_other_networks_are_attacked(name: str, attack: str) -> None:
    made = case(name)
    labels = made.model(made.points).argmax(dim=1)
    for norm in DUAL:
        near, far = (
            rs.robust_accuracy(made.model, made.points, labels, attack, radius=r, norm=norm, restarts=2)
            for r in (1e-4, 50.0)
        )
        assert near.mean == 1
        assert far.mean < 1 or attack == "fgsm", "one step may be too long"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"attack": "magic"}, "attack must be none, pgd, apgd, fgsm or a function, got 'magic'"),
        ({"norm": "L3"}, "norm must be Linf or L2, got 'L3'"),
        ({"loss": "hinge"}, "loss must be margin or cross-entropy, got 'hinge'"),
        ({"radius": -1.0}, "radius must be positive"),
        ({"radius": math.inf}, "radius must be positive"),
        ({"steps": 0}, "steps at least 1"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
        ({"step_size": 0.0}, "step_size must be positive, got 0"),
        ({"bounds": (1.0, 0.0)}, r"bounds must be \(low, high\) with low < high"),
        ({"bounds": (0.5, 1.0)}, r"points must keep to the bounds \(0.5, 1.0\), they are from 0 to 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        rs.robust_accuracy(mlp(2, 4, 2), torch.zeros(2, 2), torch.tensor([0, 0]), **options)


def test_smooth_networks_have_no_certified_radius() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"not piecewise linear: .* there is no certified radius"):
        rs.certified_radius(model, x, torch.zeros(2, dtype=torch.long), allow_smooth=True)


def test_one_output_has_no_margin() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(ValueError, match="a margin needs at least two outputs"):
        rs.total_variation(model, torch.ones(2, 3), target="margin")
