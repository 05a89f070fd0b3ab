"""Gene graphs: any number of named relations between genes, each in CSR with its transpose.

`Appended` lists genes that were added to an organism. Most relations of such a gene are not known, so its
pairs count in no graph prior unless they are listed as valid: related (an edge) or known to be unrelated.

Legend: n genes · e stored edges (an undirected relation stores both directions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from wildtype.characters import name_fault
from wildtype.errors import ConfigError, DatasetError, did_you_mean
from wildtype.files import content_hash


@dataclass(frozen=True, eq=False)
class Relation:
    """One named gene graph over n genes.

    Attributes
    ----------
    name : str
        Unique within an organism.
    adjacency : scipy.sparse.csr_array [n, n] of float32
        Row = source, column = target; sorted, without duplicates, without self-loops; weights all positive
        (1 in an unweighted relation).
    directed, weighted : bool
        An undirected relation holds both directions of every edge.
    source, version : str
        Where the edges come from; the version of that source.
    note : str
        Limits of the data: a stand-in, a cut-off, a possible leak.
    dropped : dict of str to int
        Rows of the source that did not become edges, by reason.
    measured : tuple of str
        Phenotype sources (``"study:phenotype"``, or a study for all of its own) whose numbers the edges are
        made of: these tell what such labels are, also of test rows.
    """

    name: str
    adjacency: sparse.csr_array
    directed: bool
    weighted: bool
    source: str = ""
    version: str = ""
    note: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if fault := name_fault(self.name):
            raise DatasetError(f"relation {fault}")
        object.__setattr__(self, "measured", tuple(self.measured))  # a list, as it was stored

    @classmethod
    def from_edges(
        cls,
        name: str,
        rows: ArrayLike,
        cols: ArrayLike,
        n: int,
        weights: ArrayLike | None = None,
        *,
        directed: bool,
        source: str = "",
        version: str = "",
        note: str = "",
        dropped: Mapping[str, int] | None = None,
        measured: Iterable[str] = (),
    ) -> Relation:
        """Build a relation from e endpoints; duplicates keep the largest weight, self-loops are dropped,
        both counted.

        Raises
        ------
        DatasetError
            If an endpoint is outside 0 … n-1, a weight is not positive and finite, or lengths differ.
        """
        r, c = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        w = np.ones(r.size, np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
        if not r.size == c.size == w.size:
            raise DatasetError(
                f"relation {name!r}: {r.size} rows, {c.size} columns and {w.size} weights differ"
            )
        if r.size and (min(r.min(), c.min()) < 0 or max(r.max(), c.max()) >= n):
            raise DatasetError(f"relation {name!r}: an endpoint is outside 0 … {n - 1}; map the names again")
        if w.size and not (np.isfinite(w).all() and (w > 0).all()):
            raise DatasetError(
                f"relation {name!r}: weights must be positive and finite; drop the others first"
            )
        counts = dict(dropped or {})
        loops = r == c
        if loops.any():
            counts["self-loop"] = counts.get("self-loop", 0) + int(loops.sum())
            r, c, w = r[~loops], c[~loops], w[~loops]
        given = r.size
        if not directed:
            r, c = np.minimum(r, c), np.maximum(r, c)
        # Large sources give every edge once and in order: nothing to sort.
        key = r * n + c
        if not (key[1:] > key[:-1]).all():
            # The largest weight of a repeated edge sorts first and is the one that is kept.
            order = np.lexsort((-w, key))
            r, c, w, key = r[order], c[order], w[order], key[order]
            first = np.ones(r.size, bool)
            first[1:] = key[1:] != key[:-1]
            r, c, w = r[first], c[first], w[first]
        if given > r.size:
            counts["duplicate"] = counts.get("duplicate", 0) + int(given - r.size)
        if not directed:
            r, c, w = np.concatenate([r, c]), np.concatenate([c, r]), np.concatenate([w, w])
        adjacency = sparse.coo_array((w, (r, c)), shape=(n, n)).tocsr()
        adjacency.sort_indices()
        shape = adjacency, directed, weights is not None
        return cls(name, *shape, source, version, note, counts, tuple(measured))

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the edges, in plain values, for storage; ``Relation(adjacency=…, **facts)``."""
        return {
            "name": self.name,
            "directed": self.directed,
            "weighted": self.weighted,
            "source": self.source,
            "version": self.version,
            "note": self.note,
            "dropped": dict(self.dropped),
            "measured": list(self.measured),
        }

    @cached_property
    def transpose(self) -> sparse.csr_array:
        """The reversed relation [n, n] in CSR; the same array when undirected."""
        if not self.directed:
            return self.adjacency
        out = sparse.csr_array(self.adjacency.T)
        out.sort_indices()
        return out

    @property
    def n(self) -> int:
        """Number of genes."""
        return int(self.adjacency.shape[0])

    @property
    def nnz(self) -> int:
        """Number of stored (directed) edges e."""
        return int(self.adjacency.nnz)

    @property
    def edges(self) -> int:
        """Number of edges as a person counts them: unordered pairs when undirected."""
        return self.nnz if self.directed else self.nnz // 2

    @property
    def nodes(self) -> int:
        """Number of genes with at least one edge in either direction."""
        out = np.diff(self.adjacency.indptr) + np.diff(self.transpose.indptr)
        return int((out > 0).sum())

    @property
    def regularised_rows(self) -> int:
        """Number of genes with at least one outgoing edge: the rows an attention prior acts on."""
        return int((np.diff(self.adjacency.indptr) > 0).sum())

    def endpoints(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return (rows, cols, weights), each [e], in CSR order."""
        rows = np.repeat(np.arange(self.n), np.diff(self.adjacency.indptr))
        return rows, self.adjacency.indices.astype(np.int64), self.adjacency.data.astype(np.float32)

    def reversed(self) -> Relation:
        """Return the relation with every edge turned round (target → source)."""
        return replace(self, adjacency=self.transpose)

    def restrict(self, positions: NDArray[np.int64]) -> Relation:
        """Return the induced relation on the genes at ``positions`` [M], in that order."""
        sub = sparse.csr_array(self.adjacency[positions][:, positions])
        sub.sort_indices()
        return replace(self, adjacency=sub)


class GeneGraphs(Mapping[str, Relation]):
    """The named relations of one organism, in a fixed order, all over the same n genes."""

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self._relations: dict[str, Relation] = {}
        for relation in relations:
            if relation.name in self._relations:
                raise DatasetError(f"relation {relation.name!r} is given twice: rename one of them")
            self._relations[relation.name] = relation
        sizes = {relation.n for relation in self._relations.values()}
        if len(sizes) > 1:
            raise DatasetError(
                f"relations are over different numbers of genes {sorted(sizes)}: re-map them by name"
            )

    def __getitem__(self, name: str) -> Relation:
        try:
            return self._relations[name]
        except KeyError:
            known = f"known relations: {', '.join(self._relations) or 'none'}"
            hint = did_you_mean(name, self._relations, known)
            raise DatasetError(f"there is no relation {name!r}; {hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._relations

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def __repr__(self) -> str:
        sizes = (f"{name} ({relation.edges:,} edges)" for name, relation in self.items())
        return f"GeneGraphs({', '.join(sizes) or 'none'})"

    def restrict(self, positions: NDArray[np.int64]) -> GeneGraphs:
        """Return all relations induced on the genes at ``positions``."""
        return GeneGraphs(relation.restrict(positions) for relation in self.values())

    def select(self, names: Iterable[str]) -> GeneGraphs:
        """Return the named relations, in the order given; raises ``DatasetError`` on an unknown name."""
        return GeneGraphs(self[name] for name in names)

    def check_allowed_for(self, targets: Iterable[str]) -> None:
        """Refuse relations that are made of any of the phenotype sources ``targets``.

        Raises
        ------
        ConfigError
            Naming the relation and the source.
        """
        for name, relation in self.items():
            for source in sorted(targets):
                if {source, source.partition(":")[0]} & set(relation.measured):
                    raise ConfigError(
                        f"relation {name!r} is made of measurements of {source!r}, which is predicted or "
                        f"tested here, so that it tells the labels of held-out rows: set "
                        f"data.without=[{name}]"
                    )

    @property
    def sha256(self) -> str:
        """Content hash over names, edges and weights."""
        parts: list[object] = []
        for relation in self.values():
            a = relation.adjacency
            parts += [relation.name, a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data]
        return content_hash(*parts)


def _no_genes() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Appended:
    """Genes that were added to an organism.

    Attributes
    ----------
    genes : int64 [a]
        Their positions, ascending; usually none.
    valid : mapping of str to int64 [2, M]
        Per relation, source and target of the pairs whose relation is known, each with an appended gene at
        one end or both, and each once.
    """

    genes: NDArray[np.int64] = field(default_factory=_no_genes)
    valid: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.genes)

    def restrict(self, positions: NDArray[np.int64]) -> Appended:
        """Return the same for the genes at ``positions`` [M], by their new positions."""
        if not len(self):
            return self
        largest = max(int(x.max(initial=0)) for x in (positions, self.genes, *self.valid.values()))
        new = np.full(largest + 1, -1, np.int64)
        new[positions] = np.arange(len(positions))
        genes = new[self.genes]
        valid = {name: new[pairs] for name, pairs in self.valid.items()}
        return Appended(
            np.sort(genes[genes >= 0]), {name: pairs[:, (pairs >= 0).all(0)] for name, pairs in valid.items()}
        )
