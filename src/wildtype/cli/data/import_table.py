"""`wildtype data import`: a user's table, checked and summarised before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.sources.user_tables.grid import TableProblems


def import_(
    table: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or spreadsheet, one measurement per row.")],
    organism: Annotated[str, typer.Option("--organism", help="Organism of the genes, as in yeast.")],
    name: Annotated[str, typer.Option(help="Name of the data; made from the file's name if not given.")] = "",
    genes: Annotated[str, typer.Option("--genes-column", help="Column of genes.")] = "genes",
    value: Annotated[str, typer.Option("--value-column", help="Column of values.")] = "value",
    kind: Annotated[str, typer.Option("--kind-column", help="Column of kinds of perturbation.")] = "kind",
    dose: Annotated[str, typer.Option("--dose-column", help="Column of doses.")] = "dose",
    condition: Annotated[str, typer.Option("--condition-column", help="Column of conditions.")] = "condition",
    phenotypes: Annotated[
        str, typer.Option("--phenotype-column", help="Column of phenotypes.")
    ] = "phenotype",
    sd: Annotated[str, typer.Option("--sd-column", help="Column of standard deviations.")] = "sd",
    replicate: Annotated[str, typer.Option("--replicate-column", help="Column of replicates.")] = "replicate",
    separator: Annotated[
        str, typer.Option(help="Between columns of a text file, as in ';'; detected if not given.")
    ] = "",
    gene_separator: Annotated[
        str, typer.Option(help="Between genes of a cell; the first of ; + | , or blanks if not given.")
    ] = "",
    sheet: Annotated[str, typer.Option(help="Sheet of a workbook; the first if not given.")] = "",
    phenotype: Annotated[
        str,
        typer.Option(help="Measured phenotype if there is no such column: fitness, epsilon, tau or a name."),
    ] = "",
    unit: Annotated[str, typer.Option(help="Unit of a phenotype of your own.")] = "",
    listed_below: Annotated[
        float | None, typer.Option(help="The table lists negative values at or below this only.")
    ] = None,
    listed_above: Annotated[
        float | None, typer.Option(help="The table lists positive values at or above this only.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace imported data of the same name.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Import without confirmation.")] = False,
    json: Json = False,
) -> None:
    """Import a table of your measurements as a dataset, if no row has a problem."""
    from wildtype.errors import DatasetError, SourceError
    from wildtype.mutants.selection import Selection
    from wildtype.sources.catalogue import load_organism
    from wildtype.sources.user_tables.grid import TableProblems
    from wildtype.sources.user_tables.register import check_name, register, selected_phenotypes
    from wildtype.sources.user_tables.summary import summarise
    from wildtype.sources.user_tables.table import read_table, study_name
    from wildtype.sources.user_tables.vocabulary import Columns

    check_name(study_name(table, name), replace=replace)
    wild_type = load_organism(organism)
    columns = Columns(genes, value, kind, dose, condition, phenotypes, sd, replicate)
    readings: list[Any] = []
    try:
        measurements = read_table(
            table,
            wild_type,
            columns,
            name=name,
            phenotype=phenotype,
            unit=unit,
            separator=separator,
            gene_separator=gene_separator,
            sheet=sheet,
            collect=readings.append,
        )
    except TableProblems as error:
        _print_problems(error, json)
        raise SourceError(error.headline) from error
    selection = None
    if listed_below is not None or listed_above is not None:
        selection = Selection(listed_below, listed_above)
    selected = selected_phenotypes(measurements, selection)
    summary = summarise(measurements, wild_type, readings[0], selected)
    if not json:
        _print_summary(summary)
    if not yes and not _agreed():
        if json:
            print_json(summary)
        raise DatasetError("nothing was imported: repeat the command with --yes to import it")
    dataset = register(measurements, readings[0], wild_type, replace=replace, selection=selection)
    if json:
        print_json(summary | {"dataset": dataset.card()})
        return
    notes().print(
        f"imported: dataset {dataset.name}, {len(dataset):,} rows; see `wildtype data show {dataset.name}`",
        markup=False,
        soft_wrap=True,
    )


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    return typer.confirm("Import this?", err=True)


def _print_problems(error: TableProblems, json: bool) -> None:
    if json:
        print_json({"rows": error.rows, "problems": [problem.to_json() for problem in error.problems]})
        return
    for line in error.lines():
        notes().print(line, markup=False, soft_wrap=True)


def _print_summary(summary: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    def counts(numbers: dict[str, int], shown: int = 8) -> str:
        first = list(numbers.items())[:shown]
        more = f" and {len(numbers) - shown:,} more" if len(numbers) > shown else ""
        return ", ".join(f"{name}: {count:,}" for name, count in first) + more

    rows = {
        "name": summary["name"],
        "organism": summary["organism"],
        "rows": f"{summary['rows']:,} of {summary['mutants']:,} mutants, {summary['genes']:,} genes",
        "genes per mutant": counts(summary["rows_by_order"]),
        "kinds": counts(summary["perturbations_by_kind"]),
        "conditions": counts(summary["rows_by_condition"]),
        "replicates": counts(summary["rows_by_replicate"]),
        "rows measured again": f"{summary['measured_again']:,}",
    }
    for one in summary["phenotypes"]:
        rows[f"phenotype {one['name']}"] = (
            f"{one['rows']:,} rows from {one['lowest']:g} to {one['highest']:g} ({one['unit']}), "
            f"{one['with_sd']:,} with sd"
        )
    if summary["foreign_genes"]:
        rows["foreign genes"] = ", ".join(summary["foreign_genes"])
    table = Table(show_header=False)
    for key, text in rows.items():
        table.add_row(Text(key), Text(text))
    for remark in summary["remarks"]:
        table.add_row(Text("remark"), Text(remark))
    console().print(table)
