"""What a model sees of an organism, as tensors; and the same by name, as a checkpoint stores it.

Legend: n genes · f features per gene · t = n + 1 tokens (CLS first) · r reactions · m metabolites · c gene
complexes · e edges.

    features                        float32 [n, f]
    native                          int64 [1], where there are foreign genes
    relation/NAME/{rows,cols}       int32 [e]
    metabolism/PART/{rows,cols}     int32 [e], and values float32 [e]
    similarity/FIELD                the arrays of `GeneSimilarity`; its names as JSON in uint8 [bytes]

Priors are not stored: only training needs them. Shapes of operators are part of the checkpoint's record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from wildtype.errors import ConfigError, ShapeError
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.cell_graph import CellGraph
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.valid_pairs import ValidPairs
from wildtype.organism import GeneGraphs

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
    encoded : int or None
        Number of first genes that are tokens of the encoder; None: all. Later genes are read by the encoder,
        each by itself: they attend to the tokens, and no token attends to them.
    native : int or None
        Number of first genes that every cell has, unless it lost them; None: all tokens. Foreign genes come
        behind them, and only a mutant that names one has it.
    tested : dict of str to ValidPairs
        Per relation, which pairs of tokens were tested, where not all were. Its entry in ``priors`` has edges
        of such pairs alone.

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
    encoded: int | None = None
    native: int | None = None
    tested: dict[str, ValidPairs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.outside):
            return
        t = self.genes + 1
        for name, op in self.priors.items():
            rows, cols = op.edges()
            touching = torch.isin(rows, self.outside_tokens) | torch.isin(cols, self.outside_tokens)
            listed = self.valid.get(name, rows.new_zeros(2, 0))
            # Pairs as single numbers, row · t + column, since isin compares numbers.
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

    @property
    def tokens(self) -> int:
        """Number of genes that are tokens of the encoder."""
        return self.genes if self.encoded is None else self.encoded

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
            self.encoded,
            self.native,
            {name: pairs.to(device) for name, pairs in self.tested.items()},
        )

    def without_priors(self) -> OrganismTensors:
        """Return the same for validation and prediction, which have no use for auxiliary losses."""
        return replace(self, priors={}, valid={}, tested={})

    def with_features(self, features: Tensor) -> OrganismTensors:
        """Return the same with other features [n, f] of its genes."""
        return replace(self, features=features)

    @property
    def outside_tokens(self) -> Tensor:
        """Tokens left out of every normaliser: CLS and the appended genes."""
        outside = self.outside if self.encoded is None else self.outside[self.outside < self.encoded]
        return torch.cat([outside.new_tensor([CLS]), outside + CLS + 1])


def prior_operator(
    graphs: GeneGraphs, relation: str, *, reverse: bool = False, uniform: bool = False
) -> SparseOperator:
    """Return one relation over tokens [t, t]; CLS has no edges.

    Rows are sources, or targets when ``reverse``. All weights are 1 when ``uniform``.
    """
    chosen = graphs[relation].reversed() if reverse else graphs[relation]
    rows, cols, weights = (torch.from_numpy(x) for x in chosen.endpoints())
    values = weights if chosen.weighted and not uniform else None
    # Token 0 is CLS: gene i is token i + 1.
    return SparseOperator.from_edges(rows + 1, cols + 1, chosen.n + 1, values, name=relation)


def message_operator(graphs: GeneGraphs, relation: str) -> SparseOperator:
    """Return one relation for messages along its edges [n, n].

    Row i receives from the sources of its edges, whatever their weights.
    """
    rows, cols, _ = (torch.from_numpy(x) for x in graphs[relation].endpoints())
    # Edges run from row to column, messages with them: the product needs targets as rows.
    return SparseOperator.from_edges(cols, rows, graphs[relation].n, name=relation)


LARGEST = 1 << 24
"""Rows or columns of an operator that is read."""
SIMILARITY = "similarity/"
NAMES = ("relations", "parts", "trait_names")
ARRAYS = ("unit", "cuts", "indptr", "indices", "data", "scale", "traits")
PARTS = tuple(part.name for part in fields(MetabolismTensors))


def to_tensors(organism: OrganismTensors) -> tuple[dict[str, Tensor], dict[str, tuple[int, int]]]:
    """Return the tensors to store, and the shape of every operator among them."""
    tensors = {"features": organism.features.contiguous()}
    shapes: dict[str, tuple[int, int]] = {}
    operators = {f"relation/{name}": op for name, op in organism.relations.items()}
    if organism.metabolism is not None:
        operators |= {f"metabolism/{part}": getattr(organism.metabolism, part) for part in PARTS}
    for name, op in operators.items():
        rows, cols = op.edges()
        # int32 halves the file: an organism has far fewer than 2³¹ genes.
        tensors[f"{name}/rows"], tensors[f"{name}/cols"] = rows.int(), cols.int()
        if name.startswith("metabolism/"):
            tensors[f"{name}/values"] = op.values.float().clone()
        shapes[name] = op.shape
    if organism.native is not None:
        tensors["native"] = torch.tensor([organism.native])
    if organism.similarity is not None:
        tensors |= _similarity_tensors(organism.similarity)
    return tensors, shapes


def from_tensors(tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, int]]) -> OrganismTensors:
    """Rebuild what ``to_tensors`` took apart; raises ``KeyError`` or ``ShapeError`` if parts do not fit."""

    def operator(name: str) -> SparseOperator:
        rows, cols = tensors[f"{name}/rows"].long(), tensors[f"{name}/cols"].long()
        values = tensors.get(f"{name}/values")
        shape = (int(shapes[name][0]), int(shapes[name][1]))
        if max(shape) > LARGEST:  # index arrays of that length would fill the memory
            raise ShapeError(f"operator {name!r} states the shape {shape}, at most {LARGEST:,} are read")
        return SparseOperator.from_edges(rows, cols, shape, values, name=name.partition("/")[2])

    names = list(shapes)
    metabolic = [name for name in names if name.startswith("metabolism/")]
    return OrganismTensors(
        torch.as_tensor(tensors["features"]),
        relations={name.partition("/")[2]: operator(name) for name in names if name.startswith("relation/")},
        metabolism=(
            MetabolismTensors(**{part: operator(f"metabolism/{part}") for part in PARTS})
            if metabolic
            else None
        ),
        similarity=_similarity(tensors) if f"{SIMILARITY}names" in tensors else None,
        native=int(tensors["native"]) if "native" in tensors else None,
    )


def _similarity_tensors(similarity: GeneSimilarity) -> dict[str, Tensor]:
    lists = {name: getattr(similarity, name) for name in NAMES}
    # safetensors stores tensors only: names become the bytes of their JSON.
    names = json.dumps(lists).encode()
    out = {"names": torch.frombuffer(bytearray(names), dtype=torch.uint8)}
    out |= {name: torch.from_numpy(getattr(similarity, name)) for name in ARRAYS}
    return {f"{SIMILARITY}{name}": tensor for name, tensor in out.items()}


def _similarity(tensors: Mapping[str, Tensor]) -> GeneSimilarity:
    names = json.loads(bytes(tensors[f"{SIMILARITY}names"].tolist()))
    parts: dict[str, Any] = {name: tuple(names[name]) for name in NAMES}
    parts |= {name: tensors[f"{SIMILARITY}{name}"].numpy() for name in ARRAYS}
    return GeneSimilarity(**parts)
