"""Writing the masks of every mutant of a table: one memory-mappable array a relation, and a manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import OutputError
from wildtype.files import write_json, writing_folder
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import Removed, Wiring
from wildtype.mutants.precomputed.layouts import (
    CHUNK,
    FORMAT,
    MANIFEST,
    StoredArray,
    chunks_of_removed,
    graph_sha256,
    incidence_arrays,
    stored_arrays,
    table_sha256,
)
from wildtype.mutants.representations.removal import REMOVES
from wildtype.mutants.table import MutantTable

Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def write_masks(
    graph: CellGraph,
    table: MutantTable,
    folder: str | Path,
    layout: str,
    *,
    removes: Iterable[str] = REMOVES,
    progress: Progress = no_progress,
) -> None:
    """Write the masks of all mutants of a table to a new folder, whole or not at all.

    Parameters
    ----------
    graph : CellGraph
        The wiring whose edges are masked.
    table : MutantTable
        m mutants; row i of the table is row i of every array.
    folder : str or Path
        Must not exist yet, or be empty.
    layout : {"uint8", "bits", "indices", "nodes"}
        See ``wildtype.mutants.precomputed.layouts``.
    removes : iterable of str
        Kinds of perturbation that take a gene out of the graph.
    progress : callable
        Called with mutants done and in all, now and then.

    Raises
    ------
    ConfigError
        If layout or kinds are unknown.
    OutputError
        If something stands at ``folder``, or it cannot be written: full disk, read-only, …
    """
    folder, removes = Path(folder), list(removes)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            f"cannot write {str(folder)!r}: something stands there; remove it or choose another"
        )
    wiring = Wiring(graph, removes=removes)
    arrays = stored_arrays(wiring, table, layout)
    with writing_folder(folder) as temporary:
        write_arrays(wiring, table, arrays, temporary, layout, progress)
        manifest = {
            "format_version": FORMAT,
            "layout": layout,
            "mutants": len(table),
            "removes": [kind.name.lower() for kind in wiring.removal.kinds],
            "graph_sha256": graph_sha256(graph),
            "table_sha256": table_sha256(table),
            "arrays": [array.to_json() for array in arrays],
        }
        write_json(temporary / MANIFEST, manifest)


def write_arrays(
    wiring: Wiring,
    table: MutantTable,
    arrays: Sequence[StoredArray],
    folder: Path,
    layout: str,
    progress: Progress = no_progress,
) -> None:
    """Write the array files of a layout into an existing folder; raises ``OSError``."""
    encode = {"uint8": _kept, "bits": _packed, "indices": _removed, "nodes": _nodes}[layout]
    rows = max(CHUNK // max(sum(wiring.edges.values()), wiring.nodes, 1), 1)
    with contextlib.ExitStack() as stack:
        handles = [stack.enter_context(open(folder / array.file, "wb")) for array in arrays]
        for array, handle in zip(arrays, handles, strict=True):
            array.write_header(handle)
            if array.part == "offsets":
                _write(handle, np.zeros(1, np.int64))
        ends = np.zeros(len(arrays), np.int64)
        for start, removed in chunks_of_removed(wiring, table, rows):
            encode(wiring, removed, arrays, handles, ends)
            progress(start + len(removed), len(table))


def _write(handle: BinaryIO, values: NDArray[np.generic]) -> None:
    handle.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _mask(wiring: Wiring, removed: Removed, name: str) -> NDArray[np.bool_]:
    out = np.ones((len(removed), wiring.edges[name]), bool)
    wiring.incidence[name].write(torch.from_numpy(out), removed, False)
    return out


def _kept(
    wiring: Wiring,
    removed: Removed,
    arrays: Sequence[StoredArray],
    handles: Sequence[BinaryIO],
    ends: NDArray[np.int64],
) -> None:
    for array, handle in zip(arrays, handles, strict=True):
        _write(handle, _mask(wiring, removed, array.holds))


def _packed(
    wiring: Wiring,
    removed: Removed,
    arrays: Sequence[StoredArray],
    handles: Sequence[BinaryIO],
    ends: NDArray[np.int64],
) -> None:
    for array, handle in zip(arrays, handles, strict=True):
        _write(handle, np.packbits(_mask(wiring, removed, array.holds), axis=1, bitorder="little"))


def _removed(
    wiring: Wiring,
    removed: Removed,
    arrays: Sequence[StoredArray],
    handles: Sequence[BinaryIO],
    ends: NDArray[np.int64],
) -> None:
    from wildtype.mutants.edge_mask_kernels import count_edges, list_edges

    gone = np.zeros(wiring.nodes, bool)
    for at in range(0, len(arrays), 2):
        parts = incidence_arrays(wiring, arrays[at].holds, removed)
        counts = np.zeros(len(removed), np.int64)
        count_edges(*parts, gone, counts)
        stops = np.concatenate([[0], np.cumsum(counts)])
        position = np.zeros(stops[-1], arrays[at + 1].dtype)
        list_edges(*parts, gone, stops, position)
        _write(handles[at], ends[at] + stops[1:])
        _write(handles[at + 1], position)
        ends[at] += stops[-1]


def _nodes(
    wiring: Wiring,
    removed: Removed,
    arrays: Sequence[StoredArray],
    handles: Sequence[BinaryIO],
    ends: NDArray[np.int64],
) -> None:
    keep = wiring.keeps(removed).numpy()
    parts = [keep[:, : wiring.graph.n], keep[:, wiring.graph.n : wiring.removable]]
    for part, handle in zip(parts, handles, strict=False):  # no second file without metabolism
        _write(handle, np.packbits(part, axis=1, bitorder="little"))
