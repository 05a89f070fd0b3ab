"""Stored masks of every mutant of a table: four layouts, the exact size of each, and the writing of them.

Each relation is one memory-mappable array; a manifest lists them.

Legend: m mutants · n genes · r reactions · e stored edges of a relation · x removed edges of all mutants.

    layout     arrays of a relation                              bytes, besides a header of 128 each
    uint8      kept [m, e]                                       m e
    bits       kept [m, ⌈e / 8⌉], lowest bit first               m ⌈e / 8⌉
    indices    offsets [m + 1], positions of removed edges [x]   8 (m + 1) + 4 x
    nodes      (for all relations) genes [m, ⌈n / 8⌉], reactions [m, ⌈r / 8⌉]

x = Σ over mutants of the degrees of their removed nodes, less one for every edge that lost both its ends.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import ConfigError, OutputError
from wildtype.files import content_hash, write_json, writing_folder
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations.removal import REMOVES
from wildtype.mutants.table import MutantTable
from wildtype.mutants.wiring import Removed, Wiring, count_edges, list_edges
from wildtype.organism.relations import GeneGraphs

LAYOUTS = ("uint8", "bits", "indices", "nodes")
FORMAT = 1
MANIFEST = "masks.json"
CHUNK = 64 << 20
"""Bytes of masks that are generated at once."""
Progress = Callable[[int, int], None]
Encoder = Callable[[Wiring, Removed], Iterator[NDArray[Any]]]
"""Gives what a chunk of mutants adds to every array, in their order."""


@dataclass(frozen=True)
class StoredArray:
    """One ``.npy`` file.

    Attributes
    ----------
    file : str
        Its name in the folder: a number, since the name of a relation may not be a file name.
    holds : str
        The relation; for node masks, ``gene`` or ``reaction``.
    part : str
        ``kept``, ``offsets`` or ``removed``.
    dtype : str
        As NumPy writes it, byte order included.
    shape : tuple of int
        Of the array.
    """

    file: str
    holds: str
    part: str
    dtype: str
    shape: tuple[int, ...]

    def write_header(self, handle: BinaryIO) -> None:
        """Write the header of a ``.npy`` file."""
        np.lib.format.write_array_header_1_0(
            handle, {"descr": self.dtype, "fortran_order": False, "shape": self.shape}
        )

    @property
    def bytes(self) -> int:
        """Size of the file."""
        head = io.BytesIO()
        self.write_header(head)
        return len(head.getvalue()) + math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def to_json(self) -> dict[str, Any]:
        """Return the array as plain values."""
        return asdict(self) | {"shape": list(self.shape)}


def check_layout(layout: str) -> None:
    """Raise ``ConfigError`` naming the layouts there are, if this is none of them."""
    if layout not in LAYOUTS:
        raise ConfigError(f"{layout!r} is not a layout of masks; known layouts: {', '.join(LAYOUTS)}")


def stored_arrays(wiring: Wiring, table: MutantTable, layout: str) -> list[StoredArray]:
    """Return the arrays that storing all masks of a table takes, without making any.

    O(1) but for ``indices``, which visits every edge of every removed node once.

    Raises
    ------
    ConfigError
        If the layout is unknown.
    """
    check_layout(layout)
    lost = removed_edges(wiring, table) if layout == "indices" else {}
    return arrays_of(wiring, len(table), layout, {name: int(count.sum()) for name, count in lost.items()})


def arrays_of(
    wiring: Wiring, mutants: int, layout: str, removed: Mapping[str, int] | None = None
) -> list[StoredArray]:
    """Return the arrays of a layout; ``indices`` needs the number of removed edges of every relation."""
    out: list[StoredArray] = []

    def add(holds: str, part: str, dtype: str, *shape: int) -> None:
        out.append(StoredArray(f"{len(out)}.npy", holds, part, dtype, shape))

    if layout == "nodes":
        add("gene", "kept", "|u1", mutants, -(-wiring.graph.n // 8))
        if wiring.graph.metabolism is not None:
            add("reaction", "kept", "|u1", mutants, -(-(wiring.removable - wiring.graph.n) // 8))
        return out
    for name, edges in wiring.edges.items():
        if layout == "indices":
            add(name, "offsets", "<i8", mutants + 1)
            add(name, "removed", "<i4" if edges < 2**31 else "<i8", (removed or {}).get(name, 0))
        else:
            add(name, "kept", "|u1", mutants, edges if layout == "uint8" else -(-edges // 8))
    return out


def removed_edges(wiring: Wiring, table: MutantTable) -> dict[str, NDArray[np.int64]]:
    """Return how many edges of every relation each mutant loses, int64 [m]."""
    out = {name: np.zeros(len(table), np.int64) for name in wiring.edges}
    gone = np.zeros(wiring.nodes, bool)
    for start, removed in chunks_of_removed(wiring, table, 1 << 16):
        for name, counts in out.items():
            count_edges(*incidence_arrays(wiring, name, removed), gone, counts[start : start + len(removed)])
    return out


def chunks_of_removed(wiring: Wiring, table: MutantTable, rows: int) -> Iterator[tuple[int, Removed]]:
    """Yield the removed nodes of ``rows`` mutants at a time, with the number of the first of them."""
    whole = MutantBatch.from_table(table)
    for start in range(0, len(table), rows):
        yield start, wiring.removed(whole.slice(start, min(start + rows, len(table))))


def incidence_arrays(wiring: Wiring, name: str, removed: Removed) -> tuple[NDArray[Any], ...]:
    """Return what the kernels are given: nodes, offsets, starts, positions, sources, targets."""
    incidence, ends = wiring.incidence[name], wiring.ends[name]
    parts = (
        removed.node, removed.offsets, incidence.starts, incidence.position, ends.source, ends.target,
    )  # fmt: skip
    return tuple(part.numpy() for part in parts)


def unpacked(bits: NDArray[np.uint8], count: int) -> torch.Tensor:
    """Return packed rows [b, ⌈count / 8⌉] as bool [b, count]."""
    return torch.from_numpy(np.unpackbits(bits, axis=1, count=count, bitorder="little").view(bool))


def graph_sha256(graph: CellGraph) -> str:
    """Return the content hash of genes, relations, metabolism, reading of rules and foreign genes."""
    network = graph.metabolism
    return content_hash(
        graph.genes.sha256,
        GeneGraphs(graph.relations.values()).sha256,
        None if network is None else [network.sha256, graph.rule],
        *(() if graph.foreign is None else (graph.foreign,)),
    )


def table_sha256(table: MutantTable) -> str:
    """Return the content hash of what was done to which genes, row by row; values do not matter."""
    return content_hash(table.gene, table.offsets, table.kind)


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
    """Write the masks of all mutants of a table to a new folder, completely or not at all.

    Parameters
    ----------
    graph : CellGraph
        The wiring whose edges are masked.
    table : MutantTable
        m mutants; row i of the table is row i of every array.
    folder : str or Path
        Must not exist yet, or be empty.
    layout : {"uint8", "bits", "indices", "nodes"}
        See the table above.
    removes : iterable of str
        Kinds of perturbation that take a gene out of the graph.
    progress : callable
        Called after every chunk with the number of mutants written and their total.

    Raises
    ------
    ConfigError
        If layout or kinds are unknown.
    OutputError
        If the folder is not empty, or it cannot be written (full disk, read-only, …).
    """
    folder, removes = Path(folder), list(removes)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            f"cannot write {str(folder)!r}: the folder is not empty; remove it or choose another"
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
    encoders: dict[str, Encoder] = {"uint8": _kept, "bits": _packed, "nodes": _nodes}
    encode = encoders.get(layout) or _Removals(arrays)
    rows = max(CHUNK // max(sum(wiring.edges.values()), wiring.nodes, 1), 1)
    with contextlib.ExitStack() as stack:
        handles = [stack.enter_context(open(folder / array.file, "wb")) for array in arrays]
        for array, handle in zip(arrays, handles, strict=True):
            array.write_header(handle)
            if array.part == "offsets":
                _write(handle, np.zeros(1, np.int64))
        for start, removed in chunks_of_removed(wiring, table, rows):
            for handle, values in zip(handles, encode(wiring, removed), strict=True):
                _write(handle, values)
            progress(start + len(removed), len(table))


def _write(handle: BinaryIO, values: NDArray[np.generic]) -> None:
    handle.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _kept(wiring: Wiring, removed: Removed) -> Iterator[NDArray[Any]]:
    for name, edges in wiring.edges.items():
        out = np.ones((len(removed), edges), bool)
        wiring.incidence[name].write(torch.from_numpy(out), removed, False)
        yield out


def _packed(wiring: Wiring, removed: Removed) -> Iterator[NDArray[Any]]:
    for mask in _kept(wiring, removed):
        yield np.packbits(mask, axis=1, bitorder="little")


class _Removals:
    """Encodes positions of removed edges; offsets go on from chunk to chunk."""

    def __init__(self, arrays: Sequence[StoredArray]) -> None:
        self._arrays = arrays
        self._ends = {array.holds: 0 for array in arrays}

    def __call__(self, wiring: Wiring, removed: Removed) -> Iterator[NDArray[Any]]:
        gone = np.zeros(wiring.nodes, bool)
        for array in self._arrays[1::2]:  # pairs of offsets and removed positions, one pair a relation
            parts = incidence_arrays(wiring, array.holds, removed)
            counts = np.zeros(len(removed), np.int64)
            count_edges(*parts, gone, counts)
            stops = np.concatenate([[0], np.cumsum(counts)])
            position = np.zeros(stops[-1], array.dtype)
            list_edges(*parts, gone, stops, position)
            yield self._ends[array.holds] + stops[1:]
            yield position
            self._ends[array.holds] += int(stops[-1])


def _nodes(wiring: Wiring, removed: Removed) -> Iterator[NDArray[Any]]:
    keep = wiring.keeps(removed).numpy()
    parts = [keep[:, : wiring.graph.n], keep[:, wiring.graph.n : wiring.removable]]
    for part in parts if wiring.graph.metabolism is not None else parts[:1]:
        yield np.packbits(part, axis=1, bitorder="little")
