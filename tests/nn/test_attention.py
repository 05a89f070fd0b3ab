"""Flash attention with lse against the explicit map: values and gradients through both results."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.attention import _has_flash, attention_with_lse, attention_with_lse_reference, merge_outside

F64 = torch.float64


def values_and_gradients(attend, q, k, v, through=(True, True), **options):
    inputs = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    results = attend(*inputs, **options)
    generator = torch.Generator().manual_seed(0)
    losses = [
        (y * torch.randn(y.shape, dtype=F64, generator=generator).to(y.dtype)).sum() if used else y.sum() * 0
        for y, used in zip(results, through, strict=True)
    ]
    return [*results, *torch.autograd.grad(sum(losses), inputs)]


@pytest.fixture(params=["kernels", "tiles"])
def path(request, monkeypatch):
    """The way that attention takes: the kernels of a CPU, or tiles of few queries where there are none."""
    if request.param == "tiles":
        monkeypatch.setattr("wildtype.nn.attention._has_flash", lambda q, width: False)
        monkeypatch.setattr("wildtype.nn.tiled_attention.TILE", 30)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_all_paths_agree(path, data):
    draw = data.draw
    batch, heads, queries, keys = (draw(st.integers(1, top)) for top in (2, 3, 6, 7))
    width, width_v = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    outside = draw(st.none() | st.sets(st.integers(0, keys - 1), max_size=keys - 1).map(sorted))
    outside = None if outside is None else torch.tensor(outside, dtype=torch.int64)
    scale = draw(st.sampled_from([None, 1.0, 3.0]))
    through = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    torch.manual_seed(draw(st.integers(0, 1000)))
    q, k = torch.randn(batch, heads, queries, width), torch.randn(batch, heads, keys, width)
    v = torch.randn(batch, heads, keys, width_v)
    for dtype, tolerance in ((F64, 1e-11), (torch.float32, 5e-5)):
        tensors = [x.to(dtype) for x in (q, k, v)]
        options = {"scale": scale, "outside": outside, "through": through}
        ours = values_and_gradients(attention_with_lse, *tensors, **options)
        plain = values_and_gradients(attention_with_lse_reference, *tensors, **options)
        for x, y in zip(ours, plain, strict=True):
            torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


def test_gradients_are_those_of_finite_differences(path):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, d, dtype=F64, requires_grad=True) for n, d in ((3, 3), (4, 3), (4, 2)))
    outside = torch.tensor([True, False, False, True])
    assert torch.autograd.gradcheck(lambda *x: attention_with_lse(*x, outside=outside), (q, k, v))


@pytest.mark.parametrize("keys", [300, 1100])
def test_long_sequences_cross_the_blocks_of_the_kernel(keys):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, keys, 8)
    outside = torch.tensor([0])
    ours = values_and_gradients(attention_with_lse, q, k, v, outside=outside)
    plain = values_and_gradients(
        attention_with_lse_reference, q.double(), k.double(), v.double(), outside=outside
    )
    for x, y in zip(ours, plain, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-5, atol=1e-5)


def test_outside_key_that_holds_nearly_all_the_mass(path):
    """1 − Σα would be 0 here: the inside part is about exp(−200) of the row."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 5, 4, dtype=F64)
    q[..., 0] = 10.0
    k[..., 2, 0] = 40.0
    outside = torch.tensor([2])
    _, lse = attention_with_lse(q, k, v, outside=outside)
    _, full = attention_with_lse(q, k, v)
    assert (lse - full).max() < -150
    ours = values_and_gradients(attention_with_lse, q, k, v, outside=outside)
    plain = values_and_gradients(attention_with_lse_reference, q, k, v, outside=outside)
    for x, y in zip(ours, plain, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)
    inside = [0, 1, 3, 4]
    alone = attention_with_lse_reference(q, k[:, :, inside], v[:, :, inside])[1]
    torch.testing.assert_close(lse, alone)
    narrow = values_and_gradients(attention_with_lse, q.float(), k.float(), v.float(), outside=outside)
    for x, y in zip(narrow, plain, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-3)


def test_all_keys_outside_but_one(path):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 4, 3, dtype=F64)
    out, lse = attention_with_lse(q, k, v, outside=torch.tensor([0, 1, 3]), scale=1.0)
    torch.testing.assert_close(lse, (q * k[:, :, 2:3]).sum(-1))
    torch.testing.assert_close(out, attention_with_lse_reference(q, k, v, scale=1.0)[0])


def test_repeated_outside_positions_and_masks_mean_the_same():
    q, k, v = torch.randn(3, 1, 1, 4, 3)
    mask = torch.tensor([False, True, False, False])
    for x, y in zip(
        attention_with_lse(q, k, v, outside=torch.tensor([1, 1])),
        attention_with_lse(q, k, v, outside=mask),
        strict=True,
    ):
        assert torch.equal(x, y)


def test_merging_key_by_key_is_attention(path):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 3, dtype=F64)
    out, lse = v[:, :, :1].expand(2, 2, 5, 3), (q * k[:, :, :1]).sum(-1)
    for key in range(1, 5):
        part = slice(key, key + 1)
        out, lse = merge_outside(out, lse, q, k[:, :, part], v[:, :, part], scale=1.0)
    for x, y in zip((out, lse), attention_with_lse_reference(q, k, v, scale=1.0), strict=True):
        torch.testing.assert_close(x, y)


def test_strided_inputs(path):
    torch.manual_seed(0)
    tokens = torch.randn(2, 5, 3 * 4, dtype=F64)
    q, k, v = (tokens.roll(i, 0).unflatten(-1, (3, 4)).transpose(1, 2) for i in range(3))
    ours = values_and_gradients(attention_with_lse, q, k, v)
    plain = values_and_gradients(attention_with_lse_reference, q, k, v)
    for x, y in zip(ours, plain, strict=True):
        torch.testing.assert_close(x, y)


def test_halves_keep_lse_in_float32(path):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 6, 8).bfloat16()
    out, lse = attention_with_lse(q, k, v, outside=torch.tensor([0]))
    assert (out.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
    expected = attention_with_lse_reference(q.double(), k.double(), v.double(), outside=torch.tensor([0]))
    torch.testing.assert_close(out.double(), expected[0], rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(lse.double(), expected[1], rtol=1e-4, atol=1e-4)


def test_backward_may_run_twice_on_a_retained_graph(path):
    q, k, v = (x.requires_grad_() for x in torch.randn(3, 1, 1, 4, 3))
    out, lse = attention_with_lse(q, k, v)
    loss = out.sum() + lse.sum()
    first = torch.autograd.grad(loss, q, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, q)[0])


def test_second_derivatives_are_refused_by_kernels_and_given_by_the_reference(path):
    torch.manual_seed(0)
    q, k, v = (x.requires_grad_() for x in torch.randn(3, 1, 1, 3, 2, dtype=F64))
    out, lse = attention_with_lse(q, k, v)
    with pytest.raises(RuntimeError, match="use attention_with_lse_reference for second derivatives"):
        torch.autograd.grad(out.sum() + lse.sum(), q, create_graph=True)
    assert torch.autograd.gradgradcheck(attention_with_lse_reference, (q, k, v))


def test_devices_without_a_kernel_take_tiles():
    assert _has_flash(torch.empty(1), 16)
    assert not _has_flash(torch.empty(1, device="meta"), 16)
    assert not _has_flash(torch.empty(1, dtype=torch.complex64), 16)


def ones(*shape):
    return torch.ones(shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ones(2, 3), ones(2, 3), ones(2, 3)), r"q: received \[2, 3\], expected \[B, H, Nq, d\]"),
        ((ones(1, 1, 2, 3), ones(1, 1, 2, 4), ones(1, 1, 2, 3)), r"k: received .* expected \[1, 1, N, 3\]"),
        ((ones(1, 1, 2, 3), ones(1, 1, 2, 3), ones(1, 1, 3, 3)), r"v: received .* expected \[1, 1, 2, dv\]"),
        ((ones(1, 1, 0, 3), ones(1, 1, 2, 3), ones(1, 1, 2, 3)), r"q: received \[1, 1, 0, 3\].* at least 1"),
        ((ones(1, 1, 2, 3), ones(1, 1, 0, 3), ones(1, 1, 0, 3)), r"k: received \[1, 1, 0, 3\].* at least 1"),
        ((ones(1, 1, 2, 3), ones(1, 1, 2, 3).double(), ones(1, 1, 2, 3)), r"k: received dtype torch.float64"),
    ],
)
def test_wrong_shapes_are_named_before_a_kernel_sees_them(arguments, message):
    for attend in (attention_with_lse, attention_with_lse_reference):
        with pytest.raises(ShapeError, match=message):
            attend(*arguments)


@pytest.mark.parametrize(
    ("outside", "message"),
    [
        (torch.tensor([0, 1]), "received all 2 keys, expected at least one key left inside"),
        (torch.tensor([2]), "received positions 2 to 2, expected 0 to 1"),
        (torch.tensor([True]), r"outside: received \[1\], expected \[2\]"),
        (torch.tensor([1.0]), "expected torch.int64"),
    ],
)
def test_wrong_outside_keys_are_named(outside, message):
    with pytest.raises(ShapeError, match=message):
        attention_with_lse(*torch.ones(3, 1, 1, 2, 3), outside=outside)
