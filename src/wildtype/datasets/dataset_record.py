"""`DatasetRecord`: a table of measured mutants of one organism and what its numbers mean.

Splits, folds and leakage reports work on this record; `Dataset` is built on them and offers them as methods.

Legend: m rows · n genes · r profiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import StageReport
from wildtype.errors import DatasetError, did_you_mean
from wildtype.files import content_hash
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import ScreenGrid
from wildtype.mutants.ragged import BLOCK, ragged_ranks
from wildtype.mutants.selection import CLASSES, Selection, empty_gap, gap_warning, sentence_of
from wildtype.organism import Organism

FORMS = ("scalar", "class", "gene")
"""What a measurement of a phenotype can be."""
OF_CROSS = ("", "effect", "negative", "positive", "listed")
"""What a label says about a cross of a screen that lists its significant crosses only."""


@dataclass(frozen=True)
class Phenotype:
    """What one column of numbers means.

    Attributes
    ----------
    name : str
        ``fitness``, ``epsilon``, ``tau``, …
    unit : str
        Unit of value and sd.
    source : str
        ``"study:phenotype"``; input features made from it are refused. Several are joined by ``" + "``.
    min_order : int
        Fewest perturbed genes for which the phenotype is defined (2 for epsilon, 3 for tau).
    strong : float
        Absolute value from which an interaction counts as strong (AUROC of strong interactions).
    strong_positive : float or None
        The same of positive values, where their threshold is another; None: it is ``strong``.
    description : str
        One line.
    form : str
        What a measurement is: a ``scalar``; a ``class``, 0 or 1, of which models give the probability; or one
        number per ``gene``, stored in the table's ``profiles``.
    group : str
        Name of the vector that a scalar or class belongs to (morphology, metabolome, 16 drugs), which models
        predict with a separate head; empty: none.
    of_cross : str
        What a label says about a cross of a screen (`mutants.grid.ScreenGrid`): empty, an ordinary label;
        ``effect``, the value of a listed cross, and 0 of a cross that was screened and not listed;
        ``negative`` or ``positive``, a class, 1 where the cross is listed with that sign and else 0;
        ``listed``, the value of listed crosses only. All but the first and ``effect`` have no stored rows.
    selection : Selection or None
        By which cut-offs the labels were listed; None where they were not selected or this is not known.
        Listed crosses within it count as not listed: not as ``negative`` or ``positive``, and not as rows of
        ``listed``.

    Raises
    ------
    DatasetError
        If the form or ``of_cross`` is not known, or they or form and group do not fit each other.
    """

    name: str
    unit: str = "relative to wild type = 1"
    source: str = ""
    min_order: int = 1
    strong: float = 0.08
    description: str = ""
    form: str = "scalar"
    group: str = ""
    of_cross: str = ""
    selection: Selection | None = None
    strong_positive: float | None = None

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Return the phenotype that ``to_json`` gave."""
        return cls(**{**record, "selection": Selection.from_json(record.get("selection"))})

    def __post_init__(self) -> None:
        if self.of_cross not in OF_CROSS:
            raise DatasetError(
                f"phenotype {self.name!r} has of_cross {self.of_cross!r}; known: {', '.join(OF_CROSS[1:])}, "
                f"or empty"
            )
        signed = self.of_cross in CLASSES
        if self.of_cross and (self.form == "class") != signed:
            raise DatasetError(
                f"phenotype {self.name!r} with of_cross {self.of_cross!r} must have form "
                f"{'class' if signed else 'scalar'!r}, not {self.form!r}"
            )
        if self.form not in FORMS:
            raise DatasetError(f"phenotype {self.name!r} has form {self.form!r}; known: {', '.join(FORMS)}")
        if self.form == "gene" and self.group:
            raise DatasetError(
                f"phenotype {self.name!r} has a number per gene and cannot be in group {self.group!r}: "
                f"leave the group out"
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """Every ``"study:phenotype"`` that numbers of this phenotype are from."""
        return tuple(part for part in self.source.split(" + ") if part)

    def listed(self, crosses: MutantTable) -> NDArray[np.bool_]:
        """Return which listed crosses [m] this phenotype counts as listed, by the value of the effect."""
        met = np.ones(len(crosses), bool)
        if self.selection is not None:
            met = self.selection.met(crosses.value, crosses.p)
        if self.of_cross in CLASSES:
            met &= crosses.value < 0 if self.of_cross == "negative" else crosses.value > 0
        return met

    def to_json(self) -> dict[str, Any]:
        """Return the phenotype in plain values, without the last three fields where they are empty.

        Records of datasets without a grid, a selection or a second threshold stay those of versions before
        there were any.
        """
        late = ("of_cross", "selection", "strong_positive")
        return {k: v for k, v in asdict(self).items() if v or k not in late}


@dataclass(frozen=True, eq=False)
class DatasetRecord:
    """Measured mutants of one organism.

    Attributes
    ----------
    name : str
        Name by which it is loaded.
    organism : Organism
        The wild type; the table's gene positions refer to ``organism.genes``.
    table : MutantTable
        One row per unordered gene set, kinds, condition and phenotype: duplicates are already merged.
    phenotypes : tuple of Phenotype
        ``table.phenotype`` refers to this order.
    conditions : tuple of str
        ``table.condition`` refers to this order; 0 is the reference.
    targets : tuple of str
        Names of the phenotypes that models predict by default.
    excluded : dict of str to int
        Rows of the source that are not in the table, by reason: every dropped row is counted.
    policies : dict of str to str
        Named choices and what they mean (how alleles are merged, how duplicates are).
    single_fitness, single_fitness_sd : float32 [n] or None
        Fitness of the single mutants from a screen of single mutants (NaN: not known): an input of baselines
        and of ``predict --as fitness``. ``single_fitness_source`` names its phenotype source.
    single_fitness_kind : uint8 [n] or None
        What was done to the gene in the mutant of that fitness (any kind where it is NaN); None: not known.
    noise : str
        Noise of the labels, as far as known, and its limits.
    notes : tuple of str
        Remarks (simulated, thresholded, may leak …).
    citation : str
        Where the measurements come from.
    stages : tuple of StageReport
        What every step from measurements to table did, in order; empty where the table was made otherwise.
    grid : ScreenGrid or None
        Where the table lists the significant crosses of a screen: all crosses that the screen measured. Every
        row is then one of them.
    provenance : dict of str to tuple of str
        The provenance groups of the dataset's studies, and all studies of each (`datasets.provenance`).
    """

    name: str
    organism: Organism
    table: MutantTable
    phenotypes: tuple[Phenotype, ...]
    conditions: tuple[str, ...] = ("reference",)
    targets: tuple[str, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    single_fitness: NDArray[np.float32] | None = None
    single_fitness_sd: NDArray[np.float32] | None = None
    single_fitness_source: str = ""
    single_fitness_kind: NDArray[np.uint8] | None = None
    noise: str = "no replicate measurements: no noise guide"
    notes: tuple[str, ...] = ()
    citation: str = ""
    stages: tuple[StageReport, ...] = ()
    grid: ScreenGrid | None = None
    provenance: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.table):
            raise DatasetError(f"dataset {self.name!r} has no rows: check the source files and the filters")
        if self.table.gene.size and self.table.gene.max() >= len(self.organism.genes):
            raise DatasetError(f"dataset {self.name!r} was built on another gene index than its organism's")
        t = self.table
        labelled = np.isfinite(t.value)
        if t.profile is not None and t.profiles is not None:
            labelled |= t.profile >= 0
            if t.profiles.shape[1] != len(self.organism.genes):
                raise DatasetError(
                    f"dataset {self.name!r} has profiles of {t.profiles.shape[1]:,} genes, expected "
                    f"{len(self.organism.genes):,}: build it again"
                )
        if not labelled.all():
            at = int(np.flatnonzero(~labelled)[0])
            raise DatasetError(
                f"dataset {self.name!r}: row {at} has a label that is not a number; drop or correct it"
            )
        self._check_forms()
        self._check_grid()
        names = [p.name for p in self.phenotypes]
        for target in self.targets:
            if target not in names:
                raise DatasetError(
                    f"dataset {self.name!r} has no phenotype {target!r}; it has {', '.join(names)}"
                )

    def _check_forms(self) -> None:
        """Refuse labels that are not of their phenotype's form; raises ``DatasetError``."""
        t = self.table
        for p, phenotype in enumerate(self.phenotypes):
            if phenotype.form == "scalar" and t.profile is None:
                continue
            rows = t.phenotype == p
            if t.profile is not None and ((t.profile[rows] >= 0) != (phenotype.form == "gene")).any():
                raise DatasetError(
                    f"dataset {self.name!r}: phenotype {phenotype.name!r} is a {phenotype.form}, and some of "
                    f"its rows {'have no profile' if phenotype.form == 'gene' else 'have a profile'}"
                )
            if phenotype.form == "class" and not np.isin(t.value[rows], (0, 1)).all():
                raise DatasetError(
                    f"dataset {self.name!r}: phenotype {phenotype.name!r} is a class, and some of its labels "
                    f"are neither 0 nor 1"
                )
            if phenotype.form == "gene" and t.profile is None and rows.any():
                raise DatasetError(
                    f"dataset {self.name!r}: phenotype {phenotype.name!r} has a number per gene, and the "
                    f"table has no profiles"
                )

    def _check_grid(self) -> None:
        """Refuse rows that are no cross of the grid; raises ``DatasetError`` naming the first."""
        if self.grid is None:
            return
        names = self.organism.genes.names
        if self.grid.genes != len(names):
            raise DatasetError(
                f"dataset {self.name!r} has a grid of {self.grid.genes:,} genes, expected {len(names):,}: "
                f"build it again"
            )
        measured = self.grid.measured(self.table)
        if not measured.all():
            at = int(np.flatnonzero(~measured)[0])
            mutant = ", ".join(names[g] for g in self.table.take([at]).gene)
            raise DatasetError(
                f"dataset {self.name!r}: row {at} ({mutant}) is no cross that the grid says was measured; "
                f"leave it out of the table or correct the grid"
            )

    def __len__(self) -> int:
        return len(self.table)

    def phenotype_index(self, name: str) -> int:
        """Return the position of a phenotype; raises ``DatasetError`` naming those there are."""
        names = [p.name for p in self.phenotypes]
        if name not in names:
            hint = did_you_mean(name, names, f"it has {', '.join(names)}")
            raise DatasetError(f"dataset {self.name!r} has no phenotype {name!r}; {hint}")
        return names.index(name)

    def first_target(self) -> tuple[int, Phenotype]:
        """Return the position and the record of the phenotype that another run is tested on, or looks at."""
        at = self.phenotype_index(self.targets[0]) if self.targets else 0
        return at, self.phenotypes[at]

    @cached_property
    def sha256(self) -> str:
        """Content hash over genes, table and phenotypes; the order of rows does not matter.

        A table without p-values, or of which none is known, has the hash that it had before tables held them;
        so has a dataset without a grid.
        """
        t = self.table
        # Absent p-values leave no trace, so that hashes from before tables held them stay valid.
        p = () if t.p is None or np.isnan(t.p).all() else (t.p,)
        if t.profile is not None and t.profiles is not None:
            # Number them by content, so that neither the order of profiles nor that of rows matters.
            has = t.profile >= 0
            kept, at = np.unique(t.profiles[t.profile[has]] + np.float32(0), axis=0, return_inverse=True)
            profile = np.full(len(t), -1, np.int64)
            profile[has] = at.reshape(-1)
            t = replace(t, profile=profile, profiles=kept)
        kinds = np.zeros(len(t), np.int64)  # one number per row; where it overflows, value and sd decide
        for block in t.blocks(BLOCK):
            row = np.repeat(np.arange(block.start, block.stop), t.order[block])
            at = np.arange(t.offsets[block.start], t.offsets[block.stop])
            np.add.at(kinds, row, t.kind[at].astype(np.int64) << (3 * (at - t.offsets[row]) % 63))
        doses = np.zeros(len(t), np.int64)
        if t.dose is not None:
            by_size = np.unique(t.dose, return_inverse=True)[1].reshape(-1)
            doses = ragged_ranks([by_size.astype(np.int64)], t.offsets)
        # Rows are hashed in an order that follows from their content alone, the gene set first.
        sets = ragged_ranks([t.gene], t.offsets)
        numbered = () if t.profile is None else (t.profile,)
        order = np.lexsort((*numbered, *p, doses, t.sd, t.value, kinds, t.condition, t.phenotype, sets))
        t = t.take(order)
        dose = np.zeros(0, np.float32) if t.dose is None else t.dose
        names = [p.name for p in self.phenotypes]
        return content_hash(
            self.organism.genes.sha256,
            names,
            list(self.conditions),
            t.gene,
            t.offsets,
            t.kind,
            t.condition,
            t.phenotype,
            t.value,
            t.sd,
            dose,
            *(column[order] for column in p),
            *(() if t.profiles is None else (t.profile, t.profiles)),
            *self._grid_parts(),
        )

    def _grid_parts(self) -> tuple[object, ...]:
        """Return what a grid adds to the content hash; nothing without one."""
        if self.grid is None:
            return ()
        # Cut-offs decide which rows a run gets of the stored ones.
        cuts = [asdict(p.selection) for p in self.phenotypes if p.of_cross and p.selection is not None]
        of_cross = [p.of_cross for p in self.phenotypes]
        return ("grid", of_cross, *([cuts] if cuts else []), *self.grid.to_arrays().values())

    def selection_remarks(self) -> list[str]:
        """Return a sentence per phenotype whose labels were selected for a list, or look as if they were."""
        remarks = []
        for p, phenotype in enumerate(self.phenotypes):
            if phenotype.selection is not None:
                sentence = sentence_of(phenotype.to_json())
                remarks += [sentence] if sentence else []
            elif phenotype.form == "scalar" and not phenotype.of_cross and self.grid is None:
                value = self.table.value[self.table.phenotype == p]
                gap = empty_gap(value, one_sided=phenotype.min_order > 1)
                remarks += [] if gap is None else [gap_warning(phenotype.name, gap)]
        return remarks

    def select(self, phenotypes: Sequence[str]) -> Self:
        """Return the dataset with the rows of these phenotypes only, renumbered in the order given."""
        old = [self.phenotype_index(name) for name in phenotypes]
        new = np.full(len(self.phenotypes), -1, np.int64)
        new[old] = np.arange(len(old))
        rows = np.flatnonzero(new[self.table.phenotype] >= 0)
        if not rows.size:
            raise DatasetError(f"dataset {self.name!r} has no rows of {', '.join(phenotypes)}")
        table = self.table.take(rows)
        table = replace(table, phenotype=new[table.phenotype])
        return replace(
            self, table=table, phenotypes=tuple(self.phenotypes[i] for i in old), targets=tuple(phenotypes)
        )

    def measured_genes(self) -> NDArray[np.int64]:
        """Return the positions of the genes that any row perturbs, or any strain of the grid, ascending."""
        measured = np.zeros(len(self.organism.genes), bool)
        measured[self.table.gene] = True
        if self.grid is not None:
            measured[self.grid.strains[0]] = True
        return np.flatnonzero(measured)

    def restrict_genes(self, positions: NDArray[np.int64]) -> Self:
        """Return the dataset on the organism restricted to ``positions``; every perturbed gene must be among
        them.
        """
        mapping = np.full(len(self.organism.genes), -1, np.int64)
        mapping[positions] = np.arange(len(positions))

        def pick(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[positions]

        return replace(
            self,
            organism=self.organism.restrict(positions),
            table=self.table.remap(mapping, len(positions)),
            single_fitness=pick(self.single_fitness),
            single_fitness_sd=pick(self.single_fitness_sd),
            single_fitness_kind=pick(self.single_fitness_kind),
            grid=None if self.grid is None else self.grid.remap(mapping, len(positions)),
        )
