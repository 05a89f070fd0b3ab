"""`RunFacts`: the contents of the page of a run, as plain numbers, tables and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wildtype.evaluation.calibration import Coverage
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.predicted_rows import PredictedRows
from wildtype.evaluation.reliability import ReliabilityBin
from wildtype.evaluation.training_record import LearningCurves, Sides
from wildtype.organism import GeneIndex

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class UnmeasuredPredictions:
    """Predictions of mutants without a measurement.

    Attributes
    ----------
    what : str
        Which mutants were predicted, in one sentence.
    frame : DataFrame or None
        As ``Predictor.screen`` returns it; None where nothing was predicted.
    """

    what: str
    frame: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class RunFacts:
    """The contents of the page of one run; for parts that are None or empty, ``missing`` has the reason.

    Attributes
    ----------
    name, model : str
        Names of the run directory and of the run's model.
    tables, others : sequences of Comparison
        Those to show in full, and those to show in one line each.
    ceilings : mapping of str to float
        Noise ceiling by phenotype, NaN where there is none.
    tested : sequence of PredictedRows
        Test rows of the phenotypes to draw.
    undrawn : int
        Further phenotypes, which are not drawn.
    coverage, learning, profile
        Of intervals, of training, of its steps.
    genes : GeneIndex
        For names.
    essential : frozenset of str
        Systematic names of essential genes.
    unmeasured : sequence of UnmeasuredPredictions
        Predictions not yet measured, by phenotype.
    explained : mapping or None
        What ``wildtype explain`` found.
    sides : Sides or None
        What the sides of the split share.
    settings, record, card, split, fit
        As the run folder holds them.
    missing : mapping of str to str
        By section: why it is not there.
    reliability : sequence of ReliabilityBin
        Of probabilities, for phenotypes that are calls.
    """

    name: str
    model: str
    tables: Sequence[Comparison]
    others: Sequence[Comparison]
    ceilings: Mapping[str, float]
    tested: Sequence[PredictedRows]
    undrawn: int
    coverage: Sequence[Coverage]
    learning: LearningCurves | None
    profile: Mapping[str, Any]
    genes: GeneIndex
    essential: frozenset[str]
    unmeasured: Sequence[UnmeasuredPredictions]
    explained: Mapping[str, Any] | None
    sides: Sides | None
    settings: Mapping[str, Any]
    record: Mapping[str, Any]
    card: Mapping[str, Any]
    split: Mapping[str, Any]
    fit: Mapping[str, Any]
    missing: Mapping[str, str] = field(default_factory=dict)
    reliability: Sequence[ReliabilityBin] = ()
