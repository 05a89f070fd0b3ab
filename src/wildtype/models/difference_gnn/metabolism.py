"""Reactions and metabolites as further nodes: bipartite masked GINs, and their pooled loss in a mutant.

Legend: n genes · r reactions · m metabolites · c complexes · e entries of the stoichiometry · d width ·
b mutants · T mutants of a tile.

In every layer reactions receive from the genes of their rules and from their metabolites, metabolites from
their reactions. A reaction is there while its gene rule holds; metabolites always are. Genes receive nothing
from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.layers import AttentionalPooling, RelationGIN, neighbour_sums
from wildtype.models.interface import MetabolismTensors
from wildtype.nn.sparse import SparseOperator


class MetabolicStates(NamedTuple):
    """States of reactions [T, r, d] (zero where dead) and of metabolites [T, m, d]."""

    reactions: Tensor
    metabolites: Tensor


@dataclass(frozen=True, slots=True)
class Wiring:
    """The metabolism as the layers use it.

    Attributes
    ----------
    complexes, isozymes, gpr : SparseOperator
        As in `MetabolismTensors`.
    metabolite, reaction : int64 [e]
        Ends of every entry of the stoichiometry.
    coefficient : float [e]
        Its value.
    """

    complexes: SparseOperator
    isozymes: SparseOperator
    gpr: SparseOperator
    metabolite: Tensor
    reaction: Tensor
    coefficient: Tensor

    @classmethod
    def of(cls, metabolism: MetabolismTensors) -> Wiring:
        """Return the wiring of a metabolism."""
        ends = metabolism.stoichiometry.edges()
        values = metabolism.stoichiometry.values
        return cls(metabolism.complexes, metabolism.isozymes, metabolism.gpr, *ends, values)

    def dead(self, gone: Tensor) -> Tensor:
        """Reactions whose rule fails, bool [b, r], for removed genes bool [b, n]: two products for a batch.

        A complex is broken when it lacks a gene, a reaction dead when it has complexes and all are broken.
        """
        # Counts of genes and complexes: small integers are exact in float32, so they may be compared with 0.
        lacking = self.complexes @ gone.t().float()
        alive = self.isozymes @ (lacking == 0).float()
        ruled = (self.isozymes.row_counts > 0).unsqueeze(1)
        return (ruled & (alive == 0)).t()


class MetabolicLayer(nn.Module):
    """reactions ← genes + metabolites, metabolites ← reactions; entries weigh tanh(coefficient · s).

    s is learned and 1 at first; tanh keeps a coefficient's sign and tames large ones.
    """

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        self.from_genes, self.from_metabolites, self.from_reactions = (RelationGIN(config) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, wiring: Wiring, genes: Tensor, states: MetabolicStates) -> MetabolicStates:
        """Gene states [T, n, d], zero where removed, and metabolic states -> metabolic states.

        What dead reactions hold afterwards is for the caller to clear.
        """
        x, y = states
        weights = torch.tanh(wiring.coefficient.to(self.scale.dtype) * self.scale).unsqueeze(1)

        def sums(of: Tensor, source: Tensor, target: Tensor, count: int) -> Tensor:
            zeros = of.new_zeros(*of.shape[:-2], count, of.shape[-1])
            return zeros.index_add(-2, target, of.index_select(-2, source) * weights)

        consumed = sums(y, wiring.metabolite, wiring.reaction, x.shape[-2])
        changed = sums(x, wiring.reaction, wiring.metabolite, y.shape[-2])
        # Metabolites are updated from the reactions that entered the layer, as in simultaneous message
        # passing.
        of_genes = self.from_genes(x, neighbour_sums(wiring.gpr, genes))
        return MetabolicStates(of_genes + self.from_metabolites(x, consumed), self.from_reactions(y, changed))


class MetabolicNetwork(nn.Module):
    """Embeddings of reactions and metabolites, a layer beside every gene layer, and a pooling of each kind.

    The pooled difference of both kinds joins that of the genes through one linear map, without a bias:
    nothing lost adds nothing.
    """

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        d = config.width
        self.reactions = nn.Parameter(torch.empty(config.reactions, d))
        self.metabolites = nn.Parameter(torch.empty(config.metabolites, d))
        for table in (self.reactions, self.metabolites):
            nn.init.normal_(table, std=0.02)
        self.layers = nn.ModuleList(MetabolicLayer(config) for _ in range(config.layers))
        self.pool_reactions, self.pool_metabolites = (AttentionalPooling(config) for _ in range(2))
        self.merge = nn.Linear(2 * d, d, bias=False)

    def pooled(self, states: MetabolicStates, dead: Tensor) -> Tensor:
        """Pooled reactions and metabolites, side by side [T, 2 d]."""
        reactions = self.pool_reactions(states.reactions, dead)
        # Mutants whose states are the wild type's share one pooled state of the metabolites.
        metabolites = self.pool_metabolites(states.metabolites).expand_as(reactions)
        return torch.cat([reactions, metabolites], -1)


class MetabolicPass:
    """One pass of the network over T mutants, layer after layer.

    Parameters
    ----------
    network
        The layers.
    wiring
        The shared metabolism.
    gone
        Genes removed, bool [T, n].
    """

    def __init__(self, network: MetabolicNetwork, wiring: Wiring, gone: Tensor) -> None:
        self.network, self.wiring = network, wiring
        self.dead = wiring.dead(gone)
        self.layers = iter(network.layers)
        tables = (network.reactions, network.metabolites)
        # Expanded views: mutants share the embeddings until dead reactions are set to zero.
        self.states = self._clear(MetabolicStates(*(x.expand(len(gone), -1, -1) for x in tables)))

    def step(self, genes: Tensor) -> None:
        """Pass the next layer; ``genes`` [T, n, d] are the states that enter the gene layer beside it."""
        self.states = self._clear(next(self.layers)(self.wiring, genes, self.states))

    def pooled(self) -> Tensor:
        """Pooled states [T, 2 d]."""
        return self.network.pooled(self.states, self.dead)

    def _clear(self, states: MetabolicStates) -> MetabolicStates:
        return states._replace(reactions=states.reactions.masked_fill(self.dead.unsqueeze(-1), 0.0))
