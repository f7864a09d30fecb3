"""Loops that numba compiles: kept in a folder where there is one, compiled anew where there is none."""

import logging
from collections.abc import Callable
from typing import Any

import numba
from numba.core.event import Event, Listener, register

_log = logging.getLogger(__name__)


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """That of numba; if its cache finds no folder that it may write to, without the cache.

    >>> @njit(cache=False)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    def compiled(function: Callable[..., Any]) -> Any:
        if cache:
            try:
                return numba.njit(cache=True, **options)(function)
            except RuntimeError:  # there is no folder, neither beside the code nor in the user's home
                _announcer.kept = False
        return numba.njit(**options)(function)

    return compiled


class _Announcer(Listener):
    """Says why a first call takes longer: once in a process, if something of ours is compiled in it."""

    def __init__(self) -> None:
        self.kept, self.said = True, False

    def on_start(self, event: Event) -> None:
        ours = str(event.data["dispatcher"].py_func.__module__).startswith("regionscope.")
        if self.said or not ours:
            return
        self.said = True
        often = "each when it is first used: they are kept"
        if not self.kept:
            often = "in every process: numba found no folder to keep them in; NUMBA_CACHE_DIR can name one"
        _log.warning("regionscope: compiling kernels (up to a minute), %s", often)

    def on_end(self, event: Event) -> None:
        """Nothing is said of the end."""


_announcer = _Announcer()
register("numba:compile", _announcer)
