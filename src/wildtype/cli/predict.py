"""`wildtype predict`: phenotypes of named gene sets, from arguments, a file or standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.evidence import Evidence, EvidenceMapping, with_evidence
from wildtype.cli.output import Json, Plugins, check_format, give_frame, notes, print_json
from wildtype.cli.requested import SetFile, Sets, requested_rows
from wildtype.cli.shards import Merge, ShardNumber, Shards, check_beside_merge, chosen_shard, report_array
from wildtype.cli.slurm import DryRun, Prefix, PresetFile, Slurm, submitted
from wildtype.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.inference.predictor import Predictor

WITH_MERGE = ("merge", "output", "plugin", "json")
"""Parameters of a merge; all others are stored with the shards."""


def command(
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Argument(help="Run or checkpoint directory; none with --merge.")
    ] = None,
    sets: Sets = None,
    file: SetFile = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file.")
    ] = None,
    as_: Annotated[
        str, typer.Option("--as", help="phenotype, or fitness to add the expected fitness.")
    ] = "phenotype",
    condition: Annotated[
        str | None, typer.Option(help="One of the dataset's conditions; the reference by default.")
    ] = None,
    genes: Annotated[
        str, typer.Option("--genes", help="Predict this per-gene phenotype instead, one column per gene.")
    ] = "",
    interval: Annotated[
        float | None,
        typer.Option(help="Add prediction intervals of this coverage (as in 0.9) and the sd of an ensemble."),
    ] = None,
    on: Annotated[
        str | None, typer.Option(help="Predict for this organism instead of the training organism.")
    ] = None,
    evidence: Evidence = None,
    evidence_mapping: EvidenceMapping = None,
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
    """Predict phenotypes of mutants by gene name, with columns on the reliability of each prediction.

    Shards, ranges of the rows, are kept in the directory FILE.shards; with --slurm, they are the tasks of a
    job array.
    """
    from wildtype.errors import GeneSetError

    # Everything that can be wrong with the request is checked before the model is loaded, which takes
    # seconds.
    if output is not None:
        check_format(output)
    if merge is not None:
        check_beside_merge(context, WITH_MERGE)
        _merge(merge, output, json)
        return
    if run is None:
        raise ConfigError("name the run or checkpoint directory whose model predicts, or shards with --merge")
    chosen = chosen_shard(shards, shard, slurm or dry_run, output)
    if str(file) == "-" and (shards or slurm or dry_run):
        what = f"--shards {shards}" if shards else "--slurm"
        raise ConfigError(f"{what}: no other process reads this standard input; name a file with --file")
    requested = requested_rows(sets, file)
    # The head of a file: what is wrong with it as a file is an error now.
    if next(requested.blocks(1), None) is None:
        raise GeneSetError("there is nothing to predict: name genes with --set A,B or give --file")
    from wildtype.inference.prediction_file import checked, predict_file, rows_of_block
    from wildtype.inference.prediction_shards import PredictionRequest, model_hash, predict_shard, table_of

    table = table_of(file) if chosen is not None else {}
    predictor = _loaded(run, on, evidence, evidence_mapping)

    def predicted(block: pd.DataFrame) -> pd.DataFrame:
        if genes:
            return predictor.predict_profiles(block, genes, condition=condition)
        return predictor.predict(block, as_=as_, condition=condition, interval=interval)  # type: ignore[arg-type]

    if slurm or dry_run:
        # All rows and options are checked before anything is submitted: a mistake must not wait in a queue.
        block = rows_of_block(predictor.core, profiles=bool(genes))
        _, rows = checked(predictor.core, requested.blocks(block), condition)
        predicted(next(requested.blocks(1)))
        submitted(slurm, preset, prefix, dry_run, tasks=shards or 0)
        if shards and output is not None:
            blocks = -(-rows // block)
            report_array("predict", shards, output, blocks, f"{rows:,} rows are {blocks:,} blocks")
    elif chosen is not None and output is not None:
        from wildtype.inference.shards import folder_of

        files = {"run": run, "file": file, "evidence": evidence, "evidence_mapping": evidence_mapping}
        options: dict[str, Any] = {"as": as_, "condition": condition, "genes": genes, "interval": interval}
        request = PredictionRequest(
            options | {"on": on, "set": sets or []},
            table,
            model_hash(run, predictor.core),
            {name: str(path.absolute()) for name, path in files.items() if path is not None},
            predictor.remarks,
        )
        folder = folder_of(output)
        count = predict_shard(
            predictor.core, requested, predicted, chosen, folder, request, profiles=bool(genes)
        )
        notes().print(f"shard {chosen.number} of {chosen.of}: {count:,} mutants predicted", highlight=False)
        if json:
            found = {"shard": chosen.number, "shards": chosen.of, "rows": count, "directory": str(folder)}
            print_json(found)
    elif output is not None:
        predict_file(predictor.core, requested, predicted, output, profiles=bool(genes), condition=condition)
    else:
        give_frame(predicted(requested.all()), None, json)


def _loaded(run: Path, on: str | None, evidence: Path | None, evidence_mapping: Path | None) -> Predictor:
    from wildtype.inference.predictor import load

    predictor = load(run)
    if on is not None:
        from wildtype.sources.catalogue import load_organism

        predictor = predictor.on(load_organism(on))
    predictor = with_evidence(predictor, evidence, evidence_mapping)
    for remark in predictor.remarks:
        notes().print(remark, soft_wrap=True)
    return predictor


def _merge(folder: Path, output: Path | None, json: bool) -> None:
    """Print or write the table of all shards in a directory."""
    import pandas as pd

    from wildtype.inference.prediction_shards import merge_predictions, stored_predictions

    shards = stored_predictions(folder)
    for remark in shards.records[0].request.remarks:
        notes().print(remark, soft_wrap=True)
    if output is not None:
        merge_predictions(shards, output)
    else:
        give_frame(pd.concat([block for block, _ in shards.blocks()], ignore_index=True), None, json)
