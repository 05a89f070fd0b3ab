"""Gene Ontology features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.ontology import GO, read_go_process


def test_rare_and_universal_terms_are_left_out_and_the_leak_is_named(small, genes: GeneIndex) -> None:
    block, reading = read_go_process(small.path, genes)
    assert block.note.startswith("3 of 4 terms")
    assert "may leak" in block.note
    assert block.measured == ()
    assert reading.rows == 13
    assert reading.dropped == {"unknown gene": 1}
    assert np.isfinite(block.values).all()


def test_a_gene_without_a_row_is_missing(small, genes: GeneIndex) -> None:
    text = small.text(GO)
    small.write(GO, "\n".join(line for line in text.split("\n") if not line.startswith("YEL009C")))
    block, _ = read_go_process(small.path, genes)
    missing = np.flatnonzero(np.isnan(block.values).all(1))
    assert [genes.names[i] for i in missing] == ["YEL009C"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W\t1\t1", "YAL002W\t1\t2", "line 3: received .*, expected 4 entries that are 0 or 1"),
        ("YAL002W\t1\t1", "YAL002W\t1", "line 3: received .*, expected 4 entries"),
        ("YAL002W\t1\t1", "YAL002W\t1 1", "line 3: received .*, expected 4 entries"),
        ("ORF\t", "gene\t", "line 1: received .*, expected ORF"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(GO, old, new)
    with pytest.raises(SourceError, match=message):
        read_go_process(small.path, genes)


@pytest.mark.real
def test_real_components_bring_genes_of_one_process_together(mirror: Path, real_genes: GeneIndex) -> None:
    block, reading = read_go_process(mirror, real_genes)
    assert block.values.shape == (6604, 64)
    assert (reading.rows, reading.kept) == (5911, int(np.isfinite(block.values).all(1).sum()))

    def cosine(a: str, b: str) -> float:
        x, y = (block.values[real_genes.find(name)] for name in (a, b))
        return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    assert cosine("RPN1", "RPN2") > 0.8
    assert cosine("RPN1", "RPN2") > cosine("RPN1", "GAL4") + 0.3
