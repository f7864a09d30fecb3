"""What the results of exact geometry have in common: patterns, affine maps, certificates and files."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from regionscope.disk import DamagedFile
from regionscope.files import json_table, read_arrays, write_arrays
from regionscope.geometry import maps
from regionscope.geometry.grids import Grid
from regionscope.geometry.patterns import Column, PatternTable, unpacked
from regionscope.geometry.stored import axis_lengths, check_columns, check_pattern_arrays, check_sites
from regionscope.geometry.sweep import exact
from regionscope.machine import portions
from regionscope.tables import Facts
from regionscope.tracing.given import points_kept_at_once
from regionscope.tracing.network import Network, Site, Tournament
from regionscope.tracing.trace import as_network
from regionscope.types import Floats, Ints, Model

FORMAT = 3  # patterns in blocks
DENSE = 2  # the same without
SAMPLE = 8  # cells that a certificate looks at in exact arithmetic

Tally = Callable[[int], object]  # is told how many more points are done


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Facts):
    """Cells of a network, numbered, exact to the rounding of float64."""

    packed_patterns: Any  # Words (n, words); of cells found in blocks a `PatternTable`, which is indexed as such
    columns: tuple[Column, ...]
    sites: tuple[Site, ...]
    outputs: Floats | None  # (vertices, k); None for cells up to a layer
    close_decisions: int  # signs that bounds on rounding did not decide
    undecided: int  # those of them that exact arithmetic did not settle
    network: Network | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether every sign is proved; otherwise there may be more or fewer cells."""
        return self.undecided == 0

    @property
    def _certainty(self) -> str:
        """How sure the cells are, in a table."""
        return "yes" if self.exact else f"NO: {self.undecided:,} signs undecided"

    @property
    def _doubt(self) -> str:
        """What a representation says of signs that are not proved."""
        return "" if self.exact else f", NOT exact: {self.undecided:,} signs undecided"

    def __len__(self) -> int:
        """The number of activation regions."""
        return len(self.packed_patterns)

    @cached_property
    def patterns(self) -> Ints:
        """The piece every unit is on, site by site, and the position of every winner of max-pooling and its like."""
        return unpacked(self.columns, self.packed_patterns[:])

    def patterns_of(self, cells: Any) -> Ints:
        """The same of some cells only, a slice or numbers: the patterns of a million may not fit into memory."""
        return unpacked(self.columns, self.packed_patterns[cells])

    def affine_maps(self) -> tuple[Floats, Floats]:
        """The network inside each cell: output = A @ u + c at coordinates u; A (n, k, dimensions) and c (n, k)."""
        return self._maps

    @cached_property
    def _maps(self) -> tuple[Floats, Floats]:
        net, places = self._net, self.centres
        found = []
        for rows in point_portions(len(places), net):
            some = places[rows]
            x, axes = self._points(some), self._axes(some)
            values, slopes = maps.derivatives(net, x, axes, self.columns, self.patterns_of(rows))
            found.append((slopes, values - np.einsum("nkd,nd->nk", slopes, self._coordinates(some))))
        return np.concatenate([a for a, _ in found]), np.concatenate([c for _, c in found])

    @property
    def _any_net(self) -> Network:
        if self.network is None:
            name = type(self).__name__
            raise ValueError(
                f"these cells were read without their network; say {name}.load(path, model=...), or of a run"
                " run.plane(step, name, model) with the model of that step, such as rs.run_model(run, step)"
            )
        return self.network

    @property
    def _net(self) -> Network:
        net = self._any_net
        if self.outputs is None:
            raise ValueError("these cells stop at a layer: the network's output is not affine in them")
        return net

    # what each kind of cells says of itself

    @property
    @abstractmethod
    def centres(self) -> Floats:
        """A place inside each cell."""

    @abstractmethod
    def _points(self, places: Floats) -> Tensor:
        """The points of input space at places, (n, *input_shape)."""

    @abstractmethod
    def _coordinates(self, places: Floats) -> Floats:
        """The coordinates of places in which maps are affine, (n, dimensions)."""

    @abstractmethod
    def _axes(self, places: Floats) -> Tensor:
        """The directions in which coordinates go, (dimensions, *input_shape) or (dimensions, n, *input_shape)."""

    @property
    @abstractmethod
    def _size(self) -> float:
        """The norm of what points are computed from, which is rounded."""

    @abstractmethod
    def _reach(self, places: Floats) -> float:
        """A bound on the norms of the points at places."""

    @abstractmethod
    def _exact_points(self, places: Floats, p: int) -> Tensor:
        """The points modulo a prime, (n, entries)."""

    @abstractmethod
    def _grid(self, places: Floats) -> Grid:
        """The grid that holds the points."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """What a file of these cells holds, the patterns and outputs apart."""

    # files

    def save(self, path: str | Path) -> None:
        """Write an npz file to exactly this path, whole or not at all, without the network."""
        about = {
            "format": FORMAT if isinstance(self.packed_patterns, PatternTable) else DENSE,
            "kind": type(self).__name__,
            "columns": [asdict(c) for c in self.columns],
            "sites": [asdict(s) for s in self.sites],
            "close_decisions": self.close_decisions,
            "undecided": self.undecided,
        }
        patterns = self.packed_patterns
        arrays = self._arrays() | {"outputs": self.outputs}
        arrays |= patterns.arrays() if isinstance(patterns, PatternTable) else {"packed_patterns": patterns}
        stored = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
        write_arrays(path, {"about": np.array(json.dumps(about)), **stored})


def point_portions(points: int, net: Network, seen: Tally = lambda points: None) -> Iterator[slice]:
    """Points in portions at which the values of all units take little memory; `seen` is told how many, after each."""
    for some in portions(points, points_kept_at_once(net)):
        yield some
        seen(some.stop - some.start)


def read_cells(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file of cells holds: the fields that all cells have, and the arrays of their kind."""
    stored = read_arrays(path)
    if "about" not in stored:
        raise DamagedFile(f"{path} is no file of cells: {kind}.save writes them")
    about = json_table(str(stored.pop("about")))
    if about["format"] not in (FORMAT, DENSE):
        raise DamagedFile(
            f"{path} has format {about['format']}, this version of regionscope reads {DENSE} and {FORMAT}"
        )
    if about.get("kind", "PlaneCells") != kind:
        raise DamagedFile(f"{path} holds {about['kind']}: {about['kind']}.load reads it")
    columns = tuple(Column(**c) for c in about["columns"])
    sites = tuple(_site(**s) for s in about["sites"])
    patterns = _stored_patterns(stored)
    check_columns(columns, patterns.shape[1])
    check_sites(sites)
    if not all(isinstance(about[name], int) and about[name] >= 0 for name in ("close_decisions", "undecided")):
        raise ValueError("its numbers of undecided signs are no numbers")
    common = {
        "packed_patterns": patterns,
        "columns": columns,
        "sites": sites,
        "outputs": stored.pop("outputs", None),
        "close_decisions": about["close_decisions"],
        "undecided": about["undecided"],
    }
    return common, stored


def _stored_patterns(stored: dict[str, Any]) -> Any:
    """The patterns, dense or in blocks, taken out of what is stored."""
    if "packed_patterns" in stored:
        axis_lengths(stored, {"packed_patterns": ("u", "cells", "words")})
        return stored.pop("packed_patterns")
    check_pattern_arrays(stored)
    return PatternTable.of_arrays(stored)


def _site(
    *, breakpoints: list[float], shape: list[int], tournament: dict[str, Any] | str | None, **stored: Any
) -> Site:
    """A site as a file has it; older files have the name of a tournament only."""
    told = {"name": tournament} if isinstance(tournament, str) else tournament
    played = Tournament(**told) if told else None
    return Site(breakpoints=tuple(breakpoints), shape=tuple(shape), tournament=played, **stored)


def network_of(model: Model | None, example: Tensor) -> Network | None:
    """The frozen network of a model that loaded cells are of, if it is given; `example` is one input."""
    return None if model is None else exact(as_network(model, example[None]))
