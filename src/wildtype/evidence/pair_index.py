"""`PairIndex`: columns of pairs from what may be seen of a screen, never from the pair itself.

A pair whose cross is visible is answered by a matrix without the fold of crosses that holds it, so that a
training pair is described as a new one would be. New pairs are of two sorts: some stand alone among visible
crosses, and of some all related pairs are unknown, too (two pathways that were never crossed, or two arrays).
Half of the training pairs are therefore described without whole blocks of crosses between related genes.
The same holds for a gene that is to look unseen: the matrix then lacks every strain of the genes of its fold.

Legend: n genes · s strains · m pairs · f columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.evidence.learned_kernel import ComputedKernel, LearnedKernel
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_columns import Neighbours, PairColumns
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.pieces import Run, one_after_the_other
from wildtype.evidence.pooled_screens import pooled
from wildtype.evidence.screen_columns import ScreenColumns
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.memory import release_memory
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.grid import uniform
from wildtype.mutants.identity import gene_words, mixed_words
from wildtype.seeds import generator

BLOCK_GENES = 40
"""Mean number of genes of a block, about as many as a gene has neighbours."""

ROWS = 256
"""Strains whose crosses are hashed together: the hashes of all s² at once would take 24 bytes for each."""

POOLED = "pooled"
"""Name of the columns of all screens as one."""

Ints = NDArray[np.int64]
Kinds = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of perturbed genes: ``gene`` int64 [m, 2] and ``kind`` uint8 [m, 2]."""

    gene: Ints
    kind: Kinds

    def take(self, rows: Ints) -> Pairs:
        """Return the pairs at ``rows``."""
        return Pairs(self.gene[rows], self.kind[rows])

    def __len__(self) -> int:
        return len(self.gene)


class PairIndex:
    """Describes pairs by the visible crosses of a screen.

    Parameters
    ----------
    matrix : PairMatrix
        Every visible cross.
    similarity : GeneSimilarity
        Of the n genes.
    folds : int
        Of the visible crosses; a visible pair is answered without one of them.
    learned : LearnedKernel
        Its few weights are those of all visible crosses, whatever fold is left out.
    screens : sequence of OtherScreen
        Whatever fold is left out, too: a new pair may have been measured there.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.

    Attributes
    ----------
    names : tuple of str
        Of the f columns.
    """

    def __init__(
        self,
        matrix: PairMatrix,
        similarity: GeneSimilarity,
        folds: int,
        learned: LearnedKernel,
        screens: Sequence[OtherScreen] = (),
        run: Run = one_after_the_other,
    ) -> None:
        self.matrix, self.similarity, self.folds, self._run = matrix, similarity, folds, run
        self._words = mixed_words(gene_words(similarity.genes))
        self._screens = tuple(screens)
        genes = np.unique(np.concatenate([matrix.gene, *(screen.matrix.gene for screen in self._screens)]))
        self._kernel = ComputedKernel.of(learned, similarity, genes)
        self._neighbours = Neighbours.of(similarity, np.unique(matrix.gene), self._kernel)
        self._others = self._columns_of_screens(self._screens)
        self._near = self._neighbours.strains(matrix.gene)
        self._parts: dict[int, PairColumns] = {}
        self._shared: ScreenColumns | None = None
        self.names: tuple[str, ...] = ()

    def fold_of(self, pairs: Pairs) -> Ints:
        """Return the fold [m] of each pair that is visible, -1 of the others."""
        strain = self.matrix.find(pairs.gene, pairs.kind)
        visible = (strain >= 0).all(axis=1)
        out = np.full(len(pairs), -1, np.int64)
        out[visible] = self._folds[tuple(strain[visible].T)].astype(np.int64) - 1
        return out

    @cached_property
    def _folds(self) -> NDArray[np.uint8]:
        """1 + the fold of every visible cross [s, s], a matter of its genes; 0 for the other cells."""
        words, known = self._words[self.matrix.gene], self.matrix.known
        out = np.zeros(known.shape, np.uint8)
        for start in range(0, len(known), ROWS):
            rows = slice(start, start + ROWS)
            number = uniform(*np.broadcast_arrays(words[rows, None], words)) * self.folds
            np.copyto(out[rows], number.astype(np.uint8) + 1, where=known[rows])
        return out

    def columns(self, pairs: Pairs) -> tuple[Floats, Ints]:
        """Return the columns [m, f] of pairs, and how many of their genes have no visible cross [m]."""
        fold = self.fold_of(pairs)
        parts = [(self._part(int(number)), np.flatnonzero(fold == number)) for number in np.unique(fold)]
        out = np.empty((len(pairs), len(self.names) if parts else 0), np.float32)

        def work(i: int) -> None:
            part, rows = parts[i]
            asked = pairs.take(rows)
            out[rows] = part(asked.gene, asked.kind)

        # Few of the pairs of a screen's piece are of one fold: a part alone would occupy one thread.
        self._run(len(parts), work)
        return out, self._part(-1).unseen(pairs.gene, pairs.kind)

    def described(self, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return the columns [b, f] of mutants and the number of their unseen genes [b].

        Of a mutant that is no pair, columns are NaN and the number is -1.
        """
        rows = torch.nonzero(mutants.offsets.diff() == 2).reshape(-1)
        first = mutants.offsets[:-1][rows][:, None] + torch.arange(2)
        found, number = self.columns(Pairs(mutants.gene[first].numpy(), mutants.kind[first].numpy()))
        columns = torch.full((len(mutants), found.shape[1]), torch.nan)
        unseen = torch.full((len(mutants),), -1, dtype=torch.int64)
        columns[rows], unseen[rows] = torch.from_numpy(found), torch.from_numpy(number)
        return columns, unseen

    def _part(self, fold: int) -> PairColumns:
        if fold not in self._parts:
            matrix = self.matrix if fold < 0 else self._without_crosses(fold)
            # Of no fold, 0 is hidden: cells that are not known.
            part = self._columns_of(matrix, folds=(self._folds, fold + 1))
            if part.pooled is not None and len(part.pooled.matrix):
                self._share_completion(part.pooled, fold)
            self._parts[fold] = part
            del matrix
            release_memory()
        return self._parts[fold]

    def _share_completion(self, pooled: ScreenColumns, fold: int) -> None:
        """Keep one completed matrix for all folds, each of which is asked about its own crosses only."""
        shared = self._shared = self._shared or pooled
        # A screen that shares too few cells with what a fold sees is not in its matrix.
        if shared is pooled or not np.array_equal(shared.matrix.codes, pooled.matrix.codes):
            return
        of = np.zeros(1 + len(self.matrix), np.uint8)
        strain = self.matrix.find(pooled.matrix.gene, pooled.matrix.kind)
        for row, number in enumerate(strain):
            if number >= 0:
                of[:-1] = self._folds[number]  # the last is that of strains that only others have: none
                np.copyto(shared.completed[row], pooled.completed[row], where=of[strain] == fold + 1)
        pooled.completed = shared.completed

    def _columns_of_screens(self, screens: Sequence[OtherScreen]) -> tuple[ScreenColumns, ...]:
        return tuple(ScreenColumns(screen, self._kernel, run=self._run) for screen in screens)

    def _columns_of(
        self,
        matrix: PairMatrix,
        others: Sequence[ScreenColumns] | None = None,
        folds: tuple[NDArray[np.uint8], int] | None = None,
    ) -> PairColumns:
        others = self._others if others is None else others
        every = None
        if others:
            screen = OtherScreen(POOLED, pooled(matrix, [other.matrix for other in others]))
            every = ScreenColumns(screen, self._kernel, measured=False, run=self._run)
            del screen
            release_memory()  # what is made next is as large as what was freed
        # Crosses that are left out leave the strains as they are.
        near = self._near if matrix.gene is self.matrix.gene else None
        found = PairColumns(
            matrix, self.similarity, self._neighbours, others, every, near=near, folds=folds, run=self._run
        )
        self.names = found.names
        return found

    def _without_crosses(self, fold: int) -> PairMatrix:
        return self._seen((self._folds != 0) & (self._folds != fold + 1))

    def blocks(self, seed: int) -> Ints:
        """Return a block [n] of related genes for every gene: that of the most similar of some drawn genes.

        No label is read, but by the weights of the learned kernel.
        """
        near, rng = self._neighbours, generator(seed, "blocks of genes")
        centres = rng.choice(len(near.among), max(len(near.among) // BLOCK_GENES, 1), replace=False)
        alike = near.kernel.between(near.among[centres])
        alike /= np.sqrt(np.maximum(alike[near.among[centres], np.arange(len(centres))], 1e-12))
        # A gene that is like none of them goes anywhere.
        return np.where(
            alike.max(axis=1) > 0, alike.argmax(axis=1), rng.integers(len(centres), size=len(alike))
        )

    def out_of_fold(self, pairs: Pairs, seed: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield rows of visible pairs and their columns, without keeping what each fold is answered by.

        Half of the pairs of a grid, and all of a map, are described without a fold of crosses, the others
        without a fold of blocks: of all crosses between two blocks of related genes.
        """
        fold, rng = self.fold_of(pairs), generator(seed, "folds of pairs")
        block = self.blocks(seed)
        table = rng.integers(self.folds, size=(block.max() + 1,) * 2, dtype=np.uint8)
        table = np.triu(table) + np.triu(table, 1).T
        alone = rng.random(len(pairs)) < 0.5
        if not self.matrix.of_grid:
            # What a map lacks it lacks here and there: whole blocks unknown would be too hard a lesson.
            alone[:] = True
        for number in range(self.folds):
            rows = np.flatnonzero((fold == number) & alone)
            yield rows, self._described(self._without_crosses(number), pairs.take(rows))
        if alone.all():
            return
        strain_block = block[self.matrix.gene]
        for number in range(self.folds):
            hidden = table[block[pairs.gene[:, 0]], block[pairs.gene[:, 1]]] == number
            rows = np.flatnonzero((fold >= 0) & ~alone & hidden)
            cells = table[strain_block][:, strain_block] == number
            yield rows, self._described(self._seen(self.matrix.known & ~cells), pairs.take(rows))

    def _described(self, matrix: PairMatrix, asked: Pairs) -> Floats:
        return self._columns_of(matrix)(asked.gene, asked.kind)

    def _seen(self, known: NDArray[np.bool_]) -> PairMatrix:
        # What is not known is never read: a copy of the values without it would be as large as the screen.
        return replace(self.matrix, known=known)

    def with_unseen_genes(
        self, pairs: Pairs, folds: int, seed: int, share: NDArray[np.float64] | float, again: int = 0
    ) -> Iterator[tuple[Ints, Floats, Ints]]:
        """Yield rows of pairs, their columns, and the number of their genes that look unseen: 1 or 2.

        The genes of one of so many ``folds`` at a time are hidden with all their crosses. Pairs with both
        genes in it are all yielded, and those with one by chance, each with its probability ``share`` [m].
        Few pairs have both genes in one fold: of folds that are drawn ``again``, such pairs are yielded, too.
        A gene may be new to this screen alone or to all: every second fold hides it in the other screens.
        """
        rng = generator(seed, "gene folds of pairs")
        measured = np.unique(self.matrix.gene)
        for count, probability in ((folds, share), (again, 0.0)):
            fold = np.full(self.similarity.genes, -1, np.int64)
            fold[measured] = rng.permutation(np.arange(len(measured)) % max(count, 1))
            for number in range(count):
                hidden = (fold[pairs.gene] == number).sum(axis=1)
                drawn = rng.random(len(pairs)) < probability
                rows = np.flatnonzero((hidden == 2) | ((hidden == 1) & drawn))
                part = self.matrix.part(np.flatnonzero(fold[self.matrix.gene] != number))
                others = self._others
                if number % 2 and self._screens:
                    others = self._columns_of_screens(
                        [screen.without(fold == number) for screen in self._screens]
                    )
                asked = pairs.take(rows)
                yield rows, self._columns_of(part, others)(asked.gene, asked.kind), hidden[rows]
