"""Gene sets as people type them and keep them in files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from wildtype.errors import GeneSetError, SourceError, WildtypeError
from wildtype.inference.sets import named_genes, named_sets, read_plan, to_table, written, written_doses
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex


def test_genes_come_from_a_pipe_as_from_a_file(tmp_path: Path) -> None:
    """A shell writes ``<(command)`` as the path of a pipe, which is no regular file."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    file.write_text("SGS1\nSRS2,PDR5\n", encoding="utf-8")
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(file.read_text(encoding="utf-8"),), daemon=True)
    writer.start()
    assert named_genes(str(pipe)) == named_genes(str(file)) == ["SGS1", "SRS2", "PDR5"]
    writer.join()


GENES = GeneIndex(["A", "B", "C", "ARG5,6"])
USUAL = np.full(4, Kind.ABSENT, np.uint8)


def kinds_of(frame: pd.DataFrame) -> list[list[str]]:
    table = to_table(frame, GENES, USUAL, empty=True)
    return [kinds.split(",") for kinds in written(table, GENES.names)[1]]


@pytest.mark.parametrize("column", ["kind", "kinds"])
def test_a_column_of_kinds_states_one_for_all_genes_of_a_row_or_one_each(column: str) -> None:
    rows = [
        ("B;A", "overexpressed;reduced"), ("A,B", "reduced"), ("A B", "absent reduced"), ("A,C", ";reduced"),
        ("ARG5,6,A", "added,reduced"), ("", ""), ("A", None), (["A", "B"], ["reduced", None]),
        ("A:reduced,B", "reduced;overexpressed"), ("", "absent"),
    ]  # fmt: skip
    assert kinds_of(pd.DataFrame(rows, columns=["genes", column])) == [
        ["reduced", "overexpressed"], ["reduced", "reduced"], ["absent", "reduced"], ["absent", "reduced"],
        ["reduced", "added"], [""], ["absent"], ["reduced", "absent"], ["reduced", "overexpressed"], [""],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"genes": "A:reduced", "kind": "absent"}, "row 1 states two kinds of 'A:reduced', reduced and"),
        ({"genes": "A", "kind": "absent", "kinds": "reduced"}, "row 1 states two kinds of 'A', absent and"),
        ({"genes": "A,B", "kind": "absent;absent;absent"}, "row 1 has 3 kinds in column 'kind' for 2 genes"),
        ({"genes": "A", "kind": "gone"}, "row 1: 'gone' is not a kind"),
        ({"genes": "A,B", "dose": "2"}, "row 1 has 1 doses in column 'dose' for 2 genes"),
        ({"genes": "A", "doses": "-2"}, "row 1 has dose '-2': give a number of at least 0"),
        ({"genes": "A", "dose": "much"}, "row 1 has dose 'much'"),
        ({"genes": "A:reduced@3", "dose": 2.0}, "row 1 states two doses of 'A:reduced@3', 3 and"),
    ],
)
def test_columns_that_do_not_fit_a_row_are_refused_with_the_row(row: dict[str, object], message: str) -> None:
    with pytest.raises(WildtypeError, match=re.escape(message)):
        to_table(pd.DataFrame([row]), GENES, USUAL, no_doses="")


def test_doses_are_read_from_a_column_and_behind_a_kind() -> None:
    rows = [("B;A", "2;0.1"), ("C", None), ("A,B", ",4"), ("A:overexpressed@3,B", None), ("A:@5", "5")]
    table = to_table(pd.DataFrame(rows, columns=["genes", "dose"]), GENES, USUAL, no_doses="")
    assert written_doses(table) == ["0.1,2.0", "", ",4.0", "3.0,", "5.0"]
    assert table.kind.tolist() == [0, 0, 0, 0, 0, 4, 0, 0]


@pytest.mark.parametrize("row", [{"genes": "A", "dose": 2.0}, {"genes": "A:overexpressed@2"}])
def test_a_dose_that_would_have_no_effect_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(GeneSetError, match=r"^row 1 states (a )?dose.*'(A:overexpressed@)?2.*, and why: "):
        to_table(pd.DataFrame([row]), GENES, USUAL, no_doses="why")


def test_sets_of_a_file_have_the_kinds_of_its_column(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    path.write_text('genes,kinds\n"A,B","reduced,absent"\nC,\n"A:added,B",";reduced"\n')
    table = to_table(named_sets(str(path)), GENES, USUAL)
    assert written(table, GENES.names)[1] == ["reduced,absent", "absent", "added,reduced"]
    # A screen leaves out genes, whatever is stated of them.
    assert named_genes(str(path)) == ["A", "B", "C", "A:added", "B"]


def test_a_plan_of_another_separator_or_encoding_says_how_to_save_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("genes;comment\nA;x\n")
    with pytest.raises(SourceError, match="has ';' between its columns: save it with commas"):
        read_plan(path)
    path.write_bytes("genes,note\nA,\u00e4\n".encode("latin-1"))
    with pytest.raises(SourceError, match="is no text in UTF-8, .*: save it as CSV in UTF-8"):
        read_plan(path)
