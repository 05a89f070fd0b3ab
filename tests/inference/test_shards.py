"""Shards of any command: every piece is in one, and which sets of files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.inference.shards import Shard, ShardKind, folder_of, named

KIND = ShardKind("predict", "a prediction", "predicted", ".parquet")


@settings(max_examples=25)
@given(pieces=st.integers(0, 400), of=st.integers(1, 70))
def test_shards_hold_every_piece_once_and_in_order(pieces: int, of: int) -> None:
    found = [Shard(number, of).range_of(pieces) for number in range(of)]
    assert [piece for one in found for piece in one] == list(range(pieces))
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize(("number", "of"), [(0, -1), (0, 0), (4, 4), (-1, 4)])
def test_a_shard_that_is_not_there(number: int, of: int) -> None:
    with pytest.raises(ConfigError, match="shards=" if of < 1 else f"shard={number}.*0 to 3"):
        Shard(number, of)


def test_names_of_shards() -> None:
    assert named([1]) == "shard 1"
    assert named([1, 2, 3, 7, 9, 10]) == "shards 1-3,7,9-10"
    assert folder_of(Path("a/out.csv")) == Path("a/out.csv.shards")


def test_files_are_found_in_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no shards of a prediction.*`predict --shard` wrote"):
        KIND.found(tmp_path)
    for number in (10, 9, 0):
        (tmp_path / KIND.name(number)).touch()
    (tmp_path / ".shard-3.parquet.12345678-1-12345678.part").touch()  # it is being written
    assert list(KIND.found(tmp_path)) == [0, 9, 10]
    (tmp_path / "shard-01.parquet").touch()
    with pytest.raises(ConfigError, match=r"shard-01\.parquet' is no shard of a prediction: remove it"):
        KIND.found(tmp_path)


def test_all_shards_are_there_and_no_others(tmp_path: Path) -> None:
    KIND.check_complete(tmp_path, [0, 1, 2], 3)
    with pytest.raises(ConfigError, match="lacks shards 0,2 of 3: predict them with --shard"):
        KIND.check_complete(tmp_path, [1], 3)
    with pytest.raises(ConfigError, match="has shards 3-4 of a prediction of 3: remove what is foreign"):
        KIND.check_complete(tmp_path, [0, 1, 2, 3, 4], 3)


def test_shards_that_differ(tmp_path: Path) -> None:
    KIND.check_same(tmp_path, {}, 3, "differ")
    with pytest.raises(ConfigError, match="shard 2 of 3 in .* differ than shard 1: merge shards of one pred"):
        KIND.check_same(tmp_path, {1: "a", 2: "b"}, 3, "differ")
    with pytest.raises(ConfigError, match="was predicted with top=5, and this command with top=6: wait"):
        KIND.check_alike(tmp_path, {"top": 5}, "this command", {"top": 6}, "wait")
