"""``data.screens``: other laboratories' measurements are evidence, held-out measurements never are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.experiments.test_crosses import settings
from tests.experiments.test_external import N, outside
from tests.models.pair_screen.test_model import QUICK
from tests.screened import screened_dataset, strain_crosses
from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import grid_of
from wildtype.errors import ConfigError
from wildtype.evidence.column_families import stand_ins
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.experiments import data as module
from wildtype.experiments.data import prepare
from wildtype.experiments.external import external_rows
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.inference.predictor import load
from wildtype.mutants.grid import TRAIN


def settings_of_pairs(*words: str) -> TrainConfig:
    return compose([*QUICK, *words])


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    found = {"scores": outside("scores", score=True), "listed": screened_dataset(N)}
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: found[name])
    return found["scores"]


def seen(*words: str, dataset: Dataset | None = None) -> tuple[module.RunData, PairMatrix]:
    data = prepare(settings("data.screens=[scores]", *words), dataset or screened_dataset(N))
    (screen,) = data.known().screens
    return data, screen.matrix


def test_all_pairs_of_known_genes_are_seen_by_name(scores: Dataset) -> None:
    data, matrix = seen()
    names, there = data.dataset.organism.genes.names, scores.organism.genes
    value = {
        frozenset(there.names[g] for g in pair): v
        for pair, v in zip(scores.table.matrix(2), scores.table.value, strict=True)
    }
    assert matrix.known.sum() == N * (N - 1)
    for i, j in ((0, 1), (5, 30), (20, 7)):
        a, b = (names[matrix.gene[k]] for k in (i, j))
        assert matrix.values[i, j] == value[frozenset((a, b))]


@pytest.mark.parametrize("split", ["unseen", "any-unseen", "one-unseen"])
def test_held_out_genes_are_hidden_unless_asked_for(scores: Dataset, split: str) -> None:
    data, matrix = seen(f"split.name={split}")
    assert data.sides is not None
    assert data.sides.held is not None
    held = np.flatnonzero(data.sides.held)
    assert held.size
    assert not np.isin(held, matrix.gene).any()
    _, shown = seen(f"split.name={split}", "data.unseen_in_screens=true")
    assert np.isin(held, shown.gene).all()


def test_one_measurement_under_two_names_is_no_evidence_of_itself(scores: Dataset) -> None:
    whole = screened_dataset(N)
    own = {p.source.partition(":")[0] for p in whole.phenotypes}
    group = {"laboratory": (*sorted(own), "other")}
    whole = replace(whole, provenance=group)
    data, matrix = seen(dataset=whole)
    assert data.sides is not None
    i, j = np.nonzero(np.triu(matrix.known))
    assert i.size
    assert (data.sides.of(matrix.gene[i], matrix.gene[j]) == TRAIN).all()


def test_rows_of_an_external_test_are_no_evidence(scores: Dataset) -> None:
    data, matrix = seen("data.also_test=[scores]")
    (tested,) = external_rows(data, lambda text: None)
    pairs = tested.table.matrix(2)
    at = matrix.find(pairs, np.zeros(pairs.shape, np.uint8))
    both = (at >= 0).all(axis=1)
    assert both.any()
    assert not matrix.known[at[both, 0], at[both, 1]].any()
    # What the run may see of them stays evidence.
    assert matrix.known.any()


@pytest.mark.parametrize(
    ("name", "why"), [("listed", "another list of the crosses of"), ("tiny", "the dataset of the run")]
)
def test_wrong_screens_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, why: str) -> None:
    whole = screened_dataset(N)
    other = replace(whole, name="listed")
    found = {"listed": other, "tiny": replace(whole, name=whole.name)}
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: found[name])
    with pytest.raises(ConfigError, match=rf"data.screens names .*{why}"):
        prepare(settings(f"data.screens=[{name}]"), whole)


def seen_on_grid(*words: str, listed: Dataset | None = None) -> tuple[module.RunData, Dataset, PairMatrix]:
    """Return a run on a map, the grid on its genes, and what the run sees of the crosses of the grid."""
    whole, grid = outside("scores", score=True), screened_dataset(N) if listed is None else listed
    data = prepare(settings("data.screens=[listed]", *words), whole)
    (screen,) = data.known().screens
    return data, grid, screen.matrix


def test_crosses_of_a_grid_are_seen_whether_listed_or_not(scores: Dataset) -> None:
    data, grid, matrix = seen_on_grid()
    ours, theirs = data.dataset.organism.genes, grid.organism.genes
    crosses = strain_crosses(grid_of(grid))
    value = {
        (frozenset(pair), tuple(kinds)): v
        for pair, kinds, v in zip(
            grid.table.matrix(2).tolist(),
            grid.table.kind.reshape(-1, 2).tolist(),
            grid.table.value,
            strict=True,
        )
    }
    mapping = theirs.mapping_to(ours)
    assert matrix.of_grid
    assert matrix.known.sum() == 2 * len(crosses)
    listed = 0
    for pair, kinds in zip(crosses.matrix(2).tolist(), crosses.kind.reshape(-1, 2).tolist(), strict=True):
        i, j = matrix.find(mapping[pair], np.array(kinds, np.uint8))
        expected = value.get((frozenset(pair), tuple(kinds)), 0.0)
        listed += expected != 0
        assert matrix.known[i, j]
        assert matrix.values[i, j] == np.float32(expected)
    assert listed == len(grid.table)


def test_held_out_genes_are_hidden_in_a_grid(scores: Dataset) -> None:
    data, _, matrix = seen_on_grid("split.name=any-unseen")
    held = data.dataset.organism.genes.find_all([g for x in data.split.held_out_genes.values() for g in x])
    _, _, shown = seen_on_grid("split.name=any-unseen", "data.unseen_in_screens=true")
    assert np.isin(held, shown.gene).any()
    assert not np.isin(held, matrix.gene).any()


def test_crosses_of_a_group_that_are_no_training_pairs_are_unknown(
    scores: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = screened_dataset(N)
    grid = replace(grid, provenance={"laboratory": ("other", "tiny")})
    found = {"listed": grid}
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: found[name])
    data, _, matrix = seen_on_grid(listed=grid)
    table, part = data.dataset.table, np.zeros(len(data.dataset.table), bool)
    part[data.split.train] = True
    i, j = np.nonzero(np.triu(matrix.known))
    visible = {frozenset(pair) for pair in zip(matrix.gene[i].tolist(), matrix.gene[j].tolist(), strict=True)}
    trained = {frozenset(pair) for pair in table.take(part).matrix(2).tolist()}
    assert visible
    assert visible <= trained
    # A listed cross that is hidden leaves no value either.
    assert not matrix.values[~matrix.known].any()


def test_a_map_is_predicted_with_a_grid(scores: Dataset, tmp_path: Path) -> None:
    words = (f"run.folder={tmp_path / 'run'}", "data.screens=[listed]")
    done = train(settings_of_pairs(*words), dataset=outside("scores", score=True))
    two = load(done.path).checkpoint
    (screen,) = two.known.screens
    (given,) = done.predictor.checkpoint.known.screens
    assert screen.matrix.of_grid
    for name in ("gene", "kind", "values", "known"):
        np.testing.assert_array_equal(getattr(screen.matrix, name), getattr(given.matrix, name))
    rows = outside("scores", score=True).table
    before = two.predict(rows)
    np.testing.assert_array_equal(before, done.predictor.checkpoint.predict(rows))
    nothing = replace(screen, matrix=replace(screen.matrix, known=np.zeros_like(screen.matrix.known)))
    changed = replace(two, known=replace(two.known, screens=(nothing,)))
    assert not np.array_equal(before, changed.predict(rows))


def like_the_grid(seed: int = 1) -> Dataset:
    """Return a map of all pairs in another unit that measured what the grid did, with noise."""
    whole, grid = outside("scores", score=True), screened_dataset(N)
    effect = dict(zip(map(frozenset, grid.table.matrix(2).tolist()), grid.table.value, strict=True))
    mapping = whole.organism.genes.mapping_to(grid.organism.genes)
    value = [effect.get(frozenset(pair), 0.0) for pair in mapping[whole.table.matrix(2)].tolist()]
    noise = np.random.default_rng(seed).normal(0, 0.5, len(value))
    return replace(whole, table=replace(whole.table, value=(30 * np.array(value) + noise).astype(np.float32)))


def test_few_pairs_weigh_what_a_grid_says(scores: Dataset, tmp_path: Path) -> None:
    dataset = like_the_grid()
    few = ("split.test=0.9", "split.validation=0.03")
    done = train(
        settings_of_pairs(f"run.folder={tmp_path / 'run'}", "data.screens=[listed]", *few), dataset=dataset
    )
    two = load(done.path).checkpoint
    tested = pd.read_parquet(tmp_path / "run" / "predictions.parquet")
    assert len(tested) > 600
    assert np.corrcoef(tested.value, tested.pair_screen)[0, 1] > 0.8
    assert all(len(forest) == 0 for forest in two.model.forests.values())
    rows = dataset.table
    np.testing.assert_array_equal(two.predict(rows), done.predictor.checkpoint.predict(rows))
    assert two.pairs is not None
    for linear in two.model.linear.values():
        used = {two.pairs.names[i] for i in np.flatnonzero(linear.weight)}
        assert used <= {f"screen tiny-screen{end}" for end in ("", " completed", " by kernel")}
        # A pair that the grid did not cross, or of a gene that it lacks, is answered in the same unit.
        np.testing.assert_array_equal(linear.stand_in, stand_ins(two.pairs.names))


def test_pairs_that_a_grid_says_nothing_of_keep_their_own_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = screened_dataset(N, seed=5)  # of other effects
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: other)
    done = train(
        settings_of_pairs(f"run.folder={tmp_path / 'run'}", "data.screens=[listed]"), dataset=like_the_grid()
    )
    forests = load(done.path).checkpoint.model.forests
    assert len(forests["0_0"]) > 0


def test_a_model_that_looks_at_no_other_screen_says_so(scores: Dataset, tmp_path: Path) -> None:
    words = (f"run.folder={tmp_path / 'run'}", "data.screens=[scores]")
    with pytest.raises(
        ConfigError, match=r"data.screens names scores, and model .* looks at no other screen"
    ):
        train(settings(*words), dataset=screened_dataset(N))
    assert not (tmp_path / "run").exists()


def test_a_run_predicts_with_what_another_screen_measured(scores: Dataset, tmp_path: Path) -> None:
    words = (f"run.folder={tmp_path / 'run'}", "data.screens=[scores]")
    done = train(settings_of_pairs(*words), dataset=screened_dataset(N))
    two = load(done.path).checkpoint
    (screen,) = two.known.screens
    assert screen.name == "scores"
    crosses = strain_crosses(grid_of(screened_dataset(N)))
    before = two.predict(crosses)
    np.testing.assert_array_equal(before, done.predictor.checkpoint.predict(crosses))
    values = screen.matrix.values[::-1, ::-1].copy()
    other = replace(screen, matrix=replace(screen.matrix, values=values))
    changed = replace(two, known=replace(two.known, screens=(other,)))
    assert not np.array_equal(before, changed.predict(crosses))
