"""The folder of a run: what its files are called, how it is taken, and how it is found again."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from wildtype.errors import CheckpointError, ConfigError, OutputError, reason_of, shown
from wildtype.experiments.estimate import FILE as ESTIMATE
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.files import finite, write_json
from wildtype.profiling.record import FILE
from wildtype.training.saved_weights import SNAPSHOTS

MARK = "settings.json"
DONE = "comparison.json"
ACROSS = "across.json"
MEMBER = "member-"
MEMBERS = "vectors.csv"
EXPLANATION = "explain.json"
REPORT = "report.html"


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as plain values, as ``settings.json`` holds them."""
    return asdict(config)


def resumable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what of settings must stay the same when a run is resumed."""
    kept = {k: v for k, v in settings.items() if k not in ("run", "baselines")}
    kept["training"] = {k: v for k, v in kept["training"].items() if k not in ("threads", "wandb")}
    return kept


def changed_setting(folder: Path, config: TrainConfig) -> tuple[str, str, str] | None:
    """Return the first setting that the run in a folder, if there is one, had otherwise: its name, its value
    there and its value now.

    Raises
    ------
    CheckpointError
        If the settings there are damaged.
    """
    mark = folder / MARK
    if not mark.is_file():
        return None
    try:
        stored = _flat(resumable(json.loads(mark.read_text(encoding="utf-8"))["settings"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{str(mark)!r} is damaged ({reason_of(error)}): remove the folder of this run"
        ) from error
    planned = _flat(resumable(settings_of(config)))
    for key in sorted(stored.keys() | planned.keys()):
        before, now = (shown(side[key]) if key in side else "no setting" for side in (stored, planned))
        if before != now:
            return key, before, now
    return None


def _flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Return settings by dotted name, as JSON has them."""
    if isinstance(settings, dict) and settings:
        out: dict[str, Any] = {}
        for key, value in settings.items():
            out |= _flat(value, f"{prefix}.{key}" if prefix else str(key))
        return out
    return {prefix: finite(settings)}


def going_on(config: TrainConfig, folder: Path) -> TrainConfig:
    """Return settings that continue the run in a folder: from its last state, anew where it has none, or as a
    new run where nothing has begun.
    """
    begun, state = (folder / MARK).is_file(), folder / "resume"
    resume = begun and state.is_dir() and any(state.iterdir())
    own = replace(
        config.run, folder=str(folder), resume=resume, overwrite=begun and not resume, requeued=False
    )
    return replace(config, run=own)


def claim(config: TrainConfig, fingerprint: str) -> Path:
    """Make the run folder, or find it again to resume; raises when it is taken."""
    wanted = config.run.folder
    if wanted:
        folder = Path(wanted)
    else:
        base = f"{config.data.name}-{config.split.name}-{config.model.name}-seed{config.seed}"
        folder = Path("runs") / base
        number = 1
        while folder.exists() and not (config.run.resume or config.run.overwrite):
            number += 1
            folder = Path("runs") / f"{base}-{number}"
    if config.run.resume:
        if not (folder / MARK).is_file():
            raise CheckpointError(f"there is no run to resume in {str(folder)!r}: check run.folder")
        sweep(folder)
        return folder
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"cannot make the run folder {str(folder)!r}: a file is in the way; choose run.folder"
        )
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise OutputError(f"{str(folder)!r} is not empty and holds no run: choose another run.folder")
        if not config.run.overwrite:
            raise ConfigError(
                f"{str(folder)!r} holds a run already: choose another run.folder, or say run.overwrite=true "
                f"or run.resume=true"
            )
        clear(folder)
        sweep(folder)
    write_json(folder / MARK, {"fingerprint": fingerprint, "settings": settings_of(config)})
    return folder


def sweep(folder: Path) -> None:
    """Remove what a killed run had half written, or had replaced and not removed yet."""
    for path in [*folder.rglob(".*.part")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove what an older run left in its folder, and nothing else."""
    members = (path.name for path in folder.glob(f"{MEMBER}[0-9]*"))
    for name in ("checkpoint", "logs", "resume", SNAPSHOTS, *members):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (
        DONE,
        REPORT,
        ACROSS,
        "comparison.md",
        "predictions.parquet",
        MEMBERS,
        FILE,
        ESTIMATE,
        EXPLANATION,
        "card.json",
        "split.json",
        "record.json",
        MARK,
    ):
        (folder / name).unlink(missing_ok=True)
