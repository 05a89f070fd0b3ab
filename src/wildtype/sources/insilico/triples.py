"""Triples that may well interact as three, drawn by what gene rules, singles and doubles say.

Legend: n genes · p pairs · t triples · r reactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.organism import Metabolism
from wildtype.organism.metabolic_graphs import complexes_of
from wildtype.seeds import generator

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STRATA = {
    "rule": "three genes of one reaction's rule",
    "neighbours": "a gene and two that it interacts with by at least 0.01",
    "rerouted": "a pair and a gene that takes away a reaction which carries flux in the double mutant's "
    "optimum, but in none of the wild type's and the single mutants'",
    "query": "a pair that interacts by at least 0.01 and a gene with flux in the wild type",
    "uniform": "any three viable genes",
}


@dataclass(frozen=True)
class TripleSizes:
    """How many triples are drawn by each rule of ``STRATA``; fewer where there are fewer.

    Raises
    ------
    ConfigError
        If a number is negative or not whole.
    """

    rule: int = 1_500
    neighbours: int = 1_500
    rerouted: int = 1_500
    query: int = 1_000
    uniform: int = 500

    def __post_init__(self) -> None:
        for name in STRATA:
            value = getattr(self, name)
            if value != int(value) or value < 0:
                raise ConfigError(f"{name} is {value}: give a whole number of triples")


@dataclass(frozen=True, eq=False)
class DrawnTriples:
    """Triples of several strata.

    Attributes
    ----------
    triples : int64 [T, 3]
        Ascending positions of viable genes, no triple twice.
    stratum : int64 [T]
        Which of ``STRATA`` each was drawn by; the first that drew it.
    possible : dict of str to int
        How many different triples a stratum could be drawn from; for those that were not listed, none.
    """

    triples: Ints
    stratum: Ints
    possible: dict[str, int]


def rule_triples(metabolism: Metabolism, columns: Ints, viable: Bools) -> Ints:
    """Return all triples of viable genes that the complexes of one reaction hold, int64 [T, 3], ascending.

    ``columns`` [n] is ``metabolism.gene_columns``.
    """
    place = np.full(len(metabolism.genes), -1, np.int64)
    place[columns[columns >= 0]] = np.flatnonzero(columns >= 0)
    found: set[tuple[int, ...]] = set()
    for complexes in complexes_of(metabolism):
        genes = place[np.unique(np.concatenate(complexes))]
        genes = np.sort(genes[(genes >= 0) & viable[genes]])
        found.update(combinations(genes.tolist(), 3))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


def neighbour_triples(pairs: Ints, interacts: Bools) -> Ints:
    """Return all triples of which two pairs interact, int64 [T, 3], ascending; ``pairs`` [P, 2]."""
    partners: dict[int, list[int]] = {}
    for a, b in pairs[interacts].tolist():
        partners.setdefault(a, []).append(b)
        partners.setdefault(b, []).append(a)
    found = {
        tuple(sorted((gene, *two))) for gene, others in partners.items() for two in combinations(others, 2)
    }
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


def rerouted_triples(pairs: Ints, fresh: Bools, lost_by: list[Ints], viable: Bools) -> Ints:
    """Return all triples of the stratum ``rerouted``, int64 [T, 3], ascending.

    Parameters
    ----------
    pairs : int64 [P, 2]
        Double mutants that grow.
    fresh : bool [P, R]
        Reactions with flux in the double mutant's optimum but in none of the wild type's and its parents'.
    lost_by : list of int64
        The genes whose deletion alone kills each reaction, R of them.
    viable : bool [n]
        Genes that are not essential.
    """
    found: set[tuple[int, ...]] = set()
    for at in np.flatnonzero(fresh.any(axis=1)).tolist():
        a, b = pairs[at].tolist()
        third = {gene for r in np.flatnonzero(fresh[at]).tolist() for gene in lost_by[r].tolist()}
        found.update(tuple(sorted((a, b, gene))) for gene in third - {a, b} if viable[gene])
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


def draw_enriched_triples(
    sizes: TripleSizes, listed: dict[str, Ints], hot: Ints, viable: Bools, with_flux: Bools, seed: int
) -> DrawnTriples:
    """Draw the strata one after the other; no triple twice, none simulated before it is drawn.

    Parameters
    ----------
    sizes : TripleSizes
        How many of each.
    listed : dict of str to int64 [T, 3]
        All triples of the strata ``rule``, ``neighbours`` and ``rerouted``.
    hot : int64 [P, 2]
        Pairs that interact.
    viable, with_flux : bool [n]
        Genes that are not essential; genes with flux in the wild type.
    seed : int
        Seed of the draws.
    """
    seen: dict[tuple[int, ...], int] = {}
    possible = {name: len(triples) for name, triples in listed.items()}
    all_genes, array = np.flatnonzero(viable), np.flatnonzero(viable & with_flux)
    for number, name in enumerate(STRATA):
        wanted = getattr(sizes, name)
        rng = generator(seed, f"in-silico triples: {name}")
        if name in listed:
            drawn = rng.permutation(listed[name])
        elif name == "query" and len(hot) and len(array):
            drawn = np.column_stack([rng.choice(hot, 4 * wanted), rng.choice(array, 4 * wanted)])
        elif name == "uniform" and len(all_genes) >= 3:
            drawn = rng.choice(all_genes, (4 * wanted, 3))
        else:
            continue
        taken = 0
        for triple in np.sort(drawn, axis=1).tolist():
            if taken == wanted:
                break
            if len(set(triple)) == 3 and tuple(triple) not in seen:
                seen[tuple(triple)] = number
                taken += 1
    order = sorted(seen)
    return DrawnTriples(
        np.array(order, dtype=np.int64).reshape(-1, 3),
        np.array([seen[triple] for triple in order], dtype=np.int64),
        possible,
    )
