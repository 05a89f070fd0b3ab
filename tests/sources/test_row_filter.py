"""Which rows of a file are used, and that every other one is counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import RowFilter, repeated, take
from wildtype.sources.text import match_genes

GENES = GeneIndex(["A", "B", "C"], aliases={"A": ["old", "two"], "B": ["two"]})


def test_every_row_is_kept_or_has_one_reason() -> None:
    first = match_genes(["A", "old", "x", "two", "two"], GENES)
    second = match_genes(["B", "C", "two", "A", "x"], GENES)
    used = RowFilter(5)
    used.drop_names(first, second)
    assert used.left.tolist() == [True, True, False, False, False]
    report = used.report("f", "use", first.renamed | second.renamed)
    assert report.dropped == {"unknown gene": 2, "ambiguous gene name": 1}
    assert (report.rows, report.kept, report.renamed) == (5, 2, 1)


def test_the_first_usable_row_of_a_gene_counts() -> None:
    names = match_genes(["C", "x", "A", "old", "C"], GENES)
    used = RowFilter(5)
    used.drop_names(names)
    positions, rows = used.first_of_each(names, Path("f.gz"))
    assert (positions.tolist(), rows.tolist()) == ([0, 2], [2, 0])
    assert used.dropped == {"unknown gene": 1, "listed twice": 2}
    used = RowFilter(5)
    used.drop_names(names)
    used.drop("no value", np.array([True, False, False, False, False]))
    positions, rows = used.first_of_each(names, Path("f.gz"))
    assert (positions.tolist(), rows.tolist()) == ([0, 2], [2, 4])
    assert used.dropped == {"unknown gene": 1, "no value": 1, "listed twice": 1}
    with pytest.raises(SourceError, match=r"f\.gz has no usable row of a gene"):
        RowFilter(np.zeros(5, bool)).first_of_each(names, Path("f.gz"))


@given(st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=20), st.integers(1, 3))
def test_entries_of_a_matrix_count_under_the_first_reason(rows: list[tuple[bool, ...]], width: int) -> None:
    begin, first, second = (np.array(column) for column in zip(*rows, strict=True))
    entries = np.repeat(begin[:, None], width, axis=1)
    used = RowFilter(entries)
    used.drop_all({"first": first[:, None], "second": second[:, None]})
    counts = {"first": int((begin & first).sum()), "second": int((begin & ~first & second).sum())}
    assert used.dropped == {reason: width * count for reason, count in counts.items() if count}
    assert used.rows == entries.sum() == used.left.sum() + sum(used.dropped.values())
    assert entries[:, 0].tolist() == begin.tolist()  # what it was given is not changed


def test_repeated_values_and_names_at_positions() -> None:
    assert repeated(["b", "a", "b", "b"]).tolist() == [False, False, True, True]
    assert repeated(np.array([3, 3, 1])).tolist() == [False, True, False]
    names = take(match_genes(["A", "old"], GENES), np.array([1, 1, 0]))
    assert names.position.tolist() == [0, 0, 0]
    assert names.renamed.tolist() == [True, True, False]
