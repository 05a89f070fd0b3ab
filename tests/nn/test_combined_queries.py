from __future__ import annotations

from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn import combined_queries
from wildtype.nn.combined_queries import CombinedQueries, _alike

HEADS, MEMBERS, KEYS, WIDTH, VALUES = 3, 7, 50, 5, 4


def inputs(seed: int, sharpness: float = 1.0, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    shapes = (MEMBERS, WIDTH), (KEYS, WIDTH), (KEYS, VALUES)
    query, keys, values = (torch.randn(HEADS, *shape, generator=draw, dtype=dtype) for shape in shapes)
    return [sharpness * query, keys, values]


def defined(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, sets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention of the mean query of every set: z [m, H, e], log-normaliser [m, H], attention [m, N, H]."""
    logits = query[:, sets].mean(2) @ keys.mT
    beta = logits.softmax(-1)
    return (beta @ values).transpose(0, 1), logits.logsumexp(-1).T, beta.permute(1, 2, 0)


def check(given_inputs: list[torch.Tensor], sets: torch.Tensor, tolerance: float) -> None:
    combined = CombinedQueries(*given_inputs, sets.shape[1])
    z, lse = combined(sets)
    expected, expected_lse, beta = defined(*given_inputs, sets)
    torch.testing.assert_close(z, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(lse, expected_lse, rtol=tolerance, atol=tolerance)
    keys = torch.stack([sets[:, 0], sets[:, -1] + 20], 1)
    found = combined.of_keys(sets, lse, keys)
    chosen = beta.gather(1, keys[..., None].expand(-1, -1, HEADS))
    torch.testing.assert_close(found, chosen, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("runs", "short", "block"), [(16, 64, 2048), (2, 64, 16), (3, 0, 7)])
def test_all_combinations(
    order: int, runs: int, short: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combined_queries, "RUNS", runs)
    monkeypatch.setattr(combined_queries, "SHORT", short)
    monkeypatch.setattr(combined_queries, "BLOCK", block)
    check(inputs(order), torch.tensor(list(combinations(range(MEMBERS), order))), 1e-12)


@given(st.lists(st.integers(1, 300), max_size=200))
def test_runs_that_stand_in_one_tile_are_alike(lengths: list[int]) -> None:
    ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    found = list(_alike(ends))
    assert [run for start, stop in found for run in range(start, stop)] == list(range(len(lengths)))
    for start, stop in found:
        assert 0 < stop - start <= combined_queries.RUNS
        for a, b in pairwise(lengths[start:stop]):
            assert b <= 2 * a + combined_queries.SHORT


def test_no_sets() -> None:
    z, lse = CombinedQueries(*inputs(0), 3)(torch.empty(0, 3, dtype=torch.int64))
    assert (z.shape, lse.shape) == ((0, HEADS, VALUES), (0, HEADS))


@given(st.data())
def test_any_sets_in_any_order(data: st.DataObject) -> None:
    order = data.draw(st.integers(1, 3))
    one = st.lists(st.integers(0, MEMBERS - 1), min_size=order, max_size=order, unique=True)
    sets = torch.tensor(data.draw(st.lists(one, min_size=1, max_size=40)))
    check(inputs(data.draw(st.integers(0, 99))), sets, 1e-12)


def test_members_that_attend_to_different_keys_are_answered_from_their_logits() -> None:
    query, keys, values = inputs(0, dtype=torch.float32)
    keys = torch.zeros_like(keys)
    keys[:, 0, 0] = keys[:, 1, 1] = 1
    query[:] = 0
    query[:, 0, 0] = query[:, 1, 1] = 300  # each weight of one is nothing to the other
    sets = torch.tensor([[0, 1], [0, 2], [2, 3]])
    z, lse = CombinedQueries(query, keys, values, 2)(sets)
    expected, expected_lse, _ = defined(query.double(), keys.double(), values.double(), sets)
    torch.testing.assert_close(z.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-5, atol=1e-5)


def test_shapes_are_checked() -> None:
    query, keys, values = inputs(0)
    with pytest.raises(ShapeError, match="keys"):
        CombinedQueries(query, keys[:, :, :-1], values, 2)
    with pytest.raises(ShapeError, match="sets"):
        CombinedQueries(query, keys, values, 2)(torch.tensor([[0, 1, 2]]))
