"""What a Slurm job asks of its cluster: the preset and its file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from wildtype.errors import ConfigError, did_you_mean, reason_of, shown

MAIL_EVENTS = (
    "ALL", "ARRAY_TASKS", "BEGIN", "END", "FAIL", "INVALID_DEPEND", "NONE", "REQUEUE", "STAGE_OUT",
    "TIME_LIMIT", "TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90",
)  # fmt: skip
PRESET_OF = {  # options of sbatch that a preset has a key for
    "partition": "partition", "account": "account", "qos": "qos", "constraint": "constraint",
    "time": "time", "nodes": "nodes", "gpus": "gpus", "gpus-per-node": "gpus", "gpus-per-task": "gpus",
    "ntasks": "gpus", "ntasks-per-node": "gpus", "cpus-per-task": "cpus", "mem": "memory_gib",
    "mail-user": "mail", "mail-type": "mail_events",
}  # fmt: skip
OWN = ("job-name", "output", "error", "open-mode", "chdir", "array", "wrap")  # always set here, or never


@dataclass(frozen=True)
class Preset:
    """What a job asks of the cluster. Every field is a key of a preset file; empty: the cluster's default.

    Parameters
    ----------
    partition, account, qos, constraint : str
        As in sbatch.
    nodes : int
    gpus : int
        Of each node, 0 or more; each gets one process, without any there is one process.
    gpu_type : str
        The cluster's name of a kind of GPU, as in ``a100``.
    cpus : int
        Cores of each process.
    memory_gib : int
        Memory of each node in GiB; 0: all that the node has.
    time : str
        The longest the job may run, in a format of sbatch: ``minutes``, ``minutes:seconds``,
        ``hours:minutes:seconds``, ``days-hours``, ``days-hours:minutes`` or ``days-hours:minutes:seconds``.
    requeue : int
        Seconds before the time limit at which a run is told to stop and its job goes back into the queue, as
        it does when it is preempted; the run is resumed from its last finished epoch. 0: never.
    at_once : int
        Tasks of a job array that run at once; 0: as many as the cluster allows.
    mail : str
        Address that is written to on the ``mail_events``.
    mail_events : tuple of str
    extra : tuple of str
        Further options of sbatch, as in ``--exclusive`` or ``--reservation=spring``.
    setup : tuple of str
        Lines of shell that run on the first node before the command, as in ``module load cuda``.
    prefix : str
        What the command is wrapped in, as in ``apptainer exec image.sif``; split as a shell does, without
        variables.
    program : str
        The ``wildtype`` program that the job calls; empty: the one that submits. A container image with a
        ``wildtype`` inside takes ``wildtype`` here.

    Raises
    ------
    ConfigError
        On a value that sbatch would not take, naming the key.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    nodes: int = 1
    gpus: int = 1
    gpu_type: str = ""
    cpus: int = 8
    memory_gib: int = 32
    time: str = "4:00:00"
    requeue: int = 0
    at_once: int = 0
    mail: str = ""
    mail_events: tuple[str, ...] = ("END", "FAIL")
    extra: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prefix: str = ""
    program: str = ""

    def __post_init__(self) -> None:
        for key, least in {
            "nodes": 1,
            "gpus": 0,
            "cpus": 1,
            "memory_gib": 0,
            "requeue": 0,
            "at_once": 0,
        }.items():
            if getattr(self, key) < least:
                raise ConfigError(f"{key} is {getattr(self, key)}, which is less than {least}")
        for field in fields(self):
            value = getattr(self, field.name)
            texts = value if isinstance(value, tuple) else (str(value),)
            # A line end would close the directive, and what follows would be a line of shell.
            if field.name != "setup" and not all(text.isprintable() for text in texts):
                raise ConfigError(f"{field.name} is {value!r}: write one line, without control characters")
        if not re.fullmatch(r"[\w.-]*", self.gpu_type):
            raise ConfigError(f"gpu_type is {shown(self.gpu_type)}: write one name, as in a100")
        for event in self.mail_events:
            if event not in MAIL_EVENTS:
                raise ConfigError(
                    f"mail_events: {shown(event)} is unknown{_near(event.upper(), MAIL_EVENTS)}"
                )
        minutes(self.time)
        split_prefix(self.prefix)
        split_extra(self.extra)


def read_preset(path: str | Path) -> Preset:
    """Read a preset from a YAML file of the fields of ``Preset``; what it leaves out keeps its default.

    Values are taken as they are written: YAML itself would read the time ``1:30:00`` as the number 5400.

    Raises
    ------
    ConfigError
        On a file that cannot be read or is no YAML, an unknown or repeated key, or an impossible value, with
        the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read the preset {str(path)!r}: {reason}; name a YAML file") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        reason = getattr(error, "problem", None) or reason_of(error)
        raise ConfigError(f"{path}:{line + 1}: the preset is damaged: {reason}") from error
    if root is None:
        return Preset()
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path}:{root.start_mark.line + 1}: a preset is lines of `key: value`")
    defaults = {field.name: field.default for field in fields(Preset)}
    values: dict[str, Any] = {}
    try:
        for key, node in root.value:
            place = f"{path}:{key.start_mark.line + 1}"
            name = str(key.value)
            if name not in defaults:
                raise ConfigError(f"{shown(name)} is not a key of a preset{_near(name, list(defaults))}")
            if name in values:
                raise ConfigError(f"{name} is repeated; keep one")
            values[name] = _value(name, node, defaults[name])
            Preset(**{name: values[name]})  # so that a refusal names this line
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    return Preset(**values)


def _value(name: str, node: yaml.Node, default: object) -> Any:
    """Return the value of a node as the type of a field's default."""
    if node.tag == "tag:yaml.org,2002:null":
        return default
    if isinstance(default, tuple):
        items = node.value if isinstance(node, yaml.SequenceNode) else None
        if items is None or not all(isinstance(item, yaml.ScalarNode) for item in items):
            raise ConfigError(f"{name} takes a list, as in {name}: [first, second]")
        return tuple(str(item.value) for item in items)
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{name} takes one value, not a list or a map")
    if not isinstance(default, int):
        return str(node.value)
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", node.value):
        raise ConfigError(f"{name} is {shown(node.value)}: a whole number is needed")
    return int(node.value)


def _near(word: str, known: Sequence[str]) -> str:
    return "; " + did_you_mean(word, known, f"known: {', '.join(known)}", count=1)


def minutes(time: str) -> int:
    """Return a time limit as sbatch writes it in whole minutes, seconds rounded up.

    Raises
    ------
    ConfigError
        On another format, or no time at all, which Slurm would read as no limit.
    """
    days, hours, mins, seconds = 0, 0, 0, 0
    number = "([0-9]{1,6})"
    if match := re.fullmatch(f"{number}-{number}(?::{number})?(?::{number})?", time):
        days, hours, mins, seconds = (int(part or 0) for part in match.groups())
    elif match := re.fullmatch(f"{number}:{number}:{number}", time):
        hours, mins, seconds = map(int, match.groups())
    elif match := re.fullmatch(f"{number}(?::{number})?", time):
        mins, seconds = (int(part or 0) for part in match.groups())
    total = (days * 24 + hours) * 60 + mins + -(-seconds // 60)
    if total == 0:
        raise ConfigError(f"time is {shown(time)}: write minutes, 4:00:00 or 2-12:00:00, above zero")
    return total


def split_prefix(prefix: str) -> list[str]:
    """Return the parts of a prefix; raises ``ConfigError`` on a quote that is not closed."""
    try:
        return shlex.split(prefix)
    except ValueError as error:
        raise ConfigError(f"the prefix {shown(prefix)} cannot be split: {error}") from error


def split_extra(options: Sequence[str]) -> dict[str, str | bool]:
    """Return name and value of raw options of sbatch, True for a bare one.

    Raises
    ------
    ConfigError
        On an option that is not written ``--name`` or ``--name=value``, or that a preset has a key for.
    """
    found: dict[str, str | bool] = {}
    for option in options:
        match = re.fullmatch(r"--([a-z][a-z-]*)(?:=(.*))?", option)
        if match is None:
            raise ConfigError(f"extra: {shown(option)} is not written as --name or --name=value")
        name, value = match.groups()
        if name in PRESET_OF:
            raise ConfigError(f"extra: --{name} follows from the preset's key {PRESET_OF[name]}; set that")
        if name in OWN:
            raise ConfigError(f"extra: --{name} is not for a preset to set; leave it out")
        found[name] = True if value is None else value
    return found
