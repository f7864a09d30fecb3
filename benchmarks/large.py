"""The memory that a plane of millions of cells of a ResNet18 takes: `run.py large`, the better part of an hour."""

from collections.abc import Iterator

from timing import Ratio, peak_memory


def ratios() -> Iterator[Ratio]:
    memory = peak_memory(
        "plane = rs.Plane.around(networks.colours(), 1.0, generator=torch.Generator().manual_seed(0));"
        "cells = rs.plane_cells(networks.small_resnet18(), plane); assert cells.exact and len(cells) > 5_000_000"
    )
    yield Ratio("GB of memory at most: exact cells of a ResNet18 on a plane of radius 1 around an image", memory, 2.0)
