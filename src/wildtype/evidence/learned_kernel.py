"""`LearnedKernel`: one kernel of genes whose weights say best which genes have similar interaction profiles.

Kernels of single sources (neighbours in a relation, cosines of a feature block) are mixed with learned
weights, and powers of the mixture sharpen it: k = Σ_p c_p (Σ_m w_m K_m)^p, element by element. It is
positive semidefinite, since w, c ≥ 0 (Schur's product theorem). Weights, powers and the penalty of kernel
ridge minimise the error of profiles that are predicted from all other genes.

Legend: n genes · s strains · k sources · r columns of a profile · t targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg, sparse
from torch import Tensor

from wildtype.evidence.completion import RANK, Additive, low_rank, residuals
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.organism.gene_kernels import neighbour_map
from wildtype.organism.similarity import unit_rows
from wildtype.seeds import generator

POWERS = 3
STEPS, RATE = 40, 0.1
"""Of Adam."""
COMPARED = 1000
"""Genes drawn for each step, whose profiles are predicted from one another."""
SMALL = 0.01
"""Sources of less weight are left out."""
BLOCK = 512

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """Weights of a kernel of genes.

    Attributes
    ----------
    source : float32 [k]
        Weight w of each source of `gene_maps`, with sum 1.
    power : float32 [3]
        Weight c of the mixture, its square and its cube, with sum 1.
    ridge : float
        Penalty λ of kernel ridge.
    """

    source: Floats
    power: Floats
    ridge: float

    @classmethod
    def of(cls, similarity: GeneSimilarity, gene: Ints, profile: Floats, *, seed: int = 0) -> LearnedKernel:
        """Learn to predict the profile of every gene from those of all others.

        Adam minimises the squares of `left_out` over softmaxes of w and c and over log λ, on 1,000 genes that
        are drawn anew in each of 40 steps. O(steps · 1,000³).

        Parameters
        ----------
        similarity : GeneSimilarity
            Of the n genes.
        gene : int64 [s]
            Gene of each strain, ascending. Of a gene with several strains the first counts.
        profile : float32 [s, r]
            Interaction profiles.
        """
        maps = gene_maps(similarity)
        k = len(maps)
        gene, first = np.unique(gene, return_index=True)
        profile = profile[first]
        rng = generator(seed, "learned kernel")
        logits = [torch.zeros(size, requires_grad=True) for size in (k, POWERS, 1)]
        optimiser = torch.optim.Adam(logits, lr=RATE)

        def weights() -> tuple[Tensor, Tensor, Tensor]:
            return logits[0].softmax(0), logits[1].softmax(0), logits[2].exp()

        for _ in range(STEPS if k and len(gene) > 1 and profile.any() else 0):
            some = np.sort(rng.choice(len(gene), min(COMPARED, len(gene)), replace=False))
            own = [of[gene[some]] for of in maps.values()]
            inner = torch.stack([torch.from_numpy(_product(of, of)) for of in own])
            target = torch.from_numpy(profile[some])
            source, power, ridge = weights()
            mixed = torch.einsum("k,kij->ij", source, inner)
            kernel = torch.stack([c * mixed ** (p + 1) for p, c in enumerate(power)]).sum(0)
            error = left_out(kernel + ridge * torch.eye(len(some)), target)
            loss = error.square().sum() / target.square().sum().clamp(min=1e-12)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
        w, c, penalty = (x.detach().numpy() for x in weights())
        w = np.where(w >= min(SMALL, w.max(initial=0)), w, np.float32(0))
        return cls(np.asarray(w / max(float(w.sum()), 1e-12), np.float32), c, float(penalty[0]))

    @classmethod
    def of_matrix(cls, similarity: GeneSimilarity, matrix: PairMatrix) -> LearnedKernel:
        """Learn from the low-rank completion of a screen: of measured residuals, few are not 0."""
        residual = residuals(matrix, Additive.of(matrix))
        return cls.of(similarity, matrix.gene, low_rank(residual, matrix.known, RANK).profiles())

    def between(self, similarity: GeneSimilarity, genes: Ints) -> Floats:
        """Return the kernel [n, s] of all genes with some."""
        mixed = np.zeros((similarity.genes, len(genes)), np.float32)
        for weight, of in zip(self.source, gene_maps(similarity).values(), strict=True):
            if weight > 0:
                mixed += weight * _product(of, of[genes])
        out, power = np.zeros_like(mixed), np.ones_like(mixed)
        for c in self.power:
            power *= mixed
            out += c * power
        return out


@dataclass(frozen=True, eq=False)
class ComputedKernel:
    """A learned kernel of all genes with some, computed once for all who ask about these.

    Attributes
    ----------
    genes : int64 [a]
        Ascending.
    values : float32 [n, a]
    ridge : float
        As of the learned kernel.
    """

    genes: Ints
    values: Floats
    ridge: float

    @classmethod
    def of(cls, learned: LearnedKernel, similarity: GeneSimilarity, genes: Ints) -> ComputedKernel:
        """Compute the kernel of all genes with some, which ascend."""
        return cls(genes, learned.between(similarity, genes), learned.ridge)

    def between(self, genes: Ints) -> Floats:
        """Return the kernel [n, s] of all genes with some of those that it was computed for, a copy."""
        return self.values.take(self.places(genes), axis=1)

    def places(self, genes: Ints) -> Ints:
        """Return the columns [s] of some genes."""
        return np.searchsorted(self.genes, genes)

    def strains(self, gene: Ints) -> StrainKernel:
        """Return the kernel of strains with these genes [s]."""
        return StrainKernel(self, gene)


@dataclass(frozen=True, eq=False)
class StrainKernel:
    """A computed kernel of strains, read cell by cell: a copy for them would be as large as their screen.

    Attributes
    ----------
    computed : ComputedKernel
    gene : int64 [s]
        Gene of each strain.
    """

    computed: ComputedKernel
    gene: Ints

    def __getitem__(self, strains: Ints | slice) -> Floats:
        """Return the kernel [b, s] of some strains with all."""
        return self.computed.values[np.ix_(self.gene[strains], self.computed.places(self.gene))]

    def diagonal(self) -> Floats:
        """Return the kernel [s] of every strain with itself."""
        return self.computed.values[self.gene, self.computed.places(self.gene)]

    def predict(self, target: Floats) -> Floats:
        """Return what kernel ridge says of targets of all genes [n, t] from those of the strains [s, t]."""
        values = torch.from_numpy(self.computed.values)
        # Strains of one gene share its column.
        weights = torch.zeros(values.shape[1], target.shape[1])
        if len(self.gene):
            among = self[:]
            np.einsum("ii->i", among)[:] += np.float32(self.computed.ridge)
            # In its own place: it is as large as the screen. Transposed, since LAPACK goes by columns.
            root = linalg.cho_factor(among.T, lower=True, overwrite_a=True, check_finite=False)
            solved = torch.from_numpy(linalg.cho_solve(root, target, check_finite=False))
            weights.index_add_(0, torch.from_numpy(self.computed.places(self.gene)), solved)
        return np.asarray((values @ weights).numpy())


def left_out(regularised: Tensor, target: Tensor) -> Tensor:
    """Return the error [s, t] of kernel ridge for every gene, fitted to the targets [s, t] of all others.

    With A = K + λI [s, s] it is [A⁻¹Y]_i / [A⁻¹]_ii (Golub, Heath & Wahba, Technometrics 21, 1979).
    """
    inverse: Tensor = torch.linalg.inv(regularised)
    return (inverse @ target) / inverse.diagonal()[:, None]


def gene_maps(similarity: GeneSimilarity) -> dict[str, sparse.csr_array]:
    """Return the feature map [n, ·] of every source, with unit or zero rows.

    A relation gives the cosine of neighbours (`gene_kernels.neighbour_map`), a feature block that of its
    columns. Spectral positions in a relation are left out, since the relation stands beside them.
    """
    maps: dict[str, sparse.csr_array] = {}
    for r, name in enumerate(similarity.relations):
        maps[name] = neighbour_map(similarity.adjacency(r)).astype(np.float32)
    for p, name in enumerate(similarity.parts):
        if not name.startswith("graph "):
            columns = similarity.unit[:, similarity.cuts[p] : similarity.cuts[p + 1]]
            maps[name] = sparse.csr_array(unit_rows(columns))
    return maps


def _product(left: sparse.csr_array, right: sparse.csr_array) -> Floats:
    """Return left · rightᵀ, dense; in blocks, since the product of two sparse maps is nearly dense."""
    out = np.empty((left.shape[0], right.shape[0]), np.float32)
    turned = right.T.tocsc()
    for start in range(0, right.shape[0], BLOCK):
        out[:, start : start + BLOCK] = left @ turned[:, start : start + BLOCK].toarray()
    return out
