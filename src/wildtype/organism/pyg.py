"""An organism as torch_geometric's `HeteroData`, and back without loss.

Nodes: ``gene``, and with metabolism ``reaction`` and ``metabolite``. Edges: ``("gene", relation, "gene")``
with row 0 the source, ``("gene", "gpr", "reaction")`` where a rule lists a gene, and ``("reaction",
"stoichiometry", "metabolite")``. Names, sources and rules are stored as lists. Needs the extra ``pyg``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from wildtype.errors import ConfigError, DatasetError, WildtypeError, reason_of
from wildtype.organism.features import BASIS, FeatureBlock, GeneFeatures
from wildtype.organism.genes import Coordinates, GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.record import OrganismRecord
from wildtype.organism.relations import Appended, GeneGraphs, Relation

Record = TypeVar("Record", bound=OrganismRecord)

GPR = ("gene", "gpr", "reaction")
STOICHIOMETRY = ("reaction", "stoichiometry", "metabolite")
_RELATION = ("directed", "weighted", "source", "version", "note", "dropped", "measured")


def require_pyg() -> None:
    """Raise ``ConfigError`` unless torch_geometric is installed."""
    if find_spec("torch_geometric") is None:
        raise ConfigError("torch_geometric is not installed: install the extra, pip install 'wildtype[pyg]'")


def to_pyg(organism: OrganismRecord) -> Any:
    """Return an organism as a ``torch_geometric.data.HeteroData``.

    Gene nodes have ``x_<block>`` [n, f] per feature block (NaN: no value), described in ``feature_blocks``,
    ``essential``, ``dubious`` and ``foreign`` [n] where known, and lists of names. A relation has
    ``edge_index`` [2, e], ``edge_weight`` [e] if it is weighted, and its source, version and note.
    Stoichiometric coefficients are ``edge_attr`` [e, 1] in float64.

    Raises
    ------
    ConfigError
        If torch_geometric is not installed.
    """
    require_pyg()
    import torch
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data.organism, data.description = organism.name, organism.description
    genes, node = organism.genes, data["gene"]
    record = genes.to_json()
    node.num_nodes = len(genes)
    node.names, node.index_organism, node.sha256 = record["names"], record["organism"], record["sha256"]
    node.standard_names = [genes.standard.get(name, "") for name in genes.names]
    node.aliases = [list(genes.aliases.get(name, ())) for name in genes.names]
    node.descriptions = [genes.descriptions.get(name, "") for name in genes.names]
    node.feature_blocks = []
    for block in organism.features.values():
        node[f"x_{block.name}"] = torch.from_numpy(block.values.copy())
        node.feature_blocks.append(block.facts)
        if block.basis is not None:
            node[f"mean_{block.name}"] = torch.from_numpy(block.basis.mean.copy())
            node[f"loadings_{block.name}"] = torch.from_numpy(block.basis.loadings.copy())
    node.appended = torch.from_numpy(organism.appended.genes.copy())
    data.valid_pairs = {
        name: torch.from_numpy(pairs.copy()) for name, pairs in organism.appended.valid.items()
    }
    if organism.essential is not None:
        node.essential = torch.from_numpy(organism.essential.copy())
    if organism.foreign is not None:
        node.foreign = torch.from_numpy(organism.foreign.copy())
    if organism.dubious is not None:
        node.dubious = torch.from_numpy(organism.dubious.copy())
    if organism.coordinates is not None:
        places = organism.coordinates
        node.chromosome, node.start, node.end, node.strand = (
            torch.from_numpy(column.copy())
            for column in (places.chromosome, places.start, places.end, places.strand)
        )
        node.coordinates_source = places.source
    if organism.metabolism is not None:
        _add_nodes(data, organism.metabolism)
    for relation in organism.graphs.values():
        edges = data["gene", relation.name, "gene"]
        rows, cols, _ = relation.endpoints()
        edges.edge_index = torch.from_numpy(np.stack([rows, cols]))
        if relation.weighted:
            edges.edge_weight = torch.from_numpy(relation.adjacency.data.copy())
        for name in _RELATION:
            edges[name] = relation.facts[name]
    if organism.metabolism is not None:
        rules, network = organism.metabolism.gpr(genes).tocoo(), organism.metabolism.stoichiometry.tocoo()
        data[GPR].edge_index = torch.from_numpy(np.stack([rules.col, rules.row]).astype(np.int64))
        data[STOICHIOMETRY].edge_index = torch.from_numpy(
            np.stack([network.col, network.row]).astype(np.int64)
        )
        data[STOICHIOMETRY].edge_attr = torch.from_numpy(network.data.copy())[:, None]
    return data


def _coordinates(node: Any) -> Coordinates:
    columns = {name: node[name].numpy(force=True) for name in ("chromosome", "start", "end", "strand")}
    return Coordinates(**columns, source=node.coordinates_source)


def _add_nodes(data: Any, network: Metabolism) -> None:
    """Add reactions and metabolites, before any edges: a relation may be called ``reaction``, too."""
    import torch

    reaction, metabolite = data["reaction"], data["metabolite"]
    reaction.num_nodes, metabolite.num_nodes = len(network.reactions), len(network.metabolites)
    reaction.names, metabolite.names = list(network.reactions), list(network.metabolites)
    reaction.rules = list(network.rules)
    for name, values in (
        ("lower", network.lower),
        ("upper", network.upper),
        ("objective", network.objective),
    ):
        reaction[name] = torch.from_numpy(values.copy())


def from_pyg(data: Any, kind: type[Record]) -> Record:
    """Return the organism, as a record of ``kind``, that ``to_pyg`` exported.

    The gene–reaction edges are not read, because the gene rules hold more information.

    Raises
    ------
    DatasetError
        If a part is missing or does not fit; the message names it.
    GeneSetError
        If the gene names do not match their recorded hash.
    SourceError
        If the parts of the metabolism do not fit each other.
    """
    try:
        node = data["gene"]
        pairs = list(zip(node.names, node.standard_names, node.aliases, strict=True))
        genes = GeneIndex.from_json(
            {
                "names": node.names,
                "standard": {name: other for name, other, _ in pairs if other},
                "aliases": {name: others for name, _, others in pairs if others},
                "descriptions": dict(zip(node.names, node.descriptions, strict=True)),
                "organism": node.index_organism,
                "sha256": node.sha256,
            }
        )
        return kind(
            name=data.organism,
            genes=genes,
            graphs=GeneGraphs(
                _relation(data[kind], kind[1], len(genes))
                for kind in data.edge_types
                if kind[0] == kind[2] == "gene"
            ),
            features=GeneFeatures(
                FeatureBlock.from_facts(
                    block,
                    node[f"x_{block['name']}"].numpy(force=True),
                    {
                        part: node[f"{part}_{block['name']}"].numpy(force=True)
                        for part in BASIS
                        if block["basis"]
                    },
                )
                for block in node.feature_blocks
            ),
            metabolism=_metabolism(data) if "reaction" in data.node_types else None,
            essential=node.essential.numpy(force=True) if "essential" in node else None,
            description=data.description,
            appended=Appended(
                node.appended.numpy(force=True),
                {name: pairs.numpy(force=True) for name, pairs in data.valid_pairs.items()},
            ),
            coordinates=_coordinates(node) if "chromosome" in node else None,
            dubious=node.dubious.numpy(force=True) if "dubious" in node else None,
            foreign=node.foreign.numpy(force=True) if "foreign" in node else None,
        )
    except (AttributeError, KeyError, ValueError, TypeError, IndexError, RuntimeError) as error:
        if isinstance(error, WildtypeError):
            raise
        raise DatasetError(
            f"this HeteroData is no organism as to_pyg writes it ({reason_of(error)}): export it again"
        ) from error


def _relation(edges: Any, name: str, n: int) -> Relation:
    rows, cols = edges.edge_index.numpy(force=True)
    weights = edges.edge_weight.numpy(force=True) if edges.weighted else np.ones(len(rows), dtype=np.float32)
    adjacency = sparse.csr_array((weights, (rows, cols)), shape=(n, n))
    # The sparse constructor adds up repeated edges without a message, so their number shows in nnz alone.
    if adjacency.nnz < len(rows):
        raise DatasetError(f"relation {name!r} holds an edge twice: coalesce it")
    adjacency.sort_indices()
    if not edges.directed and abs(adjacency - adjacency.T).max():
        raise DatasetError(f"relation {name!r} is undirected but lacks one direction of an edge: add it")
    return Relation(name, adjacency, **{fact: edges[fact] for fact in _RELATION if fact in edges})


def _metabolism(data: Any) -> Metabolism:
    reaction, metabolite = data["reaction"], data["metabolite"]
    columns, rows = data[STOICHIOMETRY].edge_index.numpy(force=True)
    coefficients = data[STOICHIOMETRY].edge_attr.numpy(force=True)[:, 0]
    shape = (len(metabolite.names), len(reaction.names))
    return Metabolism.build(
        reaction.names,
        metabolite.names,
        sparse.csr_array((coefficients, (rows, columns)), shape=shape),
        reaction.lower.numpy(force=True),
        reaction.upper.numpy(force=True),
        reaction.objective.numpy(force=True),
        reaction.rules,
    )
