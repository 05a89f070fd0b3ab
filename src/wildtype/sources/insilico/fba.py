"""Flux balance analysis: growth is the largest biomass flux that a mutant's steady-state network carries.

Growth: maximise c·v subject to S v = 0 and lower ≤ v ≤ upper. A mutant has different bounds for some
reactions, 0 for those it has lost (Varma & Palsson 1994, Appl Environ Microbiol 60:3724).

Parsimonious flux: of all fluxes with the largest growth, one with the smallest total flux. Minimise Σ|v|
subject to S v = 0, the bounds, and c·v at its maximum (Lewis et al. 2010, Mol Syst Biol 6:390).

GLPK receives the linear programs as arrays.

Legend: r reactions · c reactions whose bounds a mutant changes · u mutants · b rows of the stoichiometry.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError
from wildtype.organism import Metabolism

ZERO_FLUX = 1e-9
"""A reaction with less flux than this carries none (mmol per gram dry weight and hour)."""
SLACK = 1e-9
"""Fraction of the largest growth that may be missing: the tolerance of the first program."""
ROUND_OFF = 1e-6
"""Fluxes below this (mmol per gram dry weight and hour) are 0: the tolerance of the second program."""


class Change(NamedTuple):
    """Bounds in which a mutant differs from the wild type.

    ``reaction`` int64 [C], each once; ``lower`` and ``upper`` float64 [C] in mmol per gram dry weight and
    hour.
    """

    reaction: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def closing(cls, dead: NDArray[np.int64]) -> Change:
        """Return the change of a mutant that has lost the reactions ``dead``."""
        zero = np.zeros(dead.size)
        return cls(dead.astype(np.int64), zero, zero)


class Status(IntEnum):
    """How a linear program ended."""

    OPTIMAL = 0
    INFEASIBLE = 1
    FAILED = 2


class Solution(NamedTuple):
    """The optimum of one linear program.

    ``value`` is 0 unless optimal; ``flux`` float64 [R] is one optimal flux (zeros unless optimal).
    """

    value: float
    status: Status
    flux: NDArray[np.float64]


class LinearProgram:
    """maximise c·v subject to S v = 0 and lower ≤ v ≤ upper, solved for any changes of bounds.

    Every solve starts from the optimal basis of the unchanged program, which stays dual feasible when bounds
    are tightened: a few dual simplex steps suffice, and a result depends neither on the order of the solves
    nor on the process they run in.

    Parameters
    ----------
    stoichiometry : csr [rows, R]
        S.
    lower, upper, objective : float64 [R]
        Bounds, and c.
    """

    def __init__(
        self,
        stoichiometry: sparse.csr_array,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        objective: NDArray[np.float64],
    ) -> None:
        import swiglpk as glpk

        self.glpk: Any = glpk
        glpk.glp_term_out(glpk.GLP_OFF)  # GLPK writes to the C library's stdout, past Python
        rows, columns = stoichiometry.shape
        self.columns = columns
        self._problem = glpk.glp_create_prob()
        glpk.glp_set_obj_dir(self._problem, glpk.GLP_MAX)
        glpk.glp_add_rows(self._problem, rows)
        glpk.glp_add_cols(self._problem, columns)
        for i in range(rows):
            glpk.glp_set_row_bnds(self._problem, i + 1, glpk.GLP_FX, 0.0, 0.0)  # S v = 0; GLPK counts from 1
        for j in range(columns):
            self._bound(self._problem, j, float(lower[j]), float(upper[j]))
            glpk.glp_set_obj_coef(self._problem, j + 1, float(objective[j]))
        self._load(stoichiometry)
        self._settings = glpk.glp_smcp()
        glpk.glp_init_smcp(self._settings)
        self._settings.msg_lev = glpk.GLP_MSG_OFF
        glpk.glp_adv_basis(self._problem, 0)
        self.unchanged = self._optimise(self._problem)
        # Only now the dual simplex: the wild type's basis is optimal, hence dual feasible, and tighter bounds
        # leave it so. GLP_DUALP changes to the primal simplex if the dual one fails.
        self._settings.meth = glpk.GLP_DUALP

    def __del__(self) -> None:
        if hasattr(self, "_problem"):
            self.glpk.glp_delete_prob(self._problem)

    def _load(self, stoichiometry: sparse.csr_array) -> None:
        matrix = stoichiometry.tocoo()
        row, column, value = (self.glpk.intArray(matrix.nnz + 1), self.glpk.intArray(matrix.nnz + 1),
                              self.glpk.doubleArray(matrix.nnz + 1))  # fmt: skip
        for k, (i, j, s) in enumerate(zip(*matrix.coords, matrix.data, strict=True)):
            row[k + 1], column[k + 1], value[k + 1] = int(i) + 1, int(j) + 1, float(s)
        self.glpk.glp_load_matrix(self._problem, matrix.nnz, row, column, value)

    def _bound(self, problem: Any, j: int, lower: float, upper: float) -> None:
        # GLPK refuses a double-bounded variable whose bounds are equal; it must be declared fixed.
        kind = self.glpk.GLP_FX if lower == upper else self.glpk.GLP_DB
        if np.isinf(lower) or np.isinf(upper):
            both = {(True, True): "GLP_FR", (True, False): "GLP_UP", (False, True): "GLP_LO"}
            kind = getattr(self.glpk, both[bool(np.isinf(lower)), bool(np.isinf(upper))])
        self.glpk.glp_set_col_bnds(problem, j + 1, kind, lower, upper)

    def _optimise(self, problem: Any) -> Solution:
        glpk = self.glpk
        nothing = np.zeros(self.columns)
        code = glpk.glp_simplex(problem, self._settings)
        if code != 0 or glpk.glp_get_status(problem) not in (glpk.GLP_OPT, glpk.GLP_NOFEAS):
            # The basis became ill-conditioned: start again from the basis of slack variables.
            glpk.glp_std_basis(problem)
            code = glpk.glp_simplex(problem, self._settings)
        status = glpk.glp_get_status(problem)
        if code == 0 and status == glpk.GLP_NOFEAS:
            return Solution(0.0, Status.INFEASIBLE, nothing)
        value = glpk.glp_get_obj_val(problem)
        if code != 0 or status != glpk.GLP_OPT or not np.isfinite(value):
            return Solution(0.0, Status.FAILED, nothing)
        flux = np.array([glpk.glp_get_col_prim(problem, j + 1) for j in range(self.columns)])
        return Solution(value, Status.OPTIMAL, flux)

    def solve(self, change: Change) -> Solution:
        """Return the optimum under a mutant's bounds; a lower bound above the upper one is infeasible."""
        if (change.lower > change.upper).any():  # GLPK would refuse the program instead
            return Solution(0.0, Status.INFEASIBLE, np.zeros(self.columns))
        # A copy, because the basis moves while solving: results would depend on the order of the mutants.
        copy = self.glpk.glp_create_prob()
        try:
            self.glpk.glp_copy_prob(copy, self._problem, self.glpk.GLP_OFF)
            bounds = (change.reaction.tolist(), change.lower.tolist(), change.upper.tolist())
            for j, lower, upper in zip(*bounds, strict=True):
                self._bound(copy, j, lower, upper)
            return self._optimise(copy)
        finally:
            self.glpk.glp_delete_prob(copy)


class GrowthProgram(LinearProgram):
    """The linear program of one metabolism's growth, in 1/h; ``wild_type`` is its solution.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type.

    Raises
    ------
    DatasetError
        If the wild type does not grow.
    """

    def __init__(self, metabolism: Metabolism) -> None:
        super().__init__(metabolism.stoichiometry, metabolism.lower, metabolism.upper, metabolism.objective)
        self.wild_type = self.unchanged
        if self.wild_type.value <= 0:
            raise DatasetError(
                "the wild type of this metabolism does not grow: check its bounds and objective"
            )


class Growths(NamedTuple):
    """Largest growth of u mutants.

    ``growth`` float64 [U] in 1/h; ``status`` uint8 [U]; ``active`` uint8 [U, ⌈R/8⌉], bit-packed: the
    reactions that carry flux in one optimum of each.
    """

    growth: NDArray[np.float64]
    status: NDArray[np.uint8]
    active: NDArray[np.uint8]


def solve_all(program: GrowthProgram, changes: list[Change]) -> Growths:
    """Solve u linear programs one after the other."""
    solutions = [program.solve(one) for one in changes]
    active = np.zeros((len(changes), program.columns), bool)
    for row, solution in zip(active, solutions, strict=True):
        row[:] = np.abs(solution.flux) > ZERO_FLUX
    return Growths(
        np.array([max(s.value, 0.0) for s in solutions], np.float64),  # −1e-17 is no growth either
        np.array([s.status for s in solutions], np.uint8),
        np.packbits(active, axis=1),
    )


class ParsimoniousProgram:
    """The linear programs for growth and for the smallest total flux, solved for any changes of bounds.

    Where several fluxes have the smallest total, GLPK returns one of them, always the same.

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
        # |v| is not linear: v = forward − backward with both at least 0, and forward + backward is minimised.
        # One more column g = c·v carries the required growth: a mutant changes bounds, never the matrix.
        blocks: Any = [[s, -s, None], [c, -c, sparse.csr_array([[-1.0]])]]
        lower, upper = _split(metabolism.lower, metabolism.upper)
        # Exactly the maximum would often be infeasible: it is known only to the solver's tolerance.
        reached = self.growth.wild_type.value * (1.0 - SLACK)
        self._total = LinearProgram(
            sparse.csr_array(sparse.block_array(blocks)),
            np.append(lower, reached),
            np.append(upper, np.inf),
            np.append(np.full(2 * r, -1.0), 0.0),  # minimise by maximising the negative sum
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
        # Growth from the first program: the second reaches it only up to SLACK.
        return Solution(grown.value, total.status, np.where(np.abs(flux) < ROUND_OFF, 0.0, flux))


def _split(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the bounds of the forward parts, then of the backward parts.

    forward in [max(lower, 0), max(upper, 0)], backward in [max(−upper, 0), max(−lower, 0)].
    """
    return (
        np.concatenate([np.maximum(lower, 0.0), np.maximum(-upper, 0.0)]),
        np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)]),
    )
