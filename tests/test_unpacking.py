"""Files that unpack to far more than their size are refused in one sentence, whatever reads them."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wildtype.errors import SourceError, WildtypeError
from wildtype.organism.embeddings import read_names
from wildtype.organism.metabolism import read_metabolism
from wildtype.profiling.trace_files import read_events
from wildtype.sources.columns import read_columns
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import read_bytes
from wildtype.sources.user_tables.annotated import read_annotated
from wildtype.sources.user_tables.grid import read_grid
from wildtype.sources.user_tables.vocabulary import Columns
from wildtype.tables import read_frame
from wildtype.unpacking import MIB, UnpackingLimits, opened, read_arrays, read_parquet

MANY = 80 * MIB
"""Bytes that a bomb unpacks to: more than is harmless, and 1,000 times its size."""


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    text = b"genes,value\n" + b"YAL001C,1.000\n" * (MANY // 14)
    packed = gzip.compress(text, compresslevel=9)
    assert len(text) > 250 * len(packed)
    made = {}
    for name in ("table.csv.gz", "model.json.gz", "trace.json.gz"):
        made[name] = folder / name
        made[name].write_bytes(packed)
    made["book.xlsx"] = folder / "book.xlsx"
    with zipfile.ZipFile(made["book.xlsx"], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(MANY))
    made["rows.parquet"] = folder / "rows.parquet"
    same = pa.array(np.zeros(MANY // 8 + 1))
    pq.write_table(pa.table({"genes": same}), made["rows.parquet"], compression="zstd")
    made["texts.parquet"] = folder / "texts.parquet"
    long = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), pa.array(["Y" * 1000]))
    pq.write_table(pa.table({"genes": long.cast(pa.string())}), made["texts.parquet"], compression="zstd")
    made["cells.h5ad"] = folder / "cells.h5ad"
    with h5py.File(made["cells.h5ad"], "w") as file:  # chunks that are never written
        for name in ("X", "var/gene"):
            file.create_dataset(
                name, shape=(1 << 20, 1 << 20), dtype="f4", chunks=(1024, 1024), compression="gzip"
            )
    return made


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("table.csv.gz", read_bytes),
        ("table.csv.gz", read_grid),
        ("table.csv.gz", lambda path: read_frame(path, "gene sets")),
        ("table.csv.gz", read_names),
        ("table.csv.gz", lambda path: read_columns(path, types=("text", "number"), separator=",")),
        ("model.json.gz", lambda path: read_metabolism(path, cache=False)),
        ("trace.json.gz", read_events),
        ("book.xlsx", lambda path: read_sheet(path, fields=2)),
        ("book.xlsx", read_grid),
        ("cells.h5ad", lambda path: read_annotated(path, Columns())),
        ("cells.h5ad", read_names),
        *[
            (name, read)
            for name in ("rows.parquet", "texts.parquet")
            for read in (read_grid, read_names, lambda path: read_frame(path, "gene sets"))
        ],
    ],
)
def test_bombs_are_refused(bombs: dict[str, Path], name: str, read: Callable[[Path], object]) -> None:
    with pytest.raises(WildtypeError, match=r"unpacks to more than [\d,]+ MiB, as a decompression bomb"):
        read(bombs[name])


def test_parquet_and_text_that_is_no_bomb_are_read_whole(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    table = pa.table({"a": draw.random(20_000), "b": pa.array([f"g{i}" for i in range(20_000)])})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_parquet(tmp_path / "t.parquet").equals(table)
    assert read_parquet(tmp_path / "t.parquet").schema.equals(table.schema)
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    assert read_parquet(tmp_path / "empty.parquet").num_rows == 0
    text = draw.bytes(3 * MIB)
    (tmp_path / "a").write_bytes(text)
    (tmp_path / "b").write_bytes(gzip.compress(text))
    for name in "ab":
        with opened(tmp_path / name) as stream:
            assert stream.read() == text


def test_limits_are_a_ratio_within_absolute_bounds(tmp_path: Path) -> None:
    limits = UnpackingLimits(total=1000, ratio=10, small=50)
    assert [limits.allowed(packed) for packed in (1, 5, 20, 100, 5000)] == [50, 50, 200, 1000, 5000]
    np.savez_compressed(tmp_path / "zeros.npz", a=np.zeros(100_000))
    with pytest.raises(SourceError, match="unpacks to more than 1,000 bytes|unpacks to more than"):
        read_arrays(tmp_path / "zeros.npz", limits)
