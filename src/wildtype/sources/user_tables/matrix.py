"""Matrices of numbers: double mutants, or expression with the measured genes as columns or as rows.

A row is read at once: its numbers become an array, and what its columns mean is looked up once per table.

Legend: v columns of numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, shown
from wildtype.sources.text import LARGEST
from wildtype.sources.user_tables.gathered import Column, Gathered, spelled
from wildtype.sources.user_tables.grid import Grid
from wildtype.sources.user_tables.guess import Settled
from wildtype.sources.user_tables.layout import CROSSES, RESPONSES, SINGLE
from wildtype.sources.user_tables.mutants import NO_GENE, Mutant, MutantReader, Wrong
from wildtype.sources.user_tables.numbers import MISSING, NumberStyle
from wildtype.sources.user_tables.rows import CONTROL_PAIR, EMPTY, NAME, RowReader

Floats = NDArray[np.float64]
SELF = "crosses of a gene with itself"
BAD_COLUMN = "columns with a problem, left out"
NOT_MEASURED = "numbers of measured genes that the organism does not have"
_REPLICATE = re.compile(
    r"(?P<name>.*?)[\s_.(-]*(?:replicate|rep)[\s_.#-]*(?P<number>\d{1,2})\)?", re.IGNORECASE
)
_GAPS = frozenset((*MISSING, *(word.upper() for word in MISSING)))
NAMED = 10
"""Names of measured genes without a place that a remark lists."""


class MatrixReader(RowReader):
    """Reads a matrix row by row; its parameters and attributes are those of `RowReader`.

    In a matrix of crosses, a cell ``kind`` of one word is about all genes of the mutants of its row, one of
    several words about those that the row names. A dose is about the genes that the row names.
    """

    def __init__(
        self, grid: Grid, settled: Settled, mutants: MutantReader, gathered: Gathered, label: str = ""
    ) -> None:
        self.shape = settled.layout.shape
        self.level = "cell" if self.shape == CROSSES else "gene"
        super().__init__(grid, settled, mutants, gathered, label)
        given = grid.numbers
        self.names = [grid.header[i] for i in self.at["value"]] if given is None else list(given.names)
        self.unknown: list[str] = []
        """Measured genes that the organism does not have."""
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._mutant_of: dict[str, list[Mutant]] = {}
        self._partners: dict[str, dict[int, list[int]]] = {}
        self._controls: dict[str, bool] = {}
        self._kept = np.ones(len(self.names), bool)
        self._describe("")

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.names)

    @property
    def columns_kept(self) -> int:
        """How many columns of numbers have no problem."""
        return int(self._kept.sum())

    def _describe(self, kind: str) -> None:
        """Find out what all columns mean in rows of one kind of perturbation."""
        if kind in self._codes:
            return
        of_columns = []
        for place, name in enumerate(self.names):
            found, replicate = self._split(name)
            of_columns.append(self._column_mutant(place, found, kind))
            column = Column(replicate=replicate)
            if self.level == "gene" and self.shape != RESPONSES:
                genes = of_columns[-1].genes
                column = Column(trait=self.mutants.genes[genes[0]] if genes else "", replicate=replicate)
            elif not of_columns[-1].problems:
                strain = self.gathered.strain(of_columns[-1])
                column = Column(strain, replicate=replicate, guides=of_columns[-1].guides)
            self._codes.setdefault(kind, np.zeros(len(self.names), np.int64))[place] = self.gathered.column(
                column
            )
        partners: dict[int, list[int]] = {}
        for place, mutant in enumerate(of_columns):
            for gene in mutant.genes:
                partners.setdefault(gene, []).append(place)
        self._mutant_of[kind], self._partners[kind] = of_columns, partners
        self._controls[kind] = any(mutant.control for mutant in of_columns)

    def _split(self, name: str) -> tuple[str, str]:
        """Return the mutant that the name of a column names and the replicate; ``SGS1_rep2`` has both."""
        found = _REPLICATE.fullmatch(name)
        if self.shape == RESPONSES and found and not self.mutants.spellings.means(name):
            return found["name"], f"rep{found['number']}"
        return name, ""

    def _column_mutant(self, place: int, name: str, kind: str) -> Mutant:
        """Return the mutant that the name of a column names; columns with a problem are not read."""
        # A kind of several words is about the row alone.
        words = self.mutants.read((name,), kind if self.shape == CROSSES else "")
        mutant = self.mutants.read((name,), "") if words.problems else words
        problems = mutant.problems
        if self.level == "gene" and self.shape != RESPONSES:
            if not problems and len(mutant.genes) != 1:
                problems = (Wrong("genes", f"names {len(mutant.genes)} genes, expected one", NAME),)
            if problems and self.grid.numbers is not None:
                # A sequencer measures more than an organism of some hundred genes has.
                self.unknown.append(name)
                self._leave_column(place, NOT_MEASURED)
                return Mutant()
        if problems and self._kept[place]:
            for wrong in problems:
                self._refuse_column(self.grid.header[self.at["value"][place]], wrong)
            self._leave_column(place, BAD_COLUMN)
            return Mutant(problems=problems)
        if self.shape == RESPONSES and self._kept[place] and (reason := self._not_kept(mutant)):
            self._leave_column(place, reason)
        return mutant

    def _leave_column(self, place: int, reason: str) -> None:
        self._kept[place] = False
        self._leave_out(reason, len(self.grid.cells))

    def _row_numbers(self, i: int) -> tuple[Floats, Floats, int]:
        """Return the numbers [v] of a row (NaN: empty), their sd [v], and how many cells are behind them."""
        nothing = np.full(len(self.names), math.nan)
        if self.grid.numbers is not None:
            given = self.grid.numbers
            return given.value[i], given.sd[i], int(given.n[i])
        columns, cells = self.at["value"], self.grid.cells[i]
        contiguous = columns[-1] - columns[0] == len(columns) - 1
        texts = cells[columns[0] : columns[-1] + 1] if contiguous else [cells[at] for at in columns]
        return self._converted(i, texts), nothing, 0

    def _converted(self, i: int, texts: Sequence[str]) -> Floats:
        try:
            # Lists are searched and converted without a Python step per number; what only float accepts is
            # looked at again.
            filled = list(texts)
            for gap in _GAPS.intersection(texts):
                at = -1
                for _ in range(texts.count(gap)):
                    at = texts.index(gap, at + 1)
                    filled[at] = "nan"
            values = np.fromiter(map(float, filled), np.float64, len(texts))
            joined = "".join(texts)
            plain = self.numbers == NumberStyle() and "_" not in joined and joined.isascii()
            if plain and not (np.abs(values) >= LARGEST).any():
                return values
        except ValueError:
            pass
        kept = self._kept
        return np.array(
            [self._number(i, at) if kept[p] else math.nan for p, at in enumerate(self.at["value"])],
            np.float64,
        )

    def _read(self, i: int) -> None:
        cells = tuple(self.grid.cells[i][at] for at in self.at["genes"])
        kinds = self._cell(i, "kind")
        mutant = self.mutants.read(cells, kinds)
        self._wrong(i, mutant.problems)
        if self.shape == RESPONSES and not mutant.problems and len(mutant.genes) != 1:
            self._wrong(i, [Wrong("genes", f"names {len(mutant.genes)} genes, expected one", NO_GENE)])
        doses, problems = self.mutants.doses(self._cell(i, "dose"), mutant.named)
        self._wrong(i, problems)
        values, sd, n = self._row_numbers(i)
        condition, replicate = self._name(i, "condition"), self._name(i, "replicate")
        phenotype = self._phenotype(i)
        there = self._kept & ~np.isnan(values)
        if phenotype is not None and there.any() and self.shape == CROSSES:
            first = self._mutant_of[""][int(there.argmax())]
            both = Mutant(named=mutant.named + first.named, nothing=mutant.nothing or first.nothing)
            self._enough(i, both, phenotype)
        if self._row_problems or phenotype is None:
            return
        self._leave_out(EMPTY, int((self._kept & np.isnan(values)).sum()))
        if self.shape != RESPONSES and (reason := self._not_kept(mutant, pairs=self.shape == CROSSES)):
            self._leave_out(reason, int(there.sum()))
            return
        self._describe(kinds if self.shape == CROSSES else "")
        if self.shape == CROSSES:
            there = self._without_partners(mutant, kinds, there)
        at = np.flatnonzero(there)
        if not len(at):
            return
        trait = self.mutants.genes[mutant.genes[0]] if self.shape == RESPONSES else ""
        strain = self.gathered.strain(Mutant() if trait else mutant, () if trait else doses)
        self.gathered.add(
            strain,
            self._codes[kinds if self.shape == CROSSES else ""][at],
            values[at],
            sd[at],
            condition=condition,
            replicate=spelled(self.label, replicate),
            guides=() if trait else mutant.guides,
            phenotype=phenotype,
            trait=trait,
            n=n,
        )

    def _without_partners(self, mutant: Mutant, kind: str, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which numbers [v] of a row are of pairs; the others are counted by reason."""
        for gene in mutant.genes:
            for other in (gene, *self.mutants.sharing(gene)):
                places = self._partners[kind].get(other, [])
                reason = SELF if other == gene else self.mutants.no_pair([gene, other])
                self._leave_out(reason, int(there[places].sum()))
                there[places] = False
        if self.settled.layout.control_pairs == SINGLE or not (mutant.control or self._controls[kind]):
            return there
        of_column = self._mutant_of[kind]
        beside = np.array(
            [(one.control or mutant.control) and len({*one.genes, *mutant.genes}) == 1 for one in of_column]
        )
        self._leave_out(CONTROL_PAIR, int((there & beside).sum()))
        left: NDArray[np.bool_] = there & ~beside
        return left

    def read_all(self) -> None:
        """Read every row but totals at the end.

        Raises
        ------
        SourceError
            If the organism has none of the measured genes.
        """
        if self.grid.numbers is not None and len(self.unknown) == len(self.names):
            first = ", ".join(map(shown, self.names[:3]))
            raise SourceError(
                f"{self.grid.path}: no measured gene ({first} …) is in organism "
                f"{self.mutants.index.organism!r}: take the organism whose genes were measured"
            )
        super().read_all()
