"""Which column of a table is what: by the names given, by usual names, and by what the cells hold.

Everything that was not said is guessed here and nowhere else, and said in a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from wildtype.errors import SourceError, shown
from wildtype.sources.user_tables.grid import Grid
from wildtype.sources.user_tables.layout import CROSSES, LONG, PROFILES, SHAPES, Layout
from wildtype.sources.user_tables.mutants import MutantReader
from wildtype.sources.user_tables.numbers import is_missing
from wildtype.sources.user_tables.spellings import Found
from wildtype.sources.user_tables.vocabulary import MOST_SHOWN, PHENOTYPES, SYNONYMS, Columns, define, divided

SAMPLE = 200
"""Different cells of a column that are looked at."""
MOST_GENES = 3
"""Columns of genes that are taken without being named."""
_REPLICATE = re.compile(
    r"(?P<stem>.*?)[\s_.(#-]*(?:replicate|rep|r)?[\s_.#-]*(?:\d{1,2}|(?<=[\s_.-])[a-d])\)?", re.IGNORECASE
)


@dataclass(frozen=True)
class Settled:
    """Which columns of a grid are what.

    Attributes
    ----------
    layout : Layout
        The layout with everything that was guessed filled in.
    at : dict of str to list of int
        Positions of the columns by field of `Columns`; of ``genes`` and ``value`` there may be several.
    phenotype, unit : str
        What is measured where no cell says it; the phenotype is empty if a column is to say it.
    guessed : tuple of str
        What was guessed, one line each.
    """

    layout: Layout
    at: dict[str, list[int]]
    phenotype: str
    unit: str
    guessed: tuple[str, ...]


def settle(grid: Grid, layout: Layout, reader: MutantReader) -> Settled:
    """Return which column is what.

    Raises
    ------
    SourceError
        If a column that is needed, or was named, is missing, is named twice, or could be one of several; if a
        matrix may mean two things.
    """
    at: dict[str, list[int]] = {}
    guessed: list[str] = []
    for field in fields(Columns):
        name = getattr(layout.columns, field.name)
        found = _named(grid, name, guessed)
        if not found and name == field.default:
            found = _known_as(grid, SYNONYMS.get(field.name, ()), guessed)
            if found:
                guessed.append(f"{field.name}: column {shown(grid.header[found[0]])}")
        elif not found:
            raise _no_column(grid, field.name, name)
        if found:
            at[field.name] = found
    if "genes" not in at:
        at["genes"] = _genes(grid, _rest(grid, at), reader, guessed)
        names = ", ".join(shown(grid.header[i]) for i in at["genes"])
        guessed.append(
            f"genes: {'column' if len(at['genes']) == 1 else 'columns'} {names}, by what the cells hold"
        )
    shape = layout.shape or (LONG if "value" in at else _shape(grid, _rest(grid, at), layout, reader))
    if shape != LONG:
        at.pop("value", None)
        at["value"] = [i for i in _rest(grid, at) if _is_numeric(grid, i, reader)]
        if not layout.shape:
            guessed.append(f"shape: {shape}, {SHAPES[shape]}")
    if not at.get("value"):
        at["value"] = _values(grid, _rest(grid, at), reader, guessed)
    used = [i for positions in at.values() for i in positions]
    twice = next((i for i in used if used.count(i) > 1), None)
    if twice is not None:
        raise SourceError(
            f"{grid.path}: the column {shown(grid.header[twice])} is to be two things at once: name one"
        )
    phenotype, unit = _meaning(grid, at, layout, shape)
    columns = {
        name: ",".join(grid.header[i] for i in positions)
        for name, positions in at.items()
        # A column without a name is found by what it holds, the next time too.
        if (name != "value" or shape == LONG) and all(grid.header[i] for i in positions)
    }
    return Settled(
        replace(layout, columns=replace(layout.columns, **columns), shape=shape),
        at,
        phenotype,
        unit,
        tuple(guessed),
    )


def _named(grid: Grid, name: str, guessed: list[str]) -> list[int]:
    """Return the columns of a name, or of several that commas separate; none if one of them is missing."""
    whole = _one_name(grid, name, guessed)
    if whole or "," not in name:
        return whole
    parts = [_one_name(grid, part.strip(), guessed) for part in name.split(",")]
    return [i for part in parts for i in part] if all(parts) else []


def _one_name(grid: Grid, name: str, guessed: list[str]) -> list[int]:
    header, low = grid.header, name.casefold()
    if not name:
        return []
    # Case matters only in a table that has both Value and value, and a unit only if it must.
    alike = [i for i, known in enumerate(header) if known == name]
    alike = alike or [i for i, known in enumerate(header) if known.casefold() == low]
    alike = alike or [i for i, known in enumerate(header) if divided(known)[0].casefold() == low]
    if len(alike) > 1:
        if any(cells[i] != cells[alike[0]] for cells in grid.cells for i in alike):
            raise SourceError(f"{grid.path} has several columns {name!r}: rename all but one")
        guessed.append(f"{len(alike)} columns {name!r} have the same cells: the first is read")
    return alike[:1]


def _known_as(grid: Grid, names: Sequence[str], guessed: list[str]) -> list[int]:
    return next((found for name in names if (found := _one_name(grid, name, guessed))), [])


def _no_column(grid: Grid, field: str, name: str) -> SourceError:
    known = ", ".join(shown(column) for column in grid.header[:MOST_SHOWN])
    known += f" and {len(grid.header) - MOST_SHOWN:,} more" if len(grid.header) > MOST_SHOWN else ""
    missing = next((part for part in name.split(",") if part.strip() not in grid.header), name).strip()
    return SourceError(
        f"{grid.path} has no column {missing!r} (it has {known}): name the one to use with --{field}-column, "
        f"or another --separator"
    )


def _rest(grid: Grid, at: dict[str, list[int]]) -> list[int]:
    used = {i for positions in at.values() for i in positions}
    return [i for i in range(len(grid.header)) if i not in used]


def _sample(grid: Grid, column: int) -> list[str]:
    return list({cells[column]: None for cells in grid.cells if not is_missing(cells[column])})[:SAMPLE]


def _is_numeric(grid: Grid, column: int, reader: MutantReader) -> bool:
    """Return whether most cells of a column are numbers, in any style."""
    cells = _sample(grid, column)
    return 2 * sum(map(reader.numbers.looks_like, cells)) > len(cells)


def _genes(grid: Grid, columns: Sequence[int], reader: MutantReader, guessed: list[str]) -> list[int]:
    """Return the columns most of whose cells are genes; one of two that name the same ones."""
    found: list[int] = []
    for i in columns:
        names = [reader.names(cell) for cell in _sample(grid, i)]
        # A column of wild types alone, such as the background of the strains, names no gene.
        genes = any(isinstance(reader.spellings.find(name), Found) for cell in names[:1] for name in cell)
        genes = genes or any(name in reader.index for cell in names for name in cell)
        meant = sum(all(map(reader.spellings.means, cell)) for cell in names)
        if not genes or 2 * meant <= len(names) or _is_numeric(grid, i, reader):
            continue
        same = next((j for j in found if _same_genes(grid, i, j, reader)), None)
        if same is None:
            found.append(i)
        else:
            guessed.append(
                f"column {shown(grid.header[i])} names the genes of {shown(grid.header[same])} again"
            )
    if not found:
        raise _no_column(grid, "genes", "genes")
    if len(found) > MOST_GENES:
        names_of = ", ".join(shown(grid.header[i]) for i in found[:MOST_SHOWN])
        raise SourceError(
            f"{grid.path} has several columns that may name the genes ({names_of}): name them with "
            f"--genes-column, separated by commas"
        )
    return found


def _same_genes(grid: Grid, first: int, second: int, reader: MutantReader) -> bool:
    def positions(cell: str) -> set[int]:
        found = map(reader.spellings.find, reader.names(cell))
        return {one.position for one in found if isinstance(one, Found)}

    pairs = list({(cells[first], cells[second]): None for cells in grid.cells if cells[first]})[:SAMPLE]
    return 10 * sum(positions(a) == positions(b) for a, b in pairs) >= 9 * len(pairs)


def _shape(grid: Grid, columns: Sequence[int], layout: Layout, reader: MutantReader) -> str:
    """Return the shape of a table without a column of values."""
    numeric = [i for i in columns if _is_numeric(grid, i, reader)]
    # rep1 is a replicate, also where the organism has a gene REP1, as yeast's plasmid does.
    if all(_stem(grid.header[i]) == "" for i in numeric):
        return LONG
    named = [i for i in numeric if grid.header[i] and reader.spellings.means(grid.header[i])]
    if len(named) < 2 or 2 * len(named) <= len(numeric):
        return LONG
    if layout.phenotype and define(layout.phenotype, layout.unit).min_order > 1:
        return CROSSES
    meanings = "; or ".join(f"--shape {shape} ({SHAPES[shape]})" for shape in (CROSSES, PROFILES))
    raise SourceError(f"{grid.path} is a matrix with genes as columns: say what it holds with {meanings}")


def _values(grid: Grid, columns: Sequence[int], reader: MutantReader, guessed: list[str]) -> list[int]:
    """Return the column of numbers, or those of replicates."""
    numeric = [i for i in columns if grid.header[i] and _is_numeric(grid, i, reader)]
    names = [grid.header[i] for i in numeric]
    known = [i for i, name in zip(numeric, names, strict=True) if divided(name)[0].casefold() in PHENOTYPES]
    replicates = [name for name in names if _stem(name) is not None]
    if len(numeric) == 1 or len(known) == 1:
        found = known if len(known) == 1 else numeric
        guessed.append(f"values: column {shown(grid.header[found[0]])}")
    elif len(replicates) > 1 and len({_stem(name) for name in replicates}) == 1:
        found = [i for i, name in zip(numeric, names, strict=True) if name in replicates]
        guessed.append(f"values: replicates in the columns {', '.join(map(shown, replicates))}")
    elif numeric:
        raise SourceError(
            f"{grid.path} has no column 'value' and several columns of numbers "
            f"({', '.join(map(shown, names[:MOST_SHOWN]))}): name the one to use with --value-column, or "
            f"several that are replicates, separated by commas"
        )
    else:
        raise _no_column(grid, "value", "value")
    return found


def _stem(name: str) -> str | None:
    """Return what the columns of replicates have in common, as fitness in fitness_rep2; None for others."""
    found = _REPLICATE.fullmatch(_bare(name)[0])
    return None if found is None else found["stem"].strip()


def _bare(name: str) -> tuple[str, str]:
    """Return the name of a column and its unit; in ``size (rep 2)`` the brackets hold no unit."""
    bare, unit = divided(name)
    return (
        (name, "")
        if re.fullmatch(r"\W*(replicate|rep|r)?\W*(\d+|[a-d])", unit, re.IGNORECASE)
        else (bare, unit)
    )


def _meaning(grid: Grid, at: dict[str, list[int]], layout: Layout, shape: str) -> tuple[str, str]:
    """Return phenotype and unit where no cell says them: as given, or as the column of values is called."""
    if shape != LONG:
        return layout.phenotype or ("expression" if shape == PROFILES else "value"), layout.unit
    names = [grid.header[i] for i in at["value"]]
    name, unit = _bare(names[0])
    if len(names) > 1:
        name = _stem(names[0]) or "value"
    phenotype = layout.phenotype or ("" if "phenotype" in at else name)
    known = phenotype.casefold() in PHENOTYPES
    return phenotype, layout.unit or ("" if known or "phenotype" in at else unit)
