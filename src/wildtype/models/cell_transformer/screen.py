"""`ScreenReadout`: what a whole screen says of a pair, as a vector, and where outputs start from.

The columns of `wildtype.evidence.pair_columns` (completions, kernel ridge, means over similar genes) are what
model pair_screen learns from. Here each scalar output starts from a weighted sum of them, ridge regression
with one fit per number of unseen genes, and the head learns what is left, from these columns, from the
perturbed genes and from the encoded wild type.

Legend: b mutants · m training descriptions · f columns · c components · w width · p outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.described_loader import DescribedLoader, OutOfFoldPairs
from wildtype.evidence.holdout import holdout_scheme
from wildtype.evidence.pair_index import PairIndex
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.described_pairs import (
    UNSEEN,
    KernelWeights,
    PairRows,
    described,
    some_rows,
    weighted_sum,
)
from wildtype.models.interface import Output, RunRows
from wildtype.models.linear_columns import LinearColumns
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.nn.dropout import Dropout
from wildtype.nn.forest import load_sizes
from wildtype.nn.threads import each

FOLDS, GENE_FOLDS, BOTH_FOLDS = 5, 8, 5
ONE_UNSEEN = 0.4
"""As those of model pair_screen."""
COMPONENTS = 128
"""Of the columns, whose number depends on the screen: a layer needs one width."""
WIDTH = 128
MOST = 100_000
"""Descriptions that components and weights are fitted to: both have a few hundred numbers to learn."""
AS_UNSEEN = {"seen": 0.25, "one": 0.75, "none": 0.75}
"""Share of training pairs that are described as if a gene were unseen, by what most held-out pairs are."""
FLAT = 1e-6


class ScreenReadout(nn.Module):
    """Reads the columns of a pair.

    Before `fit`, which training begins with, there is nothing to read, and the readout is that of a mutant
    that is no pair.

    Parameters
    ----------
    outputs : sequence of Output
        The p outputs; scalars have a start.
    dropout : float
    """

    def __init__(self, outputs: Sequence[Output], dropout: float) -> None:
        super().__init__()
        self.outputs = tuple(outputs)
        self.kernel = KernelWeights()
        self.columns = Components()
        self.start = nn.ModuleDict(
            {
                _name(i, unseen): LinearColumns()
                for i, output in enumerate(outputs)
                if output.form == "scalar"
                for unseen in UNSEEN
            }
        )
        self.kind = nn.Embedding(len(UNSEEN) + 1, WIDTH)  # the first is of mutants that are no pairs
        self.layers = nn.Sequential(nn.Linear(COMPONENTS, WIDTH), nn.GELU(), Dropout(dropout))
        self.width_out = WIDTH

    def forward(self, mutants: MutantBatch) -> Tensor:
        """Return the readout [b, w] of a batch."""
        columns, unseen = self._described(mutants)
        components = self.columns(columns.to(self.columns.basis)).to(self.kind.weight)
        out: Tensor = self.layers(components) + self.kind(unseen + 1)
        return out

    @torch.no_grad()
    def starts(self, mutants: MutantBatch) -> Tensor:
        """Return where outputs [b, p] start from; 0 of mutants that are no pairs and of other outputs."""
        columns, unseen = self._described(mutants)
        out = columns.new_zeros(len(mutants), len(self.outputs))
        for number in torch.unique(unseen[unseen >= 0]).tolist():
            rows = torch.nonzero(unseen == number).reshape(-1)
            for i in range(len(self.outputs)):
                key = _name(i, number)
                if key in self.start and len(self._sum(key)):
                    out[rows, i] = self._sum(key)(columns[rows]).to(out)
        return out

    def _sum(self, key: str) -> LinearColumns:
        found = self.start[key]
        assert isinstance(found, LinearColumns)
        return found

    def _described(self, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        if mutants.columns is not None and mutants.unseen is not None:
            return mutants.columns, mutants.unseen
        if len(self.columns):
            raise ConfigError(
                "these mutants were not described by the screen that the model reads: give the batch the "
                "columns of a PairIndex"
            )
        device = self.kind.weight.device
        nothing = torch.zeros(len(mutants), 0, device=device)
        return nothing, torch.full((len(mutants),), -1, device=device)

    def index(
        self, similarity: GeneSimilarity, known: ReferenceMeasurements, outputs: Sequence[str]
    ) -> PairIndex:
        """Return where pairs are described, by every visible cross of the first output."""
        matrix = known.pair_matrix(outputs[0])
        return PairIndex(matrix, similarity, FOLDS, self.kernel.learned(), known.screens, each)

    def fit(self, train: Batches, validation: Batches, rows: RunRows) -> tuple[Batches, Batches]:
        """Learn the kernel, the components and the sums from training rows; return batches with columns.

        Held-out mutants are described by every visible cross, training pairs without themselves.

        Raises
        ------
        ConfigError
            If no training row is a pair, or none of the first output.
        """
        similarity = rows.organism.similarity
        assert similarity is not None  # the model `needs` it
        learn = PairRows.of(rows.train, "cell_transformer with model.head.screen")
        matrix = rows.known.pair_matrix(rows.outputs[0])
        if not matrix.known.any():
            raise ConfigError(
                f"model.head.screen=true describes pairs by {rows.outputs[0]}, of which no training row is a "
                f"pair: name first in data.phenotypes what was measured of pairs"
            )
        self.kernel = KernelWeights.of_screens(similarity, matrix, rows.known.screens)
        index = self.index(similarity, rows.known, rows.outputs)
        folds = {"gene_folds": GENE_FOLDS, "both_folds": BOTH_FOLDS}
        alike = np.full(len(learn.pairs), ONE_UNSEEN)
        parts = {}
        for unseen, found in described(index, learn.pairs, rows.seed, share=alike, **folds):
            parts[unseen] = (found.pair, found.columns)
            for i, output in enumerate(self.outputs):
                if output.form == "scalar":
                    every = np.ones(found.columns.shape[1], bool)
                    self.start[_name(i, unseen)] = weighted_sum(i, every, found, learn, rows, most=MOST)
        held = holdout_scheme(rows.train, rows.validation, rows.organism.genes)
        share = AS_UNSEEN.get(held, AS_UNSEEN["seen"])
        source = OutOfFoldPairs(learn.pairs, parts, rows.organism.genes, share, rows.seed)
        self.columns = Components.of(source.columns, rows.seed)
        return DescribedLoader(train, source), DescribedLoader(validation, index, keep=True)

    def held_out(self, validation: Batches, rows: RunRows) -> Batches:
        """Return batches of held-out mutants with columns, by every visible cross."""
        similarity = rows.organism.similarity
        assert similarity is not None
        return DescribedLoader(validation, self.index(similarity, rows.known, rows.outputs), keep=True)


class Components(nn.Module):
    """Principal components [b, c] of columns [b, f], whose long tails are drawn in; 0 of no columns.

    An empty one, as made by the constructor, takes the sizes of the buffers that are loaded into it.

    Attributes
    ----------
    centre, scale : float32 [f]
        Of each column; what is not a number counts as the centre.
    middle : float32 [f]
        Mean of a column once it was scaled and drawn in.
    basis : float32 [f, c]
    """

    centre: Tensor
    scale: Tensor
    middle: Tensor
    basis: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("centre", "scale", "middle"):
            self.register_buffer(name, torch.zeros(0))
        self.register_buffer("basis", torch.zeros(0, COMPONENTS))

    @classmethod
    def of(cls, columns: NDArray[np.float32], seed: int) -> Components:
        """Return the components of descriptions [m, f]; O(m f²) for some 100,000 of them."""
        x = torch.from_numpy(columns[some_rows(np.arange(len(columns)), MOST, seed)])
        made = cls()
        known = ~x.isnan()
        count = known.sum(0).clamp(min=1)
        made.centre = torch.where(known, x, 0.0).double().sum(0).div(count).float()
        apart = torch.where(known, x - made.centre, 0.0)
        spread = apart.double().square().sum(0).div(count).sqrt().float()
        made.scale = torch.where(spread > FLAT * spread.max(), 1 / spread.clamp(min=1e-30), 0.0)
        drawn = made._drawn_in(x).double()
        made.middle = drawn.mean(0).float()
        drawn -= drawn.mean(0)
        variance, axes = torch.linalg.eigh(drawn.T @ drawn / max(len(x), 1))
        variance, axes = variance.flip(0)[:COMPONENTS], axes.flip(1)[:, :COMPONENTS]
        # Between whitening, which makes as much of noise as of anything, and leaving small components small.
        weight = variance.clamp(min=FLAT).pow(-0.25)
        basis = torch.zeros(x.shape[1], COMPONENTS)
        basis[:, : len(weight)] = (axes * weight).float()
        made.basis = basis
        return made

    def __len__(self) -> int:
        return len(self.centre)

    def forward(self, columns: Tensor) -> Tensor:
        """Return the components."""
        if not len(self) or not columns.shape[1]:
            return columns.new_zeros(len(columns), COMPONENTS)
        return (self._drawn_in(columns) - self.middle) @ self.basis

    def _drawn_in(self, columns: Tensor) -> Tensor:
        x = torch.where(columns.isnan(), 0.0, (columns - self.centre) * self.scale)
        return x.sign() * x.abs().log1p()

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)


def _name(output: int, unseen: int) -> str:
    return f"{output}_{unseen}"
