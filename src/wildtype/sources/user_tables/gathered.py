"""What is read of a table becomes columns of measurements: attributes of rows once, numbers in blocks.

Legend: r rows of the table · c columns of numbers · m measurements · k perturbed genes of a strain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Coded, Measurements
from wildtype.datasets.records import Environment, PhenotypeDefinition, Study
from wildtype.mutants.ragged import entries_of, offsets_of
from wildtype.sources.user_tables.mutants import Mutant

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = TypeVar("Key")
NO_STRAIN = -1


@dataclass(frozen=True)
class Column:
    """What all numbers of one column have in common.

    Attributes
    ----------
    strain : int
        Perturbations that the column adds to those of a row; `NO_STRAIN` for none.
    trait : str
        Measured gene; empty if the row says it, or the cell as a whole is measured.
    replicate : str
        Which replicate it holds.
    guides : tuple of str
        By which guides its strain was made: each is a replicate of the strain, too.
    phenotype : PhenotypeDefinition or None
        None if the row says it.
    """

    strain: int = NO_STRAIN
    trait: str = ""
    replicate: str = ""
    guides: tuple[str, ...] = ()
    phenotype: PhenotypeDefinition | None = None


class Gathered:
    """Rows and numbers in the order in which they are read."""

    def __init__(self) -> None:
        self._strain_of: dict[tuple[object, ...], int] = {}
        self._column_of: dict[Column, int] = {}
        self._phenotype_of: dict[PhenotypeDefinition, int] = {}
        self._text_of: dict[str, dict[str, int]] = {
            name: {} for name in ("condition", "run", "replicate", "trait")
        }
        self._strains: list[tuple[Mutant, tuple[float, ...]]] = []
        self._rows: dict[str, list[int]] = {
            name: [] for name in ("strain", "condition", "run", "replicate", "phenotype", "trait", "n")
        }
        self._columns: list[Column] = []
        self._count: list[int] = []
        self._column: list[Ints] = []
        self._value: list[Floats] = []
        self._sd: list[Floats] = []

    def strain(self, mutant: Mutant, doses: Sequence[float] = ()) -> int:
        """Return the code of a mutant with the doses [k] of its genes; without doses none is stated."""
        given = tuple(doses) or (math.nan,) * len(mutant.genes)
        key = (mutant.genes, mutant.kinds, mutant.alleles, mutant.renamed, str(given))
        code = _code(self._strain_of, key)
        if code == len(self._strains):
            self._strains.append((mutant, given))
        return code

    def column(self, column: Column) -> int:
        """Return the code of a column."""
        code = _code(self._column_of, column)
        if code == len(self._columns):
            self._columns.append(column)
        return code

    def add(
        self,
        strain: int,
        columns: Ints,
        values: Floats,
        sd: Floats,
        *,
        condition: str = "",
        replicate: str = "",
        guides: Sequence[str] = (),
        phenotype: PhenotypeDefinition,
        trait: str = "",
        n: int = 0,
    ) -> None:
        """Add the numbers [c] of one row; `columns` are codes, and a column's phenotype goes before."""
        made = spelled(replicate, *guides)
        for name, text in (
            ("condition", condition),
            ("run", replicate),
            ("replicate", made),
            ("trait", trait),
        ):
            self._rows[name].append(_code(self._text_of[name], text))
        self._rows["phenotype"].append(_code(self._phenotype_of, phenotype))
        self._rows["strain"].append(strain)
        self._rows["n"].append(n)
        self._count.append(len(values))
        self._column.append(columns)
        self._value.append(values)
        self._sd.append(sd)

    def __len__(self) -> int:
        return sum(self._count)

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many measurements name a gene by an older name, no gene, a neutral gene, and a neutral
        gene beside another one.
        """
        flags = [(m.renamed, m.neutral, not m.genes) for m, _ in self._strains]
        if not np.any(flags):
            return 0, 0, 0, 0
        first, second, _ = self._strain_codes()
        renamed = np.array([mutant.renamed for mutant, _ in self._strains] + [False])
        neutral = np.array([mutant.neutral for mutant, _ in self._strains] + [False])
        empty = np.array([not mutant.genes for mutant, _ in self._strains] + [True])
        several = np.array([len(mutant.genes) > 1 for mutant, _ in self._strains] + [False])
        with_neutral = neutral[first] | neutral[second]
        pairs = several[first] | several[second] | ~(empty[first] | empty[second])
        return (
            int((renamed[first] | renamed[second]).sum()),
            int((empty[first] & empty[second]).sum()),
            int(with_neutral.sum()),
            int((with_neutral & pairs).sum()),
        )

    def _strain_codes(self) -> tuple[Ints, Ints, Ints]:
        """Return the strain of the row and that of the column [m] of every number, and its row [m]."""
        row = np.repeat(np.arange(len(self._count)), self._count)
        added = np.array([column.strain for column in self._columns], np.int64)
        first = np.array(self._rows["strain"], np.int64)[row]
        return first, added[_joined(self._column, np.int64)], row

    def measurements(self, study: Study, genes: Sequence[str]) -> Measurements:
        """Return what was gathered; `genes` are the names that positions of mutants refer to."""
        first, second, row = self._strain_codes()
        column = _joined(self._column, np.int64)
        # One strain with no genes stands at the end, where the code of no strain points.
        strains = [*self._strains, (Mutant(), ())]
        size = np.array([len(mutant.genes) for mutant, _ in strains], np.int64)
        starts = offsets_of(size)[:-1]
        at, offsets = _entries(starts, size, first, second)
        flat = [
            (gene, int(kind), allele, dose)
            for mutant, doses in strains
            for gene, kind, allele, dose in zip(
                mutant.genes, mutant.kinds, mutant.alleles, doses, strict=True
            )
        ]
        alleles, allele = _sorted([part[2] for part in flat])
        traits, trait = self._texts("trait", row, [c.trait for c in self._columns], column)
        made = [spelled(*c.guides, c.replicate) for c in self._columns]
        replicates, replicate = self._texts("replicate", row, made, column)
        conditions = self._text_of["condition"]
        phenotypes, phenotype = self._phenotypes(row, column)
        return Measurements.build(
            study,
            genes=genes,
            gene=np.array([part[0] for part in flat], np.int64)[at],
            kind=np.array([part[1] for part in flat], np.uint8)[at],
            allele=Coded(alleles, allele[at]),
            dose=np.array([part[3] for part in flat], np.float64)[at],
            offsets=offsets,
            value=_joined(self._value, np.float64),
            sd=_joined(self._sd, np.float64),
            n=np.array(self._rows["n"], np.int64)[row],
            environments=[Environment(medium=name) if name else Environment() for name in conditions],
            environment=np.array(self._rows["condition"], np.int64)[row],
            phenotypes=phenotypes,
            phenotype=phenotype,
            trait=Coded(traits, trait),
            replicate=Coded(replicates, replicate),
        )

    def runs(self) -> Ints:
        """Return the number of the replicate [m] of every measurement, whatever guides it was made with."""
        row, column = self._strain_codes()[2], _joined(self._column, np.int64)
        return self._texts("run", row, [c.replicate for c in self._columns], column)[1]

    def _texts(
        self, name: str, row: Ints, of_columns: Sequence[str], column: Ints
    ) -> tuple[tuple[str, ...], Ints]:
        """Return the distinct texts of rows and columns, joined by blanks, and which [m] numbers have."""
        of_rows = list(self._text_of[name])
        mine = np.array(self._rows[name], np.int64)[row]
        labels, theirs = _sorted(of_columns)
        if len(of_rows) * len(labels) == 1:
            return (spelled(*of_rows, *labels),), np.broadcast_to(np.int64(0), row.shape)
        pair, code = _met(mine * len(labels) + theirs[column], len(of_rows) * len(labels))
        both = [spelled(of_rows[p // len(labels)], labels[p % len(labels)]) for p in pair.tolist()]
        names, position = _sorted(both)
        return names, position[code]

    def _phenotypes(self, row: Ints, column: Ints) -> tuple[list[PhenotypeDefinition], Ints]:
        """Return the phenotypes in order of appearance, and which [m] every number is of."""
        known: dict[str, PhenotypeDefinition] = {}
        codes = list(self._phenotype_of)
        of_rows = np.array(self._rows["phenotype"], np.int64)[row]
        of_columns = np.full(len(self._columns), -1, np.int64)
        for place, one in enumerate(self._columns):
            if one.phenotype is not None:
                of_columns[place] = len(codes)
                codes.append(one.phenotype)
        code = np.where(of_columns[column] < 0, of_rows, of_columns[column])
        used = []
        position = np.zeros(len(codes), np.int64)
        for place in _met(code, len(codes))[0].tolist():
            definition = codes[place]
            if definition.name not in known:
                known[definition.name] = definition
                used.append(definition)
            position[place] = [d.name for d in used].index(definition.name)
        return used, position[code]


def spelled(*parts: str) -> str:
    """Return the parts that are not empty, with blanks between."""
    return " ".join(filter(None, parts))


def _joined(blocks: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype)


def _entries(starts: Ints, size: Ints, first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the places of the genes of two strains per number, and where each number's begin [m+1]."""
    orders = [np.unique(size[_met(codes % len(size), len(size))[0]]) for codes in (first, second)]
    if all(len(order) == 1 for order in orders):
        # All rows have as many genes, as in a matrix of crosses: no place must be counted out.
        mine, theirs = (int(order[0]) for order in orders)
        at = np.empty((len(first), mine + theirs), np.int64)
        for i in range(mine + theirs):
            at[:, i] = starts[first] + i if i < mine else starts[second] + (i - mine)
        return at.reshape(-1), np.arange(len(first) + 1, dtype=np.int64) * (mine + theirs)
    offsets = offsets_of(size[first] + size[second])
    at_flat = np.empty(offsets[-1], np.int64)
    for strain, skipped in ((first, 0), (second, size[first])):
        places, own = entries_of(starts[strain], size[strain])
        shift = np.repeat(offsets[:-1] + skipped - own[:-1], size[strain])
        at_flat[shift + np.arange(len(places))] = places
    return at_flat, offsets


def _met(codes: Ints, count: int) -> tuple[Ints, Ints]:
    """Return which of so many codes occur, and which of these every entry is; without sorting the entries."""
    occurs = np.zeros(count, bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _code(codes: dict[Key, int], entry: Key) -> int:
    """Return the code of an entry, the next one if it is new."""
    return codes.setdefault(entry, len(codes))


def _sorted(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts, ascending, and the position of every text among them."""
    names = sorted(set(texts))
    place = {name: position for position, name in enumerate(names)}
    return tuple(names), np.array([place[text] for text in texts], np.int64)
