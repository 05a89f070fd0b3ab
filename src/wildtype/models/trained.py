"""`TrainedModel`: a model with its organism, scaling and measurements: it predicts in units of phenotypes.

Legend: M mutants of a table · n genes · p phenotypes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.pair_index import PairIndex
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.memory import release_memory
from wildtype.models.ensemble import class_of, members_of
from wildtype.models.interface import Members, Model, OrganismTensors, Output, WildType
from wildtype.models.other_genes import OtherGenes
from wildtype.models.registry import make_model
from wildtype.models.validation_rows import ValidationRows
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.identity import grouping
from wildtype.nn.threads import each
from wildtype.organism import GeneIndex
from wildtype.organism.features import FeatureScaling

BATCH, WITH_EVIDENCE = 8192, 1024
"""Mutants that pass a model together, and one that looks up measurements, of which a mutant has many."""
BETWEEN, BATCHES = 128, itertools.count()
"""Batches after which gaps in the memory of a prediction are given back, and those of this process so far."""
PROFILE_NUMBERS = 1 << 24
"""Numbers per gene that are predicted together: 64 MiB of float32."""


@dataclass(eq=False)
class TrainedModel:
    """A trained model and everything that it needs to predict.

    Attributes
    ----------
    model : Model
        In evaluation mode; an ``Ensemble`` where several were trained.
    genes : GeneIndex
        The n genes that are tokens of the model.
    organism : OrganismTensors
        What the model sees of the organism, without priors.
    phenotypes : list of dict
        Name, unit, min_order, … of each of the p outputs.
    conditions : list of str
        Names of the conditions.
    mean, sd : float64 [p]
        Of the training labels; predictions are ``mean + sd · output``.
    relations : list of str
        Relations with edges that the model was built with, in order.
    known : ReferenceMeasurements
        Measured mutants.
    origin : dict
        Dataset, organism, split, seed: where the model comes from.
    metrics : dict
        What the run measured.
    validation : ValidationRows or None
        Predictions for the validation rows among the known ones; None where they were not kept.
    features : FeatureScaling or None
        Names of the columns of ``organism.features``, and what they were standardised by; None without
        features.
    others : OtherGenes or None
        Genes of the organism that are no tokens of the model; None where there are none.
    doses_of_training : float32 [kinds] or None
        The assumed doses, where training rows are left out; None: those of the training rows.
    """

    model: Model
    genes: GeneIndex
    organism: OrganismTensors
    phenotypes: list[dict[str, Any]]
    conditions: list[str]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    relations: list[str]
    known: ReferenceMeasurements
    origin: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    validation: ValidationRows | None = None
    features: FeatureScaling | None = None
    others: OtherGenes | None = None
    doses_of_training: NDArray[np.float32] | None = None

    def with_others(self) -> Self:
        """Return the same model over all genes that it can be asked about; itself where these are tokens."""
        if self.others is None or self.others.organism is None:
            return self
        return replace(
            self,
            genes=self.others.genes,
            organism=self.others.organism,
            known=self.others.extend(self.known),
            others=None,
        )

    @torch.no_grad()
    def encode(self) -> WildType:
        """Encode the wild type once (without graph priors, which only training needs)."""
        self.model.eval()
        return self.model.encode(self.organism)

    @cached_property
    def evidence(self) -> EvidenceIndex | None:
        """Where evidence is looked up: among training measurements."""
        config, scale = self.model.config, (self.mean, self.sd)
        return class_of(self.model).evidence_index(config, self.organism, self.known, self.names, *scale)

    @cached_property
    def pairs(self) -> PairIndex | None:
        """Where pairs are described by a screen: among its training crosses."""
        # Members of an ensemble have the same: it depends on no seed.
        return members_of(self.model)[0].pair_index(self.organism, self.known, self.names)

    @cached_property
    def assumed_doses(self) -> NDArray[np.float32]:
        """The dose [kinds] of a perturbation that states none: NaN, none, where training rows lack one, too.

        It is the middle one of the training rows of its kind, where all of these have a dose: without one
        such a perturbation is like nothing that the model was trained on.
        """
        if self.doses_of_training is not None:
            return self.doses_of_training
        assumed = np.full(len(Kind), np.nan, np.float32)
        if self.known.table.dose is None:
            return assumed
        trained = self.known.rows("train")
        assert trained.dose is not None
        for kind in np.unique(trained.kind).tolist():
            doses = trained.dose[trained.kind == kind]
            if np.isfinite(doses).all():
                assumed[kind] = np.quantile(doses, 0.5, method="lower")
        return assumed

    def with_doses(self, table: MutantTable) -> MutantTable:
        """Return a table with a dose per gene where training rows had doses, else without.

        A missing dose is the assumed one, else NaN. Boosted trees have a column for doses and others behind
        it: a table that has none must not shift these, nor one that has doses which the model was not trained
        on.
        """
        if self.known.table.dose is None:
            return table if table.dose is None else replace(table, dose=None)
        stated = np.full(len(table.gene), np.nan, np.float32) if table.dose is None else table.dose
        dose = np.where(np.isnan(stated), self.assumed_doses[table.kind], stated)
        return replace(table, dose=dose)

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [p["name"] for p in self.phenotypes]

    @torch.no_grad()
    def predict(self, table: MutantTable, wild_type: WildType | None = None) -> NDArray[np.float64]:
        """Predict every phenotype of M mutants: [M, p], in the phenotypes' units.

        Of a class it is the probability; a phenotype with a number per gene is NaN. O(M d) memory beyond the
        result.
        """
        return self.predict_with_sd(table, wild_type)[0]

    @torch.no_grad()
    def predict_with_sd(
        self, table: MutantTable, wild_type: WildType | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict as ``predict`` does; also return the standard deviation, as `Prediction.sd`.

        Both are [M, p] in the phenotypes' units; the standard deviation is NaN where a model has none.
        """
        wild_type = wild_type or self.encode()
        batch = MutantBatch.from_table(self.with_doses(table))
        out = np.empty((len(table), len(self.phenotypes)))
        spread = np.full_like(out, np.nan)
        step = WITH_EVIDENCE if self.evidence is not None and self.evidence.sizes.tokens else BATCH

        def predict(number: int) -> None:
            start, stop = number * step, min((number + 1) * step, len(table))
            if next(BATCHES) % BETWEEN == BETWEEN - 1:
                # Batches have as many tokens as were found: blocks of ever other sizes leave gaps.
                release_memory()
            said = self.model(wild_type, self.looked_up(batch.slice(start, stop)))
            out[start:stop] = said.mean.double().numpy()
            if said.sd is not None:
                spread[start:stop] = said.sd.double().numpy()

        # Lookups and small products gain little from a second thread; two batches beside each other do.
        each(-(-len(table) // step), predict, together=step == WITH_EVIDENCE, alone=True)
        out = self._in_units(out)
        spread *= np.abs(self.sd)
        for p, output in enumerate(self.outputs):
            if output.form == "class":
                # Delta method: sd(σ(z)) ≈ σ(z) (1 − σ(z)) sd(z).
                spread[:, p] *= out[:, p] * (1 - out[:, p])
        return out, spread

    def _in_units(self, out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return outputs [M, p] of the model as phenotypes."""
        out = self.mean + self.sd * out
        for p, output in enumerate(self.outputs):
            if output.form == "class":
                out[:, p] = expit(out[:, p])
            elif output.form == "gene":
                out[:, p] = np.nan
        return out

    def combinations(
        self,
        gene: NDArray[np.int64],
        kind: NDArray[np.uint8],
        order: int,
        condition: int,
        wild_type: WildType,
        device: torch.device | str = "cpu",
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
        """Return a function from sets [M, order] of few members to predictions [M, p], or None.

        It equals ``predict`` and is faster; None where the model has no such path, or members have doses.
        Members are ``gene`` [c] with ``kind`` [c]. On another ``device`` than the CPU, a copy of the model
        encodes the wild type there again.
        """
        if np.isfinite(self.assumed_doses[kind]).any():
            return None
        members = Members(torch.from_numpy(gene), torch.from_numpy(kind), order, condition)
        model = self.model
        if torch.device(device).type != "cpu":
            model = deepcopy(model).to(device)
            with torch.no_grad():
                wild_type = model.encode(self.organism.to(device))
        answer = model.combinations(wild_type, members.to(device), self.evidence)
        if answer is None:
            return None

        def predict(sets: NDArray[np.int64]) -> NDArray[np.float64]:
            return self._in_units(answer(torch.from_numpy(sets).to(device)).double().cpu().numpy())

        return predict

    def looked_up(self, batch: MutantBatch) -> MutantBatch:
        """Return the batch with the evidence, or the columns of a screen, that the model reads."""
        if self.evidence is not None:
            batch.evidence = self.evidence.tokens_of(batch)
        if self.pairs is not None:
            batch.columns, batch.unseen = self.pairs.described(batch)
        return batch

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The phenotypes as the model's head sees them."""
        return Output.of(self.phenotypes)

    @torch.no_grad()
    def predict_profiles(
        self, table: MutantTable, phenotype: int, wild_type: WildType | None = None
    ) -> NDArray[np.float32]:
        """Predict one number per gene of M mutants: [M, n], in the phenotype's unit; 4 n bytes per mutant.

        Raises
        ------
        ConfigError
            If the phenotype, by position, has no number per gene.
        """
        if self.outputs[phenotype].form != "gene":
            raise ConfigError(
                f"{self.outputs[phenotype].name!r} has no number per gene: predict it as a column"
            )
        wild_type = wild_type or self.encode()
        batch = MutantBatch.from_table(self.with_doses(table))
        out = np.empty((len(table), len(self.genes)), np.float32)
        step = max(PROFILE_NUMBERS // len(self.genes), 1)
        for start in range(0, len(table), step):
            stop = min(start + step, len(table))
            profile = self.model(wild_type, self.looked_up(batch.slice(start, stop))).profiles[phenotype]
            out[start:stop] = profile.dense().numpy()
        return out * np.float32(self.sd[phenotype]) + np.float32(self.mean[phenotype])

    def predict_measured(self, table: MutantTable) -> NDArray[np.float64]:
        """Predict, for every row, the phenotype that the row measured: [M].

        A mutant of several rows passes the model once.
        """
        return self.predict_measured_with_sd(table)[0]

    def predict_measured_with_sd(self, table: MutantTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict as ``predict_measured`` does; also return the standard deviation over members, [M] each."""
        found = grouping(table)
        if found is None:
            at = np.arange(len(table)), table.phenotype
            values, sd = self.predict_with_sd(table)
        else:
            at = found.mutant, table.phenotype
            values, sd = self.predict_with_sd(table.take(found.first))
        return values[at], sd[at]

    def untrained(self) -> Model:
        """Return a model, like any of its members, with weights drawn anew from torch's stream."""
        return fresh_model(
            self.model.config, self.organism, self.outputs, len(self.conditions), self.relations
        )


def fresh_model(
    config: Any,
    organism: OrganismTensors,
    outputs: Sequence[Output],
    conditions: int,
    relations: Sequence[str],
) -> Model:
    """Return a model of these settings for an organism, with weights drawn from torch's stream."""
    similarity = organism.similarity
    return make_model(
        config,
        genes=organism.genes,
        features=organism.features.shape[1],
        phenotypes=outputs,
        conditions=conditions,
        relations=relations,
        channels=0 if similarity is None else len(similarity.channels),
        traits=0 if similarity is None else len(similarity.trait_names),
    )
