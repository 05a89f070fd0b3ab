"""Which double and triple mutants are simulated: all pairs or an enriched sample; query pairs × an array.

Legend: n genes · p pairs · t triples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, DatasetError
from wildtype.organism import GeneGraphs, Metabolism
from wildtype.seeds import generator
from wildtype.sources.insilico.fba import ZERO_FLUX

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Sizes:
    """How many mutants a growth dataset holds.

    Attributes
    ----------
    doubles : int or None
        Double mutants; None: all pairs of genes. Those that the triples need are simulated on top.
    random_share : float
        Share of the drawn doubles that is uniform over pairs of viable genes; the others are enriched.
    triples : int
        Triple mutants.
    array : int
        Genes of the array that every query pair is crossed with.

    Raises
    ------
    ConfigError
        If a size is not a whole number or the share is not between 0 and 1.
    """

    doubles: int | None = None
    random_share: float = 0.25
    triples: int = 4_000
    array: int = 50

    def __post_init__(self) -> None:
        for name in ("doubles", "triples", "array"):
            value = getattr(self, name)
            if value is not None and (value != int(value) or value < (0 if name == "triples" else 1)):
                raise ConfigError(f"{name} is {value}: give a whole number of mutants or genes")
        if not 0.0 <= self.random_share <= 1.0:
            raise ConfigError(f"random_share is {self.random_share}: give a share between 0 and 1")


def pair_codes(pairs: Ints, n: int) -> Ints:
    """Return one number per pair [P, 2] of ascending positions below n."""
    return np.asarray(pairs[:, 0] * n + pairs[:, 1])


def pairs_of(codes: Ints, n: int) -> Ints:
    """Return the pairs [P, 2] of ``pair_codes``."""
    return np.stack([codes // n, codes % n], axis=1)


def all_pairs(genes: Ints, n: int) -> Ints:
    """Return the codes of all pairs of ascending positions."""
    i, j = np.triu_indices(len(genes), 1)
    return np.asarray(genes[i] * n + genes[j])


def genes_with_flux(metabolism: Metabolism, columns: Ints, flux: NDArray[np.float64]) -> Bools:
    """Return the genes that the rule of an active reaction lists, bool [n]; ``columns``: ``gene_columns``."""
    active = (np.abs(flux) > ZERO_FLUX).astype(np.float64)
    listed = np.asarray(metabolism.reaction_gene.T @ active) > 0
    return np.asarray((columns >= 0) & listed[columns])


def enriched_pool(graphs: GeneGraphs, viable: Bools, with_flux: Bools) -> Ints:
    """Return the codes of pairs of viable genes that may well interact, ascending.

    Pairs that stand in one reaction's rule, and pairs that both carry flux in the wild type.
    """
    n = len(viable)
    a, b, _ = graphs["reaction"].endpoints()
    chosen = (a < b) & viable[a] & viable[b]
    # Reactions without flux can go without effect: the wild type's flux stays optimal.
    return np.union1d(a[chosen] * n + b[chosen], all_pairs(np.flatnonzero(viable & with_flux), n))


def draw_doubles(sizes: Sizes, graphs: GeneGraphs, viable: Bools, with_flux: Bools, seed: int) -> Ints:
    """Return the pairs to simulate, int64 [P, 2], ascending.

    All pairs of the n genes if ``sizes.doubles`` is None. Else only viable genes, and ``1 - random_share`` of
    the pairs is drawn from ``enriched_pool``. The rest is drawn uniformly from all other pairs of viable
    genes.

    Raises
    ------
    DatasetError
        If there are fewer pairs than asked for.
    """
    n = len(viable)
    if sizes.doubles is None:
        return pairs_of(all_pairs(np.arange(n), n), n)
    pool = enriched_pool(graphs, viable, with_flux)
    count = round(sizes.doubles * (1.0 - sizes.random_share))
    rng = generator(seed, "in-silico doubles")
    enriched = rng.permutation(pool)[:count]
    # Drawn without the enriched pairs, so that no pair is simulated twice.
    rest = np.setdiff1d(all_pairs(np.flatnonzero(viable), n), enriched)
    if len(pool) < count or len(rest) < sizes.doubles - count:
        raise DatasetError(
            f"{sizes.doubles:,} doubles cannot be drawn from {len(pool):,} enriched pairs and {len(rest):,} "
            f"others: ask for fewer, or for all (None)"
        )
    uniform = rng.permutation(rest)[: sizes.doubles - len(enriched)]
    return pairs_of(np.sort(np.concatenate([enriched, uniform])), n)


@dataclass(frozen=True, eq=False)
class TripleDesign:
    """Triples of a query-pair × array screen.

    Attributes
    ----------
    triples : int64 [T, 3]
        Ascending positions, no triple twice.
    queries : int64 [Q, 2]
        The query pairs, in the order they were taken; even ones interact, as far as there are enough.
    array : int64 [A]
        The array genes.
    skipped : dict of str to int
        Crossings that gave no triple, by reason.
    """

    triples: Ints
    queries: Ints
    array: Ints
    skipped: dict[str, int]


def draw_triples(
    sizes: Sizes, pairs: Ints, grows: Bools, interacts: Bools, viable: Bools, array_pool: Bools, seed: int
) -> TripleDesign:
    """Cross query pairs with one array, as trigenic screens do (Kuzmin et al. 2018, Science 360:eaao1729).

    Query pairs are those of the simulated ``pairs`` [P, 2] that grow (``grows`` [P]), of viable genes: every
    other one is drawn from those that interact (``interacts`` [P], ε ≠ 0), the others from those that do not.
    Half of the array is drawn from ``array_pool`` [n], half from all viable genes. Queries are crossed with
    the whole array until there are ``sizes.triples`` triples; the last one is crossed with part of it.
    """
    rng = generator(seed, "in-silico triples")
    half = rng.permutation(np.flatnonzero(viable & array_pool))[: sizes.array // 2]
    rest = rng.permutation(np.setdiff1d(np.flatnonzero(viable), half))[: sizes.array - len(half)]
    array = np.sort(np.concatenate([half, rest]))
    possible = viable[pairs].all(axis=1) & grows
    hot = rng.permutation(pairs[possible & interacts])
    cold = rng.permutation(pairs[possible & ~interacts])
    both = min(len(hot), len(cold))
    order = np.concatenate(
        [np.stack([hot[:both], cold[:both]], axis=1).reshape(-1, 2), hot[both:], cold[both:]]
    )
    seen: dict[tuple[int, ...], None] = {}
    skipped = {"array gene is a query gene": 0, "triple stands in another cross": 0}
    queries = []
    for query in order:
        if len(seen) >= sizes.triples:
            break
        queries.append(query)
        for gene in array.tolist():
            if len(seen) >= sizes.triples:
                break
            if gene in query:
                skipped["array gene is a query gene"] += 1
                continue
            triple = tuple(sorted((*query.tolist(), gene)))
            if triple in seen:
                skipped["triple stands in another cross"] += 1
            seen[triple] = None
    triples = np.array(sorted(seen), dtype=np.int64).reshape(-1, 3)
    return TripleDesign(triples, np.array(queries, dtype=np.int64).reshape(-1, 2), array, skipped)
