"""Digenic interactions of 2010."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.costanzo2010 import STRINGENT, read_pairs


def test_suffixes_are_hypomorphs_and_bare_names_deletions(small, genes: GeneIndex) -> None:
    screen = read_pairs(small.path, genes)
    assert screen.rows == 10 == len(screen.pairs) + sum(screen.excluded.values())
    assert screen.excluded == {"unknown gene": 1, "ambiguous gene name": 1, "both strains of one gene": 1}
    assert screen.renamed == 1
    kinds = [tuple(Kind(k) for k in row) for row in screen.pairs.kind[:5]]
    assert kinds[0] == (Kind.ABSENT, Kind.ABSENT)
    assert kinds[2] == kinds[3] == kinds[4] == (Kind.REDUCED, Kind.ABSENT)
    assert len(np.unique(screen.pairs.strain[2:5, 0])) == 3  # tsq508, tsq99, damp


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "_tsq508\t",
            "_ph1\t",
            "line 3: received 'YAL001C_ph1', expected an ORF name, alone or followed by _tsqN",
        ),
        (
            "-0.4000",
            "NaN",
            "line 3: received 'NaN', expected a number in field 5|expected a number in 'field 5'",
        ),
        ("-0.4000\t0.0300", "-0.4000\t-0.03", "line 3: received '-0.03', expected a standard deviation"),
        (
            "0.2500\t0.0400\t0.0",
            "0.2500\t0.0400\t1.5",
            "line 5: received '1.5', expected a p-value of 0 to 1",
        ),
        ("\t-0.4000\t", "\t", "line 3: received 6 fields, expected 7"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(STRINGENT, old, new)
    with pytest.raises(SourceError, match=message):
        read_pairs(small.path, genes)


def test_a_truncated_file_is_refused(small, genes: GeneIndex) -> None:
    path = small.path / STRINGENT
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="is cut short"):
        read_pairs(small.path, genes)


def test_a_file_of_another_organism_is_refused(small, genes: GeneIndex) -> None:
    small.write(STRINGENT, "b0001\tthrL\tb0002\tthrA\t-0.2\t0.01\t0.01\n")
    with pytest.raises(SourceError, match="no pair of two ORFs"):
        read_pairs(small.path, genes)


@pytest.mark.real
def test_real_pairs(mirror: Path, real_genes: GeneIndex) -> None:
    screen = read_pairs(mirror, real_genes)
    assert screen.rows == 60608 == len(screen.pairs) + sum(screen.excluded.values())
    assert screen.excluded == {"unknown gene": 75}
    value = screen.pairs.value
    assert value[value < 0].max() <= -0.12
    assert value[value > 0].min() >= 0.16
    reduced = (screen.pairs.kind == Kind.REDUCED).any(1)
    assert int(reduced.sum()) == 14136  # 14,146 in the file, less those with an unknown gene
