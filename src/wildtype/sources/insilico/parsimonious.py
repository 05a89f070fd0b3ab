"""Parsimonious flux balance: of all fluxes with the largest growth, one with the smallest total flux.

minimise Σ|v| subject to S v = 0, the bounds, and c·v at its maximum (Lewis et al. 2010, Mol Syst Biol 6:390).
Some mutants have several such fluxes; GLPK takes one, always the same.
Every reaction is split into a forward and a backward part, and one more column carries the growth that has to
be reached, so that a mutant differs from the wild type in bounds only.

Legend: r reactions · b rows of the stoichiometry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from wildtype.organism import Metabolism
from wildtype.sources.insilico.fba import Change, GrowthProgram, LinearProgram, Solution, Status

SLACK = 1e-9
"""Share of the largest growth that may be missing: the solver's own error."""
ROUND_OFF = 1e-6
"""Fluxes below this are 0: the second program's own error."""


class ParsimoniousProgram:
    """The two linear programs of one metabolism, solved for any changes of bounds.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type.

    Attributes
    ----------
    wild_type : Solution
        Growth in 1/h, and the flux of the wild type, float64 [R].

    Raises
    ------
    DatasetError
        If the wild type does not grow.
    """

    def __init__(self, metabolism: Metabolism) -> None:
        self.growth = GrowthProgram(metabolism)
        r = len(metabolism.reactions)
        s, c = metabolism.stoichiometry, sparse.csr_array(metabolism.objective[None, :])
        blocks: Any = [[s, -s, None], [c, -c, sparse.csr_array([[-1.0]])]]
        lower, upper = _split(metabolism.lower, metabolism.upper)
        reached = self.growth.wild_type.value * (1.0 - SLACK)
        self._total = LinearProgram(
            sparse.csr_array(sparse.block_array(blocks)),
            np.append(lower, reached),
            np.append(upper, np.inf),
            np.append(np.full(2 * r, -1.0), 0.0),
        )
        self._reactions = r
        self.wild_type = self._joined(self.growth.wild_type, self._total.unchanged)

    def solve(self, change: Change) -> Solution:
        """Return growth and flux under a mutant's bounds; the flux is 0 unless both programs are optimal."""
        grown = self.growth.solve(change)
        if grown.status is not Status.OPTIMAL:
            return grown
        r, lower, upper = self._reactions, *_split(change.lower, change.upper)
        split = Change(
            np.concatenate([change.reaction, change.reaction + r, [2 * r]]),
            np.append(lower, max(grown.value, 0.0) * (1.0 - SLACK)),
            np.append(upper, np.inf),
        )
        return self._joined(grown, self._total.solve(split))

    def _joined(self, grown: Solution, total: Solution) -> Solution:
        forward, backward = np.split(total.flux[: 2 * self._reactions], 2)
        flux = forward - backward
        return Solution(grown.value, total.status, np.where(np.abs(flux) < ROUND_OFF, 0.0, flux))


def _split(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the bounds of the forward parts, then of the backward parts."""
    return (
        np.concatenate([np.maximum(lower, 0.0), np.maximum(-upper, 0.0)]),
        np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)]),
    )
