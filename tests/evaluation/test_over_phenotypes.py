"""The mean over phenotypes: that of the tables of each, with one draw of genes for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.scaling import LabelScaler
from wildtype.errors import DatasetError
from wildtype.evaluation.bootstrap import bootstrap_weights, find_clusters, interval
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.over_phenotypes import evaluate_across, evaluate_vector
from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex, Organism

GENES = 40


def singles(traits: int = 3, constant: int = 0) -> Dataset:
    """Single deletions with several traits of different scale, some unmeasured; the last ones all equal."""
    rng = np.random.default_rng(0)
    value = rng.normal(size=(traits, GENES)) * 10.0 ** np.arange(traits)[:, None]
    value[traits - constant :] = 1.0
    p, gene = np.nonzero(rng.random((traits, GENES)) < 0.9)
    table = MutantTable.from_matrix(gene[:, None], value=value[p, gene], phenotype=p)
    names = tuple(Phenotype(f"trait {i}", source="toy:traits") for i in range(traits))
    organism = Organism("toy", GeneIndex([f"G{i}" for i in range(GENES)], organism="toy"))
    return Dataset("toy-traits", organism, table, names, targets=tuple(n.name for n in names))


def guesses(dataset: Dataset) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    t = dataset.table
    scale = 10.0**t.phenotype
    good = t.value + scale * rng.normal(size=len(t))
    return {"good": good, "bad": t.value + 5 * scale * rng.normal(size=len(t)), "mean": np.ones(len(t))}


def test_it_is_the_mean_of_the_tables_of_each() -> None:
    dataset = singles()
    rows, predictions = np.arange(len(dataset)), guesses(dataset)
    found = evaluate_across(dataset, rows, predictions, split="unseen", seed=4, replicates=50)
    assert found.phenotype == "mean over 3 phenotypes"
    for metric in ("pearson", "spearman", "r2"):
        each = []
        for p, phenotype in enumerate(dataset.phenotypes):
            of_p = np.flatnonzero(dataset.table.phenotype == p)
            part = {name: values[of_p] for name, values in predictions.items()}
            one = evaluate_predictions(dataset, of_p, part, phenotype=phenotype.name, replicates=2)
            each.append(one["good"].estimate(metric).value)
        assert found["good"].estimate(metric).value == pytest.approx(np.mean(each))
    assert np.isnan(found["good"].mse.value)
    assert found.best.model == "good"
    assert found["mean"].undefined["pearson"] == "all predictions are equal"
    assert Comparison.from_json(found.to_json()).to_json() == found.to_json()


def test_genes_are_drawn_once_for_all_phenotypes() -> None:
    dataset = singles()
    t, good = dataset.table, guesses(dataset)["good"]
    found = evaluate_across(dataset, np.arange(len(t)), {"good": good}, seed=3, replicates=40)
    assert (found.clusters, found.cluster_count) == ("genes", np.unique(t.gene).size)
    weights = np.concatenate(list(bootstrap_weights(find_clusters(t, "genes"), 40, 3)), axis=1)
    by_hand = []
    for w in weights.T:
        drawn = np.repeat(np.arange(len(t)), w.astype(int))
        r = [
            np.corrcoef(t.value[drawn][at], good[drawn][at])[0, 1]
            for at in (t.phenotype[drawn] == p for p in range(3))
        ]
        by_hand.append(np.mean(r))
    estimate = found["good"].pearson
    assert (estimate.low, estimate.high) == pytest.approx(interval(np.array(by_hand)), abs=1e-6)


def test_constant_predictions_count_as_zero_and_constant_labels_are_left_out() -> None:
    dataset = singles(4, constant=1)
    predictions = guesses(dataset)
    whole = evaluate_across(dataset, np.arange(len(dataset)), predictions, replicates=2)
    assert whole.phenotype == "mean over 3 phenotypes"
    assert "left out, since labels allow no correlation: trait 3" in whole.notes
    flat = np.where(dataset.table.phenotype == 0, 0.0, predictions["good"])
    r = evaluate_across(dataset, np.arange(len(dataset)), {"flat": flat}, replicates=2)
    each = [
        np.corrcoef(dataset.table.value[at], flat[at])[0, 1]
        for at in (dataset.table.phenotype == p for p in (1, 2))
    ]
    assert r["flat"].pearson.value == pytest.approx(sum(each) / 3, abs=1e-6)
    assert any(note.startswith("flat predicts one number in 1 of 3 phenotypes") for note in r.notes)
    with pytest.raises(DatasetError, match="at least 2"):
        evaluate_across(dataset, np.flatnonzero(dataset.table.phenotype != 1)[:30], {"flat": flat[:30]})


def test_calls_are_ranked_by_average_precision() -> None:
    dataset = singles(2)
    value = (dataset.table.value > 0).astype(np.float32)
    calls = replace(dataset, table=replace(dataset.table, value=value))
    found = evaluate_across(calls, np.arange(len(calls)), guesses(dataset), replicates=5)
    assert found.headline == "average_precision"


def test_flipped_training_labels_do_not_turn_the_table_round() -> None:
    dataset = singles()
    table, said = dataset.table, guesses(dataset)
    plain, flipped = (
        evaluate_vector(
            dataset,
            np.arange(len(table)),
            said,
            LabelScaler.fit(table.value, table.phenotype, len(dataset.phenotypes), flip=flip),
            "traits",
            baselines=[],
            replicates=5,
        )
        for flip in (False, True)
    )
    for one, other in zip(plain.scores, flipped.scores, strict=True):
        assert one.bias.value == other.bias.value != 0
        assert one.pearson_negatives == other.pearson_negatives
