"""What compressed files may unpack to: absolute limits and a ratio, one for every reader.

A file of kilobytes can unpack to gigabytes. A reader knows what it has unpacked so far and how large the file
is, and stops where the one is out of proportion to the other. Archives, workbooks, compressed text, arrays
and Parquet are all held to `LIMITS`.
"""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any, cast

from wildtype.errors import SourceError
from wildtype.files import require_regular

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MIB = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
CELL = 8
"""Bytes that a cell of a table takes at least, whatever its file says."""
BATCH = 4096
"""Rows of a Parquet file that are unpacked at a time."""


@dataclass(frozen=True)
class UnpackingLimits:
    """Bounds of what one file may unpack to.

    Attributes
    ----------
    total : int
        Bytes in all.
    ratio : int
        Unpacked bytes per byte of the file, where more than `small` bytes are unpacked. Tables of zeros and
        ones reach 100; a decompression bomb has 1,000 and more.
    small : int
        Bytes below which no ratio is harmful: a small file of one repeated line is no attack.
    members : int
        Files in an archive.
    """

    total: int = 2 << 30
    ratio: int = 250
    small: int = 64 * MIB
    members: int = 100_000

    def allowed(self, packed: int) -> int:
        """Return how many bytes a file of so many bytes may unpack to, never less than its size."""
        return max(packed, min(self.total, max(self.small, self.ratio * packed)))

    def check(self, path: str | Path, packed: int, unpacked: int) -> None:
        """Refuse what is more than allowed; raises ``SourceError``."""
        if unpacked > self.allowed(packed):
            raise self.refusal(path, packed)

    def refusal(self, path: str | Path, packed: int) -> SourceError:
        """Return the error for a file of so many bytes that unpacks to too much."""
        return SourceError(
            f"{str(path)!r} ({size_text(packed)}) unpacks to more than {size_text(self.allowed(packed))}, as "
            "a decompression bomb does: if you trust it, unpack it yourself and give what is in it"
        )


def size_text(count: int) -> str:
    """Return a number of bytes for a message."""
    return f"{count / MIB:,.0f} MiB" if count >= MIB else f"{count:,} bytes"


LIMITS = UnpackingLimits()


@contextmanager
def opened(path: Path, limits: UnpackingLimits = LIMITS) -> Iterator[IO[bytes]]:
    """Open a plain or gzip-compressed file for reading, with the bytes that come out counted.

    Raises
    ------
    OSError
        If it cannot be opened.
    SourceError
        While it is read, if it unpacks to too much.
    """
    with open(path, "rb") as handle:
        if handle.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
            handle.seek(0)
            yield handle
            return
    with gzip.open(path) as stream:
        yield io.BufferedReader(_Counted(stream, path, limits))


class _Counted(io.RawIOBase):
    """A decompressed stream that stops where a file unpacks to too much."""

    def __init__(self, inner: Any, path: Path, limits: UnpackingLimits) -> None:
        super().__init__()
        self._inner, self._path, self._limits = inner, path, limits
        self._packed, self._unpacked = path.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = cast(int, self._inner.readinto(buffer))
        self._unpacked += count
        self._limits.check(self._path, self._packed, self._unpacked)
        return count


def read_parquet(path: Path, limits: UnpackingLimits = LIMITS) -> pa.Table:
    """Return a Parquet file as a table; errors as `parquet_batches`."""
    import pyarrow as pa

    with parquet_batches(path, limits) as (schema, batches):
        return pa.Table.from_batches(batches, schema)


@contextmanager
def parquet_batches(
    path: Path, limits: UnpackingLimits = LIMITS
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a Parquet file: its schema, and its rows, a few thousand unpacked at a time.

    Raises
    ------
    OSError, ValueError, pyarrow.ArrowException
        If it is missing or no Parquet file.
    SourceError
        If it unpacks to too much: repeated values take no room in the file.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(require_regular(path)) as file:
        facts, packed = file.metadata, path.stat().st_size
        stated = sum(facts.row_group(at).total_byte_size for at in range(facts.num_row_groups))
        limits.check(path, packed, max(stated, CELL * facts.num_rows * facts.num_columns))

        def batches() -> Iterator[pa.RecordBatch]:
            unpacked = 0
            for batch in file.iter_batches(batch_size=BATCH):
                unpacked += batch.nbytes
                limits.check(path, packed, unpacked)
                yield batch

        yield file.schema_arrow, batches()


def parquet_groups(path: Path, limits: UnpackingLimits = LIMITS) -> Iterator[pa.Table]:
    """Read the row groups of a Parquet file one by one; a flipped bit is an error where pages have checksums.

    A file of any length is read: each row group is held to the limits by itself.

    Raises
    ------
    OSError, ValueError, pyarrow.ArrowException
        If it is missing, damaged or no Parquet file.
    SourceError
        If a row group unpacks to too much.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(require_regular(path), page_checksum_verification=True) as file:
        for at in range(file.num_row_groups):
            group = file.metadata.row_group(at)
            packed = sum(group.column(c).total_compressed_size for c in range(group.num_columns))
            limits.check(path, packed, max(group.total_byte_size, CELL * group.num_rows * group.num_columns))
            batches, unpacked = list[pa.RecordBatch](), 0
            for batch in file.iter_batches(batch_size=BATCH, row_groups=[at]):
                unpacked += batch.nbytes
                limits.check(path, packed, unpacked)
                batches.append(batch)
            yield pa.Table.from_batches(batches, file.schema_arrow)


def check_hdf5(path: Path, limits: UnpackingLimits = LIMITS, within: str = "/") -> None:
    """Refuse an HDF5 file whose arrays in the group ``within`` are far larger than the file.

    Raises
    ------
    OSError, ValueError, KeyError
        If it is missing or no HDF5 file.
    SourceError
        If it unpacks to too much: chunks that were never written take no room in the file.
    """
    import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

    unpacked = 0

    def add(name: str, item: Any) -> None:
        nonlocal unpacked
        if isinstance(item, h5py.Dataset):
            unpacked += item.size * max(item.dtype.itemsize, 1)

    with h5py.File(path) as file:
        file[within].visititems(add)
    limits.check(path, path.stat().st_size, unpacked)


def check_zip(
    path: str | Path, archive: zipfile.ZipFile, packed: int, limits: UnpackingLimits = LIMITS
) -> None:
    """Refuse an archive that unpacks to too much; raises ``SourceError``.

    What its directory states is enough: Python reads no more of a member than that.
    """
    entries = archive.infolist()
    if len(entries) > limits.members:
        raise SourceError(f"{str(path)!r} holds {len(entries):,} files, at most {limits.members:,} are read")
    limits.check(path, packed, sum(entry.file_size for entry in entries))


def read_arrays(path: Path, limits: UnpackingLimits = LIMITS) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file, without pickled objects.

    Raises
    ------
    OSError, ValueError, zipfile.BadZipFile
        If it is missing, no such file, or unpacks to too much.
    """
    import numpy as np

    with zipfile.ZipFile(require_regular(path)) as archive:
        check_zip(path, archive, path.stat().st_size, limits)
        for entry in archive.infolist():
            with archive.open(entry) as member:
                _check_array(member, entry)
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _check_array(member: Any, entry: zipfile.ZipInfo) -> None:
    """Refuse an array that states more entries than there are: NumPy would make room for them first."""
    import numpy as np

    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a header that Python 2 wrote
            shape, _, dtype = read(member)
    except (TokenError, SyntaxError, RecursionError, MemoryError, Warning) as error:
        # NumPy reads a header as Python's expressions.
        raise ValueError(f"{entry.filename} begins with no header of an array") from error
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size > entry.file_size:
        raise ValueError(f"{entry.filename} states {shape} entries, more than it holds")
