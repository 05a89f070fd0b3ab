"""Gene features of an in-silico organism: what its rules, subsystems and wild-type flux say of every gene.

Nothing here comes from a simulated mutant.

Legend: n genes · g genes in rules · r reactions · c complexes · f columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import MutantTable
from wildtype.organism import FeatureBlock, GeneGraphs
from wildtype.organism.graph_features import graph_features
from wildtype.sources.insilico.fba import ZERO_FLUX
from wildtype.sources.insilico.models import InSilicoModel
from wildtype.sources.insilico.networks import complexes_of

MAX_ONE_HOT = 40


def gene_features(model: InSilicoModel, graphs: GeneGraphs) -> list[FeatureBlock]:
    """Return the feature blocks of a model's n genes.

    ``rules`` and ``wild-type-flux`` always; ``subsystems`` if the model names any; the blocks of
    ``graph_features``.
    """
    blocks = [_rules(model), _flux(model)]
    subsystems = _subsystems(model)
    if subsystems is not None:
        blocks.append(subsystems)
    return blocks + graph_features(graphs)


def _rules(model: InSilicoModel) -> FeatureBlock:
    """Sizes of what each gene is part of; counts as log(1 + count)."""
    m = model.metabolism
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
    lost = np.diff(_reactions_lost(model).indptr)
    columns = {
        "reactions": np.log1p(listed),
        "complexes": np.log1p(complexes),
        "other_complexes": np.log1p(isozymes),
        "smallest_complex": smallest,
        "largest_complex": largest,
        "reactions_lost": np.log1p(_to_columns(model, lost.astype(np.float64))),
        "share_lost": _to_columns(model, lost.astype(np.float64)) / np.maximum(listed, 1.0),
    }
    return _block(model, "rules", columns, "counts as log(1 + count); lost: by deleting the gene alone")


def _flux(model: InSilicoModel) -> FeatureBlock:
    """Flux of the wild type through the reactions of each gene, in mmol per gram dry weight and hour."""
    size = np.abs(model.wild_type_flux)
    active = (size > ZERO_FLUX).astype(np.float64)
    listed: Any = model.metabolism.reaction_gene
    lost = _reactions_lost(model).astype(np.float64)
    total = listed.T @ size
    weighted = listed.multiply(size[:, None]).tocsc()
    largest = np.asarray(weighted.max(axis=0).toarray()).reshape(-1)
    columns = {
        "total": np.log1p(total),
        "largest": np.log1p(largest),
        "active_reactions": np.log1p(listed.T @ active),
        "total_lost": np.log1p(_to_columns(model, lost @ size)),
        "active_lost": np.log1p(_to_columns(model, lost @ active)),
    }
    note = (
        "wild type only: parsimonious FBA; as log(1 + value); lost: by deleting the gene alone, by its rules"
    )
    return _block(model, "wild-type-flux", columns, note)


def _subsystems(model: InSilicoModel) -> FeatureBlock | None:
    """Share of each gene's reactions per subsystem, [n, f]; beyond 40 subsystems their leading components."""
    names = sorted({name for name in model.subsystems if name})
    if not names:
        return None
    member = np.array([[name == known for known in names] for name in model.subsystems], dtype=np.float64)
    listed: Any = model.metabolism.reaction_gene
    shares = (listed.T @ member) / np.maximum(np.asarray(listed.sum(axis=0)).reshape(-1, 1), 1.0)
    if len(names) > MAX_ONE_HOT:
        u, s, vt = np.linalg.svd(shares, full_matrices=False)
        sign = np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])
        shares, names = (u * s * sign)[:, :MAX_ONE_HOT], [f"c{i + 1}" for i in range(MAX_ONE_HOT)]
    return _block(
        model, "subsystems", dict(zip(names, shares.T, strict=True)), "share of the gene's reactions"
    )


def _reactions_lost(model: InSilicoModel) -> Any:
    """Reactions that die when one gene is deleted, csr [n, R]."""
    singles = MutantTable.from_matrix(np.arange(len(model.genes))[:, None])
    return model.metabolism.dead_reactions(model.genes, singles)


def _to_columns(model: InSilicoModel, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Re-order [n] over the gene index to [g] over the genes in rules."""
    out = np.zeros(len(model.metabolism.genes))
    column = model.metabolism.gene_columns(model.genes)
    out[column[column >= 0]] = values[column >= 0]
    return out


def _block(
    model: InSilicoModel, name: str, columns: dict[str, NDArray[np.float64]], note: str
) -> FeatureBlock:
    """Gather columns [g] over the genes in rules into a block [n, f] over the gene index."""
    column = model.metabolism.gene_columns(model.genes)
    values = np.full((len(model.genes), len(columns)), np.nan, np.float32)
    values[column >= 0] = np.stack(list(columns.values()), axis=1)[column[column >= 0]]
    source = f"in-silico model {model.name} {model.version}"
    return FeatureBlock(name, values, tuple(columns), source=source, note=note)
