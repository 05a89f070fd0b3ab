"""Tables of mutants × columns: wide files, and their numbers as `Measurements` without an object per number.

Legend: m mutants (rows) · c columns (a phenotype in an environment, or a trait) · Σk perturbations of all
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from wildtype.characters import hidden_in
from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PhenotypeDefinition, Record, Study
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.row_filter import Flags, Floats, Ints, RowFilter
from wildtype.sources.text import (
    AMBIGUOUS,
    REMEDY,
    UNKNOWN,
    Collector,
    GeneNames,
    Rows,
    match_genes,
    read_bytes,
)
from wildtype.sources.yeast.traits.headings import Strain

R = TypeVar("R", bound=Record)

NO_VALUE = "no value"
NOT_STATED = Environment()
PLAIN = Strain("")


@dataclass(frozen=True)
class Column:
    """What one column of numbers is: phenotype, trait, environment, and what the strains have in common."""

    phenotype: PhenotypeDefinition
    trait: str = ""
    environment: Environment = NOT_STATED
    strain: Strain = PLAIN
    replicate: str = ""


@dataclass(frozen=True, eq=False)
class Mutants:
    """The mutants of a table's rows.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the gene index, mutants one after the other.
    offsets : int64 [m+1]
        Where each mutant begins; a wild type has no genes.
    replicate : tuple of m str
        Which of several strains of one mutant; empty where there is only one.
    """

    gene: Ints
    offsets: Ints
    replicate: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def single(cls, gene: Ints, replicate: Sequence[str]) -> Mutants:
        """Return mutants of one gene each (position [m]), a wild type where it is -1."""
        mutant = gene >= 0
        return cls(gene[mutant], np.concatenate([[0], np.cumsum(mutant)]).astype(np.int64), tuple(replicate))


def told_apart(position: Ints, names: Sequence[str]) -> tuple[str, ...]:
    """Return the name [m] of every row whose gene has several rows, "" for the others."""
    _, code, count = np.unique(position, return_inverse=True, return_counts=True)
    # Wild types (-1) are named by the caller, since all of them are replicates of one mutant.
    again = (count[code.reshape(-1)] > 1) & (position >= 0)
    return tuple(name if several else "" for name, several in zip(names, again.tolist(), strict=True))


def measure(
    study: Study,
    genes: GeneIndex,
    mutants: Mutants,
    columns: Sequence[Column],
    value: Floats,
    *,
    se: Floats | None = None,
    p: Floats | None = None,
) -> Measurements:
    """Return one measurement per finite entry of ``value`` [m, c], row by row.

    Parameters
    ----------
    study, genes
        Where the numbers come from, and what `mutants` refers to.
    mutants : Mutants
        The m rows.
    columns : sequence of Column
        The c columns. The replicate of a measurement joins those of its row and its column.
    value, se, p : float64 [m, c]
        The numbers, their standard errors and p-values (NaN: not known).
    """
    row, column = np.nonzero(np.isfinite(value))
    # Every number repeats the perturbations of its row: arange within a mutant, moved to where its row
    # begins.
    order = np.diff(mutants.offsets)[row]
    offsets = np.concatenate([[0], np.cumsum(order)]).astype(np.int64)
    perturbed = np.arange(offsets[-1]) + np.repeat(mutants.offsets[row] - offsets[:-1], order)
    of_column = np.repeat(column, order)
    phenotypes, phenotype = _distinct([c.phenotype for c in columns])
    environments, environment = _distinct([c.environment for c in columns])
    traits, trait = coded([c.trait for c in columns])
    alleles, allele = coded([c.strain.allele for c in columns])
    references, reference = coded([c.strain.reference for c in columns])
    row_names, row_name = coded(mutants.replicate)
    column_names, column_name = coded([c.replicate for c in columns])
    # Kind and dose are of the column: heterozygous and homozygous deletions are columns of one table.
    kinds = np.array([c.strain.kind for c in columns], np.uint8)
    doses = np.array([c.strain.dose for c in columns], np.float64)
    unknown = np.full(len(row), np.nan)
    return Measurements(
        studies=(study,),
        genes=genes.names,
        alleles=alleles,
        environments=environments,
        phenotypes=phenotypes,
        traits=traits,
        references=references,
        # All combinations of row and column names once, addressed by one code: no text is built per number.
        replicates=tuple(" / ".join(filter(None, (a, b))) for a in row_names for b in column_names),
        gene=mutants.gene[perturbed],
        kind=kinds[of_column],
        allele=allele[of_column],
        dose=doses[of_column],
        offsets=offsets,
        study=np.zeros(len(row), np.int64),
        environment=environment[column],
        phenotype=phenotype[column],
        trait=trait[column],
        value=value[row, column],
        sd=unknown,
        se=unknown.copy() if se is None else se[row, column],
        p=unknown.copy() if p is None else p[row, column],
        n=np.zeros(len(row), np.int64),
        replicate=row_name[row] * len(column_names) + column_name[column],
        reference=reference[column],
    )


def _distinct(records: Sequence[R]) -> tuple[tuple[R, ...], Ints]:
    # The id of a record is a hash of its content: computed once per object, since columns share their
    # records.
    identity = {number: record.id for number, record in {id(r): r for r in records}.items()}
    known = {identity[id(record)]: record for record in records}
    position = {key: code for code, key in enumerate(known)}
    codes = [position[identity[id(record)]] for record in records]
    return tuple(known.values()), np.array(codes, np.int64)


def readable(path: Path, texts: Iterable[str]) -> None:
    """Raise ``SourceError`` at the first text with control characters or surrounding blanks."""
    for text in texts:
        if text != text.strip() or hidden_in(text):
            raise SourceError(f"{path}: received the name {text[:60]!r}, expected printable text; {REMEDY}")


def without_gene(names: GeneNames, wild_type: Flags | None = None) -> dict[str, Flags]:
    """Return which rows [m] name no gene, by reason; rows of wild types need none."""
    unknown = names.position == -1
    return {UNKNOWN: unknown if wild_type is None else unknown & ~wild_type, AMBIGUOUS: names.position == -2}


def sift(
    path: Path,
    use: str,
    value: Floats,
    *,
    rows: Mapping[str, Flags],
    columns: Mapping[str, Flags] | None = None,
    renamed: Flags | None = None,
) -> tuple[Floats, ReadReport]:
    """Return ``value`` [m, c] with NaN in place of what is dropped, and the counts of its entries.

    Parameters
    ----------
    path : Path
        The file.
    use : str
        What the entries become.
    rows, columns : mapping of str to bool
        Rows [m] and columns [c] to drop, by reason. An entry counts under the first reason that holds, rows
        before columns, and under `NO_VALUE` if none does and it is not a number.
    renamed : bool [m], optional
        Rows that name a gene by an older name.

    Raises
    ------
    SourceError
        If nothing is left.
    """
    entries = RowFilter(np.ones(value.shape, bool))
    entries.drop_all({reason: mask[:, None] for reason, mask in rows.items()})
    entries.drop_all({reason: mask[None, :] for reason, mask in (columns or {}).items()})
    entries.drop(NO_VALUE, ~np.isfinite(value))
    if not entries.left.any():
        raise SourceError(f"{path} has no value of a gene of the organism, expected thousands: {REMEDY}")
    older = None if renamed is None else renamed[:, None]
    return np.where(entries.left, value, np.nan), entries.report(path.name, use, older)


def measure_singles(
    study: Study,
    genes: GeneIndex,
    path: Path,
    deleted: Sequence[str],
    labels: Sequence[str],
    columns: Sequence[Column],
    value: Floats,
    collect: Collector,
    *,
    use: str = "measurements",
    wild_type: Flags | None = None,
    rows: Mapping[str, Flags] | None = None,
    unused: Mapping[str, Flags] | None = None,
    p: Floats | None = None,
) -> Measurements:
    """Return the measurements of a table of single deletions and wild types.

    Parameters
    ----------
    path : Path
        The file.
    deleted, labels : sequence of m str
        The gene that a strain lacks ("" for a wild type), and the name of the strain or experiment.
    columns : sequence of Column
        The c columns.
    value, p : float64 [m, c]
        The numbers and their p-values.
    wild_type : bool [m], optional
        Rows that lack no gene.
    rows, unused : mapping of str to bool
        Rows [m] and columns [c] to drop, by reason, before those without a gene.
    """
    wild = np.zeros(len(deleted), bool) if wild_type is None else wild_type
    readable(path, labels)
    matched = match_genes(deleted, genes)
    reasons = {**(rows or {}), **without_gene(matched, wild)}
    value, report = sift(path, use, value, rows=reasons, columns=unused, renamed=matched.renamed)
    collect(report)
    # Strains of one gene, and wild types, are replicates: their labels keep them apart.
    replicate = [
        label if control else several
        for label, control, several in zip(
            labels, wild.tolist(), told_apart(matched.position, labels), strict=True
        )
    ]
    return measure(study, genes, Mutants.single(matched.position, replicate), columns, value, p=p)


def gene_columns(
    phenotype: PhenotypeDefinition, gene: Ints, labels: Sequence[str], genes: GeneIndex, strain: Strain
) -> list[Column]:
    """Return columns whose trait is a gene (position [c], negative: none), several of one gene by label."""
    return [
        Column(phenotype, genes.names[position] if position >= 0 else "", strain=strain, replicate=name)
        for position, name in zip(gene.tolist(), told_apart(gene, labels), strict=True)
    ]


def first_lines(path: Path, count: int, *, separator: str = "\t") -> list[list[str]]:
    """Return the fields of the first lines of a file; bytes that are not UTF-8 are replaced.

    Raises
    ------
    SourceError
        If the file cannot be read or has fewer lines.
    """
    data = read_bytes(path)
    lines, start = [], 0
    for number in range(1, count + 1):
        if start >= len(data):
            raise SourceError(f"{path} ends before line {number}, expected {count} header lines: {REMEDY}")
        end = data.find(b"\n", start) % (len(data) + 1)
        fields = data[start:end].decode("utf-8", errors="replace").split(separator)
        lines.append([field.strip() for field in fields])
        start = end + 1
    return lines


def read_wide(path: Path, key: str, *, separator: str = "\t") -> tuple[Columns, tuple[str, ...]]:
    """Read a table whose first column is named ``key`` and whose others are numbers; return also their names.

    Raises
    ------
    SourceError
        If the file cannot be read, the first column has another name, a column is there twice or has no name,
        or an entry is neither a number nor missing.
    """
    (header,) = first_lines(path, 1, separator=separator)
    if header[0] != key or len(header) < 2:
        raise SourceError(
            f"{path}, line 1: received the first column {header[0][:60]!r} of {len(header)}, expected "
            f"{key!r} and further columns; {REMEDY}"
        )
    refuse_repeated(path, header[1:])
    types: list[type[str] | type[float] | None] = [str, *[float] * (len(header) - 1)]
    return read_columns(path, types=types, separator=separator, header=header), tuple(header[1:])


def column_of(rows: Rows, name: str) -> int:
    """Return the position of a column; raises ``SourceError`` if there is none of that name."""
    if name not in rows.header:
        raise SourceError(
            f"{rows.path}, line 1: received the columns {', '.join(rows.header)[:60]!r}, expected one named "
            f"{name!r} among them; {REMEDY}"
        )
    return rows.header.index(name)


def refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Raise ``SourceError`` if a column name is empty or there twice."""
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise SourceError(
                f"{path}, line 1: received the column name {name[:60]!r} again or empty, expected every name "
                f"once; {REMEDY}"
            )
        seen.add(name)


def stack(columns: Columns, positions: Sequence[int]) -> Floats:
    """Return columns of numbers as rows [c, m]."""
    return np.stack([columns.numbers(position) for position in positions])
