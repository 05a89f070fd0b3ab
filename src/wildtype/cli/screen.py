"""`wildtype screen`: the best of all mutants of a design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, check_format, give_frame, notes


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint folder.")],
    order: Annotated[
        int | None, typer.Option(help="Genes per mutant: all sets of so many candidates; 2 if not said.")
    ] = None,
    among: Annotated[
        str, typer.Option(help="Candidates, as SGS1,SRS2:reduced, or a file of them (CSV, Parquet or text).")
    ] = "",
    queries: Annotated[
        str, typer.Option(help="Cross these sets with every candidate: a file as for predict, or one set.")
    ] = "",
    top: Annotated[int, typer.Option(help="Mutants to print, for each phenotype and direction.")] = 100,
    direction: Annotated[str, typer.Option(help="low, high or both.")] = "both",
    phenotype: Annotated[
        list[str] | None, typer.Option(help="Rank by this phenotype; by default by every one.")
    ] = None,
    condition: Annotated[str | None, typer.Option(help="One of the dataset's conditions.")] = None,
    interval: Annotated[float | None, typer.Option(help="Add intervals of this coverage, as in 0.9.")] = None,
    exclude: Annotated[str, typer.Option(help="Genes that are no candidates: names or a file.")] = "",
    viable: Annotated[bool, typer.Option(help="Leave out essential genes.")] = False,
    require: Annotated[
        str, typer.Option(help="At least one gene of a mutant is among these: names, a file, or metabolic.")
    ] = "",
    unmeasured: Annotated[bool, typer.Option(help="Leave out gene sets that were measured.")] = False,
    no_lethal: Annotated[
        bool, typer.Option("--no-lethal", help="Leave out mutants that hold a pair known to be lethal.")
    ] = False,
    linked: Annotated[
        float, typer.Option(help="Leave out mutants with two genes within so many kb on one chromosome.")
    ] = 0.0,
    at_most: Annotated[
        int | None, typer.Option(help="No candidate in more rows of a list than this.")
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Own measurements to look up, too, as for predict.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Beside each other; the answer is the same.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file; resumable."),
    ] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Predict every mutant of a design, and print those with the lowest and highest predictions.

    With -o, what was found is kept beside the file until it is written: the same command goes on from there.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from wildtype.inference.own_evidence import read_evidence
    from wildtype.inference.predictor import load
    from wildtype.inference.sets import named_genes, named_sets

    if output is not None:
        check_format(output)
    predictor = load(run)
    if evidence is not None:
        predictor = predictor.with_evidence(read_evidence(evidence))
    state = None if output is None else output.with_name(f".{output.name}.screen")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes(), transient=True) as bar:
        task = bar.add_task("mutants", total=None)

        def report_progress(done: int, count: int) -> None:
            if not done:
                bar.console.print(f"{count:,} mutants in the design", highlight=False)
            bar.update(task, completed=done, total=count)

        frame = predictor.screen(
            order,
            named_genes(among) if among else None,
            queries=named_sets(queries) if queries else None,
            top=top,
            direction=direction,  # type: ignore[arg-type]
            phenotypes=phenotype,
            condition=condition,
            interval=interval,
            exclude=named_genes(exclude) if exclude else (),
            viable=viable,
            require=named_genes(require) if require else (),
            unmeasured=unmeasured,
            no_lethal=no_lethal,
            linked=linked,
            at_most=at_most,
            processes=processes,
            state=state,
            report_progress=report_progress,
        )
    left_out = "".join(f"; {count:,} left out: {reason}" for reason, count in frame.attrs["left_out"].items())
    notes().print(f"{frame.attrs['asked']:,} mutants predicted{left_out}", highlight=False, soft_wrap=True)
    for short in frame.attrs["short"]:
        notes().print(f"too few mutants were kept for a list: {short}; allow more per gene", soft_wrap=True)
    give_frame(frame, output, json)
    if state is not None:
        state.unlink(missing_ok=True)
