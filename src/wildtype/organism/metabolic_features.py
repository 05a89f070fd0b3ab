"""Features of genes read off a metabolic network: gene rules, reactions and positions in the network.

Nothing here comes from a mutant, simulated or measured, and nothing from a flux.

Legend: n genes · g genes in rules · r reactions · s subsystems · f columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism.components import spread
from wildtype.organism.features import FeatureBlock
from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolic_graphs import complexes_of, metabolite_use
from wildtype.organism.metabolism import Metabolism

Floats = NDArray[np.float64]
MAX_ONE_HOT = 40
"""Beyond so many subsystems, their leading components take their place."""


def metabolic_features(
    metabolism: Metabolism, genes: GeneIndex, *, subsystems: Sequence[str] = (), source: str = ""
) -> list[FeatureBlock]:
    """Return the blocks of the n genes: ``rules``, ``network``, and ``subsystems`` where reactions have any.

    Genes in no rule are NaN.

    Parameters
    ----------
    metabolism : Metabolism
        The network.
    genes : GeneIndex
        The n genes, by the systematic names that rules use.
    subsystems : sequence of str [r]
        Subsystem of every reaction; empty where there is none.
    source : str
        Of the blocks.
    """
    blocks = [_rules(metabolism, genes, source), _network(metabolism, genes, source)]
    found = _subsystems(metabolism, genes, subsystems, source)
    return blocks if found is None else [*blocks, found]


def gene_block(
    metabolism: Metabolism,
    genes: GeneIndex,
    name: str,
    columns: Mapping[str, Floats],
    *,
    source: str,
    note: str,
    comparable: bool = True,
) -> FeatureBlock:
    """Gather columns [g] over the genes in rules into a block [n, f] over an index."""
    column = metabolism.gene_columns(genes)
    known = np.flatnonzero(column >= 0)
    values = spread(np.stack(list(columns.values()), axis=1)[column[known]], known, len(genes))
    return FeatureBlock(name, values, tuple(columns), source=source, note=note, comparable=comparable)


def reactions_lost(metabolism: Metabolism) -> Any:
    """Return the reactions that die when one gene is deleted, csr [g, R]."""
    each = np.arange(len(metabolism.genes))
    return metabolism.dead_without(each, each, len(each))


def _rules(m: Metabolism, genes: GeneIndex, source: str) -> FeatureBlock:
    """Sizes of what each gene is part of; counts as log(1 + count)."""
    g = len(m.genes)
    complexes, isozymes = np.zeros(g), np.zeros(g)
    smallest, largest = np.full(g, np.nan), np.full(g, np.nan)
    for reaction in complexes_of(m):
        has = np.zeros(g)
        for members in reaction:
            has[members] += 1
            smallest[members] = np.fmin(smallest[members], members.size)
            largest[members] = np.fmax(largest[members], members.size)
        inside = has > 0
        complexes += has
        isozymes[inside] += len(reaction) - has[inside]
    listed = np.asarray(m.reaction_gene.sum(axis=0)).reshape(-1)
    lost = np.diff(reactions_lost(m).indptr).astype(np.float64)
    columns = {
        "reactions": np.log1p(listed),
        "complexes": np.log1p(complexes),
        "other_complexes": np.log1p(isozymes),
        "smallest_complex": smallest,
        "largest_complex": largest,
        "reactions_lost": np.log1p(lost),
        "share_lost": lost / np.maximum(listed, 1.0),
    }
    note = "counts as log(1 + count); lost: by deleting the gene alone"
    return gene_block(m, genes, "rules", columns, source=source, note=note)


def _network(m: Metabolism, genes: GeneIndex, source: str) -> FeatureBlock:
    """Position of each gene's reactions: steps from uptake reactions, and to the growth reaction.

    One step leads from a reaction that can make a metabolite to one that can consume it; currency metabolites
    are left out.
    """
    makes, consumes = metabolite_use(m)
    step = sparse.csr_array(makes @ consumes.T)
    step.setdiag(0.0)
    step.eliminate_zeros()
    # An exchange reaction has one metabolite; it takes it up if a bound allows a flux into the cell.
    one_sided = np.diff(sparse.csr_array(m.stoichiometry.T).indptr) == 1
    signs = np.asarray(m.stoichiometry.sum(axis=0)).reshape(-1)
    takes_up = one_sided & np.where(signs < 0, m.lower < 0, m.upper > 0)
    from_uptake = _steps(step, takes_up)
    to_growth = _steps(sparse.csr_array(step.T), m.objective != 0)
    degree = np.diff(step.indptr) + np.diff(sparse.csr_array(step.T).indptr)
    reversible = ((m.lower < 0) & (m.upper > 0)).astype(np.float64)
    listed = m.reaction_gene
    columns = {
        "steps_from_uptake": _over_reactions(listed, from_uptake, np.fmin),
        "steps_to_growth": _over_reactions(listed, to_growth, np.fmin),
        "far_from_uptake": _over_reactions(listed, from_uptake, np.fmax),
        "far_to_growth": _over_reactions(listed, to_growth, np.fmax),
        "links": np.log1p(_over_reactions(listed, degree.astype(np.float64), np.fmax)),
        "reversible": _over_reactions(listed, reversible, np.fmax),
    }
    note = (
        "steps in the network of reactions, nearest and farthest of the gene's own; links: of its best "
        "connected reaction, log(1 + count); currency metabolites left out"
    )
    return gene_block(m, genes, "network", columns, source=source, note=note)


def _steps(step: sparse.csr_array, start: NDArray[np.bool_]) -> Floats:
    """Return the steps [r] from the nearest of some reactions; NaN where none leads there."""
    out = np.full(step.shape[0], np.nan)
    front, depth = start.copy(), 0
    while front.any():
        out[front] = depth
        depth += 1
        front = (np.asarray(step.T @ front.astype(np.float64)) > 0) & np.isnan(out)
    return out


def _over_reactions(listed: sparse.csr_array, value: Floats, combine: np.ufunc) -> Floats:
    """Return [g] what is left of the values [r] of each gene's reactions, NaN passed over."""
    pairs = listed.tocoo()
    out = np.full(listed.shape[1], np.nan)
    combine.at(out, pairs.coords[1], value[pairs.coords[0]])
    return out


def _subsystems(
    m: Metabolism, genes: GeneIndex, subsystems: Sequence[str], source: str
) -> FeatureBlock | None:
    """Share of each gene's reactions per subsystem, [n, f]; of more than 40, the leading components."""
    names = sorted({name for name in subsystems if name})
    if not names:
        return None
    member = np.array([[name == known for known in names] for name in subsystems], dtype=np.float64)
    listed: Any = m.reaction_gene
    shares = (listed.T @ member) / np.maximum(np.asarray(listed.sum(axis=0)).reshape(-1, 1), 1.0)
    condensed = len(names) > MAX_ONE_HOT
    if condensed:
        u, s, vt = np.linalg.svd(shares, full_matrices=False)
        # The sign of a singular vector is arbitrary; its largest loading is made positive.
        sign = np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])
        shares, names = (u * s * sign)[:, :MAX_ONE_HOT], [f"c{i + 1}" for i in range(MAX_ONE_HOT)]
    columns = dict(zip(names, shares.T, strict=True))
    note = "share of the gene's reactions"
    return gene_block(m, genes, "subsystems", columns, source=source, note=note, comparable=not condensed)
