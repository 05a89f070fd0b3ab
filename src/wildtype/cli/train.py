"""`wildtype train`: fit the cell transformer and every baseline on one split, and print the honest table."""

from __future__ import annotations

from typing import Annotated

import typer

from wildtype.cli.output import Json, console, notes, print_json
from wildtype.cli.profile import show_record
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted


def command(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings, as in data=… model.layers=2 seed=1."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--settings", help="Print all settings as they would be used, and stop.")
    ] = False,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Train on a dataset, compare with every baseline on the same split, save the run, and write its page."""
    from wildtype.config.compose import compose

    config = compose(settings or [])
    if show:
        from omegaconf import OmegaConf

        typer.echo(OmegaConf.to_yaml(OmegaConf.structured(config)), nl=False)
        return
    if submitted(slurm, preset, prefix, dry_run):
        return
    from wildtype.report.table import print_comparison
    from wildtype.runs.run import train
    from wildtype.training.world import world

    run = train(config, say=notes().print)
    if not world().leads:
        return
    if config.execution != "training":
        from wildtype.profiling.record import load_record

        show_record(load_record(run.path), json)
    elif json:
        print_json({name: comparison.to_json() for name, comparison in run.comparisons.items()})
    else:
        for comparison in run.tables().values():
            print_comparison(comparison, console())
    notes().print(f"run: {run.path}", soft_wrap=True)
    if config.execution == "training":
        from wildtype.runs.report import report_after_training

        report_after_training(run.path, lambda text: notes().print(text, soft_wrap=True))
