"""Numbers modulo primes.

Every float is an integer times a power of two. Modulo an odd prime p a power of two has an inverse, so a float is an
integer below p there, and so are sums, products and averages of floats. With such integers float64 computes without
rounding, as long as all sums stay below 2^53. From the remainders for enough primes the Chinese remainder theorem gives
back the true number.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.compiling import njit

LARGEST = 2**52  # sums of remainders stay below this
NUMBERS_SIEVED = 1 << 14  # that are looked through for primes together

Integers = NDArray[np.object_]


def primes_below(limit: int) -> Iterator[int]:
    """The odd primes below a number, from above."""
    for top in range(limit, 3, -NUMBERS_SIEVED):
        yield from _primes_between(max(3, top - NUMBERS_SIEVED), top)


@cache
def _primes_between(low: int, high: int) -> tuple[int, ...]:
    """The odd primes from one number to below another, from above."""
    prime = np.ones(high - low, bool)
    for q in (2, *range(3, math.isqrt(high) + 1, 2)):
        prime[max(q * q, -(-low // q) * q) - low :: q] = False
    return tuple((low + np.flatnonzero(prime)[::-1]).tolist())


def modulo(x: Tensor, p: int) -> Tensor:
    """Integers of at most 2^52 modulo p, from 0 to p - 1."""
    result = np.empty(x.shape)
    _reduce(x.contiguous().view(-1).numpy(), 1.0 * p, result.reshape(-1))
    return torch.from_numpy(result)


@njit(cache=True, nogil=True)
def _rest(x, p):  # type: ignore[no-untyped-def]
    rest = x - np.floor(x / p) * p
    return rest + p if rest < 0 else rest  # the quotient may have been rounded up


@njit(cache=True, nogil=True)
def _reduce(x, p, result):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        result[i] = _rest(x[i], p)


@njit(cache=True, nogil=True)
def _scale(integers, exponents, powers, p, result):  # type: ignore[no-untyped-def]
    """Integers below 2^53 times powers modulo p; the integers in two halves, as they are too large."""
    half = 2.0**27
    for i in range(len(integers)):
        high = np.floor(integers[i] / half)
        rest = _rest(_rest(high, p) * half + (integers[i] - high * half), p)
        result[i] = _rest(rest * powers[exponents[i]], p)


@dataclass(frozen=True)
class Dyadics:
    """Floats as integers below 2^53 times powers of two."""

    integers: NDArray[np.float64]
    exponents: NDArray[np.int64]  # from 0, as places in a table of powers
    powers: range

    @staticmethod
    def of(tensor: Tensor) -> "Dyadics":
        mantissas, exponents = np.frexp(tensor.double().numpy())
        exponents = np.where(mantissas == 0, 0, exponents) - 53
        smallest, largest = int(exponents.min(initial=0)), int(exponents.max(initial=-53))
        return Dyadics(mantissas * 2.0**53, np.asarray(exponents - smallest, np.int64), range(smallest, largest + 1))

    def modulo(self, p: int) -> Tensor:
        powers = np.array([float(pow(2, e, p)) for e in self.powers])
        result = np.empty(self.integers.shape)
        _scale(self.integers.reshape(-1), self.exponents.reshape(-1), powers, 1.0 * p, result.reshape(-1))
        return torch.from_numpy(result)


def remainders(tensor: Tensor, p: int) -> Tensor:
    """Floats modulo p."""
    return Dyadics.of(tensor).modulo(p)


def remainder(number: Fraction | float, p: int) -> int:
    exact = Fraction(number)
    return exact.numerator * pow(exact.denominator, -1, p) % p


def integers_with(residues: Integers, moduli: Sequence[int]) -> Integers:
    """The integers between -M / 2 and M / 2, M the product of the moduli, with these remainders (moduli, ...)."""
    whole = math.prod(moduli)
    result = np.zeros(residues.shape[1:], object)
    for rest, p in zip(residues, moduli, strict=True):
        others = whole // p
        result = result + rest * (others * pow(others, -1, p))
    result = result % whole
    return np.asarray(np.where(result > whole // 2, result - whole, result), object)
