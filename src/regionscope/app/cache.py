"""What was made is kept as long as there is room, what was used last the longest."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Cache(Generic[Kept]):
    """Things by their keys, up to so many bytes in all; any thread may ask.

    >>> cache = Cache[bytes](limit=10, size=len)
    >>> cache.get(1, lambda: b"12345678"), cache.get(2, lambda: b"1234"), cache.get(1, lambda: b"new")
    (b'12345678', b'1234', b'new')
    """

    def __init__(self, limit: int, size: Callable[[Kept], int]) -> None:
        self._limit, self._size, self._lock = limit, size, Lock()
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self.nbytes = 0

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under a key, or is made now: outside the lock, so that others need not wait."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self.nbytes += self._size(made)
            while self.nbytes > self._limit:
                self.nbytes -= self._size(self._kept.popitem(last=False)[1])
        return made
