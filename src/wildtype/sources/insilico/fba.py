"""Flux balance analysis: growth is the largest biomass flux that a mutant's steady-state network carries.

maximise c·v subject to S v = 0, lower ≤ v ≤ upper, and v = 0 for the reactions a mutant has lost
(Varma & Palsson 1994, Appl Environ Microbiol 60:3724). The linear program is handed to GLPK as arrays.

Legend: r reactions · u lists of dead reactions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.organism import Metabolism

ZERO_FLUX = 1e-9
"""A reaction with less flux than this carries none (mmol per gram dry weight and hour)."""


class Status(IntEnum):
    """How a linear program ended."""

    OPTIMAL = 0
    INFEASIBLE = 1
    FAILED = 2


class Solution(NamedTuple):
    """The optimum of one linear program.

    ``growth`` is in 1/h and 0 unless optimal; ``flux`` float64 [R] is one optimal flux (zeros unless
    optimal).
    """

    growth: float
    status: Status
    flux: NDArray[np.float64]


class GrowthProgram:
    """The linear program of one metabolism, solved for any lists of dead reactions.

    Every solve starts from the optimal basis of the wild type, which stays dual feasible when bounds are
    tightened: a few dual simplex steps suffice, and a result depends neither on the order of the solves nor
    on the process they run in.

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
        import swiglpk as glpk

        self.glpk: Any = glpk
        glpk.glp_term_out(glpk.GLP_OFF)
        rows, columns = metabolism.stoichiometry.shape
        self.columns = columns
        self._problem = glpk.glp_create_prob()
        glpk.glp_set_obj_dir(self._problem, glpk.GLP_MAX)
        glpk.glp_add_rows(self._problem, rows)
        glpk.glp_add_cols(self._problem, columns)
        for i in range(rows):
            glpk.glp_set_row_bnds(self._problem, i + 1, glpk.GLP_FX, 0.0, 0.0)
        for j in range(columns):
            lower, upper = float(metabolism.lower[j]), float(metabolism.upper[j])
            self._bound(self._problem, j, lower, upper)
            glpk.glp_set_obj_coef(self._problem, j + 1, float(metabolism.objective[j]))
        self._load(metabolism)
        self._settings = glpk.glp_smcp()
        glpk.glp_init_smcp(self._settings)
        self._settings.msg_lev = glpk.GLP_MSG_OFF
        glpk.glp_adv_basis(self._problem, 0)
        self.wild_type = self._optimise(self._problem)
        if self.wild_type.growth <= 0:
            raise DatasetError(
                "the wild type of this metabolism does not grow: check its bounds and objective"
            )
        self._settings.meth = glpk.GLP_DUALP

    def __del__(self) -> None:
        if hasattr(self, "_problem"):
            self.glpk.glp_delete_prob(self._problem)

    def _load(self, metabolism: Metabolism) -> None:
        matrix = metabolism.stoichiometry.tocoo()
        row, column, value = (self.glpk.intArray(matrix.nnz + 1), self.glpk.intArray(matrix.nnz + 1),
                              self.glpk.doubleArray(matrix.nnz + 1))  # fmt: skip
        for k, (i, j, s) in enumerate(zip(*matrix.coords, matrix.data, strict=True)):
            row[k + 1], column[k + 1], value[k + 1] = int(i) + 1, int(j) + 1, float(s)
        self.glpk.glp_load_matrix(self._problem, matrix.nnz, row, column, value)

    def _bound(self, problem: Any, j: int, lower: float, upper: float) -> None:
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
            glpk.glp_std_basis(problem)  # a basis that went bad numerically: start from nothing
            code = glpk.glp_simplex(problem, self._settings)
        status = glpk.glp_get_status(problem)
        if code == 0 and status == glpk.GLP_NOFEAS:
            return Solution(0.0, Status.INFEASIBLE, nothing)
        growth = glpk.glp_get_obj_val(problem)
        if code != 0 or status != glpk.GLP_OPT or not np.isfinite(growth):
            return Solution(0.0, Status.FAILED, nothing)
        flux = np.array([glpk.glp_get_col_prim(problem, j + 1) for j in range(self.columns)])
        return Solution(max(growth, 0.0), Status.OPTIMAL, flux)

    def solve(self, dead: NDArray[np.int64]) -> Solution:
        """Return the optimum when the reactions at ``dead`` carry no flux."""
        copy = self.glpk.glp_create_prob()
        try:
            self.glpk.glp_copy_prob(copy, self._problem, self.glpk.GLP_OFF)
            for j in dead.tolist():
                self.glpk.glp_set_col_bnds(copy, j + 1, self.glpk.GLP_FX, 0.0, 0.0)
            return self._optimise(copy)
        finally:
            self.glpk.glp_delete_prob(copy)


class Growths(NamedTuple):
    """Optima of u lists of dead reactions.

    ``growth`` float64 [U] in 1/h; ``status`` uint8 [U]; ``active`` uint8 [U, ⌈R/8⌉], bit-packed: the
    reactions that carry flux in one optimum of each.
    """

    growth: NDArray[np.float64]
    status: NDArray[np.uint8]
    active: NDArray[np.uint8]


def solve_all(program: GrowthProgram, dead: list[NDArray[np.int64]]) -> Growths:
    """Solve u linear programs one after the other."""
    solutions = [program.solve(one) for one in dead]
    active = np.zeros((len(dead), program.columns), bool)
    for row, solution in zip(active, solutions, strict=True):
        row[:] = np.abs(solution.flux) > ZERO_FLUX
    return Growths(
        np.array([s.growth for s in solutions], np.float64),
        np.array([s.status for s in solutions], np.uint8),
        np.packbits(active, axis=1),
    )
