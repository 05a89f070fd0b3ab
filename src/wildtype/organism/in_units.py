"""An organism of genes as an organism of units: relations, features and places carried over.

Legend: m genes · n tokens (units, and the genes that are in no unit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy import sparse

from wildtype.errors import DatasetError, GeneSetError
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.genes import IN_NAMES, Coordinates, GeneIndex, systematic
from wildtype.organism.record import OrganismRecord
from wildtype.organism.relations import GeneGraphs, Relation
from wildtype.organism.units import JOINED, Units

Record = TypeVar("Record", bound=OrganismRecord)


def in_units(organism: Record, units: Mapping[str, Sequence[str]]) -> Record:
    """Return an organism of genes with units as its tokens.

    A gene that is in no unit stays a token of its own. Commas, semicolons and blanks in the name of a unit
    become ``+``, since a set of tokens is written with them. Other names of a unit are the one given, the
    joined names of its genes, and the names of a gene that is in no other token. Units of the same genes are
    one token, under the first one's name; the others are its other names. Two units are related where any of
    their genes are, with the largest weight; features are means over the genes that have a value. A unit is
    essential if one of its genes is, and reaches from its first base to its last. The metabolism, whose rules
    name genes, is left out; its features stay.

    Parameters
    ----------
    organism : OrganismRecord
        With m genes.
    units : mapping of str to sequence of str
        Name of a unit to its genes, by any of their names.

    Raises
    ------
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        If a unit has no gene, one that is not known, or one twice; or a unit is named like a gene that is not
        its own.
    DatasetError
        If the organism has units already.
    """
    if organism.units is not None:
        raise DatasetError(
            f"the tokens of organism {organism.name!r} are units already: import its genes anew"
        )
    genes = organism.genes
    tokens, names, same = _tokens(genes, units)
    columns = np.concatenate([np.asarray(token, np.int64) for token in tokens])
    rows = np.repeat(np.arange(len(tokens)), [len(token) for token in tokens])
    ones = np.ones(columns.size, np.float32)
    table = sparse.coo_array((ones, (rows, columns)), shape=(len(tokens), len(genes))).tocsr()
    table.sort_indices()
    made = Units(genes, sparse.csr_array(table))
    essential, dubious = organism.essential, organism.dubious
    return replace(
        organism,
        genes=_index(made, names, same),
        graphs=GeneGraphs(lifted(relation, made) for relation in organism.graphs.values()),
        features=GeneFeatures(_mean(block, made) for block in organism.features.values()),
        metabolism=None,
        essential=None if essential is None else made.table @ essential.astype(np.float32) > 0,
        dubious=None if dubious is None else made.table @ (~dubious).astype(np.float32) == 0,
        coordinates=None if organism.coordinates is None else _spans(organism.coordinates, made),
        units=made,
    )


def _tokens(
    genes: GeneIndex, units: Mapping[str, Sequence[str]]
) -> tuple[list[tuple[int, ...]], list[str], dict[str, list[str]]]:
    """Return the genes of every token, its name, and the names of further units of the same genes."""
    found: dict[tuple[int, ...], str] = {}
    same: dict[str, list[str]] = {}
    for name, members in units.items():
        positions = tuple(genes.find_set(members, what=f"unit {name!r}").tolist())
        if name in genes and not set(genes.find_each(name)) <= set(positions):
            gene = genes.label(genes.find_each(name)[0])
            raise GeneSetError(
                f"unit {name!r} is named like gene {gene}, which it does not hold: rename the unit"
            )
        token = systematic(name)
        first = found.setdefault(positions, token)
        same.setdefault(first, []).extend(text for text in (token, name) if text != first)
    covered = {gene for positions in found for gene in positions}
    alone = [gene for gene in range(len(genes)) if gene not in covered]
    tokens = [*found, *((gene,) for gene in alone)]
    return tokens, [*found.values(), *(genes.names[gene] for gene in alone)], same


def _index(units: Units, names: Sequence[str], same: Mapping[str, Sequence[str]]) -> GeneIndex:
    genes = units.genes
    times = np.bincount(units.table.indices, minlength=len(genes))
    standard: dict[str, str] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    for token, name in enumerate(names):
        here = units.members(token)
        called = [genes.standard.get(gene, gene) for gene in here]
        standard[name] = IN_NAMES.join(called)
        other = [JOINED.join(here), *same.get(name, ()), JOINED.join(called)]
        for gene, standard_name in zip(here, called, strict=True):
            # A gene of several units names none of them alone; such a name is left to `Units.find`.
            if times[genes.find(gene)] == 1:
                other += [gene, standard_name, *genes.aliases.get(gene, ())]
        aliases[name] = tuple(text for text in dict.fromkeys(other) if text not in (name, standard[name]))
        descriptions[name] = "; ".join(
            f"{gene}: {genes.descriptions[gene]}" for gene in here if gene in genes.descriptions
        )
    return GeneIndex(names, standard, aliases, genes.organism, descriptions)


def lifted(relation: Relation, units: Units) -> Relation:
    """Return a relation of genes as the relation of the tokens whose genes are related."""
    sources, targets, weights = relation.endpoints()
    holders = sparse.csc_array(units.table)
    # Every edge of genes becomes one edge per pair of tokens that hold its ends.
    first, second = (np.diff(holders.indptr)[ends] for ends in (sources, targets))
    edge = np.repeat(np.arange(sources.size), first * second)
    place = np.arange(edge.size) - np.repeat(np.cumsum(first * second) - first * second, first * second)
    rows = holders.indices[holders.indptr[sources[edge]] + place // second[edge]]
    columns = holders.indices[holders.indptr[targets[edge]] + place % second[edge]]
    return Relation.from_edges(
        relation.name,
        rows,
        columns,
        len(units),
        weights[edge] if relation.weighted else None,
        directed=relation.directed,
        source=relation.source,
        version=relation.version,
        note=_noted(relation.note, "units are related where any of their genes are"),
        dropped=relation.dropped,
    )


def _noted(note: str, more: str) -> str:
    return f"{note}; {more}" if note else more


def _mean(block: FeatureBlock, units: Units) -> FeatureBlock:
    """Return the mean of every column over the genes of a token that have a value."""
    known = np.isfinite(block.values)
    total = units.table @ np.where(known, block.values, 0.0).astype(np.float64)
    count = units.table @ known.astype(np.float64)
    mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    note = _noted(block.note, "means over the genes of a unit")
    return replace(block, values=mean.astype(np.float32), note=note)


def _spans(places: Coordinates, units: Units) -> Coordinates:
    """Return where tokens lie; not known where no gene's place is, or genes lie on several chromosomes."""
    token, gene = units.table.tocoo().coords
    known = places.known[gene]
    token, gene = token[known], gene[known]
    n = len(units)
    low, high = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64)
    np.minimum.at(low, token, places.chromosome[gene])
    np.maximum.at(high, token, places.chromosome[gene])
    start, end = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(start, token, places.start[gene])
    np.maximum.at(end, token, places.end[gene])
    forward, backward = np.zeros(n, bool), np.zeros(n, bool)
    forward[token[places.strand[gene] > 0]] = True
    backward[token[places.strand[gene] < 0]] = True
    one = low == high
    return Coordinates(
        np.where(one, high, 0),
        np.where(one, start, np.nan),
        np.where(one, end, np.nan),
        np.where(one, forward.astype(np.int8) - backward.astype(np.int8), 0).astype(np.int8),
        places.source,
    )
