"""`MutantKernel`: the covariance of mutants, from how alike their genes are.

Genes are compared by every source s (a relation, a feature block, the traits of genes) with a kernel k_s. An
item is a gene and what is done to it; items of other kinds count half, and doses in between. With weights
a, b, c that sum to 1, the covariance of mutants S and T is a sum of seven positive semidefinite parts,

    effects    Σ_{i∈S, j∈T} Σ_s a_s k_s(i, j)              alike genes have alike effects
    own        |S ∩ T|                                     each gene has an effect of its own
    products   Σ_{i<i'∈S} Σ_{j≠j'∈T} k(i, j) k(i', j')     alike pairs interact alike, k = Σ_s b_s k_s
    related    Σ_s c_s r_s(S) r_s(T)                       r_s: how alike the genes of one mutant are, summed
    near       exp(−½ Σ_s c_s (r_s(S) − r_s(T))²)          over its pairs, standardised over training rows
    labels       x(S)·x(T) / f                             x: label columns (`label_columns`), where training
    like labels  exp(−|x(S) − x(T)|² / 2f)                 rows have two genes or more

each with an amplitude, and noise. Mutants of different conditions count half, as kinds do (Schur's product
theorem keeps all this positive semidefinite).

Legend: n genes · m training rows and t their distinct items · b mutants and q their distinct items · e
perturbations · s sources · f label columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.evidence.learned_kernel import gene_maps
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable
from wildtype.nn.forest import load_sizes

PARTS = ("effects", "own", "products", "related", "near", "labels", "like labels")
START = (-2.0, -1.5, -4.0, -4.0, -4.0, -4.0, -4.0, -0.3)
"""Logarithms of the amplitudes of parts and of the noise, for labels of variance 1: what a few hundred rows
say of most screens. Interactions, and labels of other mutants, count once training labels speak for them."""
OTHER = 0.5
"""What a pair of items of different kinds, or of mutants of different conditions, counts."""
WEIGHTS = ("effects", "products", "related")
FLAT = 1e-6
DENSE = 0.2
"""Share of entries that are not 0 from which on a map of genes is a plain matrix."""
LEVEL = 10.0
"""Variance of the level of all rows: it is not known beforehand."""


class GeneSources:
    """Kernels of genes by every source.

    Parameters
    ----------
    similarity : GeneSimilarity
        Of the n genes. Rows of genes that a source does not know are zero.
    """

    def __init__(self, similarity: GeneSimilarity) -> None:
        self.similarity = similarity
        maps = [of.astype(np.float64) for of in gene_maps(similarity).values()]
        # Products of feature blocks, few of whose entries are 0, are faster as those of plain matrices.
        self.maps = [of.toarray() if of.nnz > DENSE * np.prod(of.shape) else of for of in maps]
        self.traits = np.nan_to_num(similarity.traits).astype(np.float64)

    def __len__(self) -> int:
        return len(self.maps) + 2 * bool(self.traits.shape[1])

    def between(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> Tensor:
        """Return the kernels of genes with others: float64 [s, l, r]."""
        products = (of[left] @ of[right].T for of in self.maps)
        found = [x if isinstance(x, np.ndarray) else x.toarray() for x in products]
        if width := self.traits.shape[1]:
            x, y = self.traits[left], self.traits[right]
            inner = x @ y.T / width
            squares = (x**2).mean(1)[:, None] + (y**2).mean(1)[None, :] - 2 * inner
            found += [inner, np.exp(-np.maximum(squares, 0) / 2)]
        return torch.from_numpy(np.stack(found) if found else np.zeros((0, len(left), len(right))))


@dataclass(frozen=True, eq=False)
class Rows:
    """Mutants as the covariance sees them.

    Attributes
    ----------
    gene, kind, dose : int64 [t], uint8 [t], float32 [t]
        The distinct items of the mutants; the dose is NaN without one.
    item, row : int64 [e]
        Item and mutant of each perturbation, mutants one after the other.
    condition : int64 [b]
    """

    gene: Tensor
    kind: Tensor
    dose: Tensor
    item: Tensor
    row: Tensor
    condition: Tensor

    @classmethod
    def of(cls, gene: Tensor, kind: Tensor, dose: Tensor, row: Tensor, condition: Tensor) -> Rows:
        """Return mutants by the gene, kind, dose and mutant of each perturbation [e]."""
        # NaN is unlike itself: whether there is a dose is a column of its own.
        none, amount = np.isnan(dose.numpy()), np.nan_to_num(dose.numpy())
        whole = np.stack([gene.numpy(), kind.numpy(), none, amount], axis=1)
        _, first, item = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        at = torch.from_numpy(first)
        return cls(gene[at], kind[at], dose[at], torch.from_numpy(item.reshape(-1)), row, condition)

    def __len__(self) -> int:
        return len(self.condition)

    def sum(self, x: Tensor) -> Tensor:
        """Return sums [b, ·] of rows [t, ·] over the items of every mutant."""
        if len(self) and int(self.order.min()) == int(self.order.max()) == 2:
            # Pairs, whose items stand one after the other, are most of what is asked: several times faster.
            return x[self.item[::2]] + x[self.item[1::2]]
        return x.new_zeros(len(self), x.shape[1]).index_add(0, self.row, x[self.item])

    def take(self, rows: Tensor) -> Rows:
        """Return some mutants [r], ascending."""
        place = torch.full((len(self),), -1, dtype=torch.int64)
        place[rows] = torch.arange(len(rows))
        kept = place[self.row] >= 0
        item = self.item[kept]
        row = place[self.row[kept]]
        return Rows.of(self.gene[item], self.kind[item], self.dose[item], row, self.condition[rows])

    def within(self, sources: GeneSources) -> Tensor:
        """Return r_s [b, s]: how alike the genes of each mutant are, summed over its pairs."""
        out = torch.zeros(len(self), len(sources), dtype=torch.float64)
        if not len(self.row) or not len(sources):
            return out
        gene = self.gene[self.item]
        # Perturbations are in the order of mutants: those of one mutant stand so many places apart at most.
        for lag in range(1, int(torch.bincount(self.row).max())):
            first = torch.arange(len(self.row) - lag)
            first = first[self.row[first] == self.row[first + lag]]
            alike = _alike(sources, gene[first].numpy(), gene[first + lag].numpy())
            out.index_add_(0, self.row[first], alike)
        return out

    def table(self, value: Tensor | None = None) -> MutantTable:
        """Return the mutants as a table, with labels [b]."""
        offsets = torch.searchsorted(self.row, torch.arange(len(self) + 1))
        return MutantTable.build(
            self.gene[self.item].numpy(),
            offsets.numpy(),
            kind=self.kind[self.item].numpy(),
            condition=self.condition.numpy(),
            value=None if value is None else value.numpy(),
        )

    @property
    def order(self) -> Tensor:
        """Number of perturbations of every mutant [b]."""
        return torch.bincount(self.row, minlength=len(self))

    @property
    def paired(self) -> bool:
        """Whether any mutant has two genes."""
        return len(self.row) > 0 and int(self.order.max()) > 1


def _alike(sources: GeneSources, left: NDArray[np.int64], right: NDArray[np.int64]) -> Tensor:
    """Return the kernels of pairs of genes: float64 [pairs, s]."""
    found = [
        np.einsum("ld,ld->l", of[left], of[right])
        if isinstance(of, np.ndarray)
        else np.asarray(of[left].multiply(of[right]).sum(axis=1)).reshape(-1)
        for of in sources.maps
    ]
    if width := sources.traits.shape[1]:
        x, y = sources.traits[left], sources.traits[right]
        found += [(x * y).sum(1) / width, np.exp(-((x - y) ** 2).mean(1) / 2)]
    return torch.from_numpy(np.stack(found, axis=1).astype(np.float64))


class MutantKernel(nn.Module):
    """Weights and amplitudes of the covariance, in buffers.

    Parameters
    ----------
    sources : int
        Number s of sources; those that are loaded take its place.

    Attributes
    ----------
    effects, products, related : float64 [s]
        Logits of the weights of sources.
    amplitude : float64 [8]
        Logarithms of the amplitudes of the parts and of the noise.
    centre, scale : float64 [s]
        Mean and standard deviation of r over training rows.
    dose_scale : float64
        Standard deviation of the doses of training items; 1 where they are equal.
    paired : bool
        Whether a training row has two genes: without one nothing is known of the last three parts.
    """

    effects: Tensor
    products: Tensor
    related: Tensor
    amplitude: Tensor
    centre: Tensor
    scale: Tensor
    paired: Tensor
    dose_scale: Tensor

    def __init__(self, sources: int = 0) -> None:
        super().__init__()
        for name in (*WEIGHTS, "centre"):
            self.register_buffer(name, torch.zeros(sources, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(sources, dtype=torch.float64))
        self.register_buffer("amplitude", torch.tensor(START, dtype=torch.float64))
        self.register_buffer("paired", torch.tensor(False))
        self.register_buffer("dose_scale", torch.tensor(1.0, dtype=torch.float64))

    def standardise(self, mutants: Described) -> None:
        """Take scales of r and of doses from training rows; constants are left as they are."""
        self.paired = torch.tensor(mutants.rows.paired)
        doses = mutants.rows.dose[~mutants.rows.dose.isnan()].double()
        if len(doses) and float(doses.std(unbiased=False)) > FLAT:
            self.dose_scale = doses.std(unbiased=False)
        self.centre = mutants.within.mean(0)
        spread = mutants.within.std(0, unbiased=False)
        self.scale = torch.where(spread > FLAT, spread, 1.0)

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)

    @property
    def noise(self) -> Tensor:
        """Variance of a label around its mutant's value."""
        return self.amplitude[-1].exp() + 1e-5

    def penalty(self) -> Tensor:
        """Return minus the logarithm of the prior of weights and amplitudes, but for a constant.

        Without it as many weights as sources follow the noise of a few hundred labels.
        """
        out = (self.amplitude - torch.tensor(START, dtype=torch.float64)).square().sum()
        for logits in (self.effects, self.products, self.related):
            if len(logits):
                out = out + (logits - logits.mean()).square().sum()
        return out

    def forward(self, left: Described, right: Described, alike: Tensor) -> Tensor:
        """Return the covariance [b, m] of the values of mutants, without noise.

        Parameters
        ----------
        left, right : Described
            Of b and m mutants.
        alike : float64 [s, q, t]
            Kernels of the items of ``left`` with those of ``right`` (`between`).
        """
        return self.covariance(left, right, self.mixed(alike))

    def mixed(self, alike: Tensor) -> tuple[Tensor, ...]:
        """Return Σ_s a_s k_s and, where training rows have two genes, Σ_s b_s k_s of kernels [s, …]."""
        if not len(alike):
            return ()
        weights = (self.effects, self.products) if self.paired else (self.effects,)
        return tuple(torch.einsum("s,s...->...", of.softmax(0), alike) for of in weights)

    def sums(self, sources: GeneSources) -> int:
        """Return how many sums `mixed` gives."""
        return min(len(sources), 1) * (2 if self.paired else 1)

    def covariance(self, left: Described, right: Described, mixed: Sequence[Tensor]) -> Tensor:
        """Return the covariance [b, m], as `forward`, from the sums of kernels [q, t] that `mixed` gives."""
        kinds = self._treated(left.rows, right.rows)
        same = (left.rows.gene[:, None] == right.rows.gene[None, :]) * kinds
        amplitude = self.amplitude.exp()
        out = amplitude[1] * _sums(left.rows, right.rows, same)
        if mixed:
            out = out + amplitude[0] * _sums(left.rows, right.rows, mixed[0] * kinds)
        if len(mixed) > 1:
            out = out + amplitude[2] * _products(left.rows, right.rows, mixed[1] * kinds)
            inner, squares = _compared(self._related(left), self._related(right))
            out = out + amplitude[3] * inner + amplitude[4] * torch.exp(-squares / 2)
        if f := left.columns.shape[1]:
            inner, squares = _compared(left.columns / f**0.5, right.columns / f**0.5)
            out = out + amplitude[5] * inner + amplitude[6] * torch.exp(-squares / 2)
        return out * _shared(left.rows.condition, right.rows.condition) + LEVEL

    def variances(self, mutants: Described, sources: GeneSources) -> Tensor:
        """Return the variance [b] of every mutant: the diagonal of the covariance; O(b o²) for o genes."""
        out, order = torch.zeros(len(mutants.rows), dtype=torch.float64), mutants.rows.order
        for count in np.unique(order.numpy()).tolist():
            rows = torch.nonzero(order == count)[:, 0]
            out[rows] = self._variances(mutants, rows, count, sources)
        return out

    def _variances(self, mutants: Described, rows: Tensor, order: int, sources: GeneSources) -> Tensor:
        """Return the variances [r] of mutants of so many genes."""
        all_rows, amplitude = mutants.rows, self.amplitude.exp()
        item = all_rows.item[torch.isin(all_rows.row, rows)].reshape(len(rows), order)
        left, right = (x.reshape(-1) for x in (item.repeat_interleave(order, 1), item.repeat(1, order)))
        kinds = self._counted(*(x[at] for x in (all_rows.kind, all_rows.dose) for at in (left, right)))
        gene = all_rows.gene
        square = (len(rows), order, order)
        out = amplitude[1] * ((gene[left] == gene[right]) * kinds).reshape(square).sum((1, 2))
        alike = _alike(sources, gene[left].numpy(), gene[right].numpy()).T
        mixed = [(of * kinds).reshape(square) for of in self.mixed(alike)]
        if mixed:
            out = out + amplitude[0] * mixed[0].sum((1, 2))
        if len(mixed) > 1:
            whole, one, both = mixed[1].sum((1, 2)), mixed[1].sum(2).square(), mixed[1].square()
            out = out + amplitude[2] * (whole**2 - 2 * one.sum(1) + both.sum((1, 2))) / 2
            out = out + amplitude[3] * self._related(mutants)[rows].square().sum(1) + amplitude[4]
        if f := mutants.columns.shape[1]:
            out = out + amplitude[5] * mutants.columns[rows].square().sum(1) / f + amplitude[6]
        return out + LEVEL

    def _related(self, mutants: Described) -> Tensor:
        """Return what the covariance compares of r [b, s]."""
        return self.related.softmax(0).sqrt() * (mutants.within - self.centre) / self.scale

    def _treated(self, left: Rows, right: Rows) -> Tensor:
        """Return what pairs of items [q, t] count by what is done to the gene."""
        sides = left.kind[:, None], right.kind[None, :], left.dose[:, None], right.dose[None, :]
        return self._counted(*sides)

    def _counted(self, kind: Tensor, other_kind: Tensor, dose: Tensor, other_dose: Tensor) -> Tensor:
        """Return what items of these kinds and doses count for one another."""
        if dose.isnan().all() and other_dose.isnan().all():
            return OTHER + (1 - OTHER) * (kind == other_kind).double()
        x, y = dose.double(), other_dose.double()
        near = torch.exp(-(((x - y) / self.dose_scale) ** 2) / 2)
        near = torch.where(x.isnan() & y.isnan(), 1.0, near).nan_to_num(0.0)
        return OTHER + (1 - OTHER) * (kind == other_kind) * near

    def of_labels(self, rows: Described, alike: Tensor) -> Tensor:
        """Return the covariance [m, m] of labels: of values, and noise."""
        return self.forward(rows, rows, alike) + self.noise * torch.eye(len(rows.rows), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Described:
    """Mutants with r [b, s] (`Rows.within`), and standardised label columns [b, f]."""

    rows: Rows
    within: Tensor
    columns: Tensor

    def take(self, rows: Tensor) -> Described:
        """Return some mutants [r], ascending."""
        return Described(self.rows.take(rows), self.within[rows], self.columns[rows])


def describe(rows: Rows, sources: GeneSources, columns: Tensor | None = None) -> Described:
    """Return mutants with how alike their genes are, and their label columns (none if not given)."""
    nothing = torch.zeros(len(rows), 0, dtype=torch.float64)
    return Described(rows, rows.within(sources), nothing if columns is None else columns)


def between(sources: GeneSources, left: Rows, right: Rows) -> Tensor:
    """Return the kernels of the items of mutants with those of others: float64 [s, q, t]."""
    return sources.between(left.gene.numpy(), right.gene.numpy())


def _compared(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return inner products and squared distances [l, r] of rows [l, ·] and [r, ·]."""
    inner = x @ y.T
    squares = x.square().sum(1)[:, None] + y.square().sum(1)[None, :] - 2 * inner
    return inner, squares.clamp(min=0)


def _shared(left: Tensor, right: Tensor) -> Tensor:
    """Return 1 where numbers are equal, and less elsewhere [l, r]."""
    return torch.where(left[:, None] == right[None, :], 1.0, OTHER).double()


def _sums(left: Rows, right: Rows, of: Tensor) -> Tensor:
    """Return sums [b, m] over all pairs of items of numbers [q, t]."""
    return right.sum(left.sum(of).T).T


def _products(left: Rows, right: Rows, of: Tensor) -> Tensor:
    """Return Σ_{i<i'} Σ_{j≠j'} k(i, j) k(i', j') [b, m] of numbers k [q, t]; O(q m + b t + b m).

    (Σ_ij k)² counts pairs with i = i' or j = j', too: they are taken off.
    """
    by_item = right.sum(of.T).T  # [q, m]
    by_row = left.sum(of)  # [b, t]
    whole = left.sum(by_item)
    same_left = left.sum(by_item**2)
    same_right = right.sum((by_row**2).T).T
    both = _sums(left, right, of**2)
    return (whole**2 - same_left - same_right + both) / 2
