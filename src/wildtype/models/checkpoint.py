"""Saves and loads checkpoints: directories with everything that a model needs to predict, without pickle.

    model.safetensors      weights, of every member of an ensemble
    organism.safetensors   what the model sees of the organism: gene features, relations, metabolism
    config.json            format, settings, phenotypes, conditions, sha256 of its own and of the files
    genes.json             the pinned gene index
    scaling.json           mean and standard deviation of each phenotype's training labels
    metrics.json           what the run measured
    known.npz              measured mutants, the part of the split that each was in, and the grid of a screen
    sampled.npz            validation and test rows of a run on a grid, unlisted crosses among them
    screens.npz            what other screens measured of pairs
    others.*               genes of the organism that are no tokens: index, what the model sees of all genes,
                           and what is known of them
    calibration.npz        predictions for the validation rows, from which intervals are made
    format_version         6
    model_card.md          all this for people; nothing reads it

What a model looks up while it predicts is in the checkpoint, too; gene graphs that only training follows are
not. Of a model from a plug-in, ``config.json`` holds name and sha256 of the plug-in's file, which is given
again to load it. Nothing was released with formats 1 to 5; they are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.torch import load, load_file

from wildtype.errors import CheckpointError, ConfigError, GeneSetError, reason_of, shown
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.reference import PARTS, ReferenceMeasurements
from wildtype.files import (
    content_hash,
    first_not_finite,
    read_json,
    require_regular,
    sha256_of_file,
    write_json,
    write_tensors,
    write_text,
    writing,
    writing_folder,
)
from wildtype.models.ensemble import Ensemble, members_of
from wildtype.models.interface import Model, OrganismTensors, Output
from wildtype.models.model_card import FILE as CARD
from wildtype.models.model_card import model_card
from wildtype.models.organism_tensors import from_tensors, to_tensors
from wildtype.models.other_genes import OtherGenes
from wildtype.models.parameter_budget import within
from wildtype.models.registry import MODELS, settings_of_model
from wildtype.models.stored_bounds import (
    require_in_table,
    require_length,
    require_magnitudes,
    require_scaling,
    require_screen,
)
from wildtype.models.trained import TrainedModel, fresh_model
from wildtype.models.validation_rows import COLUMNS, ValidationRows
from wildtype.models.validation_rows import FILE as CALIBRATION
from wildtype.mutants.grid import CrossSides, ScreenGrid
from wildtype.mutants.table import read_table, save_table
from wildtype.organism import Coordinates, GeneIndex
from wildtype.organism.features import FeatureScaling
from wildtype.plugins import recorded, require_plugins
from wildtype.unpacking import read_arrays

FORMAT = 6
BESIDE = ("part", "single_fitness", "single_fitness_sd", "essential")
"""What stands beside the table of known mutants in ``known.npz``."""
PLACES, GRID, SIDES = "coordinates.", "grid.", "sides."
"""Begin the names of further arrays there: places of genes, the grid of a screen, sides of its crosses."""
SAMPLED = "sampled.npz"
SCREENS = "screens.npz"
OTHERS, OTHERS_SEEN, OTHERS_KNOWN = "others.json", "others.safetensors", "others.npz"
"""Of genes that are no tokens; the second only where the model can be asked about them."""
HASHED = ("model.safetensors", "organism.safetensors", "known.npz", "genes.json", "scaling.json")
"""Files whose sha256 every record holds."""
HASHED_IF_THERE = (CALIBRATION, SAMPLED, SCREENS, OTHERS, OTHERS_SEEN, OTHERS_KNOWN)
"""Those that it holds where the checkpoint has them."""
MOST_MEMBERS = 1_000
OWN_HASH = "sha256 of this record"
"""Key in ``config.json`` of the hash of its own content."""


class Checkpoint(TrainedModel):
    """A trained model that can be saved."""

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
        if known.single_fitness_kind is not None:
            beside["single_fitness_kind"] = known.single_fitness_kind
        if known.grid is not None and known.sides is not None:
            beside |= {f"{GRID}{key}": value for key, value in known.grid.to_arrays().items()}
            beside |= {f"{SIDES}{key}": value for key, value in known.sides.to_arrays().items()}
            beside["effect"] = np.array(known.effect)
        if known.dubious is not None:
            beside["dubious"] = known.dubious
        # Written beside the target, synced, then renamed: a reader finds the old checkpoint or the new one,
        # never a mixture, also after a crash.
        with writing_folder(folder) as temporary:
            write_tensors(temporary / "model.safetensors", self.model.state_dict())
            tensors, shapes = to_tensors(self.organism)
            write_tensors(temporary / "organism.safetensors", tensors)
            save_table(known.table, temporary / "known.npz", beside)
            if known.sampled is not None and known.sampled_part is not None:
                save_table(known.sampled, temporary / SAMPLED, {"part": known.sampled_part})
            if known.screens:
                _save_screens(temporary / SCREENS, known.screens)
            if self.validation is not None:
                self.validation.save(temporary)
            others = {} if self.others is None else _write_others(self.others, temporary)
            write_json(temporary / "genes.json", self.genes.to_json())
            scaling = {
                p["name"]: {"mean": m, "sd": s}
                for p, m, s in zip(self.phenotypes, self.mean, self.sd, strict=True)
            }
            write_json(temporary / "scaling.json", scaling)
            write_json(temporary / "metrics.json", self.metrics)
            write_text(temporary / "format_version", f"{FORMAT}\n")
            record = {
                # Only now: the record holds the sha256 of files that are complete.
                "format_version": FORMAT,
                "model": self.model.config.name,
                "settings": asdict(self.model.config),
                "plugins": recorded((MODELS, self.model.config.name)),
                "members": len(members_of(self.model)),
                "operators": shapes,
                "phenotypes": self.phenotypes,
                "conditions": self.conditions,
                "relations": self.relations,
                "known_phenotypes": list(known.phenotypes),
                "screens": [screen.name for screen in known.screens],
                "origin": self.origin,
                "features": None if self.features is None else self.features.to_json(),
                **({} if self.others is None else {"others": others}),
                "sha256": {
                    name: sha256_of_file(temporary / name)
                    for name in (
                        *HASHED,
                        *([] if self.validation is None else [CALIBRATION]),
                        *([] if known.sampled is None else [SAMPLED]),
                        *([SCREENS] if known.screens else []),
                        *(
                            name
                            for name in (OTHERS, OTHERS_SEEN, OTHERS_KNOWN)
                            if (temporary / name).is_file()
                        ),
                    )
                },
            }
            write_json(temporary / "config.json", record | {OWN_HASH: content_hash(record)})
            write_text(temporary / CARD, model_card(self, FORMAT))


def _write_others(others: OtherGenes, folder: Path) -> dict[str, Any]:
    """Write the genes that are no tokens, and return their part of the record."""
    write_json(folder / OTHERS, others.genes.to_json())
    with (folder / OTHERS_KNOWN).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **others.to_arrays())
    if others.organism is None:
        return {"known_by": others.known_by}
    tensors, shapes = to_tensors(others.organism)
    write_tensors(folder / OTHERS_SEEN, tensors)
    return {"known_by": others.known_by, "operators": shapes}


def _read_others(folder: Path, record: Mapping[str, Any], tokens: int) -> OtherGenes:
    """Return the genes that are no tokens, from the files and the part of the record that were written."""
    genes = GeneIndex.from_json(read_json(folder / OTHERS))
    arrays = read_arrays(folder / OTHERS_KNOWN)
    if not 0 <= tokens <= len(genes):
        raise ValueError(f"{OTHERS} names {len(genes):,} genes, fewer than the {tokens:,} of the model")
    own = {name: x for name, x in arrays.items() if not name.startswith(PLACES)}
    require_length(OTHERS_KNOWN, own, len(genes) - tokens)
    organism = None
    if "operators" in record:
        organism = from_tensors(_tensors(folder / OTHERS_SEEN), record["operators"])
        organism = replace(organism, encoded=tokens)
    return OtherGenes.from_arrays(genes, organism, record["known_by"], arrays)


def _require_finite(
    weights: Mapping[str, torch.Tensor], mean: NDArray[np.float64], sd: NDArray[np.float64], what: str
) -> None:
    """Refuse weights or label scaling that are not finite; raises ``CheckpointError``.

    Predictions would be empty.
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


def recorded_hash(path: str | Path) -> str:
    """Return the sha256 that the record of a checkpoint has: of its settings, and of all files that it reads.

    `load_checkpoint` checks it, so that it identifies a checkpoint that was loaded.

    Raises
    ------
    CheckpointError
        If there is no checkpoint.
    """
    return str(read_json(checkpoint_folder(path) / "config.json")[OWN_HASH])


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
        record = read_json(folder / "config.json")
        version = read_json(folder / "format_version")
        # The format comes first: files of another one may have other names, and their hashes prove nothing.
        if version != FORMAT or record["format_version"] != version:
            remedy = "train again" if version in range(FORMAT) else "update wildtype"
            raise CheckpointError(
                f"checkpoint {str(folder)!r} has format {version}, this version of wildtype reads format "
                f"{FORMAT}: {remedy}"
            )
        if record.pop(OWN_HASH) != content_hash(record):
            raise CheckpointError(
                f"{str(folder / 'config.json')!r} is damaged (its sha256 differs): {remedy}"
            )
        # Before any file is parsed: a flipped bit is reported as damage, not as an error of some reader.
        for name, expected in _hashes(record).items():
            if sha256_of_file(require_regular(folder / name)) != expected:
                raise CheckpointError(f"{str(folder / name)!r} is damaged (its sha256 differs): {remedy}")
        # A plug-in with another sha256 may read the same weights and compute something else: it is refused
        # here.
        require_plugins(record["plugins"], f"checkpoint {str(folder)!r}", MODELS)
        genes = GeneIndex.from_json(read_json(folder / "genes.json"))
        scaling = read_json(folder / "scaling.json")
        metrics = read_json(folder / "metrics.json")
        table, beside = read_table(folder / "known.npz")
        limits = (len(genes), len(record["known_phenotypes"]))
        require_in_table("known.npz", table, *limits, beside["part"], len(PARTS))
        of_genes = (*BESIDE[1:], "metabolic", "dubious", "single_fitness_kind")
        require_length("known.npz", {name: beside.get(name) for name in of_genes}, len(genes))
        places, grid, sides = (_beginning(beside, start) for start in (PLACES, GRID, SIDES))
        sampled = read_table(folder / SAMPLED) if SAMPLED in record["sha256"] else None
        if sampled is not None:
            require_in_table(SAMPLED, sampled[0], *limits, sampled[1]["part"], len(PARTS))
        known = ReferenceMeasurements(
            phenotypes=tuple(record["known_phenotypes"]),
            table=table,
            **{name: beside[name] for name in BESIDE},
            coordinates=Coordinates.from_arrays(places) if places else None,
            metabolic=beside.get("metabolic"),
            grid=ScreenGrid.from_arrays(len(genes), grid) if grid else None,
            sides=CrossSides.from_arrays(sides) if sides else None,
            effect=str(beside.get("effect", "")),
            sampled=None if sampled is None else sampled[0],
            sampled_part=None if sampled is None else sampled[1]["part"],
            dubious=beside.get("dubious"),
            single_fitness_kind=beside.get("single_fitness_kind"),
            screens=_read_screens(folder / SCREENS, record.get("screens", []), len(genes)),
        )
        tensors, weights = (_tensors(folder / f"{name}.safetensors") for name in ("organism", "model"))
        require_magnitudes("organism.safetensors", tensors)
        organism = from_tensors(tensors, record["operators"])
        # Shapes of weights follow from settings and organism. A record that asks for more than there is would
        # fill the memory before any comparison.
        with within(len(weights), sum(x.numel() for x in weights.values())):
            model = _model(record, organism)
        phenotypes = record["phenotypes"]
        mean = np.array([scaling[p["name"]]["mean"] for p in phenotypes], np.float64)
        sd = np.array([scaling[p["name"]]["sd"] for p in phenotypes], np.float64)
        _require_finite(weights, mean, sd, f"checkpoint {str(folder)!r}")
        require_scaling(mean, sd)
        model.load_state_dict(weights)
        validation = ValidationRows.read(folder) if CALIBRATION in record["sha256"] else None
        if validation is not None:
            own = {name: getattr(validation, name) for name in COLUMNS}
            require_length(CALIBRATION, own, len(known.rows("validation")))
        features = record["features"]
        scaling_of_features = None if features is None else FeatureScaling.from_json(features)
        others = _read_others(folder, record["others"], len(genes)) if "others" in record else None
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} is incomplete ({Path(error.filename).name} is missing): {remedy}"
        ) from error
    except PermissionError as error:
        raise CheckpointError(
            f"checkpoint {str(folder)!r} cannot be read ({reason_of(error)}): ask its owner for the right to"
        ) from error
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        MemoryError,
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
        others=others,
    )


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a file; safetensors itself opens no path that is not UTF-8."""
    tensors: dict[str, torch.Tensor] = load_file(path) if str(path).isprintable() else load(path.read_bytes())
    return tensors


def _hashes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the sha256 of the files of a checkpoint; no other file is opened, whatever a record names."""
    found = dict(record["sha256"])
    unknown = sorted(set(found) - {*HASHED, *HASHED_IF_THERE})
    if unknown:
        raise ValueError(f"config.json names {shown(unknown[0])}, which is no file of a checkpoint")
    if absent := [name for name in HASHED if name not in found]:
        raise ValueError(f"config.json has no sha256 of {absent[0]}")
    return found


def _save_screens(path: Path, screens: Sequence[OtherScreen]) -> None:
    arrays = {
        f"{i}.{key}": value for i, screen in enumerate(screens) for key, value in screen.to_arrays().items()
    }
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez_compressed(handle, **arrays)  # type: ignore[arg-type]


def _read_screens(path: Path, names: Sequence[str], genes: int) -> tuple[OtherScreen, ...]:
    if not names:
        return ()
    arrays, screens = read_arrays(path), []
    for i, name in enumerate(names):
        own = _beginning(arrays, f"{i}.")
        require_screen(SCREENS, own, genes)
        screens.append(OtherScreen.from_arrays(name, own))
    return tuple(screens)


def _beginning(arrays: Mapping[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin so, under the rest of their names."""
    return {key.removeprefix(start): x for key, x in arrays.items() if key.startswith(start)}


def _model(record: dict[str, Any], organism: OrganismTensors) -> Model:
    """Return the model that a record describes, with initial weights that loading replaces."""
    config = settings_of_model(record["model"], record["settings"])
    outputs, conditions, relations = record["phenotypes"], len(record["conditions"]), record["relations"]
    if not 1 <= record["members"] <= MOST_MEMBERS:
        raise ValueError(f"it states {shown(record['members'])} members")
    members = [
        fresh_model(config, organism, Output.of(outputs), conditions, relations)
        for _ in range(record["members"])
    ]
    return members[0] if len(members) == 1 else Ensemble(members)
