"""Free heads, which no graph prior guides: relations and gene sets that they attend to more than by chance.

A gene's list holds the k other genes that it attends to most. The null model keeps the lists and permutes
their owners: every gene gets the list of another gene of similar degree. A gene that all others attend to
stays one, and genes that occur together in lists stay together.

Heads see gene features, some of which come from the relations, and deeper heads see what regularised heads
have gathered. So an untrained network with fresh weights is tested in the same way; training explains the
difference.

Free heads of a layer have no order: head 7 of one seed has no counterpart in another. So a claim is about a
layer, and models agree on it if one of their heads in the layer shows it.

Legend: n genes · k attended genes of each · s exchanges · r relations · t sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse, stats

from wildtype.inference.explaining.attention import Ints, most_attended
from wildtype.inference.explaining.members import UNTRAINED, EnsembleMember, OverModels, untrained
from wildtype.models.explainable import ExplainableModel
from wildtype.organism import Relation
from wildtype.organism.gene_sets import GeneSets
from wildtype.seeds import generator

LEVEL = 0.05
"""Adjusted p-value below which an enrichment counts as found."""
SMALLEST_SET = 3
SMALLEST_BIN = 10
"""Fewest genes that exchange lists among each other: in smaller bins, genes of large degree keep theirs."""
BINS = 50
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Enrichment:
    """How often genes attend to their partners in a relation, or to other genes of their set.

    Attributes
    ----------
    name : str
        Name of the relation or set.
    count : int
        Relation: attended pairs that are edges. Set: genes of it that attend to another of its genes.
    expected, sd : float
        Mean and sd of the count under the null model.
    fold : float
        Count over expected; NaN if 0 is expected.
    p, q : float
        One-sided, and adjusted for the tests made together (Benjamini & Hochberg 1995).
    """

    name: str
    count: int
    expected: float
    sd: float
    fold: float
    p: float
    q: float


@dataclass(frozen=True)
class FreeHead:
    """One free head of one model.

    Attributes
    ----------
    model : str
        Label, or ``untrained``.
    layer, head : int
        From 0.
    attended : float
        Distinct genes in all lists, divided by n: near 0 if all genes attend to the same few.
    relations : tuple of Enrichment
        Every relation.
    sets : tuple of Enrichment
        Enriched gene sets, the smallest q first.
    """

    model: str
    layer: int
    head: int
    attended: float
    relations: tuple[Enrichment, ...]
    sets: tuple[Enrichment, ...]


@dataclass(frozen=True)
class LayerClaim:
    """A relation or gene set that free heads of a layer attend to.

    Attributes
    ----------
    layer : int
        From 0.
    kind : str
        ``relation``, or the kind of gene set.
    name : str
        Of the relation or set.
    given_to : tuple of int or None
        Layer and first head that follow this relation by a prior.
    fold : OverModels
        Largest fold over the free heads of the layer, in each model.
    untrained : float
        The same in an untrained network; NaN if it has none.
    found_in, models : int
        Number of models with a free head that shows it, and of all models.
    """

    layer: int
    kind: str
    name: str
    given_to: tuple[int, int] | None
    fold: OverModels
    untrained: float
    found_in: int
    models: int


def free_places(model: ExplainableModel) -> list[tuple[int, int]]:
    """Return layer and head of every head that follows no relation."""
    taken = {place for prior in model.prior_heads.values() for place in prior.places}
    return [place for place in model.attention_heads if place not in taken]


@torch.no_grad()
def free_heads(
    members: Sequence[EnsembleMember],
    sets: Sequence[GeneSets],
    *,
    attended: int,
    count: int,
    seed: int,
    top: int,
) -> tuple[list[FreeHead], list[LayerClaim]]:
    """Return what every free head attends to, those of an untrained network last, and claims on layers.

    Parameters
    ----------
    members : sequence of EnsembleMember
        Whose runs have an organism.
    sets : sequence of GeneSets
        Over the genes of the models.
    attended : int
        Genes per row that count as attended to.
    count : int
        Exchanges of lists between genes.
    seed : int
        Random seed of the exchanges.
    top : int
        Sets to keep of a head, and of a layer.
    """
    n = len(members[0].checkpoint.genes)
    attended = min(attended, n - 1)
    chosen = [s.sized(SMALLEST_SET, max(n // 20, 10)).distinct() for s in sets]
    given: dict[str, Ints] = {}  # the same exchanges for every head, so that heads are comparable
    found: list[tuple[FreeHead, list[tuple[str, list[Enrichment]]]]] = []
    for member in [*members, untrained(members[0], seed)]:
        assert member.run.organism is not None
        graphs = [relation for relation in member.run.organism.graphs.values() if relation.nnz]
        graphs += [s.shared() for s in chosen if s.kind == "term" and len(s)]
        wanted = free_places(member.attentive)
        for layer, (q, k) in enumerate(member.attentive.queries_and_keys(member.checkpoint.organism)):
            for head in [head for at, head in wanted if at == layer]:
                best = most_attended(q[head], k[head], attended)
                related = _related(best, graphs, given, count, seed)
                inside = [(s.kind, sets_attended(best, s)) for s in chosen]
                kept = [e for _, one in inside for e in one if e.q < LEVEL]
                kept.sort(key=lambda e: (e.q, -e.fold))
                own = FreeHead(
                    member.label, layer, head, len(np.unique(best)) / n, tuple(related), tuple(kept[:top])
                )
                found.append((own, [("relation", related), *inside]))
    return [own for own, _ in found], layer_claims(members, found, top)


def _related(
    attended: Ints, graphs: Sequence[Relation], given: dict[str, Ints], count: int, seed: int
) -> list[Enrichment]:
    counted = []
    for relation in graphs:
        if relation.name not in given:
            degree = np.diff(relation.adjacency.indptr) + np.diff(relation.transpose.indptr)
            given[relation.name] = exchanges(degree, count, generator(seed, f"exchanges/{relation.name}"))
        counted.append(in_relation(attended, relation, given[relation.name]))
    found = np.array([one for one, _ in counted], np.int64)
    null = np.array([null for _, null in counted]).reshape(len(graphs), count).T
    return relations_attended(tuple(relation.name for relation in graphs), found, null)


def layer_claims(
    members: Sequence[EnsembleMember],
    found: Sequence[tuple[FreeHead, list[tuple[str, list[Enrichment]]]]],
    top: int,
) -> list[LayerClaim]:
    """Return the claims on each layer: every relation, and the ``top`` sets that most models show."""
    given = {name: prior.places[0] for name, prior in members[0].attentive.prior_heads.items()}
    best: dict[tuple[int, str, str], dict[str, float]] = {}
    seen: dict[tuple[int, str, str], set[str]] = {}
    for head, groups in found:
        for kind, enriched in groups:
            for one in enriched:
                key = head.layer, kind, one.name
                folds = best.setdefault(key, {})
                folds[head.model] = float(np.fmax(folds.get(head.model, np.nan), one.fold))
                if one.q < LEVEL:
                    seen.setdefault(key, set()).add(head.model)
    claims = [
        LayerClaim(
            layer,
            kind,
            name,
            given.get(name) if kind == "relation" else None,
            OverModels.of([folds.get(member.label, np.nan) for member in members]),
            folds.get(UNTRAINED, np.nan),
            len(seen.get((layer, kind, name), set()) - {UNTRAINED}),
            len(members),
        )
        for (layer, kind, name), folds in best.items()
        if kind == "relation" or seen.get((layer, kind, name), set()) - {UNTRAINED}
    ]
    claims.sort(key=lambda c: (c.layer, c.kind != "relation", -c.found_in, -np.nan_to_num(c.fold.mean)))
    kept, held = [], dict.fromkeys((claim.layer for claim in claims), 0)
    for claim in claims:
        if claim.kind != "relation":
            held[claim.layer] += 1
        if claim.kind == "relation" or held[claim.layer] <= top:
            kept.append(claim)
    return kept


def exchanges(degree: Ints, count: int, draw: np.random.Generator) -> Ints:
    """Return whose list each gene gets [count, n]: that of a gene of similar degree [n]."""
    n = len(degree)
    size = max(SMALLEST_BIN, -(-n // BINS))
    bins = np.arange(n) // size
    out = np.empty((count, n), np.int64)
    # Sort by degree with ties in random order, cut into bins of equal size, and permute within the bins. The
    # second random key does the permutation: genes of a bin keep their bin, not their place.
    for row in out:
        order = np.lexsort((draw.random(n), degree))
        row[order] = order[np.lexsort((draw.random(n), bins))]
    return out


def in_relation(attended: Ints, relation: Relation, given: Ints) -> tuple[int, Floats]:
    """Return how many attended pairs [n, k] are edges in any direction, and how many under exchanges [s]."""
    keys = _edge_keys(relation)
    found = _held(attended, keys)
    return found, np.array([_held(attended[own], keys) for own in given], dtype=np.float64)


def _edge_keys(relation: Relation) -> Ints:
    """Return one code row · n + column per edge in each direction, ascending."""
    rows, columns, _ = relation.endpoints()
    return np.unique(np.concatenate([rows * relation.n + columns, columns * relation.n + rows]))


def _held(attended: Ints, keys: Ints) -> int:
    """Return the number of attended pairs [n, k] among the codes of edges."""
    n = len(attended)
    codes = np.arange(n)[:, None] * n + attended
    if not len(keys):
        return 0
    return int((keys[np.minimum(np.searchsorted(keys, codes), len(keys) - 1)] == codes).sum())


def relations_attended(names: tuple[str, ...], found: Ints, null: Floats) -> list[Enrichment]:
    """Return the enrichment of counts [r] against counts under exchanges [s, r], tested together.

    The p-value is the larger of two one-sided ones. A normal count with mean and sd of the null counts has
    (count − mean) / (sd √(1 + 1/s)) ~ t with s − 1 degrees of freedom: both moments are estimated, and the
    count is one more draw. Rare counts are not normal but Poisson, with the mean of the null counts.
    """
    s = len(null)
    mean, sd = null.mean(0), null.std(0, ddof=1)
    # One pseudo-count in s draws: a mean of 0 would make any count impossible, hence p = 0.
    rare = stats.poisson.sf(found - 1, mean + 1 / s)
    spread = sd * np.sqrt(1 + 1 / s)
    far = np.divide(found - mean, spread, out=np.full(len(mean), np.inf), where=spread > 0)
    # With sd = 0 the t statistic is undefined; only a count above the mean is evidence, judged by Poisson.
    p = np.maximum(rare, np.where(found > mean, stats.t.sf(far, s - 1), 1.0))
    return _enrichments(names, found, mean, sd, p)


def sets_attended(attended: Ints, sets: GeneSets) -> list[Enrichment]:
    """Return for every set the number of its genes that attend to another of its genes, tested together.

    Of n lists, h contain a gene of the set. Under exchanges the m genes of the set own any m of the n lists,
    so the number that contain one is hypergeometric: mean m h / n, variance m h/n (1 − h/n) (n − m)/(n − 1).
    """
    n, k = attended.shape
    ones: Floats = np.ones(n * k)
    graph = sparse.csr_array((ones, attended.reshape(-1), np.arange(n + 1) * k), shape=(n, n))
    hits = sparse.csr_array(((graph @ sets.table) > 0) * 1.0)
    inside = np.rint(np.asarray(hits.multiply(sets.table).sum(0)).reshape(-1)).astype(np.int64)
    able, size = np.bincount(hits.indices, minlength=len(sets)), sets.sizes
    mean = size * able / n
    variance = mean * (1 - able / n) * (n - size) / max(n - 1, 1)
    p = np.asarray(stats.hypergeom.sf(inside - 1, n, able, size), np.float64)
    return _enrichments(sets.names, inside, mean, np.sqrt(variance), p)


def _enrichments(
    names: tuple[str, ...], found: Ints, mean: Floats, sd: Floats, p: Floats
) -> list[Enrichment]:
    if not len(names):
        return []
    q = stats.false_discovery_control(p)
    fold = np.divide(found, mean, out=np.full(len(mean), np.nan), where=mean > 0)
    return [
        Enrichment(name, *(x[i].item() for x in (found, mean, sd, fold, p, q)))
        for i, name in enumerate(names)
    ]
