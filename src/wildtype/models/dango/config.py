"""Settings of DANGO, and the published weights of its networks' zeros."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from wildtype.errors import ConfigError
from wildtype.settings import setting

ZEROS = {
    "coexpression": 0.1,
    "experimental": 0.1,
    "database": 1.0,
    "neighborhood": 1.0,
    "fusion": 1.0,
    "cooccurence": 1.0,
}
"""Weight λ of a pair without an edge, by channel of STRING.

The published rule: channels in which more than 1 % of the pairs without an edge in version 9.1 got one in a
later version have many missing edges, and their zeros weigh 0.1; those of the others weigh 1. These are the
values in the authors' released code. A later re-implementation also gives 0.1 to neighborhood; the setting
``zeros`` does that.
"""
SCHEDULES: dict[str, Callable[[float], float]] = {
    "pre_then_post": lambda progress: 1.0 if progress < 1 else 0.0,
    "linear_until_uniform": lambda progress: 1 - progress / 2,
    "linear_until_flipped": lambda progress: 1 - progress,
}
"""Weight α of the networks' reconstruction in the objective, by the share of the transition that is over.

That of the phenotypes is 1 − α. Reconstruction comes first and phenotypes afterwards, or a straight line
leads from reconstruction alone to both alike, or to phenotypes alone.
"""
_CHANNEL = re.compile(rf"string[^_]*_({'|'.join(ZEROS)})")


@dataclass
class DangoConfig:
    """DANGO (Zhang, Ma & Ma, bioRxiv 2020.11.26.400739)."""

    name: Literal["dango"] = setting("dango", "The model.")
    width: int = setting(64, "Width d of gene embeddings and of all layers.", minimum=2)
    heads: int = setting(4, "Attention heads of the set head.", minimum=1)
    layers_head: int = setting(2, "Layers of the set head.", minimum=1)
    dropout: float = setting(
        0.0, "Dropout on what attention adds to a gene's state in the set head.", minimum=0, below=1
    )
    relations: list[str] = setting([], "Gene networks to learn from; empty: all that have edges.")
    zeros: dict[str, float] = setting(
        {},
        "Weight of the pairs without an edge in the reconstruction of a relation. A channel of STRING that "
        "is not named has the published weight, any other relation 1.",
        minimum=0,
    )
    schedule: Literal["pre_then_post", "linear_until_uniform", "linear_until_flipped"] = setting(
        "linear_until_uniform", "How training passes from reconstruction of the networks to phenotypes."
    )
    transition: int = setting(10, "Epochs of that transition.", minimum=0)


def check(config: DangoConfig) -> None:
    """Refuse settings that do not fit each other; raises ``ConfigError`` naming them and the remedy."""
    if config.width % config.heads:
        raise ConfigError(
            f"model.heads={config.heads} does not divide model.width={config.width}: choose a divisor"
        )
    twice = {name for name in config.relations if config.relations.count(name) > 1}
    if twice:
        raise ConfigError(f"model.relations names {min(twice)!r} more than once: name it once")


def chosen_relations(config: DangoConfig, relations: Sequence[str]) -> dict[str, float]:
    """Return the relations to learn from, in order, with the weight of their zeros.

    Parameters
    ----------
    config : DangoConfig
        Settings.
    relations : sequence of str
        Relations of the organism that have edges.

    Raises
    ------
    ConfigError
        If a setting names a relation that is not there, or if there is none at all.
    """
    for field_name, names in (("relations", config.relations), ("zeros", list(config.zeros))):
        for name in names:
            if name not in relations:
                known = ", ".join(relations) or "none"
                raise ConfigError(
                    f"model.{field_name} names {name!r}, which is no relation with edges here; known: {known}"
                )
    chosen = config.relations or relations
    if not chosen:
        raise ConfigError(
            "model.name=dango needs a gene network, and this organism has no relation with edges"
        )
    return {name: config.zeros.get(name, published_zeros(name)) for name in chosen}


def published_zeros(relation: str) -> float:
    """Return the published weight of a channel of STRING, such as ``string12_coexpression``; 1 for others."""
    channel = _CHANNEL.fullmatch(relation)
    return ZEROS[channel[1]] if channel else 1.0


def reconstruction_share(schedule: str, epoch: int, transition: int) -> float:
    """Return α in an epoch (from 0), for a transition of so many epochs; 0 epochs: it is over at once."""
    return SCHEDULES[schedule](min(epoch / transition, 1.0) if transition else 1.0)
