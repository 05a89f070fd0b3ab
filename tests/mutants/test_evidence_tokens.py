"""Records of evidence: tokens without the gaps between them."""

from __future__ import annotations

import torch

from wildtype.mutants.evidence_tokens import ROW_BLOCK, TwoEdits, without_gaps


def two(q: int, u: int) -> TwoEdits:
    number = torch.arange(q * u).reshape(q, u)
    return TwoEdits(
        similarity=torch.randn(q, u, 2, 3),
        old=torch.stack([number, number], -1),
        new=torch.stack([number, -number], -1),
        mask=(number % 3 == 1) & (number != 4),
        value=number[..., None].float(),
        known=torch.ones(q, u, 1, dtype=torch.bool),
        same_condition=number.float(),
        pooled=torch.randn(q, 2),
    )


def test_tokens_keep_their_order_and_their_queries() -> None:
    tokens = two(4, 3)  # tokens 1, 7 and 10: the second query has none
    found, offsets = without_gaps(tokens)
    assert offsets.tolist() == [0, 1, 1, 2, 3]
    assert len(found.value) == ROW_BLOCK
    assert found.value.flatten().tolist() == [1, 7, 10] + [0] * (ROW_BLOCK - 3)
    assert found.new[:3].tolist() == [[1, -1], [7, -7], [10, -10]]
    torch.testing.assert_close(found.similarity[:3], tokens.similarity.flatten(0, 1)[[1, 7, 10]])
    assert found.pooled is tokens.pooled  # of queries, not of tokens


def test_no_place_and_no_query() -> None:
    for q, u in ((0, 3), (3, 0)):
        found, offsets = without_gaps(two(q, u))
        assert offsets.tolist() == [0] * (q + 1)
        assert found.similarity.shape == (0, 2, 3)
