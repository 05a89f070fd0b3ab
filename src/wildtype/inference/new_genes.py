"""Prediction with genes that the organism does not have: one more token each, in the mutants that carry them.

Legend: n genes of the model · a appended genes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.inference.other_organisms import feature_columns, similar_to
from wildtype.inference.own_evidence import names_of
from wildtype.inference.predictor import Predictor
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.interface import organism_tensors
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import Organism

if TYPE_CHECKING:
    import pandas as pd


class ExtendedPredictor(Predictor):
    """A predictor that knows genes which were appended to its organism.

    A mutant that names one of them is encoded with the appended tokens; it is ``added`` unless the mutant
    says otherwise. A mutant that names none is answered by the predictor without them, to the bit.

    Parameters
    ----------
    base : Predictor
        The trained model.
    organism : Organism
        That of the model, with genes appended by ``Organism.add_gene``. Of its own genes, those that are no
        tokens of the model are left out.

    Raises
    ------
    ConfigError, DatasetError, CheckpointError
        As ``Predictor.with_genes`` does.
    """

    def __init__(self, base: Predictor, organism: Organism) -> None:
        self.base = base
        super().__init__(_extended(base.checkpoint, organism))
        self.remarks = (*base.remarks, *_remarks(self.checkpoint, organism))

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """As of the model without the added genes, which are added where nothing is said."""
        added = len(self.genes) - len(self.base.genes)
        return np.concatenate([self.base.kinds, np.full(added, Kind.ADDED, np.uint8)])

    def with_evidence(self, frame: pd.DataFrame) -> Predictor:
        """Return a predictor that also looks up own measurements.

        Those of the model's own genes are evidence for every mutant.

        Measurements of mutants with an added gene are evidence for mutants that carry one.
        """
        other = super().with_evidence(frame)
        assert isinstance(other, ExtendedPredictor)
        table = self.table([names_of(genes) for genes in frame["genes"]])
        own = np.bincount(table.row, weights=table.gene >= len(self.base.genes), minlength=len(table)) == 0
        if own.any():
            other.base = self.base.with_evidence(frame[own].reset_index(drop=True))
        return other

    def _profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        carries = self._carries(table)
        out = np.full((len(table), len(self.genes)), np.nan, np.float32)
        if carries.any():
            out[carries] = super()._profiles(table.take(np.flatnonzero(carries)), phenotype)
        if not carries.all():
            rest = self.base._profiles(table.take(np.flatnonzero(~carries)), phenotype)
            out[np.flatnonzero(~carries), : rest.shape[1]] = rest
        return out

    def _carries(self, table: MutantTable) -> NDArray[np.bool_]:
        """Return which rows name an added gene."""
        first = len(self.base.genes)
        return np.asarray(np.bincount(table.row, weights=table.gene >= first, minlength=len(table)) > 0)

    def combinations(
        self, gene: NDArray[np.int64], kind: NDArray[np.uint8], order: int, condition: int = 0
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
        """Return the base's way where no member is an added gene, else None."""
        if (gene >= len(self.base.genes)).any():
            return None
        return self.base.combinations(gene, kind, order, condition)

    def predict_with_sd(self, table: MutantTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return every phenotype and its sd [M, p]; of mutants without an added gene, those of the base."""
        carries = self._carries(table)
        out, sd = (np.empty((len(table), len(self.phenotypes))) for _ in range(2))
        if carries.any():
            out[carries], sd[carries] = super().predict_with_sd(table.take(np.flatnonzero(carries)))
        if not carries.all():
            out[~carries], sd[~carries] = self.base.predict_with_sd(table.take(np.flatnonzero(~carries)))
        return out, sd


def _metabolic(known: ReferenceMeasurements, organism: Organism) -> NDArray[np.bool_] | None:
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
            f"organism {organism.name!r} has no appended gene: add one with Organism.add_gene before"
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
        ),
    )


def _remarks(checkpoint: Checkpoint, organism: Organism) -> tuple[str, ...]:
    """Return, for every appended gene, the columns of features that it has no value of."""
    assert checkpoint.features is not None
    said = []
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
            said.append(
                f"{organism.genes.names[gene]}: feature columns not known, taken as the mean: {blocks}"
            )
    return tuple(said)
