"""Closed forms for triple mutants: predictions from the fitness of their pairs and singles, without any fit.

``tau_zero`` assumes no trigenic interaction; ``min_pairs`` assumes that the triple mutant grows as fast as
its slowest pair. Under flux balance a triple deletion mutant never grows faster than that, so that
``min_pairs`` is an upper bound there. Both are given in fitness and in tau (Kuzmin et al. 2018, Science
360:eaao1729).

Legend: m measured rows · t triples · n genes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.interactions import fitness_from_tau, tau
from wildtype.errors import ConfigError
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import perturbation_id

CLOSED_FORMS = {
    "tau_zero": "no trigenic interaction: fitness follows from pairs and singles",
    "min_pairs": "fitness of the slowest pair",
}
"""Every closed form by name, with one line for tables."""
PHENOTYPES = ("fitness", "tau")
PAIRS = tuple(combinations(range(3), 2))

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Fitness of the pairs and singles of T triples.

    Attributes
    ----------
    pairs : float64 [3, T]
        Of the first and second, first and third, second and third gene.
    singles : float64 [3, T]
        Of each gene alone.
    unmeasured : bool [3, T]
        Pairs that were not measured: they are the product of their singles.
    missing_singles : int
        How many of the 3 T singles were not measured: they are 1.
    """

    pairs: Floats
    singles: Floats
    unmeasured: NDArray[np.bool_]
    missing_singles: int

    @property
    def missing_pairs(self) -> int:
        """How many of the 3 T pairs were not measured."""
        return int(self.unmeasured.sum())


def applies(phenotype: str, table: MutantTable) -> bool:
    """Return whether closed forms apply: to fitness or tau, where all rows are triples."""
    return phenotype in PHENOTYPES and len(table) > 0 and bool((table.order == 3).all())


def parts_of(
    triples: MutantTable, measured: MutantTable, single_fitness: NDArray[np.float32] | None = None
) -> Parts:
    """Look the pairs and singles of triples up among measured mutants; O((M + T) log(M + T)).

    A part is the same genes with the same kinds and doses in the same condition; several rows of one are
    averaged. Neither rows of other orders nor the labels of the triples are read.

    Parameters
    ----------
    triples : MutantTable
        T rows of three genes.
    measured : MutantTable
        M rows of fitness that may be seen.
    single_fitness : float32 [n], optional
        Used for singles that no row has (NaN: not known), whatever the condition and kind.

    Raises
    ------
    ShapeError
        If a row of ``triples`` has not three genes.
    """
    genes = triples.matrix(3)
    state = _states(measured, triples)
    states = state[measured.gene.size :].reshape(-1, 3)
    alone = _look_up(measured, state, [triples.condition] * 3, [states[:, [i]] for i in range(3)])
    if single_fitness is not None:
        alone = np.where(np.isnan(alone), single_fitness.astype(np.float64)[genes.T], alone)
    missing_singles = int(np.isnan(alone).sum())
    alone = np.where(np.isnan(alone), 1.0, alone)
    pairs = _look_up(measured, state, [triples.condition] * 3, [states[:, list(pair)] for pair in PAIRS])
    # Without a measured pair, ε = f_ab − f_a f_b is taken as 0 (Mani et al. 2008).
    products = np.stack([alone[i] * alone[j] for i, j in PAIRS])
    unmeasured = np.isnan(pairs)
    return Parts(np.where(unmeasured, products, pairs), alone, unmeasured, missing_singles)


def closed_form(name: str, phenotype: str, parts: Parts) -> Floats:
    """Return the prediction of a closed form for T triples, float64 [T], as ``fitness`` or ``tau``.

    Raises
    ------
    ConfigError
        If there is no such closed form, or none for the phenotype.
    """
    if name not in CLOSED_FORMS:
        raise ConfigError(f"there is no closed form {name!r}; known: {', '.join(CLOSED_FORMS)}")
    if phenotype not in PHENOTYPES:
        raise ConfigError(f"closed form {name!r} gives {' and '.join(PHENOTYPES)}, not {phenotype!r}")
    if name == "tau_zero":
        zero = np.zeros(parts.pairs.shape[1])
        return zero if phenotype == "tau" else fitness_from_tau(zero, *parts.pairs, *parts.singles)[0]
    slowest = parts.pairs.min(axis=0)
    return slowest if phenotype == "fitness" else tau(slowest, *parts.pairs, *parts.singles)


def _states(measured: MutantTable, triples: MutantTable) -> NDArray[np.int64]:
    """Return one number per perturbation of both tables: equal for equal gene, kind and dose."""
    tables = (measured, triples)
    doses = [np.full(t.gene.size, np.nan) if t.dose is None else t.dose.astype(np.float64) for t in tables]
    return perturbation_id(
        np.concatenate([t.gene for t in tables]),
        np.concatenate([t.kind for t in tables]),
        np.concatenate(doses),
    )


def _look_up(
    measured: MutantTable,
    state: NDArray[np.int64],
    conditions: list[NDArray[np.int64]],
    sets: list[NDArray[np.int64]],
) -> Floats:
    """Return the measured values of sets of states [T, k] under conditions [T], [len(sets), T]; NaN: none."""
    k = sets[0].shape[1]
    rows = np.flatnonzero(measured.order == k)
    have = state[: measured.gene.size][measured.offsets[rows][:, None] + np.arange(k)]
    keys = np.concatenate(
        [
            np.column_stack([measured.condition[rows], have]),
            *(np.column_stack([c, s]) for c, s in zip(conditions, sets, strict=True)),
        ]
    )
    ids = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    count = np.bincount(ids[: rows.size], minlength=int(ids.max(initial=-1)) + 1)
    total = np.bincount(ids[: rows.size], weights=measured.value[rows], minlength=count.size)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return np.asarray(mean[ids[rows.size :]].reshape(len(sets), -1), np.float64)
