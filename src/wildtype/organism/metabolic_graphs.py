"""Gene graphs read off a metabolic network: who shares a reaction, a complex, a metabolite, or backs up whom.

Legend: n genes · g genes in rules · r reactions · c complexes · t metabolites.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.relations import GeneGraphs, Relation

# Compounds that carry energy, charge, phosphate, electrons or acyl groups everywhere, by BiGG identifier
# without the compartment: sharing one does not relate two enzymes (after Ma & Zeng 2003,
# Bioinformatics 19:270).
_CURRENCY = (
    "h h2o h2o2 o2 co2 hco3 nh4 pi ppi so4 na1 k cl mg2 fe2 fe3 atp adp amp gtp gdp gmp ctp cdp cmp utp "
    "udp ump datp dadp damp nad nadh nadp nadph fad fadh2 fmn fmnh2 q8 q8h2 mqn8 mql8 2dmmq8 2dmmql8 "
    "coa ACP trdox trdrd grxox grxrd gthrd gthox flxso flxr"
)
CURRENCY = frozenset(_CURRENCY.split())
MAX_REACTIONS = 50
"""A metabolite of more reactions than this counts as currency too."""


def currency_metabolites(metabolism: Metabolism) -> NDArray[np.bool_]:
    """Return which metabolites are left out of the metabolite graphs, bool [T].

    Those on the fixed list ``CURRENCY``, in any compartment, and those that take part in more than 50
    reactions.
    """
    listed = np.array([name.rpartition("_")[0] in CURRENCY for name in metabolism.metabolites], dtype=bool)
    crowded = np.diff(metabolism.stoichiometry.indptr) > MAX_REACTIONS
    return np.asarray(listed | crowded)


def metabolite_use(metabolism: Metabolism) -> tuple[Any, Any]:
    """Return which metabolites each reaction can make and can consume, two csr [R, T] of 0 and 1.

    A reversible reaction does both; a direction that the bounds exclude is not counted, and currency
    metabolites are left out.
    """
    s = metabolism.stoichiometry.tocoo()
    row, column = s.coords
    forward, backward = metabolism.upper[column] > 0, metabolism.lower[column] < 0
    makes = ((s.data > 0) & forward) | ((s.data < 0) & backward)
    consumes = ((s.data < 0) & forward) | ((s.data > 0) & backward)
    counted = ~currency_metabolites(metabolism)[row]
    shape = (len(metabolism.reactions), len(metabolism.metabolites))

    def incidence(chosen: NDArray[np.bool_]) -> Any:
        chosen = chosen & counted
        arrays: Any = (np.ones(int(chosen.sum())), (column[chosen], row[chosen]))
        return sparse.csr_array(arrays, shape=shape)

    return incidence(makes), incidence(consumes)


def complexes_of(metabolism: Metabolism) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the minimal complexes of every reaction with a rule, as columns of ``metabolism.genes``."""
    members = np.split(metabolism.complex_gene.indices.astype(np.int64), metabolism.complex_gene.indptr[1:-1])
    rules = metabolism.reaction_complex
    for start, stop in zip(rules.indptr[:-1], rules.indptr[1:], strict=True):
        if stop > start:
            yield [members[c] for c in rules.indices[start:stop]]


def alternatives(complexes: list[NDArray[np.int64]]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the isozyme pairs and the backup pairs of one reaction's complexes, each ascending.

    Isozymes: one gene is in a complex without the other, and the other in a complex without the first.
    Backups: every complex needs one of the two, but neither is in all, so that only losing both kills the
    reaction.
    """
    sets = [set(c.tolist()) for c in complexes]
    of: dict[int, frozenset[int]] = {
        gene: frozenset(i for i, s in enumerate(sets) if gene in s) for gene in sorted(set().union(*sets))
    }
    isozymes, backups = set(), set()
    for a, b in combinations(of, 2):
        if of[a] - of[b] and of[b] - of[a]:
            isozymes.add((a, b))
            if len(of[a] | of[b]) == len(sets):
                backups.add((a, b))
    return isozymes, backups


def metabolic_graphs(
    metabolism: Metabolism, genes: GeneIndex, *, source: str = "", version: str = ""
) -> GeneGraphs:
    """Return six relations over the n genes; a weight counts reactions or links behind an edge.

    ``reaction``, ``complex``, ``isozyme``, ``backup`` and ``metabolite`` are undirected; ``consecutive``
    leads from the genes of a reaction that can make a metabolite to those of one that can consume it. Genes
    of rules that the index lacks have no edges.
    """
    m = metabolism
    n = len(genes)
    position = {name: i for i, name in enumerate(genes.names)}
    place = np.array([position.get(gene, -1) for gene in m.genes], dtype=np.int64)
    left_out = currency_metabolites(m)
    named = ", ".join(sorted({m.metabolites[t].rpartition("_")[0] for t in np.flatnonzero(left_out)}))
    metabolite_note = (
        f"without {int(left_out.sum())} currency metabolites: those on a fixed list and those of more than "
        f"{MAX_REACTIONS} reactions, in every compartment where they are ({named})"
    )

    def relation(name: str, counts: Any, directed: bool, note: str) -> Relation:
        coo = sparse.coo_array(counts)
        rows, columns = (place[axis] for axis in coo.coords)
        # The symmetric counts hold every undirected pair twice.
        once = (rows != columns if directed else rows < columns) & (rows >= 0) & (columns >= 0)
        return Relation.from_edges(
            name,
            rows[once],
            columns[once],
            n,
            coo.data[once],
            directed=directed,
            source=source,
            version=version,
            note=note,
        )

    def pairs(found: list[set[tuple[int, int]]]) -> Any:
        edges = np.array([e for one in found for e in sorted(one)], dtype=np.int64).reshape(-1, 2)
        both = np.concatenate([edges, edges[:, ::-1]])
        arrays: Any = (np.ones(len(both)), (both[:, 0], both[:, 1]))
        return sparse.csr_array(arrays, shape=(len(m.genes), len(m.genes)))

    listed: Any = m.reaction_gene
    together = [{(a, b) for c in one for a, b in combinations(c.tolist(), 2)} for one in complexes_of(m)]
    choices = [alternatives(one) for one in complexes_of(m)]
    makes, consumes = metabolite_use(m)
    touches = makes + consumes
    # A reversible reaction makes and consumes a metabolite, which still is one link.
    touches.data[:] = 1.0
    shared = touches @ touches.T
    next_to = makes @ consumes.T
    for links in (shared, next_to):
        links.setdiag(0.0)
        links.eliminate_zeros()
    return GeneGraphs(
        [
            relation(
                "reaction",
                listed.T @ listed,
                False,
                "both genes stand in the rule of one reaction; weight: number of reactions",
            ),
            relation(
                "complex",
                pairs(together),
                False,
                "both genes are needed by one complex of a reaction (AND); weight: number of reactions",
            ),
            relation(
                "isozyme",
                pairs([isozymes for isozymes, _ in choices]),
                False,
                "alternatives of one reaction (OR): each is in a complex without the other; "
                "weight: number of reactions",
            ),
            relation(
                "backup",
                pairs([backups for _, backups in choices]),
                False,
                "a reaction dies without both but lives without either; weight: number of reactions. "
                "Read off the rules, not simulated",
            ),
            relation(
                "metabolite",
                listed.T @ shared @ listed,
                False,
                f"the genes' reactions share a metabolite; weight: number of links; {metabolite_note}",
            ),
            relation(
                "consecutive",
                listed.T @ next_to @ listed,
                True,
                f"a reaction of the first gene can make what one of the second can consume, within the flux "
                f"bounds; weight: number of links; {metabolite_note}",
            ),
        ]
    )
