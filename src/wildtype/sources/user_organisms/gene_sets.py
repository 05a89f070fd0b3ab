"""Sets of genes: GMT files, complexes with their members in one cell, and tables of genes and terms.

Legend: n genes · t sets · r memberships, each a set and the name of a member.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.characters import first_fault
from wildtype.errors import SourceError, shown
from wildtype.organism import FeatureBlock, GeneIndex, Relation
from wildtype.organism.components import annotation_block
from wildtype.organism.gene_sets import GeneSets
from wildtype.sources.columns import TextColumn
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import AMBIGUOUS, UNKNOWN, GeneNames, match_genes, read_text
from wildtype.sources.user_organisms.description import Column, Complexes, GeneSetsPart, Gmt, Terms
from wildtype.sources.user_organisms.edges import has_header
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, Read, locate, no_gene_known
from wildtype.sources.user_organisms.tables import Table, distinct, open_table
from wildtype.sources.user_tables.numbers import NumberStyle

NO_GENE = "no gene of the organism"
NO_NAME, AGAIN = "no gene or no term", "gene and term a second time"
_GLUED = re.compile(r",[^\s,]+")
"""A comma and one word at the end of the first column of a GMT file: the first gene of the set."""
_WEIGHTED = re.compile(r",\d+\.\d+$")
"""The weight of a member, as in ``FXR1,1.0``; a name such as ARG5,6 has no point."""
_GENE_COLUMNS = ("gene", "locus|orf|protein", "symbol|member")
_SET_COLUMNS = ("term|pathway", "set|group|complex|category|go", "id|name")
_MEMBER_COLUMNS = ("gene", "member|subunit", "protein|symbol")
_MARKS = ";|, "


@dataclass(eq=False)
class Memberships:
    """Named sets as a file lists them.

    Attributes
    ----------
    sets : list of t str
        Names, unique.
    set_of : list of r int
        The set of every membership.
    member : list of r str
        The name of its member.
    notes : list of str
        What was guessed.
    """

    sets: list[str] = field(default_factory=list)
    set_of: list[int] = field(default_factory=list)
    member: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, members: Sequence[str]) -> None:
        """Add a set; its members are those of its own row, also where another set has the same name."""
        self.set_of += [len(self.sets)] * len(members)
        self.member += members
        self.sets.append(name)

    def matched(self, genes: GeneIndex) -> GeneNames:
        """Return the gene of every membership [r]."""
        return match_genes(self.member, genes)


def read(part: Gmt | Complexes | Terms, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the feature block and the relation of gene sets; rows are those of the file."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            if isinstance(part, Terms):
                return _read_terms(part, path, names, problems)
            before = len(problems)
            listed = _listed(part, path, problems, names.__contains__)
            if not listed.member and len(problems) > before:
                return (
                    Read()
                )  # every set was refused: which names no gene has would be one complaint too many
            return _read_listed(part, listed, names)
    return Read()


def names_in(part: Gmt | Complexes | Terms, folder: Path, problems: Problems) -> list[str]:
    """Return the names of members, ascending, each once."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None and isinstance(part, Terms):
            table = open_table(path, part.path, part.separator)
            header, gene, _ = _term_columns(part, table)
            return distinct(table.columns([gene], header, Problems())[0])
        if path is not None and not isinstance(part, Terms):
            return sorted(set(_listed(part, path, Problems(), lambda name: False).member))
    return []


def _listed(
    part: Gmt | Complexes, path: Path, problems: Problems, known: Callable[[str], bool]
) -> Memberships:
    return _gmt(part, path, problems, known) if isinstance(part, Gmt) else _complexes(part, path, problems)


def _read_listed(part: Gmt | Complexes, listed: Memberships, genes: GeneIndex) -> Read:
    """Return the parts of sets that have a row each."""
    matched = listed.matched(genes)
    if not matched.found.any():
        raise no_gene_known(part.path, list(dict.fromkeys(listed.member)), genes.organism)
    carried = carried_by(matched, np.array(listed.set_of, np.int64), tuple(listed.sets), genes)
    used = RowFilter(len(listed.sets))
    used.drop_all(_sizes(part, carried))
    note = "; ".join([*listed.notes, _members(len(listed.member), int(matched.found.sum()))])
    features, relations = made(part, carried, genes)
    card = FileCard(
        part.path,
        f"gene sets {part.name} as {' and '.join(part.made)}",
        used.rows,
        int(used.left.sum()),
        used.dropped,
        note,
        lost_names(listed.member, matched),
    )
    return Read((card,), relations, features)


def _members(rows: int, found: int) -> str:
    return f"{found:,} of {rows:,} members are genes of the organism"


def _sizes(part: GeneSetsPart, carried: GeneSets) -> dict[str, NDArray[np.bool_]]:
    """Return which sets are left out, by reason."""
    size = carried.sizes
    return {
        NO_GENE: size == 0,
        f"fewer than {part.smallest} genes": size < part.smallest,
        f"more than {part.largest} genes": size > part.largest,
    }


def carried_by(
    matched: GeneNames, set_of: NDArray[np.int64], names: tuple[str, ...], genes: GeneIndex
) -> GeneSets:
    """Return the sets [n, t] of memberships whose names are genes."""
    kept = matched.found
    table = sparse.csr_array(
        (np.ones(int(kept.sum())), (matched.position[kept], set_of[kept])), shape=(len(genes), len(names))
    )
    table.sum_duplicates()
    table.data[:] = 1.0
    return GeneSets("set", names, table)


def lost_names(names: Sequence[str], matched: GeneNames) -> dict[str, tuple[str, ...]]:
    """Return the first names without a gene by reason, with their number."""
    out = {}
    for reason, code in ((UNKNOWN, -1), (AMBIGUOUS, -2)):
        lost = list(
            dict.fromkeys(names[i] for i in np.flatnonzero(matched.position == code).tolist() if names[i])
        )
        if lost:
            out[f"{reason} ({len(lost):,} names)"] = tuple(lost[:SHOWN])
    return out


def made(
    part: GeneSetsPart, sets: GeneSets, genes: GeneIndex, *, version: str = "", note: str = ""
) -> tuple[tuple[FeatureBlock, ...], tuple[Relation, ...]]:
    """Return what is to be made of sets: components of the memberships, and genes that share a set.

    In the relation a pair weighs 1 / (k - 1), k the genes of the smallest set that it shares. Genes that are
    in no set of the file are missing in the features.

    Raises
    ------
    SourceError
        If no set has a size that is read, or no set distinguishes genes.
    DatasetError
        If the sets have too many pairs of genes for a relation.
    """
    sized = sets.sized(part.smallest, part.largest)
    if not len(sized):
        raise SourceError(
            f"no set has {part.smallest:,} to {part.largest:,} genes of the organism (the "
            f"largest has {int(sets.sizes.max(initial=0)):,}): change smallest or largest"
        )
    source, version = part.source or Path(part.path).name, part.version or version
    about = f"sets of {part.smallest:,} to {part.largest:,} genes"
    about = f"{about}; {note}" if note else about
    features: tuple[FeatureBlock, ...] = ()
    relations: tuple[Relation, ...] = ()
    if "features" in part.made:
        inside = np.flatnonzero(np.diff(sets.table.indptr))
        block = annotation_block(
            sparse.csr_array(sized.table[inside]),
            inside,
            len(genes),
            part.name,
            source=f"{source} {version}".strip(),
            note=about,
            what=part.path,
        )
        features = (block,)
    if "relation" in part.made:
        relations = (sized.shared(part.name, weighted=True, source=source, version=version, note=about),)
    return features, relations


# --- GMT ---


def _gmt(part: Gmt, path: Path, problems: Problems, known: Callable[[str], bool]) -> Memberships:
    """Read a GMT file: a name, a description and the members of a set per line."""
    rows = []
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line.strip() or line.startswith("#"):
            continue
        if len(cells) < 2 or not cells[0]:
            problems.add(
                part.path,
                number,
                f"received {len(cells)} cells, expected a name, a description and genes with tabs between "
                f"them: save it as GMT, or choose the format complexes or table",
            )
            continue
        if fault := first_fault((cells[0], *cells[2:])):
            problems.add(part.path, number, fault)
            continue
        rows.append(cells)
    found = Memberships()
    # Names that are members of some line: whether another cell is one of these says what it is.
    members = {_member(cell) for cells in rows for cell in cells[2:] if cell}
    is_gene = _either(members, known)
    glued = sum(bool(_GLUED.search(c[0])) and is_gene(c[0].rpartition(",")[2]) for c in rows)
    every = all(_GLUED.search(c[0]) and not c[0].endswith(",") for c in rows)
    apart = 2 * glued > len(rows) or (every and glued > 0)
    described = [cells[1] for cells in rows if cells[1]]
    without = apart or (2 * sum(map(is_gene, described)) > len(described) and bool(described))
    if apart:
        found.notes.append("the first column holds the name, a comma and the first gene")
    if without:
        found.notes.append("there is no column of descriptions")
    for cells in rows:
        name, first = cells[0], []
        if apart and _GLUED.search(name):
            name, _, gene = name.rpartition(",")
            first = [gene]
        rest = cells[1:] if without else cells[2:]
        found.add(name.strip(), [_member(cell) for cell in (*first, *rest) if cell])
    return found


def _member(cell: str) -> str:
    return _WEIGHTED.sub("", cell)


def _either(members: set[str], known: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda cell: _member(cell) in members or known(_member(cell))


# --- complexes ---


def _complexes(part: Complexes, path: Path, problems: Problems) -> Memberships:
    """Read a table with a row per set."""
    table = open_table(path, part.path, part.separator)
    header = has_header(table) if isinstance(part.members, int) else True
    names = table.first[0] if header else []
    at = _column(table, part.members, header, _MEMBER_COLUMNS)
    at = _most_marks(table) if at is None else at
    of = _column(table, part.set, header, _SET_COLUMNS, without=at)
    of = (1 if at == 0 and table.width > 1 else 0) if of is None else of
    columns, line = table.columns([of, at], header, problems)
    mark = part.member_separator or _mark(columns[1])
    found = Memberships(notes=list(table.notes))
    if header:
        found.notes.append(f"sets: column {names[of]!r}; members: column {names[at]!r}")
    found.notes.append(f"members separated by {mark!r}")
    for row in range(len(line)):
        cell = columns[1][row]
        if not cell:
            problems.add(part.path, int(line[row]), "no member: name its genes, or leave out the row")
        found.add(columns[0][row], [name.strip() for name in cell.split(mark) if name.strip()])
    return found


def _column(
    table: Table, given: Column, header: bool, usual: Sequence[str], without: int | None = None
) -> int | None:
    """Return the column that is named, else the first with a usual name; None if there is none."""
    if given != "":
        return table.at(given, header)
    for pattern in usual if header else ():
        # A word of the name, so that "go" is not found in "category".
        word = re.compile(rf"(?<![a-z])({pattern})s?(?![a-z])", re.IGNORECASE)
        for i, name in enumerate(table.first[0]):
            if i != without and word.search(re.sub(r"_", " ", name)):
                return i
    return None


def _most_marks(table: Table) -> int:
    """Return the column whose cells hold most separators of members."""
    counts = [sum(row[i].count(";") for row in table.first if len(row) > i) for i in range(table.width)]
    return int(np.argmax(counts))


def _mark(column: TextColumn) -> str:
    """Return the separator that most cells hold; a semicolon where none does."""
    counts = [sum(mark in name for name in column.names) for mark in _MARKS]
    return _MARKS[int(np.argmax(counts))]


# --- tables of genes and terms ---


def _term_columns(part: Terms, table: Table) -> tuple[bool, int, int]:
    """Return whether there is a header, and the columns of genes and of terms."""
    header = has_header(table) if isinstance(part.gene, int) or isinstance(part.term, int) else True
    gene = _column(table, part.gene, header, _GENE_COLUMNS)
    term = _column(table, part.term, header, _SET_COLUMNS, without=gene)
    if gene is None or term is None or gene == term:
        _refuse_scores(table, header, gene)
        what = "genes" if gene is None else "terms"
        raise SourceError(
            f"none of the columns ({', '.join(map(shown, table.first[0][:20]))}) has a usual "
            f"name of a column of {what}: name them as gene and term"
        )
    return header, gene, term


def _refuse_scores(table: Table, header: bool, gene: int | None) -> None:
    """Refuse a wide table of numbers by what it is."""
    rows = table.first[1:] if header else table.first
    numbers = [
        name
        for i, name in enumerate(table.first[0])
        if i != gene and rows and all(NumberStyle().looks_like(row[i]) for row in rows if len(row) > i)
    ]
    if len(numbers) > 1 and len(numbers) >= table.width - 2:
        raise SourceError(
            f"the numbers in {len(numbers)} columns ({', '.join(map(shown, numbers[:3]))}, …) "
            f"are scores of genes and no sets: name the file under features"
        )


def _read_terms(part: Terms, path: Path, genes: GeneIndex, problems: Problems) -> Read:
    table = open_table(path, part.path, part.separator)
    header, gene, term = _term_columns(part, table)
    (of, terms), line = table.columns([gene, term], header, problems)
    if header:
        table.notes.append(f"genes: column {table.first[0][gene]!r}; terms: column {table.first[0][term]!r}")
    matched = of.match(genes)
    if not matched.found.any():
        raise no_gene_known(part.path, distinct([of]), genes.organism)
    used = RowFilter(len(line))
    used.drop(NO_NAME, of.map(lambda name: not name, bool) | terms.map(lambda name: not name, bool))
    used.drop_names(matched)
    pair = matched.position * len(terms.names) + terms.code
    again = np.ones(len(line), bool)
    rows = np.flatnonzero(used.left)
    again[rows[np.unique(pair[rows], return_index=True)[1]]] = False
    used.drop(AGAIN, again)
    left = GeneNames(np.where(used.left, matched.position, -1), matched.renamed)
    carried = carried_by(left, terms.code.astype(np.int64), terms.names, genes)
    for reason, mask in _sizes(part, carried).items():
        used.drop(f"term of {reason}", mask[terms.code])
    features, relations = made(part, carried, genes)
    card = FileCard(
        part.path,
        f"gene sets {part.name} as {' and '.join(part.made)}",
        used.rows,
        int(used.left.sum()),
        used.dropped,
        "; ".join(table.notes),
        lost_names(of.names, match_genes(of.names, genes)),
    )
    return Read((card,), relations, features)
