"""The `regionscope` command."""

import os
import sys
import warnings
from typing import Any, Literal

import cyclopts

import regionscope as rs
from regionscope.cli.checkpoints import bounds, measure, regions
from regionscope.cli.runs import compare, demo, export, report, resume, status, train

CODES = (
    "Exit codes: 0 done; 1 an error, told in one line; 2 options that there are not; 130 and 143 stopped by Ctrl-C or"
    " SIGTERM, `regionscope resume` goes on; 141 nobody reads what is printed."
)

app = cyclopts.App(
    name="regionscope",
    help="Shows where a neural network bends.",
    help_epilogue=CODES,
    version=rs.__version__,
    result_action="return_value",
    default_parameter=cyclopts.Parameter(consume_multiple=True, negative=()),
)


@app.command(name="completion")
def _completion(shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Print a script that completes commands and options; for bash: eval "$(regionscope completion bash)".

    Parameters
    ----------
    shell
        The shell it is for; this one if not given.
    """
    print(app.generate_completion(shell=shell))


for command in (regions, measure, bounds, train, resume, status, report, compare, export, demo):
    app.command(command)


def main() -> None:
    """Run the command line; what a user can mend is said in one line."""
    warnings.showwarning = _say_warning
    try:
        code = app()
        sys.stdout.flush()
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
