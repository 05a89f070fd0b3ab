"""Prediction with genes that the organism does not have: one more token each, in the mutants that carry them.

Legend: n genes of the model · a appended genes · m mutants · p phenotypes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.inference.core import Floats, Ints, Kinds, PredictionCore, SetPrediction
from wildtype.inference.other_organisms import feature_columns, similar_to
from wildtype.inference.sets import names_of
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.interface import organism_tensors
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import Organism

if TYPE_CHECKING:
    import pandas as pd


class ExtendedCore(PredictionCore):
    """A core that also knows genes appended to its organism.

    A mutant that names one of them is encoded with all appended tokens; its appended genes count as ``added``
    unless it names another perturbation. A mutant that names none goes to the base, with equal bits: appended
    tokens take part in the softmax of every attention layer, so they would change its prediction.

    Parameters
    ----------
    base : PredictionCore
        The trained model.
    organism : Organism
        The model's organism, with genes appended by ``Organism.add_gene``. Its other genes that are no tokens
        of the model are left out.

    Raises
    ------
    ConfigError, DatasetError, CheckpointError
        As ``Predictor.with_genes`` does.
    """

    def __init__(self, base: PredictionCore, organism: Organism) -> None:
        self.base = base
        super().__init__(_extended(base.checkpoint, organism))
        self.remarks = (*base.remarks, *_remarks(self.checkpoint, organism))

    @cached_property
    def kinds(self) -> Kinds:
        """Perturbation [n + a] assumed without a named one: as in the base, ``added`` for appended genes."""
        added = len(self.genes) - len(self.base.genes)
        return np.concatenate([self.base.kinds, np.full(added, Kind.ADDED, np.uint8)])

    def with_evidence(self, frame: pd.DataFrame) -> ExtendedCore:
        """Return a core that also looks up a user's measurements.

        Measurements of mutants with an appended gene are evidence only for mutants that carry one; all others
        are evidence for every mutant.
        """
        other = super().with_evidence(frame)
        assert isinstance(other, ExtendedCore)
        native = ~self._carries(self.table([names_of(genes) for genes in frame["genes"]]))
        if native.any():
            # The base has no token for an appended gene, so it cannot look such a row up.
            other.base = self.base.with_evidence(frame[native].reset_index(drop=True))
        return other

    def predict_with_sd(self, table: MutantTable) -> tuple[Floats, Floats]:
        """Return every phenotype and its sd [m, p]; mutants without an appended gene go to the base."""
        carries = self._carries(table)
        out, sd = (np.empty((len(table), len(self.phenotypes))) for _ in range(2))
        for rows, predict in ((carries, super().predict_with_sd), (~carries, self.base.predict_with_sd)):
            if rows.any():
                out[rows], sd[rows] = predict(table.take(np.flatnonzero(rows)))
        return out, sd

    def profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        """Return per-gene values [m, n + a]; NaN at appended genes that a mutant does not carry."""
        carries = self._carries(table)
        out = np.full((len(table), len(self.genes)), np.nan, np.float32)
        for rows, predict in ((carries, super().profiles), (~carries, self.base.profiles)):
            if rows.any():
                found = predict(table.take(np.flatnonzero(rows)), phenotype)
                out[np.flatnonzero(rows), : found.shape[1]] = found
        return out

    def combinations(self, gene: Ints, kind: Kinds, order: int, condition: int = 0) -> SetPrediction | None:
        """Return the base's faster prediction where no candidate is an appended gene, else None."""
        if (gene >= len(self.base.genes)).any():
            return None
        return self.base.combinations(gene, kind, order, condition)

    def _carries(self, table: MutantTable) -> NDArray[np.bool_]:
        """Return which mutants name an appended gene."""
        first = len(self.base.genes)
        return np.asarray(np.bincount(table.row, weights=table.gene >= first, minlength=len(table)) > 0)


def _metabolic(known: ReferenceMeasurements, organism: Organism) -> NDArray[np.bool_] | None:
    """Return which of all n + a genes are metabolic; None where either part does not say."""
    added = organism.metabolic
    if known.metabolic is None or added is None:
        return None
    return np.concatenate([known.metabolic, added[organism.appended.genes]])


def _extended(checkpoint: Checkpoint, organism: Organism) -> Checkpoint:
    """Return a checkpoint whose last a tokens are the appended genes of an organism."""
    scaling = feature_columns(checkpoint, "appended genes", appended=True)
    appended = organism.appended.genes
    names = [organism.genes.names[i] for i in appended]
    if not names:
        raise DatasetError(
            f"organism {organism.name!r} has no appended gene: add one with Organism.add_gene first"
        )
    own = checkpoint.genes.mapping_to(organism.genes)
    if (own < 0).any():
        lacking = checkpoint.genes.names[int(np.flatnonzero(own < 0)[0])]
        raise DatasetError(
            f"organism {organism.name!r} lacks {int((own < 0).sum()):,} genes of the model, as {lacking}: "
            f"take the organism that the model was trained on"
        )
    known_already = np.isin(appended, own)
    if known_already.any():
        raise DatasetError(
            f"{names[int(np.flatnonzero(known_already)[0])]!r} is a token of the model already: append others"
        )
    wider = organism.restrict(np.concatenate([own, appended]))
    n, a = len(own), len(appended)
    # Only the appended rows are standardised anew, by the training organism's mean and sd; the model's own
    # rows stay as they were stored, to the bit.
    rows = scaling.transform(wider.features, n + a)[n:]
    features = torch.cat([checkpoint.organism.features, torch.from_numpy(rows)])
    known, unknown = checkpoint.known, np.full(a, np.nan, np.float32)
    return replace(
        checkpoint,
        genes=wider.genes,
        organism=organism_tensors(
            checkpoint.model, wider, features, similar_to(checkpoint, wider), priors=False
        ),
        known=replace(
            known,
            single_fitness=np.concatenate([known.single_fitness, unknown]),
            single_fitness_sd=np.concatenate([known.single_fitness_sd, unknown]),
            essential=np.concatenate([known.essential, np.zeros(a, bool)]),
            coordinates=None if known.coordinates is None else known.coordinates.extended(a),
            metabolic=_metabolic(known, organism),
            grid=None if known.grid is None else known.grid.remap(np.arange(n), n + a),
            sides=None if known.sides is None else known.sides.extended(a),
            dubious=None if known.dubious is None else np.concatenate([known.dubious, np.zeros(a, bool)]),
        ),
    )


def _remarks(checkpoint: Checkpoint, organism: Organism) -> tuple[str, ...]:
    """Return one sentence per appended gene without a value in some feature columns."""
    assert checkpoint.features is not None
    sentences = []
    for gene in organism.appended.genes:
        lacking = {}
        for block in checkpoint.features.blocks:
            count = len(block.columns)
            if block.name in organism.features:
                held = organism.features[block.name]
                known = dict(zip(held.columns, np.isfinite(held.values[gene]).tolist(), strict=True))
                count = sum(not known.get(column, False) for column in block.columns)
            if count:
                lacking[block.name] = count
        if lacking:
            blocks = ", ".join(f"{name} ({count})" for name, count in lacking.items())
            sentences.append(
                f"{organism.genes.names[gene]}: feature columns not known, taken as the mean: {blocks}"
            )
    return tuple(sentences)
