"""Cost of storing all masks of a table: bytes exactly, time from a short sample on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import Wiring
from wildtype.mutants.precomputed.write import LAYOUTS, check_layout, stored_arrays, write_arrays
from wildtype.mutants.representations.removal import REMOVES
from wildtype.mutants.table import MutantTable

LARGEST_SAMPLE = 256 << 20


@dataclass(frozen=True)
class MaskStorageEstimate:
    """Disk space and time that one layout takes.

    Attributes
    ----------
    layout : str
        Of ``LAYOUTS``.
    mutants, edges : int
        Rows of the table; stored edges of all relations.
    bytes : int
        Of all arrays, headers included: exact. The manifest adds a few kilobytes.
    bytes_by_relation : dict of str to int
        Bytes of every relation; node masks are ``gene`` and ``reaction``.
    build_seconds : float
        ``sample_seconds`` scaled to all mutants. A disk that slows down once its cache is full takes longer.
    sample_mutants, sample_seconds : int, float
        Mutants that were written (and synced to disk) for that, and how long it took.
    sample_folder : str
        Where the sample was written.
    free_bytes : int
        Free space where the masks would go.
    """

    layout: str
    mutants: int
    edges: int
    bytes: int
    bytes_by_relation: dict[str, int]
    build_seconds: float
    sample_mutants: int
    sample_seconds: float
    sample_folder: str
    free_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the free space is enough."""
        return self.bytes <= self.free_bytes


def estimate(
    graph: CellGraph,
    table: MutantTable,
    folder: str | Path,
    *,
    layouts: Sequence[str] = LAYOUTS,
    removes: Iterable[str] = REMOVES,
    seconds: float = 1.0,
) -> list[MaskStorageEstimate]:
    """Return what each layout would take at ``folder``, which need not exist; nothing stays there.

    Parameters
    ----------
    graph, table, removes
        As for ``write_masks``.
    folder : str or Path
        Where the masks would go; the sample is written on the same disk, or, where that cannot be written,
        in the folder of temporary files.
    layouts : sequence of str
        Layouts to estimate.
    seconds : float
        The sample of a layout grows until it takes this long, 256 MiB, or all of the table.

    Raises
    ------
    ConfigError
        If a layout or kind is unknown.
    """
    for layout in layouts:
        check_layout(layout)
    wiring = Wiring(graph, removes=removes)
    place = Path(folder).absolute()
    while not place.is_dir():
        place = place.parent
    free = shutil.disk_usage(place).free
    out = []
    for layout in layouts:
        sizes: dict[str, int] = {}
        for array in stored_arrays(wiring, table, layout):
            sizes[array.holds] = sizes.get(array.holds, 0) + array.bytes
        total = sum(sizes.values())
        limit = max(len(table) * LARGEST_SAMPLE // max(total, 1), 1)
        try:
            sample, elapsed, where = _timed(wiring, table, layout, place, seconds, limit)
        except OSError:
            temporary = Path(tempfile.gettempdir())
            sample, elapsed, where = _timed(wiring, table, layout, temporary, seconds, limit)
        out.append(
            MaskStorageEstimate(
                layout=layout,
                mutants=len(table),
                edges=sum(wiring.edges.values()),
                bytes=total,
                bytes_by_relation=sizes,
                build_seconds=elapsed * len(table) / max(sample, 1),
                sample_mutants=sample,
                sample_seconds=elapsed,
                sample_folder=str(where),
                free_bytes=free,
            )
        )
    return out


def _timed(
    wiring: Wiring, table: MutantTable, layout: str, place: Path, seconds: float, limit: int
) -> tuple[int, float, Path]:
    """Write growing samples until one takes ``seconds`` or has ``limit`` mutants; return the last one."""
    count = 0
    for more in (2, *(16 << i for i in range(40))):  # the first, of two, compiles the loops
        count = min(more, limit, len(table))
        # Rows are spread over the table, since neighbouring mutants resemble each other in size.
        part = table.take(np.linspace(0, len(table) - 1, count).astype(np.int64))
        with tempfile.TemporaryDirectory(dir=place, prefix=".wildtype-estimate-") as name:
            start = time.perf_counter()
            write_arrays(wiring, part, stored_arrays(wiring, part, layout), Path(name), layout)
            for path in Path(name).iterdir():
                with open(path, "rb") as handle:
                    os.fsync(handle.fileno())
            elapsed = time.perf_counter() - start
        if more > 2 and (elapsed >= seconds or count == min(limit, len(table))):
            break
    return count, elapsed, place
