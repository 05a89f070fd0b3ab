"""Vectors by gene name from files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.tiny import tiny_organism
from wildtype.errors import DatasetError, SourceError
from wildtype.organism import GeneIndex
from wildtype.organism.embeddings import read_embeddings
from wildtype.organism.gene_sets import sets_of_pairs

GENES = tiny_organism().genes
NAMES = ["G003", "abc5", "G999", "abc3", "G007"]  # abc3 is another name of G003
NUMBERS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [np.nan, 9.0]])


def write(folder: Path, suffix: str) -> Path:
    path = folder / f"vectors{suffix}"
    frame = pd.DataFrame(NUMBERS, columns=["e0", "e1"])
    frame.insert(0, "gene", NAMES)
    if suffix in (".csv", ".tsv", ".csv.gz"):
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, names=np.array(NAMES), matrix=NUMBERS)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".npz"])
def test_names_are_matched_and_what_does_not_fit_is_counted(tmp_path: Path, suffix: str) -> None:
    found = read_embeddings(write(tmp_path, suffix), GENES)
    assert found.unknown == ("G999",)
    assert found.repeated == ("abc3",)
    assert found.ambiguous == ()
    assert found.without == 24 - 3
    block = found.block
    assert (block.name, block.values.shape) == ("vectors", (24, 2))
    np.testing.assert_array_equal(block.values[3], [1, 2])  # its first row
    np.testing.assert_array_equal(block.values[5], [3, 4])
    np.testing.assert_array_equal(block.values[7], [np.nan, 9])
    for said in ("3 of 5 rows used", "21 genes without values", "G999", "abc3"):
        assert said in block.note


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_gene_may_be_called_like_a_missing_number(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"vectors{suffix}"
    lines = ["gene,a,b", "nan,1,NA", "NA,NA,2", "null,nan,", "007,3,4"]
    path.write_text("\n".join(lines).replace(",", "," if suffix == ".csv" else "\t"))
    found = read_embeddings(path, GeneIndex(["NA", "nan", "null", "007"]))
    np.testing.assert_array_equal(found.block.values, [[np.nan, 2], [1, np.nan], [np.nan, np.nan], [3, 4]])


def test_a_frame_with_names_in_its_index(tmp_path: Path) -> None:
    path = tmp_path / "esm.parquet"
    pd.DataFrame(NUMBERS, index=NAMES).to_parquet(path)
    block = tiny_organism().with_features(path).features["esm"]
    assert block.columns == ("0", "1")
    np.testing.assert_array_equal(block.values[5], [3, 4])
    with pytest.raises(DatasetError, match="'esm' is given twice"):
        tiny_organism().with_features(path).with_features(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("gene,a\nG001,x\n", r"row 1 \(line 2\), column 'a': received 'x', expected a number"),
        ("gene,a\nG001,inf\n", "holds an infinite number"),
        ("gene\nG001\n", "holds no column of numbers"),
        ("gene,a\nQ1,1\nQ2,2\n", r"names no gene of organism 'tiny' \(its first names: Q1, Q2\)"),
        ("gene,a\n,1\n", r"row 1 \(line 2\): the first column has no gene name"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_table_of_vectors_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(SourceError, match=message):
        read_embeddings(path, GENES)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        read_embeddings(tmp_path / "none.csv", GENES)
    for path in (tmp_path / "a.txt", tmp_path / "b.npz", tmp_path / "c.parquet"):
        path.write_text("x")
        with pytest.raises(SourceError, match=r"ends in none of|cannot be read"):
            read_embeddings(path, GENES)
    np.savez(tmp_path / "objects.npz", names=np.array(["G001", None], dtype=object), matrix=np.zeros((2, 1)))
    np.savez(tmp_path / "short.npz", names=np.array(["G001"]), matrix=np.zeros((2, 1)))
    for name, message in (("objects", "cannot be read"), ("short", "expected one array of names")):
        with pytest.raises(SourceError, match=message):
            read_embeddings(tmp_path / f"{name}.npz", GENES)


def test_a_frame_in_memory_and_some_columns_of_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(NUMBERS, index=NAMES, columns=["e0", "e1"])
    block = tiny_organism().with_features(frame, name="mine").features["mine"]
    np.testing.assert_array_equal(block.values[5], [3, 4])
    assert frame.columns.tolist() == ["e0", "e1"]
    path = write(tmp_path, ".csv")
    assert read_embeddings(path, GENES, columns=["e1"]).block.columns == ("e1",)
    with pytest.raises(SourceError, match=r"has no column 'e2' \(it has 'e0', 'e1'\)"):
        read_embeddings(path, GENES, columns=["e2"])


def test_an_anndata_file_without_anndata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anndata", None)
    (tmp_path / "x.h5ad").write_bytes(b"x")
    with pytest.raises(SourceError, match=r"anndata is not installed: pip install 'wildtype\[anndata\]'"):
        read_embeddings(tmp_path / "x.h5ad", GENES)


def test_the_numbers_of_var_of_an_anndata_file(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    var = pd.DataFrame({"mean": [1.0, 2.0], "kind": ["a", "b"]}, index=["G001", "G999"])
    anndata.AnnData(np.zeros((3, 2), np.float32), var=var).write_h5ad(tmp_path / "x.h5ad")
    found = read_embeddings(tmp_path / "x.h5ad", GENES)
    assert (found.block.columns, found.unknown) == (("mean",), ("G999",))
    assert found.block.values[1] == 1


def test_unknown_names_are_counted_without_a_search_for_similar_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(GeneIndex, "nearest", lambda *given: pytest.fail("searched for suggestions"))
    path = tmp_path / "wide.csv"
    path.write_text("gene,x\nA1,1\nA2,2\nnone of these,3\n")
    found = read_embeddings(path, GeneIndex(["A1", "A2", "A3"]))
    assert found.block.values[:, 0].tolist()[:2] == [1, 2]
    pairs = sets_of_pairs("term", ["A1", "nobody"], ["t", "t"], GeneIndex(["A1"]), "a table")
    assert pairs.table.sum() == 1
