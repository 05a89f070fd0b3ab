"""`wildtype tune`: settings searched by validation, the best of them tested beside the base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted


def command(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE or NAME] [KEY=VALUE]...",
            help="A YAML file of ranges, or the name of a built-in one; overrides of the base.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in all, with those of earlier calls.")] = 30,
    grid: Annotated[bool, typer.Option("--grid", help="Try every combination; none is cut short.")] = False,
    budget: Annotated[
        str, typer.Option(help="Time after which no trial is begun, as in 45m or 2h; empty: no limit.")
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="Random seeds of the tested runs, separated by commas; empty: test nothing.")
    ] = "0,1,2",
    folder: Annotated[Path, typer.Option(help="Directory of trials and tables.")] = Path("runs/tune"),
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates behind the intervals.")] = 1000,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    workers: Annotated[
        int, typer.Option(help="With --slurm: processes that search together, as tasks of a job array.")
    ] = 1,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Search settings by their validation score, and compare the best of them with the base on test rows.

    Ended trials are kept, a killed one is resumed. Several processes may search in one directory. The exit
    code is 0 only if a trial finished, or is under way elsewhere, and no tested run failed.
    """
    from wildtype.errors import ConfigError
    from wildtype.experiments.settings.plans import duration
    from wildtype.experiments.settings.tuning import read_tuning

    given = list(overrides or [])
    what = given.pop(0) if given and "=" not in given[0] else "ecoli-core"
    try:
        chosen = [int(seed) for seed in seeds.split(",") if seeds]
    except ValueError:
        raise ConfigError(f"--seeds={seeds!r}: give numbers with commas, as in 0,1,2") from None
    seconds = duration(budget) if budget else None
    plan = read_tuning(what, given)
    if workers < 1 or (workers > 1 and not slurm and not dry_run):
        raise ConfigError(f"--workers {workers}: give at least 1, and more than 1 with --slurm only")
    if submitted(slurm, preset, prefix, dry_run, tasks=workers if workers > 1 else 0):
        return
    from wildtype.experiments.tuning import tune
    from wildtype.report.search_tables import (
        ablation_to_markdown,
        print_ablation,
        print_trials,
        trials_to_markdown,
    )

    found = tune(
        plan,
        folder=folder,
        trials=trials,
        grid=grid,
        seeds=chosen,
        budget=seconds,
        replicates=replicates,
        log=notes().print,
    )
    if json:
        print_json(found.to_json())
    elif markdown:
        typer.echo(trials_to_markdown(found.trials, found.best, found.base))
        if found.test is not None:
            typer.echo(ablation_to_markdown(found.test.tables, found.test.notes), nl=False)
    else:
        print_trials(found.trials, found.best, found.base, console())
        if found.test is not None:
            print_ablation(found.test.tables, found.test.notes, console())
    if found.best is not None:
        notes().print(f"the best settings: {' '.join(plan.overrides(found.best.params))}", soft_wrap=True)
    if (found.best is None and not found.under_way) or (found.test is not None and found.test.failed):
        why = "no trial finished" if found.best is None else "a tested run failed: see its remark"
        notes().print(f"wildtype: {why}", soft_wrap=True)
        raise typer.Exit(1)
