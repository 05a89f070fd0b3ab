"""The genes of an organism: tables, plain lists, GFF3, and names that only its other files hold.

The first file decides on the order; later ones add genes, and what earlier ones left out. Names that stand
only in `names_from` follow at the end in ascending order, so that no order of rows elsewhere moves a gene.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import name_fault
from wildtype.errors import SourceError, shown
from wildtype.organism import Coordinates, GeneIndex
from wildtype.organism.genes import systematic
from wildtype.sources.text import read_bytes
from wildtype.sources.user_organisms.description import Column, GeneColumns, GeneFile, NamesFrom
from wildtype.sources.user_organisms.edges import has_header
from wildtype.sources.user_organisms.gff import read_gff
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, locate
from wildtype.sources.user_organisms.tables import open_table
from wildtype.sources.user_tables.grid import Grid, decoded, read_grid
from wildtype.sources.user_tables.numbers import is_missing

USUAL: dict[str, tuple[str, ...]] = {
    "name": (
        "systematicname", "locustag", "geneid", "gene", "orf", "locus", "ensemblgeneid", "ensemblid",
        "featurename", "oldlocustag", "id", "name",
    ),
    "standard": ("standardname", "symbol", "genesymbol", "genename", "hgncsymbol", "standardgenename"),
    "aliases": ("aliases", "alias", "synonyms", "synonym", "othernames", "genesynonym", "aliassymbol"),
    "description": ("description", "product", "annotation", "desc", "proteinname", "function"),
    "essential": ("essential", "essentiality", "isessential"),
    "chromosome": ("chromosome", "chr", "chrom", "seqid", "contig", "replicon", "seqname"),
    "start": ("start", "begin", "startposition", "startcoordinate", "genestart"),
    "end": ("end", "stop", "endposition", "stopcoordinate", "geneend"),
    "strand": ("strand", "orientation"),
    "dubious": ("dubious",),
}  # fmt: skip
"""Usual names of columns, without blanks and marks and in lower case, the likeliest first."""
HEADINGS = {
    "gene",
    "genes",
    "name",
    "names",
    "geneid",
    "geneids",
    "locustag",
    "orf",
    "symbol",
    "id",
    "systematicname",
}
ALIAS_SEPARATORS = "|;,"
NO_NAME = {"", "-", "–", "—", ".", "NA", "N/A", "#N/A"}
"""Cells without a name; nan is a gene of the fly."""
REPEATED = "repeated row"
_YES = {"1", "yes", "y", "true", "t", "essential", "e", "lethal"}
_NO = {
    "0",
    "no",
    "n",
    "false",
    "f",
    "nonessential",
    "non-essential",
    "not essential",
    "ne",
    "viable",
    "dispensable",
}
_STRANDS = {"+": 1, "1": 1, "+1": 1, "w": 1, "forward": 1, "-": -1, "-1": -1, "c": -1, "reverse": -1, "−": -1}
_DATE = re.compile(
    r"\d{1,2}-(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|(mar|sep|oct|dec)-\d{1,2}", re.IGNORECASE
)


@dataclass
class Gene:
    """What the files say of one gene; None and empty: nothing. Positions are in bases."""

    name: str
    standard: str = ""
    aliases: tuple[str, ...] = ()
    description: str = ""
    essential: bool | None = None
    chromosome: str = ""
    start: float | None = None
    end: float | None = None
    strand: int = 0
    dubious: bool | None = None

    def complete(self, other: Gene) -> None:
        """Take over what another record of the gene says and this one does not."""
        for key, value in vars(other).items():
            if key != "aliases" and getattr(self, key) in ("", None, 0):
                setattr(self, key, value)
        self.aliases = tuple(dict.fromkeys((*self.aliases, *other.aliases)))


@dataclass(frozen=True, eq=False)
class GenesRead:
    """The genes of all files.

    Attributes
    ----------
    genes : dict of str to Gene
        By name, in order.
    cards : tuple of FileCard
        One per file.
    """

    genes: dict[str, Gene] = field(default_factory=dict)
    cards: tuple[FileCard, ...] = ()

    def index(self, organism: str) -> GeneIndex:
        """Return the gene index; a name with a comma, as in ARG5,6, is the gene's first alias there."""
        named = [(systematic(gene.name), gene) for gene in self.genes.values()]
        return GeneIndex(
            [name for name, _ in named],
            {name: gene.standard for name, gene in named if gene.standard != gene.name},
            {name: (*([gene.name] if name != gene.name else []), *gene.aliases) for name, gene in named},
            organism,
            {name: gene.description for name, gene in named},
        )

    def marked(self, key: str) -> NDArray[np.bool_] | None:
        """Return which genes [n] are ``essential`` or ``dubious``; None if no file says it of any."""
        known = [getattr(gene, key) for gene in self.genes.values()]
        if all(one is None for one in known):
            return None
        return np.array([bool(one) for one in known])

    def coordinates(self, source: str) -> Coordinates | None:
        """Return the positions of the genes; None if no file has any."""
        genes = list(self.genes.values())
        placed = [
            gene for gene in genes if gene.chromosome and gene.start is not None and gene.end is not None
        ]
        if not placed:
            return None
        order = sorted({gene.chromosome for gene in placed}, key=_chromosome_order)
        number = {name: i for i, name in enumerate(order, 1)}
        if all(re.fullmatch(r"[1-9]\d{0,5}", name) for name in order):
            number = {name: int(name) for name in order}
        whole = {gene.name for gene in placed}
        return Coordinates(
            np.array(
                [number[gene.chromosome] if gene.name in whole else 0 for gene in genes], dtype=np.int64
            ),
            _kilobases(gene.start if gene.name in whole else None for gene in genes),
            _kilobases(gene.end if gene.name in whole else None for gene in genes),
            np.array([gene.strand for gene in genes], dtype=np.int8),
            source,
        )


def _kilobases(bases: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if base is None else base / 1000 for base in bases], dtype=np.float64)


def _chromosome_order(name: str) -> tuple[object, ...]:
    """Return a key that puts chromosome 2 before 10, and those of organelles last."""
    organelle = re.fullmatch(
        r"(chr)?_?(m|mt|mito|mitochondri\w*|pt|chloroplast|plastid)", name, re.IGNORECASE
    )
    parts = re.split(r"(\d+)", name.lower())
    return (
        organelle is not None,
        [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part],
    )


def read_files(files: Sequence[GeneFile], folder: Path, problems: Problems) -> GenesRead:
    """Return the genes of all files."""
    genes: dict[str, Gene] = {}
    cards = []
    for file in files:
        with problems.of(file.path):
            path = locate(file.path, folder, problems)
            if path is None:
                continue
            readers = {"table": _read_table, "gff3": _read_gff3, "list": _read_list}
            found, card = readers[file.format](file, path, problems)
            for gene in found:
                if gene.name in genes:
                    genes[gene.name].complete(gene)
                else:
                    genes[gene.name] = gene
            cards.append(card)
    return GenesRead(genes, tuple(cards))


def _read_gff3(file: GeneFile, path: Path, problems: Problems) -> tuple[list[Gene], FileCard]:
    before = len(problems)
    found, rows, dropped, note = read_gff(file, path, problems)
    if not found and len(problems) == before:
        kinds = ", ".join(reason for reason in dropped) or "no feature"
        raise SourceError(
            f"{file.path} has no feature of type {file.type!r} ({kinds}): name another with type"
        )
    genes = [
        Gene(
            one.name,
            one.standard,
            one.aliases,
            one.description,
            None,
            one.chromosome,
            one.start,
            one.end,
            one.strand,
        )
        for one in found
    ]
    return genes, FileCard(file.path, "genes", rows, len(genes), dropped, note)


def _read_list(file: GeneFile, path: Path, problems: Problems) -> tuple[list[Gene], FileCard]:
    names: dict[str, Gene] = {}
    note, rows, repeated, before = "", 0, 0, len(problems)
    for row, line in enumerate(decoded(Path(file.path), read_bytes(path)).splitlines(), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if not rows and not note and _folded(name) in HEADINGS:
            note = f"the first line ({name}) is taken for a header"
            continue
        if "\t" in name or "," in name or ";" in name:
            problems.add(file.path, row, f"received {shown(name)}, expected one name: give its format, table")
            continue
        if fault := name_fault(name):
            problems.add(file.path, row, fault)
            continue
        rows += 1
        if name in names:
            repeated += 1
        else:
            names[name] = Gene(name)
    if not rows and len(problems) == before:
        raise SourceError(f"{file.path} names no gene: give one name per line")
    dropped = {REPEATED: repeated} if repeated else {}
    return list(names.values()), FileCard(file.path, "genes", rows, rows - repeated, dropped, note)


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _read_table(file: GeneFile, path: Path, problems: Problems) -> tuple[list[Gene], FileCard]:
    grid = read_grid(path, separator=file.separator.replace("\\t", "\t"), sheet=file.sheet)
    at, notes = _columns(file, grid)
    for problem in grid.problems:
        problems.add(file.path, problem.line or problem.row + 1, problem.message)
    split = file.alias_separator
    if "aliases" in at and not split:
        split = _alias_separator([cells[at["aliases"]] for cells in grid.cells])
        if split:
            notes.append(f"aliases are separated by {split!r}")
    found: dict[str, Gene] = {}
    first: dict[str, int] = {}
    repeated = swapped = 0
    for row, line, cells in zip(grid.row, grid.line, grid.cells, strict=True):
        at_row = line or row + 1
        gene = _gene({key: cells[i] for key, i in at.items()}, split, file.path, at_row, problems)
        if gene is None:
            continue
        if gene.start is not None and gene.end is not None and gene.start > gene.end:
            # Some tables give the first base of the transcript, which on the reverse strand is the larger.
            gene.start, gene.end, swapped = gene.end, gene.start, swapped + 1
        if gene.name not in found:
            found[gene.name], first[gene.name] = gene, at_row
        elif vars(found[gene.name]) == vars(gene):
            repeated += 1
        else:
            problems.add(
                file.path,
                at_row,
                f"{gene.name} is named again (first in row {first[gene.name]}), with other cells: keep one",
            )
    if swapped:
        notes.append(f"start and end of {swapped:,} genes are exchanged, since start was the larger")
    dropped = {REPEATED: repeated} if repeated else {}
    rows = len(found) + repeated
    return list(found.values()), FileCard(file.path, "genes", rows, len(found), dropped, "; ".join(notes))


def _gene(cell: Mapping[str, str], split: str, path: str, row: int, problems: Problems) -> Gene | None:
    """Return the gene of a row, or None; whatever is wrong with its cells is added to ``problems``."""
    name = cell["name"]
    if not name:
        problems.add(path, row, "no gene name: give one, or remove the row")
        return None
    if _DATE.fullmatch(name):
        problems.add(
            path, row, f"{shown(name)} is a date that a spreadsheet program made of a name: write the name"
        )
        return None
    for key in ("name", "standard", "aliases", "chromosome"):
        if fault := name_fault(cell.get(key, "")):
            problems.add(path, row, fault, column=key)
            return None
    gene = Gene(name, cell.get("standard", ""), description=cell.get("description", ""))
    if gene.standard in NO_NAME:
        gene.standard = ""
    others = cell.get("aliases", "")
    parts = others.split(split) if split else [others]
    gene.aliases = tuple(
        dict.fromkeys(one for part in parts if (one := part.strip()) not in {*NO_NAME, name})
    )
    for key in ("essential", "dubious"):
        low = cell.get(key, "").casefold()
        if is_missing(low):
            continue
        if low not in _YES | _NO:
            problems.add(path, row, f"received {shown(low)}, expected yes or no", column=key)
        setattr(gene, key, low in _YES)
    gene.chromosome = "" if is_missing(cell.get("chromosome", "")) else cell["chromosome"]
    for key in ("start", "end"):
        base = cell.get(key, "").replace(",", "")
        if is_missing(base):
            continue
        if not re.fullmatch(r"\d+(\.0+)?", base):
            problems.add(path, row, f"received {shown(base)}, expected a position in bases", column=key)
            continue
        setattr(gene, key, float(base))
    strand = cell.get("strand", "").casefold()
    # A minus sign stands for a missing number elsewhere, and for a strand here.
    if strand in _STRANDS:
        gene.strand = _STRANDS[strand]
    elif not is_missing(strand):
        problems.add(path, row, f"received {shown(strand)}, expected + or -", column="strand")
    return gene


def _columns(file: GeneFile, grid: Grid) -> tuple[dict[str, int], list[str]]:
    """Return the position of every column by field of `GeneColumns`, and what was guessed."""
    notes = list(grid.notes)
    at: dict[str, int] = {}
    folded = [_folded(name) for name in grid.header]
    for key in GeneColumns.model_fields:
        column: Column = getattr(file.columns, key)
        if column != "":
            at[key] = _named(file.path, grid.header, column)
    for key, usual in USUAL.items():
        if key in at:
            continue
        found = next(
            (
                folded.index(name)
                for name in usual
                if name in folded and folded.index(name) not in at.values()
            ),
            None,
        )
        if found is not None:
            at[key] = found
            notes.append(f"{key}: column {grid.header[found]!r}")
    if "name" not in at and "standard" in at:
        at["name"] = at.pop("standard")
        notes.append(f"name: column {grid.header[at['name']]!r}")
    elif "name" not in at and len(grid.header) == 1:
        raise SourceError(
            f"{file.path} has one column, {grid.header[0]!r}, which is no usual name: give the format list, "
            f"or the column with columns: {{name: ...}}"
        )
    if "name" not in at:
        names = ", ".join(map(repr, grid.header[:20]))
        raise SourceError(
            f"{file.path} has no column of gene names (it has {names}): give it with columns: {{name: ...}}"
        )
    return at, notes


def _named(path: str, header: Sequence[str], column: Column) -> int:
    if isinstance(column, int):
        if 1 <= column <= len(header):
            return column - 1
        raise SourceError(f"{path} has {len(header)} columns, and column {column} is to be read: correct it")
    alike = [i for i, name in enumerate(header) if name == column]
    alike = alike or [i for i, name in enumerate(header) if name.casefold() == column.casefold()]
    if len(alike) != 1:
        names = ", ".join(map(repr, header[:20]))
        what = "several columns" if alike else "no column"
        raise SourceError(
            f"{path} has {what} {column!r} (it has {names}): name one that it has, or its position"
        )
    return alike[0]


def _alias_separator(cells: Sequence[str]) -> str:
    """Return the mark that divides most cells; empty if none divides any."""
    best = max(ALIAS_SEPARATORS, key=lambda mark: sum(mark in cell for cell in cells))
    return best if any(best in cell for cell in cells) else ""


def names_of_table(part: NamesFrom, folder: Path, problems: Problems) -> tuple[list[str], FileCard | None]:
    """Return the names in some columns of a table, ascending, each once, and the card of its rows."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is None:
            return [], None
        table = open_table(path, part.path, part.separator)
        header = part.header
        if header is None:
            header = any(isinstance(column, str) for column in part.columns) or has_header(table)
        at = [table.at(column, header) for column in part.columns]
        columns, line = table.columns(at, header, problems)
        left_out = set(part.leave_out)

        def split(cell: str) -> list[str]:
            return [one.strip() for one in cell.split(part.name_separator)] if part.name_separator else [cell]

        names = {name for column in columns for cell in column.names for name in split(cell)}
        absent = sorted(left_out - names)
        if absent:
            problems.add(
                part.path,
                0,
                f"leave_out names {', '.join(map(repr, absent))}, which is in none of the columns",
            )
        used = np.ones(len(line), bool)
        for column in columns:
            # A row counts if each of its cells names a gene.
            used &= column.map(lambda cell: any(name and name not in left_out for name in split(cell)), bool)
        dropped = {"left out by name, or empty": int((~used).sum())} if not used.all() else {}
        note = "; ".join(table.notes)
        card = FileCard(part.path, "names of genes", len(line), int(used.sum()), dropped, note)
        return sorted(names - left_out - {""}), card
    return [], None


def with_names(read: GenesRead, names: Iterable[str], organism: str) -> tuple[GenesRead, str]:
    """Return the genes with those names that none of them has, at the end, ascending, and a remark."""
    index = read.index(organism) if read.genes else None
    further = sorted({name for name in names if index is None or name not in index})
    folded: dict[str, list[str]] = {}
    for name in further:
        folded.setdefault(name.casefold(), []).append(name)
    alike = ["/".join(same) for same in folded.values() if len(same) > 1]
    remark = ""
    if alike:
        first = ", ".join(alike[:SHOWN])
        remark = f"names that differ in case alone are genes of their own ({len(alike):,}): {first}"
    return GenesRead(read.genes | {name: Gene(name) for name in further}, read.cards), remark
