"""`GaussianProcess`: predictions and their standard deviations from a few hundred measured mutants, exactly.

Labels y of the training rows have covariance K + σ²I with K of `MutantKernel`; a mutant's value given them
has mean kᵀ(K + σ²I)⁻¹y and variance k(S, S) − kᵀ(K + σ²I)⁻¹k (Rasmussen & Williams, Gaussian Processes for
Machine Learning, 2006, equations 2.25 and 2.26). Weights and amplitudes maximise the marginal likelihood
(equation 2.30) times a prior that keeps them near equal weights: a few hundred rows cannot choose twenty.
Every phenotype has its own.

Legend: n genes · m training rows of a phenotype · e items of them · b mutants · p phenotypes · s sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from wildtype.errors import ConfigError
from wildtype.models.gaussian_process.config import GaussianProcessConfig
from wildtype.models.gaussian_process.kernel import GeneSources, MutantKernel, Rows, describe
from wildtype.models.gaussian_process.process import KEPT, Given, Measured, fit_kernel, given_rows
from wildtype.models.interface import (
    Model,
    ModelInputs,
    OrganismTensors,
    Output,
    Prediction,
    RunRows,
    WildType,
)
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.seeds import generator

ROOM = 1 << 25
"""Numbers in memory that compare the genes of the mutants predicted at a time with those of training rows."""
LEAST, MOST = 32, 2048
"""Mutants predicted at a time."""


@dataclass(slots=True)
class Conditioned(WildType):
    """The process given the training rows of every phenotype; None for one without rows."""

    sources: GeneSources | None = None  # `encode` always gives them; fields behind defaults need one
    given: tuple[Given | None, ...] = ()


class GaussianProcess(Model):
    """A Gaussian process over mutants of any number of genes.

    Predictions have a standard deviation: that of the mutant's value, without the noise of a measurement.

    Parameters
    ----------
    config : GaussianProcessConfig
    outputs : sequence of Output
        The p phenotypes.
    """

    needs = ("similarity",)
    forms = ("scalar",)
    gradients = False

    def __init__(self, config: GaussianProcessConfig, outputs: Sequence[Output]) -> None:
        super().__init__()
        self.config = config
        self.kernels = nn.ModuleList(MutantKernel() for _ in outputs)
        self.measured = nn.ModuleList(Measured() for _ in outputs)

    @classmethod
    def build(cls, config: GaussianProcessConfig, inputs: ModelInputs) -> Self:
        """Return a model without rows."""
        return cls(config, inputs.outputs)

    @classmethod
    def check_run(cls, config: Any, phenotypes: Sequence[str], members: int) -> None:
        """Refuse an ensemble: its members would be equal."""
        if members > 1:
            raise ConfigError(
                f"training.members={members}: nothing in model gaussian_process is drawn at random, so that "
                f"members would be equal; leave it out (its predictions have a standard deviation)"
            )

    # ---- how it is fitted

    @property
    def has_post_fit(self) -> bool:
        """Always: the training rows are all there is."""
        return True

    def post_fit(self, train: Batches, validation: Batches, rows: RunRows) -> str:
        """Take up the training rows, and choose weights and amplitudes by them."""
        if rows.grid is not None:
            raise ConfigError(
                "model gaussian_process takes every training row for one mutant, and rows of a screen's grid "
                "stand for many: choose model=pair_screen"
            )
        similarity = rows.organism.similarity
        assert similarity is not None  # `needs` names it
        sources = GeneSources(similarity)
        said = []
        for p, name in enumerate(rows.outputs):
            table = rows.train.take(np.flatnonzero(rows.train.phenotype == p))
            if len(table) > self.config.most_rows:
                raise ConfigError(
                    f"{len(table):,} training rows of {name} are more than model.most_rows="
                    f"{self.config.most_rows:,}: choose model=cell_transformer, or raise it (memory grows "
                    f"with the square of rows)"
                )
            if not len(table):
                continue
            value = (table.value.astype(np.float64) - rows.mean[p]) / rows.sd[p]
            measured = self.measured[p] = Measured.of(table, value)
            held = rows.validation.take(np.flatnonzero(rows.validation.phenotype == p))
            measured.add_columns(sources, held, rows.seed)
            some = generator(rows.seed, "gaussian process", p).permutation(len(table))[: self.config.rows]
            chosen = torch.from_numpy(np.sort(some))
            kernel = fit_kernel(
                sources,
                measured.described(sources)[0].take(chosen),
                measured.value[chosen],
                self.config.steps,
            )
            self.kernels[p] = kernel
            said.append(f"{name} {kernel.noise:.2f}")
        return f"share of noise in the variance of labels: {', '.join(said) or 'no rows'}"

    def _measured(self, p: int) -> Measured:
        found = self.measured[p]
        assert isinstance(found, Measured)
        return found

    def _kernel(self, p: int) -> MutantKernel:
        found = self.kernels[p]
        assert isinstance(found, MutantKernel)
        return found

    # ---- how it answers

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> Conditioned:
        """Return the process given the training rows; O(m³) per phenotype."""
        assert organism.similarity is not None  # `needs` names it
        sources = GeneSources(organism.similarity)
        phenotypes = range(len(self.measured))
        room = KEPT // max(len(phenotypes), 1)
        given = [given_rows(self._kernel(p), self._measured(p), sources, room) for p in phenotypes]
        return Conditioned(torch.zeros(1), torch.zeros(0, 1), sources=sources, given=tuple(given))

    @torch.no_grad()
    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict every phenotype [b, p] and its standard deviation; O(b (m² + m e)) per phenotype."""
        assert isinstance(wild_type, Conditioned)
        assert wild_type.sources is not None
        mean = torch.zeros(len(mutants), len(wild_type.given))
        sd = torch.ones_like(mean)
        step = self._block(wild_type, mutants)
        for start in range(0, len(mutants), step):
            part = mutants.slice(start, min(start + step, len(mutants)))
            row = torch.repeat_interleave(part.offsets.diff())
            dose = torch.full(part.gene.shape, torch.nan) if part.dose is None else part.dose
            rows = Rows.of(part.gene, part.kind, dose, row, part.condition)
            asked = describe(rows, wild_type.sources)
            for p, given in enumerate(wild_type.given):
                if given is not None:
                    at = slice(start, start + len(part))
                    mean[at, p], sd[at, p] = given.predict(self._kernel(p), asked, wild_type.sources)
        return Prediction(mean, sd=sd)

    @staticmethod
    def _block(wild_type: Conditioned, mutants: MutantBatch) -> int:
        """Return the number of mutants to predict at a time."""
        items = max((len(given.rows.rows.gene) for given in wild_type.given if given is not None), default=1)
        order = int(mutants.offsets.diff().max()) if len(mutants) else 1
        sources = 1 if wild_type.sources is None else len(wild_type.sources)
        return min(max(ROOM // max(items * order * sources, 1), LEAST), MOST)

    # ---- what it knows of genes

    @classmethod
    def check_new_genes(cls, config: Any, what: str, genes: int, *, appended: bool) -> None:
        """Refuse another organism's genes: training rows are of this one's."""
        if not appended:
            raise ConfigError(
                f"this {config.name} compares mutants with training rows of its own {genes:,} genes, which "
                f"{what} are no part of: choose a model that knows genes by their features"
            )

    @classmethod
    def other_genes(cls, config: Any) -> str:
        """Return what it knows genes by that no training row perturbs."""
        return "features and relations, by which they are like measured genes"

    @classmethod
    def left_out(cls, config: GaussianProcessConfig) -> list[str]:
        """Return the feature blocks that these settings leave out."""
        return config.leave_out
