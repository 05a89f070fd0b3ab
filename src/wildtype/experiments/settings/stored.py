"""Settings that a run or checkpoint folder holds, as settings again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import config_class
from wildtype.settings import from_record

CONFIG = "config.json"


def read_settings(path: Path) -> TrainConfig:
    """Read the ``settings.json`` of a run.

    Raises
    ------
    CheckpointError
        If it is missing or damaged, or was written by a version with other settings.
    """
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["settings"]
        model = settings.pop("model")
        config = from_record(TrainConfig, settings)
        config.model = from_record(config_class(model["name"]), model)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no run in {str(path.parent)!r}: check the path") from error
    except (OSError, ValueError, KeyError, TypeError, ConfigError, OmegaConfBaseException) as error:
        raise CheckpointError(
            f"{str(path)!r} holds no settings that this version of wildtype knows ({reason_of(error)}): take "
            f"the version that made the run, which its record.json names"
        ) from error
    return config


def model_settings(start: Path) -> Any:
    """Return the settings of the model in a run or checkpoint folder.

    Raises
    ------
    CheckpointError
        If there is none, it is damaged, or it was written by a version with other settings.
    """
    rooms = (start / "checkpoint", start)
    path = next((room / CONFIG for room in rooms if (room / CONFIG).is_file()), start / CONFIG)
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return from_record(config_class(record["model"]), record["settings"])
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no trained model in {str(start)!r}: check training.start") from error
    except (OSError, ValueError, KeyError, TypeError, ConfigError, OmegaConfBaseException) as error:
        raise CheckpointError(
            f"{str(path)!r} holds no settings that this version of wildtype knows ({reason_of(error)}): "
            f"start from a model that this version trained"
        ) from error
