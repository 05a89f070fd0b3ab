"""`EnsembleMember`: one of the models explained together; `OverModels`: one number over all of them.

Runs of different seeds and members of one ensemble count alike. A finding on which they agree is a property
of the data and the architecture rather than of a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from wildtype.errors import ConfigError
from wildtype.inference.predictor import Predictor
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import Ensemble
from wildtype.models.ensemble import members_of as parts_of
from wildtype.models.explainable import ExplainableModel
from wildtype.models.interface import Model, WildType
from wildtype.models.registry import MODELS
from wildtype.organism import Organism
from wildtype.seeds import derive

UNTRAINED = "untrained"


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened run to explain.

    Attributes
    ----------
    path : str
        Its directory.
    predictor : Predictor
        Predictor of the run.
    organism : Organism or None
        Its training organism, with the graphs of its priors, on the model's tokens; None if it is not
        available.
    remarks : tuple of str
        Reason why there is none, and other remarks.
    """

    path: str
    predictor: Predictor
    organism: Organism | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EnsembleMember:
    """One trained model.

    Attributes
    ----------
    label : str
        Its number, and ``run.member`` where a run has several.
    run : Opened
        Its run.
    model : Model
        In evaluation mode.
    wild_type : WildType
        Wild type as encoded by the model.
    expert : str or None
        Mutants that it is an expert for, in ensembles of experts.
    """

    label: str
    run: Opened
    model: Model
    wild_type: WildType
    expert: str | None = None

    @property
    def attentive(self) -> ExplainableModel:
        """The model, whose attention and parts are explained; raises ``ConfigError`` if it has none."""
        if not isinstance(self.model, ExplainableModel):
            raise ConfigError(
                f"{self.run.path!r} is a {self.model.config.name}, which has no attention to explain"
            )
        return self.model

    @property
    def checkpoint(self) -> Checkpoint:
        """Checkpoint of its run."""
        return self.run.predictor.checkpoint


@torch.no_grad()
def members_of(runs: Sequence[Opened]) -> list[EnsembleMember]:
    """Return all models of some runs, in order.

    Raises
    ------
    ConfigError
        If there is no run, a run has another kind of model, or runs differ in more than their seeds.
    """
    if not runs:
        raise ConfigError("there is nothing to explain: name at least one run")
    out = []
    for number, run in enumerate(runs, 1):
        whole = run.predictor.checkpoint.model
        parts = parts_of(whole)
        experts = whole.experts if isinstance(whole, Ensemble) else []
        for i, model in enumerate(parts):
            if type(model).latents is Model.latents:
                able = ", ".join(name for name in MODELS if MODELS[name].gradients)
                raise ConfigError(
                    f"{run.path!r} is a {model.config.name}, which has no latents and is not explained: give "
                    f"runs of {able}"
                )
            label = f"{number}.{i + 1}" if len(parts) > 1 else str(number)
            wild_type = model.eval().encode(run.predictor.checkpoint.organism)
            out.append(EnsembleMember(label, run, model, wild_type, experts[i] if experts else None))
    for other in runs[1:]:
        _check_alike(runs[0], other)
    return out


@torch.no_grad()
def untrained(member: EnsembleMember, seed: int) -> EnsembleMember:
    """Return a model like a member's with fresh weights, which shows the effect of the inputs alone."""
    checkpoint = member.checkpoint
    # The global generator is restored afterwards: explaining a run must not change what is drawn next.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "untrained"))
        model = checkpoint.untrained().eval()
    return replace(member, label=UNTRAINED, model=model, wild_type=model.encode(checkpoint.organism))


def _check_alike(one: Opened, other: Opened) -> None:
    """Raise ``ConfigError`` for two runs that differ in more than their seeds."""
    a, b = one.predictor.checkpoint, other.predictor.checkpoint
    first, second = a.model.config, b.model.config
    for what, same in (
        ("genes", a.genes == b.genes),
        ("phenotypes", a.names == b.names),
        ("relations", a.relations == b.relations),
        ("conditions", a.conditions == b.conditions),
        ("settings of the model", first == second),
    ):
        if not same:
            raise ConfigError(
                f"{other.path!r} and {one.path!r} have other {what}: only runs of one model that differ in "
                f"their seeds can agree or not; explain them one by one"
            )


@dataclass(frozen=True)
class OverModels:
    """One number over several trained models.

    Attributes
    ----------
    mean, sd : float
        Over the models that have the number (sd with n - 1; NaN for one model, whose agreement is unknown).
    each : tuple of float
        Of every model, in order; NaN where a model has none.
    """

    mean: float
    sd: float
    each: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> OverModels:
        """Return mean, sd and all of one value per model."""
        each = tuple(float(value) for value in values)
        # A model may lack a claim (a relation that it was not trained with): it has no part in mean and sd.
        there = [value for value in each if not math.isnan(value)]
        mean = float(np.mean(there)) if there else math.nan
        sd = float(np.std(there, ddof=1)) if len(there) > 1 else math.nan
        return cls(mean, sd, each)


def rank_agreement(values: Sequence[NDArray[np.float64]]) -> float:
    """Return the mean Spearman correlation over pairs of models; NaN for one model, or constant values."""
    found = [
        float(stats.spearmanr(one, two).statistic)
        for one, two in combinations(values, 2)
        if np.ptp(one) > 0 and np.ptp(two) > 0
    ]
    return float(np.mean(found)) if found else math.nan
