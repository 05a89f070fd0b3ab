"""Which rows of a table are one mutant: equal genes, kinds and doses, and which one in one condition.

Legend: m rows · b mutants · k perturbed genes of one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.table import MutantTable

Ints = NDArray[np.int64]


def joint(columns: Sequence[tuple[NDArray[Any], int]]) -> Ints:
    """Return one code [m] per row of several columns of codes, ascending as the rows do, first column first.

    Parameters
    ----------
    columns : sequence of (integers [m], int)
        Codes, none negative, and one more than the largest that the column may hold.
    """
    out, size = columns[0][0].astype(np.int64), columns[0][1]
    for codes, count in columns[1:]:
        if size * count >= 2**63:  # ranks order the rows as the codes do, and take less room
            (out, size), (codes, count) = _ranks(out), _ranks(codes)
        out, size = out * count + codes, size * count
    return out


def _ranks(codes: NDArray[Any]) -> tuple[Ints, int]:
    distinct, ranks = np.unique(codes, return_inverse=True)
    return ranks.reshape(-1).astype(np.int64), len(distinct)


def mutant_id(table: MutantTable) -> Ints:
    """Return [M] a number for each row's mutant: equal for equal genes, kinds and doses."""
    dose = np.zeros(len(table.gene), np.int64)
    if table.dose is not None:
        dose = np.unique(table.dose, return_inverse=True)[1].reshape(-1)  # all NaN are one
    columns = [
        (column, int(column.max(initial=0)) + 1) for column in (table.gene, table.kind.astype(np.int64), dose)
    ]
    out = np.zeros(len(table), np.int64)
    used = 0
    for k in np.unique(table.order):
        rows = np.flatnonzero(table.order == k)
        at = table.offsets[rows][:, None] + np.arange(k)
        each = [(column[at[:, j]], size) for j in range(k) for column, size in columns]
        distinct, code = np.unique(joint([(np.zeros(rows.size, np.int64), 1), *each]), return_inverse=True)
        out[rows] = used + code.reshape(-1)
        used += len(distinct)
    return out


@dataclass(frozen=True, eq=False)
class Grouping:
    """The rows of a table by mutant and condition.

    Attributes
    ----------
    first : int64 [b]
        First row of every mutant, ascending.
    mutant : int64 [m]
        Which of them each row is about.
    """

    first: Ints
    mutant: Ints


def grouping(table: MutantTable) -> Grouping | None:
    """Return the rows of equal genes, kinds, doses and condition together; None where no two rows are.

    Rows of one phenotype are not looked at: each of them is a mutant of its own. Costs O(m log m).
    """
    if not len(table) or (table.phenotype == table.phenotype[0]).all():
        return None
    mutants = mutant_id(table)
    codes = joint([(mutants, int(mutants.max()) + 1), (table.condition, int(table.condition.max()) + 1)])
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) == len(table):
        return None
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Grouping(first[order].astype(np.int64), place[code.reshape(-1)].astype(np.int64))
