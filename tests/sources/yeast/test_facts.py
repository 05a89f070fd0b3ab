"""Agreement of scores: what is compared, and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.provenance import agreement
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast.facts import between_rows

ORGANISM = Organism("toy", GeneIndex([f"G{i}" for i in range(10)], organism="toy"))
Rows = list[tuple[int, int, float]]


def dataset(rows: Rows, kinds: list[int] | None = None) -> Dataset:
    """Rows of two genes and a value; both genes deleted unless the second's kind is given."""
    gene = np.array([sorted(row[:2]) for row in rows])
    kind = np.array([[Kind.ABSENT, k] for k in kinds or [Kind.ABSENT] * len(rows)])
    table = MutantTable.from_matrix(gene, kind=kind.reshape(-1), value=np.array([row[2] for row in rows]))
    return Dataset("toy", ORGANISM, table, (Phenotype("epsilon", min_order=2),))


def test_rows_of_one_gene_pair_and_kinds_are_compared_in_both_orders() -> None:
    numbers = [(0.1, 0.2), (0.4, 0.5), (-0.3, -0.1), (0.9, 0.7)]
    rows = [(0, gene, value) for gene, pair in enumerate(numbers, start=1) for value in pair]
    rows += [(0, 9, 5.0), (0, 1, 9.0)]  # one row only; another kind of perturbation
    r, count = between_rows(dataset(rows, [Kind.ABSENT] * 9 + [Kind.REDUCED]))
    x, y = (np.array(side) for side in zip(*numbers, strict=True))
    assert count == 4
    assert r == pytest.approx(np.corrcoef(np.r_[x, y], np.r_[y, x])[0, 1], abs=1e-6)


def test_three_rows_of_one_gene_pair_are_three_comparisons() -> None:
    r, count = between_rows(dataset([(0, 1, 0.1), (0, 1, 0.2), (1, 0, 0.4)]))
    assert count == 3
    assert r == pytest.approx(-0.5)  # every value against both others: always so for three
    assert between_rows(dataset([(0, 1, 0.1), (0, 1, 0.2)]))[1] == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(3, 4), st.integers(-8, 8).map(lambda i: i / 8)),
        min_size=1,
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(rows: Rows, random) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    (r, count), (again, number) = between_rows(dataset(rows)), between_rows(dataset(shuffled))
    assert (count, r) == (number, pytest.approx(again, abs=1e-9, nan_ok=True))


def test_datasets_are_compared_on_the_gene_pairs_of_both() -> None:
    first = dataset([(0, 1, 0.0), (1, 0, 0.2), (0, 2, 0.5), (0, 3, -0.2), (0, 4, 9.0)])
    second = dataset([(1, 0, 0.2), (2, 0, 0.9), (0, 3, -0.5), (0, 5, -9.0)], [Kind.REDUCED, 0, 0, 0])
    r, count = agreement(first.table, second.table)
    expected = np.corrcoef([0.1, 0.5, -0.2], [0.2, 0.9, -0.5])[0, 1]
    assert (r, count) == (pytest.approx(expected, abs=1e-6), 3)
    r, count = agreement(first.table, dataset([(7, 8, 0.1)]).table)
    assert (np.isnan(r), count) == (True, 0)


def test_equal_numbers_have_no_correlation() -> None:
    same = dataset([(0, 1, 0.5), (0, 2, 0.5), (0, 3, 0.5)])
    assert np.isnan(agreement(same.table, same.table)[0])
