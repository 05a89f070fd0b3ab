"""`ReferenceMeasurements`: what was measured when a model was trained, and the part of it that is evidence.

Legend: M rows · n genes · p outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.grid import CrossSides, ScreenGrid, VisibleCrosses
from wildtype.mutants.identity import mean_of_mutants
from wildtype.organism import Coordinates

PARTS = ("train", "validation", "test", "unused", "given", "hidden")
"""Part of the split of a row; or not used; added by a user after training; not used, with held-out genes."""
TRAIN, UNUSED, GIVEN = (PARTS.index(name) for name in ("train", "unused", "given"))
UNKNOWN_KIND = 255
LETHAL = 0.1
"""Fitness below which a mutant counts as inviable."""


def check_also(also: Sequence[str], phenotypes: Sequence[str]) -> None:
    """Refuse evidence of unknown phenotypes: raises ``ConfigError``."""
    for name in also:
        if name not in phenotypes:
            raise ConfigError(
                f"model.evidence.also names {name!r}; known phenotypes: {', '.join(phenotypes)}"
            )


@dataclass(frozen=True, eq=False)
class ReferenceMeasurements:
    """What was measured when the model was trained.

    Attributes
    ----------
    phenotypes : tuple of str
        Names of all phenotypes of the dataset; ``table.phenotype`` refers to this order, which need not be
        the order of the model's outputs.
    table : MutantTable
        Measured mutants, all phenotypes of the dataset.
    part : uint8 [M]
        Position in ``PARTS`` of each row.
    single_fitness, single_fitness_sd : float32 [n]
        Fitness of single mutants (NaN: not known).
    essential : bool [n]
        Genes whose deletion is lethal, where known.
    coordinates : Coordinates or None
        Where the genes lie on the chromosomes; None where that is not known.
    metabolic : bool [n] or None
        Genes that rules of the metabolism name; None where that is not known.
    dubious : bool [n] or None
        Open reading frames that are unlikely to encode a protein; None where that is not known.
    grid : ScreenGrid or None
        Crosses that the screen measured whose listed ones are in the table; hidden ones are unknown.
    sides : CrossSides or None
        The side of the run's split of every cross; with a grid.
    effect : str
        The phenotype whose rows are the listed crosses; with a grid.
    sampled : MutantTable or None
        Validation and test rows of a run on a grid: listed crosses, and unlisted ones as effect 0. They are
        what a model is calibrated and scored on, and never evidence.
    sampled_part : uint8 [s] or None
        Position in ``PARTS`` of each of them.
    screens : tuple of OtherScreen
        What other screens measured of pairs, as far as it may be seen.
    single_fitness_kind : uint8 [n] or None
        What was done to the gene in the mutant of ``single_fitness``; `UNKNOWN_KIND`, or None for all: not
        known.
    """

    phenotypes: tuple[str, ...]
    table: MutantTable
    part: NDArray[np.uint8]
    single_fitness: NDArray[np.float32]
    single_fitness_sd: NDArray[np.float32]
    essential: NDArray[np.bool_]
    coordinates: Coordinates | None = None
    metabolic: NDArray[np.bool_] | None = None
    dubious: NDArray[np.bool_] | None = None
    grid: ScreenGrid | None = None
    sides: CrossSides | None = None
    effect: str = ""
    sampled: MutantTable | None = None
    sampled_part: NDArray[np.uint8] | None = None
    screens: tuple[OtherScreen, ...] = ()
    single_fitness_kind: NDArray[np.uint8] | None = None

    def rows(self, part: str) -> MutantTable:
        """Return the rows of a part; of validation and test with the unlisted crosses that were drawn."""
        if self.sampled is not None and self.sampled_part is not None and part != "train":
            return self.sampled.take(self.sampled_part == PARTS.index(part))
        return self._train if part == "train" else self.table.take(self.part == PARTS.index(part))

    @cached_property
    def _train(self) -> MutantTable:
        # Most rows of a screen with a score for every cross: one copy for all who ask.
        return self.table.take(self.part == TRAIN)

    def crosses(self) -> VisibleCrosses | None:
        """Return what may be known of the crosses of the grid: those of training; None without a grid."""
        return self._crosses

    @cached_property
    def _crosses(self) -> VisibleCrosses | None:
        if self.grid is None or self.sides is None:
            return None
        train = self.rows("train")
        listed = train.phenotype == self.phenotypes.index(self.effect)
        return VisibleCrosses(self.grid, self.sides, train if listed.all() else train.take(listed))

    def seen_genes(self) -> NDArray[np.bool_]:
        """Return which genes [n] any training row has, or any training cross of the grid, listed or not."""
        seen = np.zeros(len(self.essential), bool)
        seen[self.rows("train").gene] = True
        if (crosses := self.crosses()) is not None:
            seen[crosses.grid.strains[0][crosses.visible().any(1)]] = True
        return seen

    def unseen(self, table: MutantTable) -> NDArray[np.int64]:
        """Return how many genes of each row [m] are not `seen_genes`."""
        return np.bincount(table.row, ~self.seen_genes()[table.gene], len(table)).astype(np.int64)

    @cached_property
    def deleted(self) -> NDArray[np.int64]:
        """Measured mutants [n] that live without each gene, held-out rows not counted."""
        table, n = self.table, len(self.essential)
        alive = np.isfinite(table.value)
        if table.profile is not None:
            alive |= table.profile >= 0
        if "fitness" in self.phenotypes:
            alive &= ~((table.phenotype == self.phenotypes.index("fitness")) & (table.value < LETHAL))
        # Held-out rows stay unknown: that they exist must not change a prediction. So do crosses of a grid
        # that are on no side of the split.
        unused = self.part == UNUSED
        if self.grid is not None:
            unused &= table.phenotype != self.phenotypes.index(self.effect)
        alive &= np.isin(self.part, (TRAIN, GIVEN)) | unused
        gene = table.gene[(table.kind == Kind.ABSENT) & alive[table.row]]
        # A simulated strain has an epsilon also where its deletion does not grow.
        return np.asarray(np.where(self.single_fitness < LETHAL, 0, np.bincount(gene, minlength=n)))

    @cached_property
    def lethal(self) -> NDArray[np.bool_]:
        """Genes whose deletion is lethal [n]: essential ones of which no deletion was measured alive."""
        return np.asarray(self.essential & (self.deleted == 0))

    @cached_property
    def seen_kinds(self) -> NDArray[np.bool_]:
        """Kinds of perturbation [kinds] that any training row has, or any training cross."""
        train, seen = self.rows("train"), np.zeros(len(Kind), bool)
        # On another organism the rows of training are left out, and nothing is known of their kinds.
        seen[train.kind if len(train) else slice(None)] = True
        if (crosses := self.crosses()) is not None:
            seen[crosses.grid.strains[1][crosses.visible().any(1)]] = True
        return seen

    @cached_property
    def _single_kind(self) -> NDArray[np.uint8]:
        """The kind of mutant [n] whose fitness ``single_fitness`` is: a deletion goes before reduced alleles.

        Where the number came without its kind, that follows from the mutants that were measured.
        """
        # Held-out rows count, too: the number is known whatever side of a split they are on.
        deleted, reduced = self.deleted > 0, self.essential.copy()
        deleted[self.table.gene[(self.table.kind == Kind.ABSENT) & ~self.essential[self.table.gene]]] = True
        reduced[self.table.gene[self.table.kind == Kind.REDUCED]] = True
        if self.grid is not None:
            gene, kind = self.grid.strains
            deleted[gene[kind == Kind.ABSENT]] = True
            reduced[gene[kind == Kind.REDUCED]] = True
        lives = ~(self.single_fitness < LETHAL)  # the fitness of a lethal deletion is no knock-down's
        inferred = np.where(reduced & ~deleted & lives, Kind.REDUCED, Kind.ABSENT).astype(np.uint8)
        if (stated := self.single_fitness_kind) is None:
            return inferred
        return np.where(stated == UNKNOWN_KIND, inferred, stated)

    @cached_property
    def _measured_singles(self) -> MutantTable:
        """Rows of the phenotype ``fitness`` that are single mutants."""
        of_fitness = np.array([name == "fitness" for name in self.phenotypes], bool)
        return self.table.take(np.flatnonzero((self.table.order == 1) & of_fitness[self.table.phenotype]))

    def single_fitness_of(self, table: MutantTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the fitness [Σk] of every perturbation of a table alone, and its sd, in its row's condition.

        It is that of the same kind of perturbation: ``single_fitness`` is of deletions (of knock-downs for
        genes that were not deleted) in the reference condition. What it lacks comes from rows of the
        phenotype ``fitness``. NaN where neither knows it.
        """
        gene, condition = table.gene, table.condition[table.row]
        listed = (condition == 0) & (table.kind == self._single_kind[gene])
        value, sd = (
            np.where(listed, x[gene].astype(np.float64), np.nan)
            for x in (self.single_fitness, self.single_fitness_sd)
        )
        singles = self._measured_singles
        has_rows = np.zeros(len(self.essential), bool)
        has_rows[singles.gene] = True
        at = np.flatnonzero(np.isnan(value) & has_rows[gene])
        alone = MutantTable.build(
            gene[at],
            np.arange(len(at) + 1),
            kind=table.kind[at],
            condition=condition[at],
            dose=None if table.dose is None else table.dose[at],
        )
        value[at], sd[at] = mean_of_mutants(singles, alone)
        return value, sd

    def pair_matrix(self, name: str) -> PairMatrix:
        """Return what may be seen of pairs of genes: training crosses, listed or not, and a user's pairs.

        Of a dataset without a grid, the training rows of the phenotype ``name`` that are pairs.
        """
        phenotype, crosses = self.phenotypes.index(self.effect or name), self.crosses()
        # The crosses hold the training rows, of which there may be millions: each would count twice.
        seen = self.part == GIVEN if crosses is not None else np.isin(self.part, (TRAIN, GIVEN))
        seen &= (self.table.phenotype == phenotype) & (self.table.order == 2) & np.isfinite(self.table.value)
        return PairMatrix.of(self.table.take(seen), crosses)

    def evidence(
        self, outputs: Sequence[str], also: Sequence[str], mean: NDArray[np.float64], sd: NDArray[np.float64]
    ) -> MutantTable:
        """Return what may be looked up: training rows of the outputs, and rows of further phenotypes.

        Rows of ``also`` with the gene set of a validation or test row are left out: no measurement of a
        held-out mutant is evidence. Phenotypes are renumbered, outputs first. Values become
        (y - `zero_of_evidence`) / sd.

        Raises
        ------
        ConfigError
            If a phenotype is unknown.
        """
        check_also(also, self.phenotypes)
        names = [*outputs, *(name for name in also if name not in outputs)]
        number = np.full(len(self.phenotypes), -1, np.int64)
        number[[self.phenotypes.index(name) for name in names]] = np.arange(len(names))
        phenotype = number[self.table.phenotype]
        seen = (self.part == TRAIN) | (self.part == GIVEN)
        # Fitness of a held-out pair would tell its interaction: its gene set is held out in every phenotype.
        held = np.unique(self.table.set_id[~seen & (self.part != UNUSED)])
        free = (self.part == UNUSED) & (phenotype >= len(outputs)) & ~np.isin(self.table.set_id, held)
        rows = np.flatnonzero((phenotype >= 0) & (seen | free) & np.isfinite(self.table.value))
        table = self.table.take(rows)
        phenotype, value = phenotype[rows], table.value.astype(np.float64)
        for p in range(len(names)):
            own = phenotype == p
            # A user's measurements do not enter the scale: the network was trained on that of training.
            trained = value[own & (self.part[rows] != GIVEN)]
            centre, scale = (mean[p], sd[p]) if p < len(outputs) else _mean_and_sd(trained)
            value[own] = (value[own] - zero_of_evidence(centre, scale)) / scale
        return replace(table, phenotype=phenotype, value=value.astype(np.float32))


def zero_of_evidence(mean: float, sd: float) -> float:
    """Return the value that counts as no effect, of a phenotype with labels of this mean and sd.

    Interactions scatter around 0, which means "as expected", and keep it; other labels are taken from their
    mean.
    """
    return float(mean) if abs(mean) > 2 * abs(sd) else 0.0


def _mean_and_sd(values: NDArray[np.float64]) -> tuple[float, float]:
    return (float(values.mean()), float(values.std()) or 1.0) if values.size else (0.0, 1.0)
