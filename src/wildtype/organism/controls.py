"""Controls for the value of gene graphs: fewer, merged, or degree-matched random ones.

Features that are read off the graphs follow. Without a relation, its spectral positions and its degrees are
removed too; in a rewired organism, spectral positions are those of the random graphs, and degrees stay, since
rewiring keeps them. Everything else stays, so that a difference between models is due to the edges alone.
Inputs that were never read off the relations still hold biology: annotations (the block ``go_process``), the
metabolism and its rules, phenotypes of single deletions. ``model.leave_out`` removes feature blocks.

Rewiring swaps the ends of pairs of edges, (a, b), (c, d) → (a, d), (c, b), many times (Maslov & Sneppen 2002,
Science 296:910; on how many: Milo et al. 2003, arXiv:cond-mat/0312028). Every gene keeps its number of
partners, out and in, and no swap makes a self-loop or repeats an edge.

Legend: n genes · m edges (an undirected one counts once) · s pairs of edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import ConfigError
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.graph_features import DEGREES, SPECTRAL, graph_features, spectral_components
from wildtype.organism.organism import Organism
from wildtype.organism.relations import Appended, GeneGraphs, Relation
from wildtype.seeds import generator

SWAPS_PER_EDGE = 5
"""Swaps per edge after which a graph counts as random: an edge takes part in ten swaps on average."""
MOST_ROUNDS = 100
"""Most swaps of a dense graph are refused; a round proposes half a swap per edge."""
Ints = NDArray[np.int64]
Keys = NDArray[Any]
"""int32 or int64, one number per edge."""


def choose_relations(organism: Organism, only: Sequence[str] = (), without: Sequence[str] = ()) -> Organism:
    """Return the organism with these relations alone, and with the features read off them alone.

    Parameters
    ----------
    organism : Organism
        With all its relations.
    only : sequence of str
        Relations to keep, which stay in the organism's order; none named: all.
    without : sequence of str
        Relations to leave out of those.

    Raises
    ------
    ConfigError
        If a relation is unknown, or is to be kept and left out.
    """
    for setting, names in (("data.graphs", only), ("data.without", without)):
        for name in names:
            if name not in organism.graphs:
                known = ", ".join(organism.graphs) or "none"
                raise ConfigError(f"{setting} names {name!r}, which is not a relation; known: {known}")
    for name in without:
        if name in only:
            raise ConfigError(f"relation {name!r} is in both data.graphs and data.without: choose one")
    kept = [name for name in organism.graphs if (not only or name in only) and name not in without]
    gone = set(organism.graphs) - set(kept)
    if not gone:
        return organism
    blocks = [_without(block, gone) for block in organism.features.values()]
    return replace(
        organism,
        graphs=organism.graphs.select(kept),
        features=GeneFeatures(block for block in blocks if block is not None),
        description=f"{organism.description}; without the gene graphs {', '.join(sorted(gone))}",
    )


def merge_relations(organism: Organism, merge: Mapping[str, Sequence[str]]) -> Organism:
    """Return the organism with some relations replaced by their union, which has the place of their first.

    An edge of several parts has its largest weight. The union is undirected if all parts are. Degrees and
    spectral positions are those of the union. A pair of an appended gene is known to be unrelated where it is
    known to be so in every part.

    Parameters
    ----------
    organism : Organism
        With all its relations.
    merge : mapping of str to sequence of str
        Relations to unite, two or more, by the name of their union.

    Raises
    ------
    ConfigError
        If a part is unknown, is named twice, or is alone, or a name is that of another relation.
    """
    if not merge:
        return organism
    parts = [part for names in merge.values() for part in names]
    known = ", ".join(organism.graphs) or "none"
    for name, names in merge.items():
        for part in names:
            if part not in organism.graphs:
                raise ConfigError(f"data.merge names {part!r}, which is not a relation; known: {known}")
            if parts.count(part) > 1:
                raise ConfigError(f"data.merge names relation {part!r} more than once: name it once")
        if len(names) < 2:
            raise ConfigError(f"data.merge makes {name!r} of {len(names)} relation: name two or more")
        if name in organism.graphs and name not in names:
            raise ConfigError(f"data.merge makes {name!r}, and there is such a relation: choose another name")
    union_of = {names[0]: name for name, names in merge.items()}
    unions = {name: _union(name, [organism.graphs[part] for part in names]) for name, names in merge.items()}
    graphs = [
        unions[union_of[name]] if name in union_of else relation
        for name, relation in organism.graphs.items()
        if name in union_of or name not in parts
    ]
    blocks = [_without(block, set(parts)) for block in organism.features.values()]
    features = [block for block in blocks if block is not None]
    for name, names in merge.items():
        features = _with_graph_features(features, organism, unions[name], names)
    told = "; ".join(f"{name} merged from {', '.join(names)}" for name, names in merge.items())
    return replace(
        organism,
        graphs=GeneGraphs(graphs),
        features=GeneFeatures(features),
        appended=_merged_appended(organism, merge),
        description=f"{organism.description}; {told}",
    )


def _union(name: str, parts: Sequence[Relation]) -> Relation:
    ends = [part.endpoints() for part in parts]
    rows, cols, weights = (np.concatenate(column) for column in zip(*ends, strict=True))
    weighted = any(part.weighted for part in parts)
    one_source = dict.fromkeys(part.source for part in parts if part.source)
    versions = dict.fromkeys(part.version for part in parts if part.version)
    union = Relation.from_edges(
        name,
        rows,
        cols,
        parts[0].n,
        weights if weighted else None,
        directed=any(part.directed for part in parts),
        source="; ".join(one_source),
        version="; ".join(versions),
        note=f"union of {', '.join(part.name for part in parts)}, of an edge in several the largest weight",
        measured=dict.fromkeys(source for part in parts for source in part.measured),
    )
    # An undirected part lists both directions of an edge, and parts share edges: nothing was dropped.
    return replace(union, dropped={})


def _with_graph_features(
    blocks: Sequence[FeatureBlock], organism: Organism, union: Relation, parts: Sequence[str]
) -> list[FeatureBlock]:
    """Return blocks with what is read off a union, as far as it was read off its parts."""
    widths = [
        organism.features[SPECTRAL + part].values.shape[1]
        for part in parts
        if SPECTRAL + part in organism.features
    ]
    made = graph_features(GeneGraphs([union]), components=max(widths, default=0) or 1, minimum_edges=1)
    out = list(blocks)
    for block in made:
        if block.name == DEGREES and DEGREES in organism.features:
            at = next((i for i, other in enumerate(out) if other.name == DEGREES), None)
            if at is None:
                out.append(block)
                continue
            before = out[at]
            values = np.concatenate([before.values, block.values], axis=1)
            out[at] = replace(before, values=values, columns=(*before.columns, *block.columns))
        elif block.name != DEGREES and widths:
            out.append(block)
    return out


def _merged_appended(organism: Organism, merge: Mapping[str, Sequence[str]]) -> Appended:
    """Return appended genes with the pairs whose status is known in a union.

    They are related if any part relates them, and unrelated if all parts know that they are.
    """
    appended = organism.appended
    if not len(appended):
        return appended
    gone = {part for names in merge.values() for part in names}
    valid = {name: pairs for name, pairs in appended.valid.items() if name not in gone}
    for name, names in merge.items():
        known, related = [], set()
        for part in names:
            pairs = {(a, b) for a, b in appended.valid.get(part, np.zeros((2, 0), np.int64)).T.tolist()}
            adjacency = organism.graphs[part].adjacency
            known.append(pairs)
            related |= {pair for pair in pairs if adjacency[pair]}
        pairs = set.intersection(*known) | related
        valid[name] = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return replace(appended, valid=valid)


def rewire_relations(organism: Organism, seed: int) -> Organism:
    """Return the organism with every relation rewired at random, every degree kept; see ``rewire``.

    Spectral blocks are computed anew, with as many columns where the random graph is large enough.
    """
    graphs = GeneGraphs(rewire(relation, seed) for relation in organism.graphs.values())
    blocks = []
    for block in organism.features.values():
        # Spectral positions identify the true edges; keeping them would leak what the control removes.
        relation = graphs.get(block.name.removeprefix(SPECTRAL)) if block.name.startswith(SPECTRAL) else None
        if relation is not None:
            values = spectral_components(relation, block.values.shape[1])
            columns = block.columns[: values.shape[1]]
            block = replace(block, values=values, columns=columns, note=relation.note)
        blocks.append(block)
    description = f"{organism.description}; every gene graph rewired at random, degrees kept (seed {seed})"
    return replace(organism, graphs=graphs, features=GeneFeatures(blocks), description=description)


def _without(block: FeatureBlock, gone: set[str]) -> FeatureBlock | None:
    """Return a block without its columns of removed relations; None if no column is left."""
    if block.name.startswith(SPECTRAL):
        return None if block.name.removeprefix(SPECTRAL) in gone else block
    if block.name != DEGREES:
        return block
    lost = {column for name in gone for column in (name, f"{name}.out", f"{name}.in")}
    keep = [i for i, column in enumerate(block.columns) if column not in lost]
    if not keep:
        return None
    return replace(block, values=block.values[:, keep], columns=tuple(block.columns[i] for i in keep))


def rewire(relation: Relation, seed: int) -> Relation:
    """Return a random relation with the degrees of ``relation``; its note counts the edges that stayed.

    In- and out-degrees of every gene are kept, an undirected relation stays undirected, and the weights are
    the same numbers on other edges: in a directed relation every source keeps its weights, in an undirected
    one they wander. The draws depend on ``seed`` and the relation's name alone. A graph that is nearly
    complete cannot be rewired much.

    Parameters
    ----------
    relation : Relation
        Over n genes.
    seed : int
        Of the draws.

    Returns
    -------
    Relation
        Under the same name; takes O(m log m) per round; 1.2 million undirected edges take some 5 s.
    """
    rows, cols, weights = relation.endpoints()
    if not relation.directed:
        once = rows < cols
        rows, cols, weights = rows[once], cols[once], weights[once]
    n, m = relation.n, rows.size
    before = np.sort(_keys(rows, cols, n, relation.directed))
    rng = generator(seed, f"rewired/{relation.name}")
    made, rounds = 0, 0
    while made < SWAPS_PER_EDGE * m and rounds < MOST_ROUNDS and m > 1:
        made += _swap(rows, cols, n, relation.directed, rng)
        rounds += 1
    same = int(_held(before, _keys(rows, cols, n, relation.directed)).sum()) if m else 0
    if not relation.directed:
        rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        weights = np.concatenate([weights, weights])
    adjacency = sparse.coo_array((weights, (rows, cols)), shape=(n, n)).tocsr()
    adjacency.sort_indices()
    note = f"rewired at random with every degree kept (seed {seed}): {same:,} of {m:,} edges are as they were"
    return replace(relation, adjacency=adjacency, note="; ".join(filter(None, (relation.note, note))))


def _keys(rows: Ints, cols: Ints, n: int, directed: bool) -> Keys:
    """Return one number per edge; both directions of an undirected one have the same."""
    first, second = (rows, cols) if directed else (np.minimum(rows, cols), np.maximum(rows, cols))
    keys = first * n + second
    return keys.astype(np.int32) if n < 46_341 else keys  # n² fits, and half the bytes sort twice as fast


def _held(ascending: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """Return which of ``wanted`` are among the numbers ``ascending``."""
    at = np.minimum(np.searchsorted(ascending, wanted), ascending.size - 1)
    return np.asarray(ascending[at] == wanted)


def _swap(rows: Ints, cols: Ints, n: int, directed: bool, rng: np.random.Generator) -> int:
    """Swap the ends of random disjoint pairs of edges in place where they may, and return how many did.

    A proposal is refused if it is a self-loop, is an edge already, or is proposed twice. Edges that another
    swap of the round takes away count as being there still, so that the order of swaps does not matter.
    """
    order = rng.permutation(rows.size)
    half = rows.size // 2
    one, two = order[:half], order[half : 2 * half]
    a, b, c, d = rows[one], cols[one], rows[two], cols[two]
    if not directed:
        # An undirected edge has no first end, so each of the two possible swaps is proposed half the time.
        turned = rng.random(half) < 0.5
        c, d = np.where(turned, d, c), np.where(turned, c, d)
    proposed = np.concatenate([_keys(a, d, n, directed), _keys(c, b, n, directed)])
    # Looked up in ascending order, which is several times faster than at random.
    rank = np.argsort(proposed)
    ascending = proposed[rank]
    # Against the edges before the round: the result does not depend on the order of swaps within it.
    taken = _held(np.sort(_keys(rows, cols, n, directed)), ascending)
    twice = ascending[1:] == ascending[:-1]
    taken[1:] |= twice
    taken[:-1] |= twice  # all of them, so that nothing depends on how a machine sorts equal numbers
    refused = np.empty(proposed.size, bool)
    refused[rank] = taken
    good = ~(refused[:half] | refused[half:]) & (a != d) & (c != b)
    cols[one[good]] = d[good]
    rows[two[good]], cols[two[good]] = c[good], b[good]
    return int(good.sum())
