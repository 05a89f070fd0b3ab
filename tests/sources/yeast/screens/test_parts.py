"""Which rows of a screen are used, and that the others are counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.yeast.screens.parts import Screen, Seen, drop_genes, together
from wildtype.sources.yeast.screens.sga_strains import Side, Strains, parse_strain

GENES = GeneIndex(["YAL001C", "YAL002W"], aliases={"YAL001C": ["both", "old"], "YAL002W": ["both"]})
NAMES = ("YAL001C_dma1", "YAL002W_dma2", "both_dma3", "new_dma4", "old_dma5")
DELETION = [(PerturbationKind.DELETION, "", "")]
STRAINS = Strains.build([s for n in NAMES if (s := parse_strain(n))], [DELETION] * 5, GENES, 1)
STUDY = Study(name="x", publication=Publication(citation="nobody"), organism="yeast")
CODES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


@given(CODES)
def test_every_row_is_left_or_counted_under_one_reason(rows: list[tuple[int, int, bool]]) -> None:
    query, array = (np.array([row[side] for row in rows]) for side in (0, 1))
    begin = np.array([row[2] for row in rows])
    sides = [Side(STRAINS, query), Side(STRAINS, array)]
    readings: list[ReadReport] = []
    left = Screen(STUDY, GENES, readings.append).select(
        "file", "use", sides, drop_genes(RowFilter(begin), sides), {"never": ~begin}
    )
    (reading,) = readings
    assert reading.rows == begin.sum() == reading.kept + sum(reading.dropped.values())
    gene = {0: 0, 1: 1, 4: 0}  # the codes that stand for one gene
    good = [b and q in gene and a in gene and gene[q] != gene[a] for q, a, b in rows]
    assert left.tolist() == good
    assert reading.dropped.get("unknown gene", 0) == sum(b and 3 in (q, a) for q, a, b in rows)
    assert reading.renamed == sum(ok and 4 in row[:2] for ok, row in zip(good, rows, strict=True))
    assert begin.tolist() == [row[2] for row in rows]  # what it was given is not changed


@given(CODES, st.data())
def test_a_number_of_a_strain_is_new_once_over_all_files(
    rows: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    seen, new = Seen(), []
    for part in (rows[:cut], rows[cut:]):
        code, value = np.array([r[0] for r in part], np.int64), np.array([float(r[1]) for r in part])
        marked = np.array([r[2] for r in part], bool)
        again = seen.again(STRAINS, code, value, marked)
        assert not (again & ~marked).any()
        new += [r[:2] for r, old in zip(part, again, strict=True) if r[2] and not old]
    assert len(new) == len(set(new))
    assert set(new) == {r[:2] for r in rows if r[2]}


def test_nothing_at_all_is_an_error() -> None:
    with pytest.raises(
        SourceError, match=r"a\.tsv and b\.tsv: no row is of genes of 'unnamed', expected most"
    ):
        together([], GENES, [Path("a.tsv"), Path("b.tsv")])
