"""Gene features of an in-silico organism: its rules, network and subsystems, and the wild type's flux.

Nothing here comes from a simulated mutant.

Legend: n genes · g genes in rules · r reactions · f columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.organism import FeatureBlock, GeneGraphs
from wildtype.organism.graph_features import graph_features
from wildtype.organism.metabolic_features import gene_block, metabolic_features, reactions_lost
from wildtype.sources.insilico.fba import ZERO_FLUX
from wildtype.sources.insilico.models import InSilicoModel


def gene_features(model: InSilicoModel, graphs: GeneGraphs) -> list[FeatureBlock]:
    """Return the feature blocks of a model's n genes.

    Those of ``metabolic_features``, ``wild-type-flux``, and those of ``graph_features``.
    """
    source = f"in-silico model {model.name} {model.version}"
    read_off = metabolic_features(model.metabolism, model.genes, subsystems=model.subsystems, source=source)
    return [*read_off, _flux(model, source), *graph_features(graphs)]


def _flux(model: InSilicoModel, source: str) -> FeatureBlock:
    """Flux of the wild type through the reactions of each gene, in mmol per gram dry weight and hour."""
    size = np.abs(model.wild_type_flux)
    active = (size > ZERO_FLUX).astype(np.float64)
    listed: Any = model.metabolism.reaction_gene
    lost = reactions_lost(model.metabolism).astype(np.float64)
    weighted = listed.multiply(size[:, None]).tocsc()
    columns = {
        "total": np.log1p(listed.T @ size),
        "largest": np.log1p(np.asarray(weighted.max(axis=0).toarray()).reshape(-1)),
        "active_reactions": np.log1p(listed.T @ active),
        "total_lost": np.log1p(lost @ size),
        "active_lost": np.log1p(lost @ active),
    }
    note = (
        "wild type only: parsimonious FBA; as log(1 + value); lost: by deleting the gene alone, by its rules"
    )
    return gene_block(model.metabolism, model.genes, "wild-type-flux", columns, source=source, note=note)
