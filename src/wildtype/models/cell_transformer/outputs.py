"""`Outputs`: from the last hidden layer of the head to each phenotype.

Legend: b mutants · w width of what is known of a mutant · d width of a gene's state · p phenotypes ·
g members of a group · r rank · n genes · Σk perturbed genes of all mutants.

    scalar, class      y = W x + c                          (of a class, y is the logit of its probability)
    member of a group  y = V U x + c                        (U [r, w] is shared by the members, V [g, r])
    number per gene    y_j = (A x)·(C h_j) + a·x + c·h_j + c₀, and + o_m for the genes of S, by what was done

The last is bilinear in mutant and gene state: its two factors [b, r] and [n, r] are what is kept, so that
memory is O((b + n) r) and [b, n] exists only where it is asked for. It has no parameter of any one gene: it
answers for genes that training never saw. o_m is there because a deleted gene makes no transcript of its own,
whatever its function is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wildtype.models.interface import GeneProfile, Output, Prediction, WildType
from wildtype.mutants import Kind
from wildtype.mutants.batch import MutantBatch


class GeneOutput(nn.Module):
    """One number per gene."""

    def __init__(self, width_in: int, gene_width: int, rank: int) -> None:
        super().__init__()
        self.of_mutant = nn.Linear(width_in, rank + 1)  # the last column is a·x + c₀
        self.of_gene = nn.Linear(gene_width, rank + 1, bias=False)  # the last column is c·h
        self.own = nn.Parameter(torch.zeros(len(Kind)))
        # Keeps the variance of the inner product independent of the rank.
        self.scale = rank**-0.5

    def forward(self, x: Tensor, wild_type: WildType, mutants: MutantBatch) -> GeneProfile:
        """Return the factors of [b, n]."""
        left, right = self.of_mutant(x), self.of_gene(wild_type.genes)
        ones_left, ones_right = torch.ones_like(left[:, :1]), torch.ones_like(right[:, :1])
        return GeneProfile(
            # [A x ‖ a·x + c₀ ‖ 1] · [C h ‖ 1 ‖ c·h]: the two additive terms are further columns of the
            # factors.
            torch.cat([left[:, :-1] * self.scale, left[:, -1:], ones_left], 1),
            torch.cat([right[:, :-1], ones_right, right[:, -1:]], 1),
            self.own.index_select(0, mutants.kind.long()),
            mutants.gene,
            mutants.offsets,
        )


class Outputs(nn.Module):
    """All phenotypes of a batch.

    Parameters
    ----------
    width_in : int
        Width of what is known of a mutant.
    phenotypes : sequence of Output
        The p phenotypes, in order.
    gene_width : int
        Width of a gene's state; matters where there is a number per gene.
    rank : int
        Of groups and of numbers per gene; a group of fewer members takes their number.
    """

    place: Tensor

    def __init__(
        self, width_in: int, phenotypes: Sequence[Output], *, gene_width: int, rank: int = 32
    ) -> None:
        super().__init__()
        members: dict[str, list[int]] = {}
        alone: list[int] = []
        self.per_gene = [i for i, output in enumerate(phenotypes) if output.form == "gene"]
        for i, output in enumerate(phenotypes):
            if output.form != "gene":
                # Outputs of one group share U, so they are computed together, wherever they stand in the
                # list.
                (members.setdefault(output.group, []) if output.group else alone).append(i)
        self.weight, self.bias = None, None
        if alone:
            linear = nn.Linear(width_in, len(alone))
            self.weight, self.bias = linear.weight, linear.bias
        self.groups = nn.ModuleList(
            nn.Sequential(
                # No bias before V: V times a constant is part of c.
                nn.Linear(width_in, min(rank, len(at)), bias=False),
                nn.Linear(min(rank, len(at)), len(at)),
            )
            for at in members.values()
        )
        self.genes = nn.ModuleList(GeneOutput(width_in, gene_width, rank) for _ in self.per_gene)
        order = [*alone, *(i for at in members.values() for i in at), *self.per_gene]
        place = torch.empty(len(order), dtype=torch.int64)
        # The inverse permutation: heads compute group by group, columns return in the order of phenotypes.
        place[order] = torch.arange(len(order))
        self.in_order = order == sorted(order)
        self.register_buffer("place", place, persistent=False)

    def start_at_zero(self) -> None:
        """Set the weights of phenotypes that are one number such that all of these are 0."""
        last = [self.weight, self.bias]
        for group in self.groups:
            assert isinstance(group, nn.Sequential)
            last += group[-1].parameters()
        for weight in last:
            if weight is not None:
                nn.init.zeros_(weight)

    def forward(self, x: Tensor, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return what x [b, w] says of every phenotype."""
        profiles = {p: head(x, wild_type, mutants) for p, head in zip(self.per_gene, self.genes, strict=True)}
        return Prediction(self.columns(x), profiles)

    def columns(self, x: Tensor) -> Tensor:
        """Return what x [b, w] says of phenotypes that are one number [b, p]; 0 of the others."""
        parts = []
        if self.weight is not None:
            parts.append(nn.functional.linear(x, self.weight, self.bias))
        parts += [head(x) for head in self.groups]
        if self.per_gene:
            parts.append(x.new_zeros(len(x), len(self.per_gene)))
        mean = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        if not self.in_order:
            assert isinstance(self.place, Tensor)
            mean = mean.index_select(1, self.place)
        return mean
