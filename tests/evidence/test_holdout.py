from __future__ import annotations

import numpy as np
import pytest

from wildtype.evidence.holdout import folds, holdout_scheme, leading_pairs
from wildtype.mutants import MutantTable


def random_table(seed, orders, rows=200, genes=25):
    rng = np.random.default_rng(seed)
    sets = [rng.choice(genes, size=rng.choice(orders), replace=False) for _ in range(rows)]
    return MutantTable.from_sets(
        sets, condition=rng.integers(0, 2, rows), kind=rng.integers(0, 2, sum(map(len, sets)))
    )


def query_table(pairs, arrays):
    return MutantTable.from_sets([(a, b, c) for a, b in pairs for c in arrays])


@pytest.mark.parametrize("name", ["seen", "one", "none", "pair"])
@pytest.mark.parametrize("orders", [[2], [3], [1, 2, 3], [0, 1, 5]])
def test_no_row_sees_its_own_gene_set_or_more_genes_than_the_scheme_allows(name, orders):
    table = random_table(0, orders)
    asked = []
    for ask, see in folds(name, table, 25, seed=4):
        assert not set(table.set_id[ask]) & set(table.set_id[see])
        seen = np.zeros(25, bool)
        seen[table.gene[np.isin(table.row, see)]] = True
        unseen = np.array([sum(not seen[g] for g in table.sets()[row]) for row in ask])
        if name == "one":
            assert (unseen >= 1).all()
            assert (table.order[ask] > 1).all()
        if name == "none":
            np.testing.assert_array_equal(unseen, table.order[ask])
        if name == "pair" and ask.size and see.size:
            code, _ = leading_pairs(table, table, 25)
            inside = {a * 25 + b for s in (table.sets()[r] for r in ask) for a in s for b in s if a < b}
            assert {c for c in code[ask] if c >= 0} <= inside
            assert not set(code[ask][code[ask] >= 0]) & set(code[see])
        asked.append(ask)
    counts = np.bincount(np.concatenate(asked), minlength=len(table))
    if name in ("seen", "pair"):
        assert (counts == 1).all()
    if name == "none":
        assert (counts[table.order > 0] == 1).all()
    if name == "one" and orders == [2]:
        assert (counts <= 2).all()
        assert counts.sum() > 1.5 * len(table)


def test_scheme_is_read_from_the_genes_of_the_validation_rows():
    train = MutantTable.from_sets([(a, b) for a in range(10) for b in range(a)])
    assert holdout_scheme(train, train.take(np.arange(0)), 30) == "seen"
    assert holdout_scheme(train, MutantTable.from_sets([(1, 2), (3, 4), (3, 20)]), 30) == "seen"
    assert holdout_scheme(train, MutantTable.from_sets([(1, 20), (3, 21), (3, 4)]), 30) == "one"
    assert holdout_scheme(train, MutantTable.from_sets([(25, 20), (23, 21), (3, 4)]), 30) == "none"


def test_scheme_pair_where_the_query_pairs_of_triples_are_new():
    arrays = range(10, 28)
    train = query_table([(0, 1), (2, 3), (4, 5), (0, 3)], arrays)
    assert holdout_scheme(train, query_table([(1, 2), (4, 0)], arrays), 30) == "pair"
    mixed = np.random.default_rng(0).permutation(len(train))
    assert holdout_scheme(train.take(mixed[:60]), train.take(mixed[60:]), 30) == "seen"
    code, most = leading_pairs(train, train, 30)
    assert set(code) == {0 * 30 + 1, 2 * 30 + 3, 4 * 30 + 5, 0 * 30 + 3}
    assert (most == 18).all()
