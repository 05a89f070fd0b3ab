"""`GeneSets`: named sets of genes, as of a reaction, a complex or a term of an ontology.

Legend: n genes · t sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError, SourceError
from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.relations import Relation
from wildtype.tables import NO_NUMBER, read_frame

MOST_PAIRS = 50_000_000
"""Pairs of genes in all sets together that a relation is made of."""
GENE, TERM = "gene", "term"
"""Columns of a table of annotations."""


@dataclass(frozen=True, eq=False)
class GeneSets:
    """Named sets of the n genes of an organism.

    Attributes
    ----------
    kind : str
        What one of them is: ``reaction``, ``complex``, ``term``.
    names : tuple of t str
        Unique.
    table : csr [n, t] of float64
        1 where a gene is in a set.
    source : str
        Where they come from, and what was left out.
    """

    kind: str
    names: tuple[str, ...]
    table: sparse.csr_array
    source: str = ""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of genes of every set [t]."""
        return np.bincount(self.table.indices, minlength=len(self.names))

    def sized(self, least: int, most: int) -> GeneSets:
        """Return the sets of ``least`` to ``most`` genes."""
        kept = np.flatnonzero((self.sizes >= least) & (self.sizes <= most))
        return replace(
            self, names=tuple(self.names[i] for i in kept), table=sparse.csr_array(self.table[:, kept])
        )

    def distinct(self) -> GeneSets:
        """Return sets of equal genes once; the name of the first gives the number of others."""
        columns = sparse.csc_array(self.table)
        columns.sort_indices()
        found: dict[bytes, list[int]] = {}
        for t, members in enumerate(np.split(columns.indices, columns.indptr[1:-1])):
            found.setdefault(members.tobytes(), []).append(t)
        kept = [same[0] for same in found.values()]
        names = [
            self.names[same[0]] + (f" (and {len(same) - 1} with the same genes)" if len(same) > 1 else "")
            for same in found.values()
        ]
        return replace(self, names=tuple(names), table=sparse.csr_array(self.table[:, kept]))

    def shared(
        self, name: str = "", *, weighted: bool = False, source: str = "", version: str = "", note: str = ""
    ) -> Relation:
        """Return the relation of genes that have a set in common; O(Σ k²) edges for sets of k genes.

        Parameters
        ----------
        name : str
            Of the relation; ``shared <kind>`` if not given.
        weighted : bool
            Whether a pair weighs 1 / (k - 1), k the size of the smallest set that it shares: every gene
            spreads a weight of 1 over the other members, so that a large set is weak evidence for a pair.
        source, version, note : str
            Of the relation.

        Raises
        ------
        DatasetError
            If sets have more than `MOST_PAIRS` pairs.
        """
        rows, cols, weights = self._weighted_pairs(name) if weighted else (*self._pairs(), None)
        relation = Relation.from_edges(
            name or f"shared {self.kind}",
            rows,
            cols,
            self.table.shape[0],
            weights,
            directed=False,
            source=source,
            version=version,
            note=note,
        )
        # Pairs that share several sets are no rows of a file.
        return replace(relation, dropped={})

    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows, columns = sparse.coo_array(self.table @ self.table.T).coords
        return rows.astype(np.int64), columns.astype(np.int64)

    def _weighted_pairs(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return the pairs of every set, with its weight; a pair of several sets stands several times."""
        size = self.sizes
        pairs = int((size * (size - 1) // 2).sum())
        if pairs > MOST_PAIRS:
            raise DatasetError(
                f"the sets of {name or self.kind!r} have {pairs:,} pairs of genes, more than {MOST_PAIRS:,}: "
                f"leave out the largest sets (one has {int(size.max()):,} genes)"
            )
        columns = sparse.csc_array(self.table)
        rows, cols, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        # All sets of one size at once: their members are a matrix.
        for k in np.unique(size[size > 1]).tolist():
            start = columns.indptr[:-1][size == k]
            members = columns.indices[start[:, None] + np.arange(k)].astype(np.int64)
            one, other = np.triu_indices(k, 1)
            rows.append(members[:, one].ravel())
            cols.append(members[:, other].ravel())
            weights.append(np.full(rows[-1].size, 1 / (k - 1), np.float32))
        return np.concatenate(rows), np.concatenate(cols), np.concatenate(weights)


def sets_of_metabolism(metabolism: Metabolism, genes: GeneIndex) -> list[GeneSets]:
    """Return the genes in the rule of every reaction, and those that a complex needs, by their names."""
    column = metabolism.gene_columns(genes)
    known = np.flatnonzero(column >= 0)
    ones: NDArray[np.float64] = np.ones(known.size)
    place = sparse.csr_array((ones, (column[known], known)), shape=(len(metabolism.genes), len(genes)))
    complexes = sparse.csr_array(metabolism.complex_gene @ place)
    members = np.split(complexes.indices, complexes.indptr[1:-1])
    distinct = {tuple(sorted(genes_of.tolist())): c for c, genes_of in enumerate(members) if genes_of.size}
    names = tuple(
        "+".join(genes.standard.get(genes.names[g], genes.names[g]) for g in needed) for needed in distinct
    )
    rules = metabolism.gpr(genes)
    return [
        GeneSets("reaction", metabolism.reactions, sparse.csr_array(rules.T), "gene rules of the metabolism"),
        GeneSets(
            "complex",
            names,
            sparse.csr_array(complexes[list(distinct.values())].T),
            "gene rules of the metabolism",
        ),
    ]


def sets_of_pairs(
    kind: str, of: Sequence[str], terms: Sequence[str], genes: GeneIndex, source: str
) -> GeneSets:
    """Return the sets that pairs of a gene and a term [r] spell; names of no one gene are counted in the
    source.

    Raises
    ------
    SourceError
        If no name is that of a gene.
    """
    rows, columns, lost = [], [], 0
    number: dict[str, int] = {}
    found: dict[str, int] = {}
    for name, term in zip(of, terms, strict=True):
        if name not in found:
            # Not `find`: it looks through all names for suggestions, for each of thousands of unknown ones.
            positions = genes.find_each(name)
            found[name] = positions[0] if len(positions) == 1 else -1
        if found[name] < 0:
            lost += 1
            continue
        rows.append(found[name])
        columns.append(number.setdefault(term, len(number)))
    if not rows:
        raise SourceError(
            f"{source} names no gene of organism {genes.organism!r} (its first names: "
            f"{', '.join(of[:5]) or 'none'}): use the organism's gene names"
        )
    table = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(genes), len(number))).tocsr()
    table.data[:] = 1
    described = f"{source}; {lost:,} of {len(of):,} rows name no one gene" if lost else source
    return GeneSets(kind, tuple(number), sparse.csr_array(table), described)


def read_gene_sets(path: str | Path, genes: GeneIndex) -> GeneSets:
    """Read sets from the columns ``gene`` and ``term`` of a CSV or Parquet file, one row per pair.

    Raises
    ------
    SourceError
        If the file is missing or unreadable, lacks a column, or names no gene of the organism.
    """
    path = Path(path)
    frame = read_frame(path, "annotations")
    for name in (GENE, TERM):
        if name not in frame.columns:
            held = ", ".join(repr(str(column)) for column in frame.columns)
            raise SourceError(
                f"{str(path)!r} has no column {name!r} (it has {held}): name the columns {GENE} and {TERM}"
            )
    frame = frame.dropna(subset=[GENE, TERM])
    # A gene may be called NA; as a term it stands for none, and would make one set of unrelated genes.
    frame = frame[~frame[TERM].isin(NO_NUMBER)]
    of, terms = (frame[name].astype(str).str.strip().tolist() for name in (GENE, TERM))
    return sets_of_pairs(TERM, of, terms, genes, path.name)
