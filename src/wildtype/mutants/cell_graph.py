"""`CellGraph`: the one wiring that all mutants share, over genes, reactions and metabolites.

Legend: n genes · r reactions · m metabolites · e edges of a relation · B mutants.

A mutant is never a separate graph: it is this graph and the nodes that it keeps. Genes are those of the gene
index; a gene that only the metabolism lists has no node and is always present.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import ConfigError
from wildtype.organism import Organism
from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.relations import Relation

Ints = NDArray[np.int64]
RULES = ("gpr", "all")


@dataclass(frozen=True, eq=False)
class CellGraph:
    """Gene relations and, optionally, metabolism as one graph with three kinds of nodes.

    Attributes
    ----------
    genes : GeneIndex
        The n genes.
    relations : dict of str to Relation
        Gene graphs over them, in order; undirected ones hold both directions.
    metabolism : Metabolism or None
        Reactions, metabolites and gene rules.
    rule : str
        ``gpr``: a reaction is alive while its gene rule holds; ``all``: while all genes that the rule lists
        are there.
    foreign : bool [n] or None
        Genes that only mutants have that name them; None: there are none.
    """

    genes: GeneIndex
    relations: Mapping[str, Relation]
    metabolism: Metabolism | None = None
    rule: str = "gpr"
    foreign: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        organism: Organism,
        relations: Iterable[str] | None = None,
        *,
        metabolism: bool = False,
        rule: str = "gpr",
    ) -> CellGraph:
        """Return the wiring of an organism.

        Parameters
        ----------
        organism : Organism
            The wild type.
        relations : iterable of str, optional
            Which relations; all that have edges if not given.
        metabolism : bool
            Whether reactions and metabolites belong to it.
        rule : {"gpr", "all"}
            How gene rules are read.

        Raises
        ------
        DatasetError
            If a relation does not exist.
        ConfigError
            If there is no metabolism, or ``rule`` is unknown.
        """
        names = [n for n, r in organism.graphs.items() if r.nnz] if relations is None else list(relations)
        if metabolism and organism.metabolism is None:
            raise ConfigError(f"organism {organism.name!r} has no metabolism: leave it out")
        if rule not in RULES:
            raise ConfigError(f"{rule!r} is not a way to read gene rules; choose {' or '.join(RULES)}")
        return cls(
            organism.genes,
            {name: organism.graphs[name] for name in names},
            organism.metabolism if metabolism else None,
            rule,
            organism.foreign,
        )

    @property
    def n(self) -> int:
        """Number of genes."""
        return len(self.genes)

    @property
    def edges(self) -> dict[str, int]:
        """Number of stored edges of every relation."""
        return {name: relation.nnz for name, relation in self.relations.items()}

    @cached_property
    def union(self) -> sparse.csr_array:
        """Pattern of all relations together, in both directions [n, n], bool: who is whose neighbour."""
        total = sparse.csr_array((self.n, self.n), dtype=np.int64)
        for relation in self.relations.values():
            pattern = relation.adjacency.astype(bool).astype(np.int64)
            total = total + pattern + pattern.T
        return _csr(total, bool)

    @cached_property
    def gpr(self) -> sparse.csr_array:
        """1 where a rule lists a gene, [r, n]: the gene–reaction edges; [0, n] without metabolism."""
        if self.metabolism is None:
            return _csr((0, self.n), np.float32)
        return _csr(self.metabolism.gpr(self.genes), np.float32)

    @cached_property
    def stoichiometry(self) -> sparse.csr_array:
        """Coefficients [m, r], negative where consumed: the reaction–metabolite edges; [0, 0] without."""
        if self.metabolism is None:
            return _csr((0, 0), np.float32)
        return _csr(self.metabolism.stoichiometry, np.float32)

    def dead_reactions(self, gene: Ints, row: Ints, rows: int) -> sparse.csr_array:
        """Return the reactions that each of B mutants loses, bool csr [B, r].

        Parameters
        ----------
        gene, row : int64 [e]
            Mutant ``row[i]`` lacks gene ``gene[i]`` of the gene index; each pair once. A gene in no
            rule takes no reaction away.
        rows : int
            B.
        """
        if self.metabolism is None:
            return _csr((rows, 0), bool)
        # A gene outside every rule can remove no reaction.
        column = self._rule_column[gene]
        known = column >= 0
        return self.metabolism.dead_without(row[known], column[known], rows, rule=self.rule)

    @cached_property
    def _rule_column(self) -> Ints:
        return self.metabolism.gene_columns(self.genes) if self.metabolism else np.full(self.n, -1, np.int64)


def _csr(matrix: Any, dtype: Any) -> sparse.csr_array:
    """Return a sparse matrix, or an empty one of a shape, as csr with sorted indices."""
    out = sparse.csr_array(matrix, dtype=dtype)
    out.sort_indices()
    return out
