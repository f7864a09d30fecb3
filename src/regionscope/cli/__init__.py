"""The `regionscope` command."""

import io
import os
import sys
import warnings
from typing import Any

SECONDS = "10"


def main() -> None:
    """Run the command line; what a user can mend is said in one line."""
    warnings.showwarning = _say_warning
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not sys.stderr.isatty():  # in a file, bars only of what takes long, and now and then
        os.environ.setdefault("TQDM_DELAY", SECONDS)
        os.environ.setdefault("TQDM_MININTERVAL", SECONDS)
    try:
        from regionscope.cli.commands import app  # for seconds, in which Ctrl-C is no error either

        code = app()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # nobody reads any more: what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, TypeError, RuntimeError, OSError, KeyError, MemoryError, ImportError) as error:
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        sys.exit(f"regionscope: {reason or type(error).__name__}")
    sys.exit(code)


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In one line, without the code that it comes from."""
    print(f"regionscope: {message}", file=sys.stderr)
