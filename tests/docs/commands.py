"""The commands of the documents, as the shell makes them, held against the command lines that there are."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import typer
import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from benchmarks.__main__ import command_line as benchmarks
from tests.docs.pages import ROOT, Block, shell_commands
from wildtype.cli.commands import app
from wildtype.errors import WildtypeError
from wildtype.experiments.settings.compose import GROUPS, SETTINGS, compose, known
from wildtype.experiments.slurm_presets import read_preset, split_prefix
from wildtype.settings import as_schema

OWN_DATA = {"mini-pairs", "my", "traits", "xga", "plates", "plates-2"}
"""Names that the documents use for data of the reader's own."""
RECORDED = ("wildtype", "python", "make", "pip", "pytest", "torchrun", "srun")
SHELL = f"""set -eu
record() {{ printf '%s\\0' "$BLOCK" "$#" "$@" >> "$RECORD"; }}
{" ".join(f'{name}() {{ record {name} "$@"; }};' for name in RECORDED)}
.venv/bin/wildtype() {{ wildtype "$@"; }}
.venv/bin/python() {{ python "$@"; }}
dist/venv/bin/wildtype() {{ wildtype "$@"; }}
seq() {{ printf '%s' "$1"; }}
cat() {{ {shutil.which("cat")} "$@"; }}
"""
"""Programs write down how they were called instead of running; of a count, only the first number is tried."""


def called(blocks: list[Block], folder: Path) -> list[tuple[Block, list[str]]]:
    """Return the words of every program that the blocks of a page call, in their order.

    Files that blocks write (``cat > key.yaml <<END``) are written in ``folder``.
    """
    script = [SHELL]
    for number, block in enumerate(blocks):
        script += [f"BLOCK={number}", *shell_commands(block)]
    record = folder / ".called"
    record.write_bytes(b"")
    said = subprocess.run(
        [shutil.which("bash") or "bash", "-s"],
        input="\n".join(script),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nowhere", "RECORD": str(record), "HOME": str(folder)},
    )
    assert not said.returncode, f"{blocks[0].page}: {said.stderr}"
    found = []
    words = record.read_bytes().decode().split("\0")[:-1]
    while words:
        number, count = int(words[0]), int(words[1])
        found.append((blocks[number], words[2 : 2 + count]))
        words = words[2 + count :]
    return found


def write_files(blocks: list[Block], folder: Path) -> None:
    """Write the blocks that are files."""
    for block in blocks:
        if block.mark is not None and block.mark.file:
            path = folder / block.mark.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


def command_of(words: list[str]) -> list[str] | None:
    """Return the words behind ``wildtype``, or those behind ``python -m`` of a bench; None of others."""
    if words[0] == "wildtype":
        return words[1:]
    return words[2:] if words[:3] == ["python", "-m", "benchmarks"] else None


def parse(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the name of a command, as in ``data query``, and its arguments.

    Raises
    ------
    AssertionError
        If there is no such command, or it has no such argument.
    """
    node, path, rest = command_line(), [], list(words)
    if rest[:1] == ["benchmarks"]:
        node, rest = benchmarks_line(), rest[1:]
    while hasattr(node, "commands"):
        name = rest.pop(0) if rest else ""
        assert name in node.commands, f"wildtype {' '.join(words)}: there is no command {name!r}"
        node = node.commands[name]
        path.append(name)
    try:
        return " ".join(path), node.make_context(path[-1], rest).params
    except typer.TyperException as error:
        raise AssertionError(f"wildtype {' '.join(words)}: {error}") from error


@cache
def command_line() -> Any:
    """Return the commands of `wildtype`, made once."""
    return typer.main.get_command(app)


@cache
def benchmarks_line() -> Any:
    """Return the commands of `python -m benchmarks`, made once."""
    return typer.main.get_command(benchmarks())


def check(words: list[str], folder: Path) -> list[str]:
    """Hold a command against what there is: commands, options, targets, extras, files; return its settings.

    Raises
    ------
    AssertionError
        If it names something that does not exist.
    """
    program, rest = words[0], words[1:]
    if program in ("torchrun", "srun"):
        assert "wildtype" in rest, words
        program, rest = "wildtype", rest[rest.index("wildtype") + 1 :]
    if program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
        assert {word for word in rest if "=" not in word} <= targets, words
    elif program == "pip":
        extras = re.findall(r"^(\w+) = \[\"?", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
        assert set(re.findall(r"\[(\w+)\]", " ".join(rest))) <= set(extras), words
    elif program == "pytest":
        assert all((ROOT / word.partition("::")[0]).exists() for word in rest if word.endswith(".py")), words
    elif program == "python" and rest[0] != "-m":
        assert (ROOT / rest[0]).is_file(), words
    elif program == "python":
        assert rest[1] == "benchmarks", words
        parse(rest[1:])
    return _check_wildtype(rest, folder) if program == "wildtype" else []


def _check_wildtype(words: list[str], folder: Path) -> list[str]:
    with contextlib.chdir(folder):  # files of plug-ins are loaded while the line is read
        command, given = parse(words)
    settings = list(given.get("settings") or [])
    if given.get("multirun"):
        settings = [one for word in settings for one in every_value(word)]
    if command in ("ablate", "tune"):
        what, *settings = given["overrides"] or ["ecoli-core"]
        if Path(what).suffix:
            settings += words_of_plan((folder / what).read_text(encoding="utf-8"))
        else:  # those that come along are tested where they are read
            assert what in known("ablation" if command == "ablate" else "search"), words
    if command == "profile trace":  # of a training, or of stored files
        settings = [word for word in settings if not word.endswith(".json.gz")]
    try:
        if given.get("preset"):
            read_preset(folder / given["preset"])
        if given.get("prefix"):
            split_prefix(given["prefix"])
    except WildtypeError as error:
        raise AssertionError(f"wildtype {' '.join(words)}: {error}") from error
    return settings


def every_value(word: str) -> list[str]:
    """Return a word of many runs with each of its values; of a range, with the first."""
    key, _, values = word.partition("=")
    if ends := re.match(r"range\((-?\d+)", values):
        return [f"{key}={ends[1]}"]
    return [f"{key}={value}" for value in values.split(",")] if "[" not in values else [word]


def words_of_plan(text: str) -> list[str]:
    """Return the settings that the YAML of an ablation or a search names."""
    plan = yaml.safe_load(text)
    found: list[str] = list(plan["base"])
    for levels in [plan.get("splits", {}), *plan.get("factors", {}).values()]:
        found += [word for level in levels.values() for word in level]
    for key, values in plan.get("space", {}).items():
        found += [f"{key}={value}" for value in (values if isinstance(values, list) else [values["low"]])]
    return found


def check_settings(words: list[str]) -> None:
    """Hold settings against those that there are, with their types; data of the reader's own have one of
    two names. Raises ``AssertionError``.

    The settings of each model are composed once; then every word is merged into them alone, which takes
    milliseconds instead of the tenth of a second of composing.
    """
    chosen = {key: value for key, _, value in (word.partition("=") for word in words) if key in GROUPS}
    for group, value in chosen.items():
        assert value in known(group) or (group == "data" and value in OWN_DATA), f"{group}={value}"
    experiment = SETTINGS / "experiment" / f"{chosen.get('experiment', '')}.yaml"
    model = chosen.get("model", "cell_transformer")
    if experiment.is_file() and "override /model: dango" in experiment.read_text(encoding="utf-8"):
        model = "dango"
    for word in words:
        if word.partition("=")[0] not in GROUPS:
            _check_word(word, model)


@cache
def _check_word(word: str, model: str) -> None:
    try:
        node, rest = _settings(model), word
        group, _, below = word.partition("=")[0].partition(".")
        # Merging copies: the group that the word is of, not all settings.
        if below and group in node and OmegaConf.is_config(node[group]):
            node, rest = node[group], word.partition(".")[2]
        OmegaConf.merge(node, OmegaConf.from_dotlist([rest]))
    except OmegaConfBaseException as error:
        raise AssertionError(f"{word} with model={model}: {error}") from error


@cache
def _settings(model: str) -> Any:
    return OmegaConf.structured(as_schema(compose([f"model={model}"])))
