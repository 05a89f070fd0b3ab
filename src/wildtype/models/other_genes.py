"""Genes that a model can be asked about although they are no tokens of it, and a checkpoint that holds them.

A run may encode fewer genes than its organism has, and a gene may be appended to an organism after training.
Both come behind the tokens: a gene that is no token attends to tokens and is attended to by none, so that it
changes no prediction of a mutant without it.

Legend: n tokens · a other genes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.evidence.reference import UNKNOWN_KIND, ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.ensemble import class_of
from wildtype.models.interface import Model, OrganismTensors, organism_tensors
from wildtype.organism import Coordinates, FeatureBlock, GeneFeatures, GeneIndex, Organism
from wildtype.organism.features import FeatureScaling

PLACES = "coordinates."
SINGLE_FITNESS = "single_fitness"


@dataclass(frozen=True, eq=False)
class OtherGenes:
    """All genes that a model can be asked about, its tokens first, and what is known of those behind them.

    Attributes
    ----------
    genes : GeneIndex
        The n tokens, then the a others.
    organism : OrganismTensors or None
        What the model sees of all of them; None where it knows genes only by parameters of their own.
    known_by : str
        What it knows the others by; without ``organism``, why it cannot be asked about them.
    single_fitness, single_fitness_sd : float32 [a]
        NaN where not known.
    essential : bool [a]
    coordinates : Coordinates or None
        Of all n + a genes.
    metabolic, dubious : bool [a] or None
    """

    genes: GeneIndex
    organism: OrganismTensors | None
    known_by: str
    single_fitness: NDArray[np.float32]
    single_fitness_sd: NDArray[np.float32]
    essential: NDArray[np.bool_]
    coordinates: Coordinates | None = None
    metabolic: NDArray[np.bool_] | None = None
    dubious: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        organism: Organism,
        tokens: int,
        seen: OrganismTensors | None,
        known_by: str,
        single_fitness: NDArray[np.float32] | None = None,
        single_fitness_sd: NDArray[np.float32] | None = None,
    ) -> Self:
        """Return the genes of an organism behind its first ``tokens``; fitness [a] where it is known."""
        unknown = np.full(len(organism.genes) - tokens, np.nan, np.float32)
        essential, metabolic, dubious = (
            None if x is None else x[tokens:]
            for x in (organism.essential, organism.metabolic, organism.dubious)
        )
        return cls(
            organism.genes,
            seen,
            known_by,
            unknown if single_fitness is None else single_fitness,
            unknown.copy() if single_fitness_sd is None else single_fitness_sd,
            np.zeros(len(unknown), bool) if essential is None else essential,
            organism.coordinates,
            metabolic,
            dubious,
        )

    def extend(self, known: ReferenceMeasurements) -> ReferenceMeasurements:
        """Return what was measured, over the index of all genes."""
        n, total = len(known.essential), len(self.genes)

        kind = known.single_fitness_kind
        if kind is not None:
            kind = np.concatenate([kind, np.full(total - n, UNKNOWN_KIND, np.uint8)])

        def both(old: NDArray[Any] | None, new: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if old is None or new is None else np.concatenate([old, new])

        return replace(
            known,
            single_fitness=np.concatenate([known.single_fitness, self.single_fitness]),
            single_fitness_sd=np.concatenate([known.single_fitness_sd, self.single_fitness_sd]),
            single_fitness_kind=kind,
            essential=np.concatenate([known.essential, self.essential]),
            coordinates=None if known.coordinates is None else self.coordinates,
            metabolic=both(known.metabolic, self.metabolic),
            dubious=both(known.dubious, self.dubious),
            grid=None if known.grid is None else known.grid.remap(np.arange(n), total),
            sides=None if known.sides is None else known.sides.extended(total - n),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is known of the other genes as arrays, for storage."""
        names = (SINGLE_FITNESS, "single_fitness_sd", "essential", "metabolic", "dubious")
        arrays = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        places = {} if self.coordinates is None else self.coordinates.to_arrays()
        return arrays | {f"{PLACES}{name}": array for name, array in places.items()}

    @classmethod
    def from_arrays(
        cls,
        genes: GeneIndex,
        organism: OrganismTensors | None,
        known_by: str,
        arrays: Mapping[str, NDArray[Any]],
    ) -> Self:
        """Rebuild what ``to_arrays`` took apart; raises ``KeyError`` if an array is missing."""
        places = {k.removeprefix(PLACES): x for k, x in arrays.items() if k.startswith(PLACES)}
        return cls(
            genes,
            organism,
            known_by,
            arrays[SINGLE_FITNESS],
            arrays["single_fitness_sd"],
            arrays["essential"],
            Coordinates.from_arrays(places) if places else None,
            arrays.get("metabolic"),
            arrays.get("dubious"),
        )


def seen_of_all(
    model: Model,
    organism: Organism,
    tokens: OrganismTensors,
    scaling: FeatureScaling | None,
    single_fitness: NDArray[np.float32] | None = None,
) -> OrganismTensors:
    """Return what a model sees of an organism whose first genes are those of ``tokens``.

    Rows of these stay as they were, to the bit; those of the others are standardised by the mean and sd
    of training. ``single_fitness`` [n + a] is a feature block where the model had one.
    """
    n, total = tokens.genes, len(organism.genes)
    features = torch.zeros(total, tokens.features.shape[1])
    features[:n] = tokens.features
    if scaling is not None:
        blocks = list(organism.features.values())
        if single_fitness is not None and any(block.name == SINGLE_FITNESS for block in scaling.blocks):
            blocks.append(FeatureBlock(SINGLE_FITNESS, single_fitness[:, None], ("fitness",)))
        features[n:] = torch.from_numpy(scaling.transform(GeneFeatures(blocks), total)[n:])
    similarity = None
    if tokens.similarity is not None:
        similarity = GeneSimilarity.of(organism, like=tokens.similarity)
    seen = organism_tensors(model, organism, features, similarity, priors=False)
    return replace(seen, encoded=tokens.tokens, native=tokens.native)


def how_known(model: Model) -> str:
    """Return what a model knows genes by that are no tokens; raises ``ConfigError`` if by nothing."""
    return class_of(model).other_genes(model.config)
