from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_organism
from wildtype.datasets import Dataset, Phenotype
from wildtype.errors import DatasetError
from wildtype.evaluation.calibration import LEVELS, mean_coverage, measure_coverage
from wildtype.evidence.reference import PARTS
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.mutants import MutantTable


@pytest.fixture(scope="module")
def checkpoint(tiny_run: Path) -> Checkpoint:
    return load_checkpoint(tiny_run)


def test_coverage_and_width_by_hand(checkpoint: Checkpoint) -> None:
    found = measure_coverage(checkpoint, [0.5, 0.9], replicates=100)
    assert [(one.group, one.level) for one in found] == [
        ("2 genes, all seen", 0.5),
        ("2 genes, all seen", 0.9),
    ]
    known = checkpoint.known
    validation, test = (known.table.take(known.part == PARTS.index(part)) for part in ("validation", "test"))
    residual = np.sort(np.abs(checkpoint.predict(validation)[:, 0] - validation.value))
    half = residual[math.ceil(0.9 * (residual.size + 1)) - 1]
    inside = np.abs(checkpoint.predict(test)[:, 0] - test.value) <= half
    one = found[1]
    assert one.coverage == pytest.approx(inside.mean())
    assert one.width == pytest.approx(2 * half)
    assert (one.rows, one.calibration_rows) == (len(test), len(validation))
    assert 0 < one.low <= one.coverage <= one.high <= 1


def test_test_labels_move_no_interval(checkpoint: Checkpoint) -> None:
    value = checkpoint.known.table.value.copy()
    test = checkpoint.known.part == PARTS.index("test")
    value[test] += 100
    table = replace(checkpoint.known.table, value=value)
    other = replace(checkpoint, known=replace(checkpoint.known, table=table))
    before, after = (measure_coverage(c, LEVELS) for c in (checkpoint, other))
    assert [one.width for one in before] == [one.width for one in after]
    assert {one.coverage for one in after} == {0.0}


def test_levels_rise_together(checkpoint: Checkpoint) -> None:
    found = measure_coverage(checkpoint, LEVELS)
    for values in ([one.coverage for one in found], [one.width for one in found]):
        assert values == sorted(values)


def test_mean_over_runs(checkpoint: Checkpoint) -> None:
    one = measure_coverage(checkpoint, [0.8])
    other = [
        replace(one[0], coverage=one[0].coverage - 0.1),
        replace(one[0], group="none", coverage=math.nan),
    ]
    (mean,) = mean_coverage([one, other])
    assert mean.coverage == pytest.approx(one[0].coverage - 0.05)
    assert mean.coverage_sd == pytest.approx(0.1 / math.sqrt(2))
    assert (mean.runs, mean.rows) == (2, 2 * one[0].rows)


def test_no_test_rows(checkpoint: Checkpoint) -> None:
    part = np.where(
        checkpoint.known.part == PARTS.index("test"), PARTS.index("unused"), checkpoint.known.part
    )
    with pytest.raises(DatasetError, match="no test rows"):
        measure_coverage(replace(checkpoint, known=replace(checkpoint.known, part=part)), [0.9])


def test_command_prints_and_draws(tiny_run: Path, tmp_path: Path) -> None:
    said = wildtype("evaluate", str(tiny_run), "--intervals", "0.9", "--retrieval")
    assert said.returncode == 0, said.stderr
    assert "2 genes, all seen" in said.stdout
    assert "AP: average precision" in said.stdout
    drawing = tmp_path / "c.svg"
    words = ["--calibration", str(drawing), "--agreement", "--retrieval", "--intervals", "0.5", "--json"]
    record = json.loads(wildtype("evaluate", str(tiny_run), str(tiny_run), *words).stdout)
    assert [one["level"] for one in record["calibration"]] == list(LEVELS)
    assert record["intervals"][0]["runs"] == 2
    assert record["agreement"][0]["between"] == pytest.approx(1.0)
    assert "strong/average_precision" in record["retrieval"][str(tiny_run)]["epsilon"]["additive_ridge"]
    first = drawing.read_bytes()
    assert b"nominal coverage" in first
    assert b"epsilon: 2 genes, all seen" in first
    wildtype("evaluate", str(tiny_run), str(tiny_run), "--calibration", str(drawing))
    assert drawing.read_bytes() == first


def test_command_refuses(tiny_run: Path, tmp_path: Path) -> None:
    assert_one_sentence(
        wildtype("evaluate", str(tiny_run), "--intervals", "90"), "interval=90 is no coverage"
    )
    assert_one_sentence(wildtype("evaluate", str(tiny_run), "--agreement"), "at least two runs")
    wrong = wildtype("evaluate", str(tiny_run), "--calibration", str(tmp_path / "c.bmp"))
    assert_one_sentence(wrong, "end it in .svg")


def shared_effects(seed: int, n: int = 64) -> Dataset:
    """A dataset of a known random process: effects of genes, which nothing but rows of a gene tells, and
    noise.
    """
    draw = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    value = 0.1 * draw.normal(size=n)[pairs].sum(1) + 0.05 * draw.normal(size=len(pairs))
    return Dataset(
        "shared-effects",
        tiny_organism(n, seed),
        MutantTable.from_matrix(pairs, value=value),
        (Phenotype("epsilon", unit="fitness", source="toy:epsilon", min_order=2),),
        targets=("epsilon",),
    )


@pytest.mark.slow
@pytest.mark.parametrize("split", ["one-unseen", "unseen"])
def test_trained_models_cover_unseen_genes_as_promised(tmp_path: Path, split: str) -> None:
    """Mean over seeds, each with a dataset, a split and a model of its own."""
    words = [
        f"split.name={split}",
        "split.validation=0.3",
        "split.test=0.3",
        "model.layers=0",
        "model.width=16",
    ]
    words += ["model.head.heads=2", "training.epochs=4", "training.batch_size=128", "baselines=[]"]
    words += ["run.progress=false", "run.replicates=1", "data.name=shared-effects"]
    found = []
    for seed in range(24):
        folder = tmp_path / str(seed)
        train(compose([*words, f"seed={seed}", f"run.folder={folder}"]), dataset=shared_effects(seed))
        found.append(measure_coverage(load_checkpoint(folder), [0.9]))
    (mean,) = mean_coverage(found)
    print(f"{split}: {mean.group}, coverage {mean.coverage:.3f} ± {mean.coverage_sd:.3f}")
    assert 0.88 <= mean.coverage <= 0.92
