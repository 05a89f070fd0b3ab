"""What compressed files may unpack to: absolute limits and a ratio, one for every reader.

A file of kilobytes can unpack to gigabytes. A reader knows what it has unpacked so far and how much it has
read of the file, and stops where the one is out of proportion to the other.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import SourceError
from wildtype.files import require_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIB = 1 << 20


@dataclass(frozen=True)
class UnpackingLimits:
    """Bounds of what one file may unpack to.

    Attributes
    ----------
    bytes : int
        In all.
    ratio : float
        Unpacked bytes per byte of the file. Sorted tables of zeros reach some hundred.
    free : int
        Bytes up to which the ratio does not matter: a small file of one repeated line is no attack.
    members : int
        Entries of an archive.
    """

    bytes: int = 2 << 30
    ratio: float = 200.0
    free: int = 64 * MIB
    members: int = 100_000

    def allowed(self, packed: int) -> int:
        """Return how many bytes a file of so many bytes may unpack to, never less than its size."""
        return max(packed, min(self.bytes, max(self.free, int(self.ratio * packed))))

    def check(self, path: str | Path, packed: int, unpacked: int) -> None:
        """Refuse what is more than allowed; raises ``SourceError``."""
        if unpacked > self.allowed(packed):
            raise SourceError(
                f"{str(path)!r} ({packed / MIB:,.1f} MiB) unpacks to more than "
                f"{self.allowed(packed) / MIB:,.0f} MiB: if you trust it, unpack it yourself and give "
                "what is in it"
            )


LIMITS = UnpackingLimits()


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
    shape, _, dtype = read(member)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size > entry.file_size:
        raise ValueError(f"{entry.filename} states {shape} entries, more than it holds")
