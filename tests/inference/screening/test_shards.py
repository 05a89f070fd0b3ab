"""Shards of a screen: merged they are the screen of one process, and what is not one screen is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.command import CommandResult, assert_one_sentence, wildtype
from wildtype.inference.screening import screen, stream
from wildtype.inference.shards import folder_of

OPTIONS = (
    "--order", "3", "--include", "linked", "--top", "5", "--max-per-gene", "2", "--interval", "0.9",
    "--exclude", "G004", "--require", "G001,G002,G003,G006,G011",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "PIECE", 100)


def shard(run: Path, output: Path, number: int, of: int, *options: str) -> CommandResult:
    return wildtype(
        "screen", str(run), *(options or OPTIONS), "-o", str(output),
        "--shards", str(of), "--shard", str(number),
    )  # fmt: skip


@pytest.fixture(scope="module")
def shards(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of three shards of a screen of 18 pieces."""
    output = tmp_path_factory.mktemp("shards") / "all.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen, "PIECE", 100)
        for number in range(3):
            assert shard(tiny_run, output, number, 3).returncode == 0
    assert not output.exists()
    return folder_of(output)


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_merged_shards_are_the_screen_of_one_process_byte_for_byte(
    shards: Path, tiny_run: Path, tmp_path: Path, suffix: str
) -> None:
    one, merged = tmp_path / f"one.{suffix}", tmp_path / f"merged.{suffix}"
    whole = wildtype("screen", str(tiny_run), *OPTIONS, "-o", str(one))
    parts = wildtype("screen", "--merge", str(shards), "-o", str(merged))
    assert (whole.returncode, parts.returncode) == (0, 0)
    assert merged.read_bytes() == one.read_bytes()
    assert "left out: none of the required genes" in parts.stderr
    assert parts.stderr.splitlines()[-1] == whole.stderr.splitlines()[-1]  # counts, and why left out
    assert len(list(shards.iterdir())) == 3  # kept: another format may be wanted


def test_the_merged_table_is_printed_as_json(shards: Path) -> None:
    said = wildtype("screen", "--merge", str(shards), "--json")
    rows = json.loads(said.stdout)
    assert [row["rank"] for row in rows][:2] == [1, 2]
    assert {row["direction"] for row in rows} == {"low", "high"}
    assert {"epsilon_low", "single_fitness"} <= set(rows[0])


def test_a_design_may_have_fewer_pieces_than_shards(tiny_run: Path, tmp_path: Path) -> None:
    small, output = ("--among", "G001,G002,G004,G005", "--include", "linked"), tmp_path / "few.csv"
    said = [shard(tiny_run, output, number, 3, *small, "--json") for number in (2, 0, 1)]
    assert [json.loads(one.stdout)["asked"] for one in said] == [6, 0, 0]
    assert "0 mutants in shard 0 of 3" in said[1].stderr
    assert wildtype("screen", "--merge", str(folder_of(output)), "-o", str(output)).returncode == 0
    one = tmp_path / "one.csv"
    assert wildtype("screen", str(tiny_run), *small, "-o", str(one)).returncode == 0
    assert one.read_bytes() == output.read_bytes()


def test_a_killed_shard_continues(
    shards: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(shards, tmp_path / "next.csv.shards")
    (folder / "shard-1.npz").unlink()
    asked: list[int] = []
    kept = stream.ScreenWorker.__call__

    def ask(worker: stream.ScreenWorker, piece: int) -> stream.ScreenResult:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(piece)
        return kept(worker, piece)

    with monkeypatch.context() as patch:
        patch.setattr(stream.ScreenWorker, "__call__", ask)
        assert shard(tiny_run, tmp_path / "next.csv", 1, 3).returncode == 130
    said = wildtype("screen", "--merge", str(folder))
    assert_one_sentence(said, "shard 1 of 3", "did not end", "the same command again")
    monkeypatch.setattr(stream.ScreenWorker, "__call__", lambda *at: asked.append(at[1]) or kept(*at))
    assert shard(tiny_run, tmp_path / "next.csv", 1, 3).returncode == 0
    assert asked == list(range(asked[0], asked[0] + len(asked)))
    assert wildtype("screen", "--merge", str(folder), "-o", str(tmp_path / "next.csv")).returncode == 0
    assert wildtype("screen", "--merge", str(shards), "-o", str(tmp_path / "all.csv")).returncode == 0
    assert (tmp_path / "next.csv").read_bytes() == (tmp_path / "all.csv").read_bytes()


def test_a_finished_shard_is_not_predicted_again(
    shards: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "ScreenWorker", lambda *_: pytest.fail("it was predicted again"))
    assert shard(tiny_run, shards.with_suffix(""), 1, 3).returncode == 0


def test_missing_shards_are_named(shards: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shards, tmp_path / "s")
    (folder / "shard-0.npz").unlink()
    (folder / "shard-2.npz").unlink()
    assert_one_sentence(wildtype("screen", "--merge", str(folder)), "lacks shards 0,2 of 3", "--shard")
    assert_one_sentence(wildtype("screen", "--merge", str(tmp_path / "none")), "none", "holds no shards")


def test_shards_of_other_options_are_named(shards: Path, tiny_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shards, tmp_path / "s.csv.shards")
    (folder / "shard-1.npz").unlink()
    longer = (*OPTIONS[:4], "--top", "6", *OPTIONS[6:])
    assert shard(tiny_run, tmp_path / "s.csv", 1, 3, *longer).returncode == 0
    said = wildtype("screen", "--merge", str(folder))
    assert_one_sentence(said, "shard-1.npz' was screened with top=6, and shard-0.npz with top=5")
    # And where a shard of this number is there, the mistake is seen before anything is predicted.
    said = shard(tiny_run, tmp_path / "s.csv", 2, 3, *longer)
    assert_one_sentence(said, "shard-2.npz' was screened with top=5, and this command with top=6")
    said = shard(tiny_run, tmp_path / "s.csv", 2, 4)
    assert_one_sentence(said, "shard-2.npz' was screened with shards=3, and this command with shards=4")


def test_shards_of_another_model_are_named(
    shards: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(shards, tmp_path / "s.csv.shards")
    (folder / "shard-2.npz").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(stream.Screen, "fingerprint", lambda *_: "that of other weights")
        assert shard(tiny_run, tmp_path / "s.csv", 2, 3).returncode == 0
        said = wildtype("screen", "--merge", str(shards))
        assert_one_sentence(said, "of another screen or another model", "name the model and evidence")
    said = wildtype("screen", "--merge", str(folder))
    assert_one_sentence(said, "shard 2 of 3", "came from another model or other evidence than shard 0")


def test_damaged_and_foreign_files_are_named(shards: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shards, tmp_path / "s")
    content = (folder / "shard-1.npz").read_bytes()
    (folder / "shard-1.npz").write_bytes(content[: len(content) // 2])
    assert_one_sentence(
        wildtype("screen", "--merge", str(folder)), "shard-1.npz", "is damaged", "screen this"
    )
    with open(folder / "shard-1.npz", "wb") as handle:
        np.savez(handle, other=np.zeros(3))
    assert_one_sentence(wildtype("screen", "--merge", str(folder)), "shard-1.npz", "is damaged")
    (folder / "shard-1.npz").write_bytes(content)
    (folder / "shard-two.npz").write_bytes(content)
    assert_one_sentence(wildtype("screen", "--merge", str(folder)), "shard-two.npz", "is no shard")
    (folder / "shard-two.npz").rename(folder / "shard-7.npz")
    assert_one_sentence(wildtype("screen", "--merge", str(folder)), "shard 7 of a screen of 3")


def test_a_copy_of_a_shard_is_no_other_shard(shards: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shards, tmp_path / "s")
    shutil.copy(folder / "shard-0.npz", folder / "shard-1.npz")
    said = wildtype("screen", "--merge", str(folder))
    assert said.returncode == 1
    assert "shard-1.npz' holds another shard than its name states" in said.stderr
    (folder / "shard-1.npz").unlink()
    with np.load(shards / "shard-1.npz") as stored:
        record = json.loads(str(stored["record"]))
        for name in ("request", "pieces", "shards"):
            del record[name]
        np.savez(folder / "shard-1.npz", **{**stored, "record": np.array(json.dumps(record))})
    assert_one_sentence(
        wildtype("screen", "--merge", str(folder)), "shard-1.npz", "without shards: remove it"
    )


def test_evidence_is_read_again_where_it_was(tiny_run: Path, tmp_path: Path) -> None:
    table, output = tmp_path / "own.csv", tmp_path / "next.csv"
    table.write_text("genes,value\nG001;G002,0.31\n")
    options = ("--among", "G001,G003,G004,G006", "--include", "linked", "--evidence", str(table))
    assert shard(tiny_run, output, 0, 1, *options).returncode == 0
    assert wildtype("screen", "--merge", str(folder_of(output)), "-o", str(output)).returncode == 0
    one = tmp_path / "one.csv"
    assert wildtype("screen", str(tiny_run), *options, "-o", str(one)).returncode == 0
    assert output.read_bytes() == one.read_bytes()
    table.write_text("genes,value\nG001;G002,0.32\n")
    said = wildtype("screen", "--merge", str(folder_of(output)))
    assert said.returncode == 1
    assert "of another screen or another model: name the model and evidence" in said.stderr


@pytest.mark.parametrize(
    ("options", "needles"),
    [
        (["--shards", "4", "--shard", "4", "-o", "x.csv"], ["shard=4", "0 to 3"]),
        (["--shards", "0", "-o", "x.csv"], ["shards=0"]),
        (["--shards", "4", "--shard", "1"], ["-o"]),
        (["--shards", "4", "-o", "x.csv"], ["--shard, from 0 to 3", "--slurm"]),
        (["--shard", "1", "-o", "x.csv"], ["--shards"]),
        (["--shards", "4", "--shard", "1", "-o", "x.csv", "--slurm"], ["leave --shard or --slurm out"]),
        (["--shards", "4", "--slurm", "--dry-run"], ["-o"]),
        (["--merge", "x.csv.shards", "--top", "5"], ["--top is stored with the shards"]),
        (["--merge", "x.csv.shards", "--slurm"], ["--slurm is stored"]),
    ],
)
def test_options_that_do_not_go_together(tiny_run: Path, options: list[str], needles: list[str]) -> None:
    assert_one_sentence(wildtype("screen", str(tiny_run), *options), *needles)


def test_a_screen_without_a_run() -> None:
    assert_one_sentence(wildtype("screen", "--top", "3"), "name the run", "--merge")


def test_a_job_array_screens_one_shard_per_task(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script's tasks, run by a shell, give the shards that merge."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "preset.yaml").write_text("program: called\ngpus: 0\nat_once: 8\n")
    said = wildtype(
        "screen", str(tiny_run), *OPTIONS, "-o", "next.csv", "--slurm", "--shards", "64",
        "--preset", "preset.yaml", "--dry-run",
    )  # fmt: skip
    assert said.returncode == 0
    assert "#SBATCH --array=0-63%8" in said.stdout.splitlines()
    assert "#SBATCH --job-name=wildtype-screen" in said.stdout
    assert "the design has 18 pieces: 46 shards are empty" in said.stderr
    assert "wildtype screen --merge next.csv.shards -o next.csv" in said.stderr
    (tmp_path / "srun").write_text(
        '#!/bin/sh\nwhile [ "$1" != called ]; do shift; done; shift; printf "%s\\n" "$@"'
    )
    (tmp_path / "srun").chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "17"}
    script = subprocess.run(
        ["bash"], input=said.stdout, text=True, check=True, capture_output=True, env=environment
    )
    words = script.stdout.splitlines()
    assert words[:3] == ["screen", "--shard", "17"]
    assert words[-2:] == ["--shards", "64"]
    assert wildtype(*words, "--json").returncode == 0
    assert [path.name for path in (tmp_path / "next.csv.shards").iterdir()] == ["shard-17.npz"]


def test_a_wrong_request_is_not_submitted(tiny_run: Path) -> None:
    said = wildtype("screen", str(tiny_run), "--order", "30", "--slurm", "--dry-run")
    assert_one_sentence(said, "there are 24 genes to choose from")
    assert said.stdout == ""
