"""The perturbation head: what does the encoded cell do when the genes of S are perturbed?

Legend: b mutants · k perturbed per mutant · Σk their sum · n genes · d width · p phenotypes.

    z_S = Σ_i β_i(S) φ(h_i, m_i(S)),
    y = MLP([h_CLS ‖ z_S ‖ direct summaries of S ‖ relations within S ‖ evidence]) + additive model

φ depends on what was done to a gene; it differs from its value in the wild type only on S, so that z_S is one
attention over n shared keys plus a correction of k rows per mutant. With the first two terms alone the
softmax over thousands of genes starts nearly uniform and S reaches the output with weight 1/n; hence the
direct summaries
and the sharp initial scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.evidence import EvidenceReadout
from wildtype.models.cell_transformer.outputs import Outputs
from wildtype.models.cell_transformer.readouts import RelationReadout
from wildtype.models.interface import Output, Prediction, WildType
from wildtype.mutants import Kind
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence.kernels import REMOVED
from wildtype.mutants.evidence.tokens import EvidenceTokens
from wildtype.nn.perturbation_head import perturbation_attention
from wildtype.nn.ragged import pad_ragged, segment_ids, segment_mean, segment_sum
from wildtype.nn.set_attention import SetAttention

MAX_ORDER = 16
WHOLE_CELL = "whole cell"
KINDS = "kinds"
ADDITIVE = "additive model"


class SetSummary(nn.Module):
    """One vector [b, d] per set from the states of its genes [Σk, d].

    ``sum`` and ``mean`` are what they say; ``product`` is the mean over the set's pairs of elementwise
    products, by the factorisation-machine identity (Rendle 2010); ``set_attention`` is self-excluding
    attention within
    the set (Hyper-SAGNN, Zhang, Zou & Ma 2020), averaged.
    """

    def __init__(self, how: str, width: int) -> None:
        super().__init__()
        self.how = how
        self.project = nn.Linear(width, width)
        self.attention = SetAttention(width, heads=1, exclude_self=True) if how == "set_attention" else None

    def forward(self, u: Tensor, offsets: Tensor) -> Tensor:
        """Summarise u [Σk, d] to [b, d]."""
        u = self.project(u)
        if self.how == "sum":
            return segment_sum(u, offsets)
        if self.how == "mean":
            return segment_mean(u, offsets)
        count = (offsets[1:] - offsets[:-1]).to(u.dtype)[:, None]
        if self.how == "product":
            total = segment_sum(u, offsets)
            pairs: Tensor = (total**2 - segment_sum(u**2, offsets)) / (count * (count - 1)).clamp(min=1)
            return pairs
        assert self.attention is not None
        padded, mask = pad_ragged(u, offsets)
        embedded: Tensor = self.attention(padded, mask).dynamic
        return embedded.sum(1) / count.clamp(min=1)

    def by_gene(self, u: Tensor, offsets: Tensor) -> Tensor:
        """Return the share [Σk, d] of every gene in the summary of its set; each has half of its pairs."""
        owner = segment_ids(offsets)
        count = (offsets[1:] - offsets[:-1]).to(u.dtype)[owner, None]
        if self.attention is not None:
            padded, mask = pad_ragged(self.project(u), offsets)
            embedded: Tensor = self.attention(padded, mask).dynamic
            return embedded[mask] / count
        u = self.project(u)
        if self.how == "sum":
            return u
        if self.how == "mean":
            return u / count
        partners = segment_sum(u, offsets)[owner] - u
        return u * partners / (count * (count - 1)).clamp(min=1)


def smallest_part(tokens: EvidenceTokens, phenotypes: int) -> Tensor:
    """Return the smallest value [b, p] measured in its condition for a mutant less one gene, or for one that
    loses no more reactions; 0: none.
    """
    there = tokens.one_mask & (tokens.one_edit == REMOVED) & (tokens.one_same > 0)
    part = there.unsqueeze(-1) & tokens.one_known
    value = tokens.one_value.masked_fill(~part, torch.inf).amin(1)[:, :phenotypes]
    value = torch.minimum(value, tokens.bound[:, :phenotypes].to(value))
    return torch.where(value.isinf(), 0.0, value)


class PerturbationHead(nn.Module):
    """From the encoded wild type and a batch of mutants to phenotypes [b, p]."""

    scalar: Tensor
    largest_order: Tensor

    def __init__(
        self,
        config: CellTransformerConfig,
        outputs: Sequence[Output],
        conditions: int,
        channels: int = 0,
        traits: int = 0,
        regularised: int = 0,
    ) -> None:
        super().__init__()
        d, head = config.width, config.head
        self.heads = head.heads
        self.kind = nn.Embedding(len(Kind), d)
        self.dose = nn.Linear(1, d, bias=False)
        self.order = nn.Embedding(MAX_ORDER + 1, d)
        # Larger sets than training has are taken as its largest: their own embedding was never learned.
        self.register_buffer("largest_order", torch.zeros((), dtype=torch.int64))
        self.condition = nn.Embedding(conditions, d) if conditions > 1 else None
        if head.heads:
            self.summary = SetSummary(head.summary, d)
            self.query = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
            self.key = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
            self.value_in = nn.Linear(d, d)
            self.value_out = nn.Linear(d, d)
            self.log_scale = nn.Parameter(torch.full((head.heads, 1, 1), head.sharpness).log())
        self.direct = nn.ModuleList(SetSummary(how, d) for how in head.direct)
        self.bare = not head.heads and not head.direct  # what was done to the genes is told all the same
        width = (2 + bool(head.heads) + len(head.direct) + self.bare + (conditions > 1)) * d
        evidence = config.evidence
        self.relations = (
            RelationReadout(d, channels, traits, regularised) if channels and head.relations else None
        )
        self.evidence = None
        if channels and evidence.tokens:
            self.evidence = EvidenceReadout(
                d,
                channels,
                len(outputs) + len(evidence.also),
                heads=evidence.heads,
                value=evidence.value,
                hidden=evidence.hidden,
                dropout=config.dropout,
                token_dropout=evidence.dropout,
            )
        self.additive, self.smallest = None, self.evidence is not None and head.smallest
        if self.evidence is not None and head.additive:
            self.additive = nn.Parameter(torch.ones(len(outputs)))
        if self.additive is not None or self.smallest:
            scalar = torch.tensor([float(output.form == "scalar") for output in outputs])
            self.register_buffer("scalar", scalar, persistent=False)
        width += sum(part.width_out for part in (self.relations, self.evidence) if part is not None)
        hidden = head.hidden or 2 * d
        self.out = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Dropout(config.dropout),
            Outputs(hidden, outputs, gene_width=d, rank=head.rank),
        )

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return predicted phenotypes, in units of the scaled labels."""
        parts = self.perturbed(wild_type, mutants) | self.looked_up(wild_type, mutants)
        out = self.read(torch.cat(list(parts.values()), dim=-1), wild_type, mutants)
        for added in self.added(mutants).values():
            out.mean = out.mean + added
        return out

    def perturbed(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what the wild type and S itself say [b, ·], by name, in the order in which it is read."""
        h = wild_type.genes
        state = self._state(mutants)
        u = nn.functional.embedding(mutants.gene, h) + state
        order = (mutants.offsets[1:] - mutants.offsets[:-1]).clamp(max=MAX_ORDER)
        if self.training and len(order):
            self.largest_order.copy_(torch.maximum(self.largest_order, order.max()))
        order = torch.minimum(order, self.largest_order)
        parts = {"wild type": wild_type.cls.expand(len(mutants), -1), "order": self.order(order)}
        if self.heads:
            parts[WHOLE_CELL] = self._whole_cell(h, u, state, mutants)
        for name, summary in self.summaries.items():
            parts[name] = summary(u, mutants.offsets)
        if self.bare:
            parts[KINDS] = segment_mean(state, mutants.offsets)
        if self.condition is not None:
            parts["condition"] = self.condition(mutants.condition)
        return parts

    @property
    def summaries(self) -> dict[str, SetSummary]:
        """The direct summaries of S by the names of their parts; numbered, as one may be asked for twice."""
        return {
            f"direct {i} ({summary.how})": summary
            for i, summary in enumerate(cast(Iterable[SetSummary], self.direct), 1)
        }

    def looked_up(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what relations and measurements of similar mutants say [b, ·], by name; nothing where the
        head reads none.

        Raises
        ------
        ConfigError
            If the batch has no evidence, and the head reads it.
        """
        tokens = mutants.evidence
        if tokens is None and (self.relations or self.evidence):
            raise ConfigError(
                "no evidence was looked up for these mutants: give the batch the tokens of an EvidenceIndex"
            )
        parts = {}
        if self.relations is not None and tokens is not None:
            parts["relations"] = self.relations(wild_type, len(mutants), tokens)
        if self.evidence is not None and tokens is not None:
            parts["evidence"] = self.evidence(wild_type.genes, mutants, tokens)
        return parts

    def read(self, x: Tensor, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return what is read off all parts [b, width], one after the other."""
        out: Prediction = self.out[-1](self.out[:-1](x), wild_type, mutants)
        return out

    def added(self, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what is added to the outputs [b, p] as it is, by name."""
        tokens, parts = mutants.evidence, {}
        if self.additive is not None and tokens is not None:
            effects = segment_sum(tokens.own_effect[:, : len(self.scalar)], mutants.offsets)
            parts[ADDITIVE] = self.additive * effects * self.scalar
        if self.smallest and tokens is not None:
            parts["smallest part"] = smallest_part(tokens, len(self.scalar)) * self.scalar
        return parts

    def shares(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what every perturbed gene adds [Σk, ·] to the parts that are sums over S, by name."""
        state = self._state(mutants)
        u = nn.functional.embedding(mutants.gene, wild_type.genes) + state
        parts = {name: summary.by_gene(u, mutants.offsets) for name, summary in self.summaries.items()}
        if self.bare:
            parts[KINDS] = state / mutants.offsets.diff()[segment_ids(mutants.offsets), None]
        if self.additive is not None and mutants.evidence is not None:
            effects = mutants.evidence.own_effect[:, : len(self.scalar)]
            parts[ADDITIVE] = self.additive * effects * self.scalar
        return parts

    def whole_cell(self, wild_type: WildType, mutants: MutantBatch) -> Tensor:
        """Return z_S [b, d] alone."""
        state = self._state(mutants)
        u = nn.functional.embedding(mutants.gene, wild_type.genes) + state
        return self._whole_cell(wild_type.genes, u, state, mutants)

    def attended(self, wild_type: WildType, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return β [heads, n] and φ [heads, n, d / heads] of a batch of one mutant: z_S is Σ_i β_i φ_i."""
        state = self._state(mutants)
        u = nn.functional.embedding(mutants.gene, wild_type.genes) + state
        query, keys, default, delta = self._attending(wild_type.genes, u, state, mutants)
        beta = (query @ keys.transpose(1, 2)).softmax(-1)[:, 0]
        return beta, default.index_add(1, mutants.gene, delta)

    def _state(self, mutants: MutantBatch) -> Tensor:
        """Return the embedding [Σk, d] of what was done to each gene."""
        state: Tensor = self.kind(mutants.kind.long())
        if mutants.dose is not None:
            state = state + self.dose(torch.nan_to_num(mutants.dose)[:, None])
        return state

    def _whole_cell(self, h: Tensor, u: Tensor, state: Tensor, mutants: MutantBatch) -> Tensor:
        """Return z_S [b, d]: cross-attention of every mutant over all genes."""
        query, keys, default, delta = self._attending(h, u, state, mutants)
        z = perturbation_attention(query, keys, default, mutants.gene, mutants.offsets, delta)
        return z.transpose(0, 1).reshape(-1, h.shape[1])

    def _attending(
        self, h: Tensor, u: Tensor, state: Tensor, mutants: MutantBatch
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return queries [heads, b, ·], keys and values [heads, n, ·] of the cell without perturbations, and
        by how much the values of perturbed genes differ from them [heads, Σk, ·].
        """
        d = h.shape[1]
        split = (-1, self.heads, d // self.heads)
        scale = (d // self.heads) ** -0.5
        query = self.query(self.summary(u, mutants.offsets)).view(split).transpose(0, 1)
        query = query * (self.log_scale.exp() * scale)
        keys = self.key(h).view(split).transpose(0, 1)
        inner = self.value_in(h)
        default = self.value_out(nn.functional.gelu(inner + self.kind.weight[Kind.PRESENT]))
        perturbed = self.value_out(nn.functional.gelu(nn.functional.embedding(mutants.gene, inner) + state))
        delta = perturbed - nn.functional.embedding(mutants.gene, default)
        # Under autocast norms and products with parameters are float32, and linear maps are not.
        return (
            query.to(default.dtype),
            keys.to(default.dtype),
            default.view(split).transpose(0, 1),
            delta.view(split).transpose(0, 1),
        )
