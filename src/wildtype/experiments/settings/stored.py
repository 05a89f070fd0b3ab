"""Settings that a run or checkpoint folder holds, as settings again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.files import read_json
from wildtype.models.registry import MODELS, settings_of_model
from wildtype.plugins import require_plugins
from wildtype.settings import from_record

RUN, CONFIG = "settings.json", "config.json"
"""Settings of a run, in its directory, and of a model, in that of its checkpoint."""


def read_record(path: Path) -> dict[str, Any]:
    """Return what the ``settings.json`` of a run holds, whose plug-ins are loaded.

    Raises
    ------
    CheckpointError
        If it is missing or damaged, or one of its plug-ins is not loaded or has another content.
    """
    from wildtype.models.baselines import BASELINES

    try:
        record: dict[str, Any] = read_json(path)
        plugins = record["plugins"]
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no run in {str(path.parent)!r}: check the path") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unknown(path, error) from error
    try:
        require_plugins(plugins, f"run {str(path.parent)!r}", MODELS, BASELINES)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise _unknown(path, error) from error
    return record


def read_settings(path: Path) -> TrainConfig:
    """Read the settings of a run from its ``settings.json``.

    Raises
    ------
    CheckpointError
        As `read_record`, or if they were written by a version with other settings.
    """
    record = read_record(path)
    try:
        settings = dict(record["settings"])
        model = settings.pop("model")
        config = from_record(TrainConfig, settings)
        config.model = settings_of_model(model["name"], model)
    except (ValueError, KeyError, TypeError, ConfigError, OmegaConfBaseException) as error:
        raise _unknown(path, error) from error
    return config


def _unknown(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{str(path)!r} holds no settings that this version of wildtype knows ({reason_of(error)}): take "
        f"the version that made the run, which its record.json names"
    )


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
        record: dict[str, Any] = read_json(path)
        require_plugins(record["plugins"], f"checkpoint {str(path.parent)!r}", MODELS)
        return settings_of_model(record["model"], record["settings"])
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no trained model in {str(start)!r}: check training.start") from error
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError, ConfigError, OmegaConfBaseException) as error:
        raise CheckpointError(
            f"{str(path)!r} holds no settings that this version of wildtype knows ({reason_of(error)}): "
            f"start from a model that this version trained"
        ) from error
