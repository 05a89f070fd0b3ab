"""`PredictionCore`: value and sd of every phenotype of any mutant, from a wild type that is encoded once.

Everything in this room that needs a prediction takes a core: tables for readers, screens, added genes. The
facade `wildtype.inference.predictor.Predictor` stands above all of them.

Legend: n genes · p phenotypes · m mutants · c candidates · k genes per mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.evaluation.conformal import Conformal
from wildtype.evidence.reference import GIVEN, PARTS
from wildtype.inference.own_evidence import with_evidence
from wildtype.inference.sets import default_kinds, to_table
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.mutants import MutantTable
from wildtype.mutants.selection import selection_sentences

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
        known = self.checkpoint.known
        return known.table.take(known.part == PARTS.index("train"))

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
            raise ConfigError(f"the model knows no condition {name!r}; it knows {', '.join(names)}")
        return 0 if name is None else names.index(name)

    def table(self, sets: Sequence[Sequence[str]], *, condition: str | None = None) -> MutantTable:
        """Return named sets as a table of this model's genes; ``Predictor.predict`` lists the errors."""
        table = to_table(sets, self.genes, self.kinds)
        table.condition[:] = self.condition(condition)
        return table

    def predict_with_sd(self, table: MutantTable) -> tuple[Floats, Floats]:
        """Return every phenotype, and its sd over ensemble members (NaN for a single model): [m, p] each."""
        return self.checkpoint.predict_with_sd(table, self._wild_type)

    def profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        """Return the per-gene values [m, n] of one phenotype, by its position."""
        return self.checkpoint.predict_profiles(table, phenotype, self._wild_type)

    def combinations(self, gene: Ints, kind: Kinds, order: int, condition: int = 0) -> SetPrediction | None:
        """Return a faster prediction of many sets of few candidates, or None where the model offers none.

        Candidates are ``gene`` [c] perturbed by ``kind`` [c]. The values equal those of ``predict_with_sd``
        up to rounding.
        """
        return self.checkpoint.combinations(gene, kind, order, condition, self._wild_type)

    def with_evidence(self, frame: pd.DataFrame) -> PredictionCore:
        """Return a core that also looks up a user's measurements; errors as in `own_evidence`."""
        other = copy(self)
        # A copy shares the values of cached properties, and each of these depends on the measurements.
        for name in ("_wild_type", "conformal", "kinds", "trained"):
            other.__dict__.pop(name, None)
        other.checkpoint = with_evidence(self.checkpoint, frame, self.kinds)
        other.source = None if self.source is None else self.source.and_evidence(frame)
        return other


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
        core = PredictionCore(load_checkpoint(self.path), Source(self.path))
        for frame in self.evidence:
            core = core.with_evidence(frame)
        return core
