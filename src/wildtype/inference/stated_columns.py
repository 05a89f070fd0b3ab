"""What a table of gene sets states of each row beside its genes: kinds of perturbation, doses, condition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from wildtype.errors import GeneSetError, shown
from wildtype.mutants import Kind
from wildtype.tables import NO_NUMBER

KINDS, DOSES, CONDITION = ("kind", "kinds"), ("dose", "doses"), "condition"
"""Columns of a table, beside ``genes``, that state something of a row; a cell may be empty."""
Stated: TypeAlias = Mapping[str, Any]
"""The cells of a row that are not empty, by the columns of `KINDS`, `DOSES` and `CONDITION`."""
NO_DOSES = "a dose has no effect here"


def stated_of(given: Any, rows: int) -> list[Stated]:
    """Return what the columns beside ``genes`` state of each row; nothing of sets that are no table."""
    import pandas as pd

    if not isinstance(given, pd.DataFrame):
        return [{}] * rows
    columns = [name for name in (*KINDS, *DOSES, CONDITION) if name in given.columns]
    if not columns:
        return [{}] * rows
    cells = zip(*(given[name] for name in columns), strict=True)
    return [
        {name: cell for name, cell in zip(columns, row, strict=True) if not _is_empty(cell)} for row in cells
    ]


def _is_empty(cell: Any) -> bool:
    import pandas as pd

    if isinstance(cell, list | tuple | np.ndarray):
        return not len(cell)
    return not cell.strip() if isinstance(cell, str) else bool(pd.isna(cell))


def _divided(cell: Any) -> list[str]:
    """Return the parts of a cell that states something of each gene; a part may be empty."""
    if isinstance(cell, list | tuple | np.ndarray):
        return ["" if _is_empty(part) else str(part).strip() for part in cell]
    text = str(cell).strip()
    mark = next((mark for mark in ";," if mark in text), None)
    return [part.strip() for part in text.split(mark)]


def stated_kinds(stated: Stated, members: Sequence[tuple[str, int | None]]) -> list[int | None]:
    """Return the kind of each member of a row, None where neither the member nor a column states it.

    Parameters
    ----------
    stated : mapping
        What columns state of the row.
    members : sequence of (str, int or None)
        The genes as they are written, and the kind that each states by itself.

    Raises
    ------
    GeneSetError
        If a column has another number of kinds, or two statements disagree.
    ConfigError
        If a kind is not known.
    """
    kinds = [kind for _, kind in members]
    for column in KINDS:
        if column not in stated:
            continue
        parts = _divided(stated[column])
        if len(parts) == 1:
            parts *= len(members)
        if len(parts) != len(members):
            raise GeneSetError(
                f"has {len(parts)} kinds in column {column!r} for {_counted(len(members))}: give one for all "
                f"genes, or one each"
            )
        for at, part in enumerate(parts):
            before, kind = kinds[at], Kind.parse(part) if part else kinds[at]
            if before is not None and kind != before:
                raise GeneSetError(
                    f"states two kinds of {shown(members[at][0])}, {Kind(before).name.lower()} and, in "
                    f"column {column!r}, {part}: keep one of them"
                )
            kinds[at] = kind
    return kinds


def stated_doses(stated: Stated, members: Sequence[tuple[str, float]], no_doses: str) -> list[float]:
    """Return the dose of each member of a row (NaN: none); ``no_doses`` says why none can be stated."""
    doses = [dose for _, dose in members]
    for column in DOSES:
        # As a table of measurements says that there is none; a word for a kind has other letters anyway.
        parts = ["" if part in NO_NUMBER else part for part in _divided(stated.get(column, ""))]
        if not any(parts):
            continue
        if no_doses:
            raise GeneSetError(
                f"states dose {shown(next(filter(None, parts)))} in column {column!r}, and {no_doses}: empty "
                f"the column"
            )
        if len(parts) != len(members):
            raise GeneSetError(
                f"has {len(parts)} doses in column {column!r} for {_counted(len(members))}: give one each, "
                f"empty for none"
            )
        for at, part in enumerate(parts):
            dose = parse_dose(part) if part else doses[at]
            # NaN, no dose, is unlike itself.
            if doses[at] == doses[at] and dose != doses[at]:
                raise GeneSetError(
                    f"states two doses of {shown(members[at][0])}, {doses[at]:g} and, in column {column!r}, "
                    f"{part}: keep one of them"
                )
            doses[at] = dose
    for (text, _), dose in zip(members, doses, strict=True):
        if no_doses and dose == dose:
            raise GeneSetError(f"states a dose, {shown(text)}, and {no_doses}: leave it out")
    return doses


def parse_dose(text: str) -> float:
    """Return a written dose; raises ``GeneSetError`` for what is no number of at least 0."""
    try:
        dose = float(text)
    except ValueError:
        dose = math.nan
    if not (math.isfinite(dose) and dose >= 0):
        raise GeneSetError(f"has dose {shown(text)}: give a number of at least 0")
    return dose


def _counted(genes: int) -> str:
    return "1 gene" if genes == 1 else f"{genes} genes"
