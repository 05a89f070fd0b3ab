"""No document names a command, an option, a setting, a file or a name of Python that does not exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.docs.commands import called, check, check_settings, command_line, command_of, parse, write_files
from tests.docs.pages import PAGES, ROOT, Block, blocks, read_mark, shell_commands
from wildtype.errors import WildtypeError
from wildtype.experiments.settings.compose import known_keys
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import MODELS, config_class

BLOCKS = [block for page in PAGES for block in blocks(page)]
CODE = [block for block in BLOCKS if block.language in ("console", "python", "bash", "sh", "shell")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("documents")
    write_files(BLOCKS, found)
    return found


def test_every_block_says_what_becomes_of_it() -> None:
    assert len(CODE) > 50  # the pages were found
    for block in CODE:
        assert block.language in ("console", "python"), f"{block.place}: call it console"
        assert block.mark is not None, f"{block.place}: say run, or why it is not run"
        assert block.mark.runs is None or block.mark.named or block.mark.reason or block.mark.file, (
            f"{block.place}: say why it is not run"
        )


@pytest.fixture(scope="module")
def commands(folder: Path) -> list[tuple[Block, list[str]]]:
    """Every command of every page, as the shell makes it."""
    pages = {block.page: block for block in CODE if block.language == "console"}
    return [
        one
        for page in pages
        for one in called([b for b in CODE if b.page == page and b.language == "console"], folder)
    ]


def test_commands_exist(commands: list[tuple[Block, list[str]]], folder: Path) -> None:
    asked = 0
    for block, words in commands:
        try:
            settings = check(words, folder)
            check_settings(settings)
        except AssertionError as error:
            raise AssertionError(f"{block.place}: {error}") from error
        asked += len(settings)
    assert asked > 100


def test_what_is_run_stands_in_its_block(commands: list[tuple[Block, list[str]]]) -> None:
    for block in CODE:
        if block.language == "console" and block.mark is not None and block.mark.named:
            called_here = [command_of(words) for one, words in commands if one is block]
            lines = [" ".join(words) for words in called_here if words is not None]
            for name in block.mark.named:
                assert any(f"{line} ".startswith(f"{name} ") for line in lines), f"{block.place}: {name}"
            left = [
                line
                for line in lines
                if block.mark.words(line) is None and block.mark.words(line, with_files=True) is None
            ]
            assert not left or block.mark.reason, f"{block.place}: say why {left[0]} is not run"


@pytest.mark.parametrize("block", [b for b in CODE if b.language == "python"], ids=lambda b: b.place)
def test_python_imports_what_exists(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), block.place


def inline(pattern: str) -> list[tuple[str, str]]:
    """Return the pieces of code within lines that match, with their pages; the log tells of the past."""
    found = []
    for page in PAGES:
        if page.name != "log.md":
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
            pieces = (" ".join(piece.split()) for piece in re.findall(r"`([^`]+)`", text))
            found += [(str(page.relative_to(ROOT)), piece) for piece in pieces if re.match(pattern, piece)]
    return found


def test_commands_within_lines_exist() -> None:
    names = "|".join(command_line().commands)
    found = inline(rf"wildtype [a-z]|({names}) .*--")
    assert len(found) > 20
    for page, text in found:
        words = text.removeprefix("wildtype ").removesuffix(" …").split()
        command = words[:2] if words[0] in ("data", "organism", "profile") else words[:1]
        options = {word.partition("=")[0] for word in words if re.match(r"-[-a-z]", word)}
        assert options <= options_of(command), f"{page}: {text}"


def test_benches_within_lines_exist() -> None:
    found = inline("python -m benchmarks [a-z]")
    assert found
    for _, text in found:
        parse(text.removeprefix("python -m ").split())


def options_of(command: list[str]) -> set[str]:
    """Return the options of a command; raises if there is no such command."""
    node = command_line()
    for name in command:
        assert name in node.commands, f"there is no command {' '.join(command)}"
        node = node.commands[name]
    return {option for param in node.params for option in param.opts} | {"--help"}


def test_settings_within_lines_exist() -> None:
    keys = set(known_keys(TrainConfig()))
    keys |= {name for model in MODELS for name in known_keys(config_class(model)(), "model.")}
    found = inline(r"(data|split|model|training|run)(\.[a-z_]+)+(=|$)")
    assert len(found) > 30
    files = {"py", "json", "md", "yaml", "toml"}
    for page, text in found:
        for word in text.split():
            key = word.partition("=")[0]
            if re.match(r"(data|split|model|training|run)\.", key) and key.rsplit(".", 1)[-1] not in files:
                assert key in keys, f"{page}: {text}"


def test_files_within_lines_exist() -> None:
    found = inline(r"[\w/.-]+\.(py|yaml|toml)(::\w+)?$")
    assert len(found) > 30
    for page, text in found:
        name = text.partition("::")[0]
        own = name in {block.mark.file for block in BLOCKS if block.mark is not None}
        here = [base for base in (ROOT, ROOT / "src/wildtype", ROOT / "tests") if (base / name).is_file()]
        assert own or here, f"{page}: {text}"


def test_marks_are_read() -> None:
    assert read_mark("<!-- run -->").runs is None  # type: ignore[union-attr]
    mark = read_mark("<!-- run: screen; train + training.epochs=1 seed=2; not run: needs a cluster -->")
    assert mark is not None
    assert mark.words("screen") == []
    assert mark.words("train") == ["training.epochs=1", "seed=2"]
    assert mark.words("data show") is None
    assert mark.reason == "needs a cluster"
    both = read_mark("<!-- run: predict; with files: train + seed=2; data sources; not run: hours -->")
    assert both is not None
    assert (both.runs, both.with_files) == ({"predict": []}, {"train": ["seed=2"], "data sources": []})
    assert both.words("train data=a", with_files=True) == ["seed=2"]
    assert both.words("train data=a") is None
    assert both.reason == "hours"
    only = read_mark("<!-- with files: train -->")
    assert only is not None
    assert (only.runs, only.named) == ({}, ["train"])
    assert read_mark("<!-- a remark -->") is None


def made(text: str, language: str = "console") -> Block:
    return Block("made.md", 1, language, text, None)


@pytest.mark.parametrize(
    "line",
    [
        "wildtype trian",
        "wildtype train --fast",
        "wildtype train model.layerz=2",
        "wildtype train data=yeats",
        "wildtype embed",
        "wildtype bench attention",
        "python -m benchmarks nothing",
        "python -m benchmarks attention --fast",
        "python -m benches attention",
        "python tools/nothing.py",
        "make nothing",
        "pip install 'wildtype[nothing]'",
        "wildtype ablate nothing",
        "wildtype train --slurm --preset none.yaml",
        "nothing at all",
        "wildtype train --multirun model.layers=1,x run.folder=runs/a",
        "for seed in 1; do wildtype train sead=$seed; done",
        "torchrun --no-python wildtype train a=1",
    ],
)
def test_what_does_not_exist_is_found(line: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, WildtypeError)):
        for _, words in called([made(f"$ {line}\n")], tmp_path):
            check_settings(check(words, tmp_path))


def test_what_commands_print_is_no_command(tmp_path: Path) -> None:
    block = made('$ A="x y"\n$ wildtype predict RUN \\\n    --set "$A"   # a remark\nsaid\n$ make test\n')
    assert shell_commands(block)[-1] == "make test"
    assert [words for _, words in called([block], tmp_path)] == [
        ["wildtype", "predict", "RUN", "--set", "x y"],
        ["make", "test"],
    ]
