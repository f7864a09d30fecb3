"""Loops that numba compiles: kept in a folder where there is one, compiled anew where there is none."""

import logging
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile
from numba.core.event import Event, Listener, register

_log = logging.getLogger(__name__)


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """That of numba, for Python alone to call; if its cache finds no folder that it may write to, without the cache.

    >>> @njit(cache=False)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """

    options["no_cfunc_wrapper"] = True  # that of C is compiled beside each function otherwise

    def compiled(function: Callable[..., Any]) -> Any:
        if cache:
            try:
                kept = numba.njit(cache=True, **options)(function)
            except RuntimeError:  # there is no folder, neither beside the code nor in the user's home
                _announcer.kept = False
            else:
                if isinstance(file := getattr(getattr(kept, "_cache", None), "_cache_file", None), IndexDataCacheFile):
                    file.__class__ = _KeptFile
                return kept
        return numba.njit(**options)(function)

    return compiled


class _KeptFile(IndexDataCacheFile):
    """What is kept of a loop. If it cannot be read there is nothing, and the loop is compiled anew.

    So it is with what an older version of the library has left, if types are gone that its loops were given.
    """

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception:
            return {}

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except Exception:
            return None

    def save(self, key: Any, data: Any) -> None:
        try:
            super().save(key, data)
        except OSError as error:  # the disk is full
            _announcer.say_unkept(error)


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

    def say_unkept(self, error: OSError) -> None:
        """Say, once, that what was compiled will be compiled again."""
        if self.kept:
            self.kept = False
            _log.warning("regionscope: compiled kernels cannot be kept (%s); NUMBA_CACHE_DIR can name a folder", error)

    def on_end(self, event: Event) -> None:
        """Nothing is said of the end."""


_announcer = _Announcer()
register("numba:compile", _announcer)
