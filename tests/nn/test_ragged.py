"""Ragged helpers against a loop over sets."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.ragged import pad_ragged, segment_ids, segment_mean, segment_prod, segment_sum, take_rows

F64 = torch.float64


def offsets_of(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 4), max_size=5),
    trailing=st.sampled_from([(), (3,), (2, 2)]),
    seed=st.integers(0, 99),
)
def test_segments_equal_a_loop(sizes, trailing, seed):
    torch.manual_seed(seed)
    offsets = offsets_of(sizes)
    x = torch.randn(sum(sizes), *trailing, dtype=F64)
    x = x.masked_fill(torch.rand(x.shape) < 0.3, 0.0).requires_grad_()
    plain = {
        segment_sum: lambda part: part.sum(0),
        segment_mean: lambda part: part.sum(0) / max(len(part), 1),
        segment_prod: lambda part: part.prod(0),
    }
    for ours, one in plain.items():
        parts = [one(part) for part in x.split(sizes)]
        expected = torch.stack(parts) if parts else x.new_zeros(0, *trailing)
        result = ours(x, offsets)
        torch.testing.assert_close(result, expected)
        weight = torch.randn_like(result)
        if parts:
            for a, b in zip(
                torch.autograd.grad(result, x, weight), torch.autograd.grad(expected, x, weight), strict=True
            ):
                torch.testing.assert_close(a, b)
    assert segment_ids(offsets).tolist() == [b for b, size in enumerate(sizes) for _ in range(size)]


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 4), max_size=5))
def test_padding_keeps_rows_in_place(sizes):
    x = torch.randn(sum(sizes), 2, dtype=F64, requires_grad=True)
    padded, mask = pad_ragged(x, offsets_of(sizes), fill=7.0)
    assert padded.shape == (len(sizes), max(sizes, default=0), 2)
    assert mask.sum(1).tolist() == sizes
    assert torch.equal(padded[mask], x)
    assert (padded[~mask] == 7.0).all()
    assert torch.equal(torch.autograd.grad(padded.sum(), x)[0], torch.ones_like(x))


def test_product_gradient_where_factors_are_zero():
    x = torch.tensor([2.0, 0.0, 3.0, 0.0, 0.0], dtype=F64, requires_grad=True)
    offsets = offsets_of([3, 0, 2])
    assert segment_prod(x, offsets).tolist() == [0.0, 1.0, 0.0]
    assert torch.autograd.grad(segment_prod(x, offsets).sum(), x)[0].tolist() == [0.0, 6.0, 0.0, 0.0, 0.0]


def test_take_rows_is_indexing():
    x = torch.randn(4, 2, 3, dtype=F64, requires_grad=True)
    index = torch.tensor([[3, 3], [0, 1]])
    assert torch.equal(take_rows(x, index), x[index])
    weight = torch.randn(2, 2, 2, 3, dtype=F64)
    ours, plain = (torch.autograd.grad(y, x, weight)[0] for y in (take_rows(x, index), x[index]))
    torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (torch.tensor([0, 2]), "received 0 to 2, expected .* from 0 to the number of rows, 3"),
        (torch.tensor([1, 3]), "received 1 to 3"),
        (torch.tensor([0, 3, 2, 3]), "expected to rise"),
        (torch.tensor([0.0, 3.0]), "received torch.float32"),
        (torch.tensor([], dtype=torch.int64), r"expected torch.int64 \[B \+ 1\]"),
    ],
)
def test_wrong_offsets_are_named(offsets, message):
    with pytest.raises(ShapeError, match=message):
        segment_sum(torch.ones(3, 1), offsets)
