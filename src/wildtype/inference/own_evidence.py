"""A user's measurements as evidence, without training again.

The model looks them up as it looks up training measurements: for mutants that differ in one or two genes, and
in the average of a gene's mutants. Weights and the calibration of intervals stay as they are.

Legend: m rows of the user's table · n genes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.errors import ConfigError, SourceError, shown
from wildtype.evidence.reference import GIVEN
from wildtype.inference.sets import COLUMN, to_table
from wildtype.inference.stated_columns import CONDITION, DOSES, KINDS, stated_of
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import class_of
from wildtype.mutants import MutantTable

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

FARTHEST = 1e6
"""Standard deviations from the mean; squares of larger values overflow in single precision."""


def with_evidence(checkpoint: Checkpoint, frame: pd.DataFrame, kinds: NDArray[np.uint8]) -> Checkpoint:
    """Return a checkpoint that also looks up the measurements of a table.

    Parameters
    ----------
    checkpoint : Checkpoint
        Of a model that reads evidence.
    frame : pandas.DataFrame
        ``genes`` (as for ``predict``: a text or a list), and either ``value`` with ``phenotype`` (optional
        where the model predicts one) or a column per phenotype, in its unit; ``condition`` if it is not the
        reference; ``kind`` and ``dose`` as for ``predict``.
    kinds : uint8 [n]
        Perturbation assumed for a gene that is named without one.

    Raises
    ------
    ConfigError
        If the model reads no evidence, or a phenotype or condition is not one it knows.
    SourceError
        If a column is missing, or a value is not a number or out of range for its phenotype; the message
        names the row, counted from 1.
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        Naming the row.
    """
    if not hasattr(frame, "columns"):
        raise SourceError(f"evidence {shown(frame)} is no table: read it first, as with pandas.read_csv")
    model = checkpoint.model
    allowed = class_of(model).looked_up(model.config, checkpoint.names)
    if not allowed:
        raise ConfigError(
            f"this {checkpoint.model.config.name} reads no evidence: choose a model that does, with "
            f"model.evidence.tokens above 0 where it has that setting"
        )
    if COLUMN not in frame.columns:
        found = ", ".join(shown(str(name)) for name in frame.columns)
        raise SourceError(
            f"the evidence has no column {COLUMN!r} (it has {found}): name the gene column {COLUMN!r}"
        )
    stated = [COLUMN, *(name for name in (*KINDS, *DOSES) if name in frame.columns)]
    no_doses = "no mutant that the model knows has a dose" if checkpoint.known.table.dose is None else ""
    table = to_table(frame[stated], checkpoint.genes, kinds, what="evidence row", no_doses=no_doses)
    table = checkpoint.with_doses(replace(table, condition=_conditions(checkpoint, frame)))
    rows = [table.take([])]
    for name, values in _columns(frame, allowed):
        number = checkpoint.known.phenotypes.index(name)
        _check_size(checkpoint, name, values)
        there = np.isfinite(values)
        _check_orders(checkpoint, name, np.flatnonzero(there), table)
        own, measured = table.take(there), values[there].astype(np.float32)
        rows.append(replace(own, value=measured, phenotype=np.full(len(own), number, np.int64)))
    given = MutantTable.concatenate(rows)
    if not len(given):
        raise SourceError("the evidence holds no number: give at least one measured value")
    known = checkpoint.known
    # Marked as given: these rows are evidence, but neither training rows (what the model has seen) nor
    # validation rows (what intervals are calibrated on).
    combined = MutantTable.concatenate([known.table, given])
    part = np.concatenate([known.part, np.full(len(given), GIVEN, np.uint8)])
    return replace(checkpoint, known=replace(known, table=combined, part=part))


def _conditions(checkpoint: Checkpoint, frame: pd.DataFrame) -> NDArray[np.int64]:
    if CONDITION not in frame.columns:
        return np.zeros(len(frame), np.int64)
    names = checkpoint.conditions
    # An empty cell is the reference condition, as in a table of sets to predict.
    stated = stated_of(frame[[CONDITION]], len(frame))
    named = [str(row.get(CONDITION, names[0])).strip() for row in stated]
    for row, name in enumerate(named, start=1):
        if name not in names:
            raise ConfigError(
                f"evidence row {row}: the model knows no condition {shown(name)}; it knows {', '.join(names)}"
            )
    return np.array([names.index(name) for name in named], np.int64)


def _columns(frame: pd.DataFrame, allowed: Sequence[str]) -> list[tuple[str, NDArray[np.float64]]]:
    """Return (phenotype, values [m], NaN where there is none) from either form of a table."""
    if "value" in frame.columns:
        values = _numbers(frame, "value", needed=True)
        named = frame["phenotype"] if "phenotype" in frame.columns else [allowed[0]] * len(frame)
        if "phenotype" not in frame.columns and len(allowed) > 1:
            raise SourceError(
                f"the evidence does not name the phenotype of its values: add a column 'phenotype' with "
                f"one of {', '.join(allowed)}"
            )
        for row, name in enumerate(named, start=1):
            if name not in allowed:
                raise ConfigError(
                    f"evidence row {row}: the model reads no phenotype {shown(str(name))}; it reads "
                    f"{', '.join(allowed)}"
                )
        names = np.asarray(named, dtype=object)
        return [(name, np.where(names == name, values, np.nan)) for name in allowed if (names == name).any()]
    found = [name for name in allowed if name in frame.columns]
    if not found:
        raise SourceError(
            f"the evidence has neither a column 'value' nor one of {', '.join(allowed)}: add the measured "
            f"values"
        )
    return [(name, _numbers(frame, name, needed=False)) for name in found]


def _check_orders(checkpoint: Checkpoint, name: str, rows: NDArray[np.int64], table: MutantTable) -> None:
    """Refuse rows of fewer genes than the phenotype is defined for, such as an epsilon of one gene."""
    least = next((one["min_order"] for one in checkpoint.phenotypes if one["name"] == name), 0)
    few = rows[table.order[rows] < least]
    if few.size:
        raise SourceError(
            f"evidence row {few[0] + 1}: {name} needs at least {least} genes, and the mutant has "
            f"{table.order[few[0]]}: correct the genes or leave the row out"
        )


def _check_size(checkpoint: Checkpoint, name: str, values: NDArray[np.float64]) -> None:
    """Refuse values [m] so far from all known ones that they must be in another unit."""
    known = checkpoint.known
    others = known.table.value[known.table.phenotype == known.phenotypes.index(name)].astype(np.float64)
    others = others[np.isfinite(others)]
    centre, sd = (float(others.mean()), float(others.std()) or 1.0) if others.size else (0.0, 1.0)
    far = np.flatnonzero(np.abs(values - centre) > FARTHEST * sd)
    if far.size:
        row = int(far[0])
        raise SourceError(
            f"evidence row {row + 1}: {name} is {values[row]:.4g}, more than a million standard deviations "
            f"from what was measured so far (mean {centre:.4g}, sd {sd:.4g}): check its unit"
        )


def _numbers(frame: pd.DataFrame, column: str, *, needed: bool) -> NDArray[np.float64]:
    import pandas as pd

    numbers: Any = pd.to_numeric(frame[column], errors="coerce")
    values = np.asarray(numbers, dtype=np.float64)
    # An empty cell means "not measured" in a column per phenotype, but is an error in a column of values.
    bad = ~np.isfinite(values) & (needed | ~frame[column].isna().to_numpy())
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise SourceError(
            f"evidence row {row + 1}: {column} is {shown(str(frame[column].iloc[row]))}, which is no finite "
            f"number: correct it or leave the row out"
        )
    return values
