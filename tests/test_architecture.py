"""Imports go down the arrows of the house only, and light commands stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
    "profiling": {"training", "models", "inference"},  # benches measure what users run
    "report": {"evaluation", "inference", "profiling"},
    "experiments": {"report", "sources"},
    "cli": {"experiments"},
}
SHARED = {"errors", "files", "phases", "seeds", "settings", "tables"}


def reachable(room: str) -> set[str]:
    rooms = {room}
    for below in ARROWS[room]:
        rooms |= reachable(below)
    return rooms


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
        if room == "__init__.py":
            return  # the public interface reaches everything, lazily
        assert imports(path) <= SHARED
        return
    allowed = reachable(room) | SHARED | ({"__version__"} if room == "cli" else set())
    assert imports(path) - allowed == set()


@pytest.mark.parametrize("path", sorted((ROOT / "nn").glob("*.py")), ids=lambda p: p.name)
def test_layers_know_no_biology(path: Path) -> None:
    modules = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    refused = {"numpy", "scipy", "pandas", "cobra"}
    if path.name.startswith("narrow_"):  # the compiled CPU kernel speaks arrays
        refused -= {"numpy"}
    assert not modules & refused


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
