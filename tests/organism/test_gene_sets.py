from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Metabolism
from wildtype.organism.gene_sets import read_gene_sets, sets_of_metabolism

GENES = GeneIndex(["A", "B", "C", "D"], {"B": "bee"}, organism="four")


def test_a_table_is_read_by_any_name_and_lost_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    path.write_text('gene,term\nA,one\nbee,one\nA,one\nZ,one\nC,"<b>[red]two"\n,three\n')
    sets = read_gene_sets(path, GENES)
    assert sets.names == ("one", "<b>[red]two")
    np.testing.assert_array_equal(sets.table.toarray(), [[1, 0], [1, 0], [0, 1], [0, 0]])
    assert sets.source == "terms.csv; 1 of 5 rows name no one gene"
    assert sets.sized(2, 2).names == ("one",)
    np.testing.assert_array_equal(sets.shared().adjacency.toarray()[:2, :2], [[0, 1], [1, 0]])
    assert sets.shared().nnz == 2
    table = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1.0]])
    once = replace(sets, names=("a", "b", "c", "d"), table=table).distinct()
    assert once.names == ("a (and 1 with the same genes)", "b", "d")
    np.testing.assert_array_equal(once.table.toarray(), table.toarray()[:, [0, 1, 3]])


def test_a_gene_may_be_called_nan_and_a_term_that_is_not_known_is_no_set(tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    path.write_text("gene,term\nnan,one\nA,one\nB,NA\nC,\n")
    sets = read_gene_sets(path, GeneIndex(["A", "B", "C", "nan"]))
    assert sets.names == ("one",)
    np.testing.assert_array_equal(sets.table.toarray(), [[1], [0], [0], [1]])


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("gene,go\nA,one\n", "no column 'term'"),
        ("gene,term\nZ,one\n", "names no gene of organism 'four'"),
        ("", "cannot be read as a table"),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path: Path, text: str, needle: str) -> None:
    path = tmp_path / "terms.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=needle):
        read_gene_sets(path, GENES)
    with pytest.raises(SourceError, match="there is no file"):
        read_gene_sets(tmp_path / "none.csv", GENES)


def test_reactions_and_complexes_of_a_metabolism() -> None:
    metabolism = Metabolism.build(
        ["R1", "R2", "R3"],
        ["m"],
        sparse.csr_array(np.ones((1, 3))),
        np.zeros(3),
        np.ones(3),
        np.zeros(3),
        ["(A and B) or C", "A and B", ""],
    )
    reactions, complexes = sets_of_metabolism(metabolism, GENES)
    members = {name: reactions.table.toarray()[:, i].tolist() for i, name in enumerate(reactions.names)}
    assert members == {"R1": [1, 1, 1, 0], "R2": [1, 1, 0, 0], "R3": [0, 0, 0, 0]}
    members = {name: complexes.table.toarray()[:, i].tolist() for i, name in enumerate(complexes.names)}
    assert members == {"A+bee": [1, 1, 0, 0], "C": [0, 0, 1, 0]}
