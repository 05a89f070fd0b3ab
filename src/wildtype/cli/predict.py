"""`wildtype predict`: phenotypes of named gene sets, from arguments, a file or standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.evidence import Evidence, EvidenceMapping, with_evidence
from wildtype.cli.output import Json, Plugins, check_format, give_frame, notes
from wildtype.cli.requested import SetFile, Sets, requested_rows

if TYPE_CHECKING:
    import pandas as pd


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint directory.")],
    sets: Sets = None,
    file: SetFile = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file.")
    ] = None,
    as_: Annotated[
        str, typer.Option("--as", help="phenotype, or fitness to add the expected fitness.")
    ] = "phenotype",
    condition: Annotated[str | None, typer.Option(help="One of the dataset's conditions.")] = None,
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
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Predict phenotypes of mutants by gene name, with columns on the reliability of each prediction."""
    from wildtype.errors import GeneSetError

    # Everything that can be wrong with the request is checked before the model is loaded, which takes
    # seconds.
    if output is not None:
        check_format(output)
    requested = requested_rows(sets, file)
    # The head of a file: what is wrong with it as a file is an error now.
    if next(requested.blocks(1), None) is None:
        raise GeneSetError("there is nothing to predict: name genes with --set A,B or give --file")
    from wildtype.inference.prediction_file import predict_file
    from wildtype.inference.predictor import load

    predictor = load(run)
    if on is not None:
        from wildtype.sources.catalogue import load_organism

        predictor = predictor.on(load_organism(on))
    predictor = with_evidence(predictor, evidence, evidence_mapping)
    for remark in predictor.remarks:
        notes().print(remark, soft_wrap=True)

    def predicted(block: pd.DataFrame) -> pd.DataFrame:
        if genes:
            return predictor.predict_profiles(block, genes, condition=condition)
        return predictor.predict(block, as_=as_, condition=condition, interval=interval)  # type: ignore[arg-type]

    if output is not None:
        predict_file(predictor.core, requested, predicted, output, profiles=bool(genes))
    else:
        give_frame(predicted(requested.all()), None, json)
