"""Units: tokens of an organism that stand for more, or for other things, than one gene.

A guide against an operon silences all its genes, and a double-stranded RNA may hit two paralogues. Such an
organism has its units as tokens, and `Units` says which genes each is made of (`wildtype.organism.in_units`
makes it from an organism of genes).

Legend: m genes · n tokens (units, and the genes that are in no unit).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError, UnknownGeneError
from wildtype.organism.genes import IN_NAMES, GeneIndex

JOINED = ","
"""Between the genes of a unit, where a table writes them as one name."""


@dataclass(frozen=True, eq=False)
class Units:
    """Which of m genes each of n tokens is made of.

    Attributes
    ----------
    genes : GeneIndex
        The m genes.
    table : csr [n, m] of float32
        1 where a gene belongs to a token; every token has at least one gene. A gene may belong to several.
    """

    genes: GeneIndex
    table: sparse.csr_array

    def __post_init__(self) -> None:
        if self.table.shape[1] != len(self.genes):
            raise DatasetError(
                f"units are over {self.table.shape[1]} genes, their index has {len(self.genes)}"
            )
        if (np.diff(self.table.indptr) == 0).any():
            raise DatasetError("a unit has no gene: name at least one gene of every unit")

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def members(self, token: int) -> tuple[str, ...]:
        """Return the names of the genes that a token is made of."""
        here = self.table.indices[self.table.indptr[token] : self.table.indptr[token + 1]]
        return tuple(self.genes.names[gene] for gene in here)

    @cached_property
    def sharing(self) -> sparse.csr_array:
        """Pairs of different tokens with a gene in common: csr [n, n], symmetric."""
        common = sparse.coo_array(self.table @ self.table.T)
        rows, columns = common.coords
        apart = rows != columns
        ones = np.ones(int(apart.sum()), np.float32)
        return sparse.csr_array((ones, (rows[apart], columns[apart])), shape=common.shape)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Number of the group of every token [n]; tokens that share a gene, also by a chain of others, are in
        one group. A token is unseen only if its whole group is.
        """
        return sparse.csgraph.connected_components(self.sharing, directed=False)[1].astype(np.int64)

    def overlapping(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which pairs of tokens [k] share a gene or are one token: no pair of perturbations."""
        shared = np.asarray(self.sharing[first, second]).reshape(-1) > 0
        return np.asarray(shared | (first == second))

    def find(self, names: Sequence[str]) -> int:
        """Return the token that is made of exactly these genes, by any of their names.

        Raises
        ------
        UnknownGeneError
            If a name is not known, or no token has just these genes.
        AmbiguousGeneError
            If a name may mean several genes.
        """
        wanted = tuple(sorted({self.genes.find(name) for name in names}))
        token = self._by_members.get(wanted)
        if token is None:
            holding = [self._name_of(t) for t in self._holding(wanted)]
            near = f"; units with all of them: {', '.join(holding[:5])}" if holding else ""
            raise UnknownGeneError(
                f"no unit of organism {self.genes.organism!r} is made of just {JOINED.join(names)}{near}"
            )
        return token

    @cached_property
    def _by_members(self) -> dict[tuple[int, ...], int]:
        split = np.split(self.table.indices, self.table.indptr[1:-1])
        return {tuple(sorted(genes.tolist())): token for token, genes in enumerate(split)}

    def _holding(self, genes: Iterable[int]) -> list[int]:
        found = [set(np.flatnonzero(self.table[:, [gene]].toarray()[:, 0]).tolist()) for gene in genes]
        return sorted(set.intersection(*found))

    def _name_of(self, token: int) -> str:
        return IN_NAMES.join(self.members(token))

    def restrict(self, positions: NDArray[np.int64]) -> Units:
        """Return the units at ``positions`` [M], in that order; the genes stay."""
        return Units(self.genes, sparse.csr_array(self.table[positions]))

    def extended(self, names: Iterable[str]) -> Units:
        """Return the units with genes that were added to the organism, each a token of its own."""
        added = list(names)
        block = sparse.block_diag([self.table, sparse.eye_array(len(added), dtype=np.float32)], format="csr")
        return Units(self.genes.extended(added), sparse.csr_array(block))
