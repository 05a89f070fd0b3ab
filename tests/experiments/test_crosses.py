"""Runs on a dataset with the grid of a screen: hidden crosses are unknown to everything that learns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.screened import screened_dataset, strain_crosses
from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import grid_of
from wildtype.errors import ConfigError, SplitError
from wildtype.evaluation.calibration import measure_coverage
from wildtype.evaluation.training_record import count_sides
from wildtype.evidence.reference import PARTS
from wildtype.experiments import crosses as module
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.report import write_report
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.settings.tuning import read_tuning
from wildtype.experiments.setup import build, rows_of
from wildtype.experiments.stored import Run
from wildtype.experiments.tuning import _pinned
from wildtype.inference.predictor import Predictor, load
from wildtype.models.baselines.linear import MeanBaseline
from wildtype.models.boosted_trees import BoostedTrees
from wildtype.models.cell_transformer import post_fit
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TEST, TRAIN, VALIDATION, VisibleCrosses

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = [
    "data.name=tiny-screen", "model.width=16", "model.layers=0", "model.heads=4", "model.head.heads=0",
    "model.evidence.hidden=8", "training.epochs=1", "training.batch_size=64", "training.threads=1",
    "training.deterministic=true", "baselines=[]", "run.progress=false", "run.replicates=20",
    "model.trees.bags=1", "model.trees.iterations=20", "model.trees.leaves=[7]",
    "model.trees.mixing_weight=0.5", "data.unlisted=0.5",
    "split.validation=0.2", "split.test=0.3", "data.crosses=40",
]  # fmt: skip
COMPARED = (
    "mean", "additive_ridge", "boosting_propagation", "screen_constant", "screen_additive", "low_rank",
    "two_step_ridge", "pairwise_ridge", "matrix",
)  # fmt: skip


def settings(*words: str) -> TrainConfig:
    return compose([*QUICK, *words])


def run(folder: Path, dataset: Dataset, *words: str) -> Predictor:
    train(settings(f"run.folder={folder}", *words), dataset=dataset)
    return load(folder)


def permuted(dataset: Dataset, which: np.ndarray, seed: int = 0) -> Dataset:
    """Permute values and listing together among some of the grid's crosses."""
    grid = grid_of(dataset)
    crosses = strain_crosses(grid)
    codes = grid.cross_codes(crosses)
    row = dict(zip(grid.cross_codes(dataset.table).tolist(), range(len(dataset)), strict=True))
    of_cross = np.array([row.get(code, -1) for code in codes.tolist()])
    at = np.flatnonzero(which)
    of_cross[at] = np.random.default_rng(seed).permutation(of_cross[at])
    listed = np.flatnonzero(of_cross >= 0)
    old = dataset.table.take(of_cross[listed])
    return replace(dataset, table=replace(crosses.take(listed), value=old.value, sd=old.sd))


def side_of(data: RunData, table: MutantTable) -> np.ndarray:
    assert data.sides is not None
    return data.sides.of_table(table)


def with_a_users_pair(
    predictor: Predictor, words: list[str], dataset: Dataset
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give a model a low and a high value of a pair that its run has hidden.

    Returns which crosses of the grid are of that pair, and the predictions of all with each value.
    """
    crosses = strain_crosses(grid_of(dataset))
    side = side_of(prepare(compose(words), dataset), crosses)
    (row, *_) = np.flatnonzero((side != TRAIN) & ~crosses.kind.reshape(-1, 2).any(axis=1))
    pair = crosses.matrix(2)[row]
    named = ",".join(dataset.organism.genes.names[g] for g in pair)
    tables = (pd.DataFrame({"genes": [named], "epsilon": [value]}) for value in (-0.9, 0.9))
    low, high = (predictor.with_evidence(table).checkpoint.predict(crosses) for table in tables)
    return (crosses.matrix(2) == pair).all(axis=1), low, high


SLOW = [pytest.param(split, marks=pytest.mark.slow) for split in ("one-unseen", "any-unseen", "unseen")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run, for tests that only read it."""
    folder = tmp_path_factory.mktemp("grid") / "a"
    train(settings(f"run.folder={folder}"), dataset=screened_dataset(36))
    return folder


@pytest.mark.parametrize("split", ["random", *SLOW])
def test_values_and_listing_of_hidden_crosses_change_no_prediction(tmp_path: Path, split: str) -> None:
    dataset = screened_dataset(36)
    words = (f"split.name={split}", f"baselines=[{','.join(COMPARED)}]")
    crosses = strain_crosses(grid_of(dataset))
    side = side_of(prepare(settings(*words), dataset), crosses)
    hidden = (side != TRAIN) & (side != VALIDATION)
    other = permuted(dataset, hidden)
    # Listing changed, not only values.
    assert set(map(tuple, other.table.matrix(2))) != set(map(tuple, dataset.table.matrix(2)))
    first, second = run(tmp_path / "a", dataset, *words), run(tmp_path / "b", other, *words)
    predicted = [each.checkpoint.predict(crosses) for each in (first, second)]
    assert np.array_equal(*predicted)
    a, b = (
        pd.read_parquet(tmp_path / name / "predictions.parquet")
        .query("phenotype != 'epsilon_listed'")
        .set_index(["phenotype", "genes", "kinds"])
        for name in "ab"
    )
    assert a.index.equals(b.index)
    for model in (*COMPARED, "cell_transformer"):
        np.testing.assert_array_equal(a[model], b[model], err_msg=model)
    assert not np.array_equal(a["value"], b["value"])
    # The test can fail: the same of training crosses changes predictions.
    third = run(tmp_path / "c", permuted(dataset, side == TRAIN), f"split.name={split}")
    assert not np.array_equal(predicted[0], third.checkpoint.predict(crosses))


def test_hidden_pairs_are_no_row_no_zero_and_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, other = screened_dataset(36), replace(screened_dataset(36, seed=3), name="other", grid=None)
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: other)
    words = ("split.hide={other: 0.5}",)
    data = prepare(settings(*words), dataset)
    crosses = strain_crosses(grid_of(dataset))
    assert data.sides is not None
    assert data.grid is not None
    hidden = np.isin(crosses.matrix(2) @ [36, 1], data.sides.hidden)
    assert data.leakage["crosses"]["hidden"] == hidden.sum() > 10  # type: ignore[index]
    assert not data.grid.measured(crosses)[hidden].any()
    assert data.grid.measured(crosses)[~hidden].all()
    for table in (data.dataset.table, data.whole.table, data.known().table):
        assert not np.isin(table.matrix(2) @ [36, 1], data.sides.hidden).any()
    assert data.split.options["hide other"] == 0.5
    first = run(tmp_path / "a", dataset, *words)
    second = run(tmp_path / "b", permuted(dataset, hidden), *words)
    assert np.array_equal(first.checkpoint.predict(crosses), second.checkpoint.predict(crosses))


def test_a_checkpoint_keeps_the_grid_and_the_sampled_rows(finished: Path) -> None:
    dataset = screened_dataset(36)
    data = prepare(settings(), dataset)
    found, known = load(finished), data.known()
    again = found.checkpoint.known
    assert again.grid is not None
    assert again.sides is not None
    crosses = strain_crosses(grid_of(dataset))
    np.testing.assert_array_equal(again.grid.crosses(), grid_of(dataset).crosses())
    np.testing.assert_array_equal(again.sides.of_table(crosses), side_of(data, crosses))
    # Listed rows alone are measurements, on the side of their cross.
    assert len(again.table) == len(dataset)
    np.testing.assert_array_equal(again.part, known.part)
    np.testing.assert_array_equal(again.part, side_of(data, again.table))
    for part in PARTS[1:3]:
        rows = again.rows(part)
        np.testing.assert_array_equal(rows.value, data.part(part).value)
        np.testing.assert_array_equal(rows.gene, data.part(part).gene)
        assert (rows.value == 0).any()
    visible = again.crosses()
    assert visible is not None
    assert set(visible.state(crosses)) == {0, 1, 2}
    levels = measure_coverage(found.checkpoint, [0.5])
    assert {one.phenotype for one in levels} == {"epsilon", "epsilon_listed"}  # classes are probabilities


def test_rows_of_a_model_hold_only_training_crosses() -> None:
    config, dataset = settings(), screened_dataset(36)
    data = prepare(config, dataset)
    rows = rows_of(data, build(config, data, 0)[1], 0)
    assert rows.crosses is not None
    assert rows.listed is not None
    assert (side_of(data, rows.listed) == TRAIN).all()
    assert len(rows.listed) == int((side_of(data, dataset.table) == TRAIN).sum())
    state = rows.crosses.state(strain_crosses(grid_of(dataset)))
    trained = side_of(data, strain_crosses(grid_of(dataset))) == TRAIN
    np.testing.assert_array_equal(state > 0, trained)
    assert len(rows.train) == len(data.split.train)


def test_a_baseline_gets_the_visible_crosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[VisibleCrosses | None] = []
    fit = MeanBaseline._fit

    def remember(self: MeanBaseline, *arguments: Any) -> None:
        seen.append(self._crosses)
        fit(self, *arguments)

    monkeypatch.setattr(MeanBaseline, "_fit", remember)
    run(tmp_path / "a", screened_dataset(36), "baselines=[mean]")
    assert len(seen) == 4
    data = prepare(settings(), screened_dataset(36))
    # The effect of listed crosses is a phenotype of which unlisted crosses say nothing.
    assert [crosses is None for crosses in seen] == [False, False, False, True]
    for crosses in seen[:3]:
        assert crosses is not None
        assert crosses.visible().sum() == 2 * data.leakage["crosses"]["train"]["crosses"]  # type: ignore[index]


@pytest.mark.parametrize("tokens", ["all", "measured"])
@pytest.mark.parametrize("phenotypes", [["negative"], ["epsilon_listed"], ["epsilon", "positive"]])
def test_any_phenotype_of_a_cross_can_be_the_target(tokens: str, phenotypes: list[str]) -> None:
    dataset = screened_dataset(36)
    data = prepare(settings(f"data.phenotypes=[{','.join(phenotypes)}]", f"data.tokens={tokens}"), dataset)
    assert [p.name for p in data.dataset.phenotypes] == phenotypes
    known = data.known()
    assert (known.part == side_of(data, known.table)).all()
    assert data.grid is not None
    assert known.rows("test").phenotype.tolist() == [
        data.whole.phenotype_index(phenotypes[p]) for p in data.part("test").phenotype
    ]


def test_the_split_of_a_run_may_have_a_seed_of_its_own() -> None:
    dataset = screened_dataset(36)
    one, other, third = (
        prepare(settings(*words), dataset)
        for words in (("seed=1", "split.seed=5"), ("seed=2", "split.seed=5"), ("seed=1",))
    )
    assert one.split.to_json() == other.split.to_json()
    assert one.split.to_json() != third.split.to_json()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["data.rows=50"], "data.rows=50: the rows of dataset 'tiny-screen' are drawn from the crosses"),
        (["split.pinned=x.json"], "split.pinned=x.json names the side of listed rows"),
        (["split.hide={other: 1.5}"], "split.hide.other=1.5: expected a fraction above 0 and at most 1"),
    ],
)
def test_settings_that_do_not_fit_a_grid_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare(settings(*words), screened_dataset(36))


def test_splits_and_hidden_pairs_that_need_something_else_are_refused() -> None:
    with pytest.raises(SplitError, match="split 'screen' cannot be drawn over the crosses"):
        prepare(compose([*QUICK[:-3], "split.name=screen"]), screened_dataset(36))
    plain = replace(screened_dataset(36), grid=None)
    with pytest.raises(ConfigError, match="'tiny-screen' has no grid of crosses to hide pairs of"):
        prepare(settings("split.hide={other: 1}", "data.phenotypes=[epsilon]"), plain)


def test_a_record_says_how_many_crosses_are_on_which_side(finished: Path) -> None:
    dataset = screened_dataset(36)
    card = json.loads((finished / "card.json").read_text())
    data = prepare(settings(), dataset)
    counts = data.leakage["crosses"]
    sides = [counts[part] for part in ("train", "validation", "test", "dropped")]  # type: ignore[index]
    assert sum(side["crosses"] for side in sides) == card["crosses"]["listed"] + card["crosses"]["unlisted"]
    assert sum(side["listed"] for side in sides) == card["crosses"]["listed"] == len(dataset)
    assert counts["test"]["sampled"] == 40  # type: ignore[index]
    assert (side_of(data, data.part("test")) == TEST).all()


def test_the_page_and_the_card_of_a_run_on_a_grid(tmp_path: Path) -> None:
    """Labels that follow from list and grid have no rows among the measurements."""
    found = run(tmp_path / "a", screened_dataset(36), "split.name=one-unseen")
    write_report([Run(tmp_path / "a")], tmp_path / "page.html", screened=100)
    assert "tiny-screen" in (tmp_path / "page.html").read_text()
    known = found.checkpoint.known
    card = (tmp_path / "a" / "checkpoint" / "model_card.md").read_text()
    assert f"| train rows that are listed crosses | {int((known.part == 0).sum())} |" in card
    sides = count_sides(known)
    assert sides.on_two_sides == 0
    assert sides.rows["test"] == len(known.rows("test")) > int((known.part == 2).sum())
    assert set(sides.unseen["test"]) == {1}


def test_a_gene_whose_training_crosses_are_all_unlisted_is_seen() -> None:
    dataset = screened_dataset(36)
    grid = grid_of(dataset)
    kept = ~dataset.table.holding(dataset.table.gene == 4)
    dataset = replace(dataset, table=dataset.table.take(kept))
    known = prepare(settings(), dataset).known()
    assert 4 not in known.rows("train").gene
    assert known.seen_genes()[4]
    held = prepare(settings("split.name=unseen"), dataset)
    assert held.sides is not None
    assert held.sides.held is not None
    seen = held.known().seen_genes()
    assert not seen[held.sides.held > 0].any()
    assert seen[np.setdiff1d(grid.strains[0], np.flatnonzero(held.sides.held))].all()


def test_all_trials_of_a_search_share_the_split_of_crosses(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("base: [data.name=tiny-screen, split.test=0.3]\nspace:\n  model.layers: [0, 1]\n")
    plan = read_tuning(str(path))
    dataset = screened_dataset(36)
    shared = _pinned(plan, tmp_path, dataset)
    assert not shared.pinned
    assert not (tmp_path / "split.json").exists()
    one, other = (
        prepare(replace(plan.config, split=shared, seed=seed), dataset).split.to_json() for seed in (0, 7)
    )
    assert one == other
    assert one == prepare(plan.config, dataset).split.to_json()


def test_trees_count_rows_as_the_crosses_that_they_stand_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[np.ndarray, np.ndarray]] = []

    class Asked(BoostedTrees):
        def __init__(self, x: Any, y: np.ndarray, *others: Any, weights: np.ndarray, **options: Any) -> None:
            given.append((y, weights))
            super().__init__(x, y, *others, weights=weights, **options)

    monkeypatch.setattr(post_fit, "BoostedTrees", Asked)
    run(tmp_path / "run", screened_dataset(), "data.phenotypes=[epsilon,negative]")
    data = prepare(settings("data.phenotypes=[epsilon,negative]"), screened_dataset())
    rows = data.part("train")
    assert rows.weight is not None
    assert np.unique(rows.weight).size == 2
    assert len(given) == 2
    for phenotype, (label, weights) in enumerate(given):
        of = rows.phenotype == phenotype
        assert len(label) == len(weights)
        # Every draw of folds has the rows once more, in an order of its own.
        draws = len(label) / of.sum()
        assert sorted(weights) == pytest.approx(sorted(np.repeat(rows.weight[of], int(draws))))
