"""The `regionscope` command."""

import sys

import cyclopts

import regionscope as rs
from regionscope.cli.checkpoints import bounds, measure, regions
from regionscope.cli.runs import demo, report, resume, status, train

app = cyclopts.App(
    name="regionscope", help="Shows where a neural network bends.", version=rs.__version__, result_action="return_value"
)
for command in (regions, measure, bounds, train, resume, status, report, demo):
    app.command(command)


def main() -> None:
    """Run the command line; what a user can mend is said in one line."""
    try:
        app()
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        sys.exit(f"regionscope: {error}")
