"""Reading stored masks: memory-mapped, refused where they are damaged or of another graph or table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from wildtype.errors import ConfigError, DatasetError, reason_of
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import CsrMasks, Wiring
from wildtype.mutants.precomputed.write import (
    FORMAT,
    LAYOUTS,
    MANIFEST,
    StoredArray,
    arrays_of,
    graph_sha256,
    table_sha256,
    unpacked,
)
from wildtype.mutants.table import MutantTable
from wildtype.seeds import derive

REMEDY = "remove the folder and write it again"


class PrecomputedMasks:
    """The stored masks of m mutants, served by row; ``PrecomputedMasks.open`` makes one.

    Attributes
    ----------
    layout : str
        How they are stored.
    wiring : Wiring
        Of the graph that they belong to, with the kinds of perturbation that removed genes.
    table : MutantTable
        The mutants, in the order of the stored rows.
    """

    def __init__(
        self,
        folder: Path,
        layout: str,
        wiring: Wiring,
        table: MutantTable,
        arrays: dict[tuple[str, str], NDArray[Any]],
    ) -> None:
        self.folder, self.layout, self.wiring, self.table = folder, layout, wiring, table
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def open(cls, folder: str | Path, graph: CellGraph, table: MutantTable) -> Self:
        """Open what ``write_masks`` wrote; no array is read yet.

        Raises
        ------
        DatasetError
            If the folder is missing, damaged, cut short, of another format, or was written for another graph
            or another table.
        """
        folder = Path(folder)
        try:
            record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if record["format_version"] != FORMAT:
                raise DatasetError(f"{folder} has format {record['format_version']}, not {FORMAT}: {REMEDY}")
            layout, removes = str(record["layout"]), [str(kind) for kind in record["removes"]]
            shas = record["graph_sha256"], record["table_sha256"]
            arrays = [StoredArray(**item | {"shape": tuple(item["shape"])}) for item in record["arrays"]]
            mapped = {}
            for i, array in enumerate(arrays):
                if array.file != f"{i}.npy":
                    raise ValueError(f"array {i} is listed as {array.file!r}")
                mapped[array.holds, array.part] = _map(folder, array)
        except FileNotFoundError as error:
            raise DatasetError(f"there are no masks at {folder} ({error.filename} is missing)") from error
        except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError) as error:
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(f"the masks at {folder} are damaged ({reason_of(error)}): {REMEDY}") from error
        for what, stored, here in zip(
            ("graph", "table"), shas, (graph_sha256(graph), table_sha256(table)), strict=True
        ):
            if stored != here:
                raise DatasetError(
                    f"the masks at {folder} are of another {what} (sha256 {str(stored)[:12]}, here "
                    f"{here[:12]}): give the {what} that they were written for, or write them again"
                )
        wiring = Wiring(graph, removes=removes)
        # Numbers of removed edges are taken as stored: counting them would visit every edge; see `check`.
        removed = {array.holds: math.prod(array.shape) for array in arrays if array.part == "removed"}
        if layout not in LAYOUTS or arrays != arrays_of(wiring, len(table), layout, removed):
            raise DatasetError(f"the masks at {folder} do not fit their graph and table: {REMEDY}")
        return cls(folder, layout, wiring, table, mapped)

    def nodes(self, rows: ArrayLike) -> dict[str, Tensor]:
        """Return which genes [b, n] and, with metabolism, reactions [b, r] the mutants at ``rows`` keep.

        Raises
        ------
        ConfigError
            If the layout is not ``nodes``.
        DatasetError
            If there is no such row.
        """
        if self.layout != "nodes":
            raise ConfigError(f"the masks at {self.folder} are stored as {self.layout}, not as nodes")
        at, n = self._rows(rows), self.wiring.graph.n
        counts = {"gene": n, "reaction": self.wiring.removable - n}
        return {name: unpacked(bits[at], counts[name]) for (name, _), bits in self._arrays.items()}

    def masks(self, rows: ArrayLike) -> dict[str, Tensor]:
        """Return which edges the mutants at ``rows`` [b] keep, bool [b, e] for every relation.

        Equal to what ``wildtype.mutants.edge_masks`` generates, from whichever layout.

        Raises
        ------
        DatasetError
            If there is no such row, or a stored position is not that of an edge.
        """
        at = self._rows(rows)
        if self.layout == "nodes":
            parts = list(self.nodes(at).values())
            stay = torch.ones(len(at), self.wiring.nodes - self.wiring.removable, dtype=torch.bool)
            keep = torch.cat([*parts, stay], dim=1)
            return {
                name: keep[:, ends.source] & keep[:, ends.target] for name, ends in self.wiring.ends.items()
            }
        out = {}
        for name, edges in self.wiring.edges.items():
            if self.layout == "indices":
                out[name] = self._from_positions(name, edges, at)
            elif self.layout == "bits":
                out[name] = unpacked(self._arrays[name, "kept"][at], edges)
            else:
                out[name] = torch.from_numpy(self._arrays[name, "kept"][at] != 0)
        return out

    def batches(
        self, batch_size: int, *, shuffle: bool = False, seed: int = 0, epoch: int = 0
    ) -> Iterator[tuple[MutantBatch, dict[str, Tensor]]]:
        """Yield batches of mutants with their masks, in the order in which ``MutantLoader`` serves them.

        Raises
        ------
        DatasetError
            If the batch size is not positive.
        """
        if batch_size < 1:
            raise DatasetError(f"batch size {batch_size} must be at least 1")
        whole = MutantBatch.from_table(self.table)
        rows = torch.arange(len(self))
        if shuffle:
            stream = torch.Generator().manual_seed(derive(seed, "shuffle", epoch))
            rows = torch.randperm(len(self), generator=stream)
        for start in range(0, len(self), batch_size):
            part = rows[start : start + batch_size]
            yield whole.take(part), self.masks(part.numpy())

    def check(self, rows: ArrayLike) -> None:
        """Compare the stored masks of ``rows`` with generated ones, 64 at a time.

        Raises
        ------
        DatasetError
            Naming the first relation and a mutant that differ.
        """
        generator, whole = CsrMasks(self.wiring), MutantBatch.from_table(self.table)
        for part in np.split(at := self._rows(rows), range(64, len(at), 64)):
            expected = generator.masks(whole.take(torch.from_numpy(part)))
            for name, mask in self.masks(part).items():
                wrong = (mask != expected[name]).any(dim=1).nonzero()
                if len(wrong):
                    raise DatasetError(
                        f"the masks at {self.folder} are damaged: mutant {part[int(wrong[0])]}, "
                        f"relation {name!r} is not as generated: {REMEDY}"
                    )

    def _rows(self, rows: ArrayLike) -> NDArray[np.int64]:
        at = np.asarray(rows, dtype=np.int64).reshape(-1)
        outside = (at < 0) | (at >= len(self))
        if outside.any():
            raise DatasetError(f"there is no row {at[outside][0]} in the masks of {len(self)} mutants")
        return at

    def _from_positions(self, name: str, edges: int, at: NDArray[np.int64]) -> Tensor:
        offsets, removed = self._arrays[name, "offsets"], self._arrays[name, "removed"]
        first = offsets[at]
        counts = offsets[at + 1] - first
        if (counts < 0).any() or (first < 0).any() or (first + counts > len(removed)).any():
            raise DatasetError(f"the masks at {self.folder} are damaged: offsets of {name!r} do not rise")
        ends = np.cumsum(counts)
        which = np.repeat(np.arange(len(at)), counts)
        position = removed[np.arange(len(which)) + (first - ends + counts)[which]]
        if position.size and (position.min() < 0 or position.max() >= edges):
            raise DatasetError(f"the masks at {self.folder} are damaged: {name!r} has no such edge")
        out = np.ones((len(at), edges), bool)
        out[which, position] = False
        return torch.from_numpy(out)


def _map(folder: Path, array: StoredArray) -> NDArray[Any]:
    """Map one file; raises ``ValueError`` if it does not match the manifest, ``OSError`` if unreadable."""
    path = folder / array.file
    size = path.stat().st_size
    if size != array.bytes:
        raise ValueError(f"{array.file} has {size:,} bytes, expected {array.bytes:,}")
    if not math.prod(array.shape):  # nothing to map
        return np.zeros(array.shape, array.dtype)
    out: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if out.shape != array.shape or out.dtype.str != array.dtype:
        raise ValueError(
            f"{array.file} holds {out.dtype.str} {out.shape}, expected {array.dtype} {array.shape}"
        )
    return out
