"""A checkpoint is a folder from which a model predicts again, anywhere, without pickle.

    model.safetensors      weights, of every member of an ensemble
    organism.safetensors   what the model sees of the organism: gene features, relations, metabolism
    config.json            format, settings, phenotypes, conditions, sha256 of every file of numbers
    genes.json             the pinned gene index
    scaling.json           mean and standard deviation of each phenotype's training labels
    metrics.json           what the run measured
    known.npz              measured mutants, and the part of the split that each was in
    format_version         2

A checkpoint of the cell transformer holds no graph: it encodes the wild type from features and weights alone.
Format 1 (the cell transformer alone) is still read.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from wildtype.errors import CheckpointError, ConfigError, GeneSetError
from wildtype.files import sha256_of_file, write_json, write_text, writing_folder
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Model, OrganismTensors, WildType
from wildtype.models.organism_storage import from_tensors, to_tensors
from wildtype.models.registry import config_class, make_model
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.storage import read_table, save_table
from wildtype.organism import GeneIndex
from wildtype.organism.feature_scaling import FeatureScaling

FORMAT = 2
READABLE = (1, 2)
PARTS = ("train", "validation", "test", "unused")
BESIDE = ("part", "single_fitness", "single_fitness_sd", "essential")
"""What stands beside the table of known mutants in ``known.npz``."""
BATCH = 8192


@dataclass(eq=False)
class Known:
    """What was measured when the model was trained.

    Attributes
    ----------
    phenotypes : tuple of str
        Names of all phenotypes of the dataset; ``table.phenotype`` refers to this order, which need not be
        the order of the model's outputs.
    table : MutantTable
        Measured mutants, all phenotypes of the dataset.
    part : uint8 [M]
        Position in ``PARTS`` of each row: the part of the split it was in, or not used.
    single_fitness, single_fitness_sd : float32 [n]
        Fitness of single mutants (NaN: not known).
    essential : bool [n]
        Genes whose deletion is lethal, where known.
    """

    phenotypes: tuple[str, ...]
    table: MutantTable
    part: NDArray[np.uint8]
    single_fitness: NDArray[np.float32]
    single_fitness_sd: NDArray[np.float32]
    essential: NDArray[np.bool_]


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
    known : Known
        Measured mutants.
    origin : dict
        Dataset, organism, split, seed: where the model comes from.
    metrics : dict
        What the run measured.
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
    known: Known
    origin: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    features: FeatureScaling | None = None

    @torch.no_grad()
    def encode(self) -> WildType:
        """Encode the wild type once (without graph priors, which only training needs)."""
        self.model.eval()
        return self.model.encode(self.organism)

    @torch.no_grad()
    def predict(self, table: MutantTable, wild_type: WildType | None = None) -> NDArray[np.float64]:
        """Predict every phenotype of M mutants: [M, p], in the phenotypes' units; O(M d) memory beyond the
        result.
        """
        wild_type = wild_type or self.encode()
        batch = MutantBatch.from_table(table)
        out = np.empty((len(table), len(self.phenotypes)))
        for start in range(0, len(table), BATCH):
            stop = min(start + BATCH, len(table))
            out[start:stop] = self.model(wild_type, batch.slice(start, stop)).mean.double().numpy()
        return self.mean + self.sd * out

    def predict_measured(self, table: MutantTable) -> NDArray[np.float64]:
        """Predict, for every row, the phenotype that the row measured: [M]."""
        return self.predict(table)[np.arange(len(table)), table.phenotype]

    def save(self, folder: str | Path) -> None:
        """Write the checkpoint, whole or not at all; raises ``OutputError``."""
        known = self.known
        beside = {name: getattr(known, name) for name in BESIDE}
        with writing_folder(folder) as temporary:
            save_file(
                {k: v.contiguous() for k, v in self.model.state_dict().items()},
                temporary / "model.safetensors",
            )
            tensors, shapes = to_tensors(self.organism)
            save_file(tensors, temporary / "organism.safetensors")
            save_table(known.table, temporary / "known.npz", beside)
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
                    )
                },
            }
            write_json(temporary / "config.json", record)


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
        for name, expected in record["sha256"].items():
            if sha256_of_file(folder / name) != expected:
                raise CheckpointError(f"{str(folder / name)!r} is damaged (its sha256 differs): {remedy}")
        genes = GeneIndex.from_json(json.loads((folder / "genes.json").read_text(encoding="utf-8")))
        scaling = json.loads((folder / "scaling.json").read_text(encoding="utf-8"))
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        table, beside = read_table(folder / "known.npz")
        known = Known(
            phenotypes=tuple(record["known_phenotypes"]),
            table=table,
            **{name: beside[name] for name in BESIDE},
        )
        organism = from_tensors(load_file(folder / "organism.safetensors"), record.get("operators", {}))
        model = _model(record, len(genes), organism.features.shape[1])
        model.load_state_dict(load_file(folder / "model.safetensors"))
        phenotypes = record["phenotypes"]
        features = record.get("features")
        scaling_of_features = None if features is None else FeatureScaling.from_json(features)
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} is incomplete ({Path(error.filename).name} is missing): {remedy}"
        ) from error
    except (
        KeyError, ValueError, TypeError, RuntimeError, EOFError, OSError,
        zipfile.BadZipFile, SafetensorError, OmegaConfBaseException, GeneSetError, ConfigError,
    ) as error:  # fmt: skip
        raise CheckpointError(f"checkpoint {str(folder)!r} is damaged ({error}): {remedy}") from error
    return Checkpoint(
        model=model.eval(),
        genes=genes,
        organism=organism,
        phenotypes=phenotypes,
        conditions=record["conditions"],
        mean=np.array([scaling[p["name"]]["mean"] for p in phenotypes]),
        sd=np.array([scaling[p["name"]]["sd"] for p in phenotypes]),
        relations=record["relations"],
        known=known,
        origin=record["origin"],
        metrics=metrics,
        features=scaling_of_features,
    )


def _model(record: dict[str, Any], genes: int, features: int) -> Model:
    """Return the model that a record describes, with weights of no meaning."""
    settings = OmegaConf.structured(config_class(record["model"]))
    config = OmegaConf.to_object(OmegaConf.merge(settings, record["settings"]))
    members = [
        make_model(
            config,
            genes=genes,
            features=features,
            phenotypes=len(record["phenotypes"]),
            conditions=len(record["conditions"]),
            relations=record["relations"],
        )
        for _ in range(record.get("members", 1))
    ]
    return members[0] if len(members) == 1 else Ensemble(members)
