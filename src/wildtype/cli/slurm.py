"""Options of commands that can also run as a Slurm job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wildtype.experiments.settings.schema import TrainConfig

Slurm = Annotated[bool, typer.Option("--slurm", help="Submit this command as a Slurm job.")]
PresetFile = Annotated[str, typer.Option("--preset", help="YAML file: partition, gpus, time, mail, …")]
Prefix = Annotated[str, typer.Option("--prefix", help="Wrap the command, as in 'apptainer exec image.sif'.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the sbatch script and submit nothing.")]


def use_all_gpus(config: TrainConfig) -> None:
    """Go on in one process per GPU, where Slurm started one and gave it several; else go on here."""
    from wildtype.models.registry import MODELS
    from wildtype.training.local_processes import become, processes_to_start

    if not MODELS[config.model.name].gradients:
        return  # all it takes is fitted by one process
    count = processes_to_start(config.training.device)
    if count > 1:
        typer.echo(f"wildtype: {count} GPUs are visible: one process for each", err=True)
        become(count)


def submitted(slurm: bool, preset: str, prefix: str, dry_run: bool, tasks: int = 0) -> bool:
    """Submit the present command if ``slurm`` is set; return whether it was submitted or printed.

    ``tasks`` above 0 makes it a job array with one run per task.
    """
    if not slurm and not dry_run:
        return False
    from wildtype.experiments.slurm import submit
    from wildtype.experiments.slurm_presets import Preset, read_preset

    # The job runs the typed arguments without the Slurm options, so that both take the same path.
    found = submit(
        sys.argv[1:],
        read_preset(preset) if preset else Preset(),
        folder=Path("runs/slurm"),
        prefix=prefix,
        dry_run=dry_run,
        tasks=tasks,
    )
    array = f", an array of {tasks} tasks" if tasks else ""
    typer.echo(found if dry_run else f"submitted as job {found}{array}", nl=not found.endswith("\n"))
    return True
