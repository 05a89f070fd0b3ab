"""Imports go down the arrows of the house only, and light commands stay light."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from wildtype.models.registry import DEFAULT_MODEL, MODELS

ROOT = Path(__file__).parents[1] / "src" / "wildtype"
ARROWS: dict[str, set[str]] = {
    "nn": set(),
    "organism": set(),
    "mutants": {"organism"},
    "datasets": {"organism", "mutants"},
    "evidence": {"organism", "mutants"},
    "sources": {"organism", "mutants", "datasets"},
    "models": {"nn", "organism", "mutants", "evidence"},
    "training": {"models", "datasets"},
    "evaluation": {"datasets", "models"},
    "inference": {"models", "evaluation"},
    "profiling": {"training", "models", "inference"},  # its problems are what users run
    "report": {"evaluation", "inference", "profiling"},
    "experiments": {"report", "sources"},
    "cli": {"experiments"},
}
SHARED = {
    "cache_lines", "characters", "compiled", "errors", "files", "locks", "memory", "phases", "plugins",
    "seeds", "settings", "tables", "terminal", "unpacking", "yaml_files",
}  # fmt: skip


def reachable(room: str) -> set[str]:
    rooms = {room}
    for below in ARROWS[room]:
        rooms |= reachable(below)
    return rooms


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the package; a folder's ``__init__`` is the folder."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file; a dozen tests look at every file."""
    gc.disable()  # a tree holds no circle to find, and all trees stay
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all parts of it."""
    return tuple(ast.walk(parsed(path)))


def files_imported(path: Path, files: dict[str, Path]) -> set[str]:
    """Return the files that a file names in any import: at its top, in functions, under TYPE_CHECKING."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # ``from package import name`` means the file of that name if there is one, else the package's
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in files else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & files.keys()) - {module_of(path)}


def circles(files: dict[str, Path]) -> list[list[str]]:
    """Return the sets of files that import one another, directly or through others (Tarjan 1972)."""
    needs = {name: sorted(files_imported(path, files)) for name, path in files.items()}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in needs[name]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            circle = [stack.pop()]
            while circle[-1] != name:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in files:
        if name not in number:
            visit(name)
    return found


def test_no_file_imports_itself_through_others() -> None:
    assert circles({module_of(path): path for path in sorted(ROOT.rglob("*.py"))}) == []


def test_a_circle_is_found_however_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path / "wildtype")
    room = tmp_path / "wildtype" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("from wildtype.room.top import x\n")
    (room / "top.py").write_text("def f():\n    from wildtype.room import middle\n")
    (room / "middle.py").write_text("import wildtype.room.low\n")
    low = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wildtype.room.top import x\n"
    (room / "low.py").write_text(low)
    (room / "alone.py").write_text("from wildtype.room import middle\n")
    files = {module_of(path): path for path in room.rglob("*.py")}
    assert circles(files) == [[f"wildtype.room.{name}" for name in ("low", "middle", "top")]]


def imports(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "wildtype" else [f"wildtype.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("wildtype.")}
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    if room.endswith(".py"):
        if room in ("__init__.py", "__main__.py"):
            return  # the public interface reaches everything, lazily, and `python -m wildtype` is the command
        assert imports(path) <= SHARED
        return
    allowed = reachable(room) | SHARED | ({"__version__"} if room == "cli" else set())
    assert imports(path) - allowed == set()


def test_the_package_imports_nothing_beside_it() -> None:
    beside = {"benchmarks", "tests", "tools"}
    for path in ROOT.rglob("*.py"):
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & beside, path


def test_the_wheel_holds_the_package_alone() -> None:
    settings = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["packages"]["find"]["where"] == ["src"]
    assert {path.name for path in ROOT.parent.iterdir() if (path / "__init__.py").is_file()} == {"wildtype"}


@pytest.mark.parametrize("path", sorted((ROOT / "nn").glob("*.py")), ids=lambda p: p.name)
def test_layers_know_no_biology(path: Path) -> None:
    modules = {
        alias.name.split(".")[0]
        for node in nodes(path)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    refused = {"numpy", "scipy", "pandas", "cobra"}
    if path.name.endswith("_kernels.py") or path.name in ("narrow_attention.py", "quantised_trees.py"):
        # compiled CPU kernels speak arrays
        refused -= {"numpy"}
    assert not modules & refused


def words(path: Path) -> set[str]:
    """Return every word of the texts in a file, except of its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    blocks = [node.body for node in nodes(path) if isinstance(node, documented)]
    told = {  # a text that stands alone documents what is above it
        id(line.value)
        for body in blocks
        for line in body
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    }
    texts = [
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def modules(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, or names from."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


REGISTRY = ROOT / "models" / "registry.py"
MODEL_FILES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path != REGISTRY and not any(ROOT / "models" / name in path.parents for name in MODELS)
]


@pytest.mark.parametrize("path", MODEL_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_asks_for_a_model_by_name_or_class(path: Path) -> None:
    named, said = modules(path), words(path)
    for name in MODELS:
        room = f"wildtype.models.{name}"
        assert not [m for m in named if m == room or m.startswith(f"{room}.")]
        assert name not in said


def test_names_of_models_are_in_one_place_of_the_registry() -> None:
    text = REGISTRY.read_text(encoding="utf-8")
    assert {name: text.count(f'"{name}"') for name in MODELS} == {
        name: 2 if name == DEFAULT_MODEL else 1 for name in MODELS
    }


def test_models_and_settings_are_known_without_torch() -> None:
    code = "from wildtype.models.registry import MODELS, check, config_class\n"
    code += "[check(config_class(name)()) for name in MODELS]"
    assert loaded(code) == set()
    run = "import sys, wildtype.cli.main as m; sys.argv = 'wildtype train --settings model=dango'.split()\n"
    run += "try: m.main()\nexcept SystemExit: pass"
    assert "torch" not in loaded(run)


def loaded(code: str) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after ``code``."""
    check = (
        "import sys; print(' '.join(m for m in ('torch','cobra','lightning','sklearn') if m in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"], capture_output=True, text=True, check=True
    )
    return set(result.stdout.splitlines()[-1].split()) if result.stdout.strip() else set()


def test_import_and_help_are_light() -> None:
    assert loaded("import wildtype") == set()
    run = "import sys, wildtype.cli.main as m; sys.argv = ['wildtype', '--help']\n"
    run += "try: m.main()\nexcept SystemExit: pass"
    assert loaded(run) == set()


def test_no_library_is_loaded_before_the_entry_point_can_be_stopped() -> None:
    # Until then Ctrl-C would end in a traceback.
    code = "import sys, wildtype.cli.main\n"
    code += "heavy = {'typer', 'rich', 'numpy', 'importlib.metadata', 'pydantic'} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", f"{code}assert not heavy, heavy"], check=True)


WITHOUT_POSIX = """
import importlib, pkgutil, sys
import psutil, torch, lightning.pytorch  # on this system they need both
sys.modules["fcntl"] = sys.modules["resource"] = None
import wildtype
for room in ("datasets", "training", "profiling"):
    package = importlib.import_module(f"wildtype.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
from wildtype.profiling.machine import _process_peak_mib
from wildtype.training.machine_load import _counters
psutil.Process.memory_info = lambda self: type("Windows", (), {"peak_wset": 3 << 20})
assert _process_peak_mib() == 3 and _counters()["own"] > 0
"""


@pytest.mark.slow
def test_posix_is_not_needed() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_POSIX], check=True)


def test_modules_of_posix_are_imported_where_they_are_used() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        found = re.findall(
            r"^(?:import|from) (fcntl|resource|pwd|grp|termios)\b", path.read_text("utf-8"), re.M
        )
        assert not found, path


def test_settings_are_read_without_torch() -> None:
    modules = ("ablation", "compose", "plans", "stored", "tuning")
    assert loaded("\n".join(f"import wildtype.experiments.settings.{name}" for name in modules)) == set()


@pytest.mark.slow
def test_predict_loads_neither_lightning_nor_cobra(tiny_run: Path) -> None:
    code = f"import wildtype as wt; wt.load({str(tiny_run)!r}).predict([['G001', 'G002']])"
    assert not loaded(code) & {"lightning", "cobra"}


def test_nothing_unpickles_or_evaluates() -> None:
    banned = ("pickle", "torch.load(", "eval(", "exec(", "yaml.load(", "allow_pickle=True")
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8").replace(".eval()", "")
        code = "\n".join(line.split("#")[0] for line in text.splitlines() if '"""' not in line)
        for word in banned:
            hits = [
                line
                for line in code.splitlines()
                if word in line
                and "No pickle" not in line
                and "no pickle" not in line
                and "without pickle" not in line
                and "allow_pickle=False" not in line
            ]
            assert not hits, f"{path}: {hits}"
