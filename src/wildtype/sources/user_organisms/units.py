"""Units that are not single genes (operons, guides, double-stranded RNA): a table of units and their genes.

A unit has one row, with its genes in one cell, or one row per gene. Rows may be repeated, as in a table of
pairs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.errors import AmbiguousGeneError, UnknownGeneError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.description import Units
from wildtype.sources.user_organisms.edges import has_header
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, locate
from wildtype.sources.user_organisms.tables import open_table
from wildtype.sources.user_tables.numbers import is_missing

REPEATED, NO_GENE = "repeated row", "no gene"


def read_units(
    part: Units, folder: Path, problems: Problems, genes: GeneIndex | None = None
) -> tuple[dict[str, list[str]], FileCard | None]:
    """Return the genes of every unit by its name, in the order of the file, and the card.

    With ``genes``, a gene that the organism does not have is a problem.
    """
    units: dict[str, list[str]] = {}
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is None:
            return units, None
        # The separator of the part is that of genes in a cell.
        table = open_table(path, part.path)
        header = any(isinstance(column, str) for column in (part.unit, part.genes)) or has_header(table)
        (of, members), line = table.columns(
            [table.at(part.unit, header), table.at(part.genes, header)], header, problems
        )
        # Every distinct pair of cells once, in order; a table of pairs repeats them thousands of times.
        pairs, first = np.unique(np.stack([of.code, members.code], axis=1), axis=0, return_index=True)
        empty: dict[str, list[str]] = {}
        for at in np.argsort(first):
            unit, cell = of.names[pairs[at, 0]], members.names[pairs[at, 1]]
            row = int(line[first[at]])
            named = [name.strip() for name in cell.split(part.separator)]
            named = list(dict.fromkeys(name for name in named if not is_missing(name)))
            if not unit:
                problems.add(part.path, row, "a row without a unit: name it, or remove the row")
            elif not named:
                empty.setdefault(unit, [])
            elif unit in units and (len(named) > 1 or (len(units[unit]) > 1 and named[0] in units[unit])):
                problems.add(
                    part.path, row, f"unit {shown(unit)} has other genes in an earlier row: write one of them"
                )
            else:
                units[unit] = [*units.get(unit, []), *named]
                if genes is not None:
                    _check(unit, named, genes, part.path, row, problems)
        rows_of = np.bincount(of.code, minlength=len(of.names))
        lost = [unit for unit in empty if unit not in units]
        without = sum(int(rows_of[of.names.index(unit)]) for unit in lost)
        used = len(pairs) - len(empty)
        dropped = {REPEATED: len(line) - used - without, NO_GENE: without}
        card = FileCard(
            part.path,
            "units",
            len(line),
            used,
            {reason: count for reason, count in dropped.items() if count},
            "; ".join(table.notes),
            {NO_GENE: tuple(lost[:SHOWN])} if lost else {},
        )
        return units, card
    return units, None


def _check(unit: str, named: list[str], genes: GeneIndex, path: str, row: int, problems: Problems) -> None:
    for name in named:
        try:
            genes.find(name)
        except (UnknownGeneError, AmbiguousGeneError) as error:
            problems.add(
                path,
                row,
                f"unit {shown(unit)}: {error}; correct it, or let genes: names_from: [units] add such genes",
            )
