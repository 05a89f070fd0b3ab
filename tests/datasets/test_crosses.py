"""Sides of crosses, and the rows of a run from the list and the grid of a screen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.screened import PHENOTYPES, screened_dataset, strain_crosses
from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.cross_draws import grid_of, hidden_crosses
from wildtype.datasets.crosses import CrossSplit, expand, split_crosses
from wildtype.datasets.folds import times_tested
from wildtype.errors import DatasetError, SplitError
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import DROPPED, TEST, TRAIN, contains
from wildtype.mutants.selection import Selection

RULES = ("random", "one-unseen", "unseen", "any-unseen")
FRACTIONS = {"validation": 0.2, "test": 0.25}


def listed_at_random(dataset: Dataset, seed: int) -> Dataset:
    """Return the dataset with another list: other crosses, other values."""
    draw = np.random.default_rng(seed)
    table = strain_crosses(grid_of(dataset))
    rows = np.sort(draw.choice(len(table), 60, replace=False))
    return replace(dataset, table=replace(table.take(rows), value=draw.normal(size=60).astype(np.float32)))


def split_of(dataset: Dataset, name: str, **options: float) -> CrossSplit:
    return split_crosses(dataset, name, 1, **{**FRACTIONS, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RULES)
def test_sides_depend_on_no_value_and_no_listing(name: str) -> None:
    dataset = screened_dataset(40)
    crosses = strain_crosses(grid_of(dataset))
    side = split_of(dataset, name).sides.of_table(crosses)
    for seed in range(3):
        other = split_of(listed_at_random(dataset, seed), name).sides
        np.testing.assert_array_equal(other.of_table(crosses), side)
    split = dataset.split(name, 1, **FRACTIONS)
    for number, part in enumerate(("train", "validation", "test")):
        rows = getattr(split, part)
        kept = split_of(dataset, name).sides.of_table(dataset.table.take(rows))
        assert (kept == number).all()
        assert len(rows) > 0


@pytest.mark.parametrize("name", RULES[1:])
def test_a_held_out_gene_hides_all_its_crosses(name: str) -> None:
    dataset = screened_dataset(40)
    drawn = split_of(dataset, name)
    crosses = strain_crosses(grid_of(dataset))
    assert drawn.sides.held is not None
    trained = crosses.take(drawn.sides.of_table(crosses) == TRAIN)
    assert not (drawn.sides.held[trained.gene] > 0).any()
    assert {0, 1, 2} == set(drawn.sides.held.tolist())


@pytest.mark.parametrize("name", RULES[1:])
def test_five_folds_of_genes_hold_each_gene_once(name: str) -> None:
    dataset = screened_dataset(40)
    held = [
        split_crosses(dataset, name, 2, fold=i, folds=5, validation=0.1).sides.held == TEST for i in range(5)
    ]
    np.testing.assert_array_equal(np.sum(held, 0), 1)
    assert max(int(fold.sum()) for fold in held) - min(int(fold.sum()) for fold in held) <= 1


def test_folds_of_listed_rows_test_each_once() -> None:
    dataset = screened_dataset(40)
    assert (times_tested(dataset.folds("random", 5)) == 1).all()
    with pytest.raises(SplitError, match="genes=5 and folds=5 both decide how much is tested"):
        dataset.split("unseen", genes=5, folds=5, fold=0)


def test_a_number_of_genes_is_held_out() -> None:
    held = split_crosses(screened_dataset(40), "one-unseen", 1, genes=7, validation=0.1).sides.held
    assert held is not None
    assert int((held == TEST).sum()) == 7
    with pytest.raises(SplitError, match="39 genes leave none for training or test"):
        split_crosses(screened_dataset(40), "one-unseen", 1, genes=39, validation=0.1)


@pytest.mark.parametrize("name", ["query-pair", "screen", "order"])
def test_splits_that_read_the_list_are_refused(name: str) -> None:
    dataset = screened_dataset()
    for draw in (dataset.split, lambda name: split_crosses(dataset, name)):
        with pytest.raises(
            SplitError, match=f"split '{name}' cannot be drawn over the crosses of dataset 'tiny-s"
        ):
            draw(name)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("unlisted", [0.3, 3.0, 1e6])
def test_training_weights_sum_to_the_true_number_of_crosses(name: str, unlisted: float) -> None:
    dataset = screened_dataset(60)
    drawn = split_of(dataset, name)
    run, split, counts = expand(dataset, dataset.targets, drawn, unlisted=unlisted)
    train = run.table.take(split.train)
    crosses = strain_crosses(grid_of(dataset))
    true = int((drawn.sides.of_table(crosses) == TRAIN).sum())
    assert counts["train"]["crosses"] == true
    codes = grid_of(dataset).cross_codes(dataset.table)
    for phenotype in range(3):
        rows = train.take(train.phenotype == phenotype)
        assert rows.weight is not None
        assert rows.weight.sum() == pytest.approx(true, rel=1e-5)
        known = contains(np.sort(codes), grid_of(dataset).cross_codes(rows))
        assert (rows.weight[known] == 1).all()
        assert known.sum() == counts["train"]["listed"]
        assert len(rows) - known.sum() == min(
            max(round(unlisted * int(known.sum())), 1), true - counts["train"]["listed"]
        )
    listed = train.take(train.phenotype == 3)
    assert listed.weight is not None
    assert (listed.weight == 1).all()


@pytest.mark.parametrize("name", RULES)
def test_all_crosses_of_a_held_out_side_are_rows_at_their_natural_rate(name: str) -> None:
    dataset = screened_dataset(60)
    drawn = split_of(dataset, name)
    run, split, counts = expand(dataset, dataset.targets, drawn)
    crosses = strain_crosses(grid_of(dataset))
    codes = grid_of(dataset).cross_codes
    for number, part in ((1, "validation"), (2, "test")):
        rows = run.table.take(getattr(split, part))
        effect = rows.take(rows.phenotype == 0)
        of_side = crosses.take(drawn.sides.of_table(crosses) == number)
        np.testing.assert_array_equal(np.sort(codes(effect)), np.sort(codes(of_side)))
        assert counts[part]["listed"] == int((rows.phenotype == 3).sum()) == int((effect.value != 0).sum())
    assert sum(c["crosses"] for c in counts.values()) == len(crosses)


def test_a_sample_of_held_out_crosses_keeps_the_natural_rate() -> None:
    dataset = screened_dataset(150)
    drawn = split_crosses(dataset, "random", 0, validation=0.2, test=0.5)
    run, split, counts = expand(dataset, ["epsilon"], drawn, most=2000)
    assert counts["test"]["sampled"] == len(split.test) == 2000
    rate = counts["test"]["listed"] / counts["test"]["crosses"]
    found = float((run.table.take(split.test).value != 0).mean())
    # Four standard errors of a binomial share of 2,000.
    assert abs(found - rate) < 4 * np.sqrt(rate * (1 - rate) / 2000)


@pytest.mark.parametrize("most", [300, 900, 10**6])
def test_listed_values_are_tested_on_all_listed_crosses(most: int) -> None:
    """The natural rate says nothing of them; validation, and what is tested of other labels, stay samples."""
    dataset = screened_dataset(150)
    drawn = split_crosses(dataset, "random", 0, validation=0.3, test=0.3)
    run, split, counts = expand(dataset, ["epsilon", "epsilon_listed"], drawn, most=most)
    effect, listed = (run.table.phenotype == p for p in range(2))
    side = drawn.sides.of_table(dataset.table)
    test = np.zeros(len(run.table), bool)
    test[split.test] = True
    grid = grid_of(dataset)
    all_listed = grid.cross_codes(dataset.table.take(side == TEST))
    found = grid.cross_codes(run.table.take(test & listed))
    assert counts["test"]["listed"] == len(all_listed) > 300
    assert len(set(found.tolist())) == len(found) == min(len(all_listed), most)
    assert set(found.tolist()) <= set(all_listed.tolist())
    assert (run.table.take(test & listed).weight == 1).all()
    sampled = grid.cross_codes(run.table.take(test & effect))
    assert len(sampled) == counts["test"]["sampled"] == min(counts["test"]["crosses"], most)
    assert set(np.intersect1d(sampled, all_listed).tolist()) <= set(found.tolist())
    valid = np.zeros(len(run.table), bool)
    valid[split.validation] = True
    codes = grid.cross_codes(run.table.take(valid & listed))
    assert contains(np.sort(grid.cross_codes(run.table.take(valid & effect))), codes).all()


def test_labels_of_listed_and_unlisted_crosses() -> None:
    dataset = screened_dataset()
    grid = grid_of(dataset)
    run, split, _ = expand(dataset, dataset.targets, split_of(dataset, "random"))
    value = dict(zip(grid.cross_codes(dataset.table).tolist(), dataset.table.value.tolist(), strict=True))
    seen = {p: run.table.take(run.table.phenotype == p) for p in range(4)}
    for p, rows in seen.items():
        for code, y, sd in zip(
            grid.cross_codes(rows).tolist(), rows.value.tolist(), rows.sd.tolist(), strict=True
        ):
            effect = value.get(code, 0.0)
            assert y == [effect, float(effect < 0), float(effect > 0), effect][p]
            assert np.isfinite(sd) == (p in (0, 3) and code in value)
    assert len(seen[0]) == len(seen[1]) == len(seen[2]) == len(strain_crosses(grid))
    assert len(seen[3]) == len(dataset)
    split.check(run)


def test_cut_offs_decide_what_counts_as_listed() -> None:
    # A dense screen: every cross has a value, so that a sign alone is no interaction.
    dataset = screened_dataset(cut=-1.0)
    assert dataset.cross_counts()["unlisted"] == 0
    cuts = (
        None,
        Selection(negative=-0.08, p=0.05),
        Selection(positive=0.08, p=0.05),
        Selection(negative=-0.12, positive=0.16, p=0.05),
    )
    p = np.tile(np.array([0.01, 0.05, 0.2, np.nan], np.float32), len(dataset))[: len(dataset)]
    dense = replace(
        dataset,
        table=replace(dataset.table, p=p),
        phenotypes=tuple(replace(one, selection=cut) for one, cut in zip(PHENOTYPES, cuts, strict=True)),
    )
    assert dense.sha256 != replace(dense, phenotypes=PHENOTYPES).sha256
    run, _, _ = expand(dense, dense.targets, split_of(dense, "random"))
    seen = [run.table.take(run.table.phenotype == at) for at in range(4)]
    value, sure = seen[0].value, ~(seen[0].p > 0.05) if seen[0].p is not None else None
    assert sure is not None
    assert not sure.all()
    np.testing.assert_array_equal(seen[1].value == 1, (value <= -0.08) & sure)
    np.testing.assert_array_equal(seen[2].value == 1, (value >= 0.08) & sure)
    beyond = ((value <= -0.12) | (value >= 0.16)) & sure
    np.testing.assert_array_equal(seen[3].value, value[beyond])
    assert 0 < beyond.sum() < (seen[1].value + seen[2].value).sum() < len(value)


def test_other_phenotypes_stay_on_the_side_of_their_cross() -> None:
    dataset = screened_dataset(40)
    fitness = replace(dataset.table, phenotype=np.full(len(dataset), 4), value=dataset.table.value + 1)
    both = replace(
        dataset,
        table=MutantTable.concatenate([dataset.table, fitness]),
        phenotypes=(*dataset.phenotypes, Phenotype("fitness")),
    )
    drawn = split_of(both, "one-unseen")
    run, split, _ = expand(both, ["fitness", "negative"], drawn)
    assert [p.name for p in run.phenotypes] == ["fitness", "negative"]
    for number, part in enumerate(("train", "validation", "test")):
        rows = run.table.take(getattr(split, part))
        assert (drawn.sides.of_table(rows) == number).all()
        own = rows.take(rows.phenotype == 0)
        assert len(own) == int((drawn.sides.of_table(dataset.table) == number).sum())
        assert own.weight is not None
        assert (own.weight == 1).all()


def test_hidden_crosses_follow_from_gene_names_alone() -> None:
    dataset, other = screened_dataset(60), replace(screened_dataset(60, seed=5), grid=None)
    pairs = {tuple(row) for row in other.table.matrix(2).tolist()}
    codes = hidden_crosses(dataset, other, 1.0)
    assert {(int(c) // 60, int(c) % 60) for c in codes} == pairs
    some = hidden_crosses(dataset, other, 0.3)
    assert 0.2 < len(some) / len(codes) < 0.4
    assert set(some) <= set(codes)
    shuffled = replace(other, table=replace(other.table, value=other.table.value[::-1].copy()))
    np.testing.assert_array_equal(hidden_crosses(dataset, shuffled, 0.3), some)
    # A grid measured more than it lists.
    assert len(hidden_crosses(dataset, screened_dataset(60), 1.0)) > len(codes)
    drawn = split_crosses(dataset, "random", 0, hidden=some)
    assert (drawn.sides.of(some // 60, some % 60) == DROPPED).all()
    run, _, counts = expand(dataset, ["epsilon"], drawn)
    assert counts["dropped"]["crosses"] > 0
    assert not (drawn.sides.of_table(run.table) == DROPPED).any()
    # The seed of the split does not choose them, nor do they follow its test side.
    side = split_crosses(dataset, "random", 0).sides.of(some // 60, some % 60)
    assert len(np.unique(side)) == 3


def test_what_cannot_be_hidden_or_expanded_is_refused() -> None:
    dataset = screened_dataset()
    other = replace(dataset, organism=replace(dataset.organism, name="mouse"))
    with pytest.raises(DatasetError, match="'tiny-screen' is of mouse, not of tiny"):
        hidden_crosses(dataset, other, 1.0)
    singles = replace(dataset, table=MutantTable.from_sets([[1]], value=[0.5]), grid=None)
    with pytest.raises(DatasetError, match="has no pair of genes to hide"):
        hidden_crosses(dataset, singles, 1.0)
    with pytest.raises(DatasetError, match="has no grid of crosses"):
        split_crosses(singles)
    drawn = split_of(dataset, "random")
    twice = replace(dataset, table=MutantTable.concatenate([dataset.table, dataset.table.take([0])]))
    with pytest.raises(DatasetError, match="lists a cross twice"):
        expand(twice, ["epsilon"], drawn)
    plain = replace(
        dataset, phenotypes=(replace(dataset.phenotypes[0], of_cross=""), *dataset.phenotypes[1:])
    )
    with pytest.raises(DatasetError, match="0 phenotypes with of_cross 'effect', expected 1"):
        expand(plain, ["epsilon_listed"], drawn)


def test_a_sample_of_listed_training_crosses_stands_for_all() -> None:
    dataset = screened_dataset(60)
    drawn = split_of(dataset, "random")
    run, split, counts = expand(dataset, dataset.targets, drawn, unlisted=2.0, most_listed=50)
    _, whole, _ = expand(dataset, dataset.targets, drawn)
    train = run.table.take(split.train)
    for phenotype, total in ((0, counts["train"]["crosses"]), (3, counts["train"]["listed"])):
        rows = train.take(train.phenotype == phenotype)
        assert rows.weight is not None
        assert rows.weight.sum() == pytest.approx(total, rel=1e-5)
        assert len(rows) == (150 if phenotype == 0 else 50)
        assert int((rows.value != 0).sum()) == 50
    assert len(split.test) == len(whole.test)
