"""`ScreenGrid`: which crosses a screen measured, whether it lists them or not.

A published list of interactions holds the significant crosses of a screen. The screen crossed every query
strain with every array strain, so a cross that is not listed was measured, and was small or not significant.
It differs from a cross whose result nobody knows. The grid keeps two lists of strains and the unknown
crosses, never a row per cross: five million crosses of 2010 take some 6 MB.

Legend: n genes · q query strains · a array strains · u unknown crosses · m pairs of genes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, ShapeError
from wildtype.mutants.identity import mixed_words
from wildtype.mutants.ragged import BLOCK
from wildtype.mutants.table import Kind, MutantTable

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def pair_codes(left: Ints, right: Ints, n: int) -> Ints:
    """Return one number [m] per unordered pair of n genes: smaller · n + larger."""
    return np.minimum(left, right) * np.int64(n) + np.maximum(left, right)


def contains(sorted_codes: Ints, codes: Ints) -> Flags:
    """Return which codes [m] are among ascending ones, by binary search."""
    if not len(sorted_codes):
        return np.zeros(np.shape(codes), bool)
    at = np.minimum(np.searchsorted(sorted_codes, codes), len(sorted_codes) - 1)
    return np.asarray(sorted_codes[at] == codes)


@dataclass(frozen=True, eq=False)
class ScreenGrid:
    """The crosses of a screen of gene pairs: every query strain with every array strain, less unknown ones.

    Attributes
    ----------
    genes : int
        Number of genes n of the gene index.
    query_gene, array_gene : int64 [q], int64 [a]
        Genes of the strains, ascending; a gene stands once for each kind of strain.
    query_kind, array_kind : uint8 [q], uint8 [a]
        ``Kind`` of each strain: a strain with a reduced allele says little about the deletion.
    unknown : int64 [u]
        Ascending ``pair_codes`` of crosses whose result is not known: linked genes, failed or reserved ones.

    Raises
    ------
    ShapeError
        If genes and kinds do not fit each other or the gene index, or ``unknown`` does not ascend.
    """

    genes: int
    query_gene: Ints
    query_kind: NDArray[np.uint8]
    array_gene: Ints
    array_kind: NDArray[np.uint8]
    unknown: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    ARRAYS: ClassVar[tuple[str, ...]] = ("query_gene", "query_kind", "array_gene", "array_kind", "unknown")

    def __post_init__(self) -> None:
        for side in ("query", "array"):
            gene, kind = getattr(self, f"{side}_gene"), getattr(self, f"{side}_kind")
            if gene.shape != kind.shape or gene.ndim != 1:
                raise ShapeError(
                    f"{side}_gene {gene.shape} and {side}_kind {kind.shape} must be of one length"
                )
            if gene.size and (gene.min() < 0 or gene.max() >= self.genes):
                raise ShapeError(f"{side}_gene names gene {gene.max()}, the index has {self.genes:,} genes")
        if (np.diff(self.unknown) <= 0).any():
            raise ShapeError("unknown must hold ascending codes, each once")

    @cached_property
    def _strains(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which strains [n, kinds] are queries, and which are arrays."""
        query, array = (np.zeros((self.genes, len(Kind)), bool) for _ in range(2))
        query[self.query_gene, self.query_kind] = True
        array[self.array_gene, self.array_kind] = True
        return query, array

    @cached_property
    def strains(self) -> tuple[Ints, NDArray[np.uint8]]:
        """Genes and kinds [s] of all strains, by gene and then by kind."""
        query, array = self._strains
        gene, kind = np.nonzero(query | array)
        return gene.astype(np.int64), kind.astype(np.uint8)

    def known(self, left: Ints, right: Ints) -> Flags:
        """Return which pairs of genes [m] are not among the unknown crosses."""
        return np.asarray(~contains(self.unknown, pair_codes(left, right, self.genes)) & (left != right))

    def crossed(
        self, left: Ints, right: Ints, left_kind: NDArray[np.uint8], right_kind: NDArray[np.uint8]
    ) -> Flags:
        """Return which pairs of strains [m] the screen measured, whether it lists them or not."""
        query, array = self._strains
        either = query[left, left_kind] & array[right, right_kind]
        either |= array[left, left_kind] & query[right, right_kind]
        return np.asarray(either & self.known(left, right))

    def crossed_genes(self, left: Ints, right: Ints) -> Flags:
        """Return for which pairs of genes [m] the screen measured a cross, of strains of any kind."""
        query, array = (np.asarray(side.any(1)) for side in self._strains)
        either = (query[left] & array[right]) | (array[left] & query[right])
        return np.asarray(either & self.known(left, right))

    def measured(self, table: MutantTable) -> Flags:
        """Return which rows [m] of a table are pairs of strains that the screen measured."""
        out = np.zeros(len(table), bool)
        # By blocks of rows: a screen with a score for every cross has millions, some 100 bytes for each.
        for block in table.blocks(BLOCK):
            rows = block.start + np.flatnonzero(np.diff(table.offsets[block.start : block.stop + 1]) == 2)
            first = table.offsets[rows]
            ends = [column[first + i] for column in (table.gene, table.kind) for i in range(2)]
            out[rows] = self.crossed(*ends)
        return out

    @cached_property
    def strain_numbers(self) -> Ints:
        """Number [n, kinds] of each strain in the order of ``strains``; -1 where the screen has none."""
        out = np.full((self.genes, len(Kind)), -1, np.int64)
        out[self.strains] = np.arange(len(self.strains[0]))
        return out

    def cross_codes(self, table: MutantTable) -> Ints:
        """Return the code [m] of the cross of strains of each row: smaller number · s + larger.

        Rows must be pairs of strains; a row with a strain that the screen does not have has a code below 0.
        """
        gene, kind = table.matrix(2), table.kind.reshape(-1, 2)
        out = np.empty(len(table), np.int64)
        for block in table.blocks(BLOCK):
            number = self.strain_numbers[gene[block], kind[block]]
            codes = pair_codes(number[:, 0], number[:, 1], len(self.strains[0]))
            out[block] = np.where((number < 0).any(1), np.int64(-1), codes)
        return out

    def crosses(self) -> NDArray[np.bool_]:
        """Return [s, s] which strains, in the order of ``strains``, were crossed and are known; symmetric.

        Costs s² bytes: 19 MB for 4,400 strains.
        """
        gene, kind = self.strains
        query, array = (side[gene, kind] for side in self._strains)
        out = query[:, None] & array[None, :]
        out |= out.T
        out &= gene[:, None] != gene[None, :]
        # Unknown crosses are of genes: all strains of both.
        first, last = (
            np.searchsorted(gene, np.arange(self.genes)),
            np.searchsorted(gene, np.arange(self.genes), "right"),
        )
        left, right = self.unknown // self.genes, self.unknown % self.genes
        for i in range(int((last - first).max(initial=0))):
            for j in range(int((last - first).max(initial=0))):
                both = (first[left] + i < last[left]) & (first[right] + j < last[right])
                a, b = first[left[both]] + i, first[right[both]] + j
                out[a, b] = out[b, a] = False
        return np.asarray(out)

    def remap(self, mapping: Ints, genes: int) -> ScreenGrid:
        """Return the grid on another gene index; ``mapping`` [n] holds new positions, -1: gene gone."""

        def side(gene: Ints, kind: NDArray[np.uint8]) -> tuple[Ints, NDArray[np.uint8]]:
            new = mapping[gene]
            order = np.lexsort((kind[new >= 0], new[new >= 0]))
            return new[new >= 0][order], kind[new >= 0][order]

        left, right = mapping[self.unknown // self.genes], mapping[self.unknown % self.genes]
        kept = (left >= 0) & (right >= 0)
        query, array = side(self.query_gene, self.query_kind), side(self.array_gene, self.array_kind)
        return replace(
            self,
            genes=genes,
            query_gene=query[0],
            query_kind=query[1],
            array_gene=array[0],
            array_kind=array[1],
            unknown=np.unique(pair_codes(left[kept], right[kept], genes)),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays [·] to store, under the names of the attributes."""
        return {name: getattr(self, name) for name in self.ARRAYS}

    @classmethod
    def from_arrays(cls, genes: int, arrays: Mapping[str, NDArray[Any]]) -> ScreenGrid:
        """Return the grid of stored arrays on an index of so many genes; raises ``KeyError`` without one."""
        return cls(genes, **{name: arrays[name] for name in cls.ARRAYS})

    def counts(self) -> tuple[int, int]:
        """Return how many crosses of two strains are known, and how many are unknown."""
        known = int(self.crosses().sum()) // 2
        return known, int(replace(self, unknown=self.unknown[:0]).crosses().sum()) // 2 - known

    def without(self, codes: Ints) -> ScreenGrid:
        """Return the grid with these ``pair_codes`` unknown, too."""
        return replace(self, unknown=np.union1d(self.unknown, codes))


TRAIN, VALIDATION, TEST, DROPPED = range(4)
CROSS_RULES = ("random", "one-unseen", "unseen", "any-unseen")
"""Splits that can be drawn over crosses, before anyone looks at what is listed."""
UNKNOWN, UNLISTED, LISTED = range(3)
"""What is known of a cross: nothing, that it was measured and not listed, or its listed value."""


@dataclass(frozen=True, eq=False)
class CrossSides:
    """The side of a split that every cross is on, whether it is listed or not.

    It follows from the names of the genes and the seed alone, so that no value and no listing decides it, and
    it is computed where it is asked for: nothing is stored per cross.

    Attributes
    ----------
    word : uint64 [n]
        A random number per gene, of its name and the seed.
    rule : str
        ``random``, ``one-unseen``, ``unseen`` or ``any-unseen``: see `datasets.splits.make_split`.
    validation, test : float
        Fractions of crosses (``random``).
    fold, folds : int
        Which of how many equal parts of the crosses is tested instead of a fraction (``random``; 0: a
        fraction is).
    held : uint8 [n]
        ``VALIDATION`` or ``TEST`` for genes held out for it, else 0 (rules of genes).
    hidden : int64 [h]
        Ascending ``pair_codes`` of crosses that are on no side.
    """

    word: NDArray[np.uint64]
    rule: str = "random"
    validation: float = 0.1
    test: float = 0.1
    held: NDArray[np.uint8] | None = None
    hidden: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    fold: int = 0
    folds: int = 0

    def __post_init__(self) -> None:
        if self.rule not in CROSS_RULES:
            raise ConfigError(
                f"crosses cannot be split by {self.rule!r}; known splits of crosses: {', '.join(CROSS_RULES)}"
            )
        if self.rule != "random" and (self.held is None or self.held.shape != self.word.shape):
            raise ShapeError(
                f"split {self.rule!r} of crosses needs the side of each of {len(self.word):,} genes"
            )

    def _of_random(self, left: Ints, right: Ints) -> Ints:
        share = uniform(self.word[left], self.word[right])
        if not self.folds:
            return np.where(
                share < self.test, TEST, np.where(share < self.test + self.validation, VALIDATION, TRAIN)
            )
        # Each cross is in one fold, whatever the rounding: validation is drawn from the folds after it.
        turn = (share * self.folds - self.fold) % self.folds
        in_fold = (share * self.folds).astype(np.int64) == self.fold
        validates = turn < 1 + self.validation * self.folds
        return np.where(in_fold, TEST, np.where(validates, VALIDATION, TRAIN))

    def of(self, left: Ints, right: Ints) -> NDArray[np.int8]:
        """Return the side [m] of pairs of genes: ``TRAIN``, ``VALIDATION``, ``TEST`` or ``DROPPED``."""
        n = len(self.word)
        if self.rule == "random":
            side = self._of_random(left, right)
        else:
            held = np.zeros(n, np.uint8) if self.held is None else self.held
            a, b = held[left], held[right]
            side = np.full(len(left), DROPPED)
            side[(a == 0) & (b == 0)] = TRAIN
            for part in (VALIDATION, TEST):
                one = ((a == part) & (b == 0)) | ((a == 0) & (b == part))
                both = (a == part) & (b == part)
                if self.rule != "unseen":
                    side[one] = part
                if self.rule != "one-unseen":
                    side[both] = part
            if self.rule == "any-unseen":
                side[(a == TEST) | (b == TEST)] = TEST
        side[contains(self.hidden, pair_codes(left, right, n))] = DROPPED
        return side.astype(np.int8)

    def extended(self, count: int) -> CrossSides:
        """Return the sides with ``count`` more genes at the end, which the screen did not cross."""
        n = len(self.word)
        hidden = pair_codes(self.hidden // n, self.hidden % n, n + count)  # they stay ascending
        held = None if self.held is None else np.append(self.held, np.zeros(count, np.uint8))
        return replace(self, word=np.append(self.word, np.zeros(count, np.uint64)), held=held, hidden=hidden)

    def of_table(self, table: MutantTable) -> NDArray[np.int8]:
        """Return the side [m] of the cross of every row; raises ``ShapeError`` unless all rows are pairs."""
        gene = table.matrix(2)
        out = np.empty(len(table), np.int8)
        for block in table.blocks(BLOCK):
            out[block] = self.of(gene[block, 0], gene[block, 1])
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sides as arrays to store; ``held`` is left out where there is none."""
        plain = {"rule": np.array(self.rule), "fractions": np.array([self.validation, self.test])}
        plain |= {"fold": np.array([self.fold, self.folds]), "word": self.word, "hidden": self.hidden}
        return plain if self.held is None else plain | {"held": self.held}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> CrossSides:
        """Return the sides that ``to_arrays`` gave; raises ``KeyError`` where an array is missing."""
        validation, test = arrays["fractions"].tolist()
        fold, folds = arrays["fold"].tolist()
        word, hidden, held = arrays["word"], arrays["hidden"], arrays.get("held")
        return cls(word, str(arrays["rule"]), validation, test, held, hidden, fold, folds)


@dataclass(frozen=True, eq=False)
class VisibleCrosses:
    """What a model or a baseline may know of a screen: its training crosses, listed or not, and no other.

    Attributes
    ----------
    grid : ScreenGrid
        All crosses that the screen measured, without those that are hidden.
    sides : CrossSides
        The side of every cross.
    listed : MutantTable
        The listed crosses on the training side, with their values as measured.
    """

    grid: ScreenGrid
    sides: CrossSides
    listed: MutantTable

    @cached_property
    def _visible(self) -> NDArray[np.bool_]:
        out, gene = self.grid.crosses(), self.grid.strains[0]
        # By blocks of strains: the sides of all s² crosses at once would take some 100 bytes for each.
        for start in range(0, len(gene), 256):
            left, right = np.broadcast_arrays(gene[start : start + 256, None], gene[None])
            side = self.sides.of(left.reshape(-1), right.reshape(-1)).reshape(left.shape)
            out[start : start + 256] &= side == TRAIN
        return out

    def visible(self) -> NDArray[np.bool_]:
        """Return [s, s] which crosses of the grid's strains are training crosses with a known result."""
        return self._visible

    @cached_property
    def _listed(self) -> Ints:
        """Codes of the listed training crosses, ascending."""
        return np.unique(self.grid.cross_codes(self.listed))

    def state(self, table: MutantTable) -> NDArray[np.int8]:
        """Return for each row [m] what is known of it: ``UNKNOWN``, ``UNLISTED`` or ``LISTED``.

        Rows that are no cross of two strains, or no training cross, are unknown.
        """
        out = np.full(len(table), UNKNOWN, np.int8)
        rows = np.flatnonzero(self.grid.measured(table))
        crosses = table.take(rows)
        trained = self.sides.of_table(crosses) == TRAIN
        listed = contains(self._listed, self.grid.cross_codes(crosses))
        out[rows[trained]] = np.where(listed, LISTED, UNLISTED)[trained]
        return out


NOT_CROSSED, NOT_KNOWN, NOT_LISTED, IS_LISTED = range(4)
SCREENED = ("not crossed", "crossed, result not known", "screened, not listed", "listed")
"""What a screen says of a pair of strains, by ``ScreenListing.state``."""


@dataclass(frozen=True, eq=False)
class ScreenListing:
    """A screen as it was published, whatever a split hides of it; for grouping rows that were scored already.

    Attributes
    ----------
    grid : ScreenGrid
        All crosses of the screen.
    listed : MutantTable
        Its listed crosses.
    """

    grid: ScreenGrid
    listed: MutantTable

    def state(self, table: MutantTable) -> NDArray[np.int8]:
        """Return for each row [m] a position in ``SCREENED``; rows that are no pairs were not crossed.

        A pair is one of strains: where only another strain of a gene was crossed, the row was not.
        """
        out = np.full(len(table), NOT_CROSSED, np.int8)
        everything = replace(self.grid, unknown=self.grid.unknown[:0])
        out[everything.measured(table)] = NOT_KNOWN
        rows = np.flatnonzero(self.grid.measured(table))
        listed = contains(
            np.unique(self.grid.cross_codes(self.listed)), self.grid.cross_codes(table.take(rows))
        )
        out[rows] = np.where(listed, IS_LISTED, NOT_LISTED)
        return out


def gene_hashes(names: Sequence[str], seed: int) -> NDArray[np.uint64]:
    """Return a random 64-bit number [n] of every gene's name and a seed, whatever the gene index."""
    digests = (blake2b(f"cross/{seed}/{name}".encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), np.uint64).copy()


def uniform(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) per unordered pair of words [m]."""
    with np.errstate(over="ignore"):
        # A sum does not depend on the order of both genes; the finaliser makes neighbouring sums independent.
        return (mixed_words(left + right) >> np.uint64(11)).astype(np.float64) / 2.0**53
