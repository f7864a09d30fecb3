"""Imports point down the list of layers."""

import ast
from pathlib import Path

import regionscope

LAYERS = (
    "memory files tracing points probes results monotone"
    " segmentation plots geometry measures inequalities datafiles bunny datasets models checkpoints processes runs"
    " monitor report configs training integrations engines experiments app cli"
).split()
ROOT = Path(regionscope.__file__).parent


def layer(module: str) -> int:
    return LAYERS.index(module.split(".")[1])


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names |= {
                f"{node.module}.{a.name}" if node.module == "regionscope" else str(node.module) for a in node.names
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith("regionscope.")}


def test_every_module_imports_only_the_layers_before_it() -> None:
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        own = LAYERS.index(parts[0])
        for name in imported(path):
            other = layer(name)
            assert other < own or (other == own and len(parts) > 1), f"{'/'.join(parts)} imports {name}"


def test_every_module_has_a_layer() -> None:
    modules = {
        p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert modules - {"__init__", "__main__"} <= set(LAYERS)
