"""`Member`: one trained model among those that are explained together.

Seeds of one model and members of one ensemble count alike: each is a model that could have been the only
one, and what they agree on is what can be claimed of the data rather than of a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from wildtype.errors import ConfigError
from wildtype.inference.predictor import Predictor
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import Ensemble
from wildtype.models.ensemble import members_of as parts_of
from wildtype.models.explainable import ExplainableModel
from wildtype.models.interface import WildType
from wildtype.models.registry import DEFAULT_MODEL
from wildtype.organism import Organism
from wildtype.seeds import derive

UNTRAINED = "untrained"


@dataclass(frozen=True, eq=False)
class Opened:
    """A run to explain.

    Attributes
    ----------
    path : str
        Its folder.
    predictor : Predictor
        Its model.
    organism : Organism or None
        The one it was trained on, with the gene graphs that its heads followed, on its genes; None: not at
        hand.
    remarks : tuple of str
        Why there is none, or what else to know of it.
    """

    path: str
    predictor: Predictor
    organism: Organism | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Member:
    """One model.

    Attributes
    ----------
    label : str
        Its number, and ``run.member`` where a run has several.
    run : Opened
        Where it comes from.
    model : ExplainableModel
        In evaluation mode.
    wild_type : WildType
        As it encodes it.
    expert : str or None
        What mutants it is an expert of, where members are.
    """

    label: str
    run: Opened
    model: ExplainableModel
    wild_type: WildType
    expert: str | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """Of its run."""
        return self.run.predictor.checkpoint


@torch.no_grad()
def members_of(runs: Sequence[Opened]) -> list[Member]:
    """Return all models of some runs, in order.

    Raises
    ------
    ConfigError
        If there is no run, a run is of another kind of model, or they differ in more than their seeds.
    """
    if not runs:
        raise ConfigError("there is nothing to explain: name at least one run")
    out = []
    for number, run in enumerate(runs, 1):
        whole = run.predictor.checkpoint.model
        parts = parts_of(whole)
        experts = whole.experts if isinstance(whole, Ensemble) else []
        for i, model in enumerate(parts):
            if not isinstance(model, ExplainableModel):
                raise ConfigError(
                    f"{run.path!r} is a {model.config.name}, whose attention and latents are not explained: "
                    f"give runs of {DEFAULT_MODEL}"
                )
            label = f"{number}.{i + 1}" if len(parts) > 1 else str(number)
            wild_type = model.eval().encode(run.predictor.checkpoint.organism)
            out.append(Member(label, run, model, wild_type, experts[i] if experts else None))
    for other in runs[1:]:
        _check_alike(runs[0], other)
    return out


@torch.no_grad()
def untrained(member: Member, seed: int) -> Member:
    """Return a model like a member's with weights drawn anew: what its inputs alone make of it."""
    checkpoint = member.checkpoint
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "untrained"))
        model = checkpoint.untrained().eval()
    assert isinstance(model, ExplainableModel)
    return replace(member, label=UNTRAINED, model=model, wild_type=model.encode(checkpoint.organism))


def _check_alike(one: Opened, other: Opened) -> None:
    """Refuse two runs that are not of one model; raises ``ConfigError``."""
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
