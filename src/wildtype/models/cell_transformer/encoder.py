"""The encoder: a pre-norm transformer over the genes of the wild type, some heads regularised towards graphs.

Tokens are CLS and one per gene, without positions.

Legend: n genes · t = n + 1 tokens (CLS first) · d width · h heads · f features per gene.

Cost per step, whatever the number of mutants: O(t² d) arithmetic and O(t d) memory per layer, plus O(e d /
h) per graph prior with e edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from wildtype.models.cell_transformer.config import CellTransformerConfig, PriorHead
from wildtype.models.interface import CLS, OrganismTensors
from wildtype.nn.attention import attention_with_lse
from wildtype.nn.dropout import Dropout
from wildtype.nn.graph_prior import (
    count_non_edges,
    graph_prior_bce,
    graph_prior_bce_all,
    graph_prior_bce_sampled,
    graph_prior_kl,
    lse_over_valid_pairs,
    sample_non_edges,
)
from wildtype.nn.valid_pairs import add_keys
from wildtype.phases import phase


class EncoderLayer(nn.Module):
    """Pre-norm self-attention and feed-forward block; gives the graph priors of its heads, too."""

    def __init__(self, config: CellTransformerConfig, priors: dict[str, list[int]]) -> None:
        super().__init__()
        d = config.width
        self.heads = config.heads
        self.priors = priors  # by relation, the heads of this layer that follow it
        self.settings = config.prior
        self.attention_norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.merge = nn.Linear(d, d)
        self.feedforward = nn.Sequential(
            nn.LayerNorm(d),
            nn.Linear(d, config.feedforward * d),
            nn.GELU(),
            nn.Linear(config.feedforward * d, d),
        )
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, organism: OrganismTensors, stream: torch.Generator | None
    ) -> tuple[Tensor, dict[str, Tensor], list[tuple[Tensor, Tensor]]]:
        """Map tokens [t, d] to tokens [t, d].

        Also returns the loss of each prior of this layer that the organism has an operator for, and
        queries and keys [t, d / h] of every head that follows a relation.
        """
        t, d = x.shape
        q, k, v = self.attending(x)
        # KL_i = Σ_j Ã_ij log Ã_ij − scale · q_i·(Ã K)_i + lse_i: the kernel has lse anyway, so the priors
        # need no [t, t] map (docs/mathematics.md).
        out, lse = attention_with_lse(q, k, v, outside=organism.outside_tokens)
        # Unbound once: the backward of a slice per head would fill a full-size gradient each time.
        heads = list(zip(q[0].unbind(), k[0].unbind(), lse[0].unbind(), strict=True))
        with phase("graph prior"):
            losses = {
                name: torch.stack([self._prior(*heads[h], name, organism, stream) for h in followers]).sum()
                for name, followers in self.priors.items()
                if name in organism.priors
            }
        # Pre-norm residuals (Xiong et al., ICML 2020).
        x = x + self.dropout(self.merge(out.transpose(1, 2).reshape(t, d)))
        followed = [heads[h][:2] for followers in self.priors.values() for h in followers]
        return x + self.dropout(self.feedforward(x)), losses, followed

    def beside(self, y: Tensor, x: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Map genes [a, d] that are no tokens as this layer would if each were one more token by itself.

        A gene attends to the tokens x [t, d] and to itself; no token and no other such gene attends to it.
        Queries and keys [a, d / h] are those of the heads that follow a relation.
        """
        (a, d), scale = y.shape, (y.shape[1] // self.heads) ** -0.5
        (_, k, v), (q_own, k_own, v_own) = self.attending(x), self.attending(y)
        out, lse = attention_with_lse(q_own, k, v)
        logit = scale * (q_own * k_own).sum(-1)
        # Softmax over t keys and one more: σ(logit − lse) is the weight of the last.
        own = torch.sigmoid(logit - lse).unsqueeze(-1)
        out = out + own * (v_own - out)
        y = y + self.dropout(self.merge(out.transpose(1, 2).reshape(a, d)))
        heads = list(zip(q_own[0].unbind(), k_own[0].unbind(), strict=True))
        return y + self.dropout(self.feedforward(y)), [
            heads[h] for followers in self.priors.values() for h in followers
        ]

    def attending(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values [1, h, t, d / h] of tokens [t, d]."""
        t, d = x.shape
        q, k, v = (
            self.qkv(self.attention_norm(x)).view(1, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        )
        return q, k, v

    def _prior(
        self,
        q: Tensor,
        k: Tensor,
        lse: Tensor,
        relation: str,
        organism: OrganismTensors,
        stream: torch.Generator | None,
    ) -> Tensor:
        """Return the loss of one head, over the rows of its relation."""
        op, scale, prior = organism.priors[relation], q.shape[-1] ** -0.5, self.settings
        outside, tested = organism.outside_tokens, organism.tested.get(relation)
        lse = self._over_keys(q, k, lse, relation, organism)
        genes = _others(outside, len(q)) if prior.loss != "kl" else outside
        own = prior.loss == "bce_sampled"
        negatives = genes.new_zeros(2, 0)
        if prior.loss in ("bce", "bce_sampled"):
            # CLS and appended genes have no known non-edges: negatives are drawn among the other tokens.
            count, draw = prior.negatives or op.nnz, stream or torch.Generator()
            negatives = sample_non_edges(op, count, draw, among=genes, valid=tested, own=own)
        if prior.loss == "bce":
            return graph_prior_bce(q, k, lse, op, negatives, scale=scale, reduction=prior.reduction)
        of_target: dict[str, Any] = {
            "scale": scale,
            "epsilon": prior.epsilon,
            "normalised": prior.mask == "terms" and tested is not None,
            "reduction": prior.reduction,
        }
        if prior.loss == "bce_sampled":
            non_edges = count_non_edges(op, among=genes, valid=tested, own=own)
            return graph_prior_bce_sampled(q, k, lse, op, negatives, non_edges, **of_target)
        rows = None
        if 0 < prior.rows < len(op.rows_with_edges):
            # Drawn on the CPU, so that every device has the same rows. Their mean is an unbiased estimate of
            # the mean over all rows.
            drawn = torch.randperm(len(op.rows_with_edges), generator=stream)[: prior.rows]
            rows = op.rows_with_edges[drawn.to(op.rows_with_edges.device)]
        if prior.loss == "bce_all":
            return graph_prior_bce_all(q, k, lse, op, keys=genes, valid=tested, rows=rows, **of_target)
        return graph_prior_kl(q, k, lse, op, rows=rows, **of_target)

    def _over_keys(
        self, q: Tensor, k: Tensor, lse: Tensor, relation: str, organism: OrganismTensors
    ) -> Tensor:
        """Return the log-normaliser over the keys that the settings choose, from that over inside keys."""
        scale, outside = q.shape[-1] ** -0.5, organism.outside_tokens
        if self.settings.mask == "terms":
            # Every gene is a key, whatever is known of it; edges at untested pairs are not in the operator.
            appended = outside[outside != CLS]
            if len(appended):
                lse = add_keys(q, k, lse, appended, scale=scale)
        else:
            if relation in organism.tested:
                lse = organism.tested[relation].lse(q, k, lse, outside, scale=scale)
            if relation in organism.valid:
                # Of an appended gene only the pairs of known status count; a normaliser over all of its pairs
                # would treat unknown ones as absent.
                lse = lse_over_valid_pairs(q, k, lse, organism.valid[relation], outside, scale=scale)
        if self.settings.normaliser == "all":
            lse = add_keys(q, k, lse, outside.new_tensor([CLS]), scale=scale)
        return lse


def _others(outside: Tensor, tokens: int) -> Tensor:
    """Return the positions of the tokens that are not ``outside``."""
    inside = torch.ones(tokens, dtype=torch.bool, device=outside.device)
    inside[outside] = False
    return inside.nonzero()[:, 0]


def _followers(priors: dict[str, PriorHead], layer: int) -> dict[str, list[int]]:
    """Return, by relation, the heads of a layer that follow it."""
    found = {name: [head for at, head in prior.places if at == layer] for name, prior in priors.items()}
    return {name: heads for name, heads in found.items() if heads}


class Encoder(nn.Module):
    """Tokens of the wild type: learned table and/or projected features, then L layers, then a norm."""

    def __init__(
        self, config: CellTransformerConfig, genes: int, features: int, priors: dict[str, PriorHead]
    ) -> None:
        super().__init__()
        d = config.width
        self.cls = nn.Parameter(torch.randn(d) * 0.02)
        self.table = nn.Parameter(torch.randn(genes, d) * 0.02) if config.table else None
        self.project = (
            nn.Sequential(
                Dropout(config.feature_dropout), nn.Linear(features, 2 * d), nn.GELU(), nn.Linear(2 * d, d)
            )
            if config.features and features
            else None
        )
        self.layers = nn.ModuleList(
            EncoderLayer(config, _followers(priors, layer)) for layer in range(config.layers)
        )
        self.norm = nn.LayerNorm(d)

    def forward(
        self, organism: OrganismTensors, stream: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, dict[str, Tensor], tuple[Tensor, Tensor] | None]:
        """Return h_CLS [d], gene states [n, d], losses of the graph priors, and regularised queries and keys.

        Losses are summed over the heads of a relation. Queries and keys are those of the genes [n, r, d_h] in
        the r heads that follow a relation.
        """
        tokens = self.tokens(organism)
        x, y = tokens[: CLS + 1 + organism.tokens], tokens[CLS + 1 + organism.tokens :]
        losses: dict[str, Tensor] = {}
        followed: list[tuple[Tensor, Tensor]] = []
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            x_in = x
            x, of_layer, pairs = layer(x, organism, stream)
            for name, loss in of_layer.items():  # a relation may have heads in several layers
                losses[name] = losses[name] + loss if name in losses else loss
            if len(y):
                y, beside = layer.beside(y, x_in)
                pairs = [
                    (torch.cat([q, q_own]), torch.cat([k, k_own]))
                    for (q, k), (q_own, k_own) in zip(pairs, beside, strict=True)
                ]
            followed += pairs
        x = self.norm(x)
        if len(y):
            x = torch.cat([x, self.norm(y)])
        regularised = None
        if followed:
            q, k = (torch.stack(side, dim=1)[CLS + 1 :] for side in zip(*followed, strict=True))
            # Scaled once here: inner products of these are the logits of attention.
            regularised = q * q.shape[-1] ** -0.5, k
        return x[CLS], x[CLS + 1 :], losses, regularised

    def tokens(self, organism: OrganismTensors) -> Tensor:
        """Return the tokens [t, d] that the first layer is given; other genes come behind them."""
        x = torch.zeros(organism.genes, self.cls.shape[0], device=self.cls.device)
        if self.table is not None:
            # A gene without a learned embedding gets the mean one: its features tell it from others.
            rest = organism.genes - len(self.table)
            table = torch.cat([self.table, self.table.mean(0).expand(rest, -1)]) if rest else self.table
            x = x + table
        if self.project is not None:
            x = x + self.project(organism.features)
        return torch.cat([self.cls[None], x])

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """Return the states of the genes [n, d] as tokens and after every layer; empty without layers."""
        x = self.tokens(organism)[: CLS + 1 + organism.tokens]
        states = {"tokens": x} if len(self.layers) else {}
        for i, layer in enumerate(self.layers, 1):
            x, _, _ = layer(x, organism.without_priors(), None)
            states[f"layer {i}"] = x
        return {name: x[CLS + 1 :].detach() for name, x in states.items()}

    def queries_and_keys(self, organism: OrganismTensors) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield queries and keys [h, t, d / h] of layer after layer, what their attention is made of."""
        x = self.tokens(organism)
        for layer in self.layers:
            # An explanation needs attention of every layer, and no losses.
            assert isinstance(layer, EncoderLayer)
            q, k, _ = layer.attending(x)
            yield q[0], k[0]
            x, _, _ = layer(x, organism.without_priors(), None)
