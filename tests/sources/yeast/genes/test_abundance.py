"""Protein abundance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.abundance import PAXDB, read_abundance


def test_log_of_parts_per_million_and_missing_for_unseen(small, genes: GeneIndex) -> None:
    block, reading = read_abundance(small.path, genes)
    assert block.values[:3, 0] == pytest.approx([np.log10(42.8), np.nan, 3.0], nan_ok=True)
    assert np.isfinite(block.values).sum() == 2
    assert reading.dropped == {"unknown gene": 1, "abundance 0": 1}
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_columns_are_found_by_name(small, genes: GeneIndex) -> None:
    small.write(PAXDB, "#id: 1\n#gene_name\tstring_external_id\tabundance\nTFC3\t4932.YAL001C\t100\n")
    block, _ = read_abundance(small.path, genes)
    assert block.values[0, 0] == 2


def test_the_integrated_dataset_goes_first_and_names_itself(small, genes: GeneIndex) -> None:
    """Written by hand in the layout of a newer release (no internal id), whose header is not confirmed."""
    assert read_abundance(small.path, genes)[0].source == "PaxDb, S.cerevisiae"
    small.write(
        "4932-WHOLE_ORGANISM-integrated.txt",
        "#name: S.cerevisiae - Whole organism (Integrated)\n#score: 20\n#\n#string_external_id\tabundance\n"
        "4932.YAL001C\t10\n4932.Q0045\t1000\n",
    )
    block, reading = read_abundance(small.path, genes)
    assert block.source == "PaxDb, S.cerevisiae - Whole organism (Integrated)"
    assert (block.values[0, 0], block.values[genes.find("COX1"), 0]) == (1, 3)
    assert reading.file == "4932-WHOLE_ORGANISM-integrated.txt"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "#internal_id\tstring_external_id",
            "#internal_id\tstring_id",
            "no comment line that names the columns",
        ),
        ("\t42.8\t2", "\t42.8", "line 5: received 3, expected 4 fields"),
        ("\t42.8\t", "\tNA\t", "line 5: received 'NA', expected a number"),
        ("\t42.8\t", "\t-1\t", "line 5: received '-1', expected an abundance of at least 0"),
    ],
)
def test_damage_is_named(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(PAXDB, old, new)
    with pytest.raises(SourceError, match=message):
        read_abundance(small.path, genes)


@pytest.mark.real
def test_real_abundance(mirror: Path, real_genes: GeneIndex) -> None:
    block, reading = read_abundance(mirror, real_genes)
    assert (reading.rows, reading.kept) == (5991, int(np.isfinite(block.values).sum()))
    assert block.values[real_genes.find("TDH3"), 0] > block.values[real_genes.find("ORC1"), 0] + 2
