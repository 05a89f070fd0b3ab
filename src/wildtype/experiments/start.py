"""Start of a run from the weights of another: copied weights, newly drawn weights, and frozen weights.

Weights are matched by name, columns of gene features by feature, rows by gene, and attention heads by
relation. Mutants in the training rows of the start may not be test rows of the new run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from wildtype.errors import CheckpointError, ConfigError, SplitError
from wildtype.evidence.reference import PARTS
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.experiments.data import RunData
from wildtype.inference.other_organisms import similar_to
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.models.ensemble import members_of
from wildtype.models.interface import Model
from wildtype.mutants.identity import SetIndex
from wildtype.organism import Organism
from wildtype.organism.features import FeatureScaling

Log = Callable[[str], None]


class Start:
    """The checkpoint that a run starts from.

    Parameters
    ----------
    path : str
        Its run or checkpoint folder; of an ensemble, the first member is taken.
    data : RunData
        Of the new run.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, or it is damaged.
    SplitError
        If it was trained on mutants of this organism that the new run validates or tests on.
    """

    def __init__(self, path: str, data: RunData) -> None:
        self.path = path
        self.data = data
        self.checkpoint: Checkpoint = load_checkpoint(path)
        self.model = members_of(self.checkpoint.model)[0]
        organism = data.dataset.organism
        self.same_organism = organism.name == self.checkpoint.origin.get("organism")
        self.seen = self._seen()
        if self.seen and self.same_organism:
            raise SplitError(
                f"training.start={path}: {self.seen:,} validation or test rows are of mutants that this "
                f"model was trained on: start from a run on the same split, or "
                f"train from nothing"
            )

    def _seen(self) -> int:
        """Count rows whose genes are those of a mutant that the start knew in an earlier part of its split:
        validation and test rows among its training rows, test rows among those that chose its weights.
        """
        known = self.checkpoint.known
        mapping = self.checkpoint.genes.mapping_to(self.data.dataset.organism.genes)
        lost = (
            np.bincount(known.table.row, weights=mapping[known.table.gene] < 0, minlength=len(known.table))
            > 0
        )
        count = 0
        # Validation rows of the start chose its best epoch, so they may be validation rows here but not test
        # rows.
        for before, parts in (("train", ("validation", "test")), ("validation", ("test",))):
            rows = np.flatnonzero((known.part == PARTS.index(before)) & ~lost)
            table = known.table.take(rows).remap(mapping, len(self.data.dataset.organism.genes))
            _, first = np.unique(table.set_id, return_index=True)
            index = SetIndex(table.take(first))
            count += sum(int((index.find(self.data.part(part)) >= 0).sum()) for part in parts)
        return count

    def similarity(self, organism: Organism) -> GeneSimilarity:
        """Return how alike an organism's genes are, in the start's channels where it has any."""
        comparable = [
            name for name, block in organism.features.items() if self.same_organism or block.comparable
        ]
        return similar_to(self.checkpoint, organism, comparable) or GeneSimilarity.of(organism)

    def apply(self, model: Model, scaling: FeatureScaling | None, log: Log) -> None:
        """Copy the start's weights into ``model`` and log which were copied and which were not.

        Weights of feature columns that the start lacks, or that have another meaning in another organism, are
        0: such a column has no effect before training.

        Raises
        ------
        ConfigError
            If the models are of different kinds.
        CheckpointError
            If the start does not record its features.
        """
        origin = self.checkpoint.origin
        if model.config.name != self.model.config.name:
            raise ConfigError(
                f"training.start={self.path} is a {self.model.config.name}, and the model is a "
                f"{model.config.name}: choose the same"
            )
        source = dict(self.model.named_parameters())
        taken, left = 0, []
        with torch.no_grad():
            for name, weight in model.named_parameters():
                before = source.get(name)
                if before is not None and name in model.by_feature:
                    log(f"start: {name}: {self._columns(weight, before, scaling)}")
                elif before is not None and name in model.by_gene:
                    log(f"start: {name}: {self._rows(weight, before)}")
                elif before is not None and before.shape == weight.shape:
                    weight.copy_(before)
                else:
                    left.append(name)
                    continue
                taken += 1
        summary = (
            f"{taken} of {taken + len(left)} parameters from {self.path}, trained on {origin.get('dataset')}"
        )
        log(f"start: {summary}; left as drawn: {', '.join(left) or 'none'}")
        if self.seen:
            log(
                f"start: {self.seen:,} validation or test rows are of genes that were perturbed together in "
                f"the start's training, in organism {origin.get('organism')}"
            )

    def _columns(self, weight: Tensor, before: Tensor, scaling: FeatureScaling | None) -> str:
        """Copy the columns [·, f] of features that both have; the others become 0."""
        kept = self.checkpoint.features
        if kept is None or scaling is None:
            raise CheckpointError(
                f"training.start={self.path} does not say what its gene features are: train it again"
            )
        if before.shape[0] != weight.shape[0]:
            raise ConfigError(
                f"training.start={self.path} is a model of another width (its features are projected to "
                f"{before.shape[0]}, here to {weight.shape[0]}): set model.width and the rest as there"
            )
        place = {column: i for i, column in enumerate(kept.columns)}
        marks = [
            m
            for block in scaling.blocks
            for m in [self.same_organism or block.comparable] * len(block.inputs)
        ]
        pairs = [
            (new, place[column])
            for new, (column, usable) in enumerate(zip(scaling.columns, marks, strict=True))
            if usable and column in place
        ]
        # 0 and not the random draw: noise from an unknown feature would disturb the pretrained network.
        weight.zero_()
        to, from_ = (torch.tensor([pair[i] for pair in pairs], dtype=torch.int64) for i in (0, 1))
        weight[:, to] = before[:, from_]
        return (
            f"{len(pairs)} of {weight.shape[1]} feature columns taken, the others 0; "
            f"{before.shape[1] - len(pairs)} of the start's {before.shape[1]} have no counterpart"
        )

    def _rows(self, weight: Tensor, before: Tensor) -> str:
        """Copy the rows [n, ·] of genes that both have; the others stay as drawn."""
        mapping = self.data.dataset.organism.genes.mapping_to(self.checkpoint.genes)
        known = torch.from_numpy(np.flatnonzero(mapping >= 0))
        weight[known] = before[torch.from_numpy(mapping[mapping >= 0])]
        return f"{len(known)} of {len(weight)} genes taken, the others as drawn"


def freeze(model: Model, parts: Sequence[str], log: Log) -> None:
    """Take parts of a model, by the beginnings of their names, out of training.

    Raises
    ------
    ConfigError
        If the model has no such part, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    for part in parts:
        chosen = [name for name in names if name == part or name.startswith(f"{part}.")]
        if not chosen:
            known = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
            raise ConfigError(
                f"training.frozen names {part!r}, which the model does not have; parts: {known}"
            )
        for name in chosen:
            model.get_parameter(name).requires_grad_(False)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    total = sum(p.numel() for p in model.parameters())
    if frozen == total:
        raise ConfigError(f"training.frozen={list(parts)} leaves nothing to train: freeze less")
    log(f"frozen: {', '.join(parts)}: {frozen:,} of {total:,} weights")
