"""The mutant of a row from its cells: the genes, the kind of perturbation of each, and the doses.

Legend: k perturbed genes of one row · c cells that name genes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from wildtype.characters import name_fault
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import shown
from wildtype.organism import Organism
from wildtype.organism.units import JOINED
from wildtype.sources.user_tables.guides import read_guides
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.numbers import is_missing
from wildtype.sources.user_tables.spellings import CONTROL, GUIDE, GUIDES, NEUTRAL, Fault, Found, Spellings
from wildtype.sources.user_tables.vocabulary import KINDS, MARKS, kind_words, members, parse_kind

SAME_GENE, NO_GENE, KIND, DOSE = "one gene twice", "no gene", "kind of perturbation", "dose"
HIDDEN_CHARACTER = "hidden character"
SAME_GUIDED, SAME_UNIT, SHARED = (
    "pairs of guides of one gene", "pairs of a unit with itself", "pairs of units that share a gene",
)  # fmt: skip
EXAMPLES = 3
"""Spellings that are shown of each rule by which names were understood."""


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a cell of a mutant.

    Attributes
    ----------
    column : str
        ``genes``, ``kind`` or ``dose``.
    message, reason : str
        In one sentence; and the kind of problem.
    cell : int
        Which of the c cells that name genes.
    """

    column: str
    message: str
    reason: str
    cell: int = 0


@dataclass(frozen=True)
class Mutant:
    """The perturbed genes of a row; those of the wild type are none.

    Attributes
    ----------
    genes : tuple of k int
        Positions in the gene index; foreign genes follow after its last.
    kinds : tuple of k PerturbationKind
        What was done to each.
    alleles : tuple of k str
        Their alleles; empty where none is named.
    named : int
        How many genes the cells name, known or not.
    renamed : bool
        Whether a gene goes by an older name or alias.
    neutral : bool
        Whether it has a gene that screens delete in their controls.
    nothing : bool
        Whether a cell names the wild type or a control.
    control : bool
        Whether a cell names a declared control.
    guides : tuple of str
        The names of guides by which genes were named.
    no_pair : str
        Why the perturbations are no combination of several, as of two guides of one gene; empty if they are.
    problems : tuple of Wrong
        What is wrong.
    """

    genes: tuple[int, ...] = ()
    kinds: tuple[PerturbationKind, ...] = ()
    alleles: tuple[str, ...] = ()
    named: int = 0
    renamed: bool = False
    neutral: bool = False
    nothing: bool = False
    control: bool = False
    guides: tuple[str, ...] = ()
    no_pair: str = ""
    problems: tuple[Wrong, ...] = ()


class MutantReader:
    """Reads cells about genes; equal cells are read once.

    Parameters
    ----------
    organism : Organism
        Its genes, or the units that are its tokens.
    layout : Layout
        Separator of genes, controls, guides, the kind where none is stated, and how doses are written.
    assumed : sequence of n PerturbationKind
        What is done to each gene of the organism where neither the table nor the layout states it; a deletion
        if not given.

    Raises
    ------
    SourceError
        If a table of guides cannot be read.
    """

    def __init__(self, organism: Organism, layout: Layout, assumed: Sequence[PerturbationKind] = ()) -> None:
        index = organism.genes
        self.index, self.units, self.separator = index, organism.units, layout.gene_separator
        self.numbers = layout.numbers
        self.foreign = frozenset(
            [] if organism.foreign is None else np.flatnonzero(organism.foreign).tolist()
        )
        self.kind, self.assumed = (parse_kind(layout.kind) if layout.kind else None), assumed
        self.spellings = Spellings(index, layout.controls, read_guides(layout.guides), organism.units)
        self.understood: dict[str, Counter[str]] = {}
        """Names that are not the organism's, by the rule that they were understood by."""
        self.asked: dict[str, dict[str, None]] = {CONTROL: {}, GUIDE: {}}
        """Names that may be those of controls or guides, and of which nobody said what they are."""
        self._foreign: dict[str, int] = {}
        self._mutants: dict[tuple[tuple[str, ...], str], Mutant] = {}
        spelled = [
            *index.names,
            *index.standard.values(),
            *(a for names in index.aliases.values() for a in names),
        ]
        # Gene names that hold a separator, as ARG5,6 does, are recognised before a cell is split.
        self._divided = {name.upper() for name in spelled if any(mark in name for mark in (*MARKS, " "))}
        self._neutral = {position for name in NEUTRAL for position in index.find_each(name)}

    @property
    def genes(self) -> list[str]:
        """Names that positions refer to: those of the index, then foreign genes."""
        return [*self.index.names, *self._foreign]

    def names(self, cell: str) -> list[str]:
        """Return the names in a cell; an empty cell has none."""
        return members(cell, self.separator, self._is_whole)

    def _is_whole(self, cell: str) -> bool:
        # Other spellings count only where a cell would be split: wild type, SGS1 (YMR190C), 1 Mar.
        if cell.upper() in self._divided or self.spellings.is_nothing(cell) or self.spellings.is_guide(cell):
            return True
        if self.units is not None and JOINED in cell and self.spellings.unit_of(cell) is not None:
            return True
        if " " not in cell or cell in self.index or self._are_genes(cell.split()):
            return False
        return self.spellings.means(cell)

    def _are_genes(self, names: Sequence[str]) -> bool:
        """Return whether names mean as many genes: SGS1 SRS2, but not SGS1 YMR190C."""
        meant = [tuple(self.index.find_each(name)) for name in names]
        return all(meant) and len(set(meant)) == len(meant)

    def read(self, cells: tuple[str, ...], kinds: str) -> Mutant:
        """Return what the c cells of genes and the cell ``kind`` of a row say."""
        key = (cells, kinds)
        if key not in self._mutants:
            self._mutants[key] = self._read(cells, kinds)
        return self._mutants[key]

    def _read(self, cells: tuple[str, ...], kinds: str) -> Mutant:
        names = [(at, name) for at, cell in enumerate(cells) for name in self.names(cell)]
        stated, problems = self._kinds(kinds, [name for _, name in names])
        if not names:
            problems.insert(
                0, Wrong("genes", "is empty, expected at least one gene, or wt for the wild type", NO_GENE)
            )
        found: dict[int, tuple[PerturbationKind, str]] = {}
        spelled: dict[int, list[str]] = {}
        renamed = False
        for (at, name), kind in zip(names, stated, strict=True):
            if self.spellings.is_nothing(name):
                continue
            gene = self._gene(name, kind)
            if isinstance(gene, Fault):
                if gene.reason in self.asked:
                    self.asked[gene.reason][name] = None
                problems.append(Wrong("genes", gene.message, gene.reason, at))
                continue
            if kind is not None and gene.kind is not None and not _agree(kind, gene.kind):
                message = f"says {KINDS[kind][0]} of {shown(name)}, which is written as {KINDS[gene.kind][0]}"
                problems.append(Wrong("kind", f"{message}: correct one of them", KIND))
            # A deletion is 0: what is stated is told from what is not by None alone.
            given = (kind, gene.kind, self.kind)
            kind = next((one for one in given if one is not None), self._assumed(gene.position))
            found[gene.position] = (kind, gene.allele)
            spelled.setdefault(gene.position, []).append(name)
            if gene.how:
                self.understood.setdefault(gene.how, Counter())[name] += 1
            elif name not in self._foreign:
                renamed |= not self.spellings.is_current(name)
        guides = tuple(name for _, name in names if name in self.understood.get(GUIDES, ()))
        no_pair = self.no_pair([position for position, same in spelled.items() for _ in same], guides)
        for position, same in spelled.items():
            if no_pair:
                break
            # Two spellings of one gene, such as YAL001C and TFC3, would else count as a double mutant.
            if len(same) > 1:
                gene_name, spellings = shown(self.genes[position]), ", ".join(map(shown, same))
                message = f"names {gene_name} more than once ({spellings}): a gene counts once in a mutant"
                problems.append(Wrong("genes", message, SAME_GENE))
        return Mutant(
            tuple(found),
            tuple(kind for kind, _ in found.values()),
            tuple(allele for _, allele in found.values()),
            sum(not self.spellings.is_nothing(name) for _, name in names),
            renamed,
            bool(self._neutral & found.keys()),
            any(self.spellings.is_nothing(name) for _, name in names),
            any(self.spellings.is_control(name) for _, name in names),
            guides,
            no_pair,
            tuple(problems),
        )

    def no_pair(self, positions: Sequence[int], guides: Sequence[str] = ()) -> str:
        """Return why perturbed tokens are no combination of several; empty if they are.

        Two guides of one gene and units that share a gene occur in screens on purpose. In other tables a
        gene that is named twice is a slip.
        """
        known = [position for position in positions if position < len(self.index)]
        twice = len(set(known)) < len(known)
        if self.units is None:
            return SAME_GUIDED if twice and guides else ""
        if twice:
            return SAME_UNIT
        pairs = np.array(list(combinations(known, 2)), np.int64).reshape(-1, 2)
        return SHARED if len(pairs) and self.units.overlapping(pairs[:, 0], pairs[:, 1]).any() else ""

    def _assumed(self, position: int) -> PerturbationKind:
        return self.assumed[position] if position < len(self.assumed) else PerturbationKind.DELETION

    def sharing(self, token: int) -> tuple[int, ...]:
        """Return the other tokens that share a gene with one."""
        if self.units is None or token >= len(self.index):
            return ()
        table = self.units.sharing
        return tuple(table.indices[table.indptr[token] : table.indptr[token + 1]].tolist())

    def _kinds(self, cell: str, names: list[str]) -> tuple[list[PerturbationKind | None], list[Wrong]]:
        """Return the kind that a cell states of each name, None where it says nothing."""
        if not cell:
            return [None] * len(names), []
        words = members(cell, self.separator, lambda word: parse_kind(word) is not None)
        read = {word: parse_kind(word) if word else None for word in words}
        problems = [
            Wrong("kind", f"{shown(word)} is not a kind of perturbation; known kinds: {kind_words()}", KIND)
            for word, kind in read.items()
            if kind is None and word
        ]
        kinds = [read[word] for word in words]
        perturbed = [not self.spellings.is_nothing(name) for name in names]
        # In a row such as SGS1, wt the kind of the wild type may be left out.
        if len(words) == sum(perturbed) != len(names):
            given = iter(kinds)
            return [next(given) if there else None for there in perturbed], problems
        if len(words) not in (1, len(names)) and names:
            message = f"names {len(words)} kinds for {_genes(len(names))}, expected one for all or one each"
            problems.append(Wrong("kind", message, KIND))
        return (kinds * len(names))[: len(names)], problems

    def _gene(self, name: str, kind: PerturbationKind | None) -> Found | Fault:
        if not name:
            return Fault("has an empty name between separators", NO_GENE)
        if fault := name_fault(name):
            return Fault(fault, HIDDEN_CHARACTER)
        found = self.spellings.find(name)
        if isinstance(found, Found) and found.position in self.foreign:
            return replace(found, kind=found.kind or PerturbationKind.ADDITION)
        if isinstance(found, Fault) and kind is PerturbationKind.ADDITION and name not in self.index:
            return Found(self._foreign.setdefault(name, len(self.index) + len(self._foreign)))
        return found

    def doses(self, cell: str, count: int) -> tuple[list[float], list[Wrong]]:
        """Return the doses [k] of the genes of a row (NaN: not stated), and what is wrong with the cell."""
        if is_missing(cell):
            return [math.nan] * count, []
        parts = members(cell, self.separator, lambda part: self.numbers.parse(part) is not None)
        doses: list[float] = []
        problems = []
        for part in parts:
            dose = math.nan if is_missing(part) else self.numbers.parse(part)
            if dose is None or dose < 0:
                message = f"received {shown(part)}, expected a number of at least 0"
                problems.append(Wrong("dose", message, DOSE))
            doses.append(math.nan if dose is None else dose)
        if len(parts) != count and count:
            message = f"gives {len(parts)} doses for {_genes(count)}, expected one each"
            problems.append(Wrong("dose", message, DOSE))
        return (doses * count)[:count], problems

    def explanations(self) -> list[str]:
        """Return one line per rule by which names that are not the organism's were understood."""
        lines = []
        for how, names in self.understood.items():
            examples = ", ".join(f"{name} ({self._meaning(name)})" for name, _ in names.most_common(EXAMPLES))
            more = f" and {len(names) - EXAMPLES:,} more" if len(names) > EXAMPLES else ""
            lines.append(f"{how}: {examples}{more}")
        return lines

    def _meaning(self, name: str) -> str:
        found = self.spellings.find(name)
        return self.index.label(found.position) if isinstance(found, Found) else name


def _agree(stated: PerturbationKind, spelled: PerturbationKind) -> bool:
    """Return whether two kinds may be of one perturbation: only a deletion is nothing else."""
    return (stated is PerturbationKind.DELETION) == (spelled is PerturbationKind.DELETION)


def _genes(count: int) -> str:
    return "1 gene" if count == 1 else f"{count} genes"
