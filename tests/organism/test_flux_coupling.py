"""Reactions that are said to be tied are tied in every steady state."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import null_space

from tests.insilico import in_silico
from wildtype.organism.flux_coupling import coupled_reactions


def tied(stoichiometry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which reactions carry no flux [r] and which pairs are proportional [r, r], by the null space."""
    space = null_space(stoichiometry)
    norm = np.linalg.norm(space, axis=1)
    unit = space / np.maximum(norm, 1e-9)[:, None]
    return norm < 1e-9, np.abs(unit @ unit.T) > 1 - 1e-9


def test_a_chain_and_a_dead_end() -> None:
    #            in  a>b b>c out side dead
    network = [[1, -1, 0, 0, -1, 0], [0, 1, -1, 0, 0, 0], [0, 0, 1, -1, 1, 0], [0, 0, 0, 0, 0, 1]]
    found = coupled_reactions(sparse.csr_array(np.array(network, float)))
    assert found[5] == -1
    assert found[1] == found[2]
    assert found[0] == found[3]  # what goes in comes out, whichever way it takes: two metabolites say so
    assert found[4] not in (found[0], found[1])


@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_sets_are_never_too_large(m: int, r: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    network = draw.integers(-2, 3, (m, r)) * (draw.random((m, r)) < 0.4).astype(float)
    found = coupled_reactions(sparse.csr_array(network))
    blocked, together = tied(network)
    assert blocked[found < 0].all()
    for i in range(r):
        for j in range(r):
            if found[i] >= 0 and found[i] == found[j]:
                assert together[i, j] or (blocked[i] and blocked[j])


def test_the_core_network_of_ecoli() -> None:
    metabolism = in_silico("ecoli-core").metabolism
    assert metabolism is not None
    network = metabolism.stoichiometry
    found = coupled_reactions(network)
    blocked, together = tied(network.toarray())
    assert not blocked.any()
    assert np.array_equal(found[:, None] == found[None, :], together)
    assert len(np.unique(found)) < 0.7 * len(found)
