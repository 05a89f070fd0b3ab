"""Tau of triple mutants computed from predicted fitness, where tau itself is not predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.closed_forms import PAIRS, Parts, parts_of
from wildtype.datasets.interactions import tau
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.experiments.data import RunData
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import SetIndex

FITNESS, TAU = "fitness", "tau"
IMPLIED_TAU = f"{TAU} from {FITNESS}"


def implied_tau(
    data: RunData,
    predicted: Mapping[str, NDArray[np.float64]],
    own: Mapping[str, Callable[[MutantTable], NDArray[np.float64]]] | None = None,
    **options: Any,
) -> dict[str, Comparison]:
    """Return the table of tau by closure: predicted fitness of a triple, measured fitness of its parts.

    There is a table only if the run predicts fitness but not tau, and the dataset has tau of some test
    triples. All models use the same parts: the measurements that closed forms may use. For an unmeasured
    pair, a model in ``own`` uses its prediction, and other models use the product of the singles.

    Parameters
    ----------
    data : RunData
    predicted : mapping of str to float64 [M]
        Of the test rows, by model.
    own : mapping of str to callable, optional
        Predicts the fitness of pairs, by model.
    options
        Of ``evaluate_predictions``.
    """
    names = [p.name for p in data.dataset.phenotypes]
    whole = data.whole
    if FITNESS not in names or TAU in names or TAU not in [p.name for p in whole.phenotypes]:
        return {}
    test = data.part("test")
    rows = np.flatnonzero((test.phenotype == names.index(FITNESS)) & (test.order == 3))
    known = np.flatnonzero(whole.table.phenotype == whole.phenotype_index(TAU))
    if not rows.size or not known.size:
        return {}
    found = SetIndex(whole.table.take(known)).find(test.take(rows))
    rows, at = rows[found >= 0], known[found[found >= 0]]
    if not rows.size:
        return {}
    # Measured fitness without test labels, as closed forms get it: otherwise all models would look better.
    parts = parts_of(test.take(rows), data.measured_fitness(), data.single_fitness)
    implied = {
        name: tau(values[rows], *_pairs(parts, test.take(rows), (own or {}).get(name)), *parts.singles)
        for name, values in predicted.items()
    }
    comparison = evaluate_predictions(whole, at, implied, phenotype=TAU, **options)
    return {IMPLIED_TAU: comparison}


def _pairs(
    parts: Parts, triples: MutantTable, predict: Callable[[MutantTable], NDArray[np.float64]] | None
) -> NDArray[np.float64]:
    """Return the fitness of the pairs [3, T] of triples, those that were not measured as predicted."""
    if predict is None or not parts.missing_pairs:
        return parts.pairs
    genes, kinds, pairs = triples.matrix(3), triples.kind.reshape(-1, 3), parts.pairs.copy()
    for which, (i, j) in enumerate(PAIRS):
        rows = np.flatnonzero(parts.unmeasured[which])
        table = MutantTable.from_matrix(
            genes[rows][:, [i, j]], kind=kinds[rows][:, [i, j]].reshape(-1), condition=triples.condition[rows]
        )
        pairs[which, rows] = predict(table)
    return pairs
