"""`PredictionCore`: value and sd of every phenotype of any mutant, from a wild type that is encoded once.

Everything in this room that needs a prediction takes a core: tables for readers, screens, added genes. The
facade `wildtype.inference.predictor.Predictor` stands above all of them.

`ExtendedCore` can also be asked about genes that are no tokens of its model: those that a run did not encode,
and foreign ones. `Source` is where a core is loaded from.

Legend: n genes · a other genes · p phenotypes · m mutants · c candidates · k genes per mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, UnknownGeneError, did_you_mean, shown
from wildtype.evaluation.conformal import Conformal
from wildtype.evidence.reference import GIVEN
from wildtype.inference.own_evidence import with_evidence
from wildtype.inference.sets import GeneSets, WrongRows, default_kinds, names_of, to_table
from wildtype.inference.stated_columns import CONDITION
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.models.other_genes import OtherGenes
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.selection import selection_sentences
from wildtype.nn.threads import survive_forks

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.models.interface import WildType

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kinds = NDArray[np.uint8]
SetPrediction = Callable[[Ints], Floats]
"""Sets of candidates [m, k] to predictions [m, p]."""


class PredictionCore:
    """Predicts tables of mutants, and turns named genes into such tables.

    Parameters
    ----------
    checkpoint : Checkpoint
        A trained model with the measurements that were known when it was trained.
    source : Source, optional
        Where another process loads the same core from; None if the core was changed after loading.

    Attributes
    ----------
    genes : GeneIndex
        The n genes that the model knows.
    phenotypes : list of str
        Names of the p phenotypes.
    remarks : tuple of str
        What a reader of the predictions has to know: labels that were selected for a list, inputs that an
        organism lacks.
    """

    def __init__(self, checkpoint: Checkpoint, source: Source | None = None) -> None:
        self.checkpoint = checkpoint
        self.source = source
        self.genes = checkpoint.genes
        self.phenotypes = checkpoint.names
        self.remarks: tuple[str, ...] = tuple(self.selections.values())

    @property
    def selections(self) -> dict[str, str]:
        """What predictions mean of phenotypes whose labels were selected for a list, by phenotype."""
        return selection_sentences(self.checkpoint.phenotypes)

    @cached_property
    def _wild_type(self) -> WildType:
        # The encoder sees the organism only, never the mutants: one pass serves every later prediction.
        return self.checkpoint.encode()

    @cached_property
    def conformal(self) -> Conformal:
        """Prediction intervals, calibrated on the validation rows of the run."""
        return Conformal(self.checkpoint)

    @cached_property
    def kinds(self) -> Kinds:
        """Perturbation [n] assumed for each gene that is named without one; see ``default_kinds``."""
        known = self.checkpoint.known
        rows = known.table
        if known.grid is not None:
            # Strains, not listed crosses: which crosses are listed is unknown of those that are held out.
            gene, kind = known.grid.strains
            given = rows.take(known.part == GIVEN)
            rows = MutantTable.concatenate([MutantTable.from_matrix(gene[:, None], kind=kind), given])
        return default_kinds(rows, len(self.genes), known.essential)

    @cached_property
    def trained(self) -> MutantTable:
        """Rows that the model was trained on."""
        return self.checkpoint.known.rows("train")

    @property
    def dosed(self) -> bool:
        """Whether mutants that the model was trained on have doses."""
        if self.checkpoint.known.table.dose is None:
            return False
        # On another organism the rows of training are left out, and the column alone says that they had.
        dose = self.trained.dose
        return not len(self.trained) or (dose is not None and bool(np.isfinite(dose).any()))

    @cached_property
    def trained_doses(self) -> dict[Kind, tuple[float, float]]:
        """Lowest and highest dose of training rows, by kind; NaN where all of a kind lack one.

        Empty for a model without doses, and on another organism, where the rows of training are left out.
        """
        trained, found = self.trained, {}
        if trained.dose is not None and self.dosed:
            for kind in map(Kind, np.unique(trained.kind).tolist()):
                doses = trained.dose[trained.kind == kind]
                stated = doses[np.isfinite(doses)]
                found[kind] = (float(stated.min()), float(stated.max())) if len(stated) else (np.nan, np.nan)
        return found

    @property
    def metabolic(self) -> NDArray[np.bool_]:
        """Genes of the organism's metabolism [n]; raises ``ConfigError`` where there is none."""
        metabolic = self.checkpoint.known.metabolic
        if metabolic is None:
            raise ConfigError(
                f"no metabolism of {self.genes.organism} is known to this model: name the required genes, or "
                f"build the organism with its metabolic model and train again with this version"
            )
        return metabolic

    def condition(self, name: str | None) -> int:
        """Return the number of a condition; None is the reference. Raises ``ConfigError`` for others."""
        names = self.checkpoint.conditions
        if name is not None and name not in names:
            hint = did_you_mean(name, names, f"it knows {', '.join(names)}")
            raise ConfigError(f"the model knows no condition {name!r}; {hint}")
        return 0 if name is None else names.index(name)

    @property
    def encoded(self) -> PredictionCore:
        """The core that knows the tokens of the model alone."""
        return self

    def find(self, name: str) -> int:
        """Return the position of a gene given any of its names.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError
            As ``GeneIndex.find``, over all genes of the organism.
        ConfigError
            If it is a gene of the organism that the model cannot be asked about.
        """
        others = self.checkpoint.others
        try:
            return self.genes.find(name)
        except UnknownGeneError:
            if others is None:
                raise
        beyond = others.genes.label(others.genes.find(name))
        raise ConfigError(
            f"{beyond} is one of the {len(others.genes):,} genes of organism {self.genes.organism!r}, and "
            f"the model was given {len(self.genes):,} of them: {others.known_by}, so that it knows no other; "
            f"train with data.tokens=all"
        )

    def known_by(self, table: MutantTable) -> dict[int, str]:
        """Return a note on each row of a table with genes that are no tokens of the model, by row."""
        return {}

    def check_named(self, sets: GeneSets, wrong: WrongRows, *, condition: str | None = None) -> None:
        """Add the rows of a table that ``table`` would refuse to ``wrong``."""
        self._table(sets, condition, wrong)

    def named(
        self, sets: GeneSets, what: str = "row", *, empty: bool = False, condition: str | None = None
    ) -> MutantTable:
        """Return named sets without doses as a table of this model's genes; errors as `to_table`, and of
        ``find``.

        Rows that state another condition than ``condition`` (None: the reference) are refused.
        """
        number = self.condition(condition)

        def only(stated: str | None) -> int:
            if stated is not None and self.condition(stated) != number:
                raise ConfigError(
                    f"column {CONDITION!r} states {shown(stated)}, and the condition is "
                    f"{self.checkpoint.conditions[number]!r}: leave out the row, or ask for that condition"
                )
            return number

        return to_table(sets, self.genes, self.kinds, what=what, find=self.find, empty=empty, condition=only)

    def table(self, sets: GeneSets, *, condition: str | None = None) -> MutantTable:
        """Return named sets as a table of this model's genes; ``Predictor.predict`` lists the errors.

        A set without genes is the wild type. Rows of a table may state their kinds, doses and condition in
        columns; ``condition`` is that of all others.
        """
        return self._table(sets, condition)

    def _table(self, sets: GeneSets, condition: str | None, wrong: WrongRows | None = None) -> MutantTable:
        default = self.condition(condition)

        def number(stated: str | None) -> int:
            found = default if stated is None else self.condition(stated)
            if condition is not None and found != default:
                raise ConfigError(
                    f"column 'condition' states {shown(stated)}, and {condition!r} is requested: leave out "
                    f"one of them"
                )
            return found

        table = to_table(
            sets,
            self.genes,
            self.kinds,
            find=self.find,
            empty=True,
            wrong=wrong,
            condition=number,
            no_doses="" if self.dosed else "no mutant that the model was trained on has a dose",
        )
        return self.checkpoint.with_doses(table)

    def predict_with_sd(self, table: MutantTable) -> tuple[Floats, Floats]:
        """Return every phenotype, and its sd over ensemble members (NaN for a single model): [m, p] each."""
        return self.checkpoint.predict_with_sd(table, self._wild_type)

    def profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        """Return the per-gene values [m, n] of one phenotype, by its position."""
        return self.checkpoint.predict_profiles(table, phenotype, self._wild_type)

    def combinations(
        self, gene: Ints, kind: Kinds, order: int, condition: int = 0, device: str = "cpu"
    ) -> SetPrediction | None:
        """Return a faster prediction of many sets of few candidates, or None where the model offers none.

        Candidates are ``gene`` [c] perturbed by ``kind`` [c]. The values equal those of ``predict_with_sd``
        up to rounding, and are computed on ``device``.
        """
        return self.checkpoint.combinations(gene, kind, order, condition, self._wild_type, device)

    def with_evidence(self, frame: pd.DataFrame) -> PredictionCore:
        """Return a core that also looks up a user's measurements; errors as in `own_evidence`."""
        other = copy(self)
        # A copy shares the values of cached properties, and each of these depends on the measurements.
        for name in ("_wild_type", "conformal", "kinds", "trained", "trained_doses"):
            other.__dict__.pop(name, None)
        other.checkpoint = with_evidence(self.checkpoint, frame, self.kinds)
        other.source = None if self.source is None else self.source.and_evidence(frame)
        return other


class ExtendedCore(PredictionCore):
    """A core that can also be asked about genes that are no tokens of its base.

    Such a gene attends to the tokens and is attended to by none: it changes no token and no other such gene.
    A mutant that names none of them goes to the base, with equal bits.

    Parameters
    ----------
    base : PredictionCore
        Of the trained model.
    others : OtherGenes
        The genes of the base, and others behind them.
    foreign : bool
        Whether the others are no genes of the organism: they count as ``added`` where a mutant names them.
    remarks : sequence of str
        Further remarks.
    source : Source, optional
        Where another process loads the same core from.
    """

    def __init__(
        self,
        base: PredictionCore,
        others: OtherGenes,
        *,
        foreign: bool = False,
        remarks: Sequence[str] = (),
        source: Source | None = None,
    ) -> None:
        self.base, self.foreign, self.how = base, foreign, others.known_by
        super().__init__(replace(base.checkpoint, others=others).with_others(), source)
        self.remarks = (*base.remarks, *remarks)

    @property
    def encoded(self) -> PredictionCore:
        """The core that knows the tokens of the model alone."""
        return self.base.encoded

    @cached_property
    def kinds(self) -> Kinds:
        """Perturbation [n + a] assumed without a named one: as in the base; ``added`` for foreign genes."""
        rest = super().kinds[len(self.base.genes) :]
        return np.concatenate([self.base.kinds, np.full_like(rest, Kind.ADDED) if self.foreign else rest])

    def known_by(self, table: MutantTable) -> dict[int, str]:
        """Return a note on each row with genes that are no tokens of the model, by row."""
        if self.foreign:  # remarks name what is not known of these
            return self.base.known_by(table)
        first, names, notes = len(self.base.genes), self.genes.names, dict[int, str]()
        at = np.flatnonzero((table.gene >= first) & (table.gene < len(names)))
        for row in np.unique(table.row[at]).tolist():
            named = ", ".join(names[g] for g in table.gene[at[table.row[at] == row]])
            notes[row] = f"not measured, known by {self.how}: {named}"
        return notes

    def with_evidence(self, frame: pd.DataFrame) -> ExtendedCore:
        """Return a core that also looks up a user's measurements.

        Measurements of mutants with an appended gene are evidence only for mutants that carry one; all others
        are evidence for every mutant.
        """
        other = super().with_evidence(frame)
        assert isinstance(other, ExtendedCore)
        native = ~self._carries(self.table([names_of(genes) for genes in frame["genes"]]))
        if native.any():
            # The base has no token for an appended gene, so it cannot look such a row up.
            other.base = self.base.with_evidence(frame[native].reset_index(drop=True))
        return other

    def predict_with_sd(self, table: MutantTable) -> tuple[Floats, Floats]:
        """Return every phenotype and its sd [m, p]; mutants without an appended gene go to the base."""
        carries = self._carries(table)
        out, sd = (np.empty((len(table), len(self.phenotypes))) for _ in range(2))
        for rows, predict in ((carries, super().predict_with_sd), (~carries, self.base.predict_with_sd)):
            if rows.any():
                out[rows], sd[rows] = predict(table.take(np.flatnonzero(rows)))
        return out, sd

    def profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        """Return per-gene values [m, n + a]; NaN at appended genes that a mutant does not carry."""
        carries = self._carries(table)
        out = np.full((len(table), len(self.genes)), np.nan, np.float32)
        for rows, predict in ((carries, super().profiles), (~carries, self.base.profiles)):
            if rows.any():
                found = predict(table.take(np.flatnonzero(rows)), phenotype)
                out[np.flatnonzero(rows), : found.shape[1]] = found
        return out

    def combinations(
        self, gene: Ints, kind: Kinds, order: int, condition: int = 0, device: str = "cpu"
    ) -> SetPrediction | None:
        """Return a faster prediction of sets, in which those without another gene are the base's; or None."""
        inside, how = gene < len(self.base.genes), (order, condition, device)
        own = self.base.combinations(gene[inside], kind[inside], *how) if inside.any() else None
        if inside.all():
            return own
        wider = super().combinations(gene, kind, *how)
        if wider is None or (own is None and inside.any()):
            return None
        place = np.cumsum(inside) - 1  # a member's number among those of the base

        def predict(sets: Ints) -> Floats:
            of_base = inside[sets].all(1)
            out = np.empty((len(sets), len(self.phenotypes)))
            if own is not None and of_base.any():
                out[of_base] = own(place[sets[of_base]])
            if not of_base.all():
                out[~of_base] = wider(sets[~of_base])
            return out

        return predict

    def _carries(self, table: MutantTable) -> NDArray[np.bool_]:
        """Return which mutants name an appended gene."""
        first = len(self.base.genes)
        return np.asarray(np.bincount(table.row, weights=table.gene >= first, minlength=len(table)) > 0)


def core_of(checkpoint: Checkpoint, source: Source | None = None) -> PredictionCore:
    """Return the core of a checkpoint, over all genes of the organism that the model can be asked about."""
    core = PredictionCore(checkpoint, source)
    others = checkpoint.others
    return core if others is None or others.organism is None else ExtendedCore(core, others, source=source)


@dataclass(frozen=True, eq=False)
class Source:
    """Where a core comes from: a run or checkpoint directory, and the user's measurements added to it."""

    path: Path
    evidence: tuple[pd.DataFrame, ...] = ()

    def and_evidence(self, frame: pd.DataFrame) -> Source:
        """Return the source with further measurements."""
        return Source(self.path, (*self.evidence, frame))

    def load(self) -> PredictionCore:
        """Return the core; raises ``CheckpointError`` as ``load_checkpoint`` does."""
        survive_forks()
        core = core_of(load_checkpoint(self.path), Source(self.path))
        for frame in self.evidence:
            core = core.with_evidence(frame)
        return core
