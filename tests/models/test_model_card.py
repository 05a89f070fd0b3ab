from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig, HeadConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.models.dango.config import DangoConfig
from wildtype.models.dango.model import Dango
from wildtype.models.model_card import FILE, model_card, plain
from wildtype.mutants import MutantTable
from wildtype.mutants.selection import Selection


@pytest.fixture(scope="module")
def checkpoint(tiny_run: Path) -> Checkpoint:
    return load_checkpoint(tiny_run)


def test_it_says_what_is_stored(tiny_run: Path) -> None:
    text = (tiny_run / "checkpoint" / FILE).read_text(encoding="utf-8")
    split = json.loads((tiny_run / "split.json").read_text(encoding="utf-8"))["rows"]
    for part, mark in (("train", "t"), ("validation", "v"), ("test", "e")):
        assert f"| {part} rows | {split.count(mark):,} |" in text
    metrics = json.loads((tiny_run / "checkpoint/metrics.json").read_text(encoding="utf-8"))
    pearson = metrics["test"]["epsilon"]["pearson"]
    assert f"| pearson | {pearson['value']:.3g} | {pearson['low']:.3g} to {pearson['high']:.3g} |" in text
    for needle in (
        "| epsilon | fitness |",
        "tiny-growth",
        "split | random, seed 0",
        "| checkpoint format | 6 |",
        "physical",
        "Genes per mutant in training: 2 (",
        "absent, reduced",
        "Evidence: up to 32",
    ):
        assert needle in text, needle


def test_a_checkpoint_needs_no_card(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "checkpoint", tmp_path / "c")
    table = MutantTable.from_sets([[1, 2]])
    expected = load_checkpoint(tmp_path / "c").predict(table)
    (tmp_path / "c" / FILE).write_text("edited")
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "c").predict(table), expected)
    (tmp_path / "c" / FILE).unlink()
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "c").predict(table), expected)


def test_a_checkpoint_gets_one_when_it_is_saved_again(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "checkpoint", tmp_path / "bare")
    (tmp_path / "bare" / FILE).unlink()
    load_checkpoint(tmp_path / "bare").save(tmp_path / "c")
    assert "## What it predicts" in (tmp_path / "c" / FILE).read_text(encoding="utf-8")


def test_names_are_shown_as_they_are(checkpoint: Checkpoint) -> None:
    evil = "a|b\n# x <img src=1> [l](u) `c` *d*"
    named = [{**checkpoint.phenotypes[0], "unit": evil}]
    other = replace(checkpoint, phenotypes=named, conditions=[evil], origin={"dataset": evil})
    text = model_card(other, 4)
    assert "<img" not in text
    assert text.count("\n# ") == 0
    assert plain(evil) == "a\\|b \\# x &lt;img src=1&gt; \\[l\\](u) \\`c\\` \\*d\\*"
    assert text.count(plain(evil)) >= 3
    assert plain("cell_transformer _x_") == "cell_transformer \\_x\\_"
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_it_says_whether_measurements_are_an_input() -> None:
    def line(**settings: object) -> str:
        config = CellTransformerConfig(**settings)  # type: ignore[arg-type]
        return CellTransformer.evidence_line(config)

    none = EvidenceConfig(tokens=0)
    assert line(evidence=none, head=HeadConfig(additive=False)) == "none is looked up."
    assert line(evidence=none) == "none is looked up, and an additive model of training rows is added."
    also = line(evidence=EvidenceConfig(also=["fitness"]))
    assert "32 measurements" in also
    assert "and rows of fitness; where there are none" in also
    assert Dango.evidence_line(DangoConfig()) == "none is looked up."


def test_what_is_not_known_is_not_made_up(checkpoint: Checkpoint) -> None:
    bare = replace(checkpoint, metrics={}, origin={}, validation=None, relations=[])
    text = model_card(bare, 4)
    assert "None are stored." in text
    assert "Intervals: none." in text
    assert "nan" not in text
    undefined = {"epsilon": {"n": 3, "pearson": {"value": None, "low": None, "high": None}}}
    assert "pearson" not in model_card(replace(checkpoint, metrics={"test": undefined}), 4)


def test_it_says_that_a_model_was_trained_on_a_list(checkpoint: Checkpoint) -> None:
    chosen = Selection(-0.12, 0.16, 0.05, -0.007, 0.046)
    listed = [{**checkpoint.phenotypes[0], "selection": asdict(chosen)}]
    text = model_card(replace(checkpoint, phenotypes=listed), 4)
    assert f"* Trained on selected rows: {plain(chosen.sentence('epsilon'))}." in text
    assert "selected rows" not in model_card(checkpoint, 4)
    whole = [{**listed[0], "of_cross": "listed"}]
    text = model_card(replace(checkpoint, phenotypes=whole), 4)
    assert f"* column epsilon only: {plain(chosen.sentence('epsilon'))}." in text
    assert "selected rows" not in text
