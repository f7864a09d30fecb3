"""All commands, with what holds for each.

The file of a command is imported when it is asked for: what it needs takes seconds to load. So that the list of
commands says what each does, docstrings are read from the source.
"""

import ast
from pkgutil import get_data
from typing import Literal

import cyclopts

import regionscope as rs

COMMANDS = {  # by the file that holds them, which is imported when one of them is asked for
    "checkpoints": ("regions", "measure", "bounds"),
    "runs": ("train", "resume", "status", "report", "compare", "export", "demo"),
    "explorer": ("view",),
    "experiments": ("reproduce",),
}
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


def _descriptions(file: str) -> dict[str, str]:
    """What the functions of a file say of themselves, without their parameters."""
    tree = ast.parse(get_data("regionscope.cli", f"{file}.py") or b"")
    texts = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name: text.partition("\nParameters\n")[0].strip() for name, text in texts.items()}


for file, names in COMMANDS.items():
    said = _descriptions(file)
    for name in names:
        app.command(f"regionscope.cli.{file}:{name}", help=said[name])


@app.command(name="completion")
def _completion(shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Print a script that completes commands and options; for bash: eval "$(regionscope completion bash)".

    Parameters
    ----------
    shell
        The shell it is for; this one if not given.
    """
    print(app.generate_completion(shell=shell))
