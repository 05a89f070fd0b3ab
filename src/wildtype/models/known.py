"""Where a model of given settings looks up evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.effects import KnockoutEffects
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.interface import MetabolismTensors, OrganismTensors
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import loops


def evidence_index(
    config: Any,
    organism: OrganismTensors,
    known: ReferenceMeasurements,
    outputs: Sequence[str],
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    *,
    trees: bool = True,
) -> EvidenceIndex | None:
    """Return where a model of these settings looks up evidence; None for a model that reads none.

    ``outputs``, ``mean`` and ``sd`` [p] are the names and the scaling of its outputs; errors as in
    `ReferenceMeasurements.evidence`. Without ``trees``, what its trees read beyond what its network does is
    not looked up.
    """
    if organism.similarity is None or not isinstance(config, CellTransformerConfig):
        return None
    settings = config.evidence
    table = known.evidence(outputs, settings.also, mean, sd)
    tokens, two, neighbours = settings.tokens, settings.two, settings.neighbours
    if trees and config.trees.bags and tokens:
        more = config.trees
        tokens, two, neighbours = (
            max(tokens, more.tokens),
            max(two, more.two),
            max(neighbours, more.neighbours),
        )
    sizes = EvidenceSizes(
        tokens,
        two,
        neighbours,
        max(EvidenceSizes.replacements, neighbours),
        additive=config.head.additive,
        ranked=(settings.tokens, settings.two),
    )
    if not settings.tokens:
        sizes = EvidenceSizes(0, 0, 0, 0, additive=config.head.additive)
    effects = knockout_effects(organism.metabolism) if settings.equivalents and settings.tokens else None
    # What is measured of single mutants is no interaction.
    single = np.isin(np.arange(len(known.phenotypes)), known.table.phenotype[known.table.order == 1])
    interactions = [not single[known.phenotypes.index(name)] for name in (*outputs, *settings.also)]
    count = len(outputs) + len(settings.also)
    return EvidenceIndex(organism.similarity, table, count, sizes, loops, effects, interactions)


def knockout_effects(metabolism: MetabolismTensors | None) -> KnockoutEffects | None:
    """Return which mutants lose the same reactions; None without metabolism."""
    if metabolism is None:
        return None

    def matrix(operator: SparseOperator) -> sparse.csr_array:
        rows, columns = (x.numpy() for x in operator.edges())
        values = operator.values.double().numpy()
        return sparse.coo_array((values, (rows, columns)), shape=operator.shape).tocsr()

    return KnockoutEffects(
        matrix(metabolism.complexes), matrix(metabolism.isozymes), matrix(metabolism.stoichiometry)
    )
