"""The order of the rooms, and of the files in each: imports point back only."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import regionscope
from regionscope.cli.commands import COMMANDS

ROOT = Path(regionscope.__file__).parent
HOUSE = {
    "types": "",
    "machine": "",
    "disk": "",
    "files": "",
    "tables": "",
    "results": "",
    "points": "",
    "compiling": "",
    "progress": "",
    "tracing": "undisturbed schemas steps calls activations decompositions lifting program operations network ledger"
    " recording forward agreement trace given",
    "geometry": "traversals predicates patterns planes pieces rounding laws modular grids rational tournaments rows"
    " evaluation bases adjoints kernels lineage complexes slopes filters settling budget standings summed swept spilled"
    " sweep stitching subdivision forecasts segments maps decision stored cells line_cells plane_cells checks"
    " certificates",
    "measures": "draws densities classification tangents noise pools good directions routes krylov cones penalties"
    " crosspolytopes neighbourhoods switches dense_chains complexity expected deformation crossings confirmations"
    " region_count comparison rank variation distance attacks robustness costs table plans",
    "inequalities": "bound chains constants sampling representation univariate complexity_bounds norm_bounds"
    " region_bounds change bounds",
    "datasets": "files bunny sets",
    "runs": "processes monotone phases record locks run bundles watched monitor report",
    "plots": "style estimates marks planes lines curves scatter __init__",
    "training": "models checkpoints config progress signals loop",
    "integrations": "__init__ loggers torchmetrics watching lightning transformers",
    "checkpoints": "",
    "engines": "tasks local clusters __init__",
    "experiments": "settings findings verdicts lab experiment curves pictures length_maps"
    # LC
    " lc_mnist lc_gaussians lc_bunny lc_bounds lc_shallow"
    # HR
    " hr_lines hr_distances hr_planes hr_random hr_layers hr_sawtooth"
    # PD
    " pd_images pd_cnn pd_resnet pd_folder pd_deformation"
    " pd_mnist pd_migration pd_grokking pd_sweeps pd_checks pd_toy"
    # beyond the papers
    " x_runs x_penalty x_definitions x_migration x_activations x_tightness x_grokking x_membership x_prediction"
    " registry page",
    "app": "problems cache library windows payload rasters viewer summaries pictures questions live security server"
    " page widget",
    "cli": "output models places checkpoints regions measures bounds explorer runs experiments commands __init__",
}
ORDER = [f"{room}.{file}" for room, files in HOUSE.items() for file in files.split() or [""]]
# above what they take, and imported by it when they are asked for
LATE = {"geometry.certificates", "measures.plans", *(file for file in ORDER if file.startswith("plots."))}


def place(module: str) -> int:
    room, _, file = module.partition(".")
    return ORDER.index(f"{room}.{file}" if HOUSE[room] else f"{room}.")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The files of the library that a file imports, as room.file, and whether only when a function is called."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("regionscope"):
            continue
        assert node.level == 0, f"{path.name} imports relatively"
        for name in node.names:
            parts = [*str(node.module).split(".")[1:], name.name]
            path_of = ROOT.joinpath(*parts)
            if not path_of.with_suffix(".py").exists() and not (path_of / "__init__.py").exists():
                parts = parts[:-1]
            if not parts:
                assert name.name == "__version__", f"{path.name} imports {name.name} without its file"
                continue
            if len(parts) == 1 and HOUSE[parts[0]]:
                parts = [*parts, "__init__"]
            yield ".".join(parts), node not in tree.body


def modules() -> dict[str, Path]:
    found = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    empty = {name for name in found if name.endswith(".__init__") and name not in ORDER}
    return {name: path for name, path in found.items() if name not in empty | {"__init__", "__main__"}}


@pytest.mark.parametrize("name", modules())
def test_a_file_imports_only_what_comes_before_it(name: str) -> None:
    for other, late in imports(modules()[name]):
        assert place(other) < place(name) or (late and other in LATE), f"{name} imports {other}"


def test_only_the_command_line_imports_the_library_as_a_whole() -> None:
    for name, path in modules().items():
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import)]
        taken = {alias.name for node in nodes for alias in node.names if alias.name.split(".")[0] == "regionscope"}
        assert taken <= ({"regionscope"} if name.startswith("cli.") else set()), f"{name} imports {', '.join(taken)}"


def test_the_explorer_knows_runs_and_geometry_not_how_to_train() -> None:
    below = {room for room in HOUSE if not HOUSE[room]} - {"checkpoints"}
    for name, path in modules().items():
        if name.startswith("app."):
            taken = {other for other, _ in imports(path)} - {"integrations.__init__"}  # which says what an extra is
            rooms = {other.partition(".")[0] for other in taken}
            assert rooms <= {"app", "tracing", "geometry", "measures", "runs", "plots", *below}, name


def test_every_file_has_its_place_and_every_place_its_file() -> None:
    assert {name if "." in name else f"{name}." for name in modules()} == set(ORDER)


def definitions(path: Path, *kinds: type[ast.FunctionDef] | type[ast.ClassDef]) -> set[str]:
    """The functions or classes of a file, but for those that say they are its own."""
    found = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}
    return {name for name in found if not name.startswith("_")}


def names_taken(path: Path) -> set[str]:
    """What a file imports, and what it looks up with a dot."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    return imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


# commands are called by what they do, pictures by what they show
SHOWN = ("cli", "plots")
# compiled loops, which go by plain names
PLAIN = {"geometry.kernels"}


def test_no_two_functions_or_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in modules().items():
        for name in definitions(path, ast.FunctionDef, ast.ClassDef) if module.split(".")[0] not in SHOWN else ():
            homes.setdefault(name, []).append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


# what users get and need not name: parts of results, errors, modules of networks
GIVEN = {
    "geometry.plane_cells": {"Edges"},
    "geometry.certificates": {"Verdict"},
    "engines.local": {"WorkerLost"},
    "training.models": {"Attention", "Embedding", "Maxout", "MeanToken", "PreactBlock", "TokenMLP"},
}
SETTINGS = "experiments."  # what a figure is run with: results are kept under a hash of it


def names_alone(module: str, *kinds: type[ast.FunctionDef] | type[ast.ClassDef]) -> set[str]:
    """The functions or classes of a file that are not public, and that no other file uses."""
    path = modules()[module]
    elsewhere = set[str]().union(*(names for other, names in all_names_taken().items() if other != path))
    return definitions(path, *kinds) - elsewhere - set(regionscope.__all__)


@cache
def all_names_taken() -> dict[Path, set[str]]:
    top = Path(__file__).parents[1]
    folders = [ROOT, *(top / name for name in ("tests", "benchmarks", "docs", "examples", "tools"))]
    return {path: names_taken(path) for folder in folders for path in folder.rglob("*.py")}


def test_functions_that_no_other_file_uses_start_with_an_underscore() -> None:
    commands = {name for names in COMMANDS.values() for name in names}
    for module in modules().keys() - PLAIN:
        alone = names_alone(module, ast.FunctionDef) - {*commands, "main"}  # `main` is the command, see pyproject.toml
        assert not alone, f"{module}: nothing else uses {', '.join(sorted(alone))}"


def test_classes_that_no_other_file_uses_start_with_an_underscore() -> None:
    for module in modules().keys() - PLAIN:
        alone = names_alone(module, ast.ClassDef) - GIVEN.get(module, set())
        alone = set() if module.startswith(SETTINGS) else alone
        assert not alone, f"{module}: nothing else uses {', '.join(sorted(alone))}"


WRITING = {"write_text", "write_bytes", "mkdir", "rmdir", "unlink", "rmtree", "touch", "fsync", "save_file", "savefig"}
WRITING |= {"np.save", "savez", "savez_compressed", "savetxt", "tofile"}
READING = {"read_text", "read_bytes", "load_file", "safe_open"}
AT_HOME = {"disk", "files", "machine"}  # `machine` asks the system how much memory there is
TEMPORARY = {"geometry.spilled": {"np.save", "tofile"}}  # files without a name, gone when they are closed


def test_one_place_writes_files_and_opens_them() -> None:
    for module in modules().keys() - AT_HOME:
        calls = [node.func for node in ast.walk(ast.parse(modules()[module].read_text())) if isinstance(node, ast.Call)]
        found = [call for call in calls if isinstance(call, ast.Attribute)]
        used = {name for call in found for name in (call.attr, ast.unparse(call))} & (WRITING | READING)
        used |= {call.id for call in calls if isinstance(call, ast.Name) and call.id == "open"}
        used -= TEMPORARY.get(module, set())
        assert not used, f"{module} calls {', '.join(sorted(used))}: take what is in disk.py and files.py"
