"""`predicted_frame`: what a model says of mutants, beside what is known of them, as a table to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.evaluation.conformal import check_level
from wildtype.inference.expected_fitness import expected_fitness
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.identity import SetIndex

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.inference.predictor import Predictor


def predicted_frame(
    predictor: Predictor, table: MutantTable, *, as_: str = "phenotype", interval: float | None = None
) -> pd.DataFrame:
    """Return the columns that ``Predictor.predict`` describes, which says what is raised."""
    import pandas as pd

    if interval is not None:
        check_level(interval)
    checkpoint, known = predictor.checkpoint, predictor.checkpoint.known
    values, sd = predictor.predict_with_sd(table)
    around = None if interval is None else predictor.conformal.intervals(table, values, sd, interval)
    names, kinds = predictor.genes.names, [kind.name.lower() for kind in Kind]
    spans = list(zip(table.offsets[:-1], table.offsets[1:], strict=True))
    columns: dict[str, Any] = {
        "genes": [",".join(names[g] for g in table.gene[a:b]) for a, b in spans],
        "kinds": [",".join(kinds[k] for k in table.kind[a:b]) for a, b in spans],
    }
    notes: list[list[str]] = [[] for _ in spans]
    for p, phenotype in enumerate(checkpoint.phenotypes):
        minimum = phenotype["min_order"]
        too_small = table.order < minimum
        values[too_small, p] = np.nan
        for row in np.flatnonzero(too_small).tolist():
            notes[row].append(f"{phenotype['name']} needs at least {minimum} genes")
        if phenotype.get("form") == "gene":
            continue  # a frame of its own: `genes`
        # A mutant too small for the phenotype has its note; any other empty cell comes from overflow or from
        # inputs that are not numbers, and must not look like a phenotype that is not defined.
        for row in np.flatnonzero(~np.isfinite(values[:, p]) & ~too_small).tolist():
            notes[row].append(f"{phenotype['name']} is not a number: the model's computation overflowed")
        columns[phenotype["name"]] = values[:, p]
        if around is not None:
            for name, part in (("low", around.low), ("high", around.high), ("sd", sd)):
                columns[f"{phenotype['name']}_{name}"] = np.where(too_small, np.nan, part[:, p])
    for rows, reason in () if around is None else around.reasons:
        for row in rows.tolist():
            notes[row].append(reason)
    near = known.table.take(known.table.inside(table.gene))
    for output in checkpoint.outputs:
        if output.form != "gene":
            number = known.phenotypes.index(output.name)
            columns[f"{output.name}_measured"] = _measured(near, table, number)
    if as_ == "fitness":
        expected = expected_fitness(checkpoint, table, values)
        columns["fitness_expected"], columns["fitness_expected_sd"] = expected.fitness, expected.sd
        for at, reason in expected.reasons.items():
            notes[at].append(reason)
    elif as_ != "phenotype":
        raise ConfigError(f"as={as_!r} is not known; known: phenotype, fitness")
    seen = np.zeros(len(predictor.genes), bool)
    trained = predictor.trained
    seen[trained.gene] = True
    columns["order"] = table.order
    columns["order_seen"] = np.isin(table.order, trained.order)
    columns["genes_seen"] = np.bincount(table.row, weights=seen[table.gene], minlength=len(table)).astype(int)
    columns["essential"] = [
        ",".join(names[g] for g in table.gene[a:b] if known.essential[g]) for a, b in spans
    ]
    columns["note"] = ["; ".join(reasons) for reasons in notes]
    return pd.DataFrame(columns)


def _measured(known: MutantTable, table: MutantTable, phenotype: int) -> NDArray[np.float64]:
    """Return the known value of each row's gene set in its condition (mean over kinds), NaN without one."""
    out = np.full(len(table), np.nan)
    for condition in np.unique(table.condition):
        rows = np.flatnonzero((known.phenotype == phenotype) & (known.condition == condition))
        if not rows.size:
            continue
        values = known.take(rows)
        _, first, group = np.unique(values.set_id, return_index=True, return_inverse=True)
        mean = np.bincount(group, weights=values.value) / np.bincount(group)
        asked = np.flatnonzero(table.condition == condition)
        found = SetIndex(values.take(first)).find(table.take(asked))
        out[asked] = np.where(found >= 0, mean[found], np.nan)
    return out
