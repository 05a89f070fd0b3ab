"""What every neural model shares: its view of the organism, the encoded wild type, and a prediction.

Legend: n genes · f features per gene · d width · b mutants · p phenotypes · t = n + 1 tokens (CLS first) ·
r reactions · m metabolites · c gene complexes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from scipy import sparse
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneGraphs, Organism

CLS = 0  # position of the CLS token; gene i is token i + 1


@dataclass(slots=True)
class MetabolismTensors:
    """Reactions, metabolites and gene rules, as a model that passes messages over them sees them.

    A gene that rules name but the organism does not have is always there: no complex here needs it.

    Attributes
    ----------
    complexes : SparseOperator [c, n]
        1 where a minimal complex needs a gene.
    isozymes : SparseOperator [r, c]
        1 where a complex is enough for a reaction. A reaction without complexes is always alive.
    gpr : SparseOperator [r, n]
        1 where a rule lists a gene.
    stoichiometry : SparseOperator [m, r]
        Coefficients, negative where consumed.
    """

    complexes: SparseOperator
    isozymes: SparseOperator
    gpr: SparseOperator
    stoichiometry: SparseOperator

    @classmethod
    def of(cls, graph: CellGraph) -> MetabolismTensors:
        """Return the metabolism of a wiring; raises ``ConfigError`` if it has none."""
        metabolism = graph.metabolism
        if metabolism is None:
            raise ConfigError("this wiring has no metabolism: build it with metabolism=True")
        known = metabolism.gene_columns(graph.genes)
        there = known >= 0
        place = sparse.csr_array(
            (there[there].astype(float), (known[there], there.nonzero()[0])),
            shape=(len(metabolism.genes), graph.n),
        )
        return cls(
            _operator(metabolism.complex_gene @ place, "complexes"),
            _operator(metabolism.reaction_complex, "isozymes"),
            _operator(graph.gpr, "gpr"),
            _operator(graph.stoichiometry, "stoichiometry"),
        )

    def to(self, device: torch.device | str) -> MetabolismTensors:
        """Return the same on another device."""
        parts = (self.complexes, self.isozymes, self.gpr, self.stoichiometry)
        return MetabolismTensors(*(op.to(device) for op in parts))


def _operator(matrix: Any, name: str) -> SparseOperator:
    coo = sparse.coo_array(matrix)
    rows, cols = (torch.from_numpy(x.astype("int64")) for x in coo.coords)
    values = torch.from_numpy(coo.data.astype("float32"))
    return SparseOperator.from_edges(rows, cols, coo.shape, values, name=name)


@dataclass(slots=True)
class OrganismTensors:
    """The organism as an encoder sees it.

    Attributes
    ----------
    features : float32 [n, f]
        Standardised gene features; f may be 0.
    priors : dict of str to SparseOperator [t, t]
        Relation of every regularised head, over tokens; the CLS row and column are empty. Leave it empty
        where the auxiliary losses are not wanted: for validation and prediction.
    outside : int64 [a]
        Genes that were appended to the organism: attended to, but no part of any prior's normaliser unless a
        pair of theirs is listed in ``valid``. Mostly empty.
    valid : dict of str to int64 [2, M]
        Per relation, pairs of tokens, one of them an appended gene, of which it is known whether they are
        related.
    relations : dict of str to SparseOperator [n, n]
        Gene graphs to pass messages over: row i receives from its columns, so that rows are targets. Only
        where a model needs them.
    metabolism : MetabolismTensors or None
        Only where a model needs it.
    similarity : GeneSimilarity or None
        How alike genes are, for looking up evidence; in memory of the CPU.

    Raises
    ------
    ConfigError
        If a prior has an edge at an appended gene that ``valid`` does not list.
    """

    features: Tensor
    priors: dict[str, SparseOperator] = field(default_factory=dict)
    outside: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    valid: dict[str, Tensor] = field(default_factory=dict)
    relations: dict[str, SparseOperator] = field(default_factory=dict)
    metabolism: MetabolismTensors | None = None
    similarity: GeneSimilarity | None = None

    def __post_init__(self) -> None:
        if not len(self.outside):
            return
        t = self.genes + 1
        for name, op in self.priors.items():
            rows, cols = op.edges()
            touching = torch.isin(rows, self.outside_tokens) | torch.isin(cols, self.outside_tokens)
            listed = self.valid.get(name, rows.new_zeros(2, 0))
            unlisted = ~torch.isin((rows * t + cols)[touching], listed[0] * t + listed[1])
            if bool(unlisted.any()):
                raise ConfigError(
                    f"relation {name!r} has {int(unlisted.sum())} edges at appended genes that are not "
                    f"listed as valid pairs: list them, or leave them out"
                )

    @property
    def genes(self) -> int:
        """Number of genes n."""
        return len(self.features)

    def to(self, device: torch.device | str) -> OrganismTensors:
        """Return the same on another device."""
        return OrganismTensors(
            self.features.to(device),
            {name: op.to(device) for name, op in self.priors.items()},
            self.outside.to(device),
            {name: pairs.to(device) for name, pairs in self.valid.items()},
            {name: op.to(device) for name, op in self.relations.items()},
            None if self.metabolism is None else self.metabolism.to(device),
            self.similarity,
        )

    def without_priors(self) -> OrganismTensors:
        """Return the same for validation and prediction, which have no use for auxiliary losses."""
        return replace(self, priors={}, valid={})

    @property
    def outside_tokens(self) -> Tensor:
        """Tokens left out of every normaliser: CLS and the appended genes."""
        return torch.cat([self.outside.new_tensor([CLS]), self.outside + CLS + 1])


def prior_operator(graphs: GeneGraphs, relation: str, *, reverse: bool = False) -> SparseOperator:
    """Return one relation over tokens [t, t]: rows are sources (targets when ``reverse``), CLS has no
    edges.
    """
    chosen = graphs[relation].reversed() if reverse else graphs[relation]
    rows, cols, weights = (torch.from_numpy(x) for x in chosen.endpoints())
    values = weights if chosen.weighted else None
    return SparseOperator.from_edges(rows + 1, cols + 1, chosen.n + 1, values, name=relation)


def message_operator(graphs: GeneGraphs, relation: str) -> SparseOperator:
    """Return one relation for messages along its edges [n, n]: row i receives from the sources of its edges,
    whatever their weights.
    """
    rows, cols, _ = (torch.from_numpy(x) for x in graphs[relation].endpoints())
    return SparseOperator.from_edges(cols, rows, graphs[relation].n, name=relation)


def organism_tensors(
    model: Model,
    organism: Organism,
    features: Tensor,
    similarity: GeneSimilarity | None = None,
    *,
    priors: bool = True,
) -> OrganismTensors:
    """Return what ``model`` needs of an organism, with its gene features [n, f] and their similarity.

    Without ``priors``, for prediction, the organism may lack relations that attention heads followed in
    training: they need none to attend.

    Raises
    ------
    ConfigError
        If the model needs a metabolism and the organism has none.
    """
    graphs, needs, appended = organism.graphs, model.needs, organism.appended
    followed = model.priors(graphs) if priors and "priors" in needs else {}
    relations = model.relations if "relations" in needs else ()
    wanted = "metabolism" in needs or ("equivalents" in needs and organism.metabolism is not None)
    whole = CellGraph.of(organism, (), metabolism=True) if wanted else None
    return OrganismTensors(
        features,
        priors=followed,
        outside=torch.from_numpy(appended.genes.copy()),
        valid={
            name: torch.from_numpy(pairs[::-1].copy() if model.transposed(name) else pairs.copy()) + 1
            for name, pairs in appended.valid.items()
            if name in followed
        },
        relations={name: message_operator(graphs, name) for name in relations},
        metabolism=None if whole is None else MetabolismTensors.of(whole),
        similarity=similarity,
    )


@dataclass(slots=True)
class WildType:
    """The encoded wild type, shared by every mutant of a step.

    Attributes
    ----------
    cls : [d]
        The whole cell.
    genes : [n, d]
        One row per gene.
    losses : dict of str to scalar tensor
        Auxiliary losses by name, unweighted: mean KL per regularised row in nats, one per graph prior.
    weights : dict of str to float
        Weight of each auxiliary loss in the training objective; ``data`` is that of the phenotypes (1 where
        it is not given).
    regularised : (Tensor, Tensor) or None
        Queries and keys [n, r, d_h] of the r attention heads that follow a relation, scaled so that their
        inner products are logits; where a head reads them out.
    traits : [n, i] or None
        What trees read of every gene.
    """

    cls: Tensor
    genes: Tensor
    losses: dict[str, Tensor] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    regularised: tuple[Tensor, Tensor] | None = None
    traits: Tensor | None = None


@dataclass(frozen=True)
class Output:
    """One phenotype as a model's head sees it.

    Attributes
    ----------
    name : str
        Of the phenotype.
    form : str
        ``scalar``; ``class``, whose output is the logit of its probability; or ``gene``, a number per gene.
    group : str
        Vector that it is a member of; empty: it stands alone.
    """

    name: str
    form: str = "scalar"
    group: str = ""

    @property
    def head(self) -> tuple[str, str]:
        """What reads it off: all members of a group share a head."""
        return ("group", self.group) if self.group else ("alone", self.name)

    @classmethod
    def of(cls, phenotypes: int | Sequence[Output | Mapping[str, Any]]) -> tuple[Output, ...]:
        """Return outputs from records of phenotypes, or so many scalars."""
        if isinstance(phenotypes, int):
            return tuple(cls(str(i)) for i in range(phenotypes))
        return tuple(
            p if isinstance(p, Output) else cls(p["name"], p.get("form", "scalar"), p.get("group", ""))
            for p in phenotypes
        )


@dataclass(frozen=True, slots=True)
class Members:
    """Who the mutants of a screen are made of: each is a set of some of them.

    Attributes
    ----------
    gene : int64 [c]
        The gene of every member.
    kind : uint8 [c]
        What is done to it.
    order : int
        Members per mutant.
    condition : int
        In which mutants are asked about.
    """

    gene: Tensor
    kind: Tensor
    order: int
    condition: int = 0


@dataclass(slots=True)
class GeneProfile:
    """One number per mutant and gene, in two factors: [b, n] exists only where it is asked for.

    Entry (i, g) is ``mutants[i] · genes[g]``, plus ``own`` where mutant i perturbs gene g.

    Attributes
    ----------
    mutants : [b, r]
        Factor of each mutant.
    genes : [n, r]
        Factor of each gene.
    own : [Σk]
        What a perturbation adds to its own gene.
    gene, offsets : int64 [Σk], int64 [b+1]
        Of the batch.
    """

    mutants: Tensor
    genes: Tensor
    own: Tensor
    gene: Tensor
    offsets: Tensor

    def dense(self, rows: Tensor | None = None) -> Tensor:
        """Return the numbers of all mutants, or of those at ``rows`` (each once): [R, n]; O(R n r) time."""
        b, n = len(self.mutants), len(self.genes)
        if rows is None:
            rows = torch.arange(b, device=self.gene.device)
        place = torch.full((b,), -1, dtype=torch.int64, device=self.gene.device)
        place[rows] = torch.arange(len(rows), device=self.gene.device)
        row = place.repeat_interleave(self.offsets.diff(), output_size=len(self.gene))
        asked = (row >= 0).nonzero()[:, 0]
        at = (row * n + self.gene).index_select(0, asked)
        out = self.mutants.index_select(0, rows) @ self.genes.T
        added = self.own.index_select(0, asked).to(out.dtype)
        return out.view(-1).index_add(0, at, added).view(len(rows), n)

    @staticmethod
    def mean(profiles: Sequence[GeneProfile]) -> GeneProfile:
        """Return the mean of several models' profiles of one batch: exactly, by joining their factors."""
        first = profiles[0]
        return GeneProfile(
            torch.cat([p.mutants for p in profiles], 1) / len(profiles),
            torch.cat([p.genes for p in profiles], 1),
            torch.stack([p.own for p in profiles]).mean(0),
            first.gene,
            first.offsets,
        )


@dataclass(slots=True)
class Prediction:
    """What a model says of a batch of mutants.

    Attributes
    ----------
    mean : [b, p]
        Phenotypes in units of the scaled labels; of a class, the logit; 0 where there is a number per gene.
    profiles : dict of int to GeneProfile
        By position of the phenotype, those of which there is a number per gene.
    sd : [b, p] or None
        Where several models were asked, the standard deviation of what they said.
    """

    mean: Tensor
    profiles: dict[int, GeneProfile] = field(default_factory=dict)
    sd: Tensor | None = None


class Model(nn.Module, ABC):
    """A neural model: ``encode`` once per step, then call for any number of mutants.

    Attributes
    ----------
    config : dataclass
        Its settings; ``config.name`` is its name in the registry.
    needs : tuple of str
        What it must see of the organism: any of ``features``, ``priors``, ``relations``, ``metabolism``.
        All but priors go into its checkpoints.
    relations : tuple of str
        Names of the relations that it passes messages over.
    encode_per_epoch : bool
        Whether training uses one wild type, without its gradient, for a whole epoch: an approximation.
    by_gene, by_feature : tuple of str
        Names of the parameters with one row per gene, and of those with one column per gene feature: weights
        of another organism's model take their place by name.
    """

    config: Any
    needs: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    encode_per_epoch: bool = False
    by_gene: tuple[str, ...] = ()
    by_feature: tuple[str, ...] = ()

    @abstractmethod
    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Encode the wild type; ``stream`` draws sampled rows and negatives."""

    @abstractmethod
    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes of a batch of mutants."""

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> Callable[[Tensor], Tensor] | None:
        """Return what predicts sets [m, k] of members, [m, p] as ``forward`` does but faster; None where
        there is no such way. ``evidence`` tells how alike genes are.
        """
        return None

    def priors(self, graphs: GeneGraphs) -> dict[str, SparseOperator]:
        """Return the operator over tokens of every relation that an attention head follows."""
        return {}

    def transposed(self, relation: str) -> bool:
        """Whether the prior of a relation leads from targets to sources."""
        return False

    def without_doses(self) -> None:
        """Take note that no mutant has a dose: what reads doses is not trained."""
        return

    def set_epoch(self, epoch: int) -> None:
        """Take note that an epoch (from 0) begins, for what changes as training goes on."""
        return
