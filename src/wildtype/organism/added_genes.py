"""A gene that the organism does not have, appended at the end with its features, reactions and edges.

Positions and values of the existing genes do not change. Features of the new gene follow from its sequence,
reactions and edges where these are given, and are missing otherwise. Its pairs in a relation count as known
where they are given or follow from its reactions.

Legend: n genes before · the new gene is number n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError, GeneSetError
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.gene_rules import rule_genes
from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolic_features import metabolic_features
from wildtype.organism.metabolic_graphs import metabolic_graphs
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.new_reactions import NewReaction, with_new_reactions
from wildtype.organism.record import OrganismRecord
from wildtype.organism.relations import Appended, GeneGraphs, Relation
from wildtype.organism.sequence_features import describe_sequence

Record = TypeVar("Record", bound=OrganismRecord)
INCOMING = ".in"
"""End of the name of a directed relation whose edges lead to the new gene."""
Edges = Mapping[str, Sequence[str | tuple[str, float]]]
Values = Mapping[str, Mapping[str, float]]
"""Values by feature block and column."""


@dataclass
class _Pairs:
    """Known pairs of the new gene in one relation: source, target, weight (0: known not to be related)."""

    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    weights: NDArray[np.float32]


def add_gene(
    organism: Record,
    name: str,
    *,
    sequence: str | None = None,
    features: Mapping[str, Any] | None = None,
    reactions: Sequence[str | tuple[str, str] | NewReaction] = (),
    edges: Edges | None = None,
) -> Record:
    """Return the organism with one more gene, at the end.

    Parameters
    ----------
    organism : OrganismRecord
        With n genes.
    name : str
        Name of the new gene; no other gene may have it.
    sequence : str, optional
        Its coding sequence or its protein (`describe_sequence`), for the blocks made of sequences.
    features : mapping, optional
        Block to its values: a sequence in the order of the block's columns, or a mapping of columns. They
        take precedence over derived values.
    reactions : sequence, optional
        Reactions that the gene's product can carry out: the id of a reaction whose rule it joins as one more
        alternative, or the id and what the alternative needs, as in ``("PFK", "newA and b3916")``; or a
        ``NewReaction``, which may have metabolites that the network lacks. The gene's relations that are read
        off the network are then known, with every gene: edges and their absence.
    edges : mapping, optional
        Relation to genes, or pairs of gene and weight. Weight 0: known not to be related. In a directed
        relation edges lead from the new gene; ``<relation>.in`` lists those that lead to it.

    Raises
    ------
    GeneSetError
        If the name is taken or empty.
    UnknownGeneError, AmbiguousGeneError
        If an edge's gene is not known.
    DatasetError
        If a block, column, relation, weight or reaction does not fit.
    SourceError
        If the text is not a sequence, or a rule is not well formed.
    """
    if not name.strip() or name in organism.genes:
        why = (
            f"is a name of {organism.genes.label(organism.genes.find(name))}" if name.strip() else "is empty"
        )
        raise GeneSetError(
            f"{name!r} cannot be added to organism {organism.name!r} because it {why}: choose another name"
        )
    before = organism.genes
    genes = before.extended([name])
    metabolism = organism.metabolism
    if reactions:
        if metabolism is None:
            raise DatasetError(
                f"{name!r} is given reactions, and organism {organism.name!r} has no "
                f"metabolism: leave them out"
            )
        new = [entry for entry in reactions if isinstance(entry, NewReaction)]
        joined = [entry for entry in reactions if not isinstance(entry, NewReaction)]
        metabolism = _with_reactions(metabolism, name, joined) if joined else metabolism
        metabolism = with_new_reactions(metabolism, name, new) if new else metabolism
    known = _given_edges(organism, name, edges or {})
    if reactions and metabolism is not None and organism.metabolism is not None:
        for relation, pairs in _metabolic_pairs(organism, metabolism, genes).items():
            known[relation] = _merged(pairs, known.get(relation), len(genes))
    graphs = GeneGraphs(
        _wider(relation, known.get(relation.name), len(genes)) for relation in organism.graphs.values()
    )
    derived: dict[str, Mapping[str, float]] = {}
    if sequence is not None:
        derived |= describe_sequence(sequence, what=f"the sequence of {name!r}")
        if not derived.keys() & organism.features.keys():
            raise DatasetError(
                f"{name!r} is given a sequence, and organism {organism.name!r} has no feature block made of "
                f"sequences ({', '.join(derived)}): leave it out, or see Organism.with_sequences"
            )
    if reactions and metabolism is not None:
        derived |= {
            block.name: dict(zip(block.columns, block.values[-1].tolist(), strict=True))
            for block in metabolic_features(metabolism, genes)
            if block.comparable
        }
    derived["degrees"] = _degrees(graphs, known)
    given = _given_features(organism, name, features or {})
    # The wild type lives without the new gene, so its deletion is not lethal.
    essential = None if organism.essential is None else np.append(organism.essential, False)
    dubious = None if organism.dubious is None else np.append(organism.dubious, False)
    foreign = np.zeros(len(before), bool) if organism.foreign is None else organism.foreign
    places = None if organism.coordinates is None else organism.coordinates.extended(1)
    valid = {
        relation: np.stack([pairs.rows, pairs.cols]) for relation, pairs in known.items() if pairs.rows.size
    }
    old = organism.appended
    return replace(
        organism,
        genes=genes,
        graphs=graphs,
        features=GeneFeatures(
            replace(block, values=np.vstack([block.values, _row(block, derived, given)[None]]))
            for block in organism.features.values()
        ),
        metabolism=metabolism,
        essential=essential,
        coordinates=places,
        dubious=dubious,
        units=None if organism.units is None else organism.units.extended([name]),
        foreign=np.append(foreign, True),
        appended=Appended(
            np.append(old.genes, len(before)),
            {
                relation: np.concatenate(
                    [x for x in (old.valid.get(relation), valid.get(relation)) if x is not None], axis=1
                )
                for relation in dict.fromkeys((*old.valid, *valid))
            },
        ),
    )


def _with_reactions(
    metabolism: Metabolism, name: str, reactions: Sequence[str | tuple[str, str]]
) -> Metabolism:
    """Return the network with one more alternative in the rules of some reactions."""
    rules = list(metabolism.rules)
    place = {reaction: i for i, reaction in enumerate(metabolism.reactions)}
    for entry in reactions:
        reaction, needs = (entry, name) if isinstance(entry, str) else entry
        if reaction not in place:
            raise DatasetError(
                f"{name!r} is given the reaction {reaction!r}, which is not one of the network's "
                f"{len(place):,}: use its ids, as in {metabolism.reactions[0]!r}"
            )
        if name not in rule_genes(needs):
            raise DatasetError(
                f"{name!r} is given the reaction {reaction!r} by the alternative {needs!r}, which does not "
                f"name it: add it with and"
            )
        rule = rules[place[reaction]]
        if not rule:
            raise DatasetError(
                f"{name!r} is given the reaction {reaction!r}, which has no gene rule and so runs in every "
                f"cell: leave it out"
            )
        rules[place[reaction]] = f"({rule}) or ({needs})"
    m = metabolism
    return Metabolism.build(m.reactions, m.metabolites, m.stoichiometry, m.lower, m.upper, m.objective, rules)


def _metabolic_pairs(organism: OrganismRecord, metabolism: Metabolism, genes: GeneIndex) -> dict[str, _Pairs]:
    """Return all pairs of the new gene in the relations that were read off the network, edges and none."""
    assert organism.metabolism is not None
    n = len(genes) - 1
    # Read off twice: a relation that no longer equals the network's own was edited and is left alone.
    before, wider = metabolic_graphs(organism.metabolism, organism.genes), metabolic_graphs(metabolism, genes)
    first = int(organism.appended.genes.min(initial=n))  # of genes appended before, not all is known
    out = {}
    for name, relation in wider.items():
        if name not in organism.graphs or not _same_pattern(organism.graphs[name], before[name], first):
            continue
        others = np.arange(n)
        rows = np.concatenate([np.full(n, n), others])
        cols = np.concatenate([others, np.full(n, n)])
        weights = np.concatenate(
            [relation.adjacency[[n]].toarray()[0, :n], relation.transpose[[n]].toarray()[0, :n]]
        )
        out[name] = _Pairs(rows, cols, weights.astype(np.float32))
    return out


def _same_pattern(a: Relation, b: Relation, first: int) -> bool:
    """Return whether two relations have the same edges among the first genes."""
    x, y = (sparse.csr_array(r.adjacency[:first][:, :first]) for r in (a, b))
    return x.nnz == y.nnz and bool((x.indptr == y.indptr).all() and (x.indices == y.indices).all())


def _given_edges(organism: OrganismRecord, name: str, edges: Edges) -> dict[str, _Pairs]:
    """Return the pairs that were given, by relation."""
    n = len(organism.genes)
    found: dict[str, dict[tuple[int, int], float]] = {}
    for key, entries in edges.items():
        incoming = key not in organism.graphs and key.endswith(INCOMING)
        relation = organism.graphs[key.removesuffix(INCOMING) if incoming else key]
        if incoming and not relation.directed:
            raise DatasetError(
                f"relation {relation.name!r} is not directed: write {relation.name!r}, not {key!r}"
            )
        pairs = found.setdefault(relation.name, {})
        for entry in entries:
            gene, weight = (entry, 1.0) if isinstance(entry, str) else entry
            if not np.isfinite(weight) or weight < 0 or not (relation.weighted or weight in (0, 1)):
                allowed = "a number from 0" if relation.weighted else "1, or 0 for no edge: it has no weights"
                raise DatasetError(
                    f"{name!r} is given weight {weight!r} to {gene!r} in relation {relation.name!r}, "
                    f"expected {allowed}"
                )
            other = organism.genes.find(gene)
            ends = [(other, n)] if incoming else [(n, other)]
            for pair in ends if relation.directed else [(n, other), (other, n)]:
                if pairs.setdefault(pair, float(weight)) != weight:
                    raise DatasetError(
                        f"{name!r} is given {gene!r} twice in relation {relation.name!r}, with weights "
                        f"{pairs[pair]:g} and {weight:g}: give one"
                    )
    out = {}
    for relation_name, known in found.items():
        ends_of = np.array(list(known), dtype=np.int64).reshape(-1, 2)
        out[relation_name] = _Pairs(ends_of[:, 0], ends_of[:, 1], np.array(list(known.values()), np.float32))
    return out


def _merged(derived: _Pairs, given: _Pairs | None, n: int) -> _Pairs:
    """Return derived pairs, with given ones in place of derived ones where both exist."""
    if given is None:
        return derived
    rest = ~np.isin(derived.rows * n + derived.cols, given.rows * n + given.cols)
    return _Pairs(
        np.concatenate([derived.rows[rest], given.rows]),
        np.concatenate([derived.cols[rest], given.cols]),
        np.concatenate([derived.weights[rest], given.weights]),
    )


def _wider(relation: Relation, pairs: _Pairs | None, n: int) -> Relation:
    """Return a relation over one gene more, with its known edges; no other edge changes."""
    rows, cols, weights = relation.endpoints()
    if pairs is not None:
        there = pairs.weights > 0
        rows = np.concatenate([rows, pairs.rows[there]])
        cols = np.concatenate([cols, pairs.cols[there]])
        weights = np.concatenate([weights, pairs.weights[there]])
    adjacency = sparse.coo_array((weights, (rows, cols)), shape=(n, n)).tocsr()
    adjacency.sort_indices()
    return replace(relation, adjacency=adjacency)


def _degrees(graphs: GeneGraphs, known: Mapping[str, _Pairs]) -> dict[str, float]:
    """Return the new gene's columns of the block ``degrees``, of the relations in which pairs are known."""
    out = {}
    for name in known:
        relation = graphs[name]
        degree = float(np.log1p(np.diff(relation.adjacency.indptr)[-1]))
        if relation.directed:
            out[f"{name}.out"] = degree
            out[f"{name}{INCOMING}"] = float(np.log1p(np.diff(relation.transpose.indptr)[-1]))
        else:
            out[name] = degree
    return out


def _given_features(organism: OrganismRecord, name: str, features: Mapping[str, Any]) -> Values:
    """Return values by block and column, after checking them."""
    out: dict[str, Mapping[str, float]] = {}
    for block_name, values in features.items():
        block = organism.features[block_name]
        if not isinstance(values, Mapping):
            row = np.asarray(values, dtype=np.float64).reshape(-1)
            if len(row) != len(block.columns):
                raise DatasetError(
                    f"{name!r} is given {len(row)} values of feature block {block_name!r}, which has "
                    f"{len(block.columns)} columns: give as many, or a mapping of columns"
                )
            values = dict(zip(block.columns, row.tolist(), strict=True))
        unknown = [column for column in values if column not in block.columns]
        if unknown:
            raise DatasetError(
                f"{name!r} is given the column {unknown[0]!r} of feature block {block_name!r}, which has "
                f"{', '.join(block.columns[:8])}{', …' if len(block.columns) > 8 else ''}"
            )
        out[block_name] = values
    return out


def _row(block: FeatureBlock, derived: Values, given: Values) -> NDArray[np.float32]:
    """Return the new gene's row of a block [f]; NaN where nothing is known."""
    known = dict(derived.get(block.name, {}))
    if known and block.basis is not None:
        known = dict(zip(block.columns, block.basis.project(known).tolist(), strict=True))
    known |= given.get(block.name, {})
    return np.array([known.get(column, np.nan) for column in block.columns], dtype=np.float32)
