"""Coverage-guided fuzzing: what reaches new code of the package is kept, and changed further.

    python -m tests.faults.guided TARGET FOLDER [options of libFuzzer, such as -runs=100000]

FOLDER keeps the inputs that reached new code (`corpus`), so that a later run goes on from there, and what
failed (`crash-...`), which is tried again by naming that file. An input is answered, or refused in one
sentence; anything else ends the run: another exception, a warning, more than a gigabyte, or a minute.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import atheris

PACKAGE = Path(__file__).parents[2] / "src" / "wildtype"
# Numba compiles the code of functions itself, and knows no counters in it.
COMPILED = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if "njit" in path.read_text(encoding="utf-8")
]
with atheris.instrument_imports(include=["wildtype"], exclude=COMPILED):
    import numpy as np
    import pandas as pd
    import pytest

    from tests.faults.test_fuzz import PLANS, answered
    from tests.models.test_hostile_checkpoint import change
    from tests.sources.fuzz.harness import outcome
    from tests.sources.fuzz.readers import OTHER_READERS, Shelf, hold_to_small_sizes, published
    from wildtype.cli.evidence import with_evidence
    from wildtype.experiments.settings.compose import compose
    from wildtype.experiments.settings.stored import read_settings
    from wildtype.experiments.stored import Run
    from wildtype.inference.predictor import load
    from wildtype.inference.sets import parse_set, read_lines, read_sets
    from wildtype.models.checkpoint import HASHED

One = Callable[[bytes], None]
TRAIN = """
import sys
from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
train(compose(sys.argv[1:]), dataset=tiny_dataset())
"""
WORDS = [
    "model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=1",
    "baselines=[mean]", "run.progress=false", "run.replicates=10", "data.name=tiny-growth",
    "run.overwrite=true",
]  # fmt: skip
CONFIG = Path("checkpoint/config.json")
FITS = b"\x80"
"""From this first byte on, hashes are made to fit."""
ASKED = [["G001", "G002"], ["G003", "G004", "G005"]]
LIMITS = ["-rss_limit_mb=1024", "-timeout=60", "-max_len=65536", "-print_final_stats=1", "-verbosity=1"]


def _run(folder: Path) -> Path:
    """Return the folder of a tiny run, which another process trains: this one's memory is watched."""
    made = folder / "run"
    if not (made / "comparison.json").exists():
        subprocess.run([sys.executable, "-c", TRAIN, *WORDS, f"run.folder={made}"], check=True)
    return made


def sets(folder: Path) -> tuple[One, list[bytes]]:
    """Sets as people type them."""
    predictor = load(_run(folder))

    def one(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        answered(lambda: read_lines([text]), text)
        frame = answered(lambda: predictor.predict([parse_set(text)], interval=0.9), text)
        if frame is not None:
            assert np.isfinite(frame["epsilon"]).all() or frame["note"].iloc[0], text

    return one, [b"G001,G002", b"abc3", b"G001:reduced", b"G002:present", b"G001+G002", b"", b"wild-type"]


def tables(folder: Path) -> tuple[One, list[bytes]]:
    """Files of sets, and of own measurements as evidence."""
    predictor = load(_run(folder))
    path = folder / "table.csv"

    def one(data: bytes) -> None:
        path.write_bytes(data[1:])
        if data[:1] > b"\x7f":
            asked = answered(lambda: read_sets(path), data)
            if asked is not None:
                answered(lambda: predictor.predict(asked[:20]), data)
        else:
            answered(lambda: with_evidence(predictor, path), data)

    texts = [
        b"genes,note\nG001;G002,a\nG003,\n",
        b"genes,value,phenotype\nG001;G002,.1,epsilon\nG003,-0.2,epsilon\n",
        b"G001\tG002\nG003\n",
    ]
    return one, [first + text for text in texts for first in (b"\x00", b"\xff")]


def readers(folder: Path) -> tuple[One, list[bytes]]:
    """Publishers' files and a user's tables, workbooks and archives: two bytes choose the reader."""
    hold_to_small_sizes(pytest.MonkeyPatch())
    shutil.rmtree(folder / "kits", ignore_errors=True)
    (folder / "kits").mkdir(parents=True)
    shelf = Shelf(folder / "kits")
    cases = [case for name in [*published(), *OTHER_READERS] for case in shelf.cases(name)]

    def one(data: bytes) -> None:
        outcome(cases[int.from_bytes(data[:2], "big") % len(cases)], data[2:])

    return one, [number.to_bytes(2, "big") + case.path.read_bytes() for number, case in enumerate(cases)]


def plans(folder: Path) -> tuple[One, list[bytes]]:
    """Plans of ablations and of searches."""
    path, kinds = folder / "plan.yaml", list(PLANS)

    def one(data: bytes) -> None:
        path.write_bytes(data[1:])
        if data:
            answered(lambda: kinds[data[0] % 2](str(path)), data)

    return one, [bytes([number]) + PLANS[kind] for number, kind in enumerate(kinds)]


def settings(folder: Path) -> tuple[One, list[bytes]]:
    """Settings as people type them (an odd first byte), and those that a run has stored."""
    stored = _run(folder) / "settings.json"
    path = folder / "settings.json"

    def one(data: bytes) -> None:
        if data and data[0] % 2:
            words = data[1:].decode("utf-8", "surrogateescape").split("\n")
            answered(lambda: compose(words), words)
        else:
            path.write_bytes(data[1:])
            answered(lambda: read_settings(path), data)

    typed = [
        b"model=cell_transformer\nmodel.layers=2",
        b"seed=1\nsplit.name=random",
        b"data=ecoli-core-growth",
    ]
    return one, [b"\x00" + stored.read_bytes(), *(b"\x01" + words for words in typed)]


def checkpoints(folder: Path) -> tuple[One, list[bytes]]:
    """The files of a run, one of them changed: it is refused, or it predicts what it did.

    Where the first byte is large, the record of hashes is made to fit what was changed, as an attacker would,
    and in archives of arrays one member is changed: any prediction will do then.
    """
    whole = _run(folder)
    expected = load(whole).predict(ASKED, interval=0.9)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and "logs" not in path.parts)
    hashed = [
        path for path in files if path.parent.name == "checkpoint" and path.name in {*HASHED, CONFIG.name}
    ]
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)

    def changed(data: bytes) -> tuple[Path, bytes]:
        fits = data[:1] >= FITS
        path = (hashed if fits else files)[data[0] % len(hashed if fits else files)]
        return path, _with_member(path, data) if fits and path.suffix == ".npz" else data[2:]

    def one(data: bytes) -> None:
        if len(data) < 2:
            return
        path, content = changed(data)
        fits = data[:1] >= FITS
        target = copy / path.relative_to(whole)
        target.write_bytes(content)
        if fits:
            with suppress(
                ValueError, LookupError, AttributeError, TypeError
            ):  # a record that is none any more
                change(copy / "checkpoint", lambda record: None)
        try:
            answered(lambda: Run(copy).comparisons, path)
            again = answered(lambda: load(copy).predict(ASKED, interval=0.9), path)
            if again is not None and path.name != "metrics.json" and not fits:
                pd.testing.assert_frame_equal(again, expected, obj=str(path))
        finally:
            target.write_bytes(path.read_bytes())
            (copy / CONFIG).write_bytes((whole / CONFIG).read_bytes())

    seeds = [bytes([number, 0]) + path.read_bytes() for number, path in enumerate(files)]
    first = FITS[0] + -FITS[0] % len(hashed)
    for number, path in enumerate(hashed):
        contents = _members(path) if path.suffix == ".npz" else [path.read_bytes()]
        seeds += [bytes([first + number, member]) + content for member, content in enumerate(contents)]
    return one, seeds


def _members(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist()]


def _with_member(path: Path, data: bytes) -> bytes:
    """Return an archive whose member of number ``data[1]`` has other content."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        for number, name in enumerate(names):
            new.writestr(name, data[2:] if number == data[1] % len(names) else old.read(name))
    return out.getvalue()


TARGETS: dict[str, Callable[[Path], tuple[One, list[bytes]]]] = {
    target.__name__: target for target in (sets, tables, readers, plans, settings, checkpoints)
}


def main(name: str, folder: Path, options: list[str]) -> None:
    """Fuzz one target; does not return."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, begun = folder / "corpus", folder / "seeds"
    one, seeds = TARGETS[name](folder)
    for place in (corpus, begun):
        place.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds):
        (begun / f"{number:04d}").write_bytes(seed)
    logging.disable()
    warnings.simplefilter("error")
    again = [option for option in options if not option.startswith("-")]
    places = again or [str(corpus), str(begun)]
    atheris.Setup(["guided", *LIMITS, f"-artifact_prefix={folder}{os.sep}", *options, *places], one)
    atheris.Fuzz()


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[1:]
    main(arguments[0], Path(arguments[1]).resolve(), arguments[2:])
