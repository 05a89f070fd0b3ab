"""What a notebook shows of a run and of data, and the commands about a run as methods."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.tiny import mixed_dataset, tiny_dataset, tiny_organism
from wildtype.errors import CheckpointError, ConfigError
from wildtype.experiments.finished import FinishedRun
from wildtype.experiments.folder import DONE
from wildtype.models.baselines import BASELINES, make_baseline

LONGEST = 500
"""Characters that a text about an object may have."""


@pytest.fixture(scope="module")
def run(tiny_run: Path) -> FinishedRun:
    return wt.load_run(tiny_run)


def test_texts_about_data_and_runs_are_short(run: FinishedRun, tmp_path: Path) -> None:
    dataset = tiny_dataset()
    shown: list[tuple[Any, str]] = [
        (dataset, "Dataset('tiny-growth', 576 rows: 300 fitness, 276 epsilon;"),
        (mixed_dataset(), "276 round, 1 more phenotypes"),
        (dataset.organism, "Organism('tiny', 24 genes, 2 gene graphs, 1 feature blocks)"),
        (dataset.organism.features, "shape [3]"),
        (dataset.organism.graphs, "physical ("),
        (dataset.table, "MutantTable(576 rows: 24 of 1 genes, 552 of 2 genes)"),
        (dataset.split("random", seed=3), "Split('random', seed 3: "),
        (run.predictor, "Predictor(epsilon of tiny, trained on tiny-growth)"),
    ]
    for thing, needle in shown:
        assert needle in repr(thing)
        assert len(repr(thing)) < LONGEST
    sentence = run.comparisons["epsilon"].winner_sentence
    assert sentence in repr(run)
    assert sentence in repr(run.comparisons["epsilon"])
    assert repr(FinishedRun(tmp_path)) == f"FinishedRun({str(tmp_path)!r}, not finished)"


def test_a_notebook_shows_tables_with_escaped_texts(run: FinishedRun) -> None:
    organism = tiny_organism()
    for thing in (organism, tiny_dataset(), run, run.predictor, run.comparisons["epsilon"]):
        html = thing._repr_html_()
        assert html.count("<tr>") >= 2
        assert len(html) < 10 * LONGEST
    object.__setattr__(organism, "description", "<script>")
    assert "<script>" not in organism._repr_html_()


def test_scores_are_a_table(run: FinishedRun) -> None:
    frame = run.evaluate()
    comparison = run.comparisons["epsilon"]
    assert frame["model"].tolist() == [score.model for score in comparison.scores]
    best = frame.iloc[0]
    assert best["pearson"] == comparison.best.pearson.value
    assert best["pearson_low"] <= best["pearson"] <= best["pearson_high"]
    assert set(frame["phenotype"]) == {"epsilon"}


def test_figures_are_axes_and_the_page_is_written(run: FinishedRun, tmp_path: Path) -> None:
    axes = run.plot("predicted")
    assert axes[0].get_xlabel()
    axes[0].set_title("mine")
    axes[0].figure.savefig(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").stat().st_size > 1000
    with pytest.raises(ConfigError, match="'predictd' is no kind of plot; did you mean predicted"):
        run.plot("predictd")
    page = run.write_report(tmp_path / "page.html", screened=0)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_run_is_explained_as_by_the_command(run: FinishedRun) -> None:
    found = run.explain([["G001", "G002"]], sections=["mutants"])
    assert "G002" in str(found.to_json()["mutants"])


def test_a_run_that_is_not_finished_is_refused(run: FinishedRun, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run" / DONE).unlink()
    with pytest.raises(CheckpointError, match="holds no finished run"):
        wt.load_run(tmp_path / "run")


def test_mutants_and_genes_are_embedded(run: FinishedRun) -> None:
    model = run.predictor
    frame = model.embed([["G001", "abc2"], ["G003"]])
    assert frame["genes"].tolist() == ["G001,G002", "G003"]
    assert frame.filter(like="z_S.").shape == (2, 16)
    pd.testing.assert_frame_equal(model.embed(pd.Series(["G001;abc2", "G003"])), frame)
    genes = model.gene_embeddings()
    assert genes.shape == (24, 16)
    assert genes.index.tolist() == list(model.genes.names)
    assert np.isfinite(genes.to_numpy()).all()
    with pytest.raises(ConfigError, match="member=2"):
        model.gene_embeddings(member=2)


def test_features_are_a_table_by_gene() -> None:
    organism = tiny_organism()
    frame = organism.features.to_pandas()
    assert frame.index.tolist() == list(organism.genes.names)
    assert frame.columns.tolist() == ["shape.a", "shape.b", "shape.c"]
    np.testing.assert_array_equal(frame.to_numpy(), organism.features["shape"].values)


@pytest.mark.parametrize("name", ["mean", "additive_ridge", "feature_ridge"])
def test_a_baseline_fits_and_predicts_outside_a_run(name: str) -> None:
    dataset = tiny_dataset()
    split = dataset.split("random", seed=0)
    rows = {part: getattr(split, part) for part in ("train", "validation", "test")}
    parts = {part: dataset.table.take(index) for part, index in rows.items()}
    parts = {part: table.take(table.phenotype == 1) for part, table in parts.items()}
    predicted = make_baseline(name).fit(dataset.organism, parts["train"], parts["validation"])
    assert np.isfinite(predicted.predict(parts["test"])).all()
    assert name in BASELINES
