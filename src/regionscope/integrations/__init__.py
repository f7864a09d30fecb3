"""regionscope inside other tools, each of which is an extra: only its own module imports it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around the import of an optional package: if it fails, say which extra brings it.

    >>> with extra("lightning"):
    ...     import no_such_package
    Traceback (most recent call last):
    ...
    ImportError: No module named 'no_such_package'; install it with: pip install 'regionscope[lightning]'
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}; install it with: pip install 'regionscope[{name}]'") from error
