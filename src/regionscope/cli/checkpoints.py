"""What commands on a checkpoint share: its network, the points to look at it, and checks of options."""

from pathlib import Path

from torch import Tensor, nn

import regionscope as rs
from regionscope.cli.models import Given
from regionscope.cli.output import Output, prints_aside
from regionscope.cli.places import check_points_files, chosen_points


def network_of(checkpoint: Path, given: Given, points: Path | None, labels: Path | None, output: Output) -> nn.Module:
    """The network of a checkpoint; what was assumed is said."""
    check_points_files(points, labels)
    with prints_aside():
        loaded = given.loaded(checkpoint)
    output.remark(loaded.assumed)
    return loaded.network


def network_and_points(
    checkpoint: Path,
    given: Given,
    points: Path | None,
    labels: Path | None,
    count: int,
    output: Output,
    allow_smooth: bool = False,
) -> tuple[rs.Network, Tensor, Tensor | None]:
    """The network of a checkpoint, the points to measure it at, and their labels if they have any."""
    if count < 1:
        raise ValueError(f"--count must be at least 1, got {count}")
    network = network_of(checkpoint, given, points, labels, output)
    with prints_aside():
        found = chosen_points(network, points, labels)
        net = rs.trace(network, found.points[:1], allow_smooth=allow_smooth)
    return net, found.points[:count], None if found.labels is None else found.labels[:count]


def check_draws(draws: int | None) -> None:
    """An error if there are none."""
    if draws is not None and draws < 1:
        raise ValueError(f"--draws must be at least 1, got {draws}")
