from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import wildtype as wt
from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError, GeneSetError, SourceError, UnknownGeneError
from wildtype.inference.predictor import Predictor
from wildtype.inference.sets import parse_set, read_lines, read_sets, to_table
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


def test_one_row_per_mutant_one_column_per_phenotype(predictor: Predictor) -> None:
    frame = predictor.predict([["G003", "abc5"], ["G001"], ["G001", "G002", "G004"]])
    assert frame["genes"].tolist() == ["G003,G005", "G001", "G001,G002,G004"]
    assert np.isfinite(frame["epsilon"]).tolist() == [True, False, True]
    assert frame["note"].tolist() == ["", "epsilon needs at least 2 genes", ""]
    assert frame["order_seen"].tolist() == [True, False, False]
    assert frame["genes_seen"].tolist() == [2, 1, 3]


def test_measured_value_is_shown(predictor: Predictor) -> None:
    dataset = tiny_dataset()
    frame = predictor.predict([["G003", "G005"], ["G003", "G005", "G006"]])
    pair = dataset.table.take(dataset.table.phenotype == 1)
    row = pair.sets().index((3, 5))
    assert frame["epsilon_measured"].iloc[0] == pytest.approx(pair.value[row])
    assert np.isnan(frame["epsilon_measured"].iloc[1])


def test_measured_value_is_that_of_the_condition(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    more = MutantTable.from_sets([(3, 5), (3, 5)], value=[2.0, 4.0], phenotype=[1, 1], condition=[1, 1])
    table = MutantTable.concatenate([known.table, more])
    part = np.append(known.part, [0, 0]).astype(np.uint8)
    checkpoint = replace(predictor.checkpoint, known=replace(known, table=table, part=part))
    asked = predictor.table([["G003", "G005"]] * 3)
    asked.condition[:] = [1, 0, 2]
    measured = Predictor(checkpoint).predict_table(asked)["epsilon_measured"]
    plain = predictor.predict([["G003", "G005"]])["epsilon_measured"].iloc[0]
    np.testing.assert_array_equal(measured, [3.0, plain, np.nan])


def test_essential_gene_is_named_and_taken_as_reduced(predictor: Predictor) -> None:
    frame = predictor.predict([["G003", "G023"], ["G003", "G023:absent"]])
    assert frame["essential"].tolist() == ["G023", "G023"]
    assert frame["kinds"].tolist() == ["absent,reduced", "absent,absent"]
    assert frame["epsilon"].iloc[0] != frame["epsilon"].iloc[1]


def test_order_of_names_and_aliases_do_not_matter(predictor: Predictor) -> None:
    frame = predictor.predict([["G003", "G005"], ["abc5", "ABC3"]])
    assert frame["epsilon"].iloc[0] == pytest.approx(frame["epsilon"].iloc[1], abs=1e-7)


def test_expected_fitness_follows_from_epsilon(predictor: Predictor) -> None:
    frame = predictor.predict([["G003", "G005"], ["G007"], ["G001", "G002", "G004"]], as_="fitness")
    single = tiny_dataset().single_fitness
    assert single is not None
    expected = frame["epsilon"].iloc[0] + float(single[3]) * float(single[5])
    assert frame["fitness_expected"].iloc[0] == pytest.approx(expected)
    rmse = predictor.checkpoint.metrics["validation"]["epsilon"]["rmse"]
    sd = np.sqrt(rmse**2 + (0.01 * single[3]) ** 2 + (0.01 * single[5]) ** 2)
    assert frame["fitness_expected_sd"].iloc[0] == pytest.approx(sd, rel=1e-5)
    assert frame["fitness_expected"].iloc[1] == pytest.approx(float(single[7]))
    assert np.isnan(frame["fitness_expected"].iloc[2])
    assert "no tau is predicted" in frame["note"].iloc[2]


@pytest.mark.parametrize(
    ("sets", "error", "message"),
    [
        ([["G001"], ["G00x", "G002"]], UnknownGeneError, "row 2: 'G00x' is not in organism 'tiny'"),
        ([["G001", "abc1"]], GeneSetError, "row 1 names G001 more than once"),
        (["G001"], GeneSetError, "row 1 is a text"),
        ([["G001:gone"]], ConfigError, "row 1: 'gone' is not a kind"),
        (
            [["G00x"], ["G001"], ["G001", "G001"], [], ["NO"]],
            UnknownGeneError,
            "^3 rows do not fit: row 1: 'G00x' is not.*; row 3 names G001 more than once.*; row 5: 'NO'",
        ),
        ([["no"]] * 200, UnknownGeneError, "^100 or more rows do not fit: .*row 10: 'no'.*; and 90 more$"),
        ("G001,G002", GeneSetError, "'G001,G002' is a text, not a list of gene sets: give "),
        (3, GeneSetError, "3 is no list of gene sets"),
        ([3], GeneSetError, "row 1 is 3, not a list of genes"),
        ([["G001", None]], GeneSetError, "row 1 names None, which is no text"),
        (np.array([[1, 2]]), GeneSetError, "row 1 names 1, which is no text"),
        (np.array(["G001", "G002"]), GeneSetError, "an array of shape .2,. names no gene sets"),
        (pd.DataFrame({"gene": ["G001"]}), GeneSetError, "no column 'genes' .it has 'gene'."),
    ],
)
def test_errors_name_the_row(
    predictor: Predictor, sets: list[list[str]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        predictor.predict(sets)


def test_tables_columns_and_arrays_name_the_same_sets(predictor: Predictor) -> None:
    sets = [["G003", "abc5"], ["G001", "G002"]]
    expected = predictor.predict(sets)
    pd.testing.assert_frame_equal(predictor.predict(np.array(sets)), expected)
    column = pd.Series(["G003;abc5", ["G001", "G002"]], index=[7, 3])
    pd.testing.assert_frame_equal(predictor.predict(column), expected.set_axis([7, 3]))
    plan = pd.DataFrame(
        {"well": ["A1", "A2"], "genes": column.to_list(), "epsilon": [1, 2]}, index=["x", "y"]
    )
    frame = predictor.predict(plan)
    assert frame.columns[:5].tolist() == ["well", "genes", "epsilon_given", "names", "kinds"]
    assert frame["well"].to_dict() == {"x": "A1", "y": "A2"}
    assert frame["epsilon_given"].tolist() == [1, 2]
    pd.testing.assert_frame_equal(frame[expected.columns].reset_index(drop=True), expected)
    assert expected["names"].tolist() == ["abc3;abc5", "abc1;abc2"]


def test_a_name_with_a_comma_stays_one_gene() -> None:
    genes = GeneIndex(["YER069W", "YOL058W", "YAL001C"], {"YER069W": "ARG5,6"}, {"YAL001C": ["ARG5"]})
    kinds = np.full(3, Kind.ABSENT, np.uint8)
    for text in ("ARG5,6", "ARG5,6;YOL058W", "YOL058W,ARG5,6", "ARG5,6:reduced YOL058W", "ARG5,YOL058W"):
        table = to_table([parse_set(text)], genes, kinds)
        gene = 2 if text == "ARG5,YOL058W" else 0
        assert set(table.gene.tolist()) == ({gene, 1} if "YOL" in text else {gene})
        assert (table.kind[table.gene == 0] == (Kind.REDUCED if "reduced" in text else Kind.ABSENT)).all()
    with pytest.raises(UnknownGeneError, match="row 1: '7' is not in"):
        to_table([parse_set("ARG5,7")], genes, kinds)


def test_the_columns_of_a_file_are_kept(tiny_run: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("well,genes,note\n01,abc3;abc5,=first\n02,G001,second\n", encoding="utf-8")
    said = wildtype("predict", str(tiny_run), "--file", str(plan), "-o", str(tmp_path / "out.parquet"))
    assert said.returncode == 0, said.stderr
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame.columns[:3].tolist() == ["well", "genes", "note_given"]
    assert frame["well"].tolist() == ["01", "02"]
    assert frame["genes"].tolist() == ["G003,G005", "G001"]
    both = wildtype("predict", str(tiny_run), "--set", "G001,G002", "--file", str(plan), "--json")
    assert [row["well"] for row in json.loads(both.stdout)] == [None, "01", "02"]


def test_unknown_condition_and_form_are_refused(predictor: Predictor) -> None:
    with pytest.raises(ConfigError, match="it knows reference"):
        predictor.predict([["G001"]], condition="heat")
    with pytest.raises(ConfigError, match="known: phenotype, fitness"):
        predictor.predict([["G001"]], as_="growth")  # type: ignore[arg-type]


def test_intervals_of_what_validation_can_speak_of(predictor: Predictor) -> None:
    sets = [["G003", "G005"], ["G001"], ["G001", "G002", "G004"]]
    frame, plain = predictor.predict(sets, interval=0.9), predictor.predict(sets)
    assert list(frame.columns[3:7]) == ["epsilon", "epsilon_low", "epsilon_high", "epsilon_sd"]
    assert not any(name.endswith(("_low", "_high", "_sd")) for name in plain.columns)
    pd.testing.assert_series_equal(frame["epsilon"], plain["epsilon"])
    assert (frame["epsilon_low"] < frame["epsilon"]).tolist() == [True, False, False]
    assert frame["epsilon_high"].notna().tolist() == [True, False, False]
    assert frame["epsilon_sd"].isna().all()  # a single model
    assert frame["note"].iloc[0] == ""
    assert "no validation row had 3 genes" in frame["note"].iloc[2]
    narrow = predictor.predict(sets, interval=0.5)
    assert narrow["epsilon_low"].iloc[0] > frame["epsilon_low"].iloc[0]


def test_the_command_gives_intervals(tiny_run: Path) -> None:
    said = wildtype("predict", str(tiny_run), "--set", "G003,G005", "--interval", "0.9")
    assert said.stdout.startswith("genes,names,kinds,epsilon,epsilon_low,epsilon_high,epsilon_sd,")
    wrong = wildtype("predict", str(tiny_run), "--set", "G003,G005", "--interval", "1.5")
    assert_one_sentence(wrong, "interval=1.5 is no coverage")


def test_a_checkpoint_without_validation_rows_says_that_it_has_no_intervals(predictor: Predictor) -> None:
    stored = Predictor(replace(predictor.checkpoint, validation=None))
    names = stored.genes.names
    with pytest.raises(CheckpointError, match="made without predictions of its validation rows"):
        stored.predict([[names[0], names[1]]], interval=0.9)


def test_many_sets_equal_one_at_a_time(predictor: Predictor) -> None:
    sets = [[f"G{a:03d}", f"G{b:03d}"] for a in range(5) for b in range(a + 1, 6)]
    together = predictor.predict(sets)["epsilon"]
    alone = [predictor.predict([s])["epsilon"].iloc[0] for s in sets]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)


def test_written_sets() -> None:
    assert parse_set(" SGS1, SRS2;CDC28:reduced ") == ["SGS1", "SRS2", "CDC28:reduced"]
    assert read_lines(["A B\n", "\n", "C\n"]) == [["A", "B"], ["C"]]
    with pytest.raises(SourceError, match="no gene set"):
        read_lines(["", " \n"])


def test_what_pandas_noted_in_a_parquet_file_is_not_needed(tmp_path: Path) -> None:
    table = pa.table({"genes": ["A,B"], "value": [0.5]})
    pq.write_table(table.replace_schema_metadata({"pandas": '{"columns": 3}'}), tmp_path / "noted.parquet")
    assert read_sets(tmp_path / "noted.parquet") == [["A", "B"]]


def test_files_of_sets(tmp_path: Path) -> None:
    good = tmp_path / "good.csv"
    good.write_text('genes,comment\n"A,B",x\nC;D,y\n,z\n')
    assert read_sets(good) == [["A", "B"], ["C", "D"], []]
    for name, text, message in (
        ("none.csv", None, "no file"),
        ("empty.csv", "", "cannot be read"),
        ("head.csv", "genes\n", "no rows"),
        ("other.csv", "gene\nA\n", "no column 'genes'"),
        ("bad.parquet", "x", "cannot be read"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(SourceError, match=message):
            read_sets(tmp_path / name)


def test_a_prediction_that_is_no_number_has_a_note(tiny_run: Path) -> None:
    predictor = wt.load(tiny_run)
    assert set(predictor.predict([["G001", "G002"]])["note"]) == {""}
    with torch.no_grad():
        for weight in predictor.checkpoint.model.parameters():
            weight.mul_(1e30)  # finite, and so large that sums of products are not
    frame = predictor.predict([["G001", "G002"], ["G003"]])
    name = predictor.phenotypes[0]
    assert frame[name].isna().all()
    assert f"{name} is not a number" in frame["note"][0]
