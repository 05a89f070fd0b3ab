"""Prediction with genes that the organism does not have, appended to it by `Organism.add_gene`."""

from __future__ import annotations

import numpy as np

from wildtype.errors import DatasetError
from wildtype.inference.core import ExtendedCore, PredictionCore
from wildtype.inference.other_organisms import feature_columns
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import class_of
from wildtype.models.other_genes import OtherGenes, how_known, seen_of_all
from wildtype.organism import Organism


def with_appended(base: PredictionCore, organism: Organism) -> ExtendedCore:
    """Return a core that also knows the genes appended to an organism by ``Organism.add_gene``.

    Its other genes that the model cannot be asked about are left out.

    Raises
    ------
    ConfigError, DatasetError, CheckpointError
        As ``Predictor.with_genes`` does.
    """
    checkpoint = base.checkpoint
    trained, what = base.encoded.checkpoint, "appended genes"
    scaling = None
    if "features" in trained.model.needs:
        scaling = feature_columns(trained, what, appended=True)
    else:
        class_of(trained.model).check_new_genes(trained.model.config, what, len(trained.genes), appended=True)
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
    seen = seen_of_all(checkpoint.model, wider, checkpoint.organism, scaling)
    others = OtherGenes.of(wider, len(own), seen, how_known(checkpoint.model))
    return ExtendedCore(base, others, foreign=True, remarks=_remarks(trained, organism))


def _remarks(checkpoint: Checkpoint, organism: Organism) -> tuple[str, ...]:
    """Return one sentence per appended gene without a value in some feature columns."""
    if checkpoint.features is None:
        return ()
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
