"""Digenic interactions of 2016."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.costanzo2016 import FILES, present, read_pairs


def test_both_files_are_joined_and_marked_genes_are_reduced(small, genes: GeneIndex) -> None:
    never_deleted = np.zeros(len(genes), bool)
    never_deleted[genes.find("YAL001C")] = True
    screen = read_pairs(small.path, genes, never_deleted)
    assert screen.rows == 7 == len(screen.pairs) + sum(screen.excluded.values())
    assert screen.excluded == {"unknown gene": 1, "both strains of one gene": 1}
    reduced = screen.pairs.gene[screen.pairs.kind == Kind.REDUCED]
    assert [genes.names[i] for i in np.unique(reduced)] == ["YAL001C"]
    assert np.isnan(screen.pairs.sd).all()


def test_presence_needs_both_files(small) -> None:
    assert present(small.path)
    small.remove(FILES[1])
    assert not present(small.path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 YAL001C YDL227C 0.0100", "3 YAL001C YDL227C 0.0100", "line 2: received '3', expected 2"),
        ("2 YAL001C YDL227C 0.0100", "2 YAL001C YDL227C nan", "line 2: received 'nan', expected a number"),
        ("2 YAL001C YDL227C 0.0100", "2 YAL001C YDL227C", "line 2: received 3 fields, expected 4"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(FILES[0], old, new)
    with pytest.raises(SourceError, match=message):
        read_pairs(small.path, genes, np.zeros(len(genes), bool))


@pytest.mark.real
def test_real_pairs(mirror: Path, real_genes: GeneIndex) -> None:
    screen = read_pairs(mirror, real_genes, np.zeros(len(real_genes), bool))
    assert (screen.rows, len(screen.pairs)) == (10698, 10698)
    assert screen.pairs.value.mean() == pytest.approx(-0.016, abs=0.005)
    assert screen.pairs.value.std() == pytest.approx(0.08, abs=0.01)
