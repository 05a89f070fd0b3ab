"""From a predicted interaction to the fitness it implies, with the sd that follows from what is known.

    f_ab  = f_a f_b + ε                                                          (two genes)
    f_abc = τ + f_ab f_c + f_ac f_b + f_bc f_a − 2 f_a f_b f_c                    (three genes; Kuzmin et al.
    2018)

Fitness of singles and pairs is what was measured; the sd of the prediction is its root mean squared error on
validation rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.interactions import fitness_from_epsilon, fitness_from_tau
from wildtype.errors import ConfigError
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import SetIndex


@dataclass(frozen=True)
class ExpectedFitness:
    """Fitness and sd [M] (wild type = 1), NaN where ``reasons`` (row to sentence) says why."""

    fitness: NDArray[np.float64]
    sd: NDArray[np.float64]
    reasons: dict[int, str]


def expected_fitness(
    checkpoint: Checkpoint, table: MutantTable, predicted: NDArray[np.float64]
) -> ExpectedFitness:
    """Return the fitness implied by predictions [M, p] of ``epsilon`` (order 2) and ``tau`` (order 3).

    A row of order 1 gets its measured single-mutant fitness.

    Raises
    ------
    ConfigError
        If the model predicts neither epsilon nor tau.
    """
    names = [p["name"] for p in checkpoint.phenotypes]
    if not {"epsilon", "tau"} & set(names):
        raise ConfigError(f"as=fitness needs a model of epsilon or tau; this one predicts {', '.join(names)}")
    known = checkpoint.known
    fitness, sd = np.full(len(table), np.nan), np.full(len(table), np.nan)
    reasons: dict[int, str] = {}
    singles, singles_sd = known.single_fitness.astype(np.float64), known.single_fitness_sd.astype(np.float64)

    def missing_single(row: int, genes: NDArray[np.int64]) -> None:
        lacking = [checkpoint.genes.names[g] for g in genes if not np.isfinite(singles[g])]
        reasons[row] = f"single-mutant fitness of {', '.join(lacking)} is not known"

    rows = np.flatnonzero(table.order == 1)
    genes = table.gene[table.offsets[rows]]
    fitness[rows], sd[rows] = singles[genes], singles_sd[genes]
    for row, gene in zip(rows, genes, strict=True):
        if not np.isfinite(fitness[row]):
            missing_single(int(row), np.array([gene]))

    rows = np.flatnonzero(table.order == 2)
    if "epsilon" in names and rows.size:
        p = names.index("epsilon")
        pair = table.take(rows).matrix(2)
        (f_a, f_b), (s_a, s_b) = singles[pair].T, np.nan_to_num(singles_sd[pair]).T
        error = np.full(len(rows), _error(checkpoint, "epsilon"))
        fitness[rows], sd[rows] = fitness_from_epsilon(predicted[rows, p], f_a, f_b, error, s_a, s_b)
        for row, genes in zip(rows, pair, strict=True):
            if not np.isfinite(singles[genes]).all():
                missing_single(int(row), genes)

    rows = np.flatnonzero(table.order == 3)
    if "tau" in names and rows.size:
        p = names.index("tau")
        triple = table.take(rows).matrix(3)
        pairs, pairs_sd = _pair_fitness(checkpoint, triple)
        f, s = singles[triple].T, np.nan_to_num(singles_sd[triple]).T
        error = np.full(len(rows), _error(checkpoint, "tau"))
        (f_ab, f_ac, f_bc), (s_ab, s_ac, s_bc) = pairs.T, np.nan_to_num(pairs_sd).T
        (f_a, f_b, f_c), (s_a, s_b, s_c) = f, s
        fitness[rows], sd[rows] = fitness_from_tau(
            predicted[rows, p], f_ab, f_ac, f_bc, f_a, f_b, f_c, error, s_ab, s_ac, s_bc, s_a, s_b, s_c
        )
        for i, row in enumerate(rows):
            if not np.isfinite(f[:, i]).all():
                missing_single(int(row), triple[i])
            elif not np.isfinite(pairs[i]).all():
                reasons[int(row)] = "fitness of one of its pairs is not known"

    for row in np.flatnonzero(np.isnan(fitness)):
        reasons.setdefault(
            int(row), f"no {'tau' if table.order[row] > 2 else 'epsilon'} is predicted for its order"
        )
    sd[np.isnan(fitness)] = np.nan
    return ExpectedFitness(fitness, sd, reasons)


def _error(checkpoint: Checkpoint, phenotype: str) -> float:
    """Return the root mean squared error on validation rows, in the phenotype's unit."""
    return float(checkpoint.metrics["validation"][phenotype]["rmse"])


def _pair_fitness(
    checkpoint: Checkpoint, triple: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return measured fitness [M, 3] of the pairs ab, ac, bc and its sd; NaN where unknown."""
    known = checkpoint.known
    out, out_sd = np.full(triple.shape, np.nan), np.full(triple.shape, np.nan)
    if "fitness" not in known.phenotypes:
        return out, out_sd
    measured = known.table.take(
        (known.table.phenotype == known.phenotypes.index("fitness")) & (known.table.order == 2)
    )
    if not len(measured):
        return out, out_sd
    index = SetIndex(measured)
    for column, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        found = index.find(MutantTable.from_matrix(triple[:, [i, j]]))
        out[:, column] = np.where(found >= 0, measured.value[found], np.nan)
        out_sd[:, column] = np.where(found >= 0, measured.sd[found], np.nan)
    return out, out_sd
