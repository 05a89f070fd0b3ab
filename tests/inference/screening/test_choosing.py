"""Choosing from ranked mutants, against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.inference.screening.choosing import choose

CHAIN = np.array([[0, 1], [0, 2], [3, 2], [3, 4]])
NOBODY: frozenset[int] = frozenset()


def test_a_gene_is_in_so_many_rows_at_most() -> None:
    strength = np.array([4.0, 3.0, 2.0, 1.0])
    assert choose("best", strength, CHAIN, 9, 1, NOBODY).tolist() == [0, 2]
    assert choose("best", strength, CHAIN, 9, 1, frozenset({0})).tolist() == [0, 1, 3]
    assert choose("best", strength, CHAIN, 2, None, NOBODY).tolist() == [0, 1]


def by_definition(strength: np.ndarray, genes: np.ndarray, top: int, most: int | None) -> list[int]:
    used, out, left = np.zeros(genes.max() + 1, int), [], list(range(len(genes)))
    while left and len(out) < top:
        worth = [strength[i] * 0.5 ** used[genes[i]].sum() for i in left]
        i = left.pop(int(np.argmax(worth)))
        if most is None or (used[genes[i]] < most).all():
            used[genes[i]] += 1
            out.append(i)
    return out


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("seed", range(10))
def test_diverse_is_its_definition(seed: int, most: int | None) -> None:
    rng = np.random.default_rng(seed)
    genes = np.stack([rng.choice(12, 3, replace=False) for _ in range(60)])
    strength = np.sort(rng.exponential(size=60))[::-1]
    found = choose("diverse", strength, genes, 20, most, NOBODY)
    assert found.tolist() == by_definition(strength, genes, 20, most)
