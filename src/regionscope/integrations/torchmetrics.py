"""The measures as torchmetrics: updated batch by batch, mergeable, right under distributed training.

    crossings = BoundaryCrossings(model, radius=0.1)    # or metric("boundary_crossings", model, radius=0.1)
    for batch in loader:
        crossings.update(batch)
    print(crossings.compute(), crossings.stderr)

There is a class for every measure, with its name: LocalComplexity, LocalRank, TotalVariation and so on.
"""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from regionscope.integrations import extra
from regionscope.measures.draws import part_number
from regionscope.measures.table import MEASURES, measure_named
from regionscope.points import as_tensor, first_array
from regionscope.results import Estimate, wilson_interval
from regionscope.tracing.network import Network
from regionscope.tracing.undisturbed import evaluated
from regionscope.types import Array, Model

with extra("torchmetrics"):
    from torchmetrics import Metric

SYNCHRONISING = {
    "compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn", "distributed_available_fn",
    "sync_on_compute", "compute_with_cache",
}  # fmt: skip


class PointMetric(Metric):
    """A measure of the model at all points seen so far: `compute()` is the mean over them, `stderr` its error.

    Takes the options of the measure, and those of every metric. What is drawn at the points of a batch follows from the
    `seed` and these points, so neither the order of batches nor the number of processes matters, and no batch has the
    noise of another; what all points share, such as the directions of crossings, all batches share. The model stays
    yours: it is no part of the metric's parameters or state, and clones of the metric share it.
    """

    measure: ClassVar[str]
    full_state_update = False
    is_differentiable = False
    total: Tensor
    squares: Tensor
    count: Tensor
    errors: Tensor  # at each point, summed; of one point it is all that is known
    resolution: Tensor  # the same of errors that may be on one side at all points

    def __init__(self, model: Model | Network, *, seed: int = 0, **options: Any) -> None:
        super().__init__(**{name: options.pop(name) for name in SYNCHRONISING & options.keys()})
        MEASURES[self.measure].check(options)
        self.held, self.seed, self.options = _Borrowed(model), seed, options
        for sums in ("total", "squares", "errors", "resolution"):
            self.add_state(sums, torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, data: Any, labels: Array | None = None) -> None:
        """Measure at the points of a batch: a tensor or array (n, ...), or a tuple or dict whose first one it is."""
        # some measures differentiate inside, which inference mode and its tensors do not allow
        with torch.inference_mode(False), torch.enable_grad(), evaluated(self.held.model):
            points = first_array(data)
            points = points.clone() if isinstance(points, Tensor) else points
            classes = labels.clone() if isinstance(labels, Tensor) else labels
            measure, part = MEASURES[self.measure], part_number(as_tensor(points))
            found = measure.estimate(self.held.model, points, classes, seed=self.seed, part=part, **self.options)
        if not isinstance(found, Estimate):
            raise TypeError(f"with these options {self.measure} gives several results; make a metric for each")
        self.total = self.total + found.per_point.sum()
        self.squares = self.squares + (found.per_point**2).sum()
        self.count = self.count + found.n
        self.errors = self.errors + (math.nan if found.point_stderr is None else found.point_stderr.sum())
        self.resolution = self.resolution + (0.0 if found.resolution is None else found.resolution.sum())

    def compute(self) -> Tensor:
        """The mean over all points, of all processes."""
        return self.total / self.count

    @property
    def stderr(self) -> Tensor:
        """The standard error of the mean over all points, of all processes: see `Estimate.stderr`."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            n, mean = self.count, self.total / self.count
            if MEASURES[self.measure].share and n > 0:
                low, high = wilson_interval(float(mean), int(n), 1.0)
                return torch.full_like(mean, (high - low) / 2)
            if n == 1:
                return self.errors.clone()
            return torch.hypot(
                ((self.squares / n - mean**2).clamp_min(0) / (n - 1)).sqrt(), self.resolution / n
            )  # fmt: skip

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add what another metric of this kind has seen."""
        super().merge_state(incoming_state)
        self._computed = None  # torchmetrics would answer with the mean before the merge


class _Borrowed:
    """A model that is no submodule, and not copied with its metric."""

    def __init__(self, model: Model | Network) -> None:
        self.model = model

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Borrowed":
        return _Borrowed(memo.get(id(self.model), self.model))  # the copy, where metric and model are copied together


def _metric_class(measure: str) -> type[PointMetric]:
    """The metric class of a measure."""
    name = measure.title().replace("_", "")
    about = f"`{measure}` as a metric; see `PointMetric` and `regionscope.{measure}`."
    return type(name, (PointMetric,), {"measure": measure, "__doc__": about, "__module__": __name__})


METRICS = {measure: _metric_class(measure) for measure in MEASURES}


def metric(measure: str, model: Model | Network, **options: Any) -> PointMetric:
    """The metric for a measure by its name.

    >>> from torch import nn
    >>> rank = metric("local_rank", nn.Sequential(nn.Linear(3, 5), nn.ReLU()), eps=0)
    >>> rank.update(torch.zeros(2, 3))
    >>> rank.compute()
    tensor(3., dtype=torch.float64)
    """
    measure_named(measure)
    return METRICS[measure](model, **options)


def __getattr__(name: str) -> type[PointMetric]:
    """The classes by their names."""
    for found in METRICS.values():
        if found.__name__ == name:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
