"""The grid of a screen and the sides of its crosses."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.mutants.grid import CrossSides, gene_hashes, pair_codes


@pytest.mark.parametrize("rule", ["random", "one-unseen"])
def test_genes_at_the_end_change_no_side(rule: str) -> None:
    n, names = 12, [f"G{i}" for i in range(12)]
    left, right = np.triu_indices(n, 1)
    held = np.where(np.arange(n) < 3, 2, 0).astype(np.uint8)
    hidden = np.unique(pair_codes(left, right, n)[::7])
    sides = CrossSides(gene_hashes(names, 0), rule, held=held, hidden=hidden)
    wider = sides.extended(5)
    np.testing.assert_array_equal(wider.of(left, right), sides.of(left, right))
    assert (np.diff(wider.hidden) > 0).all()
    assert len(wider.word) == n + 5
