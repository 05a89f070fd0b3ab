"""Which baselines a run has: those of pairs only where all rows of a phenotype are pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.screened import screened_dataset
from tests.tiny import mixed_dataset, tiny_dataset
from wildtype.datasets import Dataset
from wildtype.datasets.closed_forms import CLOSED_FORMS
from wildtype.errors import ConfigError
from wildtype.experiments.baselines import applies_to, baselines_of_run, predict_baseline
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.models.baselines import BASELINES
from wildtype.mutants import MutantTable

OF_SCREENS = [name for name, baseline in BASELINES.items() if baseline.reads_screens]
OF_PAIRS = [name for name, baseline in BASELINES.items() if baseline.order == 2 and name not in OF_SCREENS]
REST = [name for name in BASELINES if name not in [*OF_PAIRS, *OF_SCREENS]]


def prepared(dataset: Dataset, *words: str) -> RunData:
    return prepare(compose([f"data.name={dataset.name}", *words]), dataset)


def with_triples(pairs: Dataset, name: str) -> Dataset:
    """Return a dataset of pairs, and triples of one of its phenotypes."""
    phenotype = np.full(20, pairs.phenotype_index(name))
    sets = [[i, i + 1, i + 2] for i in range(20)]
    triples = MutantTable.from_matrix(sets, value=np.linspace(0, 1, 20), phenotype=phenotype)
    return replace(pairs, table=MutantTable.concatenate([pairs.table, triples]))


def test_all_baselines_are_those_that_apply() -> None:
    pairs, mixed = prepared(tiny_dataset()), prepared(with_triples(tiny_dataset(), "epsilon"))
    assert baselines_of_run(list(BASELINES), pairs, every=True) == [*REST, *OF_PAIRS]
    assert baselines_of_run(list(BASELINES), mixed, every=True) == REST
    assert all(applies_to(name, mixed) == (name in REST) for name in BASELINES)


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_named_baseline_that_does_not_apply_is_refused_before_training(name: str, tmp_path: Path) -> None:
    dataset = with_triples(tiny_dataset(), "epsilon")
    words = [f"data.name={dataset.name}", f"baselines=[mean,{name}]", f"run.folder={tmp_path / 'run'}"]
    with pytest.raises(ConfigError, match=rf"{name!r} is for rows of 2 genes, and no phenotype of the run"):
        train(compose(words), dataset=dataset)
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_baseline_of_other_screens_is_for_runs_that_look_at_some() -> None:
    alone = prepared(tiny_dataset())
    with pytest.raises(ConfigError, match="baseline 'matrix_screens' reads other screens, and the run looks"):
        baselines_of_run(["mean", "matrix_screens"], alone, every=False)
    beside = replace(alone, others=(tiny_dataset(),))
    assert OF_SCREENS == ["matrix_screens"]
    assert baselines_of_run(list(BASELINES), beside, every=True) == list(BASELINES)


def test_closed_forms_are_refused_without_triples() -> None:
    with pytest.raises(ConfigError, match=f"baseline {next(iter(CLOSED_FORMS))!r} is for triple mutants"):
        baselines_of_run(list(CLOSED_FORMS), prepared(tiny_dataset()), every=False)


def test_a_baseline_of_pairs_leaves_phenotypes_of_other_orders_empty() -> None:
    data = prepared(with_triples(mixed_dataset(), "fitness"))
    test = data.part("test")
    predicted = predict_baseline("screen_additive", data, 0)[0]
    parts = [data.part(part) for part in ("train", "validation", "test")]
    of_pairs = set()
    for p in np.unique(test.phenotype):
        if data.dataset.phenotypes[p].form == "gene":
            continue
        pairs = all((part.order[part.phenotype == p] == 2).all() for part in parts)
        of_pairs.add(pairs)
        assert (np.isfinite(predicted[test.phenotype == p]) == pairs).all()
    assert of_pairs == {True, False}


@pytest.mark.parametrize("listed", ["null", "30"])
def test_zeros_of_the_grid_are_labels_of_the_effect_and_the_signs_only(listed: str) -> None:
    # With a sample of the listed crosses as rows, the others are still no zeros.
    words = ("split.validation=0.2", "split.test=0.3", f"data.listed={listed}")
    data = prepared(screened_dataset(36), *words)
    test, names = data.part("test"), [p.name for p in data.dataset.phenotypes]
    predicted = predict_baseline("screen_constant", data, 0)[0]
    crosses = data.crosses()
    assert crosses is not None
    cells, value = crosses.visible().sum() / 2, crosses.listed.value.astype(np.float64)
    for name, mean in (
        ("epsilon", value.sum() / cells),
        ("negative", (value < 0).sum() / cells),
        ("positive", (value > 0).sum() / cells),
        ("epsilon_listed", data.part("train").value[data.part("train").phenotype == 3].mean()),
    ):
        np.testing.assert_allclose(predicted[test.phenotype == names.index(name)], mean, rtol=1e-5)
