"""What became of every run of an ablation: the record in its folder, and what finished runs reached.

ablation.json     the record: what was tried, how long it took, what went wrong
ablation.md       the tables
table.json        the same, for programs
<factor>/<level>/<split>/seed-<n>/     run folders
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.evaluation.ablation import IDENTITY, PREDICTED, AblationRun
from wildtype.evaluation.compare import Comparison
from wildtype.experiments.folder import DONE, changed_setting
from wildtype.experiments.settings.ablation import BASE, PlannedRun
from wildtype.experiments.stored import Run
from wildtype.files import write_json

FILE = "ablation.json"
FORMAT = 1
STATES = ("planned", "running", "stopped", "finished", "failed", "skipped")


@dataclass
class RunState:
    """What became of one run.

    Attributes
    ----------
    state : str
        One of ``STATES``; ``stopped`` by a person or the system, ``running`` also if it was killed.
    tries : int
        How often it was begun without a proper end.
    seconds : float or None
        Wall time of a run that went through in one piece.
    resumed : bool
        Whether it went on where it had been interrupted, so that its times are not known.
    why : str
        What went wrong, or why it was skipped.
    trace : str
        Where, for errors that nobody foresaw.
    """

    state: str = "planned"
    tries: int = 0
    seconds: float | None = None
    resumed: bool = False
    why: str = ""
    trace: str = ""


class Record:
    """The states of all runs of an ablation by room, on disk after every change."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.states: dict[str, RunState] = {}
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
            self.states = {room: RunState(**state) for room, state in record["runs"].items()}
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{str(self.path)!r} is damaged ({reason_of(error)}): remove it, finished runs are kept"
            ) from error

    def __getitem__(self, room: str) -> RunState:
        return self.states.setdefault(room, RunState())

    def write(self) -> None:
        """Write the record; raises ``OutputError``."""
        runs = {room: asdict(state) for room, state in self.states.items()}
        write_json(self.path, {"format_version": FORMAT, "runs": runs})


def check_settings(run: PlannedRun, folder: Path) -> None:
    """Refuse a run folder that was made with other settings than the plan's.

    Raises
    ------
    ConfigError
        Naming the run, the setting and both values.
    """
    if changed := changed_setting(folder / run.room, run.config):
        key, before, now = changed
        what = "the base" if run.factor == BASE else f"factor {run.factor!r}, level {run.level!r}"
        raise ConfigError(
            f"{str(folder / run.room)!r} was run with {key} {before}, and {what} now has {now}: choose "
            f"another --folder, or remove the runs that were made with other settings"
        )


def is_finished(folder: Path) -> bool:
    """Say whether a run folder holds a finished run."""
    return (folder / DONE).is_file()


def outcomes(
    folder: Path, model: str, *, timed: bool
) -> tuple[Mapping[str, Comparison], dict[str, AblationRun]]:
    """Return what a finished run reached, by phenotype.

    Parameters
    ----------
    folder : Path
        Of the run.
    model : str
        Its name, by which predictions stand in the file.
    timed : bool
        Whether it went through in one piece, so that its times are those of all epochs.

    Raises
    ------
    CheckpointError
        If the folder is damaged.
    """
    import pandas as pd

    every = Run(folder).comparisons
    try:
        metrics = json.loads((folder / "checkpoint" / "metrics.json").read_text(encoding="utf-8"))
        fits = [metrics["fit"], *metrics["members"]]
        validation = sum(fit["best_score"] for fit in fits) / len(fits)
        epochs = sum(fit["epochs"] for fit in fits)
        seconds = sum(fit["seconds"] for fit in fits) / epochs if timed else float("nan")
        frame = pd.read_parquet(folder / "predictions.parquet")
        columns = [name for name in IDENTITY if name in frame]
        test = frame.assign(**{PREDICTED: frame[model]})
        # Groups and what follows from another phenotype are not phenotypes of rows.
        comparisons = {name: every[name] for name in every if (test["phenotype"] == name).any()}
        if not comparisons:
            raise ConfigError(
                f"the run in {str(folder)!r} has tables of groups only ({', '.join(every)}): ablate "
                f"phenotypes that stand alone, with data.phenotypes=[…]"
            )
        return comparisons, {
            name: AblationRun(
                validation=validation,
                test=test.loc[test["phenotype"] == name, [*columns, PREDICTED]].reset_index(drop=True),
                seconds_per_epoch=seconds,
                peak_mib=comparison[model].peak_mib or float("nan"),
            )
            for name, comparison in comparisons.items()
        }
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CheckpointError(
            f"the run in {str(folder)!r} is damaged ({reason_of(error)}): remove the folder to run it again"
        ) from error
