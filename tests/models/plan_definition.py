"""The plan's architecture as it was written down: dense maps, one mutant at a time (docs/mathematics.md).

``w`` holds the weights of a `CellTransformer` by name; A [n, n] are adjacencies, R [n, n] the valid pairs.
"""

from __future__ import annotations

import torch
from torch.nn.functional import gelu, layer_norm, one_hot

from wildtype.mutants import Kind

EPSILON = 1e-8


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)


def norm(w, name, x):
    return layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])


def prior_loss(s, A, R, *, normaliser, mask, reduction):
    """The loss of one head with logits s [n + 1, n + 1], CLS first."""
    A, valid = (A > 0).double(), R.double()
    opened = torch.ones(len(A), len(s), dtype=torch.bool)
    opened[:, 0] = normaliser == "all"
    if mask == "keys":  # invalid pairs are no keys of α, and Ã is over valid edges
        A, opened[:, 1:] = A * valid, R
    target = A / (A.sum(1, keepdim=True) + EPSILON)
    rows = (valid * target).sum(1) > 0
    target, valid = target[rows], valid[rows]
    log_alpha = s[1:][rows].masked_fill(~opened[rows], -torch.inf).log_softmax(-1)[:, 1:]
    log_alpha = log_alpha.masked_fill(target == 0, 0.0)  # 0 · log 0 = 0
    loss = (valid * (torch.xlogy(target, target) - target * log_alpha)).sum(1)
    return loss.mean() if reduction == "mean" else loss.sum()


def encode(w, graphs, valid, places, weight, *, layers, heads, **of_prior):
    """h_CLS, H and Σ_k λ Σ_places L_k."""
    x, priors = torch.cat([w["encoder.cls"][None], w["encoder.table"]]), 0.0
    for layer in range(layers):
        p, (t, d) = f"encoder.layers.{layer}", x.shape
        qkv = linear(w, f"{p}.qkv", norm(w, f"{p}.attention_norm", x))
        q, k, v = qkv.view(t, 3, heads, d // heads).permute(1, 2, 0, 3)
        s = q @ k.transpose(1, 2) / (d // heads) ** 0.5
        for name, at in places.items():
            for head in (head for where, head in at if where == layer):
                priors = priors + weight * prior_loss(s[head], graphs[name], valid[name], **of_prior)
        x = x + linear(w, f"{p}.merge", (s.softmax(-1) @ v).transpose(0, 1).reshape(t, d))
        inner = linear(w, f"{p}.feedforward.1", norm(w, f"{p}.feedforward.0", x))
        x = x + linear(w, f"{p}.feedforward.3", gelu(inner))
    x = norm(w, "encoder.norm", x)
    return x[0], x[1:], priors


def pooled(w, how, h):
    """q_S [d] from the states h [k, d] of the genes of S."""
    if how in ("sum", "mean"):
        return h.sum(0) / (len(h) if how == "mean" else 1)
    p, scores = "head.summary.attention", []
    for i in range(len(h)):
        others, static = h[torch.arange(len(h)) != i], linear(w, f"{p}.static", h[i]).tanh()
        alpha = (linear(w, f"{p}.key", others) @ linear(w, f"{p}.query", h[i]) / len(h[i]) ** 0.5).softmax(0)
        dynamic = linear(w, f"{p}.output", alpha @ linear(w, f"{p}.value", others)).tanh()
        scores.append(linear(w, "head.summary.pool", (dynamic - static) ** 2))
    return torch.stack(scores).mean(0)


def phenotype(w, cls, h, genes, kinds, *, summary, native):
    """The outputs [p] of the mutant of S = ``genes`` with m = ``kinds``."""
    state = torch.where(torch.arange(len(h)) < native, Kind.PRESENT, Kind.ABSENT)
    state[genes] = kinds  # a foreign gene is absent where it is not added
    beta = (h @ linear(w, "head.query", pooled(w, summary, h[genes]))).softmax(0)
    weight = torch.cat(
        [w["head.value_in.weight"], w["head.kind.weight"].T], 1
    )  # φ is an MLP of [h ‖ onehot(m)]
    inner = torch.cat([h, one_hot(state, len(Kind)).double()], 1) @ weight.T + w["head.value_in.bias"]
    z = beta @ linear(w, "head.value_out", gelu(inner))
    x = gelu(linear(w, "head.out.0", torch.cat([cls, z])))
    return linear(w, "head.out.6", gelu(linear(w, "head.out.3", x)))
