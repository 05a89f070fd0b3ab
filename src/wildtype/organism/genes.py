"""`GeneIndex`, the pinned order of an organism's genes, and `Coordinates`, where they lie on the chromosomes.

Names become positions here and nowhere else.

Legend: n genes · k pairs of genes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import first_fault
from wildtype.errors import AmbiguousGeneError, GeneSetError, UnknownGeneError, shown
from wildtype.files import content_hash

SEPARATORS = re.compile(r"[,;\s]+")
"""What separates the genes of a set, where it is written as one text."""
IN_NAMES = "+"
"""What takes its place in the name of a gene, or between the genes of a unit."""


def systematic(name: str) -> str:
    """Return a name as importers give it to genes and units: ``ARG5+6`` for ``ARG5,6``."""
    return SEPARATORS.sub(IN_NAMES, name.strip())


class GeneIndex:
    """Names of N genes in a fixed order, with lookup by systematic name, standard name or alias.

    Lookup tries the systematic name, then the standard name, then the aliases, first as written and then
    without regard to case. A name that fits several genes at the first level where it fits any is ambiguous.

    Parameters
    ----------
    names : sequence of str
        Systematic names, unique, in the order that positions refer to.
    standard : mapping of str to str, optional
        Systematic name to standard name (``YAL001C`` to ``TFC3``).
    aliases : mapping of str to sequence of str, optional
        Systematic name to further names.
    organism : str
        Used in messages.
    descriptions : mapping of str to str, optional
        Systematic name to what the gene does, for people.

    Raises
    ------
    GeneSetError
        If a systematic name is empty or repeated, or a name holds a hidden character.
    """

    def __init__(
        self,
        names: Sequence[str],
        standard: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        organism: str = "unnamed",
        descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self.organism = organism
        self._position = {name: i for i, name in enumerate(self.names)}
        if len(self._position) != len(self.names) or "" in self._position:
            seen: set[str] = set()
            twice = sorted({name for name in self.names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
            raise GeneSetError(
                f"gene names of organism {organism!r} must be unique and not empty; check {twice[:5] or ['']}"
            )
        for given in (self.names, (standard or {}).values(), *(aliases or {}).values()):
            if fault := first_fault(given):
                raise GeneSetError(f"genes of organism {organism!r}: {fault}")
        self.standard: dict[str, str] = {
            g: s for g, s in (standard or {}).items() if g in self._position and s
        }
        self.aliases: dict[str, tuple[str, ...]] = {
            g: tuple(a) for g, a in (aliases or {}).items() if g in self._position and a
        }
        self.descriptions: dict[str, str] = {
            g: text for g, text in (descriptions or {}).items() if g in self._position and text
        }

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: str) -> bool:
        return bool(self.find_each(name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeneIndex) and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"GeneIndex({self.organism!r}, {len(self)} genes, sha256 {self.sha256[:12]})"

    @cached_property
    def sha256(self) -> str:
        """Hash of the systematic names in their order: two indices with equal hashes give equal positions."""
        return content_hash(list(self.names))

    @cached_property
    def _levels(self) -> tuple[dict[str, list[int]], ...]:
        # Levels are searched in this order, so that an alias of one gene never hides another gene's name.
        exact: list[dict[str, list[int]]] = [{}, {}, {}]
        for i, name in enumerate(self.names):
            exact[0].setdefault(name, []).append(i)
            if name in self.standard:
                exact[1].setdefault(self.standard[name], []).append(i)
            for alias in self.aliases.get(name, ()):
                exact[2].setdefault(alias, []).append(i)
        folded: list[dict[str, list[int]]] = [{}, {}, {}]
        for level, table in zip(folded, exact, strict=True):
            for name, positions in table.items():
                level.setdefault(name.upper(), []).extend(positions)
        return (*exact, *folded)

    def find_each(self, name: str) -> list[int]:
        """Return the positions of all genes that a name may mean, in order; none if it is not known."""
        return self.find_level(name)[1]

    def find_level(self, name: str) -> tuple[int, list[int]]:
        """Return the level at which a name is found, and what ``find_each`` does.

        0 systematic name, 1 standard name, 2 alias; 3 to 5 the same without regard to case; 6 not known.
        """
        name = name.strip()
        for depth, level in enumerate(self._levels):
            found = level.get(name if depth < 3 else name.upper())
            if found:
                return depth, sorted(set(found))
        return len(self._levels), []

    @cached_property
    def folded(self) -> frozenset[str]:
        """Every name that ``find_level`` knows, in upper case: to sort out most of millions beforehand."""
        return frozenset().union(*self._levels[3:])

    def find(self, name: str) -> int:
        """Return the position of a gene given any of its names.

        Raises
        ------
        UnknownGeneError
            With the nearest known names.
        AmbiguousGeneError
            With the systematic names of every gene the name could mean.
        """
        # Systematic names, nearly all lookups, need no search through the levels.
        if (position := self._position.get(name)) is not None:
            return position
        found = self.find_each(name)
        if len(found) == 1:
            return found[0]
        where = f"organism {self.organism!r} ({len(self):,} genes)"
        if found:
            meant = ", ".join(self.names[i] for i in found)
            raise AmbiguousGeneError(
                f"{shown(name)} is ambiguous in {where}: it may mean {meant}; use one of these"
            )
        near = self.nearest(name)
        hint = f"did you mean {' or '.join(near)}?" if near else "check the spelling and the organism"
        raise UnknownGeneError(f"{shown(name)} is not in {where}; {hint}")

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """Return up to ``count`` known names (as their owners spell them) that look like ``name``."""
        spelled = {key: key for level in self._levels[:3] for key in level}
        by_fold = {key.upper(): key for key in spelled}
        close = difflib.get_close_matches(name.strip().upper(), list(by_fold), n=count, cutoff=0.7)
        return [by_fold[key] for key in close]

    def find_all(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Return positions [k] of names; raises as ``find`` does."""
        return np.array([self.find(name) for name in names], dtype=np.int64)

    def find_set(self, names: Iterable[str], *, what: str = "gene set") -> NDArray[np.int64]:
        """Return sorted positions [k] of a set of genes, refusing an empty set and a gene named twice.

        Raises
        ------
        GeneSetError, UnknownGeneError, AmbiguousGeneError
            Each with ``what`` (such as the row) in its message.
        """
        names = list(names)
        if not names:
            raise GeneSetError(f"{what} is empty: name at least one gene")
        try:
            positions = self.find_all(names)
        except (UnknownGeneError, AmbiguousGeneError) as error:
            raise type(error)(f"{what}: {error}") from None
        unique, counts = np.unique(positions, return_counts=True)
        if (counts > 1).any():
            gene = self.names[unique[counts > 1][0]]
            spelled = [n for n, p in zip(names, positions, strict=True) if self.names[p] == gene]
            raise GeneSetError(
                f"{what} names {gene} more than once ({', '.join(spelled)}): a gene counts once"
            )
        return unique

    def label(self, position: int) -> str:
        """Return ``standard name (systematic name)``, or the systematic name where there is no other."""
        name = self.names[position]
        standard = self.standard.get(name)
        return f"{standard} ({name})" if standard and standard != name else name

    def restrict(self, positions: NDArray[np.int64]) -> GeneIndex:
        """Return the index of the genes at ``positions`` [M], in that order."""
        names = [self.names[i] for i in positions]
        return GeneIndex(names, self.standard, self.aliases, self.organism, self.descriptions)

    def extended(
        self, names: Iterable[str], *, organism: str = "", descriptions: Mapping[str, str] | None = None
    ) -> GeneIndex:
        """Return the index with further genes at its end, of this organism or of the one named."""
        descriptions = self.descriptions | dict(descriptions or {})
        names = (*self.names, *names)
        return GeneIndex(names, self.standard, self.aliases, organism or self.organism, descriptions)

    def mapping_to(self, other: GeneIndex) -> NDArray[np.int64]:
        """Return [N] positions in ``other`` by systematic name; -1 where ``other`` lacks the gene."""
        return np.array([other._position.get(name, -1) for name in self.names], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-like record: names, other names, descriptions, hash."""
        return {
            "organism": self.organism,
            "sha256": self.sha256,
            "names": list(self.names),
            "standard": self.standard,
            "aliases": {gene: list(other) for gene, other in self.aliases.items()},
            "descriptions": self.descriptions,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> GeneIndex:
        """Rebuild an index and check it against its stored hash.

        Raises
        ------
        GeneSetError
            If the names do not give the stored hash.
        """
        index = cls(
            record["names"],
            record["standard"],
            record["aliases"],
            record["organism"],
            record.get("descriptions"),
        )
        if index.sha256 != record["sha256"]:
            raise GeneSetError(
                f"the gene list of organism {index.organism!r} does not match its sha256 "
                f"({index.sha256[:12]}, recorded {record['sha256'][:12]}): the file was changed; restore it"
            )
        return index


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Chromosomal positions of n genes, by which genetic linkage between two loci is judged.

    Attributes
    ----------
    chromosome : int64 [n]
        Numbers from 1, nuclear chromosomes first; in yeast 1 to 16, then 17 for the mitochondrion and 18 for
        the 2-micron plasmid. 0 where not known.
    start, end : float64 [n]
        First and last base of the gene in kb, start <= end on either strand; NaN where not known.
    strand : int8 [n]
        1 forward, -1 reverse, 0 where not known.
    source : str
        Where the positions come from.
    """

    chromosome: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    strand: NDArray[np.int8]
    source: str = ""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Genes with a known position [n]."""
        return self.chromosome > 0

    def take(self, positions: NDArray[np.int64]) -> Coordinates:
        """Return the coordinates of the genes at ``positions``."""
        return Coordinates(
            self.chromosome[positions],
            self.start[positions],
            self.end[positions],
            self.strand[positions],
            self.source,
        )

    def extended(self, count: int) -> Coordinates:
        """Return the coordinates with ``count`` more genes at the end, whose positions are not known."""
        chromosome, strand = (np.append(x, np.zeros(count, x.dtype)) for x in (self.chromosome, self.strand))
        start, end = (np.append(x, np.full(count, np.nan)) for x in (self.start, self.end))
        return Coordinates(chromosome, start, end, strand, self.source)

    def distance(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gap between pairs of genes in kb [k]: 0 if they overlap, infinite if they lie on
        different chromosomes, NaN if a position is not known.
        """
        gap = np.maximum(self.start[first] - self.end[second], self.start[second] - self.end[first])
        # Loci on different chromosomes segregate independently, as if infinitely far from each other.
        distance = np.where(self.chromosome[first] == self.chromosome[second], np.maximum(gap, 0.0), np.inf)
        return np.where(self.known[first] & self.known[second], distance, np.nan)

    def overlapping(self, among: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return which genes [n] share bases with another gene, on either strand.

        ``among`` [n] limits both to some genes. A deletion of such a gene takes a part of its neighbour.
        """
        out = np.zeros(len(self.chromosome), bool)
        placed = np.flatnonzero(self.known if among is None else self.known & among)
        placed = placed[np.lexsort((self.start[placed], self.chromosome[placed]))]
        for number in np.unique(self.chromosome[placed]):
            at = placed[self.chromosome[placed] == number]
            start, end = self.start[at], self.end[at]
            # By start: a gene overlaps an earlier one if it starts before the furthest end so far, and a
            # later one if the next gene starts before its end.
            out[at[1:]] |= start[1:] <= np.maximum.accumulate(end)[:-1]
            out[at[:-1]] |= start[1:] <= end[:-1]
        return out

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything as arrays, for storage."""
        return {
            "chromosome": self.chromosome,
            "start": self.start,
            "end": self.end,
            "strand": self.strand,
            "source": np.array(self.source),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Coordinates:
        """Rebuild coordinates from ``to_arrays``."""
        columns = {name: arrays[name] for name in ("chromosome", "start", "end", "strand")}
        return cls(**columns, source=str(arrays["source"]))  # type: ignore[arg-type]
