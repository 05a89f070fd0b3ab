"""Which genes lie outside a mutant's neighbourhood, for graphs cut to some hops around the perturbed genes.

Legend: b mutants · n genes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.representations.reach import reach, unpack
from wildtype.nn.sparse import SparseOperator


class Neighbourhoods:
    """Neighbourhoods in the union of some relations, in both directions, as `NeighborSubgraph` has them.

    Parameters
    ----------
    relations : sequence of SparseOperator [n, n]
        Whose edges are walked.
    """

    def __init__(self, relations: Sequence[SparseOperator]) -> None:
        self.relations = tuple(relations)
        n = self.relations[0].shape[0]
        rows, cols = (
            torch.cat(ends).cpu().numpy() for ends in zip(*(op.edges() for op in relations), strict=True)
        )
        pattern = sparse.csr_array((np.ones(len(rows), np.int64), (rows, cols)), shape=(n, n))
        self.union = sparse.csr_array(pattern + pattern.T)

    def fits(self, relations: Sequence[SparseOperator]) -> bool:
        """Whether these are the very relations that it was made of."""
        return len(relations) == len(self.relations) and all(map(operator.is_, relations, self.relations))

    def outside(self, mutants: MutantBatch, hops: int) -> Tensor:
        """Return the genes further than ``hops`` edges from every perturbed gene of a mutant, bool [b, n].

        Perturbed genes of every kind are centres; of a mutant without perturbed genes all are outside.
        """
        gene, offsets = mutants.gene.numpy(force=True), mutants.offsets.numpy(force=True)
        near = unpack(reach(self.union, gene, offsets, hops), len(mutants))
        return torch.from_numpy(~near.T).to(mutants.gene.device)
