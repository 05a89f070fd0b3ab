"""Four layouts of stored masks, and the exact size of each from degrees and orders alone.

Legend: m mutants · n genes · r reactions · e stored edges of a relation · x removed edges of all mutants.

    layout     arrays of a relation                              bytes, besides a header of 128 each
    uint8      kept [m, e]                                       m e
    bits       kept [m, ⌈e / 8⌉], lowest bit first               m ⌈e / 8⌉
    indices    offsets [m + 1], positions of removed edges [x]   8 (m + 1) + 4 x
    nodes      (for all relations) genes [m, ⌈n / 8⌉], reactions [m, ⌈r / 8⌉]

x = Σ over mutants of the degrees of their removed nodes, less one for every edge that lost both its ends.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.files import content_hash
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import Removed, Wiring
from wildtype.mutants.table import MutantTable
from wildtype.organism.relations import GeneGraphs

LAYOUTS = ("uint8", "bits", "indices", "nodes")
FORMAT = 1
MANIFEST = "masks.json"
CHUNK = 64 << 20
"""Bytes of masks that are generated at once."""


@dataclass(frozen=True)
class StoredArray:
    """One ``.npy`` file.

    Attributes
    ----------
    file : str
        Its name in the folder: a number, since relations may be called anything.
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
        """Write what stands before the values in a ``.npy`` file."""
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
    m = len(table)
    out: list[StoredArray] = []

    def add(holds: str, part: str, dtype: str, *shape: int) -> None:
        out.append(StoredArray(f"{len(out)}.npy", holds, part, dtype, shape))

    if layout == "nodes":
        add("gene", "kept", "|u1", m, -(-wiring.graph.n // 8))
        if wiring.graph.metabolism is not None:
            add("reaction", "kept", "|u1", m, -(-(wiring.removable - wiring.graph.n) // 8))
        return out
    lost = removed_edges(wiring, table) if layout == "indices" else {}
    for name, edges in wiring.edges.items():
        if layout == "indices":
            add(name, "offsets", "<i8", m + 1)
            add(name, "removed", "<i4" if edges < 2**31 else "<i8", int(lost[name].sum()))
        else:
            add(name, "kept", "|u1", m, edges if layout == "uint8" else -(-edges // 8))
    return out


def removed_edges(wiring: Wiring, table: MutantTable) -> dict[str, NDArray[np.int64]]:
    """Return how many edges of every relation each mutant loses, int64 [m]."""
    from wildtype.mutants.edge_mask_kernels import count_edges

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
    """Return the content hash of genes, relations, metabolism and the reading of rules."""
    network = graph.metabolism
    return content_hash(
        graph.genes.sha256,
        GeneGraphs(graph.relations.values()).sha256,
        None if network is None else [network.sha256, graph.rule],
    )


def table_sha256(table: MutantTable) -> str:
    """Return the content hash of what was done to which genes, row by row; values do not matter."""
    return content_hash(table.gene, table.offsets, table.kind)
