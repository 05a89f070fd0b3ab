"""Interface of models whose predictions can be explained: attention, and the parts that the head reads.

Legend: n genes · t = n + 1 tokens (CLS first) · d width · b mutants · p phenotypes · Σk perturbed genes of
all · w width of all parts that the head reads · h heads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Protocol

from torch import Tensor, nn

from wildtype.models.interface import Model, OrganismTensors, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens

WHOLE_CELL, ADDITIVE = "whole cell", "additive model"
"""Names of two parts: the latent z_S = Σ_i β_i φ_i, and what is added to the outputs gene by gene."""


class FollowingHeads(Protocol):
    """The attention heads that follow a relation, and the weight of their prior."""

    weight: float

    @property
    def places(self) -> list[tuple[int, int]]:
        """Layer and head of each, from 0."""


class ExplainableHead(nn.Module, ABC):
    """A head that reads parts x = [x_1 ‖ x_2 ‖ …] by one function of them all.

    Attributes
    ----------
    heads : int
        Heads of the attention over all genes behind the whole-cell latent; 0: there is none.
    columns : dict of str to int
        Names and widths of the parts that `read` takes, in order.
    evidence : module or None
        Reads measurements of similar mutants; None: it reads none.
    """

    heads: int
    columns: dict[str, int]
    evidence: nn.Module | None

    @abstractmethod
    def perturbed(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return the parts that come from the wild type and the perturbed genes [b, ·], by name."""

    @abstractmethod
    def looked_up(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return the parts that come from what was looked up [b, ·], by name."""

    @abstractmethod
    def added(self, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what is added to the outputs [b, p] as it is, by name."""

    @abstractmethod
    def read(self, x: Tensor) -> Tensor:
        """Return the outputs [b, p] of all parts x [b, w], without what is added."""

    @abstractmethod
    def shares(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what every perturbed gene adds [Σk, ·] to the parts that are sums over them, by name."""

    @abstractmethod
    def whole_cell(self, wild_type: WildType, mutants: MutantBatch) -> Tensor:
        """Return the whole-cell latent z_S [b, d]."""

    @abstractmethod
    def attended(self, wild_type: WildType, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return β [h, n] and φ [h, n, d / h] of a batch of one mutant: z_S is Σ_i β_i φ_i."""

    @abstractmethod
    def token_weights(self, genes: Tensor, tokens: EvidenceTokens) -> tuple[Tensor, Tensor] | None:
        """Return the weights [b, T, h] of measured mutants one and two edits away; None without evidence.

        ``genes`` are the gene states [n, d].
        """


class ExplainableModel(Model):
    """A model with attention over genes whose heads may follow relations, and a head that can be taken apart.

    Attributes
    ----------
    head : ExplainableHead
        Reads phenotypes off the encoded wild type.
    prior_heads : mapping of str to FollowingHeads
        The attention heads that follow each relation.
    """

    head: ExplainableHead
    prior_heads: Mapping[str, FollowingHeads]

    @property
    @abstractmethod
    def attention_heads(self) -> list[tuple[int, int]]:
        """Layer and head of every attention head of the encoder."""

    @abstractmethod
    def queries_and_keys(self, organism: OrganismTensors) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield queries and keys [h, t, d / h] of layer after layer."""

    @abstractmethod
    def for_network(self, mutants: MutantBatch) -> MutantBatch:
        """Return a batch with what the head reads of it."""

    @abstractmethod
    def beside_network(self, phenotype: int) -> dict[str, float]:
        """Return the mixing weights, from 0 to 1, of parts fitted after training, keyed by a phrase."""
