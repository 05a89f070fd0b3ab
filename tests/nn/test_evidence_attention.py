"""Attention over evidence against its plain definition, values and gradients in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.evidence_attention import EvidenceAttention


def layer(features: int = 5, phenotypes: int = 2) -> EvidenceAttention:
    torch.manual_seed(0)
    made = EvidenceAttention(features, phenotypes, heads=3, width=4, hidden=7, dropout=0.0).double()
    torch.nn.init.normal_(made.null)
    return made


def plain(one: EvidenceAttention, features, value, mask, content):  # type: ignore[no-untyped-def]
    out = []
    for f, y, m, c in zip(features, value, mask, content, strict=True):
        heads = []
        tokens = [one.out(one.into(f[t]) + c[t]) for t in range(len(f)) if m[t]]
        known = [y[t] for t in range(len(f)) if m[t]]
        for h in range(one.heads):
            exp = [token[h].exp() for token in tokens]
            total = one.null[h].exp() + sum(exp)
            vectors = [token[one.heads + h * one.width : one.heads + (h + 1) * one.width] for token in tokens]
            zero = torch.zeros(one.width, dtype=f.dtype)
            pooled = sum((e / total * v for e, v in zip(exp, vectors, strict=True)), zero)
            measured = sum((e / total * v for e, v in zip(exp, known, strict=True)), torch.zeros_like(y[0]))
            heads.append((pooled, measured, sum(exp, torch.zeros((), dtype=f.dtype)) / total))
        parts = [torch.cat([h[i].reshape(-1) for h in heads]) for i in range(3)]
        out.append(torch.cat(parts))
    return torch.stack(out)


@settings(deadline=None, max_examples=20)
@given(b=st.integers(1, 4), t=st.integers(1, 6), seed=st.integers(0, 1000))
def test_pooling_is_its_definition(b: int, t: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    one = layer()
    features = torch.randn(b, t, 5, generator=draw, dtype=torch.float64, requires_grad=True)
    value = torch.randn(b, t, 2, generator=draw, dtype=torch.float64, requires_grad=True)
    content = torch.randn(b, t, 7, generator=draw, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(b, t, generator=draw) < 0.7
    found, expected = one(features, value, mask, content), plain(one, features, value, mask, content)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    weight = torch.randn(expected.shape, generator=draw, dtype=torch.float64)
    inputs = (features, value, content, *one.parameters())
    for a, e in zip(
        torch.autograd.grad((found * weight).sum(), inputs, allow_unused=True),
        torch.autograd.grad((expected * weight).sum(), inputs, allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(
            torch.zeros(()) if a is None else a, torch.zeros_like(a) if e is None else e, check_dtype=False
        )


@settings(deadline=None, max_examples=20)
@given(b=st.integers(0, 5), t=st.integers(0, 6), seed=st.integers(0, 1000), with_content=st.booleans())
def test_pooling_without_gaps_is_the_same(b: int, t: int, seed: int, with_content: bool) -> None:
    draw = torch.Generator().manual_seed(seed)
    one = layer()
    features, value, content = (
        torch.randn(b, t, width, generator=draw, dtype=torch.float64) for width in (5, 2, 7)
    )
    mask = torch.rand(b, t, generator=draw) < 0.6
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    one.null.data += 900.0  # and no exponential overflows
    one.out[-1].bias.data[: one.heads] += 900.0
    there = [
        torch.cat([x[mask], x.new_full((3, x.shape[-1]), torch.nan)]) for x in (features, value, content)
    ]
    found = one.pool(there[0], there[1], offsets, there[2] if with_content else None)
    expected = one(features, value, mask, content if with_content else None)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert not found.requires_grad


def test_pooling_under_autocast() -> None:
    one = layer().float()
    draw = torch.Generator().manual_seed(0)
    features, value = (torch.randn(3, 4, width, generator=draw) for width in (5, 2))
    content = torch.randn(3, 4, 7, generator=draw)
    offsets = torch.tensor([0, 4, 8, 12])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = one(features, value, torch.ones(3, 4, dtype=torch.bool), content)
        found = one.pool(features.flatten(0, 1), value.flatten(0, 1), offsets, content.flatten(0, 1))
    torch.testing.assert_close(found, expected.float(), rtol=0.03, atol=0.03)


def test_tokens_that_do_not_fit_their_queries_are_refused() -> None:
    features, value = torch.zeros(3, 5).double(), torch.zeros(3, 2).double()
    with pytest.raises(ShapeError, match="the number of rows, 3"):
        layer().pool(features, value, torch.tensor([0, 4]))
    with pytest.raises(ShapeError, match="as many tokens"):
        layer().pool(features, value[:2], torch.tensor([0, 3]))


def test_without_tokens_the_result_is_zero() -> None:
    out = layer()(
        torch.randn(2, 3, 5).double(), torch.randn(2, 3, 2).double(), torch.zeros(2, 3, dtype=torch.bool)
    )
    assert not out.any()
    empty = layer()(
        torch.zeros(2, 0, 5).double(), torch.zeros(2, 0, 2).double(), torch.zeros(2, 0, dtype=torch.bool)
    )
    assert not empty.any()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="must agree in all but the last dimension"):
        layer()(
            torch.zeros(2, 3, 5).double(), torch.zeros(2, 4, 2).double(), torch.zeros(2, 3, dtype=torch.bool)
        )
