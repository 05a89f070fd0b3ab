"""The perturbation head: from the encoded wild type and the perturbed genes S to phenotypes.

Legend: b mutants · k perturbed per mutant · Σk their sum · n genes · d width · p phenotypes.

    z_S = Σ_i β_i(S) φ(h_i, m_i(S)),
    y = MLP([h_CLS ‖ z_S ‖ direct summaries of S ‖ relations within S ‖ evidence ‖ screen]) + additive model

φ depends on what was done to a gene; it differs from its value in the wild type only on S, so that z_S is
one attention over n shared keys plus a correction of k rows per mutant. With the first two terms alone
the softmax over thousands of genes starts nearly uniform and S reaches the output with weight 1/n; hence
the direct summaries and the sharp initial scale. Every part is a setting: without the others, and with
``scores: bilinear``, it is β = softmax_i(q_Sᵀ W h_i) and y = MLP([h_CLS ‖ z_S]) (``experiment=plan``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.edits import REMOVED
from wildtype.models.cell_transformer.config import OWN_READS, CellTransformerConfig
from wildtype.models.cell_transformer.evidence import EvidenceReadout
from wildtype.models.cell_transformer.outputs import Outputs
from wildtype.models.cell_transformer.readouts import RelationReadout
from wildtype.models.cell_transformer.screen import ScreenReadout
from wildtype.models.cell_transformer.summaries import SetSummary
from wildtype.models.explainable import ADDITIVE, WHOLE_CELL, ExplainableHead
from wildtype.models.interface import Output, Prediction, WildType
from wildtype.mutants import Kind
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.nn.dropout import Dropout
from wildtype.nn.perturbation_head import own_reads, perturbation_attention
from wildtype.nn.ragged import segment_ids, segment_mean, segment_sum, take_rows

MAX_ORDER = 16
STATE, SCREEN = "state", "screen"
"""Names of what outputs are read off, and of what is added to them."""


def smallest_part(tokens: EvidenceTokens, phenotypes: int) -> Tensor:
    """Return the smallest value [b, p] measured for a part of each mutant; 0 where there is none.

    A part is the mutant less one gene, in the same condition, or a mutant that loses no more reactions.
    """
    there = tokens.one.mask & (tokens.one.edit == REMOVED) & (tokens.one.same_condition > 0)
    part = there.unsqueeze(-1) & tokens.one.known
    # inf is neutral under the minimum; without any bound the output starts from 0, as without this rule.
    value = tokens.one.value.masked_fill(~part, torch.inf).amin(1)[:, :phenotypes]
    value = torch.minimum(value, tokens.equivalents.bound[:, :phenotypes].to(value))
    return torch.where(value.isinf(), 0.0, value)


@dataclass(slots=True)
class GeneKeyValues:
    """What mutants read from: keys, values in the wild type, and what values are made of, [n, d] each."""

    keys: Tensor
    inner: Tensor
    values: Tensor


class PerturbationHead(ExplainableHead):
    """From the encoded wild type and a batch of mutants to phenotypes [b, p]."""

    scalar: Tensor
    largest_order: Tensor
    beyond_start: Tensor
    evidence: EvidenceReadout | None

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
        self.order = nn.Embedding(MAX_ORDER + 1, d) if head.order else None
        # Larger sets than training has are taken as its largest: their own embedding was never learned.
        self.register_buffer("largest_order", torch.zeros((), dtype=torch.int64))
        self.condition = nn.Embedding(conditions, d) if conditions > 1 else None
        asks = head.heads and head.summary != OWN_READS
        self.bilinear = head.scores == "bilinear"
        self.summary = SetSummary(head.summary, d, project=not self.bilinear) if asks else None
        self.log_scale = None
        if head.heads and self.bilinear:
            # s_i = q_Sᵀ W h_i: W is the map of queries, and keys are the states.
            self.query: nn.Module = nn.Linear(d, d, bias=False)
            self.key: nn.Module = nn.Identity()
        elif head.heads:
            # LayerNorm fixes the length of queries and keys, so a logit starts with standard deviation
            # `sharpness`. The scale is learned as a logarithm, which keeps it positive.
            self.query = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
            self.key = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
        if head.heads:
            self.value_in = nn.Linear(d, d)
            self.value_out = nn.Linear(d, d)
        if head.heads and not self.bilinear:
            self.log_scale = nn.Parameter(torch.full((head.heads, 1, 1), head.sharpness).log())
        self.direct = nn.ModuleList(SetSummary(how, d) for how in head.direct)
        self.bare = not head.heads and not head.direct  # then the output reads the kinds themselves
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
        if channels and config.adds_effects:
            self.additive = nn.Parameter(torch.ones(len(outputs)))
        if self.additive is not None or self.smallest:
            scalar = torch.tensor([float(output.form == "scalar") for output in outputs])
            self.register_buffer("scalar", scalar, persistent=False)
        self.screen = ScreenReadout(outputs, config.dropout) if head.screen else None
        self.columns = self._columns(d)
        hidden = head.hidden or 2 * d
        self.out = nn.Sequential(
            nn.Linear(sum(self.columns.values()), hidden),
            nn.GELU(),
            Dropout(config.dropout),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            Dropout(config.dropout),
            Outputs(hidden, outputs, gene_width=d, rank=head.rank),
        )
        if self.screen is not None:
            # Training starts at the weighted sums of columns; how far outputs leave them is weighed after it.
            self.outputs.start_at_zero()
            self.register_buffer("beyond_start", torch.ones(len(outputs)))

    def _columns(self, d: int) -> dict[str, int]:
        """Return the names and widths of what the output reads, in its order."""
        names = ["cls", "order"] if self.order is not None else ["cls"]
        names += [WHOLE_CELL] if self.heads else []
        names += [name for name, _ in self.direct_by_name()]
        names += [STATE] if self.bare else []
        names += ["condition"] if self.condition is not None else []
        columns = dict.fromkeys(names, d)
        if self.relations is not None:
            columns["relations"] = self.relations.width_out
        if self.evidence is not None:
            columns["evidence"] = self.evidence.width_out
        if self.screen is not None:
            columns[SCREEN] = self.screen.width_out
        return columns

    def direct_by_name(self) -> list[tuple[str, SetSummary]]:
        """Return the direct summaries of S by name."""
        summaries = [summary for summary in self.direct if isinstance(summary, SetSummary)]
        return [(f"summary {i}, {summary.how}", summary) for i, summary in enumerate(summaries)]

    @property
    def outputs(self) -> Outputs:
        """What reads phenotypes off the last layer."""
        last = self.out[-1]
        assert isinstance(last, Outputs)
        return last

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return predicted phenotypes, in units of the scaled labels."""
        parts = self.perturbed(wild_type, mutants) | self.looked_up(wild_type, mutants)
        x = torch.cat([parts[name] for name in self.columns], dim=-1)
        out: Prediction = self.outputs(self.out[:-1](x), wild_type, mutants)
        out.mean = self._weighed(out.mean)
        for added in self.added(mutants).values():
            # Added behind the MLP, which thus learns the residual of the additive model and of the bound.
            out.mean = out.mean + added
        return out

    def read(self, x: Tensor) -> Tensor:
        """Return the outputs [b, p] of the parts x [b, w], joined in the order of ``columns``."""
        return self._weighed(self.outputs.columns(self.out[:-1](x)))

    def _weighed(self, out: Tensor) -> Tensor:
        """Return what the network says [b, p] beyond where outputs start, as much as it counts."""
        return out if self.screen is None else out * self.beyond_start

    def perturbed(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return the parts [b, ·] computed from the wild type and S alone, by name."""
        state, u, asking = self._states(wild_type, mutants)
        order = (mutants.offsets[1:] - mutants.offsets[:-1]).clamp(max=MAX_ORDER)
        if self.training and len(order):
            self.largest_order.copy_(torch.maximum(self.largest_order, order.max()))
        order = torch.minimum(order, self.largest_order)
        parts = {"cls": wild_type.cls.expand(len(mutants), -1)}
        if self.order is not None:
            parts["order"] = self.order(order)
        if self.heads:
            parts[WHOLE_CELL] = self._whole_cell(wild_type, asking, state, mutants)
        for name, summary in self.direct_by_name():
            parts[name] = summary(u, mutants.offsets)
        if self.bare:
            parts[STATE] = segment_mean(state, mutants.offsets)
        if self.condition is not None:
            parts["condition"] = self.condition(mutants.condition)
        return parts

    def looked_up(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return the readouts [b, ·] of relations, of similar mutants and of a screen, by name.

        A readout that the head does not have is absent.

        Raises
        ------
        ConfigError
            If the batch has no evidence or no columns of a screen, and the head reads them.
        """
        tokens, parts = mutants.evidence, {}
        if tokens is None and (self.relations or self.evidence or self.additive is not None):
            raise ConfigError(
                "no evidence was looked up for these mutants: give the batch the tokens of an EvidenceIndex"
            )
        if self.relations is not None and tokens is not None:
            parts["relations"] = self.relations(wild_type, len(mutants), tokens)
        if self.evidence is not None and tokens is not None:
            parts["evidence"] = self.evidence(wild_type, mutants, tokens)
        if self.screen is not None:
            parts[SCREEN] = self.screen(mutants)
        return parts

    def added(self, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what is added to the outputs [b, p] as it is, by name."""
        tokens, parts = mutants.evidence, {}
        if self.additive is not None and tokens is not None:
            # Columns behind the outputs belong to the further phenotypes of the evidence.
            effects = segment_sum(tokens.genes.additive[:, : len(self.scalar)], mutants.offsets)
            parts[ADDITIVE] = self.additive * effects * self.scalar
        if self.smallest and tokens is not None:
            parts["smallest part"] = smallest_part(tokens, len(self.scalar)) * self.scalar
        if self.screen is not None:
            parts["weighted sum of the screen's columns"] = self.screen.starts(mutants)
        return parts

    def shares(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return what every perturbed gene adds [Σk, ·] to the parts that are sums over S, by name."""
        state = self._state(mutants)
        u = nn.functional.embedding(mutants.gene, wild_type.genes) + state
        parts = {name: summary.by_gene(u, mutants.offsets) for name, summary in self.direct_by_name()}
        if self.bare:
            parts[STATE] = state / mutants.offsets.diff()[segment_ids(mutants.offsets), None]
        if self.additive is not None and mutants.evidence is not None:
            effects = mutants.evidence.genes.additive[:, : len(self.scalar)]
            parts[ADDITIVE] = self.additive * effects * self.scalar
        return parts

    def whole_cell(self, wild_type: WildType, mutants: MutantBatch) -> Tensor:
        """Return z_S [b, d] alone."""
        state, _, asking = self._states(wild_type, mutants)
        return self._whole_cell(wild_type, asking, state, mutants)

    def attended(self, wild_type: WildType, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return β [heads, n] and φ [heads, n, d / heads] of a batch of one mutant: z_S is Σ_i β_i φ_i."""
        state, _, asking = self._states(wild_type, mutants)
        cell = self.genome(wild_type)
        asked = asking if self.summary is None else self.summary(asking, mutants.offsets)
        logits = self._asked(asked) @ self.by_head(cell.keys).transpose(1, 2)
        if wild_type.encoded is not None:
            beside = torch.arange(logits.shape[-1], device=logits.device) >= wild_type.encoded
            beside[mutants.gene] = False
            logits = logits.masked_fill(beside, -torch.inf)
        beta = logits.softmax(-1).sum(1) / max(len(asked), 1)
        delta = self.by_head(self.difference(cell, mutants.gene, state))
        # index_add sums, so φ⁰ + (φ − φ⁰) replaces the values of S and leaves all others.
        return beta, self.by_head(cell.values).index_add(1, mutants.gene, delta)

    def token_weights(self, genes: Tensor, tokens: EvidenceTokens) -> tuple[Tensor, Tensor] | None:
        """Return the weights of measured mutants one and two edits away; None without evidence."""
        return None if self.evidence is None else self.evidence.weights(genes, tokens)

    def _state(self, mutants: MutantBatch) -> Tensor:
        """Return the embedding [Σk, d] of what was done to each gene."""
        state: Tensor = self.kind(mutants.kind.long())
        if mutants.dose is not None:
            # NaN stands for no dose. The map has no bias, so a dose of 0 adds nothing.
            state = state + self.dose(torch.nan_to_num(mutants.dose)[:, None])
        return state

    def _states(self, wild_type: WildType, mutants: MutantBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return what was done to genes [Σk, d], that with their states, and what queries read of both."""
        h, state = nn.functional.embedding(mutants.gene, wild_type.genes), self._state(mutants)
        u = h + state
        return state, u, h if self.bilinear else u

    def _whole_cell(self, wild_type: WildType, asking: Tensor, state: Tensor, mutants: MutantBatch) -> Tensor:
        """Return z_S [b, d]: cross-attention of every mutant over all tokens and its own other genes."""
        cell = self.genome(wild_type)
        # z_S = Σ_i β_i φ⁰_i + Σ_{i ∈ S} β_i (φ_i − φ⁰_i): values of all n genes never exist per mutant.
        # Memory O((b + n) d + Σk d).
        delta = self.by_head(self.difference(cell, mutants.gene, state))
        changed = (self.by_head(cell.values), mutants.gene, mutants.offsets, delta)
        # Under autocast norms and products with parameters are float32, and linear maps are not.
        keys = self.by_head(cell.keys).to(delta.dtype)
        if self.summary is None:
            first, asks = _different(mutants)
            query = self._asked(take_rows(asking, first)).to(delta.dtype)
            z = own_reads(query, keys, *changed, asks=asks, shared=wild_type.encoded)
        else:
            query = self._asked(self.summary(asking, mutants.offsets)).to(delta.dtype)
            z = perturbation_attention(query, keys, *changed, shared=wild_type.encoded)
        return z.transpose(0, 1).flatten(1)

    def _asked(self, asking: Tensor) -> Tensor:
        """Return the queries [H, m, d / H] of what asks [m, d]: sets, or genes where each asks by itself."""
        return self.scaled(self.query(asking))

    def by_head(self, x: Tensor) -> Tensor:
        """Split rows [m, d] by head: [H, m, d / H]."""
        return x.view(-1, self.heads, x.shape[-1] // self.heads).transpose(0, 1)

    def scaled(self, query: Tensor) -> Tensor:
        """Return queries [m, d] by head, such that their products with keys are logits."""
        split = self.by_head(query)
        if self.log_scale is None:
            return split
        scale: Tensor = self.log_scale.exp() * split.shape[-1] ** -0.5
        return split * scale

    def genome(self, wild_type: WildType) -> GeneKeyValues:
        """Return what the genes [n, d] of the wild type offer to be read."""
        h = wild_type.genes
        inner, default = self.value_in(h), self.kind.weight[Kind.PRESENT]
        if wild_type.native is not None:
            # A foreign gene is absent from the cell, unless a mutant adds it.
            lacking = torch.arange(len(h), device=h.device) >= wild_type.native
            default = torch.where(lacking[:, None], self.kind.weight[Kind.ABSENT], default)
        # φ⁰ and φ pass the same layers, so φ − φ⁰ is exactly zero where nothing was done to a gene.
        values = self.value_out(nn.functional.gelu(inner + default))
        return GeneKeyValues(self.key(h), inner, values)

    def difference(self, cell: GeneKeyValues, gene: Tensor, state: Tensor) -> Tensor:
        """Return the change [m, d] of the values of genes [m] that are perturbed by ``state`` [m, d]."""
        # `value_in` has seen all n genes already: a perturbed gene passes only the layers behind the sum.
        inner = nn.functional.embedding(gene, cell.inner)
        values: Tensor = self.value_out(nn.functional.gelu(inner + state))
        return values - nn.functional.embedding(gene, cell.values)


def _different(mutants: MutantBatch) -> tuple[Tensor, Tensor]:
    """Return the rows [c] of different perturbed genes of a batch, and which of them each gene is [Σk].

    A gene of many mutants asks once. Doses differ from mutant to mutant: with them every gene asks.
    """
    row = torch.arange(len(mutants.gene), device=mutants.gene.device)
    if mutants.dose is not None:
        return row, row
    code, asks = torch.unique(mutants.gene * len(Kind) + mutants.kind, return_inverse=True)
    return row.new_zeros(len(code)).scatter_reduce(0, asks, row, "amin", include_self=False), asks
