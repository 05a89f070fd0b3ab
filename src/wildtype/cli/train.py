"""`wildtype train`: fit a model and every baseline on one split, and print the comparison table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json
from wildtype.cli.profile import show_record
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted, use_all_gpus

if TYPE_CHECKING:
    from wildtype.experiments.stored import Run


def command(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Overrides, as in data=… model.layers=2 seed=1."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--settings", help="Print all settings with their meaning and range, and stop.")
    ] = False,
    multirun: Annotated[
        bool,
        typer.Option("--multirun", "-m", help="Train every combination of several values, as in seed=1,2,3."),
    ] = False,
    only: Annotated[
        int, typer.Option(help="With --multirun: only this run, from 0, as each task of a job array does.")
    ] = -1,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Train a model, compare it with every baseline on the same split, save the run, and write its page."""
    from wildtype.errors import ConfigError
    from wildtype.experiments.settings.compose import compose
    from wildtype.sources.catalogue import organism_of

    if only >= 0 and not multirun:
        raise ConfigError(f"--only {only} chooses one of several runs: add --multirun, or leave it out")
    if show and (multirun or slurm or dry_run):
        raise ConfigError("--settings prints and stops: leave out --multirun, --slurm and --dry-run")
    if multirun:
        _many(settings or [], only, json, slurm, preset, prefix, dry_run)
        return
    config = compose(settings or [], notes().print)
    # As the settings above, before anything is shown or submitted: a mistake must not wait in a queue.
    organism_of(config.data.name)
    if show:
        from wildtype.settings import to_yaml

        typer.echo(to_yaml(config), nl=False)
        return
    if submitted(slurm, preset, prefix, dry_run):
        return
    use_all_gpus(config)
    from wildtype.experiments.run import train
    from wildtype.report.comparison_tables import print_comparison
    from wildtype.training.world import world

    run = train(config, log=notes().print)
    # Of several processes under torchrun, only the first prints and writes.
    if not world().is_rank_zero:
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
        _write_page(run)


def _many(
    settings: list[str], only: int, json: bool, slurm: bool, preset: str, prefix: str, dry_run: bool
) -> None:
    from wildtype.errors import ConfigError
    from wildtype.experiments.settings.plans import runs_of_line
    from wildtype.sources.catalogue import organism_of

    runs = runs_of_line(settings, notes().print)
    for name in dict.fromkeys(run.config.data.name for run in runs):
        organism_of(name)
    if only >= len(runs):
        raise ConfigError(f"--only {only}: there are {len(runs)} runs, counted from 0")
    if submitted(slurm, preset, prefix, dry_run, tasks=len(runs)):
        return
    use_all_gpus(runs[0].config)
    from wildtype.cli.evaluate import show_comparison
    from wildtype.experiments.folder import REPORT
    from wildtype.experiments.many import multirun
    from wildtype.training.world import world

    done = multirun(runs if only < 0 else runs[only : only + 1], notes().print)
    if world().is_rank_zero:
        for run in done:
            if not (run.path / REPORT).is_file():
                _write_page(run)
        show_comparison([run.path for run in done], markdown=False, each=False, json=json)


def _write_page(run: Run) -> None:
    from wildtype.experiments.report import report_after_training

    report_after_training(run, lambda text: notes().print(text, soft_wrap=True))
