"""The run directory: names of its files, its lock, and how a run begins or is resumed in it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from wildtype.datasets.closed_forms import CLOSED_FORMS
from wildtype.errors import CheckpointError, ConfigError, OutputError, shown
from wildtype.experiments.estimate import FILE as ESTIMATE
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.settings.stored import RUN, read_record, read_settings
from wildtype.files import finite, sweep, write_json
from wildtype.locks import LOCK, exclusive_lock
from wildtype.models.baselines import BASELINES
from wildtype.models.registry import MODELS
from wildtype.plugins import recorded
from wildtype.profiling.record import FILE
from wildtype.training.saved_weights import SNAPSHOTS
from wildtype.training.world import world

MARK = RUN
DONE = "comparison.json"
EXTERNAL = "external.parquet"
CAMPAIGN = "campaign.json"
ACROSS = "across.json"
MEMBER = "member-"
MEMBERS = "vectors.csv"
EXPLANATION = "explain.json"
REPORT = "report.html"
RECORD = "record.json"


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as plain values, as ``settings.json`` holds them."""
    return asdict(config)


def resumable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that must stay the same when a run is resumed."""
    kept = {k: v for k, v in settings.items() if k not in ("run", "baselines")}
    kept["training"] = {
        k: v
        for k, v in kept["training"].items()
        if k not in ("threads", "oversmoothing") and not k.startswith(("wandb", "figures", "trace_"))
    }
    return kept


def changed_setting(folder: Path, config: TrainConfig) -> tuple[str, str, str] | None:
    """Return the first setting in which the run in a directory differs: name, value there, value now.

    A setting that came after the run was made has its default there.

    Raises
    ------
    CheckpointError
        If the settings there are damaged, or of a version with other settings.
    """
    mark = folder / MARK
    if not mark.is_file():
        return None
    stored, planned = (_flat(resumable(settings_of(each))) for each in (read_settings(mark), config))
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


def continuing(config: TrainConfig, folder: Path) -> TrainConfig:
    """Return settings that continue the run in a directory: from its last state; from the start where it has
    none; or as a new run where none has begun.
    """
    begun, state = (folder / MARK).is_file(), folder / "resume"
    resume = begun and state.is_dir() and any(state.iterdir())
    run = replace(
        config.run, folder=str(folder), resume=resume, overwrite=begun and not resume, requeued=False
    )
    return replace(config, run=run)


@contextlib.contextmanager
def locked_run(config: TrainConfig, log: Callable[[str], None]) -> Iterator[TrainConfig]:
    """Give the settings with their run directory named, which no other process can write meanwhile.

    Rank zero of a run holds the lock for all its processes, since it alone writes there.

    Raises
    ------
    ConfigError
        If ``run.requeued`` is set and no run directory is named.
    OutputError
        If another process trains there, or the directory cannot be made.
    """
    if config.run.requeued and not config.run.folder:
        raise ConfigError("run.requeued=true: name the run directory with run.folder")
    directory = Path(config.run.folder) if config.run.folder else _unnamed(config)
    if not world().is_rank_zero:
        # Refused, rank zero ends with an error, upon which torchrun and srun end the other processes.
        yield continuing(config, directory) if config.run.requeued else config
        return
    made = not directory.exists()
    try:
        with exclusive_lock(directory, "training in", log):
            # Whether there is something to continue is decided under the lock: until then another process
            # may have written a state, or have finished the run.
            if config.run.requeued:
                yield continuing(config, directory)
            else:
                yield replace(config, run=replace(config.run, folder=str(directory)))
    finally:
        if made:
            with contextlib.suppress(OSError):  # only an empty one can be removed: the run was refused early
                directory.rmdir()


def _unnamed(config: TrainConfig) -> Path:
    """Return the run directory of settings that name none: numbered, unless a run there is to be used."""
    base = f"{config.data.name}-{config.split.name}-{config.model.name}-seed{config.seed}"
    directory, number = Path("runs") / base, 1
    while directory.exists() and not (config.run.resume or config.run.overwrite):
        number += 1
        directory = Path("runs") / f"{base}-{number}"
    return directory


def recorded_threads(folder: Path) -> int:
    """Return the number of CPU threads that a run was trained with, 0 where it is not recorded.

    Runs of earlier versions, unless their settings name a number, took all threads of their machine.
    """
    for name, keys in (
        (RECORD, ("threads",)),
        (MARK, ("settings", "training", "threads")),
        (RECORD, ("machine", "threads")),
    ):
        try:
            value: Any = json.loads((folder / name).read_text(encoding="utf-8"))
            for key in keys:
                value = value[key]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a run that cannot be read is refused where it is read
        if isinstance(value, int) and value > 0:
            return value
    return 0


def recorded_plugins(config: TrainConfig) -> list[dict[str, str]]:
    """Return what ``settings.json`` records of the plug-ins behind a run's model and baselines."""
    baselines = BASELINES if config.baselines == ["all"] else config.baselines
    used = [(BASELINES, name) for name in baselines if name not in CLOSED_FORMS]
    return recorded((MODELS, config.model.name), *used)


def refuse_taken(config: TrainConfig) -> None:
    """Refuse a new run in a locked directory that holds another run, or something else.

    Raises
    ------
    ConfigError
        If a run is there that is not to be overwritten.
    OutputError
        If there are other files.
    """
    folder = Path(config.run.folder)
    # A run that was killed while it wrote its mark left a temporary file alone; the lock is this run's now.
    sweep(folder, exclusive=True)
    if not folder.is_dir() or all(path.name == LOCK for path in folder.iterdir()):
        return
    if not (folder / MARK).is_file():
        raise OutputError(f"{str(folder)!r} is not empty and holds no run: choose another run.folder")
    if not config.run.overwrite:
        raise ConfigError(
            f"{str(folder)!r} holds a run already: choose another run.folder, or set run.overwrite=true "
            f"or run.resume=true"
        )


def claim(config: TrainConfig, fingerprint: str) -> Path:
    """Begin a run in its locked directory, or find the run there to resume; raises when it holds another.

    A run is resumed with the plug-ins that it began with.
    """
    folder = Path(config.run.folder)
    if config.run.resume:
        if not (folder / MARK).is_file():
            raise CheckpointError(f"there is no run to resume in {str(folder)!r}: check run.folder")
        record = read_record(folder / MARK)
        # Before anything is written: the record of a run that is not resumed stays as it was.
        if record.get("fingerprint") != fingerprint:
            changed = changed_setting(folder, config)
            what = "" if changed is None else " ({} is {} there, and {} now)".format(*changed)
            raise CheckpointError(
                f"the run in {str(folder)!r} belongs to another configuration or other data{what}: train "
                f"again without resume"
            )
        sweep_run(folder)
        return folder
    refuse_taken(config)
    if (folder / MARK).is_file():
        clear(folder)
        sweep_run(folder)
    write_json(
        folder / MARK,
        {"fingerprint": fingerprint, "plugins": recorded_plugins(config), "settings": settings_of(config)},
    )
    return folder


def sweep_run(folder: Path) -> None:
    """Remove what a killed run left half written, or had replaced and not yet removed, under its lock."""
    for directory in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        sweep(directory, exclusive=True)


def clear(folder: Path) -> None:
    """Remove the files of an older run from its directory, and nothing else: users keep notes there."""
    members = (path.name for path in folder.glob(f"{MEMBER}[0-9]*"))
    for name in ("checkpoint", "logs", "resume", SNAPSHOTS, *members):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (
        DONE,
        REPORT,
        ACROSS,
        "comparison.md",
        "predictions.parquet",
        EXTERNAL,
        CAMPAIGN,
        MEMBERS,
        FILE,
        ESTIMATE,
        EXPLANATION,
        "card.json",
        "split.json",
        RECORD,
        MARK,
    ):
        (folder / name).unlink(missing_ok=True)
