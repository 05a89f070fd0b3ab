"""Free heads: what they attend to that nobody told them.

The other genes that a gene attends to most are its list; relations and gene sets that lists hold more of than
chance say what a head looks for. Heads see features of the genes, of which some come from the relations
themselves, and deeper ones what regularised heads have gathered. So the same is asked of a network like the
first with weights drawn anew, and what training has made is the difference.

Free heads of a layer are in no order: head 7 of one seed has no counterpart in another. A claim is about a
layer, and models agree on it where any of their heads shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from wildtype.inference.explaining.attention import Ints, most_attended
from wildtype.inference.explaining.enrichment import (
    Enrichment,
    exchanges,
    in_relation,
    relations_attended,
    sets_attended,
)
from wildtype.inference.explaining.members import UNTRAINED, Member, untrained
from wildtype.inference.explaining.over_models import OverModels
from wildtype.models.explainable import ExplainableModel
from wildtype.organism import Relation
from wildtype.organism.gene_sets import GeneSets
from wildtype.seeds import generator

LEVEL = 0.05
"""Adjusted p-value below which something counts as found."""
SMALLEST_SET = 3


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
        Different genes among the most attended, over those there could be: near 0 where all rows look at
        the same few genes.
    relations : tuple of Enrichment
        Every relation.
    sets : tuple of Enrichment
        Gene sets found, the most certain first.
    """

    model: str
    layer: int
    head: int
    attended: float
    relations: tuple[Enrichment, ...]
    sets: tuple[Enrichment, ...]


@dataclass(frozen=True)
class LayerClaim:
    """Something that free heads of a layer attend to.

    Attributes
    ----------
    layer : int
        From 0.
    kind : str
        ``relation``, or what its set is.
    name : str
        Of the relation or set.
    given_to : tuple of int or None
        Layer and head that follow this relation by a prior.
    fold : OverModels
        Of the head of each model in which it is largest.
    untrained : float
        The same of a network with weights drawn anew; NaN where it has none.
    found_in, models : int
        Models with a free head that shows it, and models.
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
    taken = {(place.layer, place.head) for place in model.prior_heads.values()}
    return [place for place in model.attention_heads if place not in taken]


@torch.no_grad()
def free_heads(
    members: Sequence[Member], sets: Sequence[GeneSets], *, attended: int, count: int, seed: int, top: int
) -> tuple[list[FreeHead], list[LayerClaim]]:
    """Return what every free head attends to, in an untrained network last, and what follows for layers.

    Parameters
    ----------
    members : sequence of Member
        Whose runs have an organism.
    sets : sequence of GeneSets
        Over the genes of the models.
    attended : int
        Genes per row that count as attended to.
    count : int
        Exchanges of lists between genes.
    seed : int
        Of the exchanges.
    top : int
        Sets to keep of a head, and of a layer.
    """
    n = len(members[0].checkpoint.genes)
    attended = min(attended, n - 1)
    chosen = [s.sized(SMALLEST_SET, max(n // 20, 10)).distinct() for s in sets]
    given: dict[str, Ints] = {}
    found: list[tuple[FreeHead, list[tuple[str, list[Enrichment]]]]] = []
    for member in [*members, untrained(members[0], seed)]:
        assert member.run.organism is not None
        graphs = [relation for relation in member.run.organism.graphs.values() if relation.nnz]
        graphs += [s.shared() for s in chosen if s.kind == "term" and len(s)]
        wanted = free_places(member.model)
        for layer, (q, k) in enumerate(member.model.queries_and_keys(member.checkpoint.organism)):
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
    members: Sequence[Member], found: Sequence[tuple[FreeHead, list[tuple[str, list[Enrichment]]]]], top: int
) -> list[LayerClaim]:
    """Return what is found per layer: every relation, and the sets that most models have."""
    given = {name: (place.layer, place.head) for name, place in members[0].model.prior_heads.items()}
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
