"""`wildtype data split`: make a split, report what its sides share, and pin it for other builds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.datasets import Split
    from wildtype.datasets.leakage import LeakageReport


def split(
    name: Annotated[str, typer.Argument(help="A dataset.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--split",
            help="random (R, default), one-unseen (Q), unseen (G), any-unseen, query-pair, screen or order.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    phenotype: Annotated[
        list[str] | None,
        typer.Option(help="Phenotypes whose rows are split; the targets of the dataset if not given."),
    ] = None,
    validation: Annotated[float | None, typer.Option(help="Fraction for validation.")] = None,
    test: Annotated[float | None, typer.Option(help="Fraction for test.")] = None,
    folds: Annotated[int | None, typer.Option(help="Number of folds of a cross-validation.")] = None,
    fold: Annotated[int | None, typer.Option(help="Make this fold only, from 0.")] = None,
    order: Annotated[int | None, typer.Option(help="Tested order (split order).")] = None,
    up_to: Annotated[
        int | None, typer.Option(help="Highest training order; --order and above are for test (split order).")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Unit of a screen: query, condition or study (split screen).")
    ] = None,
    genes: Annotated[
        int | None, typer.Option(help="Genes held out for test (one-unseen, unseen, any-unseen).")
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(
            help="Hold out genes of query strains only (query), or of none (array) (the same three)."
        ),
    ] = None,
    pinned: Annotated[
        Path | None, typer.Option(help="Take the sides from a pinned file instead of drawing.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Pin the split by genotype, .json or .parquet; folds are numbered."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Split a dataset and print what the sides share; the exit code is 1 if the split breaks its own rule."""
    from rich.text import Text

    from wildtype.datasets.folds import make_folds
    from wildtype.datasets.leakage import leakage_report
    from wildtype.datasets.pinned import read_pinned, write_pinned
    from wildtype.datasets.splits import make_split
    from wildtype.errors import ConfigError
    from wildtype.sources.catalogue import load_dataset

    options: dict[str, Any] = {
        key: value
        for key, value in (
            ("validation", validation),
            ("order", order),
            ("up_to", up_to),
            ("by", by),
            ("test", test),
            ("genes", genes),
            ("among", among),
        )
        if value is not None
    }
    if pinned is not None and (kind or folds or fold is not None or options):
        raise ConfigError(f"--pinned {pinned} says how to split: leave out the options of a random split")
    dataset = load_dataset(name)
    if phenotype or dataset.targets:
        dataset = dataset.select(phenotype or list(dataset.targets))
    reused = None if pinned is None else read_pinned(pinned, dataset)
    if reused is not None:
        splits: tuple[Split, ...] = (reused.split,)
    elif folds is not None and fold is None:
        splits = make_folds(dataset, kind or "random", folds, seed, **options)
    else:
        splits = (make_split(dataset, kind or "random", seed, fold=fold, folds=folds, **options),)
    reports = [leakage_report(one, dataset) for one in splits]
    broken = any(report.broken for report in reports)
    # A split that breaks its rule is never written: others would trust the file.
    paths = [] if output is None or broken else [output]
    if output is not None and paths and len(splits) > 1:
        paths = [output.with_name(f"{output.stem}-fold{i}{output.suffix}") for i in range(len(splits))]
    for one, path in zip(splits, paths, strict=False):
        write_pinned(one, dataset, path)
    if json:
        print_json(
            {
                "phenotypes": [p.name for p in dataset.phenotypes],
                "splits": [report.to_json() for report in reports],
                "files": [str(path) for path in paths],
                "reused": None if reused is None else {"unknown": reused.unknown, "missing": reused.missing},
            }
        )
    else:
        _print(reports, splits)
        if reused is not None:
            console().print(Text(str(reused)))
        for path in paths:
            notes().print(Text(f"written: {path}"))
    if broken:
        raise typer.Exit(1)


def _print(reports: Sequence[LeakageReport], splits: Sequence[Split]) -> None:
    from rich.table import Table
    from rich.text import Text

    from wildtype.datasets.folds import times_tested

    out = console()
    table = Table("split", "seed", "fold", "train", "validation", "test", "dropped")
    for report in reports:
        fold, folds = (report.options.get(name) for name in ("fold", "folds"))
        counts = [*report.rows.values(), sum(report.dropped.values())]
        where = "" if folds is None else f"{fold} of {folds}"
        table.add_row(report.split, str(report.seed), where, *(f"{count:,}" for count in counts))
    out.print(table)
    for report in reports:
        for line in report.lines(features=report is reports[-1]):
            out.print(Text(line))
    if len(splits) > 1:
        times = times_tested(splits)
        never, once = int((times == 0).sum()), int((times == 1).sum())
        more = len(times) - never - once
        out.print(Text(f"rows tested once: {once:,}, never: {never:,}, more often: {more:,}"))
