"""`wildtype screen`: the best of all mutants of a design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.evidence import Evidence, EvidenceMapping, with_evidence
from wildtype.cli.output import Json, Plugins, check_format, give_frame, notes


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint directory.")],
    order: Annotated[
        int | None, typer.Option(help="Genes per mutant: all sets of so many candidates; 2 by default.")
    ] = None,
    among: Annotated[
        str, typer.Option(help="Candidates, such as SGS1,SRS2:reduced, or a file (CSV, Parquet or text).")
    ] = "",
    queries: Annotated[
        str, typer.Option(help="Sets to cross with every candidate: a file as for predict, or one set.")
    ] = "",
    top: Annotated[int, typer.Option(help="Mutants to print for each phenotype and direction.")] = 100,
    direction: Annotated[str, typer.Option(help="low, high or both.")] = "both",
    phenotype: Annotated[
        list[str] | None, typer.Option(help="Rank by this phenotype; by default by each in turn.")
    ] = None,
    condition: Annotated[str | None, typer.Option(help="One of the dataset's conditions.")] = None,
    interval: Annotated[
        float | None, typer.Option(help="Add intervals of this coverage, such as 0.9.")
    ] = None,
    exclude: Annotated[str, typer.Option(help="Genes that are no candidates: names or a file.")] = "",
    exclude_essential: Annotated[
        bool, typer.Option(help="Leave out essential genes in every form, knock-downs too.")
    ] = False,
    require: Annotated[
        str, typer.Option(help="Each mutant has at least one of these genes: names, a file, or metabolic.")
    ] = "",
    unmeasured: Annotated[bool, typer.Option(help="Leave out gene sets with a measurement.")] = False,
    exclude_synthetic_lethal: Annotated[
        bool,
        typer.Option("--exclude-synthetic-lethal", help="Leave out mutants with a synthetic lethal pair."),
    ] = False,
    include: Annotated[
        str,
        typer.Option(
            help="Keep what is left out by default: any of lethal,linked,overlapping,dubious, with commas."
        ),
    ] = "",
    min_linkage_kb: Annotated[
        float | None,
        typer.Option(help="Genes closer than this on one chromosome are linked; 200 kb by default."),
    ] = None,
    max_per_gene: Annotated[
        int | None, typer.Option(help="Most rows of a list that a candidate may be in.")
    ] = None,
    evidence: Evidence = None,
    evidence_mapping: EvidenceMapping = None,
    processes: Annotated[int, typer.Option(help="Number of processes; the result is the same.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file; resumable."),
    ] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Predict every mutant of a design, and print those with the lowest and highest predictions.

    With -o, intermediate results are kept beside the file: after an interruption, the same command continues.
    """
    from wildtype.cli.progress import ScreenProgress
    from wildtype.inference.predictor import load
    from wildtype.inference.sets import named_genes, named_sets, parse_set

    # A wrong suffix is an error now, and not after hours of screening.
    if output is not None:
        check_format(output)
    predictor = load(run)
    predictor = with_evidence(predictor, evidence, evidence_mapping)
    for remark in predictor.remarks:
        notes().print(remark, soft_wrap=True)
    # Beside the output and named after it, so that the same command finds it, and other screens do not.
    state = None if output is None else output.with_name(f".{output.name}.screen")
    with ScreenProgress(notes()) as report_progress:
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
            exclude_essential=exclude_essential,
            require=named_genes(require) if require else (),
            unmeasured=unmeasured,
            exclude_synthetic_lethal=exclude_synthetic_lethal,
            include=parse_set(include),
            min_linkage_kb=min_linkage_kb,
            max_per_gene=max_per_gene,
            processes=processes,
            state=state,
            report_progress=report_progress,
        )
    left_out = "".join(f"; {count:,} left out: {reason}" for reason, count in frame.attrs["left_out"].items())
    notes().print(f"{frame.attrs['asked']:,} mutants predicted{left_out}", highlight=False, soft_wrap=True)
    if unchecked := frame.attrs["unchecked"]:
        notes().print(f"not left out, since the model does not know them: {', '.join(unchecked)}")
    for phenotype_name, hits in frame.attrs["expected_hits"].items():
        listed = int(((frame["phenotype"] == phenotype_name) & (frame["direction"] == "high")).sum())
        notes().print(f"expected hits among the top {listed:,} of {phenotype_name}: {hits:.1f}")
    for short in frame.attrs["short"]:
        notes().print(f"a list is short: {short}; raise --max-per-gene or lower --top", soft_wrap=True)
    give_frame(frame, output, json)
    # Only now is the result safe on disk: removing the state earlier could lose a finished screen.
    if state is not None:
        state.unlink(missing_ok=True)
