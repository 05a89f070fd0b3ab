"""Regularised heads: recovery of the relation of a head's prior, against random graphs of equal degrees.

A graph prior regularises rows of attention towards a relation. Average precision and recall at degree, as
means over genes with edges, measure the result. A head that has learned only which genes have many neighbours
does as well on a random graph with the same degrees, so several of these are the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.inference.explaining.attention import Ints, Recovery, recoveries
from wildtype.inference.explaining.members import EnsembleMember, OverModels
from wildtype.organism import Organism, Relation
from wildtype.organism.controls import rewire
from wildtype.seeds import generator


@dataclass(frozen=True)
class Against:
    """One measure of a head, beside its value on random graphs.

    Attributes
    ----------
    found : OverModels
        Over the models.
    random_mean, random_sd : float
        Over random graphs of equal degrees, mean over the models.
    """

    found: OverModels
    random_mean: float
    random_sd: float


@dataclass(frozen=True)
class RegularisedHead:
    """One head and the relation of its prior.

    Attributes
    ----------
    layer, head : int
        From 0.
    relation : str
        Its name.
    reads : str
        ``sources``: rows are sources and attend to targets; ``targets``: the reverse.
    weight : float
        Weight of the prior in training.
    edges, rows, asked : int
        Stored edges, genes with any, and the number of these in the means.
    average_precision, recall_at_degree, mass : Against
        See `attention.Recovery`.
    """

    layer: int
    head: int
    relation: str
    reads: str
    weight: float
    edges: int
    rows: int
    asked: int
    average_precision: Against
    recall_at_degree: Against
    mass: Against


@torch.no_grad()
def regularised_heads(
    members: Sequence[EnsembleMember], *, graphs: int, most_rows: int, seed: int
) -> tuple[list[RegularisedHead], list[str]]:
    """Return every regularised head of comparable models, and remarks on heads left out.

    Parameters
    ----------
    members : sequence of EnsembleMember
        Whose runs have an organism.
    graphs : int
        Random graphs per relation.
    most_rows : int
        Most genes per relation; of more, a random sample.
    seed : int
        Random seed of graphs and samples.
    """
    # Members of one run share its organism: random graphs are made once per organism, not per model.
    known: dict[tuple[int, str], list[Relation]] = {}
    found: dict[tuple[str, tuple[int, int]], list[list[Recovery]]] = {}
    rows_of: dict[str, tuple[Ints, Relation]] = {}
    remarks: list[str] = []
    first = members[0].attentive
    for member in members:
        assert member.run.organism is not None
        states = list(member.attentive.queries_and_keys(member.checkpoint.organism))
        for name, prior in member.attentive.prior_heads.items():
            if name not in member.run.organism.graphs:
                remarks.append(f"relation {name!r} is not in the organism any more, and is left out")
                continue
            key = id(member.run.organism), name
            if key not in known:
                known[key] = _with_random(member.run.organism, name, graphs, seed)
            reverse = member.attentive.transposed(name)
            given = [relation.transpose if reverse else relation.adjacency for relation in known[key]]
            rows = _rows(given[0].indptr, most_rows, seed, name)
            rows_of.setdefault(name, (rows, known[key][0]))
            for layer, head in prior.places:
                q, k = states[layer]
                found.setdefault((name, (layer, head)), []).append(recoveries(q[head], k[head], given, rows))
    out = []
    for (name, (layer, head)), of_members in found.items():
        rows, relation = rows_of[name]
        reverse = first.transposed(name)
        matrix = relation.transpose if reverse else relation.adjacency
        measures = [
            _against([[getattr(one, field) for one in member] for member in of_members])
            for field in ("average_precision", "recall", "mass")
        ]
        out.append(
            RegularisedHead(
                layer,
                head,
                name,
                "targets" if reverse else "sources",
                first.prior_heads[name].weight,
                relation.nnz,
                int((np.diff(matrix.indptr) > 0).sum()),
                len(rows),
                *measures,
            )
        )
    return sorted(out, key=lambda one: (one.layer, one.head)), list(dict.fromkeys(remarks))


def _with_random(organism: Organism, name: str, graphs: int, seed: int) -> list[Relation]:
    relation = organism.graphs[name]
    return [relation, *(rewire(relation, seed + i) for i in range(graphs))]


def _rows(indptr: NDArray[Any], most: int, seed: int, name: str) -> Ints:
    rows = np.flatnonzero(np.diff(indptr) > 0)
    if len(rows) > most:
        rows = np.sort(generator(seed, f"rows/{name}").choice(rows, most, replace=False))
    return rows.astype(np.int64)


def _against(values: list[list[float]]) -> Against:
    """Return a measure from each model's values: first of the relation, then of each random graph."""
    random = np.array([one[1:] for one in values])
    sd = random.std(1, ddof=1).mean() if random.shape[1] > 1 else np.nan
    return Against(
        OverModels.of([one[0] for one in values]), float(random.mean()) if random.size else np.nan, float(sd)
    )
