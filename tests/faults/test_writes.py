"""Every write of a command fails once, or is the last thing before a kill: what is there is old or new."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.commands import QUICK, result
from tests.faults.writes import Ended, Writes, supported

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not supported(), reason="only Linux on x86-64 lets calls be refused one by one"),
]
EVERY = int(os.environ.get("WILDTYPE_EVERY_WRITE", "61"))
"""Every so many-th write fails; `make test-faults` takes 1, which is all."""
TRAIN = ("train", *QUICK, "training.epochs=1", "baselines=[mean]", "data.rows=300")
GENES = "locus_tag\tsymbol\nx1\tabcA\nx2\tabcB\nx3\tabcC\nx4\tabcD\n"
ORGANISM = (
    "name: mine\ngenes:\n  files:\n    - {path: genes.tsv, columns: {name: locus_tag, standard: symbol}}\n"
)
OWN = "genes,value\nb0902;b1761,0.1\nb0116,0.2\nb0114;b0116,-0.3\nb0727,0.4\nb0902,0.01\nb1761,0.03\n"
SQL = "SELECT id FROM measurements"


@dataclass(frozen=True)
class Command:
    """A command, and how to tell what became of what it writes.

    Attributes
    ----------
    words : tuple of str
        The command.
    state : callable
        Return what is there, given the folder and a way to run further commands; None: nothing.
    again : tuple of str
        What is added when the command is repeated.
    before : tuple of str
        A command that must have been run.
    """

    words: tuple[str, ...]
    state: Callable[[Path, Callable[..., Ended]], Any]
    again: Callable[[Path], tuple[str, ...]] = lambda root: ()
    before: tuple[tuple[str, ...], ...] = field(default=())


def content(name: str) -> Callable[[Path, Callable[..., Ended]], Any]:
    """Return what tells the bytes of a file."""
    return lambda root, run: (root / name).read_bytes() if (root / name).exists() else None


def files(name: str) -> Callable[[Path, Callable[..., Ended]], Any]:
    """Return what tells the bytes of the finished files of a folder, by name."""

    def tell(root: Path, run: Callable[..., Ended]) -> Any:
        found = [path for path in (root / name).rglob("*") if path.is_file()]
        return {path.name: path.read_bytes() for path in found if not path.name.startswith(".")} or None

    return tell


def card(*words: str) -> Callable[[Path, Callable[..., Ended]], Any]:
    """Return what tells the JSON that a command prints."""

    def tell(root: Path, run: Callable[..., Ended]) -> Any:
        done = run(*words)
        assert done.code == 0 or done.sentence, done.err
        return json.loads(done.out) if done.code == 0 else None

    return tell


def trained(root: Path, run: Callable[..., Ended]) -> Any:
    """Return what a run found, None unless it says that it is finished."""
    return result(root / "made") if (root / "made" / "comparison.json").exists() else None


def resumed(root: Path) -> tuple[str, ...]:
    """Return what a person says after a crash: go on where there is something to go on from."""
    if (root / "made" / "resume" / "state.json").exists():
        return ("run.resume=true",)
    return ("run.overwrite=true",) if (root / "made" / "settings.json").exists() else ()


IMPORT = (
    "data", "import", "own.csv", "--organism", "ecoli-core", "--name", "own", "--phenotype", "fitness",
    "--yes",
)  # fmt: skip
ROWS = ("predict", "run", "--set", "b0902,b1761", "--set", "b0116", "-o", "p.csv", "--shards", "1")
SHARDED = ("screen", "run", "--order", "2", "--top", "5", "-o", "s.csv", "--shards", "2")
COMMANDS = {
    "train": Command((*TRAIN, "run.folder=made"), trained, resumed),
    "data import": Command(IMPORT, card("data", "show", "own", "--json")),
    "organism import": Command(
        ("organism", "import", "mine.yaml"), card("organism", "show", "mine", "--json")
    ),
    "predict": Command(("predict", "run", "--set", "b0902,b1761", "-o", "p.parquet"), content("p.parquet")),
    "predict, a shard": Command((*ROWS, "--shard", "0"), files("p.csv.shards")),
    "predict, merged": Command(
        ("predict", "--merge", "p.csv.shards", "-o", "p.csv"),
        content("p.csv"),
        before=((*ROWS, "--shard", "0"),),
    ),
    "screen": Command(("screen", "run", "--order", "2", "--top", "5", "-o", "s.csv"), content("s.csv")),
    "screen by two": Command(
        ("screen", "run", "--order", "2", "--top", "5", "-o", "s.csv", "--processes", "2"), content("s.csv")
    ),
    "screen, a shard": Command((*SHARDED, "--shard", "1"), files("s.csv.shards")),
    "screen, merged": Command(
        ("screen", "--merge", "s.csv.shards", "-o", "s.csv"),
        content("s.csv"),
        before=((*SHARDED, "--shard", "0"), (*SHARDED, "--shard", "1")),
    ),
    "report": Command(("report", "run", "-o", "page.html"), content("page.html")),
    "plot": Command(("plot", "comparison", "run", "-o", "figure.pdf"), content("figure.pdf")),
    "data query": Command(
        ("data", "query", SQL, "--dataset", "asked", "--organism", "ecoli-core"),
        card("data", "show", "asked", "--json"),
        before=(IMPORT,),
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writes") / "here"


@pytest.fixture(scope="module")
def writes(root: Path) -> Iterator[Writes]:
    with Writes({"WILDTYPE_CACHE": str(root / "cache")}) as server:
        yield server


@pytest.fixture(scope="module")
def begun(root: Path, writes: Writes) -> Path:
    """A folder with a trained run, a built dataset, and files to import."""
    root.mkdir()
    (root / "genes.tsv").write_text(GENES)
    (root / "mine.yaml").write_text(ORGANISM)
    (root / "own.csv").write_text(OWN)
    done = writes.run([*TRAIN, "run.folder=run"], root)
    assert done.code == 0, done.err
    for name in ("p.parquet", "p.csv", "s.csv", "page.html", "figure.pdf"):
        (root / name).write_bytes(b"old")
    shutil.rmtree(root.with_name("begun"), ignore_errors=True)
    shutil.copytree(root, root.with_name("begun"))
    return root.with_name("begun")


def leftovers(root: Path) -> list[str]:
    """Return what nobody asked for: temporary files, and the state of a screen that is over."""
    patterns = (".*.part*", ".*.old*", "*.tmp*", ".*.screen", "*.turn")
    return sorted(str(path.relative_to(root)) for pattern in patterns for path in root.rglob(pattern))


@pytest.mark.parametrize("mode", ["full", "kill", pytest.param("once", marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_nth_write(
    name: str, mode: str, root: Path, begun: Path, writes: Writes, tell: Callable[[str], None]
) -> None:
    command, found = COMMANDS[name], {"rounds": 0, "lost": 0, "silent": 0, "traceback": 0, "left": 0}

    def anew(words: tuple[tuple[str, ...], ...] = command.before) -> None:
        shutil.rmtree(root)
        shutil.copytree(begun, root)
        for word in words:
            done = writes.run([*word], root)
            assert done.code == 0, done.err

    def run(*words: str) -> Ended:
        return writes.run([*words], root)

    anew()
    old = command.state(root, run)
    whole = run(*command.words)
    assert whole.code == 0, whole.err
    new = command.state(root, run)
    assert new != old
    anew()
    total = run(*command.words).writes  # no cache of compiled code is written the second time
    problems = []
    for n in range(1, total + 1, EVERY):
        anew()
        done = writes.run([*command.words], root, mode, n)
        if not done.hit:
            continue  # the last writes may not be made every time
        found["rounds"] += 1
        about = f"{name}, {mode} at write {n} of {total} ({done.hit}): code {done.code}"
        state = command.state(root, run)
        kept = {"old": state == old, "new": state == new}
        said = done.code < 0 if mode == "kill" else bool(done.sentence)
        again = run(*command.words, *command.again(root)) if done.code or state != new else None
        if not any(kept.values()):
            found["lost"] += 1
            problems.append(f"{about}, and what is there is neither old nor new: {state}")
        if "Traceback" in done.err or "Traceback" in done.out or "Exception ignored" in done.err:
            found["traceback"] += 1
            problems.append(f"{about}\n{done.err}")
        if not (said if done.code else kept["new"]):
            found["silent"] += 1
            problems.append(f"{about}, and nothing is said:\n{done.err}")
        if mode != "kill" and (left := leftovers(root)) and done.code and again is None:
            found["left"] += 1
            problems.append(f"{about}, left behind: {left}")
        if again is not None and (again.code or command.state(root, run) != new):
            taken = "there is" in again.sentence and kept["new"]  # it had been done before it failed
            if not taken:
                found["lost"] += 1
                problems.append(f"{about}, and again: code {again.code}\n{again.err}")
        if again is not None and (left := leftovers(root)):
            found["left"] += 1
            problems.append(f"{about}, left behind after the next one: {left}")
    tell(f"{name} | {mode} | " + " | ".join(f"{key} {count}" for key, count in found.items()))
    assert not problems, "\n".join(problems[:20])
    assert found["rounds"]


@pytest.mark.parametrize("mode", ["full", "once"])
def test_a_store_that_could_not_be_made_is_not_there(
    mode: str, root: Path, begun: Path, writes: Writes
) -> None:
    """DuckDB does not say that a write failed as it closed a file: a database without tables stayed."""
    words, tried = [*COMMANDS["data import"].words], 0
    for n in range(1, 60):
        shutil.rmtree(root)
        shutil.copytree(begun, root)
        done = writes.run(words, root, mode, n)
        if ".store.duckdb." not in done.hit or ".scratch" in done.hit:
            if tried:
                break
            continue
        tried += 1
        assert done.code == 0 or done.sentence, done.err
        again = writes.run(words, root)
        assert again.code == 0 or (done.code == 0 and "there is own data" in again.sentence), (done, again)
    assert tried > 5
