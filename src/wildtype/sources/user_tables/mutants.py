"""The mutant of a row from its cells: the genes, the kind of perturbation of each, and the doses.

Legend: k perturbed genes of one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wildtype.datasets.records import PerturbationKind
from wildtype.errors import AmbiguousGeneError, UnknownGeneError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.user_tables.vocabulary import (
    MARKS,
    is_missing,
    kind_words,
    members,
    parse_kind,
    parse_number,
)

HINTED = 20
"""Unknown names for which similar ones are looked up; that takes a while for each."""


@dataclass(frozen=True)
class Mutant:
    """The perturbed genes of a row.

    Attributes
    ----------
    genes : tuple of k int
        Positions in the gene index; foreign genes follow after its last.
    kinds : tuple of k PerturbationKind
        What was done to each.
    renamed : bool
        Whether a gene goes by an older name or alias.
    problems : tuple of (column, message)
        What is wrong.
    """

    genes: tuple[int, ...] = ()
    kinds: tuple[PerturbationKind, ...] = ()
    renamed: bool = False
    problems: tuple[tuple[str, str], ...] = ()


class MutantReader:
    """Reads cells about genes; equal cells are read once.

    Parameters
    ----------
    index : GeneIndex
        The organism's genes.
    separator : str
        Between the members of a set; empty to find it out cell by cell.
    """

    def __init__(self, index: GeneIndex, separator: str) -> None:
        self.index, self.separator = index, separator
        self._foreign: dict[str, int] = {}
        self._found: dict[str, int | str] = {}  # position, or what is wrong with the name
        self._unknown = 0
        self._mutants: dict[tuple[str, str], Mutant] = {}
        spelled = [
            *index.names,
            *index.standard.values(),
            *(a for names in index.aliases.values() for a in names),
        ]
        # Gene names that hold a separator, as ARG5,6 does, are recognised before a cell is split.
        self._divided = {name.upper() for name in spelled if any(mark in name for mark in (*MARKS, " "))}
        self._current = {name.upper() for name in (*index.names, *index.standard.values())}

    @property
    def genes(self) -> list[str]:
        """Names that positions refer to: those of the index, then foreign genes."""
        return [*self.index.names, *self._foreign]

    def read(self, genes: str, kinds: str) -> Mutant:
        """Return what the cells ``genes`` and ``kind`` of a row say."""
        key = (genes, kinds)
        if key not in self._mutants:
            self._mutants[key] = self._read(genes, kinds)
        return self._mutants[key]

    def _read(self, genes: str, kinds: str) -> Mutant:
        names = members(genes, self.separator, lambda cell: cell.upper() in self._divided)
        done, problems = self._kinds(kinds, len(names))
        if not names:
            problems.insert(0, ("genes", "is empty, expected at least one gene"))
        spelled: dict[int, list[str]] = {}
        for name, kind in zip(names, done, strict=True):
            position = self._gene(name, kind)
            if isinstance(position, str):
                problems.append(("genes", position))
            else:
                spelled.setdefault(position, []).append(name)
        for position, same in spelled.items():
            # Two spellings of one gene, such as YAL001C and TFC3, would else count as a double mutant.
            if len(same) > 1:
                gene, spellings = shown(self.genes[position]), ", ".join(map(shown, same))
                message = f"names {gene} more than once ({spellings}): a gene counts once in a mutant"
                problems.append(("genes", message))
        renamed = any(name.upper() not in self._current and name not in self._foreign for name in names)
        return Mutant(tuple(spelled), tuple(done), renamed, tuple(problems))

    def _kinds(self, cell: str, count: int) -> tuple[list[PerturbationKind], list[tuple[str, str]]]:
        if not cell:
            return [PerturbationKind.DELETION] * count, []
        words = members(cell, self.separator, lambda word: parse_kind(word) is not None)
        read = {word: parse_kind(word) for word in words}
        problems = [
            ("kind", f"{shown(word)} is not a kind of perturbation; known kinds: {kind_words()}")
            for word, kind in read.items()
            if kind is None
        ]
        if len(words) not in (1, count) and count:
            message = f"names {len(words)} kinds for {_genes(count)}, expected one for all or one each"
            problems.append(("kind", message))
        kinds = [read[word] or PerturbationKind.DELETION for word in words]
        return (kinds * count)[:count], problems

    def _gene(self, name: str, kind: PerturbationKind) -> int | str:
        """Return the position of a gene, or what is wrong with its name."""
        if not name:
            return "has an empty name between separators"
        if name not in self._found:
            self._found[name] = self._lookup(name)
        found = self._found[name]
        if isinstance(found, str) and kind is PerturbationKind.ADDITION and name not in self.index:
            return self._foreign.setdefault(name, len(self.index) + len(self._foreign))
        return found

    def _lookup(self, name: str) -> int | str:
        if name not in self.index:
            self._unknown += 1
            # The first unknown names get suggestions; a column of wrong identifiers must not take minutes.
            if self._unknown > HINTED:
                return f"{shown(name)} is not in organism {self.index.organism!r}; check the spelling"
        try:
            return self.index.find(name)
        except (UnknownGeneError, AmbiguousGeneError) as error:
            return str(error)

    def doses(self, cell: str, count: int) -> tuple[list[float], list[tuple[str, str]]]:
        """Return the doses [k] of the genes of a row (NaN: not stated), and what is wrong with the cell."""
        if is_missing(cell):
            return [math.nan] * count, []
        parts = members(cell, self.separator, lambda part: parse_number(part) is not None)
        doses: list[float] = []
        problems = []
        for part in parts:
            dose = math.nan if is_missing(part) else parse_number(part)
            if dose is None or dose < 0:
                problems.append(("dose", f"received {shown(part)}, expected a number of at least 0"))
            doses.append(math.nan if dose is None else dose)
        if len(parts) != count and count:
            problems.append(("dose", f"gives {len(parts)} doses for {_genes(count)}, expected one each"))
        return (doses * count)[:count], problems


def _genes(count: int) -> str:
    return "1 gene" if count == 1 else f"{count} genes"
