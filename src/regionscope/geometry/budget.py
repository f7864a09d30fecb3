"""How much memory a sweep may take, and what it does not fit into.

Values at vertices are what takes memory. So cells go through the network in blocks, depth first: a block that would
take more than its share is split, its parts go on one after another, and of one that is finished only cells and the
bits in which its patterns differ are kept, in files (see `spilled`): in memory they are when all are joined.
"""

import math
from dataclasses import dataclass

from regionscope.machine import bytes_in_words

DEFAULT = 2_000_000_000  # bytes
SHARE = 0.5  # of the memory for values and results: the rest is for the interpreter, torch and what is joined
AT_ONCE = 3  # blocks of the size of one that values, their signs and what is computed with them take
LITTLE = 0.05  # of the memory is left for a block at least
LEAST = 64  # vertices that a block has to have room for
EARLY = 0.1  # of the cells: from here on it is said how much all will take
OVER = 4  # rounds of a tournament stay together, and may take so many shares


class TooMuchMemory(MemoryError):
    """The exact regions do not fit into the memory that was given."""


@dataclass
class Budget:
    """The bytes that a sweep may take, None without a limit; what waits, and what finished blocks take in the end."""

    memory: int | None
    waiting: int = 0
    kept: int = 0
    finished: float = 0.0  # share of the cells

    @property
    def room(self) -> float:
        """The bytes that a block may have."""
        if self.memory is None:
            return float("inf")
        return max(SHARE * self.memory - self.waiting, LITTLE * self.memory) / AT_ONCE

    def needed(self, block: float) -> int:
        """The memory with which there is room for a block of so many bytes, beside what waits."""
        return bytes_to_give((block * AT_ONCE + self.waiting) / SHARE)

    def check(self, widest: int) -> None:
        """Refuse a network that has so many bytes at one vertex if there is no room for a few of them."""
        if self.memory is not None and LEAST * widest > self.room:
            raise TooMuchMemory(
                f"{bytes_in_words(self.memory)} of memory are too little for this network: its values at {LEAST}"
                f" vertices alone take {bytes_in_words(LEAST * widest)}; give"
                f" {bytes_in_words(self.needed(LEAST * widest))} or more"
            )

    def keep(self, size: int, share: float, cells: int) -> None:
        """Keep so many bytes of a finished block, unless all of them would be too many."""
        self.kept, self.finished = self.kept + size, self.finished + share
        if self.memory is None or self.finished < EARLY:
            return
        all_of_them = self.kept / min(self.finished, 1.0)
        if all_of_them > SHARE * self.memory:
            taken = all_of_them / SHARE
            raise TooMuchMemory(
                f"about {cells / self.finished:,.0f} cells would take {bytes_in_words(taken)} of memory, more than the"
                f" {bytes_in_words(self.memory)} that there are for it: give"
                f" {bytes_in_words(bytes_to_give(1.2 * taken))}, or look at a smaller part or fewer layers"
            )


def bytes_to_give(size: float) -> int:
    """Upwards to two digits, so that what a message says is enough.

    >>> bytes_to_give(1_234_567), bytes_to_give(12)
    (1300000, 12)
    """
    last: int = 10 ** max(len(str(int(size))) - 2, 0)
    return math.ceil(size / last) * last
