"""Proof that a network is the model: at batches of several numbers, orders and compositions of points."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regionscope.machine import points_at_once
from regionscope.tracing.forward import Forward, Recording, Seen, largest
from regionscope.tracing.ledger import UnsupportedModel
from regionscope.tracing.lifting import Shape, lifted
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.program import Held
from regionscope.tracing.steps import Step

# the program must agree with the model to this share of the largest value
AGREEMENT = {torch.float64: 1e-9, torch.float32: 1e-4}
ROUNDING = {torch.float64: 1e-14, torch.float32: 4e-6}  # or to this share of the largest value on the way
# which of the points that are tried form a batch; the first batch is recorded too, to name what mixes its points
COMPOSITIONS = ((2, 0, 1), (1, 2))
TRIED = 6  # points
CROWD = 70  # points of the largest batch, fewer if the values of so many are more than these; but seven at least
LEAST = 7
ENTRIES = 2**22
FAR = 1000.0  # how much farther away a piecewise-linear network is compared with the model, too
WRITTEN = ("value", "fill_value", "other", "self")  # arguments whose numbers become entries of the result
ALL_SITES = -1
SHAKES, SHAKEN = 8, 64.0  # how often rounding is imitated; it may be so many times worse than that, as sums are long


@torch.no_grad()
def check_constants(network: Network) -> None:
    """An error if what a network holds, or writes among its values, is no finite number."""
    for held in network.program.held.values():
        tensor = held.tensor if isinstance(held, Held) else held
        if not tensor.is_floating_point() or math.isfinite(tensor.sum()):
            continue
        bad = torch.isnan(tensor) if not network.piecewise_linear else ~torch.isfinite(tensor)
        if bad.any():
            where = f"{held.path!r} of the model" if isinstance(held, Held) else f"a constant {tuple(tensor.shape)}"
            raise ValueError(f"{where} holds NaN or infinite values: the network has no regions to speak of")
    for step in network.program.steps if network.piecewise_linear else ():
        if not any(map(_infinite, (*step.arguments, *step.options.values()))):  # the usual case
            continue
        if written := [step.named[name] for name in WRITTEN if _infinite(step.named.get(name))]:
            raise ValueError(f"{step.name} writes {written[0]} among the values: take a finite number instead")


def _infinite(argument: Any) -> bool:
    return isinstance(argument, float) and not math.isfinite(argument)


def tried_points(example: Tensor) -> Tensor:
    """Points to compare the network with the model at: the example's, and others at random but always the same."""
    noise = torch.randn((TRIED, *example.shape[1:]), generator=torch.Generator().manual_seed(0))
    points = torch.cat([example[:TRIED]] * math.ceil(TRIED / len(example)))[:TRIED]
    return points + 0.1 * (1 + largest(example)) * noise.to(example)


class _Compared(NamedTuple):
    """What the model gave and what the network gives: a value of its program at these points; perhaps out of order."""

    found: Tensor
    expected: Tensor
    value: int
    points: Tensor
    ordered: bool

    def agrees(self, scale: float, errors: Mapping[int, Tensor] | None = None) -> bool:
        """Whether they are equal but for rounding; `errors` (n, *shape) says what that may do to each value."""
        a, b = self.found, self.expected
        if a.numel() != b.numel():
            return False
        error = errors[self.value][self.points].reshape(b.shape) if errors else None
        if _agree(a.reshape(b.shape), b, scale, error):
            return True
        largest_error = None if error is None else error.max()
        return not self.ordered and _same_numbers(a, b, scale, largest_error)


@torch.no_grad()
def check_batches(network: Network, forward: Forward, alone: Recording, points: Tensor) -> None:
    """Compare the network, recorded at a point alone, with the model at batches of several compositions.

    One will do for modules of torch that are known to look at each point alone: the rest is for code of others.
    """
    far = points[:0] if forward.familiar else _far_away(network, points[:1])
    values = dict(zip(network.program.outputs, network.program.run(torch.cat([points, far])), strict=True))
    expected = values[network.output].reshape(len(points) + len(far), *network.output_shape)
    batch = torch.tensor(COMPOSITIONS[0], device=points.device)
    together = points.index_select(0, batch)
    if forward.familiar and _agree(forward.plain(together), expected.index_select(0, batch), 0.0):
        return  # what enters the sites is the network's then: torch's own modules do the same to any batch
    first = forward.seen(together, alone)
    outputs = [(batch, first.output)]
    if not forward.familiar:
        _check_alone(network, forward, points, far, expected, first)
        outputs += _other_batches(network, forward, points)
    for chosen, output in outputs:
        if output.dim() == 0 or len(output) != len(chosen):
            raise UnsupportedModel(
                f"the model's output must have one row for every point of the batch, got {tuple(output.shape)} for"
                f" {len(chosen)} points"
            )
    compared = [_Compared(y, expected.index_select(0, chosen), network.output, chosen, True) for chosen, y in outputs]
    compared += _compared_sites(network, first.entering, values, batch)
    if all(one.agrees(0.0) or one.agrees(first.largest) for one in compared):
        return
    if _only_rounding(network, forward, alone, points, [chosen for chosen, _ in outputs]):
        return
    raise UnsupportedModel(f"a point's values depend on the other points of its batch{_culprit(forward, points)}")


def _check_alone(network: Network, forward: Forward, points: Tensor, far: Tensor, expected: Tensor, seen: Seen) -> None:
    """Compare them at single points, near and far."""
    single = 1 if len(far) else 2  # those far away are looked at alone as well
    singles = _each_alone(points[:single], expected[:single])
    alike = all(_is_model_at(network, x, forward.plain(x), y, seen) for x, y in singles)
    if not alike or not _agrees_far_away(network, forward, far, expected[len(points) :], seen):
        raise UnsupportedModel(
            "the traced program does not reproduce the model at other inputs: forward computes with"
            " input-dependent values outside torch or keeps a state"
        )


def _other_batches(network: Network, forward: Forward, points: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """What the model gives at further batches of these points, which come first; the last of them is large."""
    for composition in COMPOSITIONS[1:]:
        batch = torch.tensor(composition, device=points.device)
        yield batch, forward.plain(points.index_select(0, batch))
    crowd = _crowd(network, points)
    try:
        yield crowd, forward.plain(points.index_select(0, crowd))
    except Exception:  # it may not take so many
        yield crowd[:LEAST], forward.plain(points.index_select(0, crowd[:LEAST]))


def _each_alone(points: Tensor, expected: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Every point as a batch of one, with what the network gives there."""
    return zip(points.split(1), expected.split(1), strict=True)


def _is_model_at(
    network: Network, x: Tensor, found: Tensor, among_others: Tensor, seen: Seen, farther: float = 1.0
) -> bool:
    """Whether the model has given at a point alone what the network gives, so much farther away than was `seen`.

    What the network gives there `among_others` will do, unless large terms cancel: they are rounded in another way.
    """
    found = found.reshape(among_others.shape)
    if _agree(found, among_others, 0.0):
        return True
    expected = network(x)
    alike = torch.equal(found, expected) or _agree(found, expected, 0.0)
    return alike or _agree(found, expected, farther * seen.largest)


def _far_away(network: Network, x: Tensor) -> Tensor:
    """x and -x, much farther away; nothing if rounding may grow in any way there."""
    return torch.cat([FAR * x, -FAR * x]) if network.piecewise_linear else x[:0]


def _agrees_far_away(network: Network, forward: Forward, far: Tensor, expected: Tensor, seen: Seen) -> bool:
    """Whether the network is the model at points far away, each alone, as far as the model goes there."""
    for x, y in _each_alone(far, expected):
        with suppress(Exception):
            found = forward.plain(x)
            if found.isfinite().all() and not _is_model_at(network, x, found, y, seen, FAR):
                return False
    return True


def _crowd(network: Network, points: Tensor) -> Tensor:
    """A large batch made of these points, in turn."""
    size = max(LEAST, min(CROWD, points_at_once(network.program.entries, floats=ENTRIES)))
    return 5 * torch.arange(size, device=points.device) % len(points)


def _compared_sites(
    network: Network, entering: list[Tensor], values: Mapping[int, Tensor], points: Tensor
) -> list[_Compared]:
    """What enters the sites at a batch, and what enters those of the network at its points."""
    sites = [values[entry].index_select(0, points) for entry in network.entries]
    if len(entering) == len(sites):
        return [
            _Compared(a, b, entry, points, False) for a, b, entry in zip(entering, sites, network.entries, strict=True)
        ]
    # as with a loop over the points: the sites of all of them together
    found, expected = (torch.cat([torch.empty(0), *(v.flatten() for v in part)]) for part in (entering, sites))
    return [_Compared(found, expected, ALL_SITES, points, False)]


def _only_rounding(
    network: Network, forward: Forward, alone: Recording, points: Tensor, batches: Sequence[Tensor]
) -> bool:
    """Whether rounding explains all differences, and no point of a batch changes a bit of what another gives.

    Where large terms cancel, values are off by far more than a share of the largest of them, and may hide what others
    do to a point: so all that enters the sites is looked at too, at every batch.
    """
    if _others_matter(forward, points):
        return False
    values = dict(zip(network.program.outputs, network.program.run(points), strict=True))
    errors = _rounding_errors(network, points)
    for batch in batches:
        seen = forward.seen(points[batch], alone)
        compared = _compared_sites(network, seen.entering, values, batch)
        compared.append(_Compared(seen.output, values[network.output][batch], network.output, batch, True))
        if not all(one.agrees(0.0, errors) for one in compared):
            return False
    return True


def _others_matter(forward: Forward, points: Tensor) -> bool:
    """Whether what the model gives at a point changes with the others; its place and their number stay."""
    here, others = [0, 1, 2], [3, 4, 5]
    rows = forward.plain(points[here])
    for i in here:
        batch = [*others[:i], i, *others[i + 1 :]]
        if not torch.equal(forward.plain(points[batch])[i].nan_to_num(), rows[i].nan_to_num()):
            return True
    return False


def _rounding_errors(network: Network, points: Tensor) -> dict[int, Tensor]:
    """How far rounding may take the values that enter the sites, each and all together, and the output: (n, *shape).

    That is seen by changing all that enters an operation by a rounding, at random (Parker 1997, Monte Carlo
    arithmetic): a sum is then off as by rounding its terms, however much they cancel.
    """
    program = network.program.pruned([*dict.fromkeys(network.entries), network.output])
    generator = torch.Generator().manual_seed(0)

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        noise = torch.randn(value.shape, generator=generator).to(value)
        return value * (1 + torch.finfo(value.dtype).eps * noise)

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
        return lifted(step, {i: moved(values[i]) for i in step.used}, shapes)

    plain = program.run(points)
    shaken = [program.run(points, act=act) for _ in range(SHAKES)]
    spreads = [torch.stack([v - p for v in each]).abs().amax(dim=0) for p, *each in zip(plain, *shaken, strict=True)]
    errors = {value: SHAKEN * spread for value, spread in zip(program.outputs, spreads, strict=True)}
    errors[ALL_SITES] = torch.cat([as_rows(errors[entry]) for entry in network.entries] or [points[:, :0]], dim=1)
    return errors


def _culprit(forward: Forward, points: Tensor) -> str:
    """The first operation whose numbers at a batch are not those at its points alone, as far as it can be told."""
    batch = list(COMPOSITIONS[0])
    parts = [points[batch], *points[batch].split(1)]
    recordings = [forward.recorded(part.clone(), True, keep=True) for part in parts]
    ledgers = [one.recorder.ledger for one in recordings]
    scale = max(largest(t) for t in (ledgers[0].seen or {}).values() if t.is_floating_point())
    if any([s.operation for s in each.steps] != [s.operation for s in ledgers[0].steps] for each in ledgers):
        return ": it does different things for different numbers of points"
    for steps in zip(*(each.steps for each in ledgers), strict=True):
        for values in zip(*(step.results for step in steps), strict=True):
            if not all(each.facts[value].live for each, value in zip(ledgers, values, strict=True)):
                continue
            numbers = [(each.seen or {})[v].flatten() for each, v in zip(ledgers, values, strict=True)]
            if not _same_numbers(numbers[0], torch.cat(numbers[1:]), scale):
                return f": {ledgers[0].facts[values[0]].place} mixes them or asks for their number"
    return ": they come out in another order, or it does different things for different numbers of points"


def _same_numbers(a: Tensor, b: Tensor, scale: float, error: Tensor | None = None) -> bool:
    """Whether two tensors hold the same numbers, in any order."""
    return a.numel() == b.numel() and _agree(a.flatten().sort().values, b.flatten().sort().values, scale, error)


def _agree(a: Tensor, b: Tensor, scale: float, error: Tensor | None = None) -> bool:
    """Whether two tensors are equal but for rounding: as much as `error` says, if that is known.

    Otherwise a share of the largest, or of `scale`, the largest number that they were computed from.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    usual = max(AGREEMENT.get(a.dtype, 2e-2) * largest(b), ROUNDING.get(a.dtype, 2e-2) * scale)
    apart = (a - b).abs()
    if error is None and a.numel() and float(apart.max()) <= usual:  # the usual case
        return True
    return bool(((apart <= (usual if error is None else error)) | (a == b) | (a.isnan() & b.isnan())).all())
