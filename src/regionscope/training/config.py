"""What is trained on what, how, and what is recorded of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from regionscope.datasets.sets import Dataset, dataset
from regionscope.geometry.planes import USUAL_MARGIN, Plane
from regionscope.measures.complexity import local_complexity
from regionscope.measures.table import measure_named
from regionscope.points import uniform_points
from regionscope.runs.watched import USUAL, Probe
from regionscope.tracing.trace import trace
from regionscope.training.models import Activation, new_network

Penalty = Callable[[Tensor, int], Tensor]  # of the points of a step, and its number
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": lambda parameters, **options: torch.optim.SGD(parameters, momentum=0.9, **options),
    "adam": lambda parameters, **options: torch.optim.Adam(parameters, fused=True, **options),
    "adamw": lambda parameters, **options: torch.optim.AdamW(parameters, fused=True, **options),
}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Training:
    """What is trained on what, how, and what is recorded of it.

    Parameters
    ----------
    dataset
        mnist-sample, mnist, fashion-mnist, cifar10, gaussians, modular-addition, bunny, bump, or a folder of images.
    size
        Train on this many points, drawn by the seed; all if not given.
    test_size
        Test on this many.
    replacement
        Draw the training points with replacement, as PD's code does: some are there twice.
    label_noise
        The share of training labels that are drawn anew; 1 makes all of them random.
    normalise
        A mean and a standard deviation to normalise the inputs by.
    side
        Fit the images of a folder to this many pixels a side.
    model
        The kind of network.
    depth
        Hidden layers; resnet18 has 17 and preact-resnet18, which is PD's, 16 in any case. PD's depth is one more: it
        counts the last layer.
    width
        Units of each, or channels of the first: convolutional networks double them where they halve the image; of a
        transformer, entries of a token, with four times as many units.
    activation
        What lies between the layers; maxout, in an mlp, takes the larger of two linear functions a unit.
    batch_norm
        Batch norm before every activation.
    init
        PyTorch's own initial weights, He normal ones with normal biases, or those of LC's published script.
    init_scale
        Factor of the initial weights and biases.
    bias_std
        Standard deviation of the initial biases where they are not PyTorch's: 0 in LC, 10^-3 in HR.
    dtype
        The numbers that are trained with.
    loss
        Cross-entropy, mean squared error of one-hot labels or real targets, or the cross-entropy of softmax outputs,
        which is a softmax twice (LC's published script).
    optimiser
        How the weights are moved; momentum is SGD with momentum 0.9.
    lr
        Learning rate.
    weight_decay
        Weight decay; for all but adamw a term of the gradient.
    decay
        What decays: all parameters, or the weights of layers only, no biases and no batch norm (LC's published script).
    penalty
        Add this many times the local complexity of the batch to the loss: an estimate drawn anew at every step.
    penalty_sigma
        The standard deviation of the noise on biases that it is taken with.
    batch_size
        Points a step.
    steps
        Steps in all.
    seed
        Seed of the data's subset, the initial weights, the order of the data and the measures.
    records
        About this many records, evenly spaced on a logarithmic scale of steps.
    measures
        What is measured at each record, one or several of: local_complexity, boundary_crossings, local_rank,
        total_variation, boundary_distance, good_units, local_region_count, robust_accuracy, certified_radius.
    options
        Options of measures by name: --options.boundary_crossings.radius 0.1, and `points` for how many are looked at.
    points
        Measure at this many training points, test points and uniform points.
    seconds_per_record
        Measure a large network at fewer points and along random directions, so that a record takes about this long.
    plane
        Record the exact regions on the plane through the first three training points too.
    """

    dataset: str = "mnist-sample"
    size: int | None = None
    test_size: int | None = None
    replacement: bool = False
    label_noise: float = 0.0
    normalise: tuple[float, float] | None = None
    side: int = 32
    model: Literal["mlp", "cnn", "resnet18", "preact-resnet18", "transformer"] = "mlp"
    depth: int = 4
    width: int = 200
    activation: Activation = "relu"
    batch_norm: bool = False
    init: Literal["torch", "he", "lc-script"] = "torch"
    init_scale: float = 1.0
    bias_std: float = 0.0
    dtype: Literal["float32", "float64"] = "float32"
    loss: Literal["cross-entropy", "mse", "softmax-cross-entropy"] = "cross-entropy"
    optimiser: Literal["sgd", "momentum", "adam", "adamw"] = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.01
    decay: Literal["all", "weights"] = "all"
    penalty: float = 0.0
    penalty_sigma: float = 0.05
    batch_size: int = 200
    steps: int = 10_000
    seed: int = 0
    records: int = 50
    measures: tuple[str, ...] = USUAL
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    points: int = 200
    seconds_per_record: float = 20.0
    plane: bool = False

    def __post_init__(self) -> None:
        for name, least in {"batch_size": 1, "steps": 1, "points": 1, "records": 2, "seed": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("init_scale", "bias_std", "lr", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, got {getattr(self, name):g}")
        if not self.seconds_per_record > 0:  # NaN neither
            raise ValueError(f"seconds_per_record must be positive, got {self.seconds_per_record:g}")
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        if self.optimiser not in OPTIMISERS:
            raise ValueError(f"optimiser must be one of {', '.join(OPTIMISERS)}, got {self.optimiser!r}")
        if self.decay not in ("all", "weights") or self.dtype not in DTYPES:
            raise ValueError(
                f"decay must be all or weights, dtype {' or '.join(DTYPES)}; got {self.decay}, {self.dtype}"
            )
        if not (0 <= self.penalty < math.inf and 0 < self.penalty_sigma < math.inf):
            raise ValueError(
                f"penalty must not be negative, its sigma positive; got {self.penalty} and {self.penalty_sigma}"
            )
        unused = set(self.options) - set(self.measures)
        if unused:
            raise ValueError(f"options are for {unused.pop()}, which is not among the measures")
        for name in self.measures:
            told = self.options.get(name, {})
            measure_named(name).check({option: value for option, value in told.items() if option != "points"})


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets)


def _squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over points and outputs; classes are taken as one-hot vectors."""
    wanted = targets if targets.is_floating_point() else functional.one_hot(targets, outputs.shape[1])
    return functional.mse_loss(outputs, wanted.to(outputs.dtype))


def _softmax_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs.softmax(dim=1), targets)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": _cross_entropy,
    "mse": _squared_error,
    "softmax-cross-entropy": _softmax_cross_entropy,
}


def training_data(config: Training) -> Dataset:
    """What is trained and tested on; an error if its targets are none for the loss."""
    data = dataset(
        config.dataset, size=config.size, test_size=config.test_size, label_noise=config.label_noise,
        flat=config.model == "mlp", normalise=config.normalise, side=config.side, seed=config.seed,
        replacement=config.replacement,
    )  # fmt: skip
    if config.loss != "mse" and not data.classes:
        raise ValueError(f"{config.dataset} has real targets; train with the loss mse")
    return data.to(DTYPES[config.dtype])


def digest(data: Dataset) -> str:
    """A hash of what is trained on, to know it again."""
    whole = sha256()
    for part in data.train:
        whole.update(part.contiguous().numpy().data)
    return whole.hexdigest()


def new_model(config: Training, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """The network that training begins with."""
    return new_network(
        config.model, shape, outputs, depth=config.depth, width=config.width, activation=config.activation,
        batch_norm=config.batch_norm, init=config.init, init_scale=config.init_scale, bias_std=config.bias_std,
        seed=config.seed,
    ).to(DTYPES[config.dtype])  # fmt: skip


def probes(config: Training, data: Dataset) -> dict[str, Probe]:
    """Training points and test points with their classes, and uniform points."""
    found: dict[str, Probe] = {}
    for name, (x, y) in (("train", data.train), ("test", data.test)):
        found[name] = (x[: config.points], y[: config.points]) if data.classes else x[: config.points]
    generator = torch.Generator().manual_seed(config.seed)
    return found | {"uniform": uniform_points(data.train[0], config.points, generator=generator)}


def planes(config: Training, data: Dataset) -> dict[str, Plane]:
    """The plane through the first three training points, if asked for."""
    if not config.plane:
        return {}
    if len(data.train[0]) < 3:
        raise ValueError(f"the plane goes through three training points, and there are {len(data.train[0])}")
    return {"train": Plane.through(*data.train[0][:3], margin=USUAL_MARGIN)}


def new_optimiser(config: Training, model: nn.Module) -> torch.optim.Optimizer:
    """What moves the weights, in two groups if only some of them decay."""
    weights = [p for p in model.parameters() if config.decay == "all" or p.dim() > 1]
    others = [p for p in model.parameters() if config.decay != "all" and p.dim() <= 1]
    groups = [{"params": weights, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return OPTIMISERS[config.optimiser]([group for group in groups if group["params"]], lr=config.lr)


def new_penalty(config: Training, model: nn.Module, example: Tensor) -> Penalty | None:
    """What is added to the loss for local complexity, if anything; what it draws follows from seed and step alone."""
    if not config.penalty:
        return None
    net = trace(model.eval(), example, allow_smooth=True)  # which follows the weights

    def penalty(points: Tensor, step: int) -> Tensor:
        drawn = np.random.default_rng([config.seed, 1, step]).integers(1 << 62)
        generator = torch.Generator().manual_seed(int(drawn))
        found = local_complexity(
            net, points, sigma=config.penalty_sigma, differentiable=True, generator=generator, allow_smooth=True
        )
        assert found.tensor is not None
        return config.penalty * found.tensor

    return penalty
