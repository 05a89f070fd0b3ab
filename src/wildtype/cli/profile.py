"""`wildtype profile`: seconds, memory and operators of a training run, phase by phase."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted, use_all_gpus
from wildtype.models.registry import MODELS

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Overrides as for wildtype train: data=… model=…"),
]
Html = Annotated[str, typer.Option("--html", help="Also write a self-contained HTML page.", metavar="FILE")]
Folder = Annotated[str, typer.Option("--folder", help="Directory of the profiles.")]


@app.command()
def run(
    settings: Settings = None,
    steps: Annotated[int, typer.Option(help="Timed steps of each mode.")] = 50,
    modes: Annotated[
        str, typer.Option(help="Modes, separated by commas.")
    ] = "data_only,forward,forward_backward,training",
    reference: Annotated[
        bool, typer.Option("--reference", help="Profile the model's reference implementation.")
    ] = False,
    folder: Folder = "",
    html: Html = "",
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Time steps of a training run that stop after each part: cost of data, transfer, model and sync."""
    from wildtype.experiments.settings.compose import compose

    config = compose(settings or [])
    from wildtype.experiments.profile import check_counts, chosen_modes, profile_folder, profile_run

    # All arguments are checked before a job is submitted.
    chosen, target = chosen_modes(modes), profile_folder(folder)
    check_counts(steps=steps)
    if submitted(slurm, preset, prefix, dry_run):
        return
    use_all_gpus(config)
    from wildtype.training.world import world

    first = world().is_rank_zero
    log = notes().print if first else lambda text: None
    report = profile_run(config, steps=steps, modes=chosen, reference=reference, folder=target, log=log)
    if not first:
        return
    records = list(report["modes"].values())
    _page(html, records)
    if json:
        print_json(report)
        return
    from wildtype.report.profile_tables import parts_table
    from wildtype.report.profile_text import print_record

    print_record(records[-1], console())
    console().print(parts_table(report))


@app.command()
def step(
    settings: Settings = None,
    steps: Annotated[int, typer.Option(help="Timed steps, after five warm-up steps.")] = 50,
    folder: Folder = "",
    html: Html = "",
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Time training steps on one batch: mean, median and 95th percentile of each phase."""
    from wildtype.experiments.settings.compose import compose

    config = compose(settings or [])
    from wildtype.experiments.profile import check_counts, profile_folder, profile_step

    target = profile_folder(folder)
    check_counts(steps=steps)
    if submitted(slurm, preset, prefix, dry_run):
        return
    use_all_gpus(config)
    from wildtype.training.world import world

    record = profile_step(config, steps=steps, folder=target)
    if not world().is_rank_zero:
        return
    _page(html, [record])
    show_record(record, json)


@app.command()
def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="A B [C]...", help="Run directories, or profile.json files.")
    ],
    html: Html = "",
    json: Json = False,
) -> None:
    """Compare profiles: the phases that explain a difference in speed, and their shares of it."""
    from wildtype.profiling.compare import compare_profiles
    from wildtype.profiling.record import load_record

    records = [load_record(path) for path in runs]
    gaps = compare_profiles(*records)
    _page(html, records)
    if json:
        print_json([gap.to_json() for gap in gaps])
        return
    from wildtype.report.profile_tables import print_gap

    for gap in gaps:
        print_gap(gap, console())


@app.command()
def trace(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]... | FILE...",
            help="Overrides as for wildtype train; or stored traces, all compared with the first.",
        ),
    ] = None,
    wait: Annotated[int, typer.Option(help="Steps before the recording.")] = 2,
    warm_up: Annotated[int, typer.Option(help="Warm-up steps, recorded but not reported.")] = 2,
    active: Annotated[int, typer.Option(help="Recorded steps that are reported.")] = 5,
    to: Annotated[str, typer.Option(help="Chrome trace; compressed if it ends in .gz.")] = "trace.json.gz",
    record_shapes: Annotated[
        bool, typer.Option("--record-shapes", help="Also record the shapes of operands.")
    ] = False,
    with_stack: Annotated[
        bool, typer.Option("--with-stack", help="Also record Python's call stacks.")
    ] = False,
    python_lines: Annotated[
        bool, typer.Option("--python-lines", help="Time the lines of the data pipeline instead.")
    ] = False,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Record steps with torch's profiler, or read traces: operators, gaps, and reads of single values."""
    # A setting has an equals sign; a file may have one in its path.
    files = [Path(word) for word in settings or [] if "=" not in word or Path(word).is_file()]
    if files:
        _stored_traces(files, [word for word in settings or [] if Path(word) not in files], json)
        return
    from wildtype.experiments.settings.compose import compose

    config = compose(settings or [])
    if submitted(slurm, preset, prefix, dry_run):
        return
    from wildtype.experiments.profile import profile_python_lines, profile_trace

    if python_lines:
        lines = profile_python_lines(config)
        print_json(lines.to_json()) if json else console().print(lines.to_text())
        return
    from wildtype.profiling.trace import Window

    window = Window(wait, warm_up, active)
    report = profile_trace(config, window, target=Path(to), shapes=record_shapes, stacks=with_stack)
    print_json(report.to_json()) if json else console().print(report.to_text(), soft_wrap=True)


def _stored_traces(files: list[Path], others: list[str], json: bool) -> None:
    from wildtype.errors import ConfigError
    from wildtype.profiling.trace_files import analyse_file, compare_traces

    if others:
        raise ConfigError(
            f"{files[0]} is a stored trace, and {others[0]} a setting of a run to trace: give one of both"
        )
    if len(files) == 1:
        report = analyse_file(files[0])
        print_json(report.to_json()) if json else console().print(report.to_text(), soft_wrap=True)
        return
    first, *further = [analyse_file(path, top=None) for path in files]
    gaps = [compare_traces(first, other) for other in further]
    if json:
        print_json([gap.to_json() for gap in gaps])
        return
    for gap in gaps:
        console().print(gap.to_text(), soft_wrap=True)


@app.command()
def pipelines(
    settings: Settings = None,
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = ",".join(
        # A model without gradients has no training steps to time.
        name
        for name in MODELS
        if MODELS[name].gradients
    ),
    batches: Annotated[int, typer.Option(help="Timed steps of each model.")] = 20,
    seconds: Annotated[float, typer.Option(help="Time limit of each pipeline.")] = 1.0,
    reference: Annotated[bool, typer.Option(help="Also time the torch_geometric reference.")] = True,
    train_steps: Annotated[
        int, typer.Option(help="Steps to train the difference GNN on each representation; 0: none.")
    ] = 20,
    train_reference: Annotated[
        bool, typer.Option("--train-reference", help="Also train its torch_geometric reference.")
    ] = False,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Compare five representations of a dataset's mutants: speed, memory, and accuracy of what they train."""
    from wildtype.experiments.settings.compose import compose

    configs = [compose([*(settings or []), f"model={name}"]) for name in models.split(",")]
    if submitted(slurm, preset, prefix, dry_run):
        return
    from wildtype.experiments.profile import profile_pipelines

    report = profile_pipelines(
        configs[0],
        configs[1:],
        batches=batches,
        seconds=seconds,
        reference=reference,
        train_steps=train_steps,
        train_reference=train_reference,
    )
    if json:
        print_json(report)
        return
    from wildtype.report.profile_tables import pipeline_tables, rows_table

    console().print(*pipeline_tables(report["rows"]), rows_table(report["models"]))
    if report["accuracy"]:
        console().print(rows_table(report["accuracy"]))


@app.command()
def masks(
    settings: Settings = None,
    steps: Annotated[int, typer.Option(help="Training steps of each.")] = 10,
    layouts: Annotated[
        str, typer.Option(help="Layouts of stored masks, separated by commas.")
    ] = "bits,uint8",
    folder: Annotated[str, typer.Option("--folder", help="Keep the stored masks here.")] = "",
    json: Json = False,
) -> None:
    """Train a model's reference from edge masks made per batch and from stored ones; compare losses."""
    from wildtype.errors import WildtypeError
    from wildtype.experiments.mask_training import train_from_masks
    from wildtype.experiments.settings.compose import compose

    report = train_from_masks(
        compose(settings or []),
        steps=steps,
        layouts=[name.strip() for name in layouts.split(",")],
        folder=Path(folder) if folder else None,
        log=notes().print,
    )
    if json:
        print_json(report)
    else:
        from wildtype.report.profile_tables import rows_table

        console().print(rows_table(report["rows"]))
        same = "are the same to the last bit" if report["equal"] else "differ"
        console().print(f"losses from masks made per batch and from stored ones {same}", highlight=False)
    if not report["equal"]:
        raise WildtypeError("stored masks train to other losses: write them again, and report this")


@app.command()
def scaling(
    settings: Settings = None,
    genes: Annotated[int, typer.Option(help="Genes of the random organism.")] = 1000,
    relations: Annotated[int, typer.Option(help="Gene graphs of the random organism.")] = 4,
    edges: Annotated[int, typer.Option(help="Edges of all gene graphs together.")] = 40_000,
    batch_size: Annotated[int, typer.Option(help="Mutants per batch.")] = 64,
    perturbed: Annotated[int, typer.Option(help="Perturbed genes per mutant.")] = 3,
    measured: Annotated[
        int,
        typer.Option(help="Instead of a step, measure evidence of so many mutants: its index and lookups."),
    ] = 0,
    axes: Annotated[str, typer.Option(help="Sizes to vary, separated by commas; by default each.")] = "",
    factors: Annotated[str, typer.Option(help="Multiples of each size, separated by commas.")] = "1,2,4,8",
    repeats: Annotated[int, typer.Option(help="Timings of each size; the fastest counts.")] = 3,
    memory: Annotated[bool, typer.Option(help="Also measure peak memory.")] = False,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Measure a training step on random organisms against mutants, genes, edges and perturbed genes.

    With --measured, the cost of evidence against measured mutants, genes and perturbed genes.
    """
    from wildtype.experiments.settings.compose import compose

    config = compose(settings or [])
    if submitted(slurm, preset, prefix, dry_run):
        return
    from wildtype.errors import ConfigError

    try:
        multiples = tuple(float(factor) for factor in factors.split(","))
        if not all(0 < factor < float("inf") for factor in multiples):
            raise ValueError
    except ValueError:
        raise ConfigError(f"--factors={factors!r}: give positive numbers, as in 1,2,4") from None
    chosen = tuple(filter(None, axes.split(",")))
    if measured:
        from wildtype.profiling.evidence_scaling import EvidenceProblemSizes, evidence_scaling

        reports = evidence_scaling(
            EvidenceProblemSizes(genes, relations, edges, measured, batch_size, perturbed),
            axes=chosen,
            factors=multiples,
            repeats=repeats,
            seed=config.seed,
            memory=memory,
        )
    else:
        from wildtype.profiling.scaling import scaling as step_scaling
        from wildtype.profiling.synthetic_problem import ProblemSizes, training_steps

        report = step_scaling(
            config.model,
            ProblemSizes(genes, relations, edges, batch_size, perturbed),
            axes=chosen,
            factors=multiples,
            repeats=repeats,
            measure=training_steps(config.model, seed=config.seed, memory=memory),
        )
        reports = [report]
    if json:
        print_json({report.model: report.to_json() for report in reports} if measured else report.to_json())
        return
    from wildtype.report.profile_tables import rows_table

    for report in reports:
        if measured:
            console().print(report.model)
        console().print(rows_table(report.rows()))
        console().print(rows_table(report.fits()))


@app.command()
def estimate(
    settings: Settings = None,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Estimate seconds per epoch, memory and disk from 20 steps; an error if the run does not fit."""
    from wildtype.experiments.settings.compose import compose

    config = compose(settings or [])
    if submitted(slurm, preset, prefix, dry_run):
        return
    from wildtype.experiments.estimate import estimate_run, refuse

    found = estimate_run(config)
    if json:
        print_json(found.to_json())
    else:
        from wildtype.report.profile_tables import estimate_table

        console().print(estimate_table(found))
    # After the table: the user sees by how much the run does not fit.
    refuse(found)


def show_record(record: dict[str, Any], json: bool) -> None:
    """Print a profile as text, or as JSON."""
    if json:
        print_json(record)
        return
    from wildtype.report.profile_text import print_record

    print_record(record, console())


def _page(target: str, records: list[dict[str, Any]]) -> None:
    if target:
        from wildtype.files import write_text
        from wildtype.report.profile_page import profile_page

        write_text(target, profile_page(records))
        notes().print(f"page: {target}", soft_wrap=True)
