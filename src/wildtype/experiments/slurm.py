"""The same command as a Slurm job: the sbatch script, and its submission.

The script first changes to the directory in which the command was given: sbatch copies scripts to a spool
directory, so nothing may be looked up relative to the script.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from wildtype.errors import ConfigError
from wildtype.experiments.slurm_presets import Preset, minutes, split_extra, split_prefix
from wildtype.files import write_text, writing_refused

TERMINATED = 128 + signal.SIGTERM
"""Exit code of a command that was told to stop, and did."""
AGAIN = "run.requeued=true"
TASK = "SLURM_ARRAY_TASK_ID"
TASK_OPTION = {"train": "--only", "screen": "--shard", "predict": "--shard", "ablate": "--only", "tune": ""}
"""The option by which a task of a job array is given its number, by command; none: all tasks are alike."""
MULTIRUN = ("--multirun", "-m")
FLAGS = ("--slurm", "--dry-run")
"""Options of `wildtype` about the submission itself; ``VALUED`` are those that take a value."""
VALUED = ("--preset", "--prefix")


def without_slurm_options(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the options of its submission; what follows ``--`` stays."""
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            kept += [argument, *rest]
        elif argument in VALUED:
            next(rest, None)
        elif argument not in FLAGS and not argument.startswith(tuple(f"{name}=" for name in VALUED)):
            kept.append(argument)
    return kept


def command_line(arguments: Sequence[str], preset: Preset, prefix: str = "") -> list[str]:
    """Return the whole command of a job: prefix, program, arguments.

    Parameters
    ----------
    arguments : sequence of str
        What followed ``wildtype``; options of the submission are dropped, or the job would submit itself.
    preset : Preset
    prefix : str
        Replaces that of the preset.

    Raises
    ------
    ConfigError
        If there is no ``wildtype`` beside the running Python.
    """
    program = preset.program
    if not program:
        beside = Path(sys.executable).absolute().with_name("wildtype")
        if not beside.is_file():
            raise ConfigError(
                f"there is no {str(beside)!r} for the job to call; install wildtype with this Python, or "
                "name the program in the preset"
            )
        program = str(beside)
    return [*split_prefix(prefix or preset.prefix), program, *without_slurm_options(arguments)]


def of_task(arguments: Sequence[str], task: str) -> list[str]:
    """Return the command line of one task of an array, as ``train --only 3 …`` with the task's number."""
    command = _command(arguments)
    at = arguments.index(command) + 1
    return [*arguments[:at], *([TASK_OPTION[command], task] if TASK_OPTION[command] else []), *arguments[at:]]


def script(
    arguments: Sequence[str],
    preset: Preset,
    *,
    directory: Path,
    folder: Path,
    prefix: str = "",
    tasks: int = 0,
) -> str:
    """Return the sbatch script of a command.

    Parameters
    ----------
    arguments : sequence of str
        What followed ``wildtype``.
    preset : Preset
    directory : Path
        Where relative paths of the command start.
    folder : Path
        Directory of the logs, ``<job>_<process>_log.out`` and ``.err``; relative to ``directory``. It has
        to be there when the job starts.
    prefix : str
        Replaces that of the preset.
    tasks : int
        Of a job array, such as one per run of ``train --multirun``; 0: the script is of one job.

    Raises
    ------
    ConfigError
        If there is no ``wildtype`` beside the running Python, or no logs can be written to ``folder``.
    """
    logs = _logs(directory, folder)
    job = "%A_%a" if tasks else "%j"
    out, err = str(logs / f"{job}_%t_log.out"), str(logs / f"{job}_%t_log.err")
    options: dict[str, object] = {**_options(arguments, preset), **split_extra(preset.extra)}
    if tasks:
        options["array"] = f"0-{tasks - 1}" + (f"%{preset.at_once}" if preset.at_once else "")
    # The batch shell is no process of srun and has no number; its output goes to the log of process 0.
    options |= {"output": out.replace("%t", "0"), "error": err.replace("%t", "0"), "open_mode": "append"}
    run = ["srun", "--unbuffered", "--output", out, "--error", err, *_srun(preset)]
    run += command_line(of_task(arguments, TASK) if tasks else arguments, preset, prefix)
    # The one word of the line that the shell expands: the number of the task.
    given = f"{TASK_OPTION[_command(arguments)]} " if tasks else ""
    line, after = shlex.join(run).replace(f"{given}{TASK}", f'{given}"${TASK}"', 1), []
    if preset.requeue:
        # Slurm requeues a preempted job by itself; one whose time is up must ask for it. Only the exit code
        # of a command that was told to stop leads back into the queue: an error would come again.
        _check_requeue(arguments)
        options = {"requeue": True, "signal": f"TERM@{preset.requeue}", **options}
        if _trains(arguments):
            line += " ${SLURM_RESTART_COUNT:+" + AGAIN + "}"
        after = ["code=$?", f'[ $code -eq {TERMINATED} ] && scontrol requeue "$SLURM_JOB_ID"', "exit $code"]
    header = [directive(name, value) for name, value in options.items()]
    return "\n".join(["#!/bin/bash", *header, "", *_setup(preset, directory), "", line, *after, ""])


def directive(name: str, value: object) -> str:
    """Return the line of an sbatch script that sets an option; True: an option without a value."""
    flag = f"#SBATCH --{name.replace('_', '-')}"
    return flag if value is True else f"{flag}={shlex.quote(str(value))}"


def submit(
    arguments: Sequence[str],
    preset: Preset,
    *,
    folder: Path,
    prefix: str = "",
    dry_run: bool = False,
    tasks: int = 0,
) -> str:
    """Give the script of a command to sbatch, to run in the present working directory.

    Parameters
    ----------
    arguments : sequence of str
        What followed ``wildtype``.
    preset : Preset
    folder : Path
        Directory of the logs, on a file system that all nodes see. The script is kept there, too, as
        ``<job>_submission.sh``.
    prefix : str
        Replaces that of the preset.
    dry_run : bool
        Submit and write nothing; Slurm need not be there.
    tasks : int
        Of a job array, such as one per run of ``train --multirun``; 0: submit one job.

    Returns
    -------
    str
        The job's number, or the script of a dry run.

    Raises
    ------
    ConfigError
        Without Slurm, or if it refuses the job, with its reason.
    OutputError
        If the directory of the logs cannot be written.
    """
    directory = Path.cwd()
    text = script(arguments, preset, directory=directory, folder=folder, prefix=prefix, tasks=tasks)
    if dry_run:
        return text
    for program in ("sbatch", "srun"):
        if shutil.which(program) is None:
            raise ConfigError(
                f"there is no {program} on this machine: submit on a login node of a Slurm cluster, or print "
                "the script with --dry-run"
            )
    logs = _logs(directory, folder)
    try:
        logs.mkdir(parents=True, exist_ok=True)  # Slurm drops the output of a job whose logs have no place
    except OSError as error:
        raise writing_refused(error, logs) from error
    answer = subprocess.run(["sbatch", "--parsable"], input=text, capture_output=True, text=True, check=False)
    job = answer.stdout.strip().partition(";")[0]  # a cluster of several adds its name: <job>;<cluster>
    if answer.returncode or not job:
        reason = next(iter(answer.stderr.strip().splitlines()), f"sbatch ended with code {answer.returncode}")
        raise ConfigError(f"the job was not submitted: {reason}")
    write_text(logs / f"{job}_submission.sh", text)
    return job


def _command(arguments: Sequence[str]) -> str:
    return next((argument for argument in arguments if not argument.startswith("-")), "")


def _trains(arguments: Sequence[str]) -> bool:
    """Whether a command trains one run: others resume by themselves when they are given again."""
    return _command(arguments) == "train" and not any(argument in MULTIRUN for argument in arguments)


def _check_requeue(arguments: Sequence[str]) -> None:
    """Refuse a run whose directory the requeued job would not find again."""
    if _trains(arguments) and not any(argument.startswith("run.folder=") for argument in arguments):
        raise ConfigError(
            "requeue: a job that goes back into the queue must find its run again: name it with run.folder=…"
        )


def _options(arguments: Sequence[str], preset: Preset) -> Mapping[str, object]:
    """Return what the job asks for, by the names of sbatch's options with underscores."""
    gpus = f"{preset.gpu_type}:{preset.gpus}" if preset.gpu_type else str(preset.gpus)
    options = {
        "job_name": _job_name(arguments),
        "partition": preset.partition,
        "account": preset.account,
        "qos": preset.qos,
        "constraint": preset.constraint,
        "time": minutes(preset.time),
        "nodes": preset.nodes,
        "ntasks_per_node": max(1, preset.gpus),
        "cpus_per_task": preset.cpus,
        "gpus_per_node": gpus if preset.gpus else "",
        "mem": f"{preset.memory_gib}G",
        "mail_user": preset.mail,
        "mail_type": ",".join(preset.mail_events) if preset.mail else "",
    }
    return {name: value for name, value in options.items() if value != ""}


def _job_name(arguments: Sequence[str]) -> str:
    """Return ``wildtype-profile-step`` and the like: the command, without its settings."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    count = 2 if names[:1] == ["profile"] else 1
    return "-".join(["wildtype", *(name for name in names[:count] if re.fullmatch(r"[a-z]+", name))])


def _setup(preset: Preset, directory: Path) -> list[str]:
    return [f"cd {shlex.quote(str(directory.absolute()))} || exit 1", *preset.setup]


def _srun(preset: Preset) -> list[str]:
    # From Slurm 22.05 to 23.02 srun does not inherit the cores per process of sbatch: each would get one.
    several = preset.nodes * max(1, preset.gpus) > 1
    return [f"--cpus-per-task={preset.cpus}", *(["--kill-on-bad-exit=1"] if several else [])]


def _logs(directory: Path, folder: Path) -> Path:
    logs = directory.absolute() / folder
    if "%" in str(logs) or not str(logs).isprintable():
        raise ConfigError(f"Slurm cannot write logs to {str(logs)!r}: choose a name without % or line ends")
    return logs
