"""The perturbation head without [B, N, d] against the definition with it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.perturbation_head import own_reads, perturbation_attention, perturbation_attention_reference

F64 = torch.float64


def problem(sizes, genes, width, width_v, dtype=F64):
    """Random inputs; no gene twice in a mutant."""
    query, keys = torch.randn(len(sizes), width, dtype=dtype), torch.randn(genes, width, dtype=dtype)
    values, delta = torch.randn(genes, width_v, dtype=dtype), torch.randn(sum(sizes), width_v, dtype=dtype)
    gene = [torch.randperm(genes)[:size] for size in sizes]
    return query, keys, values, torch.cat(gene), torch.tensor([0, *sizes]).cumsum(0), delta


def leaves(arguments):
    query, keys, values, gene, offsets, delta = arguments
    floats = [x.detach().clone().requires_grad_() for x in (query, keys, values, delta)]
    return floats, (*floats[:3], gene, offsets, floats[3])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_and_gradients_equal_the_definition(data):
    genes = data.draw(st.integers(1, 7))
    sizes = data.draw(st.lists(st.integers(0, genes), min_size=1, max_size=5))
    width, width_v = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    scale = data.draw(st.sampled_from([1.0, 0.4]))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    floats, arguments = leaves(problem(sizes, genes, width, width_v))
    ours = perturbation_attention(*arguments, scale=scale)
    plain = perturbation_attention_reference(*arguments, scale=scale)
    torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)
    weight = torch.randn_like(plain)
    for x, y in zip(
        torch.autograd.grad(ours, floats, weight), torch.autograd.grad(plain, floats, weight), strict=True
    ):
        torch.testing.assert_close(x, y, rtol=1e-10, atol=1e-12)


def test_heads_are_independent():
    torch.manual_seed(0)
    query, keys, values, gene, offsets, delta = problem([2, 0, 1], 5, 3, 4)
    heads = [[x * (1 + head) for x in (query, keys, values, delta)] for head in range(3)]
    stacked = [torch.stack(parts) for parts in zip(*heads, strict=True)]
    together = perturbation_attention(*stacked[:3], gene, offsets, stacked[3])
    for head, (q, k, v, d) in enumerate(heads):
        torch.testing.assert_close(together[head], perturbation_attention(q, k, v, gene, offsets, d))


def test_wild_type_rows_are_plain_attention_and_all_genes_may_be_deleted():
    torch.manual_seed(0)
    query, keys, values, gene, offsets, _ = problem([0, 4], 4, 3, 2)
    delta = -values[gene]
    z = perturbation_attention(query, keys, values, gene, offsets, delta)
    torch.testing.assert_close(z[0], (query[0] @ keys.T).softmax(-1) @ values)
    torch.testing.assert_close(z[1], torch.zeros(2, dtype=F64), rtol=0, atol=1e-12)


def test_float32_and_bf16():
    torch.manual_seed(0)
    exact = problem([1, 3, 0], 30, 8, 8)
    expected = perturbation_attention(*exact)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
        narrow = [x.to(dtype) if x.is_floating_point() else x for x in exact]
        z = perturbation_attention(*narrow)
        assert z.dtype == dtype
        torch.testing.assert_close(z.double(), expected, rtol=tolerance, atol=tolerance)


def test_two_runs_are_bit_identical():
    torch.manual_seed(0)
    floats, arguments = leaves(problem([3] * 40, 50, 8, 8, torch.float32))
    runs = [torch.autograd.grad(perturbation_attention(*arguments).square().sum(), floats) for _ in range(2)]
    assert all(torch.equal(x, y) for x, y in zip(*runs, strict=True))


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.ones(3), r"query: received \[3\], expected \[B, d\]"),
        (1, torch.ones(5, 4), r"keys: received \[5, 4\], expected \[N, 3\]"),
        (2, torch.ones(4, 2), r"values: received \[4, 2\], expected \[5, dv\]"),
        (3, torch.tensor([0, 1, 5]), "gene: received positions 0 to 5, expected 0 to 4"),
        (4, torch.tensor([0, 3]), r"offsets: received \[2\], expected \[3\]"),
        (4, torch.tensor([0, 1, 4]), "offsets: received 0 to 4, expected .* 3"),
        (5, torch.ones(3, 4), r"delta: received \[3, 4\], expected \[3, 2\]"),
    ],
)
def test_wrong_shapes_are_named(position, value, message):
    arguments = list(problem([2, 1], 5, 3, 2, torch.float32))
    arguments[position] = value
    with pytest.raises(ShapeError, match=message):
        perturbation_attention(*arguments)


@pytest.mark.parametrize("foreign", [0, 2])
@pytest.mark.parametrize("sizes", [[2, 0, 3, 1], [0, 0], [4]])
def test_own_reads_are_the_mean_of_single_queries(sizes, foreign):
    torch.manual_seed(sum(sizes))
    heads, genes, asked = 2, 7, 5
    native = genes - foreign
    _, keys, values, gene, offsets, delta = problem(sizes, genes, 3, 4)
    query = torch.randn(heads, asked, 3, dtype=F64)
    keys, values, delta = (torch.stack([x, 2 * x]) for x in (keys, values, delta))
    asks = torch.randint(0, asked, (len(gene),))
    floats = [x.detach().clone().requires_grad_() for x in (query, keys, values, delta)]
    ours = own_reads(*floats[:3], gene, offsets, floats[3], asks=asks, shared=native if foreign else None)
    plain = by_definition(*floats, asks, gene, offsets, native)
    torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)
    if len(gene):
        weight = torch.randn_like(plain)
        found, expected = (torch.autograd.grad(x, floats, weight) for x in (ours, plain))
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)


def by_definition(query, keys, values, delta, asks, gene, offsets, native):
    """Softmax over all shared genes and those of the set, of each of its genes, and their mean."""
    out = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        inside, z = gene[first:last], query.new_zeros(len(query), values.shape[-1])
        known = torch.arange(keys.shape[1]) < native
        known[inside] = True
        own = values.index_add(1, inside, delta[:, first:last])
        for a in asks[first:last].tolist():
            logits = (query[:, a, None] * keys).sum(-1).masked_fill(~known, -torch.inf)
            z = z + (logits.softmax(-1)[..., None] * own).sum(1) / len(inside)
        out.append(z)
    return torch.stack(out, 1)
