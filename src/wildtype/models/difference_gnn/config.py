"""Settings of the difference GNN, and the rules they must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wildtype.errors import ConfigError
from wildtype.mutants import Kind
from wildtype.settings import setting


@dataclass
class DifferenceGNNConfig:
    """The difference GNN."""

    name: Literal["difference_gnn"] = setting("difference_gnn", "The model.")
    width: int = setting(64, "Width d of every state.", minimum=1)
    representation: Literal["perturbation", "lazy_subgraph", "1-hop", "2-hop", "3-hop"] = setting(
        "lazy_subgraph",
        "A mutant's graph: the wild type's, with the removed genes left out of the pooling alone; the "
        "wild type's without them; or what of it lies within 1, 2 or 3 edges of a perturbed gene.",
    )
    layers: int = setting(3, "Message-passing layers L.", minimum=1)
    convolution: Literal["gin", "sage"] = setting(
        "gin",
        "How a gene's state is updated by its neighbours of a relation: GIN sums them and applies an MLP; "
        "GraphSAGE takes their mean and applies one linear map. Metabolism has GIN either way.",
    )
    gin_layers: int = setting(4, "Linear maps in the MLP of every relation in every GIN layer.", minimum=1)
    activation: Literal["gelu", "relu", "silu"] = setting(
        "gelu", "Function after every linear map but the last of an MLP."
    )
    dropout: float = setting(
        0.0,
        "Dropout after activations. In the first layer, mutants share the wild type's draw where their "
        "states are the wild type's.",
        minimum=0,
        below=1,
    )
    aggregation: Literal["sum", "mean", "attention", "pairwise"] = setting(
        "sum", "How the states of a gene, one per relation, become one."
    )
    aggregation_norm: bool = setting(True, "Apply a LayerNorm after the aggregation.")
    heads: int = setting(4, "Attention heads of `aggregation=attention` and of the local head.", minimum=1)
    bottleneck: int = setting(
        0,
        "Hidden width of the pairwise MLPs, of their scorer and of the pooling gate; 0: half the width.",
        minimum=0,
    )
    combination: Literal["concat", "gating", "global", "local"] = setting(
        "concat",
        "How the scores of the pooled difference and of the perturbed set combine: half of each, a learned "
        "gate, or one alone.",
    )
    attention_layers: int = setting(2, "Self-excluding attention layers of the local head.", minimum=0)
    removes: list[Literal["absent", "reduced", "present", "added", "overexpressed"]] = setting(
        ["absent", "reduced"],
        "Kinds of perturbation that remove a gene from the graph. Genes of other kinds stay, and only the "
        "local head sees them. Doses are not seen.",
    )
    relations: list[str] = setting([], "Relations to pass messages over; empty: all that have edges.")
    metabolism: bool = setting(False, "Add reactions and metabolites as nodes.")
    reactions: int = setting(
        0, "Reactions with a learned embedding, with metabolism; 0: all of the organism.", minimum=0
    )
    metabolites: int = setting(
        0, "Metabolites with a learned embedding, with metabolism; 0: all of the organism.", minimum=0
    )
    wild_type: Literal["step", "epoch"] = setting(
        "step",
        "Encode the wild type at every step; or once per epoch without its gradient, an approximation that "
        "never trains the gene table and the preprocessor.",
    )
    tile: int = setting(
        0,
        "Mutants that pass the upper layers together; 0: as many as have about 8,192 nodes, and a million on "
        "a GPU. 1 is fastest on a CPU for graphs of thousands of genes, whose states then stay in the cache.",
        minimum=0,
    )

    @property
    def hops(self) -> int:
        """Edges that a mutant's graph reaches from its perturbed genes; 0: it is no neighbourhood."""
        name = self.representation
        return int(name.removesuffix("-hop")) if name.endswith("-hop") else 0

    @property
    def narrow(self) -> int:
        """The bottleneck b."""
        return self.bottleneck or max(self.width // 2, 1)


def check(config: DifferenceGNNConfig) -> None:
    """Refuse settings that do not fit each other; raises ``ConfigError`` naming them and the remedy."""
    attends = config.aggregation == "attention" or config.combination != "global"
    if attends and config.width % config.heads:
        raise ConfigError(
            f"model.heads={config.heads} does not divide model.width={config.width}: choose a divisor"
        )
    if config.combination == "local" and config.metabolism:
        raise ConfigError("model.combination=local sees no metabolism: set model.metabolism=false")
    if config.combination == "local" and config.representation != "lazy_subgraph":
        raise ConfigError(
            f"model.combination=local passes no messages in a mutant's graph, so that "
            f"model.representation={config.representation} changes nothing: choose another combination"
        )


def removed_kinds(config: DifferenceGNNConfig) -> list[int]:
    """Return the kinds that take a gene out of the graph; raises ``ConfigError`` for an unknown name."""
    return [int(Kind.parse(name)) for name in config.removes]


def chosen_relations(config: DifferenceGNNConfig, relations: tuple[str, ...]) -> tuple[str, ...]:
    """Return the relations to pass messages over, of those of an organism that have edges.

    Raises
    ------
    ConfigError
        If a name is none of them, or stands twice, or if there are none.
    """
    known = ", ".join(relations) or "none"
    for name in config.relations:
        if name not in relations:
            raise ConfigError(
                f"model.relations names {name!r}, which is no relation with edges here; known: {known}"
            )
    if len(set(config.relations)) < len(config.relations):
        raise ConfigError(f"model.relations={config.relations} names a relation twice: name it once")
    if not relations:
        raise ConfigError("the organism has no relation with edges to pass messages over: add a gene graph")
    return tuple(config.relations) or relations
