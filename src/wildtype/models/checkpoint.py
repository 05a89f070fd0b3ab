"""A checkpoint is a folder from which a model predicts again, anywhere, without pickle.

    model.safetensors      weights, of every member of an ensemble
    organism.safetensors   what the model sees of the organism: gene features, relations, metabolism
    config.json            format, settings, phenotypes, conditions, sha256 of its own and of the files
    genes.json             the pinned gene index
    scaling.json           mean and standard deviation of each phenotype's training labels
    metrics.json           what the run measured
    known.npz              measured mutants, and the part of the split that each was in
    calibration.npz        what the model says of its validation rows, for intervals; older ones lack it
    format_version         5
    model_card.md          all this for people; nothing reads it, and older ones lack it

A checkpoint of the cell transformer encodes the wild type from features and weights alone; of the graphs it
holds what looking up evidence takes. Formats 1 (the cell transformer alone), 2 (without evidence), 3 (without
trees and equivalents) and 4 (an additive model only beside evidence) are still read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.torch import load_file
from scipy.special import expit

from wildtype.errors import CheckpointError, ConfigError, GeneSetError, reason_of
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.files import (
    content_hash,
    first_not_finite,
    sha256_of_file,
    write_json,
    write_tensors,
    write_text,
    writing_folder,
)
from wildtype.models.cell_transformer.head import MAX_ORDER
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Members, Model, OrganismTensors, Output, WildType
from wildtype.models.known import evidence_index
from wildtype.models.model_card import FILE as CARD
from wildtype.models.model_card import model_card
from wildtype.models.organism_storage import from_tensors, to_tensors
from wildtype.models.registry import config_class, make_model
from wildtype.models.validation_rows import FILE as CALIBRATION
from wildtype.models.validation_rows import ValidationRows
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.identity import grouping
from wildtype.mutants.table import read_table, save_table
from wildtype.organism import Coordinates, GeneIndex
from wildtype.organism.features import FeatureScaling
from wildtype.settings import from_record

FORMAT = 5
READABLE = (1, 2, 3, 4, 5)
BESIDE = ("part", "single_fitness", "single_fitness_sd", "essential")
"""What stands beside the table of known mutants in ``known.npz``."""
PLACES = "coordinates."
"""Begins the names of further arrays there, for organisms whose genes have places; older ones lack them."""
EVIDENCE_SINCE, ADDITIVE_ALONE_SINCE = 3, 5
OWN_HASH = "sha256 of this record"
"""What ``config.json`` says of its own content; older ones lack it."""
BATCH, WITH_EVIDENCE = 8192, 2048
"""Mutants that pass a model together, and one that looks up measurements, of which a mutant has many."""


@dataclass(eq=False)
class Checkpoint:
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
        What the model says of the validation rows among the known ones; None in checkpoints that were made
        without.
    features : FeatureScaling or None
        Names of the columns of ``organism.features``, and what they were standardised by; None in checkpoints
        that were written before it was kept, and for models that see no features.
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

    @torch.no_grad()
    def encode(self) -> WildType:
        """Encode the wild type once (without graph priors, which only training needs)."""
        self.model.eval()
        return self.model.encode(self.organism)

    @cached_property
    def evidence(self) -> EvidenceIndex | None:
        """Where evidence is looked up: among training measurements."""
        return evidence_index(self.model.config, self.organism, self.known, self.names, self.mean, self.sd)

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [p["name"] for p in self.phenotypes]

    @torch.no_grad()
    def predict(self, table: MutantTable, wild_type: WildType | None = None) -> NDArray[np.float64]:
        """Predict every phenotype of M mutants: [M, p], in the phenotypes' units; O(M d) memory beyond the
        result. Of a class it is the probability, and NaN of a phenotype that has a number per gene.
        """
        return self.predict_with_sd(table, wild_type)[0]

    @torch.no_grad()
    def predict_with_sd(
        self, table: MutantTable, wild_type: WildType | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict as ``predict`` does; also return the standard deviation over an ensemble's members [M, p],
        in the phenotypes' units, NaN for a single model.
        """
        wild_type = wild_type or self.encode()
        batch = MutantBatch.from_table(table)
        out = np.empty((len(table), len(self.phenotypes)))
        spread = np.full_like(out, np.nan)
        step = WITH_EVIDENCE if self.evidence is not None and self.evidence.sizes.tokens else BATCH
        for start in range(0, len(table), step):
            stop = min(start + step, len(table))
            said = self.model(wild_type, self._with_evidence(batch.slice(start, stop)))
            out[start:stop] = said.mean.double().numpy()
            if said.sd is not None:
                spread[start:stop] = said.sd.double().numpy()
        out = self._in_units(out)
        spread *= np.abs(self.sd)
        for p, output in enumerate(self.outputs):
            if output.form == "class":  # the spread of logits, to first order
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
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
        """Return what predicts many sets [M, order] of few members, [M, p] as ``predict`` does, but faster;
        None where the model knows no such way. Members are ``gene`` [c] with ``kind`` [c].
        """
        members = Members(torch.from_numpy(gene), torch.from_numpy(kind), order, condition)
        answer = self.model.combinations(wild_type, members, self.evidence)
        if answer is None:
            return None

        def predict(sets: NDArray[np.int64]) -> NDArray[np.float64]:
            return self._in_units(answer(torch.from_numpy(sets)).double().numpy())

        return predict

    def _with_evidence(self, batch: MutantBatch) -> MutantBatch:
        if self.evidence is not None:
            batch.evidence = self.evidence.tokens_of(batch)
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
        batch = MutantBatch.from_table(table)
        out = np.empty((len(table), len(self.genes)), np.float32)
        step = max((1 << 24) // len(self.genes), 1)
        for start in range(0, len(table), step):
            stop = min(start + step, len(table))
            profile = self.model(wild_type, self._with_evidence(batch.slice(start, stop))).profiles[phenotype]
            out[start:stop] = profile.dense().numpy()
        return out * np.float32(self.sd[phenotype]) + np.float32(self.mean[phenotype])

    def predict_measured(self, table: MutantTable) -> NDArray[np.float64]:
        """Predict, for every row, the phenotype that the row measured: [M]; a mutant of many rows passes the
        model once.
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

    def save(self, folder: str | Path) -> None:
        """Write the checkpoint, whole or not at all.

        Raises
        ------
        OutputError
            If the folder cannot be written.
        CheckpointError
            If weights or scaling are not finite.
        """
        _require_finite(self.model.state_dict(), self.mean, self.sd, f"checkpoint {str(folder)!r}")
        known = self.known
        beside = {name: getattr(known, name) for name in BESIDE}
        if known.coordinates is not None:
            beside |= {f"{PLACES}{key}": value for key, value in known.coordinates.to_arrays().items()}
        if known.metabolic is not None:
            beside["metabolic"] = known.metabolic
        with writing_folder(folder) as temporary:
            write_tensors(temporary / "model.safetensors", self.model.state_dict())
            tensors, shapes = to_tensors(self.organism)
            write_tensors(temporary / "organism.safetensors", tensors)
            save_table(known.table, temporary / "known.npz", beside)
            if self.validation is not None:
                self.validation.save(temporary)
            write_json(temporary / "genes.json", self.genes.to_json())
            scaling = {
                p["name"]: {"mean": m, "sd": s}
                for p, m, s in zip(self.phenotypes, self.mean, self.sd, strict=True)
            }
            write_json(temporary / "scaling.json", scaling)
            write_json(temporary / "metrics.json", self.metrics)
            write_text(temporary / "format_version", f"{FORMAT}\n")
            record = {
                "format_version": FORMAT,
                "model": self.model.config.name,
                "settings": asdict(self.model.config),
                "members": len(self.model.members) if isinstance(self.model, Ensemble) else 1,
                "operators": shapes,
                "phenotypes": self.phenotypes,
                "conditions": self.conditions,
                "relations": self.relations,
                "known_phenotypes": list(known.phenotypes),
                "origin": self.origin,
                "features": None if self.features is None else self.features.to_json(),
                "sha256": {
                    name: sha256_of_file(temporary / name)
                    for name in (
                        "model.safetensors",
                        "organism.safetensors",
                        "known.npz",
                        "genes.json",
                        "scaling.json",
                        *([] if self.validation is None else [CALIBRATION]),
                    )
                },
            }
            write_json(temporary / "config.json", record | {OWN_HASH: content_hash(record)})
            write_text(temporary / CARD, model_card(self, FORMAT))


def _require_finite(
    weights: Mapping[str, torch.Tensor], mean: NDArray[np.float64], sd: NDArray[np.float64], what: str
) -> None:
    """Raise ``CheckpointError`` where weights or the labels' scaling are not finite: predictions would be
    empty.
    """
    scaling = {"mean of the labels": torch.from_numpy(mean), "sd of the labels": torch.from_numpy(sd)}
    if (name := first_not_finite({**weights, **scaling})) is not None:
        raise CheckpointError(f"{what}: {name!r} is not finite: train again with a lower learning rate")


def checkpoint_folder(path: str | Path) -> Path:
    """Return the checkpoint folder of a run folder, or the folder itself when it is a checkpoint.

    Raises
    ------
    CheckpointError
        If there is nothing there, or no checkpoint in it.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(
            f"there is no run at {str(path)!r}: check the path, or make one with `wildtype train`"
        )
    for folder in (path / "checkpoint", path):
        if (folder / "config.json").is_file() and (folder / "format_version").is_file():
            return folder
    raise CheckpointError(
        f"{str(path)!r} holds no checkpoint: its training did not finish; resume or repeat it"
    )


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Load a checkpoint from its folder or from the run folder around it.

    Raises
    ------
    CheckpointError
        If it is missing, damaged (a file does not match its sha256), or of a format this version does not
        know.
    """
    folder = checkpoint_folder(path)
    remedy = "restore it from a copy, or train again"
    try:
        record = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        version = json.loads((folder / "format_version").read_text(encoding="utf-8"))
        if version not in READABLE or record["format_version"] != version:
            raise CheckpointError(
                f"checkpoint {str(folder)!r} has format {version}, this version of wildtype reads up to "
                f"{FORMAT}: update wildtype"
            )
        if (own := record.pop(OWN_HASH, None)) is not None and own != content_hash(record):
            raise CheckpointError(
                f"{str(folder / 'config.json')!r} is damaged (its sha256 differs): {remedy}"
            )
        for name, expected in record["sha256"].items():
            if sha256_of_file(folder / name) != expected:
                raise CheckpointError(f"{str(folder / name)!r} is damaged (its sha256 differs): {remedy}")
        genes = GeneIndex.from_json(json.loads((folder / "genes.json").read_text(encoding="utf-8")))
        scaling = json.loads((folder / "scaling.json").read_text(encoding="utf-8"))
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        table, beside = read_table(folder / "known.npz")
        places = {key.removeprefix(PLACES): x for key, x in beside.items() if key.startswith(PLACES)}
        known = ReferenceMeasurements(
            phenotypes=tuple(record["known_phenotypes"]),
            table=table,
            **{name: beside[name] for name in BESIDE},
            coordinates=Coordinates.from_arrays(places) if places else None,
            metabolic=beside.get("metabolic"),
        )
        organism = from_tensors(load_file(folder / "organism.safetensors"), record.get("operators", {}))
        model = _model(record, len(genes), organism)
        weights = load_file(folder / "model.safetensors")
        if version < EVIDENCE_SINCE:  # these took every order for one they knew
            known_orders = {k: v for k, v in model.state_dict().items() if k.endswith("largest_order")}
            weights |= {name: torch.full_like(v, MAX_ORDER) for name, v in known_orders.items()}
        phenotypes = record["phenotypes"]
        mean = np.array([scaling[p["name"]]["mean"] for p in phenotypes], np.float64)
        sd = np.array([scaling[p["name"]]["sd"] for p in phenotypes], np.float64)
        _require_finite(weights, mean, sd, f"checkpoint {str(folder)!r}")
        model.load_state_dict(weights)
        validation = ValidationRows.read(folder) if CALIBRATION in record["sha256"] else None
        features = record.get("features")
        scaling_of_features = None if features is None else FeatureScaling.from_json(features)
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} is incomplete ({Path(error.filename).name} is missing): {remedy}"
        ) from error
    except (
        KeyError,
        ValueError,
        TypeError,
        RuntimeError,
        EOFError,
        OSError,
        zipfile.BadZipFile,
        SafetensorError,
        OmegaConfBaseException,
        GeneSetError,
        ConfigError,
    ) as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} is damaged ({reason_of(error)}): {remedy}"
        ) from error
    return Checkpoint(
        model=model.eval(),
        genes=genes,
        organism=organism,
        phenotypes=phenotypes,
        conditions=record["conditions"],
        mean=mean,
        sd=sd,
        relations=record["relations"],
        known=known,
        origin=record["origin"],
        metrics=metrics,
        validation=validation,
        features=scaling_of_features,
    )


def _model(record: dict[str, Any], genes: int, organism: OrganismTensors) -> Model:
    """Return the model that a record describes, with weights of no meaning."""
    if record["format_version"] < EVIDENCE_SINCE and record["model"] == "cell_transformer":
        record["settings"]["evidence"] = {"tokens": 0}
        record["settings"]["head"] |= {"relations": False}
    config: Any = from_record(config_class(record["model"]), record["settings"])
    if record["format_version"] < ADDITIVE_ALONE_SINCE and record["model"] == "cell_transformer":
        config.head.additive &= config.evidence.tokens > 0
    similarity = organism.similarity
    members = [
        make_model(
            config,
            genes=genes,
            features=organism.features.shape[1],
            phenotypes=Output.of(record["phenotypes"]),
            conditions=len(record["conditions"]),
            relations=record["relations"],
            channels=0 if similarity is None else len(similarity.channels),
            traits=0 if similarity is None else len(similarity.trait_names),
        )
        for _ in range(record.get("members", 1))
    ]
    return members[0] if len(members) == 1 else Ensemble(members)
