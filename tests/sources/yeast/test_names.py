"""Rows with two names, and one row per gene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.names import match_pairs, one_row_per_gene

GENES = GeneIndex(["A", "B", "C"], aliases={"A": ["old", "two"], "B": ["two"]})


def test_every_row_is_kept_or_has_one_reason() -> None:
    first = match_genes(["A", "old", "x", "two", "two"], GENES)
    second = match_genes(["B", "C", "two", "A", "x"], GENES)
    kept, dropped, renamed = match_pairs(first, second)
    assert kept.tolist() == [True, True, False, False, False]
    assert dropped == {"unknown gene": 2, "ambiguous gene name": 1}
    assert renamed == 1


def test_the_first_usable_row_of_a_gene_counts() -> None:
    names = match_genes(["C", "x", "A", "old", "C"], GENES)
    positions, rows, dropped = one_row_per_gene(names, Path("f.gz"))
    assert (positions.tolist(), rows.tolist()) == ([0, 2], [2, 0])
    assert dropped == {"unknown gene": 1, "listed twice": 2}
    positions, rows, dropped = one_row_per_gene(
        names, Path("f.gz"), np.array([False, True, True, True, True])
    )
    assert (positions.tolist(), rows.tolist()) == ([0, 2], [2, 4])
    assert dropped == {"unknown gene": 1, "listed twice": 1}
    with pytest.raises(SourceError, match=r"f\.gz has no usable row of a gene"):
        one_row_per_gene(names, Path("f.gz"), np.zeros(5, bool))
