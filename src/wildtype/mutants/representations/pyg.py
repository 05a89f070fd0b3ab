"""The reference implementation in torch_geometric: each mutant is a separate graph; batches of such samples.

It is slow and plain on purpose: it defines the node masks of `fast`, which are measured against it. A
sample's ``perturbation_indices`` are rows of its gene features. Removed genes are listed in ``removed_ids``,
their positions in the gene index, with their wild-type features in ``removed_x``; together the two are S. A
sample of `Perturbation` has no features: its indices are positions in the gene index. Needs the extra
``pyg``.

Legend: n genes · S perturbed genes of a mutant · e edges of a relation · B mutants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wildtype.errors import ConfigError, ShapeError
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations.fast import NAMES
from wildtype.mutants.representations.reach import check_genes
from wildtype.mutants.representations.removal import REMOVES, Removal
from wildtype.organism.gene_rules import Rule, parse_rule, rule_genes
from wildtype.organism.pyg import require_pyg

require_pyg()
from torch_geometric.data import Batch, HeteroData  # noqa: E402
from torch_geometric.utils import bipartite_subgraph, k_hop_subgraph, subgraph  # noqa: E402

EdgeType = tuple[str, str, str]
GPR: EdgeType = ("gene", "gpr", "reaction")
STOICHIOMETRY: EdgeType = ("reaction", "stoichiometry", "metabolite")
FOLLOWED = ("perturbation_indices", "removed_ids")
_RAGGED = ("perturbation_indices", "perturbation_kind")


class MutantData(HeteroData):  # type: ignore[misc]
    """One mutant as a heterogeneous graph; in a batch, indices of perturbed genes move with their nodes."""

    def __inc__(self, key: str, value: Any, store: Any = None, *args: Any, **kwargs: Any) -> Any:
        if key == "perturbation_indices":
            # In a disjoint batch, indices shift by the nodes before them; without nodes they are global.
            return store.num_nodes if store.can_infer_num_nodes else 0
        return super().__inc__(key, value, store, *args, **kwargs)


@dataclass(frozen=True, eq=False)
class GraphTensors:
    """A `CellGraph` as tensors that samples share or cut from.

    Attributes
    ----------
    graph : CellGraph
        The wild type.
    x : float [n, f] or None
        Features of the genes.
    edge_index : dict of edge type to int64 [2, e]
        ``("gene", relation, "gene")`` with row 0 the source; gene–reaction and reaction–metabolite edges
        where there is metabolism.
    edge_attr : dict of edge type to (str, float32 tensor)
        ``edge_weight`` [e] of weighted relations, ``edge_attr`` [e, 1] of stoichiometry: the coefficient.
    """

    graph: CellGraph
    x: Tensor | None
    edge_index: dict[EdgeType, Tensor]
    edge_attr: dict[EdgeType, tuple[str, Tensor]]

    @classmethod
    def of(cls, graph: CellGraph, x: Tensor | None = None) -> GraphTensors:
        """Return the tensors of a graph; raises ``ShapeError`` unless ``x`` has a row per gene."""
        if x is not None and len(x) != graph.n:
            raise ShapeError(f"x: received {len(x)} rows, expected one per gene, {graph.n}")
        index: dict[EdgeType, Tensor] = {}
        attr: dict[EdgeType, tuple[str, Tensor]] = {}
        for name, relation in graph.relations.items():
            rows, cols, weights = relation.endpoints()
            index["gene", name, "gene"] = torch.from_numpy(np.stack([rows, cols]))
            if relation.weighted:
                attr["gene", name, "gene"] = ("edge_weight", torch.from_numpy(weights))
        if graph.metabolism is not None:
            rules, network = graph.gpr.tocoo(), graph.stoichiometry.tocoo()
            index[GPR] = torch.from_numpy(np.stack([rules.col, rules.row]).astype(np.int64))
            index[STOICHIOMETRY] = torch.from_numpy(np.stack([network.col, network.row]).astype(np.int64))
            attr[STOICHIOMETRY] = ("edge_attr", torch.from_numpy(network.data)[:, None])
        return cls(graph, x, index, attr)

    @cached_property
    def union(self) -> Tensor:
        """All gene–gene edges in both directions without repeats, int64 [2, e]."""
        n = self.graph.n
        codes = [torch.empty(0, dtype=torch.int64)]
        for (source, _, target), (a, b) in self.edge_index.items():
            if source == target == "gene":
                codes += [a * n + b, b * n + a]
        unique = torch.unique(torch.cat(codes))
        return torch.stack([unique // n, unique % n])

    @cached_property
    def numbers(self) -> Tensor:
        """0, 1, … up to the larger number of reactions and metabolites, int64."""
        return torch.arange(max(self.graph.stoichiometry.shape))

    @cached_property
    def rules(self) -> tuple[Rule | None, ...]:
        """The gene rule of every reaction as a tree; None where there is none."""
        return tuple(parse_rule(text) for text in self._texts)

    def alive(self, absent: set[str]) -> Tensor:
        """Return the reactions int64 [r'] whose rule holds without some genes, evaluated one by one."""
        if self.graph.rule == "all":
            keep = [not rule_genes(text) & absent for text in self._texts]
        else:
            keep = [rule is None or _holds(rule, absent) for rule in self.rules]
        return torch.tensor(keep, dtype=torch.bool).nonzero().flatten()

    @property
    def _texts(self) -> tuple[str, ...]:
        return self.graph.metabolism.rules if self.graph.metabolism else ()


class Reference:
    """Makes the torch_geometric sample of a mutant.

    Parameters
    ----------
    name : str
        One of the names of representations.
    wiring : GraphTensors
        The wild type's tensors.
    hops : int
        k of ``neighbor_subgraph``.
    removes : iterable of str
        Kinds of perturbation that take a gene out of the graph.

    Raises
    ------
    ConfigError
        If the name or a kind is unknown.
    """

    def __init__(
        self, name: str, wiring: GraphTensors, *, hops: int = 1, removes: Iterable[str] = REMOVES
    ) -> None:
        if name not in NAMES:
            raise ConfigError(f"{name!r} is not a representation of mutants; known: {', '.join(NAMES)}")
        self.name = name
        self.wiring = wiring
        self.hops = hops
        self.removal = Removal(removes, wiring.graph.foreign)

    def samples(self, batch: MutantBatch) -> list[MutantData]:
        """Return one sample per mutant of a batch."""
        return [self.sample(batch, i) for i in range(len(batch))]

    def sample(self, batch: MutantBatch, i: int) -> MutantData:
        """Return mutant i of a batch, with its ``value``, ``condition`` and ``phenotype``, each [1].

        Raises
        ------
        GeneSetError
            If a perturbed gene is outside the gene index.
        """
        a, b = int(batch.offsets[i]), int(batch.offsets[i + 1])
        gene, kind = batch.gene[a:b], batch.kind[a:b]
        check_genes(gene.numpy(), self.wiring.graph.n)
        data = MutantData()
        data.value, data.condition, data.phenotype = (
            column[i : i + 1] for column in (batch.value, batch.condition, batch.phenotype)
        )
        data["gene"].perturbation_indices = gene
        data["gene"].perturbation_kind = kind
        if self.name == "perturbation":
            return data
        out = torch.from_numpy(self.removal.marks(kind.numpy()))
        foreign = self.removal.foreign
        if self.name == "unperturbed":
            if len(foreign):  # the wild type has none of them
                self._masked(data, torch.from_numpy(foreign))
            else:
                self._whole(data)
            return data
        lacks = self.removal.lacking(gene.numpy(), np.array([0, len(gene)]))[0]
        if self.name == "lazy_subgraph":
            self._masked(data, torch.cat([gene[out], torch.from_numpy(lacks)]))
        else:
            self._cut(data, gene, kind, out, torch.from_numpy(lacks))
        return data

    def _whole(self, data: MutantData) -> None:
        """The wild type by reference: no tensor is copied.

        Nodes come before edges, here and below: ``data["reaction"]`` means a relation of that name if there
        are no such nodes yet.
        """
        wiring, metabolism = self.wiring, self.wiring.graph.metabolism
        if wiring.x is None:
            data["gene"].num_nodes = wiring.graph.n
        else:
            data["gene"].x = wiring.x
        if metabolism is not None:
            data["reaction"].node_ids = wiring.numbers[: len(metabolism.reactions)]
            data["metabolite"].node_ids = wiring.numbers[: len(metabolism.metabolites)]
        for kind, index in wiring.edge_index.items():
            data[kind].edge_index = index
            if kind in wiring.edge_attr:
                name, values = wiring.edge_attr[kind]
                data[kind][name] = values

    def _masked(self, data: MutantData, removed: Tensor) -> None:
        """The wild type by reference and, per node type and edge type, what is kept."""
        self._whole(data)
        graph = self.wiring.graph
        keep = {"gene": torch.ones(graph.n, dtype=torch.bool)}
        keep["gene"][removed] = False
        if graph.metabolism is not None:
            keep["reaction"] = torch.zeros(len(graph.metabolism.reactions), dtype=torch.bool)
            keep["reaction"][self._alive(removed)] = True
            keep["metabolite"] = torch.ones(len(graph.metabolism.metabolites), dtype=torch.bool)
        for node, mask in keep.items():
            data[node].mask = mask
        for (source, name, target), (a, b) in self.wiring.edge_index.items():
            data[source, name, target].mask = keep[source][a] & keep[target][b]

    def _cut(self, data: MutantData, gene: Tensor, kind: Tensor, out: Tensor, lacks: Tensor) -> None:
        """Kept nodes numbered anew, with ``node_ids`` their numbers in the wild type, and their edges."""
        wiring, graph = self.wiring, self.wiring.graph
        kept = torch.ones(graph.n, dtype=torch.bool)
        if self.name == "neighbor_subgraph":
            near = k_hop_subgraph(gene, self.hops, wiring.union, num_nodes=graph.n)[0]
            kept = torch.zeros(graph.n, dtype=torch.bool)
            kept[near] = True
        removed = torch.cat([gene[out], lacks])
        kept[removed] = False
        nodes = {"gene": kept.nonzero().flatten()}
        if graph.metabolism is not None:
            nodes["reaction"] = self._alive(removed)
            nodes["metabolite"] = wiring.numbers[: len(graph.metabolism.metabolites)]
        for node, ids in nodes.items():
            data[node].node_ids = ids
        data["gene"].perturbation_indices = torch.searchsorted(nodes["gene"], gene[~out])
        data["gene"].perturbation_kind = kind[~out]
        data["gene"].removed_ids, data["gene"].removed_kind = gene[out], kind[out]
        if wiring.x is not None:
            data["gene"].x, data["gene"].removed_x = wiring.x[nodes["gene"]], wiring.x[gene[out]]
        for edge, index in wiring.edge_index.items():
            source, _, target = edge
            name, values = wiring.edge_attr.get(edge, ("", None))
            if source == target:
                index, values = subgraph(nodes["gene"], index, values, relabel_nodes=True, num_nodes=graph.n)
            else:
                index, values = bipartite_subgraph(
                    (nodes[source], nodes[target]), index, values, relabel_nodes=True, size=self._size(edge)
                )
            data[edge].edge_index = index
            if values is not None:
                data[edge][name] = values

    def _size(self, edge: EdgeType) -> tuple[int, int]:
        """Numbers of nodes in the wild type at both ends of a metabolic edge type."""
        metabolites, reactions = self.wiring.graph.stoichiometry.shape
        return (self.wiring.graph.n, reactions) if edge == GPR else (reactions, metabolites)

    def _alive(self, removed: Tensor) -> Tensor:
        names = self.wiring.graph.genes.names
        return self.wiring.alive({names[g] for g in removed.tolist()})


def _holds(rule: Rule, absent: set[str]) -> bool:
    if isinstance(rule, str):
        return rule not in absent
    operator, operands = rule
    values = (_holds(operand, absent) for operand in operands)
    return all(values) if operator == "and" else any(values)


def pyg_batch(samples: Sequence[MutantData]) -> Any:
    """Return samples as one disjoint graph, a torch_geometric ``Batch``; ``to_data_list`` is its inverse.

    ``perturbation_indices_batch`` and ``removed_ids_batch`` give the mutant of each perturbed gene;
    ``perturbation_indices`` are rows of the batch's gene features.

    Raises
    ------
    ShapeError
        If there are no samples.
    """
    _refuse_none(samples)
    return Batch.from_data_list(list(samples), follow_batch=list(FOLLOWED))


def lazy_batch(samples: Sequence[MutantData]) -> Any:
    """Return samples of ``lazy_subgraph`` as one shared graph and the masks of all mutants, a ``HeteroData``.

    Features and edges are those of the first sample, by reference. Masks are concatenated mutant by mutant:
    ``mask`` [B·n] of nodes, [B·e] of edges. ``perturbation_indices`` are rows of the shared features, and
    ``perturbation_indices_batch`` gives their mutants; ``num_graphs`` is B.

    Raises
    ------
    ShapeError
        If there are no samples, they have no masks, or they do not share their edges.
    """
    _refuse_none(samples)
    out, first = HeteroData(), samples[0]
    for store in first.stores:
        key = store._key
        into = out if key is None else out[key]
        for name, value in store.items():
            if name in _RAGGED or name == "mask" or key is None:
                into[name] = torch.cat([_stored(sample, key)[name] for sample in samples])
            else:
                into[name] = value
            if name == "edge_index" and any(
                sample[key].edge_index.data_ptr() != value.data_ptr() for sample in samples
            ):
                raise ShapeError(f"the samples do not share the edges {key}: make them from one wiring")
        if key is not None and "mask" not in store:
            raise ShapeError(f"the samples have no mask of {key}: make them as lazy_subgraph")
    counts = torch.tensor([len(sample["gene"].perturbation_indices) for sample in samples])
    out["gene"].perturbation_indices_batch = torch.repeat_interleave(torch.arange(len(samples)), counts)
    out.num_graphs = len(samples)
    return out


def _stored(sample: MutantData, key: Any) -> Any:
    return sample if key is None else sample[key]


def _refuse_none(samples: Sequence[MutantData]) -> None:
    if not samples:
        raise ShapeError("samples: received none, expected at least one mutant")
