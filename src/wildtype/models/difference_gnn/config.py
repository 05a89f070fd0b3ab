"""Settings of the difference GNN, and the rules they must keep."""

from __future__ import annotations

from dataclasses import dataclass, field

from wildtype.errors import ConfigError
from wildtype.mutants import Kind

AGGREGATIONS = ("sum", "mean", "attention", "pairwise")
COMBINATIONS = ("concat", "gating", "global", "local")
ACTIVATIONS = ("gelu", "relu", "silu")


@dataclass
class DifferenceGNNConfig:
    """The difference GNN.

    Attributes
    ----------
    width, layers : int
        Width d of every state, and number of message-passing layers L.
    gin_layers : int
        Linear maps of the MLP of every relation in every layer.
    activation : {"gelu", "relu", "silu"}
        After every linear map but the last of an MLP.
    dropout : float
        After activations. In the first layer, mutants share the wild type's draw where their states are the
        wild type's.
    aggregation : {"sum", "mean", "attention", "pairwise"}
        How the relations' states of a gene become one.
    aggregation_norm : bool
        Whether a LayerNorm follows.
    heads : int
        Attention heads, of the aggregation ``attention`` and of the local head.
    bottleneck : int
        Hidden width of the pairwise MLPs, of their scorer, and of the pooling gate; 0: half the width.
    combination : {"concat", "gating", "global", "local"}
        How the score of the pooled difference and the score of the perturbed set become one: half of each (as
        the model's first users had it, under this name), a learned gate, or one of them alone.
    attention_layers : int
        Self-excluding attention layers of the local head.
    removes : list of str
        Kinds of perturbation that take a gene out of the graph; genes of other kinds stay, and are seen by
        the local head only. Doses are not seen.
    relations : list of str
        Relations to pass messages over; empty: all of the organism that have edges.
    metabolism : bool
        Whether reactions and metabolites are nodes, too.
    reactions, metabolites : int
        How many the organism has, with ``metabolism``: each has a learned embedding. 0: a run counts them.
    wild_type : {"step", "epoch"}
        Encode the wild type at every step; or once per epoch and without its gradient, an approximation that
        leaves the gene table and the preprocessor as they began.
    tile : int
        Mutants that pass the upper layers together; 0: as many as have about 8,192 nodes. One at a time is
        fastest on graphs of thousands of genes, whose states then stay in the cache.
    """

    name: str = "difference_gnn"
    width: int = 64
    layers: int = 3
    gin_layers: int = 4
    activation: str = "gelu"
    dropout: float = 0.0
    aggregation: str = "sum"
    aggregation_norm: bool = True
    heads: int = 4
    bottleneck: int = 0
    combination: str = "concat"
    attention_layers: int = 2
    removes: list[str] = field(default_factory=lambda: ["absent", "reduced"])
    relations: list[str] = field(default_factory=list)
    metabolism: bool = False
    reactions: int = 0
    metabolites: int = 0
    wild_type: str = "step"
    tile: int = 0

    @property
    def narrow(self) -> int:
        """The bottleneck b."""
        return self.bottleneck or max(self.width // 2, 1)


def check(config: DifferenceGNNConfig) -> None:
    """Refuse settings that do not fit each other; raises ``ConfigError`` naming the setting."""
    if config.name != "difference_gnn":
        raise ConfigError(
            f"model.name={config.name!r} has no place here: these settings are difference_gnn's"
        )
    for setting, lowest in (
        ("width", 1),
        ("layers", 1),
        ("gin_layers", 1),
        ("heads", 1),
        ("bottleneck", 0),
        ("attention_layers", 0),
        ("tile", 0),
        ("reactions", 0),
        ("metabolites", 0),
    ):
        if (value := getattr(config, setting)) < lowest:
            raise ConfigError(f"model.{setting}={value}: it must be at least {lowest}")
    for setting, known in (
        ("aggregation", AGGREGATIONS),
        ("combination", COMBINATIONS),
        ("activation", ACTIVATIONS),
        ("wild_type", ("step", "epoch")),
    ):
        if (value := getattr(config, setting)) not in known:
            raise ConfigError(f"model.{setting}={value!r}: choose {', '.join(known)}")
    if not 0 <= config.dropout < 1:
        raise ConfigError(f"model.dropout={config.dropout}: it must be at least 0 and below 1")
    attends = config.aggregation == "attention" or config.combination != "global"
    if attends and config.width % config.heads:
        raise ConfigError(
            f"model.heads={config.heads} does not divide model.width={config.width}: choose a divisor"
        )
    if config.combination == "local" and config.metabolism:
        raise ConfigError("model.combination=local sees no metabolism: set model.metabolism=false")
    removed_kinds(config)


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
