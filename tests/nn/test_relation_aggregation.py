"""Aggregations over relations against their definitions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from wildtype.errors import ShapeError
from wildtype.nn import relation_aggregation
from wildtype.nn.relation_aggregation import attention_reference, make_aggregation, pairwise_reference

F64 = torch.float64


def layer(name: str, relations: int, width: int = 4, **settings: int) -> torch.nn.Module:
    chosen = {"bottleneck": 3, "heads": 2} | settings
    made = make_aggregation(name, relations, width, activation=F.gelu, **chosen).double()
    for parameter in made.parameters():  # biases are zero at first, and zero hides mistakes
        torch.nn.init.normal_(parameter)
    return made


def check(made: torch.nn.Module, reference, states: list[torch.Tensor]) -> None:
    ours, plain = made(states), reference(made, states)
    torch.testing.assert_close(ours, plain)
    weight = torch.randn_like(plain)
    inputs = [*states, *made.parameters()]
    for got, wanted in zip(
        torch.autograd.grad(ours, inputs, weight), torch.autograd.grad(plain, inputs, weight), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(0, 9), st.sampled_from(["pairwise", "attention"]), st.integers(0, 999))
def test_equals_its_definition(relations, rows, name, seed):
    torch.manual_seed(seed)
    states = [torch.randn(rows, 4, dtype=F64, requires_grad=True) for _ in range(relations)]
    made = layer(name, relations)
    check(made, pairwise_reference if name == "pairwise" else attention_reference, states)


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("name", ["pairwise", "attention"])
def test_chunks_and_recomputation_change_nothing(monkeypatch, name, kept):
    monkeypatch.setattr(relation_aggregation, "CHUNK", 4)
    monkeypatch.setattr(relation_aggregation, "KEPT_ROWS", kept)
    torch.manual_seed(0)
    states = [torch.randn(2, 9, 4, dtype=F64, requires_grad=True) for _ in range(3)]
    check(layer(name, 3), pairwise_reference if name == "pairwise" else attention_reference, states)


def test_sum_and_mean():
    states = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -4.0]])]
    assert layer("sum", 2, 2)(states).tolist() == [[4.0, -2.0]]
    assert layer("mean", 2, 2)(states).tolist() == [[2.0, -1.0]]


def test_pairs_are_all_unordered_ones_with_themselves():
    assert layer("pairwise", 3).pairs == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert len(layer("pairwise", 9).pairs) == 45


def test_wrong_settings_are_named():
    with pytest.raises(ShapeError, match="received 'max', expected sum, mean, attention or pairwise"):
        layer("max", 2)
    with pytest.raises(ShapeError, match="heads: received 3, expected a divisor of the width 4"):
        layer("attention", 2, heads=3)


def test_a_second_derivative_is_refused():
    states = [torch.randn(3, 4, dtype=F64, requires_grad=True) for _ in range(2)]
    (grad,) = torch.autograd.grad(layer("pairwise", 2)(states).sum(), states[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
