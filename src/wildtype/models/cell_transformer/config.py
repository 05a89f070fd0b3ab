"""Settings of the cell transformer, and the rule that gives every relation an attention head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wildtype.errors import ConfigError

EXPERTS = ("seen", "one", "none")


@dataclass
class PriorHead:
    """One regularised attention head: which layer and head follow a relation, and how strongly."""

    layer: int = 0
    head: int = 0
    weight: float = 0.1


@dataclass
class PriorConfig:
    """Graph priors of the encoder.

    Attributes
    ----------
    relations : list of str
        Relations to follow; empty: every relation of the organism that has edges.
    heads : dict of str to PriorHead
        Explicit place of every relation; empty: one head per relation, filling layers in order and leaving at
        least one free head per layer.
    weight : float
        Lambda of every prior placed by the rule, on the mean KL per regularised row (nats). 0 switches
        priors off.
    loss : str
        ``kl``, or ``bce`` (edges against sampled non-edges).
    reverse : list of str
        Relations read from target to source.
    rows : int
        Rows drawn per step and relation; 0: all.
    negatives : int
        Non-edges drawn per step and relation, for ``bce``; 0: as many as edges.
    """

    relations: list[str] = field(default_factory=list)
    heads: dict[str, PriorHead] = field(default_factory=dict)
    weight: float = 0.1
    loss: str = "kl"
    reverse: list[str] = field(default_factory=list)
    rows: int = 0
    negatives: int = 0


@dataclass
class EvidenceConfig:
    """Measurements of similar mutants, as an input of the network.

    Attributes
    ----------
    tokens : int
        Measured mutants one edit away that a mutant attends to; 0 switches all evidence off, trees and
        equivalents too.
    two : int
        Measured mutants two edits away.
    neighbours : int
        Neighbours of each gene whose own statistics are read.
    heads, value, hidden : int
        Heads of the attention over them, width of a head's value, and hidden width.
    dropout : float
        Share of tokens left out in training.
    imitate : dict of str to float
        Holdout schemes of training mutants: fractions of ``seen``, ``one`` (one gene unseen), ``none``
        (no gene seen) and ``pair`` (the leading pair unseen). Empty: the scheme of the validation
        mutants' genes.
    experts : list of str
        Holdout scheme of every member of an ensemble, ``seen``, ``one`` or ``none``, for its training and
        validation mutants. Members whose scheme fits the unseen genes of a mutant predict it. Empty: all
        members are alike.
    also : list of str
        Further phenotypes of the dataset whose measurements are evidence.
    equivalents : bool
        Whether mutants that lose the same metabolic reactions are looked up, where the organism has a
        metabolism. Their mixing weight is fitted to the validation rows once the network is trained.
    """

    tokens: int = 32
    two: int = 16
    neighbours: int = 8
    heads: int = 4
    value: int = 12
    hidden: int = 40
    dropout: float = 0.1
    imitate: dict[str, float] = field(default_factory=dict)
    experts: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    equivalents: bool = False

    def expert(self, number: int, members: int) -> str | None:
        """Return what one of so many members, from 0, is an expert of; None where members are alike.

        There may be more members than entries, as when snapshots are kept of each.
        """
        return self.experts[number * len(self.experts) // members] if self.experts else None


@dataclass
class TreesConfig:
    """Boosted trees over the evidence, averaged with the network.

    Attributes
    ----------
    bags : int
        Models whose trees are averaged; 0: no trees.
    draws : int
        Rows made of every training mutant, each with other measurements hidden.
    leaves : list of int
        Leaves per tree to choose from, by the validation rows; empty: 7, 15 and 31.
    iterations : int
        Trees of one model; 0: as many as do best on the validation rows.
    share : float
        Mixing weight of the trees, from 0 to 1; negative: fitted to the validation rows.
    tokens, two, neighbours : int
        As in the evidence of the network, where it has fewer: trees read more for little.
    features : bool
        Whether trees read every feature of the genes, or those of small blocks alone.
    genes : bool
        Whether trees have a column for every gene: for few genes, all of them measured.
    """

    bags: int = 0
    draws: int = 1
    leaves: list[int] = field(default_factory=list)
    iterations: int = 0
    share: float = -1.0
    tokens: int = 160
    two: int = 64
    neighbours: int = 24
    features: bool = False
    genes: bool = False


@dataclass
class HeadConfig:
    """The perturbation head.

    Attributes
    ----------
    summary : str
        Summary of S that asks the question: ``mean``, ``sum``, ``product`` or ``set_attention``; or
        ``own_queries``: every gene asks its own, and S the mean of them, which makes screens fast.
    direct : list of str
        Summaries of S that reach the output directly: any of the same names. Empty: ``[h_CLS ‖ z_S]`` alone.
    heads : int
        Heads of the cross-attention over all genes; 0 switches z_S off.
    sharpness : float
        Initial scale of the cross-attention logits (standard deviation of a logit at the start, about).
    hidden : int
        Width of the output MLP; 0: twice the model's width.
    relations : bool
        Whether the relations between the genes of S are read out: edge weights, similarity of features and of
        positions in the graphs, and the logits of the regularised attention heads.
    additive : bool
        Whether the additive model, fitted to what may be seen, is added to the output.
    smallest : bool
        Whether the output starts from the smallest value measured for a mutant less one gene, where there is
        one: under flux balance, growth is never above it. It needs evidence.
    rank : int
        Width that the members of a group of phenotypes share, and of mutants and genes where a phenotype has
        a number per gene.
    """

    summary: str = "sum"
    direct: list[str] = field(default_factory=lambda: ["sum", "product"])
    heads: int = 4
    sharpness: float = 4.0
    hidden: int = 0
    relations: bool = True
    additive: bool = True
    smallest: bool = False
    rank: int = 32


@dataclass
class CellTransformerConfig:
    """The cell transformer.

    Attributes
    ----------
    width, layers, heads : int
        Model width d, encoder layers L (0 is legal: no encoder) and attention heads H.
    feedforward : int
        Width of the feed-forward block, in multiples of d.
    dropout : float
        On residual branches and in the output MLP.
    feature_dropout : float
        On the gene features at the input.
    table : bool
        Whether every gene has a learned embedding.
    features : bool
        Whether the organism's gene features are projected and added.
    leave_out : list of str
        Feature blocks not to use.
    """

    name: str = "cell_transformer"
    width: int = 64
    layers: int = 2
    heads: int = 8
    feedforward: int = 4
    dropout: float = 0.1
    feature_dropout: float = 0.2
    table: bool = True
    features: bool = True
    leave_out: list[str] = field(default_factory=list)
    prior: PriorConfig = field(default_factory=PriorConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    trees: TreesConfig = field(default_factory=TreesConfig)

    @property
    def reads_measurements(self) -> bool:
        """Whether training measurements are an input: evidence, or the additive model fitted to them."""
        return self.evidence.tokens > 0 or self.head.additive

    @property
    def needs_similarity(self) -> bool:
        """Whether the model asks an `EvidenceIndex`, which takes how alike genes are."""
        return self.reads_measurements or self.head.relations


SUMMARIES = ("mean", "sum", "product", "set_attention")
OWN_QUERIES = "own_queries"


def check(config: CellTransformerConfig) -> None:
    """Refuse settings that do not fit each other; raises ``ConfigError`` naming setting and remedy."""
    if config.name != "cell_transformer":
        raise ConfigError(f"there is no model {config.name!r}; known models: cell_transformer")
    if config.width < 1 or config.layers < 0 or config.heads < 1:
        raise ConfigError(
            f"model.width={config.width}, model.layers={config.layers}, model.heads={config.heads}: "
            f"width and heads must be at least 1 and layers at least 0"
        )
    for setting, heads in (("model.heads", config.heads), ("model.head.heads", config.head.heads)):
        if heads and config.width % heads:
            raise ConfigError(
                f"{setting}={heads} does not divide model.width={config.width}: choose a divisor"
            )
    if not (config.table or config.features):
        raise ConfigError(
            "model.table=false and model.features=false leave the genes without any input: set one true"
        )
    for setting, names, known in (
        ("model.head.summary", [config.head.summary], (*SUMMARIES, OWN_QUERIES)),
        ("model.head.direct", config.head.direct, SUMMARIES),
    ):
        for name in names:
            if name not in known:
                raise ConfigError(f"{setting} names {name!r}; known summaries: {', '.join(known)}")
    if not (config.head.direct or config.head.heads or config.head.relations or config.evidence.tokens):
        raise ConfigError(
            "model.head.direct=[], model.head.heads=0, model.head.relations=false and "
            "model.evidence.tokens=0 leave the head without S: set one of them"
        )
    evidence = config.evidence
    if evidence.tokens < 0 or evidence.two < 0 or evidence.neighbours < 0:
        raise ConfigError(
            f"model.evidence.tokens={evidence.tokens}, two={evidence.two}, neighbours={evidence.neighbours}: "
            f"none may be negative"
        )
    if evidence.tokens and min(evidence.heads, evidence.value, evidence.hidden) < 1:
        raise ConfigError("model.evidence.heads, .value and .hidden must be at least 1")
    for name in evidence.experts:
        if name not in EXPERTS:
            raise ConfigError(f"model.evidence.experts names {name!r}; known: {', '.join(EXPERTS)}")
    if evidence.experts and (evidence.imitate or not evidence.tokens):
        raise ConfigError(
            "model.evidence.experts sets the holdout scheme of each member: leave out "
            "model.evidence.imitate, and keep model.evidence.tokens above 0"
        )
    if not 0 <= evidence.dropout < 1:
        raise ConfigError(f"model.evidence.dropout={evidence.dropout}: it must be at least 0 and below 1")
    trees = config.trees
    if min(trees.bags, trees.iterations) < 0 or trees.draws < 1 or any(leaves < 2 for leaves in trees.leaves):
        raise ConfigError(
            f"model.trees.bags={trees.bags}, iterations={trees.iterations}, draws={trees.draws}, "
            f"leaves={trees.leaves}: bags and iterations must be at least 0, draws at least 1 and leaves at "
            f"least 2"
        )
    if trees.share > 1:
        raise ConfigError(
            f"model.trees.share={trees.share}: it must be at most 1; negative: fitted to validation rows"
        )
    if config.head.rank < 1:
        raise ConfigError(f"model.head.rank={config.head.rank} must be at least 1")
    if config.prior.loss not in ("kl", "bce"):
        raise ConfigError(f"model.prior.loss={config.prior.loss!r}; known losses: kl, bce")


def assign_heads(config: CellTransformerConfig, relations: Sequence[str]) -> dict[str, PriorHead]:
    """Return the layer, head and weight of every relation that a head shall follow.

    Without an explicit map, relations fill the layers in order, one head each, and every layer keeps at least
    one free head. ``relations`` are those of the organism that have edges.

    Raises
    ------
    ConfigError
        If a relation is unknown or has no edges, if two relations share a head, if a head does not exist, or
        if there are too few heads; the message says how many are needed.
    """
    prior = config.prior
    known = ", ".join(relations) or "none"
    for setting, names in (
        ("relations", prior.relations),
        ("heads", list(prior.heads)),
        ("reverse", prior.reverse),
    ):
        for name in names:
            if name not in relations:
                raise ConfigError(
                    f"model.prior.{setting} names {name!r}, which is no relation with edges here; "
                    f"known: {known}"
                )
    if prior.heads:
        places: dict[tuple[int, int], str] = {}
        for name, place in prior.heads.items():
            if not (0 <= place.layer < config.layers and 0 <= place.head < config.heads):
                raise ConfigError(
                    f"model.prior.heads gives {name!r} layer {place.layer}, head {place.head}; there are "
                    f"{config.layers} layers of {config.heads} heads, counted from 0"
                )
            if (other := places.setdefault((place.layer, place.head), name)) != name:
                raise ConfigError(
                    f"model.prior.heads gives {other!r} and {name!r} the same head; move one of them"
                )
        return dict(prior.heads)
    wanted = list(prior.relations or relations)
    if prior.weight == 0 or config.layers == 0:
        return {}
    # The free head of every layer can learn what no relation holds.
    per_layer = config.heads - 1
    if len(wanted) > per_layer * config.layers:
        raise ConfigError(
            f"{len(wanted)} relations need {len(wanted)} heads besides one free head per layer, and "
            f"model.layers={config.layers} with model.heads={config.heads} offer "
            f"{per_layer * config.layers}: add layers or heads, or choose fewer with model.prior.relations"
        )
    return {
        name: PriorHead(layer=i // per_layer, head=i % per_layer, weight=prior.weight)
        for i, name in enumerate(wanted)
    }
