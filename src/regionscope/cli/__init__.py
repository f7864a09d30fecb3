"""The `regionscope` command."""

import io
import logging
import os
import sys
import threading
import warnings
from typing import Any

SECONDS = "10"
AGAIN = "give the same command again; what was kept before stays"


def main() -> None:
    """Run the command line; what a user can mend, and how to go on after Ctrl-C, is said in one line."""
    warnings.showwarning = _say_warning
    before = set(threading.enumerate())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as by >&-: what is printed goes nowhere
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not sys.stderr.isatty():  # in a file, bars only of what takes long, and now and then
        os.environ.setdefault("TQDM_DELAY", SECONDS)
        os.environ.setdefault("TQDM_MININTERVAL", SECONDS)
    try:
        from regionscope.cli.commands import exit_code_of  # for seconds, in which Ctrl-C is no error either

        code: Any = exit_code_of(sys.argv[1:])
        sys.stdout.flush()
    except (KeyboardInterrupt, SystemExit) as stop:
        code = 130 if isinstance(stop, KeyboardInterrupt) else stop.code
        if notes := getattr(stop, "__notes__", [] if isinstance(stop, SystemExit) else [AGAIN]):
            print(f"regionscope: stopped; {notes[0]}", file=sys.stderr)
        _leave_if_threads_go_on(code, set(threading.enumerate()) - before)
    except BrokenPipeError:  # nobody reads any more: what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except (ValueError, TypeError, RuntimeError, OSError, KeyError, MemoryError, ImportError) as error:
        if "--debug" in sys.argv:  # which may not have been parsed by then
            raise
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        code = " ".join([f"regionscope: {reason or type(error).__name__}", *getattr(error, "__notes__", ())])
    sys.exit(code)


def _leave_if_threads_go_on(code: Any, begun: set[threading.Thread]) -> None:
    """End the process at once if threads it has begun are in the middle of something, which Python would wait for."""
    if isinstance(code, int) and not all(thread.daemon for thread in begun):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """In one line, without the code that it comes from."""
    logging.getLogger("regionscope").warning("regionscope: %s", message)
