from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from wildtype.errors import ShapeError
from wildtype.nn.hyper_sagnn import REZERO, HyperSagnn, PartnerAttention


def randomised(module: nn.Module) -> nn.Module:
    """Every parameter drawn, so that biases and β take part."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


def by_hand(head: HyperSagnn, x: Tensor) -> Tensor:
    """Outputs [p] of one set x [k, d], member by member and head by head."""
    dynamic = x
    for layer in head.attention:
        assert isinstance(layer, PartnerAttention)
        dynamic = torch.stack([updated(layer, dynamic, i) for i in range(len(x))])
    static = torch.relu(head.static(x))
    return head.score((dynamic - static) ** 2).mean(0)


def updated(layer: PartnerAttention, x: Tensor, i: int) -> Tensor:
    others = torch.cat([x[:i], x[i + 1 :]])
    if not len(others):
        return x[i]
    width = x.shape[1] // layer.heads
    parts = []
    for h in range(layer.heads):
        cut = slice(h * width, (h + 1) * width)
        logits = layer.key(others)[:, cut] @ layer.query(x[i])[cut] / width**0.5
        parts.append(logits.softmax(0) @ layer.value(others)[:, cut])
    return x[i] + layer.beta * layer.output(torch.cat(parts))


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    heads=st.sampled_from([1, 2, 3]),
    layers=st.integers(1, 3),
    outputs=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
def test_equals_the_definition_set_by_set(
    sizes: list[int], heads: int, layers: int, outputs: int, seed: int
) -> None:
    torch.manual_seed(seed)
    head = HyperSagnn(6, heads, layers=layers, outputs=outputs)
    randomised(head)
    x = torch.randn(sum(sizes), 6, dtype=torch.float64, requires_grad=True)
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    sets = list(x.split(sizes))
    found = head(x, offsets)
    expected = torch.stack([by_hand(head, s) if len(s) else x.new_zeros(outputs) for s in sets])
    torch.testing.assert_close(found, expected)
    if len(x):
        weights = torch.randn_like(found)
        wanted = [x, *head.parameters()]
        both = [
            torch.autograd.grad((out * weights).sum(), wanted, allow_unused=True, materialize_grads=True)
            for out in (found, expected)
        ]
        torch.testing.assert_close(both[0], both[1])


def test_order_of_members_and_company_of_other_sets_make_no_difference() -> None:
    torch.manual_seed(0)
    head = HyperSagnn(8, 2)
    randomised(head)
    x = torch.randn(7, 8, dtype=torch.float64)
    together = head(x, torch.tensor([0, 3, 7]))
    torch.testing.assert_close(head(x[:3], torch.tensor([0, 3]))[0], together[0])
    torch.testing.assert_close(head(x[[6, 3, 5, 4]], torch.tensor([0, 4]))[0], together[1])


def test_no_sets_and_no_members() -> None:
    head = HyperSagnn(4, 2, outputs=3)
    assert head(torch.zeros(0, 4), torch.tensor([0])).shape == (0, 3)
    assert torch.equal(head(torch.zeros(0, 4), torch.tensor([0, 0, 0])), torch.zeros(2, 3))


def test_initial_weights_and_dropout() -> None:
    torch.manual_seed(0)
    head = HyperSagnn(64, 4, dropout=0.5)
    linear = [m for m in head.modules() if isinstance(m, nn.Linear)]
    assert all(not m.bias.any() for m in linear)
    limit = 2**0.5 * (6 / 128) ** 0.5
    assert 0.9 * limit < head.static.weight.abs().max() <= limit
    assert [layer.beta.item() for layer in head.attention] == [pytest.approx(REZERO)] * 2
    x, offsets = torch.randn(6, 64), torch.tensor([0, 3, 6])
    assert not torch.equal(head(x, offsets), head(x, offsets))
    head.eval()
    assert torch.equal(head(x, offsets), head(x, offsets))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="heads: received 3, expected a divisor of the width 8"):
        HyperSagnn(8, 3)
    with pytest.raises(ShapeError, match=r"x: received \[3, 5\], expected \[members, 8\]"):
        HyperSagnn(8, 2)(torch.zeros(3, 5), torch.tensor([0, 3]))
    with pytest.raises(ShapeError, match="offsets"):
        HyperSagnn(8, 2)(torch.zeros(3, 8), torch.tensor([0, 4]))
