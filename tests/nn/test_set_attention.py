"""Set attention against a loop over sets, heads and members."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.ragged import pad_ragged
from wildtype.nn.set_attention import SetAttention


def one_set(layer, x):
    """Dynamic embedding of the k members of one set, by the definition."""
    heads, members = layer.heads, len(x)
    q, k, v = (f(x).unflatten(-1, (heads, -1)) for f in (layer.query, layer.key, layer.value))
    rows = []
    for i in range(members):
        others = [j for j in range(members) if j != i or not layer.exclude_self]
        parts = torch.zeros_like(q[i])
        for head in range(heads):
            if others:
                logits = k[others, head] @ q[i, head] / q.shape[-1] ** 0.5
                parts[head] = logits.softmax(0) @ v[others, head]
        rows.append(layer.output(parts.flatten()).tanh())
    return torch.stack(rows) if rows else x.new_zeros(0, layer.output.out_features)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    exclude_self=st.booleans(),
    heads=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_padded_sets_equal_single_sets(sizes, exclude_self, heads, seed):
    torch.manual_seed(seed)
    layer = SetAttention(4, heads, width_out=2 * heads, exclude_self=exclude_self).double()
    members = torch.randn(sum(sizes), 4, dtype=torch.float64, requires_grad=True)
    padded, mask = pad_ragged(members, torch.tensor([0, *sizes]).cumsum(0), fill=float("nan"))
    dynamic, static = layer(padded, mask)
    expected = torch.cat([one_set(layer, x) for x in members.split(sizes)])
    torch.testing.assert_close(dynamic[mask], expected)
    torch.testing.assert_close(static[mask], layer.static(members).tanh())
    assert not dynamic[~mask].any()
    assert not static[~mask].any()
    if sum(sizes):
        ours, plain = (
            torch.autograd.grad(y.square().sum(), members, materialize_grads=True)[0]
            for y in (dynamic, expected)
        )
        torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize("exclude_self", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_sets_of_known_members_go_by_tables(k, exclude_self):
    torch.manual_seed(k)
    layer = SetAttention(4, 2, width_out=6, exclude_self=exclude_self).double()
    members = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    sets = torch.tensor([[0, 1, 2], [4, 3, 0], [2, 4, 1], [3, 1, 4]])[:, :k]
    ours = layer.dynamic(sets, *layer.tables(members))
    expected = torch.stack([one_set(layer, members[chosen]) for chosen in sets])
    torch.testing.assert_close(ours, expected)
    if k == 1 and exclude_self:
        assert not ours.any()
        return
    gradients = [torch.autograd.grad(y.square().sum(), members)[0] for y in (ours, expected)]
    torch.testing.assert_close(*gradients)


def test_single_member_without_itself_has_dynamic_embedding_zero():
    layer = SetAttention(4, 2)
    x = torch.randn(1, 1, 4, requires_grad=True)
    dynamic, static = layer(x, torch.ones(1, 1, dtype=torch.bool))
    assert not dynamic.any()
    assert static.any()
    assert torch.autograd.grad(dynamic.sum(), x)[0].isfinite().all()


def test_wrong_shapes_are_named():
    with pytest.raises(ShapeError, match="heads: received 3, expected a divisor of the width 4"):
        SetAttention(4, 3)
    layer = SetAttention(4, 2)
    with pytest.raises(ShapeError, match=r"x: received \[1, 2, 3\], expected \[B, k, 4\]"):
        layer(torch.ones(1, 2, 3), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"mask: received \[1, 3\], expected \[1, 2\]"):
        layer(torch.ones(1, 2, 4), torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"mask: received dtype torch\.float32"):
        layer(torch.ones(1, 2, 4), torch.ones(1, 2))
