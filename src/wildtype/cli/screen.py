"""`wildtype screen`: the best of all mutants of a design."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.evidence import Evidence, EvidenceMapping, with_evidence
from wildtype.cli.output import Json, Plugins, check_format, give_frame, notes, print_json
from wildtype.cli.shards import Merge, ShardNumber, Shards, check_beside_merge, chosen_shard, report_array
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted
from wildtype.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.inference.predictor import Predictor

WITH_MERGE = ("run", "merge", "evidence", "evidence_mapping", "output", "plugin", "json")
"""Parameters of a merge; all others are stored with the shards."""


def command(
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Argument(help="Run or checkpoint directory; with --merge, that of the shards.")
    ] = None,
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
    condition: Annotated[
        str | None, typer.Option(help="One of the dataset's conditions; the reference by default.")
    ] = None,
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
    unmeasured: Annotated[bool, typer.Option(help="Leave out mutants measured in the condition.")] = False,
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
    rank: Annotated[
        str,
        typer.Option(
            help="prediction, or interaction: of a fitness, minus the product of that of the single mutants."
        ),
    ] = "prediction",
    choose: Annotated[
        str,
        typer.Option(
            help="best; or, among 50 times as many, diverse: of many genes, or explore: with intervals that "
            "allow most."
        ),
    ] = "best",
    evidence: Evidence = None,
    evidence_mapping: EvidenceMapping = None,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda for a large screen by a model that reads no evidence.")
    ] = "cpu",
    processes: Annotated[int, typer.Option(help="Number of processes; the result is the same.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file; resumable."),
    ] = None,
    shards: Shards = None,
    shard: ShardNumber = None,
    merge: Merge = None,
    plugin: Plugins = None,
    json: Json = False,
    slurm: Slurm = False,
    preset: PresetFile = "",
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Predict every mutant of a design, and print those with the lowest and highest predictions.

    With -o, intermediate results are kept beside the file: after an interruption, the same command continues.
    Shards are kept in the directory FILE.shards; with --slurm, they are the tasks of a job array.
    """
    from wildtype.cli.progress import ScreenProgress
    from wildtype.inference.screening.screen import ScreenRequest, make_screen, named_members, screen_mutants
    from wildtype.inference.screening.shards import screen_shard
    from wildtype.inference.sets import named_genes, parse_set
    from wildtype.inference.shards import folder_of

    # A wrong suffix is an error now, and not after hours of screening.
    if output is not None:
        check_format(output)
    if merge is not None:
        _merge(context, merge, run, evidence, evidence_mapping, output, json)
        return
    if run is None:
        raise ConfigError("name the run or checkpoint directory whose model screens, or shards with --merge")
    chosen = chosen_shard(shards, shard, slurm or dry_run, output)
    predictor = _loaded(run, evidence, evidence_mapping)
    core, candidates = predictor.core, None
    if among:
        candidates = named_members(core, among, "candidate", condition=condition, empty=True)
    request = ScreenRequest(
        order=order,
        among=None if candidates is None else [name for names in candidates for name in names],
        queries=named_members(core, queries, "query", condition=condition) if queries else None,
        top=top,
        direction=direction,
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
        rank=rank,
        choose=choose,
        device=device,
    )
    if slurm or dry_run:
        # The request is checked before anything is submitted: a mistake must not wait in a queue.
        screen, _ = make_screen(predictor.core, request)
        submitted(slurm, preset, prefix, dry_run, tasks=shards or 0)
        if shards and output is not None:
            what = f"the design has {screen.pieces:,} pieces"
            report_array("screen", shards, output, screen.pieces, what)
        return
    if chosen is not None and output is not None:
        origin = {"run": str(run.absolute())}
        origin |= {"evidence": str(evidence.absolute())} if evidence else {}
        origin |= {"evidence_mapping": str(evidence_mapping.absolute())} if evidence_mapping else {}
        folder = folder_of(output)
        with ScreenProgress(notes(), f"shard {chosen.number} of {chosen.of}") as report_progress:
            found = screen_shard(
                predictor.core,
                request,
                chosen,
                folder,
                origin=origin,
                processes=processes,
                report_progress=report_progress,
            )
        _report_counts(found.asked, found.left_out)
        if json:
            print_json(
                {
                    "shard": chosen.number,
                    "shards": chosen.of,
                    "asked": found.asked,
                    "left_out": found.left_out,
                    "directory": str(folder),
                }
            )
        return
    # Beside the output and named after it, so that the same command finds it, and other screens do not.
    state = None if output is None else output.with_name(f".{output.name}.screen")
    with ScreenProgress(notes()) as report_progress:
        frame = screen_mutants(
            predictor.core, request, processes=processes, state=state, report_progress=report_progress
        )
    _give(frame, output, json)
    # Only now is the result safe on disk: removing the state earlier could lose a finished screen.
    if state is not None:
        state.unlink(missing_ok=True)


def _merge(
    context: typer.Context,
    folder: Path,
    run: Path | None,
    evidence: Path | None,
    evidence_mapping: Path | None,
    output: Path | None,
    json: bool,
) -> None:
    """Print or write the table of all shards in a directory."""
    from wildtype.inference.screening.shards import merge_shards, stored_shards

    check_beside_merge(context, WITH_MERGE)
    shards = stored_shards(folder)

    def recorded(name: str) -> Path | None:
        return Path(shards.origin[name]) if name in shards.origin else None

    if evidence is None:
        evidence, evidence_mapping = recorded("evidence"), evidence_mapping or recorded("evidence_mapping")
    predictor = _loaded(run or Path(shards.origin["run"]), evidence, evidence_mapping)
    _give(merge_shards(predictor.core, shards), output, json)


def _loaded(run: Path, evidence: Path | None, evidence_mapping: Path | None) -> Predictor:
    from wildtype.inference.predictor import load

    predictor = with_evidence(load(run), evidence, evidence_mapping)
    for remark in predictor.remarks:
        notes().print(remark, soft_wrap=True)
    return predictor


def _report_counts(asked: int, left_out: Mapping[str, int]) -> None:
    text = "".join(f"; {count:,} left out: {reason}" for reason, count in left_out.items())
    notes().print(f"{asked:,} mutants predicted{text}", highlight=False, soft_wrap=True)


def _give(frame: pd.DataFrame, output: Path | None, json: bool) -> None:
    """Write or print the table of a screen, and what was left out of it."""
    _report_counts(frame.attrs["asked"], frame.attrs["left_out"])
    if unchecked := frame.attrs["unchecked"]:
        notes().print(f"not left out, since the model does not know them: {', '.join(unchecked)}")
    for phenotype_name, hits in frame.attrs["expected_hits"].items():
        listed = int(((frame["phenotype"] == phenotype_name) & (frame["direction"] == "high")).sum())
        notes().print(f"expected hits among the top {listed:,} of {phenotype_name}: {hits:.1f}")
    for short in frame.attrs["short"]:
        notes().print(f"a list is short: {short}; raise --max-per-gene or lower --top", soft_wrap=True)
    give_frame(frame, output, json)
