"""Evidence, batches and experts of the cell transformer, from measured rows.

Legend: b mutants · p outputs · m members of an ensemble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from wildtype.errors import ConfigError
from wildtype.evidence.effects import KnockoutEffects
from wildtype.evidence.holdout import check_holdout, holdout_scheme
from wildtype.evidence.loader import EvidenceLoader
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.out_of_fold import OutOfFold
from wildtype.evidence.reference import ReferenceMeasurements, check_also
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.interface import MetabolismTensors, OrganismTensors, RunRows
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.loader import Batches
from wildtype.nn.ragged import segment_sum
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import ahead, loops


def check_rows(config: CellTransformerConfig, phenotypes: Sequence[str], members: int) -> None:
    """Refuse evidence that the phenotypes or the number of members do not allow; raises ``ConfigError``."""
    if not config.reads_measurements:
        return
    check_also(config.evidence.also, phenotypes)
    experts = config.evidence.experts
    if experts and len(experts) != members:
        raise ConfigError(
            f"model.evidence.experts has {len(experts)} entries, one for each member, and "
            f"training.members={members}: name as many"
        )
    if config.evidence.holdout:
        check_holdout(config.evidence.holdout)


def with_evidence(
    config: CellTransformerConfig, train: Batches, validation: Batches, rows: RunRows, *, trees: bool
) -> tuple[Batches, Batches]:
    """Return batches with evidence, that of training mutants out of fold; for the ``trees``, more of it."""
    index = evidence_index(config, rows.organism, rows.known, rows.outputs, rows.mean, rows.sd, trees=trees)
    if index is None:
        return train, validation
    if not config.reads_measurements:
        return EvidenceLoader(train, index, ahead=ahead), EvidenceLoader(validation, index, keep=True)
    fractions = dict(config.evidence.holdout)
    if not fractions:
        fractions = {holdout_scheme(rows.train, rows.validation, rows.organism.genes): 1.0}
    # A training mutant must not see its own label, nor more than a validation mutant would: hence folds.
    hiding = OutOfFold(index, fractions, rows.seed)
    experts = config.evidence.experts and "seen" not in fractions
    return (
        # Without encoder layers a step takes little longer than its lookups, which are worth a thread of it.
        EvidenceLoader(train, hiding, ahead=partial(ahead, instead=not config.layers)),
        # Validation mutants of an expert lack as many genes as its training mutants; otherwise early stopping
        # would select for another task.
        EvidenceLoader(validation, OutOfFold(index, fractions, rows.seed) if experts else index, keep=True),
    )


def expert_settings(config: CellTransformerConfig, number: int, members: int) -> CellTransformerConfig:
    """Return the settings of one of so many members: an expert is trained on mutants of its kind alone."""
    expert = config.evidence.expert(number, members)
    if expert is None:
        return config
    return replace(config, evidence=replace(config.evidence, holdout={expert: 1.0}))


def expert_weights(
    experts: Sequence[str], mutants: MutantBatch, evidence: EvidenceTokens, phenotypes: int
) -> Tensor:
    """Return how much each member counts for each mutant [m, b]: alike, of those that are asked."""
    statistics = evidence.genes.statistics
    everything = statistics.shape[1] // 3
    # Counts of measurements by phenotype, those of the outputs first.
    count = statistics[:, everything : everything + phenotypes]
    unseen = segment_sum((count == 0).all(1).float()[:, None], mutants.offsets)[:, 0]
    whole = (mutants.offsets[1:] - mutants.offsets[:-1]).to(unseen)
    asked = {"seen": unseen == 0, "none": (unseen == whole) & (whole > 0)}
    # All that is between: some genes seen, some not.
    asked["one"] = ~(asked["seen"] | asked["none"])
    weights = torch.stack([asked[name] for name in experts]).to(unseen)
    # A mutant for which no member is the expert is answered by all: the sum below is never zero.
    weights = torch.where(weights.sum(0) > 0, weights, 1.0)
    return weights / weights.sum(0)


def evidence_index(
    config: CellTransformerConfig,
    organism: OrganismTensors,
    known: ReferenceMeasurements,
    outputs: Sequence[str],
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    *,
    trees: bool = True,
) -> EvidenceIndex | None:
    """Return where a model of these settings looks up evidence; None for one that compares no genes.

    ``outputs``, ``mean`` and ``sd`` [p] are the names and the scaling of its outputs; errors as in
    `ReferenceMeasurements.evidence`. Without ``trees``, what its trees read beyond what its network does is
    not looked up.
    """
    if organism.similarity is None:
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
        additive=config.adds_effects,
        ranked=(settings.tokens, settings.two),
    )
    if not settings.tokens:
        sizes = EvidenceSizes(0, 0, 0, 0, additive=config.adds_effects)
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
