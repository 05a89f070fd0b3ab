"""Shards of a prediction: merged they are the table of one process, and what is not one table is refused."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import CommandResult, assert_one_sentence, wildtype
from tests.tiny import mixed_dataset, tiny_organism
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference import prediction_file, prediction_shards
from wildtype.inference.prediction_shards import merge_predictions, model_hash, stored_predictions
from wildtype.inference.predictor import Predictor, load
from wildtype.inference.shards import folder_of
from wildtype.models import trained
from wildtype.unpacking import UnpackingLimits, parquet_groups

ROWS = 40
ENDS = (".csv", ".json", ".parquet")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_file, "BLOCK", 7)
    monkeypatch.setattr(prediction_file, "PROFILE_NUMBERS", 5 * 24)


@pytest.fixture(scope="module")
def mixed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ensemble of two that predicts numbers, a class, and a number per gene."""
    folder = tmp_path_factory.mktemp("runs") / "mixed"
    words = [
        "model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=1",
        "training.members=2", "training.batch_size=64", "model.trees.bags=0", "model.table=false",
        "baselines=[mean]", f"run.folder={folder}", "run.progress=false", "run.replicates=10",
        "data.name=tiny-mixed",
    ]  # fmt: skip
    train(compose(words), dataset=mixed_dataset())
    return folder


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty rows as CSV, and as Parquet with further columns of many types, most of which have gaps."""
    path = tmp_path_factory.mktemp("plan") / "plan.csv"
    frame = pd.DataFrame(
        {
            "well": [f"{i:03d}" for i in range(ROWS)],
            "genes": [
                f"G{i % 9:03d},G{10 + i % 7:03d}" if i % 5 else f"G{i % 8:03d}:reduced" for i in range(ROWS)
            ],
            "note": ["=first"] * ROWS,
            "late": [None] * 29 + ["x"] * 11,
            "never": [None] * ROWS,
        }
    )
    frame.to_csv(path, index=False)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if i == 30 else values[i % len(values)] for i in range(ROWS)], kind)

    noon = datetime.datetime(2026, 11, 26, 12)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for name, values, kind in (
        ("count", [1, 2**53], pa.int64()),
        ("order", [True, False], pa.bool_()),
        ("amount", [Decimal("1.50"), Decimal("-0.25")], pa.decimal128(12, 2)),
        ("day", [noon.date()], pa.date32()),
        ("time", [noon], pa.timestamp("us")),
        ("zoned", [noon], pa.timestamp("ms", "Europe/Vienna")),
        ("share", [0.1, float("inf"), -0.0], pa.float32()),
        ("tags", [["a"], [], ["b", "c"]], pa.list_(pa.string())),
    ):
        table = table.append_column(name, column(values, kind))
    table = table.append_column("small", pa.array(range(ROWS), pa.uint8()))
    table = table.append_column("batch", pa.array(["u", "v"] * (ROWS // 2)).dictionary_encode())
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=11)
    return path


def shard(run: Path, plan: Path, output: Path, number: int, of: int, *options: str) -> CommandResult:
    return wildtype(
        "predict", str(run), "--file", str(plan), *options, "-o", str(output),
        "--shards", str(of), "--shard", str(number),
    )  # fmt: skip


def all_shards(run: Path, plan: Path, output: Path, of: int, *options: str) -> Path:
    for number in reversed(range(of)):
        done = shard(run, plan, output, number, of, *options)
        assert done.returncode == 0, done.stderr
    assert not output.exists()
    return folder_of(output)


@pytest.fixture(scope="module")
def shards(tiny_run: Path, plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of three shards of six blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction_file, "BLOCK", 7)
        return all_shards(tiny_run, plan, tmp_path_factory.mktemp("shards") / "all.csv", 3)


def check_merged(folder: Path, run: Path, plan: Path, tmp_path: Path, *options: str) -> pd.DataFrame:
    """Check that shards merge to the tables of one process; return that table."""
    for end in ENDS:
        one, merged = tmp_path / f"one{end}", tmp_path / f"merged{end}"
        said = wildtype("predict", str(run), "--file", str(plan), *options, "-o", str(one))
        assert said.returncode == 0, said.stderr
        said = wildtype("predict", "--merge", str(folder), "-o", str(merged))
        assert said.returncode == 0, said.stderr
        if end != ".parquet":
            assert merged.read_bytes() == one.read_bytes()
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("one", "merged")]
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
    pd.testing.assert_frame_equal(*(table.to_pandas() for table in tables))
    return tables[0].to_pandas()


@pytest.mark.parametrize("source", [".csv", ".parquet"])
def test_merged_shards_are_the_table_of_one_process(
    source: str, tiny_run: Path, plan: Path, tmp_path: Path
) -> None:
    plan, options = plan.with_suffix(source), ("--as", "fitness", "--interval", "0.9", "--set", "G001,G002")
    folder = all_shards(tiny_run, plan, tmp_path / "all.csv", 3, *options)
    frame = check_merged(folder, tiny_run, plan, tmp_path, *options)
    assert len(frame) == ROWS + 1  # the set comes first
    assert {"epsilon_low", "fitness_expected", "late", "note_given"} <= set(frame.columns)
    assert sorted(path.name for path in folder.iterdir()) == [f"shard-{n}.parquet" for n in range(3)]


def test_shards_of_an_ensemble_with_intervals(mixed_run: Path, plan: Path, tmp_path: Path) -> None:
    folder = all_shards(mixed_run, plan, tmp_path / "all.json", 2, "--interval", "0.8")
    frame = check_merged(folder, mixed_run, plan, tmp_path, "--interval", "0.8")
    assert frame["fitness_sd"].notna().all()


def test_shards_of_profiles_have_their_own_blocks(mixed_run: Path, plan: Path, tmp_path: Path) -> None:
    folder = all_shards(mixed_run, plan, tmp_path / "all.parquet", 3, "--genes", "mRNA")
    groups = [pq.read_metadata(folder / f"shard-{n}.parquet").num_row_groups for n in range(3)]
    assert groups == [2, 3, 3]  # of 5 rows
    frame = check_merged(folder, mixed_run, plan, tmp_path, "--genes", "mRNA")
    assert frame.shape == (ROWS, 25)
    assert set(frame.dtypes[1:].astype(str)) == {"float32"}


def test_there_may_be_more_shards_than_blocks(tiny_run: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text('genes,well\n"G001,G002",1\nG003,2\n')
    output = tmp_path / "all.csv"
    said = [shard(tiny_run, plan, output, number, 3, "--json") for number in range(3)]
    assert [json.loads(one.stdout)["rows"] for one in said] == [0, 0, 2]
    assert said[0].stderr == "shard 0 of 3: 0 mutants predicted\n"
    check_merged(folder_of(output), tiny_run, plan, tmp_path)


def test_sets_alone_have_shards(tiny_run: Path, tmp_path: Path) -> None:
    sets = [word for i in range(9) for word in ("--set", f"G{i:03d},G{i + 1:03d}")]
    for number in range(2):
        words = ("-o", str(tmp_path / "all.csv"), "--shards", "2", "--shard", str(number))
        assert wildtype("predict", str(tiny_run), *sets, *words).returncode == 0
    one = tmp_path / "one.csv"
    assert wildtype("predict", str(tiny_run), *sets, "-o", str(one)).returncode == 0
    said = wildtype("predict", "--merge", str(tmp_path / "all.csv.shards"))
    assert said.stdout == one.read_text()


def test_the_merged_table_is_printed(
    shards: Path, tiny_run: Path, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many mutants pass the model together as a block has: what is printed is predicted as one block.
    for name in ("BATCH", "WITH_EVIDENCE"):
        monkeypatch.setattr(trained, name, 7)
    for options in ((), ("--json",)):
        merged = wildtype("predict", "--merge", str(shards), *options)
        assert merged.stdout == wildtype("predict", str(tiny_run), "--file", str(plan), *options).stdout


def test_remarks_are_those_of_one_process(tiny_run: Path, plan: Path, tmp_path: Path) -> None:
    kept = Predictor.remarks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictor, "remarks", property(lambda self: ("an input is missing",)))
        folder = all_shards(tiny_run, plan, tmp_path / "all.csv", 2)
    assert Predictor.remarks is kept
    assert wildtype("predict", "--merge", str(folder)).stderr == "an input is missing\n"


def test_a_finished_shard_is_not_predicted_again(
    shards: Path, tiny_run: Path, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (shards / "shard-1.parquet").read_bytes()
    for name in ("checked", "writing"):
        monkeypatch.setattr(prediction_shards, name, lambda *_: pytest.fail("it was predicted again"))
    said = shard(tiny_run, plan, shards.with_suffix(""), 1, 3)
    assert (said.returncode, said.stderr) == (0, "shard 1 of 3: 14 mutants predicted\n")
    assert (shards / "shard-1.parquet").read_bytes() == before


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_killed_shard_leaves_nothing(
    blocks: int, shards: Path, tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted: list[int] = []
    kept, output = Predictor.predict, tmp_path / "all.csv"

    def predict(predictor: Predictor, block: pd.DataFrame, **options: Any) -> pd.DataFrame:
        if len(predicted) == blocks:
            raise KeyboardInterrupt
        predicted.append(len(block))
        return kept(predictor, block, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predict", predict)
        assert shard(tiny_run, plan, output, 1, 3).returncode == 130
    folder = folder_of(output)
    assert list(folder.iterdir()) == [] if blocks else not folder.exists()
    assert shard(tiny_run, plan, output, 1, 3).returncode == 0
    assert (folder / "shard-1.parquet").read_bytes() == (shards / "shard-1.parquet").read_bytes()


@pytest.mark.parametrize("number", [0, 2])
def test_every_shard_refuses_a_wrong_row_of_any(
    number: int, tiny_run: Path, plan: Path, tmp_path: Path
) -> None:
    wrong, output = tmp_path / "wrong.csv", tmp_path / "all.csv"
    frame = pd.read_csv(plan, dtype=str)
    frame.loc[[3, 38], "genes"] = "NOPE"
    frame.to_csv(wrong, index=False)
    said = shard(tiny_run, wrong, output, number, 3)
    assert_one_sentence(said, "2 rows do not fit", "row 4: 'NOPE'", "row 39: 'NOPE'")
    assert said.stderr == wildtype("predict", str(tiny_run), "--file", str(wrong)).stderr
    assert_one_sentence(shard(tiny_run, plan, output, number, 3, "--interval", "7"), "7")
    assert not folder_of(output).exists()


def test_a_table_that_changes_meanwhile(
    tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing, kept = tmp_path / "changing.csv", Predictor.predict
    shutil.copy(plan, changing)

    def predict(predictor: Predictor, block: pd.DataFrame, **options: Any) -> pd.DataFrame:
        changing.write_text(plan.read_text() + "999,G001,,,\n")
        return kept(predictor, block, **options)

    monkeypatch.setattr(Predictor, "predict", predict)
    said = shard(tiny_run, changing, tmp_path / "all.csv", 0, 3)
    assert_one_sentence(said, "changing.csv' changed while it was read")
    assert not list((tmp_path / "all.csv.shards").iterdir())


def test_missing_and_surplus_shards_are_named(shards: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shards, tmp_path / "s")
    (folder / "shard-1.parquet").rename(folder / "shard-7.parquet")
    said = wildtype("predict", "--merge", str(folder))
    assert_one_sentence(said, "has shard 7 of a prediction of 3: remove what is foreign")
    (folder / "shard-7.parquet").unlink()
    (folder / "shard-0.parquet").unlink()
    said = wildtype("predict", "--merge", str(folder), "-o", str(tmp_path / "x.csv"))
    assert_one_sentence(said, "lacks shards 0-1 of 3: predict them with --shard")
    shutil.copy(shards / "shard-2.parquet", folder / "shard-0.parquet")
    shutil.copy(shards / "shard-2.parquet", folder / "shard-1.parquet")
    said = wildtype("predict", "--merge", str(folder))
    assert_one_sentence(said, "shard-0.parquet' holds another shard than its name states", "remove it")
    (folder / "shard-two.parquet").touch()
    assert_one_sentence(wildtype("predict", "--merge", str(folder)), "shard-two.parquet", "is no shard")
    said = wildtype("predict", "--merge", str(tmp_path / "none"))
    assert_one_sentence(said, "none", "holds no shards of a prediction")
    assert not (tmp_path / "x.csv").exists()


def test_damaged_shards_are_named(shards: Path, tmp_path: Path) -> None:
    folder, merged = shutil.copytree(shards, tmp_path / "s"), tmp_path / "x.csv"
    path = folder / "shard-1.parquet"
    content = path.read_bytes()
    damages = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "a bit of a number": content[:400] + bytes([content[400] ^ 1]) + content[401:],
        "its record": content.replace(b"rows", b"sowr"),
    }
    for damage in damages.values():
        path.write_bytes(damage)
        said = wildtype("predict", "--merge", str(folder), "-o", str(merged))
        assert_one_sentence(said, "shard-1.parquet' is damaged", "remove it, and predict this shard again")
        assert not merged.exists()
    pq.write_table(pq.read_table(shards / "shard-1.parquet").replace_schema_metadata(None), path)
    assert_one_sentence(wildtype("predict", "--merge", str(folder)), "shard-1.parquet' is damaged")
    stored = pq.read_schema(shards / "shard-1.parquet").metadata
    table = pq.read_table(shards / "shard-1.parquet")
    for wrong in (table[:13], table.rename_columns([f"{name}x" for name in table.column_names])):
        pq.write_table(wrong.replace_schema_metadata(stored), path, row_group_size=7)
        said = wildtype("predict", "--merge", str(folder))
        assert_one_sentence(said, "shard-1.parquet' is damaged", "than its record states")


def test_shards_of_other_options_are_named(shards: Path, tiny_run: Path, plan: Path, tmp_path: Path) -> None:
    output = tmp_path / "s.csv"
    folder = shutil.copytree(shards, folder_of(output))
    (folder / "shard-1.parquet").unlink()
    assert shard(tiny_run, plan, output, 1, 3, "--interval", "0.9").returncode == 0
    said = wildtype("predict", "--merge", str(folder))
    assert_one_sentence(said, "shard-1.parquet' was predicted with interval=0.9, and shard-0.parquet with")
    # And where a shard of this number is there, the mistake is seen before anything is predicted.
    said = shard(tiny_run, plan, output, 2, 3, "--as", "fitness")
    assert_one_sentence(said, "shard-2.parquet' was predicted with as='phenotype', and this command with")
    said = shard(tiny_run, plan, output, 2, 4)
    assert_one_sentence(said, "predicted with shards=3, and this command with shards=4", "another file")


def test_shards_of_another_table_are_named(shards: Path, tiny_run: Path, plan: Path, tmp_path: Path) -> None:
    other, output = tmp_path / "other.csv", tmp_path / "s.csv"
    other.write_text(plan.read_text().replace("001,", "001x,", 1))
    folder = shutil.copytree(shards, folder_of(output))
    said = shard(tiny_run, other, output, 1, 3)
    assert_one_sentence(said, "shard-1.parquet' was predicted from a file of another content", "another file")
    (folder / "shard-1.parquet").unlink()
    assert shard(tiny_run, other, output, 1, 3).returncode == 0
    said = wildtype("predict", "--merge", str(folder))
    assert_one_sentence(said, "shard 1 of 3", "read a file of another content than shard 0")
    # A file of another name with the same content is the same table.
    (folder / "shard-1.parquet").unlink()
    shutil.copy(plan, other)
    assert shard(tiny_run, other, output, 1, 3).returncode == 0
    assert wildtype("predict", "--merge", str(folder)).returncode == 0


def test_shards_of_another_model_are_named(
    shards: Path, tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, evidence = tmp_path / "s.csv", tmp_path / "own.csv"
    folder = shutil.copytree(shards, folder_of(output))
    evidence.write_text("genes,value\nG001;G002,0.31\n")
    options = ("--evidence", str(evidence))
    said = shard(tiny_run, plan, output, 1, 3, *options)
    assert said.returncode == 1
    assert "shard-1.parquet' came from another model or other evidence" in said.stderr
    (folder / "shard-1.parquet").unlink()
    assert shard(tiny_run, plan, output, 1, 3, *options).returncode == 0
    said = wildtype("predict", "--merge", str(folder))
    assert_one_sentence(said, "shard 1 of 3", "came from another model or other evidence than shard 0")
    # A copy of a run is the same model.
    (folder / "shard-1.parquet").unlink()
    copy = shutil.copytree(tiny_run, tmp_path / "copy")
    assert shard(copy, plan, output, 1, 3).returncode == 0
    assert wildtype("predict", "--merge", str(folder)).returncode == 0
    monkeypatch.setattr(prediction_file, "BLOCK", 8)
    said = shard(copy, plan, output, 1, 3)
    assert_one_sentence(said, "shard-1.parquet' came from another version of wildtype")


def test_a_hash_tells_models_and_what_was_added_to_them(tiny_run: Path, mixed_run: Path) -> None:
    model, value = load(mixed_run), pd.DataFrame({"genes": ["G001,G002"], "fitness": [0.5]})
    found = [
        model_hash(tiny_run, load(tiny_run).core),
        model_hash(mixed_run, model.core),
        model_hash(mixed_run, model.on(tiny_organism()).core),
        model_hash(mixed_run, model.on(tiny_organism(seed=1)).core),
        model_hash(mixed_run, model.with_evidence(value).core),
        model_hash(mixed_run, model.with_evidence(value.assign(fitness=0.6)).core),
    ]
    assert len(set(found[:2] + found[3:])) == 5
    assert model_hash(mixed_run / "checkpoint", load(mixed_run).core) == found[1]
    assert model_hash(mixed_run, model.on(tiny_organism()).core) == found[2]


def test_evidence_is_in_all_shards(tiny_run: Path, plan: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "own.csv"
    evidence.write_text("genes,value\nG001;G002,0.31\nG001;G011,-0.2\n")
    folder = all_shards(tiny_run, plan, tmp_path / "all.csv", 2, "--evidence", str(evidence))
    check_merged(folder, tiny_run, plan, tmp_path, "--evidence", str(evidence))


def test_a_row_group_is_held_to_the_limits(shards: Path) -> None:
    path = shards / "shard-0.parquet"
    assert [group.num_rows for group in parquet_groups(path)] == [7, 7]
    with pytest.raises(ValueError, match="unpacks to more than"):
        list(parquet_groups(path, UnpackingLimits(total=1, ratio=0, small=1)))


@pytest.mark.slow
def test_memory_of_a_merge_does_not_grow_with_the_rows(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_file, "BLOCK", 250)

    def peak(rows: int) -> int:
        plan, output = tmp_path / f"{rows}.csv", tmp_path / f"{rows}.out.csv"
        lines = (f'w{i},"G{i % 9:03d},G{10 + i % 7:03d}"\n' for i in range(rows))
        plan.write_text("well,genes\n" + "".join(lines))
        stored = stored_predictions(all_shards(tiny_run, plan, output, 2))
        tracemalloc.start()
        try:
            merge_predictions(stored, output)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(500)  # what is made once
    few, many = 1_000, 10_000
    assert peak(many) - peak(few) < 50 * (many - few)  # one table takes some 5,000 bytes a row


@pytest.mark.parametrize(
    ("options", "needles"),
    [
        (["--shards", "4", "--shard", "4", "-o", "x.csv"], ["shard=4", "0 to 3"]),
        (["--shards", "0", "-o", "x.csv"], ["shards=0"]),
        (["--shards", "4", "--shard", "1"], ["-o"]),
        (["--shards", "4", "-o", "x.csv"], ["--shard, from 0 to 3", "--slurm"]),
        (["--shard", "1", "-o", "x.csv"], ["--shards"]),
        (["--shards", "4", "--shard", "1", "-o", "x.csv", "--slurm"], ["leave --shard or --slurm out"]),
        (["--shards", "4", "--shard", "1", "-o", "x.csv", "--file", "-"], ["--shards 4", "standard input"]),
        (["--slurm", "--file", "-"], ["--slurm", "standard input", "--file"]),
        (["--shards", "4", "--slurm", "--dry-run"], ["-o"]),
        (["--shards", "4", "--shard", "1", "-o", "x.xlsx"], ["x.xlsx", ".parquet"]),
        (["--merge", "x.csv.shards"], ["RUN is stored with the shards"]),
    ],
)
def test_options_that_do_not_go_together(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], needles: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(wildtype("predict", str(tiny_run), *options), *needles)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "option", ["--interval 0.9", "--file x.csv", "--as fitness", "--slurm", "--shards 3"]
)
def test_options_beside_merge(option: str) -> None:
    said = wildtype("predict", "--merge", "x.csv.shards", *option.split())
    assert_one_sentence(said, f"{option.split()[0]} is stored with the shards: leave it out beside --merge")


def test_a_prediction_without_a_run() -> None:
    assert_one_sentence(wildtype("predict", "--set", "G001"), "name the run", "--merge")


def test_a_job_array_predicts_one_shard_per_task(
    tiny_run: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script's tasks, run by a shell, give the shards that merge."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "preset.yaml").write_text("program: called\ngpus: 0\nat_once: 8\n")
    slurm = ("--slurm", "--preset", "preset.yaml", "--dry-run")
    said = wildtype("predict", str(tiny_run), "--file", str(plan), "-o", "next.csv", "--shards", "64", *slurm)
    assert said.returncode == 0
    assert "#SBATCH --array=0-63%8" in said.stdout.splitlines()
    assert "#SBATCH --job-name=wildtype-predict" in said.stdout
    assert "40 rows are 6 blocks: 58 shards are empty" in said.stderr
    assert "wildtype predict --merge next.csv.shards -o next.csv" in said.stderr
    (tmp_path / "srun").write_text(
        '#!/bin/sh\nwhile [ "$1" != called ]; do shift; done; shift; printf "%s\\n" "$@"'
    )
    (tmp_path / "srun").chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "63"}
    script = subprocess.run(
        ["bash"], input=said.stdout, text=True, check=True, capture_output=True, env=environment
    )
    words = script.stdout.splitlines()
    assert words[:3] == ["predict", "--shard", "63"]
    assert words[-2:] == ["--shards", "64"]
    assert json.loads(wildtype(*words, "--json").stdout)["rows"] == 5
    assert [path.name for path in (tmp_path / "next.csv.shards").iterdir()] == ["shard-63.parquet"]
    # Without shards it is one job, which writes the table itself.
    said = wildtype("predict", str(tiny_run), "--file", str(plan), "-o", "next.csv", *slurm)
    assert said.returncode == 0
    assert "--array" not in said.stdout
    assert f"called predict {tiny_run} --file {plan} -o next.csv\n" in said.stdout


@pytest.mark.parametrize(
    ("options", "needle"),
    [(["--set", "NOPE"], "NOPE"), (["--genes", "x"], "genes='x'"), (["--interval", "2"], "2")],
)
def test_a_wrong_request_is_not_submitted(
    tiny_run: Path, plan: Path, options: list[str], needle: str
) -> None:
    words = ("--file", str(plan), "-o", "x.csv", "--shards", "4", "--slurm", "--dry-run")
    said = wildtype("predict", str(tiny_run), *options, *words)
    assert_one_sentence(said, needle)
    assert said.stdout == ""
