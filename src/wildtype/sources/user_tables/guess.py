"""Which column of a table is what: by the names given, by usual names, and by what the cells hold.

Everything that was not said is guessed here and nowhere else, and said in a line of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from wildtype.errors import SourceError, shown
from wildtype.sources.user_tables.grid import NO_NAME, Grid
from wildtype.sources.user_tables.layout import CROSSES, LONG, PROFILES, RESPONSES, SHAPES, Layout
from wildtype.sources.user_tables.mutants import MutantReader
from wildtype.sources.user_tables.numbers import is_missing
from wildtype.sources.user_tables.spellings import GUIDE, Found
from wildtype.sources.user_tables.vocabulary import (
    MOST_SHOWN,
    PERTURBATIONS,
    PHENOTYPES,
    SYNONYMS,
    Columns,
    define,
    divided,
    parse_kind,
)

SAMPLE, LEAST, GLANCES = 200, 8, 20_000
"""Different cells of a column that are looked at: at most, at least, and of all columns of a wide table."""
MOST_GENES = 3
"""Columns of genes that are taken without being named."""
CROSSED = (("query", "array"), ("gene1", "gene2"), ("gene 1", "gene 2"), ("gene_1", "gene_2"),
           ("gene a", "gene b"), ("gene_a", "gene_b"))  # fmt: skip
"""Usual names of the two columns of genes of a cross."""
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
        Positions of the columns by field of `Columns`; of ``genes``, ``value`` and ``sd`` also several.
    measured : tuple of (str, str)
        Phenotype and unit of every column of values, where no cell says it; the phenotype is empty if a
        column is to say it.
    replicates : bool
        Whether several columns hold values of one phenotype.
    guessed : tuple of str
        What was guessed, one line each.
    """

    layout: Layout
    at: dict[str, list[int]]
    measured: tuple[tuple[str, str], ...]
    replicates: bool
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
    groups: list[tuple[str, list[int]]] = []
    defaults = Columns()
    named = {f.name for f in fields(Columns) if getattr(layout.columns, f.name) != getattr(defaults, f.name)}
    # What was named goes before what is called as usual: a column condition may hold the genes.
    for field in sorted(fields(Columns), key=lambda one: one.name not in named):
        name = getattr(layout.columns, field.name)
        if field.name == "value":
            groups = _groups_of(grid, name, guessed)
            found = [i for _, columns in groups for i in columns]
        else:
            found = _named(grid, name.replace(";", ",") if field.name == "sd" else name, guessed)
        if field.name in named:
            if not found:
                raise _no_column(grid, field.name, name)
        else:
            found = found or _known_as(grid, field.name, reader, guessed)
            found = [] if set(at.get("genes", ())) & set(found) else found
        if found:
            at[field.name] = found
    if "genes" not in at:
        at["genes"] = _genes(grid, at, reader, guessed)
        _refuse_half(grid, at["genes"])
        names = ", ".join(shown(grid.header[i]) for i in at["genes"])
        guessed.append(
            f"genes: {'column' if len(at['genes']) == 1 else 'columns'} {names}, by what the cells hold"
        )
    _refuse_split(grid, at["genes"], reader)
    shape = layout.shape or (LONG if "value" in at else _shape(grid, _rest(grid, at), layout, reader))
    if grid.numbers is not None:
        shape = PROFILES
        at["value"] = []
    elif shape != LONG:
        at.pop("value", None)
        at["value"] = [i for i in _rest(grid, at) if _is_numeric(grid, i, reader)]
        if not layout.shape:
            guessed.append(f"shape: {shape}, {SHAPES[shape]}")
    if grid.numbers is None and not at.get("value"):
        at["value"] = _values(grid, _rest(grid, at), reader, guessed)
    twice = [
        i for i, count in Counter(i for positions in at.values() for i in positions).items() if count > 1
    ]
    if twice:
        raise SourceError(
            f"{grid.path}: the column {shown(grid.header[twice[0]])} is to be two things at once: name one"
        )
    if len(at.get("sd", ())) not in (0, 1, len(at["value"])):
        raise SourceError(
            f"{grid.path}: {len(at['sd'])} columns of sd for {len(at['value'])} of values: name one for all "
            f"or one each, in the same order"
        )
    if shape != LONG and ("censored" in at or layout.censored_at):
        raise SourceError(
            f"{grid.path} is a matrix, in which no value can be censored: give a mutant per row"
        )
    if len(groups) > 1 and shape == LONG and not {"phenotype"} & at.keys():
        measured = _meanings(grid, groups, layout)
    else:
        measured = (_meaning(grid, at, layout, shape),) * max(len(at["value"]), 1)
    columns = {
        name: ",".join(grid.header[i] for i in positions)
        for name, positions in at.items()
        # A column without a name is found by what it holds, the next time too.
        if (name != "value" or shape == LONG) and all(grid.header[i] for i in positions) and positions
    }
    if len(groups) > 1:
        columns["value"] = layout.columns.value
    return Settled(
        replace(layout, columns=replace(layout.columns, **columns), shape=shape),
        at,
        measured,
        shape == LONG and len(at["value"]) > len(groups or [0]),
        tuple(guessed),
    )


def _refuse_half(grid: Grid, genes: Sequence[int]) -> None:
    """Refuse a table of crosses in which one side alone holds genes of the organism."""
    header = [name.casefold() for name in grid.header]
    for sides in CROSSED:
        at = [header.index(name) for name in sides if name in header]
        if len(at) == 2 and len(other := set(at) - set(genes)) == 1:
            column = other.pop()
            if cells := _sample(grid, column):  # an empty side is of single mutants
                raise SourceError(
                    f"{grid.path}: most cells of column {shown(grid.header[column])}, such as "
                    f"{shown(cells[0])}, are no genes of the organism, and those of the other side of the "
                    f"cross are: correct the names, or name the columns that count with --genes-column"
                )


def _refuse_split(grid: Grid, genes: Sequence[int], reader: MutantReader) -> None:
    """Refuse a table whose commas between genes make a column that the header has no name for."""
    if NO_NAME not in grid.notes or 0 in genes:
        return
    cells = _sample(grid, 0)
    same = all(row[0] == row[at] for row in grid.cells for at in genes)  # names of rows may be those of genes
    if not same and 2 * sum(map(reader.spellings.means, cells)) > len(cells):
        first = ",".join(grid.cells[0])
        raise SourceError(
            f"{grid.path}: every row has one cell more than the header, and the first cells are genes, as if "
            f"commas separated the genes of a mutant ({shown(first)}): put them in quotes, or semicolons "
            f"between them"
        )


def _groups_of(grid: Grid, text: str, guessed: list[str]) -> list[tuple[str, list[int]]]:
    """Return the columns of values, by phenotype: ``size=a1,a2; titre=b1,b2``; none if one is missing."""
    if (";" not in text and "=" not in text) or _one_name(grid, text, guessed):
        found = _named(grid, text, guessed)
        return [("", found)] if found else []
    groups = []
    for part in text.split(";"):
        name, mark, columns = part.partition("=")
        found = _named(grid, (columns if mark else name).strip(), guessed)
        if not found:
            return []
        groups.append((name.strip() if mark else "", found))
    return groups


def _meanings(
    grid: Grid, groups: Sequence[tuple[str, list[int]]], layout: Layout
) -> tuple[tuple[str, str], ...]:
    """Return phenotype and unit of every column of several phenotypes.

    Raises
    ------
    SourceError
        If two have one name.
    """
    out = []
    for name, columns in groups:
        bare, unit = _bare(grid.header[columns[0]])
        name = name or (bare if len(columns) == 1 else _stem(grid.header[columns[0]])) or bare
        out += [(name, layout.unit or unit)] * len(columns)
    names = list(dict.fromkeys(name for name, _ in out))
    if len(names) < len(groups):
        raise SourceError(
            f"{grid.path}: two groups of columns are both the phenotype {shown(out[0][0])}: name them, as in "
            f"--value-column 'size=a1,a2; titre=b1,b2'"
        )
    return tuple(out)


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


def _known_as(grid: Grid, field: str, reader: MutantReader, guessed: list[str]) -> list[int]:
    """Return the column of a field by a usual name; of kinds only if its cells are kinds."""
    for name in SYNONYMS.get(field, ()):
        found = _one_name(grid, name, guessed)
        if found and (field != "kind" or any(parse_kind(cell) for cell in _sample(grid, found[0]))):
            guessed.append(f"{field}: column {shown(grid.header[found[0]])}")
            return found
    return []


def _no_column(grid: Grid, field: str, name: str) -> SourceError:
    known = ", ".join(shown(column) for column in grid.header[:MOST_SHOWN])
    known += f" and {len(grid.header) - MOST_SHOWN:,} more" if len(grid.header) > MOST_SHOWN else ""
    parts = [part.partition("=")[2] or part for part in name.replace(";", ",").split(",")]
    missing = next((part for part in parts if part.strip() not in grid.header), name).strip()
    return SourceError(
        f"{grid.path} has no column {missing!r} (it has {known}): name the one to use with --{field}-column, "
        f"or another --separator"
    )


def _rest(grid: Grid, at: dict[str, list[int]]) -> list[int]:
    used = {i for positions in at.values() for i in positions}
    return [i for i in range(len(grid.header)) if i not in used]


def _sample(grid: Grid, column: int) -> list[str]:
    most = max(LEAST, min(SAMPLE, GLANCES // len(grid.header)))
    found: dict[str, None] = {}
    for cells in grid.cells:
        if not is_missing(cells[column]):
            found[cells[column]] = None
            if len(found) == most:
                break
    return list(found)


def _is_numeric(grid: Grid, column: int, reader: MutantReader) -> bool:
    """Return whether most cells of a column are numbers, in any style."""
    cells = _sample(grid, column)
    return 2 * sum(map(reader.numbers.looks_like, cells)) > len(cells)


def _genes(grid: Grid, at: dict[str, list[int]], reader: MutantReader, guessed: list[str]) -> list[int]:
    """Return the columns most of whose cells are genes; one of two that name the same ones.

    In tables of cells the first of the usual names of perturbations goes before all others, and the column of
    conditions may be it.
    """
    columns = _rest(grid, at)
    if grid.numbers is not None:
        low = [name.casefold() for name in grid.header]
        usual = [low.index(name) for name in PERTURBATIONS if name in low]
        for i in usual:
            if (i in columns or at.get("condition") == [i]) and _are_genes(grid, i, reader):
                if at.get("condition") == [i]:
                    del at["condition"]
                return [i]
    found: list[int] = []
    for i in columns:
        if not _are_genes(grid, i, reader):
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


def _are_genes(grid: Grid, column: int, reader: MutantReader) -> bool:
    """Return whether most cells of a column are genes."""
    if _is_numeric(grid, column, reader):
        return False
    names = [reader.names(cell) for cell in _sample(grid, column)]
    # A column of wild types alone, such as the background of the strains, names no gene.
    found = (reader.spellings.find(name) for cell in names for name in cell)
    genes = any(isinstance(one, Found) or one.reason == GUIDE for one in found)
    meant = sum(all(map(reader.spellings.means, cell)) for cell in names)
    return genes and 2 * meant > len(names)


def _same_genes(grid: Grid, first: int, second: int, reader: MutantReader) -> bool:
    def positions(cell: str) -> set[int]:
        found = map(reader.spellings.find, reader.names(cell))
        return {one.position for one in found if isinstance(one, Found)}

    pairs = list({(cells[first], cells[second]): None for cells in grid.cells if cells[first]})[:SAMPLE]
    return 10 * sum(positions(a) == positions(b) != set() for a, b in pairs) >= 9 * len(pairs)


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
    meanings = "; or ".join(f"--shape {shape} ({SHAPES[shape]})" for shape in (CROSSES, PROFILES, RESPONSES))
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
        return layout.phenotype or ("value" if shape == CROSSES else "expression"), layout.unit
    names = [grid.header[i] for i in at["value"]]
    name, unit = _bare(names[0])
    if len(names) > 1:
        name = _stem(names[0]) or "value"
    phenotype = layout.phenotype or ("" if "phenotype" in at else name)
    known = phenotype.casefold() in PHENOTYPES
    return phenotype, layout.unit or ("" if known or "phenotype" in at else unit)
