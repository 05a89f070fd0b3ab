"""`predict --file` works in blocks: the same bytes, whatever the blocks, in bounded memory."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wildtype as wt
from tests.command import assert_one_sentence, wildtype
from wildtype.cli.output import give_frame
from wildtype.inference import prediction_file
from wildtype.inference.predictor import Predictor
from wildtype.models import trained
from wildtype.tables import FrameBlocks, read_frame


@pytest.fixture
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Thirty rows; ``late`` is empty in the first blocks."""
    frame = pd.DataFrame(
        {
            "well": [f"{i:03d}" for i in range(30)],
            "genes": [
                f"G{i % 9:03d},abc{10 + i % 7}" if i % 5 else f"G{i % 8:03d}:reduced" for i in range(30)
            ],
            "note": ["=first"] * 30,
            "late": [None] * 20 + ["x"] * 10,
            "never": [None] * 30,
        }
    )
    frame.to_csv(tmp_path / "plan.csv", index=False)
    more = frame.assign(count=[*range(29), None], amount=[Decimal(10) ** (i // 10) for i in range(30)])
    numbers = pa.Table.from_pandas(more.assign(count=more["count"].astype("Int64")), preserve_index=False)
    pq.write_table(numbers, tmp_path / "plan.parquet", row_group_size=11)
    return tmp_path / "plan.csv"


def predict(run: Path, plan: Path, output: Path, *more: str) -> bytes:
    said = wildtype("predict", str(run), "--file", str(plan), "-o", str(output), *more)
    assert said.returncode == 0, said.stderr
    return output.read_bytes()


@pytest.mark.parametrize("source", [".csv", ".parquet"])
def test_blocks_of_7_rows_make_the_bytes_of_one(
    source: str, tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many mutants pass the model together: sums of other batches may differ in the last bit.
    for name in ("BATCH", "WITH_EVIDENCE"):
        monkeypatch.setattr(trained, name, 7)
    plan, more = plan.with_suffix(source), ["--set", "G001,G002", "--interval", "0.9"]
    ends = (".csv", ".json", ".parquet")
    one = [predict(tiny_run, plan, tmp_path / f"one{end}", *more) for end in ends]
    monkeypatch.setattr(prediction_file, "BLOCK", 7)
    blocks = [predict(tiny_run, plan, tmp_path / f"blocks{end}", *more) for end in ends]
    assert blocks[:2] == one[:2]
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("one", "blocks")]
    assert tables[0].equals(tables[1])
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)


@pytest.mark.parametrize("source", [".csv", ".parquet"])
def test_a_file_has_the_bytes_of_the_table_in_python(
    source: str, tiny_run: Path, predictor: Predictor, plan: Path, tmp_path: Path
) -> None:
    plan = plan.with_suffix(source)
    frame = predictor.predict(read_frame(plan, "gene sets"), as_="fitness")
    for end in (".csv", ".json", ".parquet"):
        give_frame(frame, tmp_path / f"python{end}", as_json=False)
        found = predict(tiny_run, plan, tmp_path / f"file{end}", "--as", "fitness")
        if end != ".parquet":
            assert found == (tmp_path / f"python{end}").read_bytes()
    frame.to_json(tmp_path / "pandas.json", orient="records", indent=2, double_precision=15)
    assert (tmp_path / "pandas.json").read_bytes() == (tmp_path / "file.json").read_bytes()
    frame.to_parquet(tmp_path / "pandas.parquet", index=False)
    pd.testing.assert_frame_equal(*(pd.read_parquet(tmp_path / f"{n}.parquet") for n in ("file", "pandas")))


def test_rows_that_do_not_fit_are_listed_over_all_blocks_and_nothing_is_written(
    tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_file, "BLOCK", 7)
    frame = pd.read_csv(plan, dtype=str)
    frame.loc[3:14, "genes"] = "NOPE"
    frame.to_csv(plan, index=False)
    output = tmp_path / "empty" / "out.csv"
    said = wildtype("predict", str(tiny_run), "--file", str(plan), "-o", str(output))
    assert_one_sentence(said, "12 rows do not fit", "row 4: 'NOPE'", "row 13: 'NOPE'", "and 2 more")
    assert not output.parent.exists()


def test_blocks_of_a_file_have_the_types_of_the_file(plan: Path) -> None:
    for path in (plan, plan.with_suffix(".parquet")):
        whole, blocks = read_frame(path, "sets"), list(FrameBlocks(path, "sets", 7))
        assert max(map(len, blocks)) <= 7
        assert {tuple(block.dtypes) for block in blocks} == {tuple(whole.dtypes)}
        pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole)


def test_profiles_of_a_phenotype_without_them_are_refused(
    tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_file, "PROFILE_NUMBERS", 24)
    said = wildtype(
        "predict", str(tiny_run), "--file", str(plan), "-o", str(tmp_path / "x.csv"), "--genes", "expression"
    )
    assert_one_sentence(said, "genes='expression'", "known: none")
    assert not (tmp_path / "x.csv").exists()


def test_a_table_of_predictions_is_a_plan(tiny_run: Path, plan: Path, tmp_path: Path) -> None:
    """Its columns are called as those of the prediction, which gives them other names and other types."""
    first, again = tmp_path / "first.csv", tmp_path / "again.parquet"
    predict(tiny_run, plan, first)
    predict(tiny_run, first, again)
    found, given = pd.read_parquet(again), pd.read_csv(first, dtype=str)
    assert found["order_given"].tolist() == given["order"].tolist()
    assert found["order"].tolist() == given["order"].astype(int).tolist()
    # The plan has a note, and the first table a note_given: no column is lost.
    assert found["note_given"].tolist() == ["'=first"] * 30
    pd.testing.assert_series_equal(
        found["note_given_given"].dropna(), given["note"].dropna(), check_names=False
    )
    assert found["note"].tolist() == given["note"].fillna("").tolist()


def test_a_gene_called_like_a_missing_number_is_not_the_wild_type(tiny_run: Path, tmp_path: Path) -> None:
    plan, output = tmp_path / "plan.csv", tmp_path / "out.csv"
    plan.write_text("genes\nNA\nnan\nnull\nG000\n")
    said = wildtype("predict", str(tiny_run), "--file", str(plan), "-o", str(output))
    assert_one_sentence(said, "row 1: ", "'NA'", "row 2: ", "'nan'", "row 3: ", "'null'")
    assert not output.exists()


def test_texts_and_numbers_of_a_plan_are_written_as_they_were(tiny_run: Path, tmp_path: Path) -> None:
    plan, output = tmp_path / "plan.csv", tmp_path / "out.csv"
    plan.write_text("genes,score,strain\nG000,-0.35,NA\nG001,NA,null\nG002,,=1\n")
    rows = predict(tiny_run, plan, output).decode().splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["G000", "-0.35", "NA"],
        ["G001", "NA", "null"],
        ["G002", "", "'=1"],
    ]


def test_a_column_of_a_plan_may_end_in_given(tiny_run: Path, tmp_path: Path) -> None:
    plan, output = tmp_path / "p.csv", tmp_path / "o.parquet"
    plan.write_text('genes,well,well_given\n"G001,G002",,x\nG003,y,\n')
    predict(tiny_run, plan, output)
    assert pd.read_parquet(output)[["well", "well_given"]].to_numpy().tolist() == [[None, "x"], ["y", None]]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_file, "BLOCK", 250)

    def peak(rows: int) -> int:
        path = tmp_path / "sets.csv"
        lines = (f'w{i},"G{i % 9:03d},G{10 + i % 7:03d}"\n' for i in range(rows))
        path.write_text("well,genes\n" + "".join(lines))
        tracemalloc.start()
        try:
            requested = prediction_file.RequestedRows(pd.DataFrame({"genes": []}, dtype=object), path)
            prediction_file.predict_file(predictor.core, requested, predictor.predict, tmp_path / "out.csv")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(250)  # what is made once
    # Far apart: what grows by steps, such as buffers, is no part of the rate.
    few, many = 1_000, 10_000
    assert peak(many) - peak(few) < 50 * (many - few)  # one table takes some 5,000 bytes a row
