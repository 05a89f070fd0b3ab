"""`multirun`: the runs of one line, one after the other; what is finished stays, what was killed goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wildtype.errors import ConfigError
from wildtype.experiments.folder import DONE, changed_setting, going_on
from wildtype.experiments.run import train
from wildtype.experiments.settings.multirun import OneOfMany
from wildtype.experiments.start import Log
from wildtype.experiments.stored import Run


def multirun(runs: Sequence[OneOfMany], log: Log = lambda text: None) -> list[Run]:
    """Train every run that is not finished, and return them all.

    Raises
    ------
    ConfigError
        If the folder of a run holds one with other settings; nothing is trained then.
    WildtypeError
        As ``train`` does; the same line again goes on there.
    """
    for one in runs:
        folder = Path(one.config.run.folder)
        if changed := changed_setting(folder, one.config):
            key, before, now = changed
            raise ConfigError(
                f"{str(folder)!r} was run with {key} {before}, and now has {now}: choose another run.folder"
            )
    found = []
    for number, one in enumerate(runs, 1):
        folder = Path(one.config.run.folder)
        if (folder / DONE).is_file():
            log(f"{number} of {len(runs)}, {one.name}: finished before")
            found.append(Run(folder))
            continue
        log(f"{number} of {len(runs)}, {one.name}")
        found.append(train(going_on(one.config, folder), log=log))
    return found
