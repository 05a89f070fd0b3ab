"""Settings of the cell transformer, and the rule that gives every relation an attention head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wildtype.errors import ConfigError
from wildtype.settings import setting

Expert = Literal["seen", "one", "none"]
Summary = Literal["mean", "sum", "product", "set_attention", "set_attention_concat", "partners"]
OWN_READS = "own_reads"


@dataclass
class PriorHead:
    """The attention heads that follow a relation, at one place or several, and how strongly."""

    layer: int = setting(0, "Layer, from 0.", minimum=0)
    head: int = setting(0, "Attention head of the layer, from 0.", minimum=0)
    weight: float = setting(0.1, "Weight λ of the prior of every place.", minimum=0)
    also: list[list[int]] = setting([], "Further places [layer, head] that follow the same relation.")

    @property
    def places(self) -> list[tuple[int, int]]:
        """Layer and head of every place."""
        return [(self.layer, self.head), *((layer, head) for layer, head in self.also)]


@dataclass
class PriorConfig:
    """Graph priors of the encoder."""

    relations: list[str] = setting([], "Relations to follow; empty: every relation that has edges.")
    heads: dict[str, PriorHead] = setting(
        {},
        "Layer, head and weight of every relation, and further places in `also`; empty: as many heads per "
        "relation as model.prior.per_relation, filling layers in order with at least one free head per "
        "layer.",
    )
    per_relation: int = setting(1, "Heads that the rule gives to every relation.", minimum=1)
    weight: float = setting(
        0.1,
        "Weight λ of every prior placed by that rule (mean KL per regularised row, in nats); 0: none.",
        minimum=0,
    )
    loss: Literal["kl", "bce", "bce_all", "bce_sampled"] = setting(
        "kl",
        "Prior loss: KL divergence; cross-entropy of edges against sampled non-edges; or cross-entropy of α "
        "against Ã on all valid pairs (bce_all, n² operations), or its unbiased estimate from all edges and "
        "sampled non-edges.",
    )
    target: Literal["weighted", "uniform"] = setting(
        "weighted", "Row target Ã: edge weights divided by their sum, or equal weights."
    )
    epsilon: float = setting(0.0, "ε of Ã = A / (sum of the row + ε).", minimum=0)
    normaliser: Literal["genes", "all"] = setting(
        "genes", "Keys over which α of a regularised row sums to 1: genes alone, or CLS, too."
    )
    reduction: Literal["mean", "sum"] = setting(
        "mean",
        "Mean over the regularised rows, or their sum: a weight λ of the sum is λ times their number of the "
        "mean.",
    )
    tested: dict[str, str] = setting(
        {},
        "By relation, a file with one gene per line, or two with a tab or comma between: pairs among these "
        "genes, or these pairs, were tested. Others are no non-edges.",
    )
    untested: dict[str, str] = setting(
        {}, "By relation, a file with two genes per line: all pairs but these were tested."
    )
    mask: Literal["keys", "terms"] = setting(
        "keys",
        "Pairs that were not tested: they are no keys of α (keys), or α is over all keys and their terms are "
        "left out of the loss (terms; then only edges that are left out matter).",
    )
    reverse: list[str] = setting([], "Relations read from target to source.")
    rows: int = setting(0, "Rows drawn per step and relation; 0: all.", minimum=0)
    negatives: int = setting(
        0,
        "Losses bce and bce_sampled: non-edges drawn per step and relation; 0: as many as edges.",
        minimum=0,
    )


@dataclass
class PretrainingConfig:
    """What the encoder learns from the wild type alone, before the first mutant."""

    steps: int = setting(
        0,
        "Steps in which hidden feature blocks and edges of genes are told from what is left; 0: none.",
        minimum=0,
    )
    hidden: float = setting(
        0.3, "Fraction of the feature blocks of all genes that a step hides.", above=0, below=1
    )
    edges: float = setting(1.0, "Weight of the edges beside the feature blocks; 0: none.", minimum=0)
    learning_rate: float = setting(4e-3, "Highest learning rate of these steps.", above=0)


@dataclass
class EvidenceConfig:
    """Measurements of similar mutants, as an input."""

    tokens: int = setting(
        32,
        "Measured mutants one edit away that a mutant attends to; 0: no evidence, trees or equivalents.",
        minimum=0,
    )
    two: int = setting(16, "Measured mutants two edits away that a mutant attends to.", minimum=0)
    neighbours: int = setting(8, "Neighbours of each gene whose statistics are read.", minimum=0)
    heads: int = setting(4, "Attention heads over the evidence.", minimum=1)
    value: int = setting(12, "Width of the value of one head.", minimum=1)
    hidden: int = setting(40, "Hidden width.", minimum=1)
    dropout: float = setting(0.1, "Fraction of tokens left out in training.", minimum=0, below=1)
    holdout: dict[str, float] = setting(
        {},
        "Holdout schemes of training mutants and their fractions: all genes seen, one gene unseen, no gene "
        "seen, leading pair unseen. Empty: the scheme that most validation mutants have.",
        minimum=0,
        choices=("seen", "one", "none", "pair"),
    )
    experts: list[Expert] = setting(
        [],
        "Holdout scheme of every member of an ensemble; a mutant is predicted by the members for its number "
        "of unseen genes. Empty: all members are alike.",
    )
    also: list[str] = setting([], "Further phenotypes of the dataset whose measurements are evidence.")
    equivalents: bool = setting(
        False,
        "Look up mutants that lose the same metabolic reactions; their weight is fitted on the validation "
        "rows after training.",
    )

    def expert(self, number: int, members: int) -> str | None:
        """Return what one of so many members, from 0, is an expert of; None where members are alike.

        There may be more members than entries, as when snapshots are kept of each.
        """
        return self.experts[number * len(self.experts) // members] if self.experts else None


@dataclass
class TreesConfig:
    """Boosted trees over the evidence, averaged with the network."""

    bags: int = setting(0, "Models whose trees are averaged; 0: no trees.", minimum=0)
    draws: int = setting(
        1, "Copies of every training mutant, each with other measurements hidden.", minimum=1
    )
    leaves: list[int] = setting(
        [], "Leaves per tree to choose from on the validation rows; empty: 7, 15 and 31.", minimum=2
    )
    iterations: int = setting(
        0, "Trees of one model; 0: the number that is best on the validation rows.", minimum=0
    )
    mixing_weight: float = setting(
        -1.0,
        "Weight of the trees beside the network, from 0 to 1; negative: fitted on the validation rows.",
        maximum=1,
    )
    tokens: int = setting(160, "As model.evidence.tokens, for trees, where it is more.", minimum=0)
    two: int = setting(64, "As model.evidence.two, for trees, where it is more.", minimum=0)
    neighbours: int = setting(24, "As model.evidence.neighbours, for trees, where it is more.", minimum=0)
    features: bool = setting(False, "Use every feature of the genes; false: only those of small blocks.")
    genes: bool = setting(False, "Add a column per gene: for few genes, all of them measured.")


@dataclass
class HeadConfig:
    """The perturbation head."""

    summary: Literal[Summary, "own_reads"] = setting(
        "sum",
        "Summary of the perturbed genes S that queries the wild type; set_attention: Hyper-SAGNN, mean of "
        "W (dynamic − static)²; set_attention_concat: of W [dynamic ‖ static]; partners: of dynamic alone, 0 "
        "for one gene; own_reads: every gene queries by itself and S takes the mean of what they read, which "
        "makes screens fast.",
    )
    scores: Literal["normed", "bilinear"] = setting(
        "normed",
        "Attention scores: products of queries and keys with LayerNorm and a learned scale, where S is "
        "summarised with what was done to its genes; or q_Sᵀ W h_i, with q_S of gene states alone.",
    )
    foreign: Literal["left_out", "absent"] = setting(
        "left_out",
        "Foreign genes that a mutant lacks: no keys of its attention, or keys with the value of an absent "
        "gene.",
    )
    order: bool = setting(True, "Read an embedding of the number of perturbed genes.")
    direct: list[Summary] = setting(
        ["sum", "product"], "Summaries of S that reach the output directly; empty: [h_CLS ‖ z_S] alone."
    )
    heads: int = setting(4, "Heads of the cross-attention over all genes; 0: no z_S.", minimum=0)
    sharpness: float = setting(
        4.0, "Initial scale of the cross-attention logits (about their standard deviation).", above=0
    )
    hidden: int = setting(0, "Width of the output MLP; 0: twice the width of the model.", minimum=0)
    relations: bool = setting(
        True,
        "Read out the relations between the genes of S: edge weights, similarity of features and of "
        "positions in the graphs, and logits of the regularised heads.",
    )
    additive: bool = setting(
        True,
        "Add an additive model, fitted to visible measurements, to the output; part of the sum that it "
        "starts from where model.head.screen is.",
    )
    smallest: bool = setting(
        False,
        "Start the output from the smallest value measured for the mutant less one gene: under flux balance, "
        "growth never exceeds it. Needs evidence.",
    )
    screen: bool = setting(
        False,
        "Read what the whole screen says of a pair, as model pair_screen does, and start the output from a "
        "weighted sum of that; for rows of pairs.",
    )
    rank: int = setting(
        32, "Width shared by the members of a phenotype group, and by per-gene outputs.", minimum=1
    )


@dataclass
class CellTransformerConfig:
    """The cell transformer."""

    name: Literal["cell_transformer"] = setting("cell_transformer", "The model.")
    width: int = setting(64, "Width d of the model.", minimum=1)
    layers: int = setting(2, "Encoder layers L; 0: no encoder.", minimum=0)
    heads: int = setting(8, "Attention heads H per layer.", minimum=1)
    feedforward: int = setting(4, "Width of the feed-forward block, in multiples of d.", minimum=1)
    dropout: float = setting(0.1, "Dropout on residual branches and in the output MLP.", minimum=0, below=1)
    feature_dropout: float = setting(0.2, "Dropout on the gene features at the input.", minimum=0, below=1)
    table: bool = setting(True, "Give every gene a learned embedding.")
    features: bool = setting(True, "Project and add the gene features of the organism.")
    leave_out: list[str] = setting([], "Feature blocks not to use.")
    prior: PriorConfig = field(default_factory=PriorConfig)
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    trees: TreesConfig = field(default_factory=TreesConfig)

    @property
    def adds_effects(self) -> bool:
        """Whether the additive model is added to the output; the weighted sum of a screen holds one."""
        return self.head.additive and not self.head.screen

    @property
    def reads_measurements(self) -> bool:
        """Whether training measurements are an input: evidence, or the additive model fitted to them."""
        return self.evidence.tokens > 0 or self.adds_effects

    @property
    def needs_similarity(self) -> bool:
        """Whether the model asks an `EvidenceIndex`, which takes how alike genes are."""
        return self.reads_measurements or self.head.relations or self.head.screen


def check(config: CellTransformerConfig) -> None:
    """Refuse settings that do not fit each other; raises ``ConfigError`` naming them and the remedy."""
    for name, heads in (("model.heads", config.heads), ("model.head.heads", config.head.heads)):
        if heads and config.width % heads:
            raise ConfigError(f"{name}={heads} does not divide model.width={config.width}: choose a divisor")
    if not (config.table or config.features):
        raise ConfigError(
            "model.table=false and model.features=false leave the genes without any input: set one true"
        )
    if config.pretraining.steps and not config.features:
        raise ConfigError(
            f"model.pretraining.steps={config.pretraining.steps} hides features of genes, and "
            f"model.features=false leaves genes without any: set one of them otherwise"
        )
    if not (config.head.direct or config.head.heads or config.head.relations or config.evidence.tokens):
        raise ConfigError(
            "model.head.direct=[], model.head.heads=0, model.head.relations=false and "
            "model.evidence.tokens=0 leave the head without S: set one of them"
        )
    if config.head.screen and config.trees.bags:
        raise ConfigError(
            f"model.head.screen=true with model.trees.bags={config.trees.bags}: trees read no columns of a "
            f"screen; set model.trees.bags=0, or choose model=pair_screen, which is trees over these columns"
        )
    prior = config.prior
    if both := sorted(prior.tested.keys() & prior.untested.keys()):
        raise ConfigError(
            f"model.prior.tested and model.prior.untested both name {both[0]!r}: give one of them"
        )
    evidence = config.evidence
    if evidence.experts and (evidence.holdout or not evidence.tokens):
        raise ConfigError(
            "model.evidence.experts sets the holdout scheme of every member: leave out "
            "model.evidence.holdout, and keep model.evidence.tokens above 0"
        )


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
    for field_name, names in (
        ("relations", prior.relations),
        ("heads", list(prior.heads)),
        ("reverse", prior.reverse),
        ("tested", list(prior.tested)),
        ("untested", list(prior.untested)),
    ):
        for name in names:
            if name not in relations:
                raise ConfigError(
                    f"model.prior.{field_name} names {name!r}, which is no relation with edges here; "
                    f"known: {known}"
                )
    if prior.heads:
        taken: dict[tuple[int, int], str] = {}
        for name, given in prior.heads.items():
            if any(len(place) != 2 for place in given.also):
                raise ConfigError(
                    f"model.prior.heads.{name}.also={given.also}: write places as [[layer, head], …]"
                )
            for layer, head in given.places:
                if not (0 <= layer < config.layers and 0 <= head < config.heads):
                    raise ConfigError(
                        f"model.prior.heads gives {name!r} layer {layer}, head {head}; there are "
                        f"{config.layers} layers of {config.heads} heads, counted from 0"
                    )
                if (layer, head) in taken:
                    other = taken[layer, head]
                    pair = f"{name!r} twice" if other == name else f"{other!r} and {name!r}"
                    raise ConfigError(f"model.prior.heads gives {pair} the same head; move one of them")
                taken[layer, head] = name
        return dict(prior.heads)
    wanted = list(prior.relations or relations)
    if prior.weight == 0 or config.layers == 0:
        return {}
    # The free head of every layer can learn what no relation holds.
    per_layer, each = config.heads - 1, prior.per_relation
    if (needed := each * len(wanted)) > per_layer * config.layers:
        raise ConfigError(
            f"{len(wanted)} relations need {needed} heads besides one free head per layer, and "
            f"model.layers={config.layers} with model.heads={config.heads} offer "
            f"{per_layer * config.layers}: add layers or heads, or choose fewer with model.prior.relations"
        )
    places = [[i // per_layer, i % per_layer] for i in range(needed)]
    found = {}
    for i, name in enumerate(wanted):
        (layer, head), *also = places[i * each : (i + 1) * each]
        found[name] = PriorHead(layer, head, prior.weight, also)
    return found


def stored_settings(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored settings in today's names.

    Until ``model.prior.target`` was a setting, ``set_attention`` was what ``partners`` is now.

    Raises
    ------
    ConfigError
        If S asked by the mean of its genes' queries, ``own_queries``, which there is no more.
    """
    if record.get("head", {}).get("summary") == "own_queries":
        raise ConfigError(
            "this model was trained with model.head.summary=own_queries, which wildtype has no more: train "
            "again with model.head.summary=own_reads"
        )
    if "target" in record.get("prior", {"target": ""}) or "head" not in record:
        return record

    def renamed(summary: str) -> str:
        return "partners" if summary == "set_attention" else summary

    head = dict(record["head"])
    if "summary" in head:
        head["summary"] = renamed(head["summary"])
    if "direct" in head:
        head["direct"] = [renamed(summary) for summary in head["direct"]]
    return {**record, "head": head}
