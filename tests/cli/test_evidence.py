"""`--evidence` takes what `data import` takes: the same numbers, the same predictions, in any table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wildtype.cli.evidence import as_evidence, with_evidence
from wildtype.errors import ConfigError, SourceError
from wildtype.inference.predictor import load
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.user_tables.layout import Layout, save_layout
from wildtype.sources.user_tables.table import read_table

ASKED = [["G003", "G007"], ["G003", "G011"]]
PLAIN = (
    "genes,value,phenotype\nG003:absent;G005:absent,-0.31,epsilon\nG005:absent;G007:reduced,0.25,epsilon\n"
)
MESSY = "A screen;;\nquery;array;epsilon\nG003Δ;G005;-0,31\ng007-ts;G005Δ;0,25\nG003;G00X;1\n"


def test_the_same_in_another_table(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, messy, mapping = tmp_path / "own.csv", tmp_path / "screen.txt", tmp_path / "mapping.yaml"
    plain.write_text(PLAIN)
    messy.write_text(MESSY)
    predictor = load(tiny_run)
    with pytest.raises(SourceError, match="--decimal ,"):
        with_evidence(predictor, messy)
    save_layout(mapping, Layout(decimal=",", skip_bad=True))
    given = with_evidence(predictor, messy, mapping)
    said = capsys.readouterr().err
    for part in ("genes: columns 'query', 'array'", "alleles", "left out: 1 rows with a problem"):
        assert part in said
    expected = with_evidence(predictor, plain).predict(ASKED)
    pd.testing.assert_frame_equal(given.predict(ASKED), expected)
    assert not expected.equals(predictor.predict(ASKED))


@pytest.mark.parametrize(
    "text",
    [
        # Alleles, a wild type and a decimal comma beside a column genes, as in tables without one.
        "genes;value\nG003Δ,G005;-0,31\nwt;0\nG005Δ,g007-ts;0,25\n",
        # What a model assumes of a gene that is named without a kind.
        "genes,value\nG003 G005,-0.31\nG005 G007,0.25\n",
        # What is written as a deletion stays one where the table says that others are reduced.
        "genes,value\nG003Δ G005Δ,-0.31\nG005Δ G007,0.25\n",
        # A column called as a phenotype, beside other numbers.
        "genes,n,epsilon\nG003:absent G005:absent,3,-0.31\nG005:absent G007:reduced,3,0.25\n",
    ],
)
def test_a_column_genes_is_read_in_no_other_way(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path, mapping = tmp_path / "own.csv", tmp_path / "mapping.yaml"
    path.write_text(text)
    save_layout(mapping, Layout(decimal="," if ";" in text else "."))
    predictor = load(tiny_run)
    # Not all alike: the last gene is knocked down where nothing else is said.
    predictor.core.__dict__["kinds"] = np.where(
        np.arange(len(predictor.genes)) == predictor.genes.find("G007"), Kind.REDUCED, predictor.kinds
    ).astype(np.uint8)
    given = with_evidence(predictor, path, mapping).predict(ASKED)
    said = "genes without a stated kind are those of the model: 22 absent, 2 reduced"
    assert said in capsys.readouterr().err
    sets = [["G003:absent", "G005:absent"], ["G005:absent", "G007:reduced"]]
    frame = pd.DataFrame({"genes": sets, "value": [-0.31, 0.25]})
    pd.testing.assert_frame_equal(given, predictor.with_evidence(frame).predict(ASKED))


def test_what_is_no_evidence(tiny_run: Path, tmp_path: Path) -> None:
    predictor = load(tiny_run)
    assert with_evidence(predictor, None) is predictor
    with pytest.raises(ConfigError, match="give --evidence as well"):
        with_evidence(predictor, None, tmp_path / "mapping.yaml")
    path = tmp_path / "wild.csv"
    path.write_text("strain,back,epsilon\nwt,G003,0.1\nwt,wt,1\n")
    save_layout(tmp_path / "m.yaml", Layout(controls=("G003",)))
    with pytest.raises(SourceError):
        with_evidence(predictor, path, tmp_path / "m.yaml")


def test_what_is_not_stated_is_the_models(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("genes,value,condition\nA;B,1,\nwt,2,\n")
    organism = Organism("tiny", GeneIndex(["A", "B"], organism="tiny"))
    frame = as_evidence(read_table(path, organism))
    assert frame.to_dict("list") == {"genes": [["A:absent", "B:absent"]], "value": [1.0]}
    path.write_text("genes,size,condition\nA;B,1,heat\n")
    frame = as_evidence(read_table(path, organism))
    assert (frame["phenotype"][0], frame["condition"][0]) == ("size", "heat")
