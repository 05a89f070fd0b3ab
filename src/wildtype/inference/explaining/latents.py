"""Whole-cell latents z_S of mutants: principal components, clusters, and what a cluster has in common.

Legend: m mutants · d width · c clusters · g genes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.spatial.distance import pdist

from wildtype.evidence.reference import PARTS
from wildtype.inference.explaining.members import EnsembleMember, OverModels, rank_agreement
from wildtype.inference.explaining.mutant_latents import latents_of
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import mutant_id
from wildtype.organism.gene_sets import GeneSets
from wildtype.seeds import derive, generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEWEST = 20
"""Fewest mutants to cluster."""
CLUSTERS = range(2, 9)
LEVEL = 0.05


@dataclass(frozen=True)
class Overrepresented:
    """A gene, or a gene set, that the mutants of a cluster perturb more often than other mutants.

    Attributes
    ----------
    name : str
        Name of the gene or set.
    kind : str
        ``gene``, or the kind of gene set.
    inside, outside : int
        Number of mutants in and outside of the cluster that perturb it.
    fold : float
        Share inside over the share of all mutants.
    q : float
        Hypergeometric p-value, adjusted (Benjamini & Hochberg 1995) over genes, or sets, and clusters.
    found_in : int
        Number of models whose most similar cluster has it, too.
    """

    name: str
    kind: str
    inside: int
    outside: int
    fold: float
    q: float
    found_in: int = 1


@dataclass(frozen=True)
class Typical:
    """Measured values of one phenotype in a cluster: their number and quartiles."""

    phenotype: str
    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Cluster:
    """Mutants with similar latents.

    Attributes
    ----------
    number, mutants : int
        Number from 1, the largest cluster first; and its size.
    genes, sets : tuple of Overrepresented
        Smallest p-value first.
    phenotypes : tuple of Typical
        Every phenotype with a measured value.
    overlap : OverModels
        Jaccard index with the most similar cluster of each further model.
    """

    number: int
    mutants: int
    genes: tuple[Overrepresented, ...]
    sets: tuple[Overrepresented, ...]
    phenotypes: tuple[Typical, ...]
    overlap: OverModels


@dataclass(frozen=True)
class Latents:
    """The latents of some mutants; coordinates and clusters are those of the first model.

    Attributes
    ----------
    drawn : str
        Source of the mutants.
    genes : tuple of tuple of str
        Perturbed genes of every mutant, by systematic name.
    x, y : tuple of float
        Principal components of z_S.
    cluster : tuple of int
        Number of its cluster.
    explained : tuple of float
        Share of the variance of each of the two components.
    clusters : tuple of Cluster
        All.
    silhouette : tuple of (int, float)
        Mean silhouette at every number of clusters tried; the largest was chosen.
    distances_agree : float
        Spearman correlation of all distances between mutants, mean over pairs of models; NaN for one.
    clusters_agree : float
        Adjusted Rand index, likewise.
    """

    drawn: str
    genes: tuple[tuple[str, ...], ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    cluster: tuple[int, ...]
    explained: tuple[float, float]
    clusters: tuple[Cluster, ...]
    silhouette: tuple[tuple[int, float], ...]
    distances_agree: float
    clusters_agree: float


def latents(
    members: Sequence[EnsembleMember], sets: Sequence[GeneSets], *, mutants: int, seed: int, top: int
) -> Latents | str:
    """Return the latents of a sample of measured mutants, or a sentence why there are none.

    Parameters
    ----------
    members : sequence of EnsembleMember
        Alike, with a whole-cell latent.
    sets : sequence of GeneSets
        Over the genes of the models, to test in clusters; may be empty.
    mutants : int
        Most mutants to use.
    seed : int
        Random seed of sample and clusters.
    top : int
        Genes and sets to keep per cluster.
    """
    checkpoint = members[0].checkpoint
    table, measured, drawn = sample(checkpoint, mutants, seed)
    if len(table) < FEWEST:
        return f"only {len(table)} different mutants are known to the first run, and clusters need {FEWEST}"
    found = [whole_cell(member, table) for member in members]
    if np.ptp(found[0], axis=0).max() == 0:
        return "all mutants have the same latent"
    scores = silhouettes(found[0], seed)
    chosen = max(scores, key=lambda count: scores[count])
    labels = [clustered(z, chosen, seed) for z in found]
    xy, explained = principal(found[0])
    from sklearn.metrics import adjusted_rand_score

    pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
    rand = [float(adjusted_rand_score(labels[i], labels[j])) for i, j in pairs]
    names = checkpoint.genes.names
    return Latents(
        drawn=drawn,
        genes=tuple(tuple(names[g] for g in own) for own in table.sets()),
        x=tuple(xy[:, 0].tolist()),
        y=tuple(xy[:, 1].tolist()),
        cluster=tuple((labels[0] + 1).tolist()),
        explained=explained,
        clusters=_clusters(checkpoint, table, measured, labels, sets, top),
        silhouette=tuple(scores.items()),
        distances_agree=rank_agreement([pdist(z) for z in found]),
        clusters_agree=float(np.mean(rand)) if rand else np.nan,
    )


def sample(checkpoint: Checkpoint, count: int, seed: int) -> tuple[MutantTable, Ints, str]:
    """Return up to ``count`` distinct measured mutants, the mutant of each known row (or -1), and a source.

    They are test rows if there are enough of them, since models are explained best on rows not trained on.
    Mutants differ in genes, kinds or doses; z_S does not depend on the condition.
    """
    known = checkpoint.known
    number = mutant_id(known.table)
    held = np.unique(number[known.part == PARTS.index("test")])
    every = np.unique(number[known.table.order > 0])
    drawn, origin = (held, "the test rows") if len(held) >= max(count, 1) else (every, "all known mutants")
    if len(drawn) > count:
        drawn = np.sort(generator(seed, "latents").choice(drawn, count, replace=False))
        origin = f"drawn from {origin}"
    _, first = np.unique(number, return_index=True)
    place = np.full(int(number.max(initial=0)) + 1, -1, np.int64)
    place[drawn] = np.arange(len(drawn))
    return known.table.take(first[drawn]), place[number], f"{origin} of the first run"


def whole_cell(member: EnsembleMember, table: MutantTable) -> Floats:
    """Return the latent of the rows of a table [m, d], the first of `Model.latents`: z_S."""
    return next(iter(latents_of(member.model, member.wild_type, table).values()))


def principal(z: Floats) -> tuple[Floats, tuple[float, float]]:
    """Return the first two principal components [m, 2], and their shares of the variance."""
    centred = z - z.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    if len(s) < 2:
        u, s = np.pad(u, ((0, 0), (0, 1))), np.pad(s, (0, 1))
    xy = u[:, :2] * s[:2]
    # The sign of a component is arbitrary: make its largest entry positive, so that figures are reproducible.
    # The added 1 keeps a component of zeros from being multiplied by sign(0).
    xy *= np.sign(xy[np.abs(xy).argmax(0), [0, 1]] + (np.abs(xy).max(0) == 0))
    share = s**2 / (s**2).sum()
    return xy, (float(share[0]), float(share[1]))


def silhouettes(z: Floats, seed: int) -> dict[int, float]:
    """Return the mean silhouette (Rousseeuw 1987) at every number of clusters tried."""
    from sklearn.metrics import silhouette_score

    out = {}
    for count in CLUSTERS:
        labels = clustered(z, count, seed)
        if 1 < len(np.unique(labels)) < len(z):
            out[count] = float(silhouette_score(z, labels))
    return out


def clustered(z: Floats, count: int, seed: int) -> Ints:
    """Return the k-means cluster [m] of every mutant; cluster 0 is the largest."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different latents than clusters
        state = derive(seed, "clusters") % 2**32
        found = KMeans(count, n_init=4, random_state=state).fit(z).labels_.astype(np.int64)
    sizes = np.bincount(found, minlength=count)
    rank = np.empty(count, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)
    return np.asarray(rank[found])


def overrepresented(
    has: sparse.csr_array, labels: Ints, names: Sequence[str], kind: str
) -> list[list[Overrepresented]]:
    """Return which columns [m, g] of 0 and 1 each cluster [c] has more of, the smallest p-value first."""
    m, count = len(labels), int(labels.max()) + 1
    ones: Floats = np.ones(m)
    member = sparse.csr_array((ones, (labels, np.arange(m))), shape=(count, m))
    inside = (member @ has).toarray()
    total, sizes = inside.sum(0), np.bincount(labels, minlength=count)[:, None]
    # P(X ≥ inside) when the mutants of a cluster are drawn from all m without replacement: Fisher's exact
    # test.
    p = stats.hypergeom.sf(inside - 1, m, total[None, :], sizes)
    p = np.asarray(p, np.float64).reshape(inside.shape)
    q = np.asarray(stats.false_discovery_control(p.reshape(-1)) if p.size else p).reshape(p.shape)
    out = []
    for c in range(count):
        held = np.flatnonzero(q[c] < LEVEL)
        fold = inside[c] / sizes[c] / np.maximum(total / m, 1 / m)
        held = held[np.lexsort((-fold[held], p[c, held]))]
        out.append(
            [
                Overrepresented(
                    names[j],
                    kind,
                    int(inside[c, j]),
                    int(total[j] - inside[c, j]),
                    float(fold[j]),
                    float(q[c, j]),
                )
                for j in held.tolist()
            ]
        )
    return out


def _clusters(
    checkpoint: Checkpoint,
    table: MutantTable,
    measured: Ints,
    labels: Sequence[Ints],
    sets: Sequence[GeneSets],
    top: int,
) -> tuple[Cluster, ...]:
    n = len(checkpoint.genes)
    ones: Floats = np.ones(len(table.gene))
    perturbs = sparse.csr_array((ones, (table.row, table.gene)), shape=(len(table), n))
    labelled = tuple(checkpoint.genes.label(g) for g in range(n))
    columns = [("gene", perturbs, labelled)]
    for s in sets:
        chosen = s.sized(2, max(n // 20, 10)).distinct()
        columns.append((chosen.kind, sparse.csr_array(((perturbs @ chosen.table) > 0) * 1.0), chosen.names))
    found = [
        [
            [one for group in groups for one in group]
            for groups in zip(
                *(overrepresented(has, own, names, kind) for kind, has, names in columns), strict=True
            )
        ]
        for own in labels
    ]
    out = []
    for c, own in enumerate(found[0]):
        best = [_most_similar(labels[0] == c, other) for other in labels[1:]]
        names = [{(one.kind, one.name) for one in found[i + 1][at]} for i, (at, _) in enumerate(best)]
        shared = [
            replace(one, found_in=1 + sum((one.kind, one.name) in have for have in names)) for one in own
        ]
        out.append(
            Cluster(
                c + 1,
                int((labels[0] == c).sum()),
                tuple(one for one in shared if one.kind == "gene")[:top],
                tuple(one for one in shared if one.kind != "gene")[:top],
                _typical(checkpoint, measured, labels[0], c),
                OverModels.of([overlap for _, overlap in best]),
            )
        )
    return tuple(out)


def _most_similar(inside: NDArray[np.bool_], other: Ints) -> tuple[int, float]:
    """Return the cluster of another model with the largest Jaccard index, and the index."""
    shared = [
        float((inside & (other == c)).sum() / (inside | (other == c)).sum()) for c in range(other.max() + 1)
    ]
    return int(np.argmax(shared)), max(shared)


def _typical(checkpoint: Checkpoint, measured: Ints, labels: Ints, cluster: int) -> tuple[Typical, ...]:
    known = checkpoint.known
    rows = (measured >= 0) & np.isfinite(known.table.value)
    rows[rows] = labels[measured[rows]] == cluster
    out = []
    for p, name in enumerate(known.phenotypes):
        values = known.table.value[rows & (known.table.phenotype == p)].astype(np.float64)
        if len(values):
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
            out.append(Typical(name, len(values), low, median, high))
    return tuple(out)
