"""Closed forms beside a model: what they may see, and where they stand in the tables of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.insilico import in_silico
from wildtype.datasets import Dataset
from wildtype.datasets.closed_forms import closed_form, parts_of
from wildtype.errors import ConfigError
from wildtype.experiments.closure import implied_tau
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import DataConfig, SplitConfig, TrainConfig
from wildtype.mutants import MutantTable
from wildtype.sources.insilico import build_triple_dataset

NAME = "ecoli-core-triples"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    sizes = {"rule": 60, "neighbours": 60, "rerouted": 30, "query": 40, "uniform": 20}
    return build_triple_dataset(NAME, in_silico("ecoli-core"), progress=False, processes=1, **sizes)


def prepared(dataset: Dataset, phenotypes: list[str], split: SplitConfig) -> RunData:
    return prepare(TrainConfig(data=DataConfig(NAME, phenotypes), split=split), dataset)


def test_training_rows_only_where_fitness_is_predicted(dataset: Dataset) -> None:
    data = prepared(dataset, ["epsilon", "fitness"], SplitConfig("order"))
    seen = data.measured_fitness()
    train_rows = data.part("train")
    fitness = train_rows.take(train_rows.phenotype == 1)
    assert seen.sets() == fitness.sets()
    np.testing.assert_array_equal(seen.value, fitness.value)
    held = data.part("validation")
    assert held.order.max() == 2
    assert not set(held.sets()) & set(seen.sets())


@pytest.mark.parametrize(
    "split", [SplitConfig("random"), SplitConfig("any-unseen", genes=5), SplitConfig("query-pair")]
)
def test_nothing_held_out_is_seen_where_tau_is_predicted(dataset: Dataset, split: SplitConfig) -> None:
    data = prepared(dataset, ["tau"], split)
    seen = data.measured_fitness()
    assert set(np.unique(seen.order)) == {1, 2}
    names = dataset.organism.genes
    held = {names.find(g) for part in data.split.held_out_genes.values() for g in part}
    assert not held & set(seen.gene.tolist())
    pairs = {
        tuple(sorted(map(names.find, pair))) for part in data.split.held_out_pairs.values() for pair in part
    }
    assert not pairs & set(seen.sets())
    if split.name == "random":
        assert parts_of(data.part("test"), seen, data.single_fitness).missing_pairs == 0
    else:
        assert held or pairs


def test_labels_of_held_out_rows_change_no_closed_form(dataset: Dataset) -> None:
    data = prepared(dataset, ["fitness"], SplitConfig("order"))
    chosen = np.flatnonzero(dataset.table.phenotype == dataset.phenotype_index("fitness"))
    held = chosen[np.concatenate([data.split.validation, data.split.test])]
    value = dataset.table.value.copy()
    value[held] = np.random.default_rng(0).permutation(value[held])
    whole = replace(dataset, table=replace(dataset.table, value=value))
    shuffled = replace(
        data,
        whole=whole,
        dataset=replace(data.dataset, table=replace(data.dataset.table, value=value[chosen])),
    )
    parts = [parts_of(d.part("test"), d.measured_fitness(), d.single_fitness) for d in (data, shuffled)]
    assert (data.part("test").value != shuffled.part("test").value).any()
    for name in ("tau_zero", "min_pairs"):
        np.testing.assert_array_equal(*(closed_form(name, "fitness", part) for part in parts))


@pytest.mark.slow
def test_closed_forms_stand_in_the_table_of_a_run(dataset: Dataset, tmp_path: Path) -> None:
    quick = [
        f"data={NAME}", "model.width=16", "model.heads=4", "model.layers=0", "model.head.heads=2",
        "training.epochs=1", "run.progress=false", "run.replicates=20",
    ]  # fmt: skip
    said: list[str] = []
    words = ["data.phenotypes=[fitness]", "split.name=order", "baselines=[mean,tau_zero,min_pairs]"]
    run = train(compose([*quick, *words, f"run.folder={tmp_path / 'run'}"]), dataset=dataset, log=said.append)
    scores = {score.model: score for score in run.comparisons["fitness"].scores}
    assert set(scores) == {"cell_transformer", "mean", "tau_zero", "min_pairs"}
    assert scores["min_pairs"].baseline
    assert scores["min_pairs"].pearson.value > 0.8
    assert any("min_pairs of fitness" in text and "pairs have no visible" in text for text in said)
    with pytest.raises(ConfigError, match="baseline 'min_pairs' is for triple mutants"):
        refused = ["data.phenotypes=[epsilon]", "baselines=[min_pairs]", f"run.folder={tmp_path / 'refused'}"]
        train(compose([*quick, *refused]), dataset=dataset)
    assert not (tmp_path / "refused").exists()


def test_tau_follows_from_predicted_fitness(dataset: Dataset) -> None:
    data = prepared(dataset, ["fitness"], SplitConfig("order", order=3))
    test = data.part("test")
    parts = parts_of(test, data.measured_fitness(), data.single_fitness)
    predicted = {
        "min_pairs": closed_form("min_pairs", "fitness", parts),
        "measured": test.value.astype(np.float64),
    }
    found = implied_tau(data, predicted, split="order", replicates=20, seed=0)["tau from fitness"]
    whole = data.whole
    known = whole.table.take(whole.table.phenotype == whole.phenotype_index("tau"))
    truth = {s: v for s, v in zip(known.sets(), known.value.tolist(), strict=True)}
    expected = np.corrcoef(closed_form("min_pairs", "tau", parts), [truth[s] for s in test.sets()])[0, 1]
    assert found["min_pairs"].pearson.value == pytest.approx(expected, abs=1e-6)
    if not parts.missing_pairs:
        assert found["measured"].pearson.value == pytest.approx(1, abs=1e-3)
    assert "strong/average_precision" in found["min_pairs"].retrieval
    # A model that knows the pairs that were not measured has tau as it is.
    fitness = whole.table.take(whole.table.phenotype == whole.phenotype_index("fitness"))
    value = {s: v for s, v in zip(fitness.sets(), fitness.value.tolist(), strict=True)}
    assert parts.missing_pairs
    asked: list[int] = []

    def knows(pairs: MutantTable) -> np.ndarray:
        asked.append(len(pairs))
        return np.array([value[s] for s in pairs.sets()])

    told = implied_tau(data, predicted, {"measured": knows}, split="order", replicates=20, seed=0)
    assert told["tau from fitness"]["measured"].pearson.value == pytest.approx(1, abs=1e-3)
    assert told["tau from fitness"]["min_pairs"].pearson.value == pytest.approx(expected, abs=1e-6)
    assert sum(asked) == parts.missing_pairs
    assert not implied_tau(prepared(dataset, ["tau"], SplitConfig("random")), {}, split="random")
