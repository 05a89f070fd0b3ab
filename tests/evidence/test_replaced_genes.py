"""Means over pairs with replaced genes: the plain definition, and the same bits in any company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.evidence.replaced_genes import RUN, SHARED, replace_both, replace_one

PRIOR, FEW = 0.3, 3


class Problem:
    """Random residuals, neighbours and pairs; some genes have no strain and some no neighbours."""

    def __init__(self, seed: int, strains: int = 9, genes: int = 12, k: int = 5) -> None:
        draw = np.random.default_rng(seed)
        value = draw.normal(size=(strains, strains)).astype(np.float32)
        self.value = value + value.T
        known = draw.random((strains, strains)) < 0.5
        known = known & known.T & ~np.eye(strains, dtype=bool)
        # Cells of a fold that may not be seen are not known, either.
        fold = np.where(known, 1 + (np.add.outer(np.arange(strains), np.arange(strains)) % 3), 0)
        self.folds = fold.astype(np.uint8), 2
        self.known = known & (fold != 2)
        self.near = draw.integers(-1, strains, (genes, k)).astype(np.int32)
        self.weight = np.where(self.near < 0, 0, draw.random((genes, k))).astype(np.float32)
        # Strains of the first genes; a long run of pairs of one gene, and single ones.
        left = np.sort(np.append(np.full(RUN + 2 * SHARED, 4), draw.integers(0, genes, 40)))
        right = draw.integers(0, genes, len(left))
        self.left, self.right = (
            np.stack([np.where(g == genes - 1, -1, g), np.where(g < strains, g, -1)], axis=1)
            for g in (left, right)
        )

    def one(self, every: bool, rows: slice = slice(None)) -> np.ndarray:
        left, right = self.left[rows], self.right[rows]
        out = np.full((len(left), 4), np.nan, np.float32)
        replace_one(self.near, self.weight, self.value, *self.folds, every, left, right, PRIOR, out)
        return out

    def both(self, every: bool, rows: slice = slice(None)) -> np.ndarray:
        left, right = self.left[rows], self.right[rows]
        out = np.full((len(left), 2), np.nan, np.float32)
        replace_both(self.near, self.weight, self.value, *self.folds, every, left, right, FEW, out)
        return out

    def plain_one(self, every: bool) -> np.ndarray:
        out = np.full((len(self.left), 4), np.nan)
        for m, ends in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True)):
            sums = []
            for own, other in (ends, ends[::-1]):
                found = [
                    (float(w), float(self.value[other[1], s]))
                    for s, w in zip(self.near[own[0]], self.weight[own[0]], strict=True)
                    if own[0] >= 0 and other[1] >= 0 and s >= 0 and s != other[1]
                    if every or self.known[other[1], s]
                ]
                sums.append((sum(w * r for w, r in found), sum(w for w, _ in found)))
            total, mass = (sum(column) for column in zip(*sums, strict=True))
            means = [top / (below + PRIOR) for top, below in sums if below > 0]
            out[m, 3] = mass
            if means:
                out[m, :3] = total / (mass + PRIOR), min(means), max(means)
        return out

    def plain_both(self, every: bool) -> np.ndarray:
        out = np.full((len(self.left), 2), np.nan)
        for m, ((a, _), (b, _)) in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True)):
            total = mass = 0.0
            for i, v in zip(self.near[a][:FEW], self.weight[a][:FEW], strict=True):
                for j, w in zip(self.near[b][:FEW], self.weight[b][:FEW], strict=True):
                    if a >= 0 and b >= 0 and i >= 0 and j >= 0 and i != j and (every or self.known[i, j]):
                        total += float(v) * float(w) * float(self.value[i, j])
                        mass += float(v) * float(w)
            out[m] = total / mass if mass > 0 else np.nan, mass
        return out


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), every=st.booleans())
def test_means_are_those_of_the_plain_definition(seed: int, every: bool) -> None:
    problem = Problem(seed)
    np.testing.assert_allclose(problem.one(every), problem.plain_one(every), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(problem.both(every), problem.plain_both(every), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("every", [False, True])
def test_a_pair_has_the_same_bits_alone_and_in_a_run(every: bool) -> None:
    problem = Problem(7)
    one, both = problem.one(every), problem.both(every)
    for m in range(0, len(one), 5):
        np.testing.assert_array_equal(problem.one(every, slice(m, m + 1))[0], one[m])
        np.testing.assert_array_equal(problem.both(every, slice(m, m + 1))[0], both[m])
