"""The same command as a Slurm job: the sbatch script, and its submission through submitit.

The script first goes to the folder in which the command was given: sbatch copies scripts to a spool
directory, so nothing may be found by where the script lies.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wildtype.errors import ConfigError, reason_of
from wildtype.experiments.slurm_presets import Preset, minutes, split_extra, split_prefix

TERMINATED = 128 + signal.SIGTERM
"""Exit code of a command that was told to stop, and did."""
AGAIN = "run.requeued=true"
TASK = "SLURM_ARRAY_TASK_ID"
MULTIRUN = ("--multirun", "-m")
MOST_RETURNS = 1000
"""Times that a job goes back into the queue for want of time."""
FLAGS = ("--slurm", "--dry-run")  # what `wildtype` takes about the submission itself
VALUED = ("--preset", "--prefix")


def without_slurm_options(words: Sequence[str]) -> list[str]:
    """Return a command line without what it says of its own submission; words behind ``--`` stay."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            kept += [word, *rest]
        elif word in VALUED:
            next(rest, None)
        elif word not in FLAGS and not word.startswith(tuple(f"{name}=" for name in VALUED)):
            kept.append(word)
    return kept


def command_line(words: Sequence[str], preset: Preset, prefix: str = "") -> list[str]:
    """Return the whole command of a job: prefix, program, words.

    Parameters
    ----------
    words : sequence of str
        What followed ``wildtype``; options of the submission are dropped, or the job would submit itself.
    preset : Preset
    prefix : str
        Takes the place of the preset's.

    Raises
    ------
    ConfigError
        If no ``wildtype`` stands beside the running Python.
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
    return [*split_prefix(prefix or preset.prefix), program, *without_slurm_options(words)]


def of_task(words: Sequence[str], task: str) -> list[str]:
    """Return the command line of one task of an array, ``train --multirun …`` with the task's number."""
    at = words.index("train") + 1
    return [*words[:at], "--only", task, *words[at:]]


def script(
    words: Sequence[str], preset: Preset, *, directory: Path, folder: Path, prefix: str = "", tasks: int = 0
) -> str:
    """Return the sbatch script of a command.

    Parameters
    ----------
    words : sequence of str
        What followed ``wildtype``.
    preset : Preset
    directory : Path
        Where relative paths of the command start.
    folder : Path
        Of the logs, ``<job>_<process>_log.out`` and ``.err``; relative to ``directory``. Slurm wants it to be
        there when the job starts.
    prefix : str
        Takes the place of the preset's.
    tasks : int
        Of a job array, one per run of ``train --multirun``; 0: the script is of one job.

    Raises
    ------
    ConfigError
        If no ``wildtype`` stands beside the running Python, or the folder's name cannot be one of logs.
    """
    logs = _logs(directory, folder)
    job = "%A_%a" if tasks else "%j"
    out, err = str(logs / f"{job}_%t_log.out"), str(logs / f"{job}_%t_log.err")
    options: dict[str, Any] = {**_options(words, preset), **split_extra(preset.extra)}
    if tasks:
        options["array"] = f"0-{tasks - 1}" + (f"%{preset.at_once}" if preset.at_once else "")
    # The batch shell is no process of srun and has no number; what it says goes to the first one's log.
    options |= {"output": out.replace("%t", "0"), "error": err.replace("%t", "0"), "open_mode": "append"}
    run = ["srun", "--unbuffered", "--output", out, "--error", err, *_srun(preset)]
    run += command_line(of_task(words, TASK) if tasks else words, preset, prefix)
    line, after = shlex.join(run).replace(f"--only {TASK}", f'--only "${TASK}"', 1), []
    if preset.requeue:
        _check_requeue(words)
        options = {"requeue": True, "signal": f"TERM@{preset.requeue}", **options}
        if _trains(words):
            line += " ${SLURM_RESTART_COUNT:+" + AGAIN + "}"
        after = ["code=$?", f'[ $code -eq {TERMINATED} ] && scontrol requeue "$SLURM_JOB_ID"', "exit $code"]
    header = [directive(name, value) for name, value in options.items()]
    return "\n".join(["#!/bin/bash", *header, "", *_setup(preset, directory), "", line, *after, ""])


def directive(name: str, value: object) -> str:
    """Return the line of an sbatch script that sets an option; True: an option without a value."""
    flag = f"#SBATCH --{name.replace('_', '-')}"
    return flag if value is True else f"{flag}={shlex.quote(str(value))}"


def submit(
    words: Sequence[str],
    preset: Preset,
    *,
    folder: Path,
    prefix: str = "",
    dry_run: bool = False,
    tasks: int = 0,
) -> str:
    """Submit a command as it would run here and now, in the working directory.

    Parameters
    ----------
    words : sequence of str
        What followed ``wildtype``.
    preset : Preset
    folder : Path
        Of the logs and of submitit's own files; on a file system that all nodes see.
    prefix : str
        Takes the place of the preset's.
    dry_run : bool
        Submit and write nothing; submitit need not be installed.
    tasks : int
        Of a job array, one per run of ``train --multirun``; 0: submit one job.

    Returns
    -------
    str
        The job's number, or the script of a dry run.

    Raises
    ------
    ConfigError
        Without submitit or Slurm, or if Slurm refuses the job, with its reason.
    """
    directory = Path.cwd()
    if dry_run:
        return script(words, preset, directory=directory, folder=folder, prefix=prefix, tasks=tasks)
    lines = [of_task(words, str(task)) for task in range(tasks)] or [list(words)]
    commands = [command_line(line, preset, prefix) for line in lines]
    logs = _logs(directory, folder)
    try:
        submitit = importlib.import_module("submitit")
    except ImportError as error:
        raise ConfigError(
            "--slurm submits with submitit, which is not installed: pip install 'wildtype[slurm]', or print "
            "the script with --dry-run"
        ) from error
    for program in ("sbatch", "srun"):
        if shutil.which(program) is None:
            raise ConfigError(
                f"there is no {program} on this machine: submit on a login node of a Slurm cluster, or print "
                "the script with --dry-run"
            )
    if preset.requeue:
        _check_requeue(words)
        own: dict[str, Any] = {"signal": f"USR2@{preset.requeue}", "requeue": True}
    else:
        # submitit asks for a signal ahead of the time limit, which would end the command early, and a short
        # job at once; this signal does nothing.
        own = {"signal": "CONT@60"}
    extra = {**own, **split_extra(preset.extra)}
    try:
        executor = submitit.SlurmExecutor(folder=logs, max_num_timeout=MOST_RETURNS)
        executor.update_parameters(
            **_options(words, preset),
            setup=_setup(preset, directory),
            srun_args=_srun(preset),
            additional_parameters=extra,
            wckey=None,  # submitit's own label, which clusters that register theirs refuse
        )
        again = [AGAIN] if preset.requeue and _trains(words) else []
        if tasks:
            if preset.at_once:
                executor.update_parameters(array_parallelism=preset.at_once)
            jobs = executor.map_array(Command(), commands, [str(directory)] * tasks, [again] * tasks)
            return str(jobs[0].job_id).partition("_")[0]
        job = executor.submit(Command(), commands[0], str(directory), again)
    except (RuntimeError, OSError) as error:
        raise ConfigError(f"the job was not submitted: {reason_of(error)}") from error
    return str(job.job_id)


class Command:
    """A job's command, as submitit starts it; submitit calls `checkpoint` when time is up or the job is
    preempted, and puts what it returns back into the queue.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, command: Sequence[str], directory: str, again: Sequence[str] = ()) -> None:
        """Run a command in a folder, with the words ``again`` where the job was on a node before."""
        words = [*command, *(again if int(os.environ.get("SLURM_RESTART_COUNT") or 0) else ())]
        self.process = subprocess.Popen(words, cwd=directory)
        while self.process.poll() is None:  # not `wait`, whose lock `checkpoint` would wait for
            time.sleep(0.1)
        if self.process.returncode:
            raise subprocess.CalledProcessError(self.process.returncode, words)

    def checkpoint(self, command: Sequence[str], directory: str, again: Sequence[str] = ()) -> Any:
        """Let the command end itself, and return the same again."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.process.pid, signal.SIGTERM)
                os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        submission: Any = importlib.import_module("submitit.helpers").DelayedSubmission
        return submission(Command(), command, directory, again)


def _trains(words: Sequence[str]) -> bool:
    """Say whether a command trains one run: others go on by themselves when they are given again."""
    command = next((word for word in words if not word.startswith("-")), "")
    return command == "train" and not any(word in MULTIRUN for word in words)


def _check_requeue(words: Sequence[str]) -> None:
    """Refuse a run whose folder the job would not find again."""
    if _trains(words) and not any(word.startswith("run.folder=") for word in words):
        raise ConfigError(
            "requeue: a job that goes back into the queue must find its run again: name it with run.folder=…"
        )


def _options(words: Sequence[str], preset: Preset) -> Mapping[str, Any]:
    """Return what the job asks for by submitit's names: those of sbatch, with underscores."""
    gpus = f"{preset.gpu_type}:{preset.gpus}" if preset.gpu_type else str(preset.gpus)
    options = {
        "job_name": _job_name(words),
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


def _job_name(words: Sequence[str]) -> str:
    """Return ``wildtype-profile-step`` and the like: the command, without what it is about."""
    names = [word for word in words if not word.startswith("-")]
    count = 2 if names[:1] == ["profile"] else 1
    return "-".join(["wildtype", *(word for word in names[:count] if re.fullmatch(r"[a-z]+", word))])


def _setup(preset: Preset, directory: Path) -> list[str]:
    return [f"cd {shlex.quote(str(directory.absolute()))} || exit 1", *preset.setup]


def _srun(preset: Preset) -> list[str]:
    # In Slurm 22.05 to 23.02 srun does not take the cores over from sbatch: every process would have one.
    several = preset.nodes * max(1, preset.gpus) > 1
    return [f"--cpus-per-task={preset.cpus}", *(["--kill-on-bad-exit=1"] if several else [])]


def _logs(directory: Path, folder: Path) -> Path:
    logs = directory.absolute() / folder
    if "%" in str(logs) or not str(logs).isprintable():
        raise ConfigError(f"Slurm cannot write logs to {str(logs)!r}: choose a folder without % or line ends")
    return logs
