"""All commands, with what holds for each."""

from typing import Literal

import cyclopts

import regionscope as rs
from regionscope.cli.checkpoints import bounds, measure, regions
from regionscope.cli.experiments import reproduce
from regionscope.cli.explorer import view
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
for command in (regions, measure, bounds, train, resume, status, report, compare, export, view, demo, reproduce):
    app.command(command)


@app.command(name="completion")
def _completion(shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Print a script that completes commands and options; for bash: eval "$(regionscope completion bash)".

    Parameters
    ----------
    shell
        The shell it is for; this one if not given.
    """
    print(app.generate_completion(shell=shell))
