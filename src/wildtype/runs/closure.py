"""What predicted fitness of triple mutants says of tau, where tau itself was not predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.evaluation.compare import Comparison, evaluate_predictions
from wildtype.mutants.index import SetIndex
from wildtype.phenotypes.closed_forms import parts_of
from wildtype.phenotypes.interactions import tau
from wildtype.runs.data import RunData

FITNESS, TAU = "fitness", "tau"
IMPLIED_TAU = f"{TAU} from {FITNESS}"


def implied_tau(
    data: RunData, predicted: Mapping[str, NDArray[np.float64]], **options: Any
) -> dict[str, Comparison]:
    """Return the table of tau by closure: predicted fitness of a triple, measured fitness of its parts.

    Only where the run predicts fitness, not tau, and some test rows are triples whose tau the dataset knows;
    no table otherwise. Parts are those that closed forms may look at, so that all models are given the same.

    Parameters
    ----------
    data : RunData
    predicted : mapping of str to float64 [M]
        Of the test rows, by model.
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
    parts = parts_of(test.take(rows), data.measured_fitness(), data.single_fitness)
    implied = {name: tau(values[rows], *parts.pairs, *parts.singles) for name, values in predicted.items()}
    comparison = evaluate_predictions(whole, at, implied, phenotype=TAU, **options)
    return {IMPLIED_TAU: comparison}
