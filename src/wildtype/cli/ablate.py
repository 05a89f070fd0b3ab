"""`wildtype ablate`: what each part of a configuration is worth, one factor at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json
from wildtype.cli.slurm import Prefix, PresetFile, Slurm, submitted


def command(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE or NAME] [KEY=VALUE]...",
            help="A YAML file of factors, or the name of a built-in one; overrides of the base.",
        ),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time limit of this call, as in 45m or 2h; empty: none.")] = "",
    seeds: Annotated[str, typer.Option(help="Random seeds, by commas; the first one runs first.")] = "0,1,2",
    folder: Annotated[Path, typer.Option(help="Directory of runs and tables.")] = Path("runs/ablation"),
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates behind the intervals.")] = 1000,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    only: Annotated[
        int | None, typer.Option(help="Do only this run, from 0, as each task of a job array does.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Do no run: write the tables of the finished ones.")
    ] = False,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything, list the runs and stop; with --slurm, print the script."
        ),
    ] = False,
) -> None:
    """Change one factor of a base configuration at a time; finished runs are kept, killed ones resumed.

    With --slurm, every run is a task of a job array, and --tables writes the tables afterwards.

    The exit code is 0 only if no run failed. Runs that do not fit the budget are listed; the next call does
    them.
    """
    from wildtype.errors import ConfigError
    from wildtype.experiments.settings.ablation import read_ablation
    from wildtype.experiments.settings.plans import duration

    given = list(overrides or [])
    what = given.pop(0) if given and "=" not in given[0] else "ecoli-core"
    try:
        chosen = [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise ConfigError(f"--seeds={seeds!r}: give numbers with commas, as in 0,1,2") from None
    seconds = duration(budget) if budget else None
    plan = read_ablation(what, given)
    from wildtype.experiments.ablation import ablate, preview

    if only is not None and (tables or slurm):
        raise ConfigError(f"--only {only}: leave {'--tables' if tables else '--slurm'} out")
    if slurm:
        runs = preview(plan, chosen, folder)  # which checks the settings of every run
        submitted(slurm, preset, prefix, dry_run, tasks=len(runs))
        notes().print("once all tasks have ended, give the same line with --tables in place of --slurm")
        return
    if dry_run:
        steps = preview(plan, chosen, folder)
        if json:
            print_json([vars(step) for step in steps])
        for step in [] if json else steps:
            took = "" if step.seconds is None else f", about {step.seconds:,.0f} s"
            typer.echo(f"{step.run}: {step.state}{took}")
        return
    report = ablate(
        plan,
        chosen,
        folder=folder,
        budget=seconds,
        replicates=replicates,
        only=only,
        tables_only=tables,
        log=notes().print,
    )
    if json:
        print_json(report.to_json())
    elif markdown:
        from wildtype.report.search_tables import ablation_to_markdown

        typer.echo(ablation_to_markdown(report.tables, report.notes), nl=False)
    else:
        from wildtype.report.search_tables import print_ablation

        print_ablation(report.tables, report.notes, console())
    if only is None:
        notes().print(f"tables: {folder / 'ablation.md'}", soft_wrap=True)
    if report.failed:
        notes().print(
            f"wildtype: {len(report.failed)} runs failed, {report.failed[0]} first: see their remarks",
            soft_wrap=True,
        )
        raise typer.Exit(1)
