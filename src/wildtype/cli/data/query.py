"""`wildtype data query`: SQL over all measurements of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.datasets.store.limits import Limits

SHOWN = 40
"""Rows printed by default."""
StoreFile = Annotated[
    Path | None, typer.Option("--store", help="Store file; store.duckdb in the cache if not given.")
]


def query(
    sql: Annotated[
        str, typer.Argument(help="A SELECT, as in: SELECT phenotype, count(*) FROM measurements GROUP BY 1")
    ],
    store: StoreFile = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all rows to this .csv or .parquet file.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help=f"Rows to print; 0: all. Default: {SHOWN}, or all with --json.")
    ] = None,
    dataset: Annotated[
        str, typer.Option(help="Name of a dataset to make of the measurements whose id the SQL returns.")
    ] = "",
    organism: Annotated[str, typer.Option(help="With --dataset: the wild type.")] = "yeast",
    policy: Annotated[
        list[str] | None,
        typer.Option(help="With --dataset, as in alleles=apart or neutral=YDL227C; may be repeated."),
    ] = None,
    memory: Annotated[int, typer.Option(min=50, help="Memory the query may use, MiB.")] = 1_500,
    scratch: Annotated[
        int, typer.Option(min=1, help="Scratch files beside the store that it may use, MiB.")
    ] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time it may take, s.")] = 600.0,
    json: Json = False,
) -> None:
    """Run one read-only SQL query on the view measurements (DESCRIBE measurements lists its columns)."""
    from wildtype.datasets.store.limits import Limits

    limits = Limits(memory, scratch, seconds)
    if dataset:
        _make_dataset(dataset, sql, store, limits, organism, policy or [], json)
        return
    from wildtype.datasets.store import Store, store_path
    from wildtype.datasets.store.results import check_output, first_rows, write_result

    if output is not None:
        check_output(output)
    shown = (None if json else SHOWN) if limit is None else limit or None
    with (
        Store.open(store or store_path(), read_only=True, limits=limits) as opened,
        opened.query(sql) as batches,
    ):
        names = batches.schema.names
        if output is not None:
            total = write_result(batches, output)
            notes().print(f"{total:,} rows written to {output}", soft_wrap=True)
            return
        rows, total = first_rows(batches, shown)
    if json:
        print_json({"rows_total": total, "rows_shown": len(rows), "rows": rows})
    else:
        _print(names, rows)
    if len(rows) < total:
        notes().print(f"{len(rows):,} of {total:,} rows shown: --limit 0 shows all, -o FILE writes them")
    else:
        notes().print(f"{total:,} rows")


def _make_dataset(
    name: str, sql: str, store: Path | None, limits: Limits, organism: str, settings: list[str], json: bool
) -> None:
    from wildtype.datasets.stages.policies import Policies
    from wildtype.datasets.store import Store, store_path
    from wildtype.errors import ConfigError
    from wildtype.report.data_tables import print_card
    from wildtype.sources.catalogue import load_organism
    from wildtype.sources.queried import dataset_from_query

    for setting in settings:
        if "=" not in setting:
            raise ConfigError(f"{setting!r} is not a policy: write name=setting, as in alleles=apart")
    policies = Policies.parse(dict(setting.split("=", 1) for setting in settings))
    with Store.open(store or store_path(), read_only=True, limits=limits) as opened:
        made, known = dataset_from_query(name, sql, opened, load_organism(organism), policies)
    if json:
        print_json({"from_cache": known} | made.card())
        return
    print_card(made.card(), console())
    notes().print("read back from the cache" if known else "built")


def _print(names: list[str], rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table()
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in names))
    out = console()
    # Into a file or pipe: no wrapping at 80 columns, so that other programs can read the lines.
    out.print(table, width=None if out.is_terminal else 10_000, crop=False)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_cell(item) for item in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)
