"""What is not ours is left alone, and numbers where errors were."""

import contextlib
import copy
import pickle
import random
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures.directions import MOST_DIRECTIONS, MOST_UNIT_VECTORS


class Average(nn.Module):
    """Gives its buffer a new tensor at every call."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.register_buffer("mean", torch.zeros(6))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        z = self.linear(x)
        self.mean = 0.9 * self.mean + 0.1 * z.detach().mean(0)
        self.calls += 1
        self.last = z
        return F.relu(z)


def test_buffer_reassigned() -> None:
    model = Average()
    buffer = model.mean
    net = rs.trace(model, torch.randn(2, 4))
    assert net.units == 6
    assert model.mean is buffer and torch.equal(buffer, torch.zeros(6))
    assert model.calls == 0 and not hasattr(model, "last")


class Untidy(nn.Module):
    """Changes what it holds in every way, some of it for large batches only."""

    counts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.log: dict[str, Any] = {"sizes": [0], "calls": {"all": 0}}
        self.seen, self.last, self.array = {0}, deque([0], maxlen=2), np.zeros(2)
        self.still = np.ones(2)
        self.still.flags.writeable = False
        self.register_buffer("counts", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.log["sizes"].append(len(x))
        self.log["calls"]["all"] += 1
        self.seen.add(len(x))
        self.last.append(len(x))
        self.array += 1
        if len(x) > 3:
            self.counts += 1
        self.linear.bias.requires_grad_(False)
        self.linear.bias.grad = torch.ones(6)
        self.linear.weight.data = self.linear.weight.data.clone()
        return F.relu(self.linear(x))


def test_whatever_forward_changes_is_put_back() -> None:
    model = Untidy()
    weight = model.linear.weight.data_ptr()
    assert rs.trace(model, torch.randn(2, 4)).units == 6
    assert model.log == {"sizes": [0], "calls": {"all": 0}}
    assert model.seen == {0} and list(model.last) == [0] and model.array.tolist() == [0, 0]
    assert model.still.tolist() == [1, 1]
    assert model.counts.tolist() == [0, 0]
    assert model.linear.bias.requires_grad and model.linear.bias.grad is None
    assert model.linear.weight.data_ptr() == weight


def test_large_arrays_are_taken_for_data_and_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regionscope.tracing.undisturbed.LARGE", 1)
    model = Untidy()
    rs.trace(model, torch.randn(2, 4))
    assert model.array.min() > 0 and model.seen == {0}


def test_lazy_parameters_are_not_made_by_tracing() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    with pytest.raises(ValueError, match="call it once first"):
        rs.trace(model, torch.randn(2, 4))
    model(torch.randn(2, 4))
    assert rs.trace(model, torch.randn(2, 4)).units == 3


def test_random_states_stay() -> None:
    def noisy(x: Tensor) -> Tensor:
        random.random(), np.random.rand()
        return F.relu(x)

    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index]
    rs.trace(noisy, torch.randn(2, 4))
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index]
    torch.manual_seed(0)
    torch_before = torch.get_rng_state()
    rs.trace(noisy, torch.zeros(2, 4))
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_traces_in_several_threads_leave_the_switches_of_torch_as_they_were() -> None:
    backends = torch.backends.mha, torch.backends.mkldnn
    before = backends[0].get_fastpath_enabled(), backends[1].enabled
    model, inside = nn.Sequential(nn.Linear(3, 5), nn.ReLU()), threading.Barrier(2)

    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with contextlib.suppress(threading.BrokenBarrierError):
                inside.wait(0.2)  # until the other one traces too, which it must not
            return F.relu(x)

    threads = [threading.Thread(target=rs.trace, args=(nn.Sequential(model, Slow()), torch.zeros(1, 3))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside.broken
    assert (backends[0].get_fastpath_enabled(), backends[1].enabled) == before


def test_what_needs_no_random_numbers_draws_none() -> None:
    model, x = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1)), torch.randn(6, 3)
    before = torch.get_rng_state()
    rs.total_variation(model, x)
    rs.trace(model, x).verify(x)
    rs.plane_cells(model, rs.Plane.through(*x[:3])).verify()
    rs.line_cells(model, x[0], x[1]).verify()
    assert torch.equal(torch.get_rng_state(), before)


def test_threads() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
    big = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(30)])
    stop, errors = threading.Event(), []

    def other() -> None:
        while not stop.is_set():
            try:
                big(torch.zeros(4, 64))
            except Exception as error:
                errors.append(error)
                return

    thread = threading.Thread(target=other)
    thread.start()
    try:
        nets = [rs.trace(model, torch.zeros(1, 6)) for _ in range(30)]
    finally:
        stop.set()
        thread.join()
    assert not errors
    assert all(net.sites[0].name == "1:0" for net in nets)


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_spectral_norm_train(norm: object) -> None:
    model = nn.Sequential(norm(nn.Linear(5, 9)), nn.ReLU(), nn.Linear(9, 3))  # type: ignore[operator]
    x = torch.randn(6, 5)
    with pytest.raises(rs.UnsupportedModel, match=r"forward changes .*call model.eval\(\)"):
        rs.trace(model, x)
    net = rs.trace(model.eval(), x)
    assert torch.allclose(net(x), model(x), atol=1e-6)


def test_crossings_parallel() -> None:
    a, b = nn.Linear(6, 4), nn.Linear(6, 4)
    x, frame = torch.randn(5, 6), torch.eye(6)[:2]
    found = rs.boundary_crossings(lambda x: F.relu(a(x)) + F.relu(b(x)), x, radius=0.1, frame=frame)
    both = [rs.boundary_crossings(lambda x, p=part: F.relu(p(x)), x, radius=0.1, frame=frame) for part in (a, b)]
    assert found.per_point.tolist() == (both[0].per_point + both[1].per_point).tolist()


@torch.no_grad()
def test_large_inputs() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 3, 76, 76)
    assert x[0].numel() > MOST_UNIT_VECTORS and 16 < MOST_DIRECTIONS < 1444
    for first, units in ((nn.Conv2d(3, 1, 8, stride=22), 16), (nn.Conv2d(3, 4, 4, stride=4), 1444)):
        model = nn.Sequential(
            first, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * len(first.weight), 2)
        )
        precise = copy.deepcopy(first).double()  # windows lie inside
        z, norms = precise(x.double())[0].flatten(1), precise.weight.flatten(1).norm(dim=1, keepdim=True)
        assert z.numel() == units
        assert rs.boundary_distance(model, x).mean == pytest.approx(float((z.abs() / norms).min()), rel=1e-4)
        assert rs.certified_radius(model, x, model(x).argmax(dim=1)).mean > 0
    small = nn.Sequential(nn.Conv2d(3, 1, 8, stride=22), nn.ReLU())
    assert rs.local_rank(small, x, eps=0.1).per_point.tolist() == [16]


def test_networks_can_be_pickled_and_copied() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2))
    x = torch.randn(3, 1, 8, 8)
    net = rs.trace(model, x)
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), copy.copy(net)):
        assert torch.equal(other(x), net(x))
        assert other.sites == net.sites


def test_assigned_state_dicts_are_followed() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(5, 3)
    net = rs.trace(model, x)
    model.load_state_dict({name: torch.randn_like(t) for name, t in model.state_dict().items()}, assign=True)
    assert torch.equal(net(x), model(x))


def test_sites_have_names_of_their_own() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.head = nn.Linear(2, 3), nn.Linear(3, 3)
            self.add_module("a/b", nn.ReLU())
            self.add_module("relu", nn.ReLU())

        def forward(self, x: Tensor) -> Tensor:
            act = self.get_submodule("a/b")
            return F.relu(self.relu(act(self.head(act(self.linear(x))))) - 0.1)  # type: ignore[operator]

    model = Named().double()
    net = rs.trace(model, torch.zeros(1, 2, dtype=torch.float64))
    assert len({site.name for site in net.sites}) == len(net.sites) == 4
    plane = rs.Plane.coordinates(torch.zeros(2), radius=9.0)
    cells = rs.plane_cells(model, plane)
    plain = nn.Sequential(model.linear, nn.ReLU(), model.head, nn.ReLU(), nn.Threshold(0.1, 0.1))
    assert len(cells) == len(rs.plane_cells(plain, plane)) and cells.verify().holds
