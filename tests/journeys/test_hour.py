"""The hour of new users (tests/journeys/hour.py): every command is run, and what it shows is held against
what should be seen.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from tests.command import CommandResult, wildtype
from tests.docs.laboratories import write_laboratories
from tests.docs.pages import ROOT, blocks
from tests.journeys.hour import HOUR, ONCE, Step
from tests.tiny import little_yeast
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import organism_folder

pytestmark = pytest.mark.slow
STEPS = [
    pytest.param(step, id=step.command[:60], marks=() if step.often else pytest.mark.journeys)
    for step in HOUR
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, CommandResult]]:
    """Work in a folder with a table of pairs and the files of a screen; return what `ONCE` printed."""
    folder = tmp_path_factory.mktemp("desk")
    before = Path.cwd()
    with mock.patch.dict(os.environ, {"WILDTYPE_CACHE": str(folder / "cache")}):
        os.chdir(folder)
        yeast = little_yeast()
        save_organism(yeast, organism_folder("yeast"))
        names = [yeast.genes.standard.get(name, name) for name in yeast.genes.names]
        draw = np.random.default_rng(0)
        left, right = np.triu_indices(len(names), 1)
        value = 0.1 * draw.normal(size=len(names))[np.stack([left, right])].prod(0)
        rows = [f"{names[a]};{names[b]},{x:.4f}" for a, b, x in zip(left, right, value, strict=True)]
        Path("pairs.csv").write_text(
            "genes,epsilon\n" + "\n".join(rows[i] for i in draw.permutation(len(rows))[:200]) + "\n",
            encoding="utf-8",
        )
        bad = ["SGS1;NOGENE,0.1", "CLN2;G011,high"]
        Path("broken.csv").write_text(
            "genes,epsilon\n" + "\n".join([*rows[:10], *bad]) + "\n", encoding="utf-8"
        )
        Path("plan.csv").write_text(PLAN, encoding="utf-8")
        Path("unquoted.csv").write_text("genes\nSGS1,SRS2\n", encoding="utf-8")
        Path("unquoted-values.csv").write_text(
            "genes,epsilon\nSGS1,SRS2,0.1\nCLN2,PDR5,0.2\n", encoding="utf-8"
        )
        write_laboratories(folder)
        for block in blocks(ROOT / "docs/other-organisms.md"):
            if block.mark is not None and block.mark.file:
                Path(block.mark.file).write_text(block.text, encoding="utf-8")
        yield {command: wildtype(*Step(command).words) for command in ONCE}
        os.chdir(before)


PLAN = "plate,genes,plasmid\nA1,SGS1;SRS2,p1\nA2,CDC28;CLN2,p2\nA3,PDR5;G010,p3\n"


def table_of(step: Step, shown: CommandResult) -> pd.DataFrame:
    """Return the table that a command wrote or printed."""
    words = step.words
    return pd.read_csv(words[words.index("-o") + 1] if "-o" in words else io.StringIO(shown.stdout))


@pytest.mark.usefixtures("_hours_cache")
@pytest.mark.parametrize("step", STEPS)
def test_a_new_user_sees_what_should_be_seen(step: Step, desk: dict[str, CommandResult]) -> None:
    # What a command of ONCE shows is what it showed the first time; a step that fails is typed again.
    first = None if step.code else desk.get(step.command)
    shown = first or wildtype(*step.words, stdin=step.stdin)
    assert shown.returncode == step.code, shown.stderr
    assert "Traceback" not in shown.stderr
    for needle in step.out:
        assert needle in shown.stdout, shown.stdout
    # Where there is no terminal, long lines of remarks are wrapped.
    remarks = " ".join(shown.stderr.split())
    for needle in step.err:
        assert needle in remarks, shown.stderr
    if step.code == 1:
        assert shown.stdout == ""
        assert len(shown.stderr.strip().splitlines()) == 1 or step.command.startswith("data import")
    if step.columns:
        table = table_of(step, shown)
        assert [name for name in table.columns if name in step.columns] == list(step.columns)
        assert not step.rows or len(table) == step.rows
    assert not step.lines or len(shown.stdout.splitlines()) <= step.lines


@pytest.fixture
def _hours_cache(desk: dict[str, CommandResult], monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the cache of the desk, not that of other tests."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(Path.cwd() / "cache"))


def test_the_hour_is_forty_commands_right_and_wrong() -> None:
    assert len(HOUR) >= 40
    assert len({step.command for step in HOUR}) >= 40
    assert 12 <= sum(step.often for step in HOUR) <= 16
    assert sum(step.code != 0 for step in HOUR) >= 12
