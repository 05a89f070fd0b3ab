"""Whatever people type, and whatever happened to files: an answer, or a refusal in one sentence.

Parsers of publishers' files are fuzzed in tests/sources/fuzz. Every test here tries some rounds; for longer,

    WILDTYPE_FUZZ_SECONDS=600 pytest -m slow tests/faults/test_fuzz.py

says how many rounds were tried. A round is named by its number, so that what was found is found again.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.sources.fuzz.mutations import JUNK
from tests.tiny import tiny_dataset, tiny_organism
from wildtype.cli.evidence import with_evidence
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import WildtypeError
from wildtype.experiments.settings.ablation import read_ablation
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.stored import read_settings
from wildtype.experiments.settings.tuning import read_tuning
from wildtype.experiments.stored import Run
from wildtype.inference.predictor import Predictor, load
from wildtype.inference.sets import parse_set, read_lines, read_sets
from wildtype.organism.storage import read_organism, save_organism
from wildtype.sources.user_tables.problems import TableProblems

pytestmark = pytest.mark.slow
ROUNDS = 150
SECONDS = float(os.environ.get("WILDTYPE_FUZZ_SECONDS", "0"))
LONGEST = 3_000
WORDS = [
    "G001", "abc3", "G023", "G001:reduced", ":absent", "G002:", "G001::present", "wild-type", "WT", "", " ",
    "+", "G001+G002", "G001;G002", "nan", "None", "-1", "G999", "g001", "=cmd|'/c calc'!A0", "@x",
    "../../etc/passwd", "\ud800", "G001\u200b", "G\u0661", "\x00", "\x1b[2J", "'", '"', "{", "}", "[", "]",
    "$" + "{oc.env:HOME}", "!!python/object/apply:os.system [id]", "_target_: os.system", "x" * 5_000,
    "9" * 400,
]  # fmt: skip
KEYS = [
    "model", "model.layers", "training.epochs", "data", "data.name", "split.name", "_target_", "seed",
    "hydra.run.dir", "model._target_", "run.folder", "baselines", "model.evidence.holdout", "nonsense",
]  # fmt: skip
VALUES = [*WORDS, "1", "true", "[1,2]", "{a: 1}", "cell_transformer", "ecoli-core-growth"]
PLANS = {
    read_ablation: b"base: [model.layers=1]\nsplits: {R: [split.name=random]}\n"
    b"factors:\n  a:\n    b: [model.layers=2]\n",
    read_tuning: b"base: [model.layers=1]\n"
    b"space:\n  model.layers: [0, 1]\n  model.dropout: {low: 0.0, high: 0.5}\n",
}


Rounds = Callable[..., Iterator[random.Random]]


@pytest.fixture
def rounds(tell: Callable[[str], None]) -> Rounds:
    """Return what gives a source of chance for every round."""

    def give(name: str, number: int = ROUNDS) -> Iterator[random.Random]:
        end = time.monotonic() + SECONDS
        for i in count():
            if time.monotonic() > end if SECONDS else i >= number:
                tell(f"{name}: {i:,} rounds")
                return
            yield random.Random(f"{name}, round {i}")

    return give


def answered(ask: Callable[[], Any], what: object) -> Any:
    """Return what comes out, or None where it was refused as it should be."""
    try:
        return ask()
    except WildtypeError as error:
        text = str(error)
        assert text.strip(), what
        # A table's problems are one sentence each, below the sentence that counts them.
        sentences = text.split("\n  ") if isinstance(error, TableProblems) else [text]
        assert not [sentence for sentence in sentences if not sentence.strip() or "\n" in sentence], (
            what,
            text,
        )
        assert len(text) < LONGEST, (what, text[:200])
        return None
    except Exception as error:
        raise AssertionError(f"{what!r:.2000}") from error


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with one to four changes."""
    out = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        a, b = sorted(draw.randint(0, len(out)) for _ in range(2))
        kind = draw.choice(["flip", "cut", "drop", "junk", "junk", "repeat", "swap", "zero"])
        if kind == "flip" and out:
            out[min(a, len(out) - 1)] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del out[a:]
        elif kind == "drop":
            del out[a : min(b, a + 40)]
        elif kind == "junk":
            out[a : min(b, a + draw.randint(0, 9))] = draw.choice(JUNK)
        elif kind == "repeat":
            out[a:a] = out[a : min(b, a + 200)]
        elif kind == "swap":
            out[:] = out[b:] + out[a:b] + out[:a]
        elif kind == "zero":
            out[a : min(b, a + 16)] = bytes(min(b, a + 16) - a)
    return bytes(out)


def some(draw: random.Random, words: list[str], most: int = 5) -> list[str]:
    return [draw.choice(words) for _ in range(draw.randint(0, most))]


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return load(tiny_run)


def test_sets_as_people_type_them(rounds: Rounds, predictor: Predictor) -> None:
    known = 0
    for draw in rounds("sets"):
        text = draw.choice([",", ", ", ";", " ", "+"]).join(some(draw, WORDS))
        frame = answered(lambda text=text: predictor.predict([parse_set(text)], interval=0.9), text)
        lines = answered(lambda text=text: read_lines([text, f"{text}\n", text]), text)
        known += frame is not None
        if frame is not None:
            assert len(frame) == 1, text
            assert np.isfinite(frame["epsilon"]).all() or frame["note"].iloc[0], text
        assert lines is None or all(isinstance(name, str) for one in lines for name in one)
    assert known > 0


def test_files_of_sets_and_of_own_measurements(rounds: Rounds, predictor: Predictor, tmp_path: Path) -> None:
    named = ["G001,G002", "G003,G004,G005", "abc3,G001:reduced"]
    sets = pd.DataFrame({"genes": named, "note": ["a", "", "µ"]})
    own = pd.DataFrame({"genes": named[:2], "value": [0.1, -0.2], "phenotype": ["epsilon"] * 2})
    read = 0
    for draw in rounds("files"):
        frame, suffix = draw.choice([sets, own]), draw.choice([".csv", ".csv", ".csv", ".parquet"])
        whole = io.BytesIO()
        frame.to_parquet(whole) if suffix == ".parquet" else frame.to_csv(whole, index=False)
        path = tmp_path / f"damaged{suffix}"
        path.write_bytes(damaged(whole.getvalue(), draw))
        if frame is sets:
            found = answered(lambda path=path: read_sets(path), path.read_bytes())
            if found is not None:
                read += answered(lambda found=found: predictor.predict(found), found) is not None
        else:
            ask = lambda path=path: with_evidence(predictor, path).predict([["G001", "G003"]])  # noqa: E731
            read += answered(ask, path.read_bytes()) is not None
    assert read > 0


def test_settings_on_the_command_line(rounds: Rounds) -> None:
    for draw in rounds("words", ROUNDS // 3):
        equals = ["=", "=", "=", "", "+=", "=="]
        words = [f"{draw.choice(KEYS)}{draw.choice(equals)}{value}" for value in some(draw, VALUES)]
        config = answered(lambda words=words: compose(words), words)
        assert config is None or config.training.epochs is not None


def test_plans_of_many_runs(rounds: Rounds, tmp_path: Path) -> None:
    for draw in rounds("plans", ROUNDS // 3):
        read = draw.choice(list(PLANS))
        path = tmp_path / "plan.yaml"
        path.write_bytes(damaged(PLANS[read], draw))
        answered(lambda read=read, path=path: read(str(path)), path.read_bytes())


def test_run_folders(rounds: Rounds, tiny_run: Path, predictor: Predictor, tmp_path: Path) -> None:
    """A file of a run that was changed is refused, or what was changed does not matter."""
    asked = [["G001", "G002"], ["G003", "G004", "G005"]]
    whole = predictor.predict(asked, interval=0.9)
    files = [path for path in sorted(tiny_run.rglob("*")) if path.is_file() and "logs" not in path.parts]
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    refused = 0
    for draw in rounds("run folders", ROUNDS // 2):
        path = draw.choice(files)
        target, before = folder / path.relative_to(tiny_run), path.read_bytes()
        if draw.random() < 0.1:
            target.unlink()
        else:
            target.write_bytes(damaged(before, draw))
        try:
            what = (str(path.relative_to(tiny_run)), target.read_bytes()[:500] if target.exists() else "gone")
            settings = answered(lambda: read_settings(folder / "settings.json"), what)
            tables = answered(lambda: Run(folder).comparisons, what)
            again = answered(lambda: load(folder).predict(asked, interval=0.9), what)
            refused += settings is None or tables is None or again is None
            if again is not None and "metrics.json" not in what[0]:
                pd.testing.assert_frame_equal(again, whole, obj=str(what))
        finally:
            target.write_bytes(before)
    assert refused > 0


def test_folders_of_data(rounds: Rounds, tmp_path: Path) -> None:
    organism, dataset = tiny_organism(), tiny_dataset()
    rooms: list[tuple[Path, Callable[[Path], Any], Callable[[Any], Any]]] = [
        (tmp_path / "organism", read_organism, lambda x: x.genes.names),
        (tmp_path / "dataset", lambda path: read_dataset(path, organism), lambda x: x.sha256),
    ]
    save_organism(organism, rooms[0][0])
    save_dataset(dataset, rooms[1][0])
    for draw in rounds("data"):
        folder, read, told = draw.choice(rooms)
        whole = told(read(folder))
        path = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        before = path.read_bytes()
        path.write_bytes(damaged(before, draw))
        try:
            what = (folder.name, path.name, path.read_bytes()[:500])
            found = answered(lambda read=read, folder=folder: read(folder), what)
            assert found is None or told(found) == whole, what
        finally:
            path.write_bytes(before)
