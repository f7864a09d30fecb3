"""All commands, with what holds for each.

The file of a command is imported when it is asked for: what it needs takes seconds to load. So that the list of
commands says what each does, docstrings are read from the source.
"""

import ast
from collections.abc import Sequence
from inspect import cleandoc
from pkgutil import get_data
from typing import Any, Literal

import cyclopts

import regionscope as rs
from regionscope.cli.output import SPOKEN, Spoken

COMMANDS = {  # by the file that holds them, which is imported when one of them is asked for
    "regions": ("regions",),
    "measures": ("measure",),
    "bounds": ("bounds",),
    "runs": ("train", "resume", "status", "report", "compare", "export", "demo"),
    "explorer": ("view",),
    "experiments": ("reproduce",),
}
CODES = (
    "Exit codes: 0 done; 1 an error, told in one line; 2 options that there are not; 130 and 143 stopped by Ctrl-C or"
    " SIGTERM, and it is said how to go on; 141 nobody reads what is printed."
)

app = cyclopts.App(
    name="regionscope",
    help="Shows where a neural network bends.",
    help_epilogue=CODES,
    version=rs.__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=cyclopts.Parameter(consume_multiple=True, negative=()),
)


def _help_of(file: str) -> dict[str, dict[str, str]]:
    """What the functions of a file say of themselves: before their parameters, and as an example after all else."""
    tree = ast.parse(get_data("regionscope.cli", f"{file}.py") or b"")
    texts = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name: _help(text) for name, text in texts.items()}


def _help(text: str) -> dict[str, str]:
    example = text.partition("\nExamples\n--------\n")[2].strip()
    return {"help": text.partition("\nParameters\n")[0].strip(), "help_epilogue": f"Example: {example}"}


for file, names in COMMANDS.items():
    said = _help_of(file)
    for name in names:
        app.command(f"regionscope.cli.{file}:{name}", **said[name])


def _completion(shell: Literal["bash", "zsh", "fish", "powershell"] | None = None, *, output: Spoken = SPOKEN) -> None:
    """Print a script that completes commands and options.

    Parameters
    ----------
    shell
        The shell it is for; this one if not given.
    output
        How the script is printed.

    Examples
    --------
    eval "$(regionscope completion bash)"
    """
    script = app.generate_completion(shell=shell)
    output.result(script, {"script": script})


app.command(_completion, name="completion", **_help(cleandoc(_completion.__doc__ or "")))


def exit_code_of(words: Sequence[str]) -> Any:
    """Do what the words of a command line say: the exit code."""
    command, given, _ = app.parse_args(words)
    given.arguments.get("output", SPOKEN).hear_library()
    return command(*given.args, **given.kwargs)
