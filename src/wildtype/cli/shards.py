"""Options of commands whose work any machines can share: `--shards`, `--shard` and `--merge`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import notes
from wildtype.errors import ConfigError

if TYPE_CHECKING:
    from wildtype.inference.shards import Shard

Shards = Annotated[
    int | None, typer.Option("--shards", help="Divide the work among so many processes on any machines.")
]
ShardNumber = Annotated[
    int | None, typer.Option("--shard", help="With --shards: only this one, from 0, for a later --merge.")
]
Merge = Annotated[
    Path | None, typer.Option("--merge", metavar="DIRECTORY", help="Print the table from its shards.")
]


def chosen_shard(shards: int | None, shard: int | None, job: bool, output: Path | None) -> Shard | None:
    """Return the shard that is meant; raises ``ConfigError`` where options do not go together."""
    from wildtype.inference.shards import Shard

    if shards is None:
        if shard is not None:
            raise ConfigError(f"--shard {shard}: say with --shards how many there are")
        return None
    if output is None:
        raise ConfigError(
            f"--shards {shards}: name the file of the whole table with -o; shards are kept beside it"
        )
    first = Shard(0 if shard is None else shard, shards)
    if job:
        if shard is not None:
            raise ConfigError(f"--shard {shard}: a job array has every shard; leave --shard or --slurm out")
        return None
    if shard is None:
        raise ConfigError(
            f"--shards {shards}: choose one with --shard, from 0 to {shards - 1}, or submit all with --slurm"
        )
    return first


def check_beside_merge(context: typer.Context, allowed: Collection[str]) -> None:
    """Refuse what is given beside `--merge` and stored with the shards; raises ``ConfigError``."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            name = max(parameter.opts, key=len)
            name = name if name.startswith("-") else name.upper()
            raise ConfigError(f"{name} is stored with the shards: leave it out beside --merge")


def report_array(command: str, shards: int, output: Path, pieces: int, what: str) -> None:
    """Print how many tasks of a job array are empty, and the command that merges what they leave.

    ``what`` names what has so many pieces, as in ``the design has 18 pieces``.
    """
    from wildtype.inference.shards import folder_of

    if pieces < shards:
        notes().print(f"{what}: {shards - pieces:,} shards are empty")
    merging = f"wildtype {command} --merge {folder_of(output)} -o {output}"
    notes().print(f"once all shards have ended: {merging}", soft_wrap=True)
