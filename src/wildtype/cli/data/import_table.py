"""`wildtype data import`: a user's table, checked and summarised before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.sources.user_tables.layout import Layout
    from wildtype.sources.user_tables.problems import TableProblems


NAMES_SHOWN = 10
"""Names like those of controls that a question lists."""
REJECTS = "rejected.csv"
"""Table of the rows that were left out, in the folder of the dataset."""


def import_(
    table: Annotated[
        list[Path],
        typer.Argument(help="CSV, TSV, Parquet, spreadsheet or .h5ad; several are replicates of each other."),
    ],
    organism: Annotated[str, typer.Option("--organism", help="Organism of the genes, as in yeast.")],
    name: Annotated[str, typer.Option(help="Name of the data; made from the file's name if not given.")] = "",
    genes: Annotated[
        str, typer.Option("--genes-column", help="Columns of genes, as in geneA,geneB.")
    ] = "genes",
    value: Annotated[
        str,
        typer.Option(
            "--value-column",
            help="Column of values; several are replicates (a1,a2); of several phenotypes: 'a=a1,a2; b=b1'.",
        ),
    ] = "value",
    kind: Annotated[str, typer.Option("--kind-column", help="Column of kinds of perturbation.")] = "kind",
    dose: Annotated[str, typer.Option("--dose-column", help="Column of doses.")] = "dose",
    condition: Annotated[str, typer.Option("--condition-column", help="Column of conditions.")] = "condition",
    phenotypes: Annotated[
        str, typer.Option("--phenotype-column", help="Column of phenotypes.")
    ] = "phenotype",
    sd: Annotated[
        str, typer.Option("--sd-column", help="Column of standard deviations, or one for each of values.")
    ] = "sd",
    replicate: Annotated[str, typer.Option("--replicate-column", help="Column of replicates.")] = "replicate",
    growth: Annotated[
        str,
        typer.Option(
            "--from-growth",
            help="Make fitness, epsilon and tau from growth, by this expectation: multiplicative, minimum, "
            "additive-log, or additive (of logarithms).",
        ),
    ] = "",
    censored: Annotated[
        str, typer.Option("--censored-column", help="Column of flags, or of numbers with --censored-at.")
    ] = "censored",
    censored_at: Annotated[
        float | None, typer.Option(help="Values (or numbers of that column) at or below this are bounds.")
    ] = None,
    separator: Annotated[
        str, typer.Option(help="Between columns of a text file, as in ';'; detected if not given.")
    ] = "",
    gene_separator: Annotated[
        str, typer.Option(help="Between genes of a cell; the first of ; + | , or blanks if not given.")
    ] = "",
    sheet: Annotated[
        str, typer.Option(help="Sheet of a workbook, needed if several have cells; several are replicates.")
    ] = "",
    layer: Annotated[str, typer.Option(help="Layer of an .h5ad file; X if not given.")] = "",
    phenotype: Annotated[
        str,
        typer.Option(help="Measured phenotype if there is no such column: fitness, epsilon, tau or a name."),
    ] = "",
    unit: Annotated[str, typer.Option(help="Unit of a phenotype of your own.")] = "",
    fewest_genes: Annotated[
        int, typer.Option(min=1, help="Fewest genes that your own phenotype is about: 2 for interactions.")
    ] = 1,
    listed_below: Annotated[
        float | None, typer.Option(help="The table lists negative values at or below this only.")
    ] = None,
    listed_above: Annotated[
        float | None, typer.Option(help="The table lists positive values at or above this only.")
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal mark of numbers: . or ,")] = ".",
    thousands: Annotated[str, typer.Option(help="Mark between thousands, as in 1,234.")] = "",
    controls: Annotated[
        str, typer.Option(help="Names that perturb nothing, as in 'negative,safe*'; none if there are none.")
    ] = "",
    control_pairs: Annotated[
        str, typer.Option(help="A gene beside a control is a mutant of one gene (single) or left out (drop).")
    ] = "",
    guides: Annotated[
        str,
        typer.Option(
            help="Table of guides and genes, or suffix if names are as CDC48_g1; guides are replicates."
        ),
    ] = "",
    all_of_kind: Annotated[
        str,
        typer.Option("--kind", help="What is done to genes where the table does not say it, as in reduced."),
    ] = "",
    shape: Annotated[
        str,
        typer.Option(
            help="long (a mutant per row), crosses (a matrix of double mutants), profiles (expression, genes "
            "as columns) or responses (genes as rows)."
        ),
    ] = "",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows with a problem, and keep a table of them.")
    ] = False,
    added_genes: Annotated[
        Path | None,
        typer.Option(help="Table of foreign genes that strains carry: gene, sequence, edges, reactions, …"),
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="YAML file of --save-mapping; other options change what it says.")
    ] = None,
    save_mapping: Annotated[
        Path | None, typer.Option(help="Write how the table is read to this YAML file.")
    ] = None,
    replaced: Annotated[
        bool, typer.Option("--replace", help="Replace imported data of the same name.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Import without confirmation.")] = False,
    json: Json = False,
) -> None:
    """Import a table of your measurements as a dataset, if no row has a problem.

    What is not said is guessed, and shown before anything is imported.
    """
    from wildtype.errors import DatasetError, SourceError
    from wildtype.files import write_text
    from wildtype.mutants.selection import Selection
    from wildtype.organism.added_gene import with_added
    from wildtype.sources.catalogue import dataset_folder, load_organism
    from wildtype.sources.user_tables.added_genes import read_added_genes
    from wildtype.sources.user_tables.layout import Layout, changed, read_layout, save_layout
    from wildtype.sources.user_tables.problems import TableProblems
    from wildtype.sources.user_tables.register import check_name, register, selected_phenotypes
    from wildtype.sources.user_tables.spellings import NO_CONTROLS
    from wildtype.sources.user_tables.summary import summarise
    from wildtype.sources.user_tables.table import read_table, study_name
    from wildtype.sources.user_tables.vocabulary import Columns

    check_name(study_name(table[0], name), replace=replaced)
    wild_type = load_organism(organism)
    added = () if added_genes is None else read_added_genes(added_genes, wild_type)
    wild_type = with_added(wild_type, added)
    layout = Layout(
        Columns(genes, value, kind, dose, condition, phenotypes, sd, replicate, censored),
        separator=separator,
        gene_separator=gene_separator,
        sheet=sheet,
        decimal=decimal,
        thousands=thousands,
        controls=tuple(part.strip() for part in controls.split(",") if part.strip()),
        shape=shape,
        phenotype=phenotype,
        unit=unit,
        expectation=growth,
        censored_at="" if censored_at is None else f"{censored_at:g}",
        fewest_genes=fewest_genes,
        kind=all_of_kind,
        control_pairs=control_pairs,
        guides=guides,
        layer=layer,
        skip_bad=skip_bad,
    )
    if mapping is not None:
        layout = changed(read_layout(mapping), layout)
    readings: list[Any] = []
    told: list[Any] = []
    while not told:
        try:
            measurements = read_table(
                table, wild_type, layout, name=name, collect=readings.append, tell=told.append
            )
        except TableProblems as error:
            said = _said_of_names(error.asked, layout)
            if said is None:
                _print_problems(error, json)
                raise SourceError(error.headline) from error
            layout = said
    if told[0].neutral and not _on_terminal():
        raise SourceError(
            f"{table[0]} has mutants of {told[0].neutral[0]} and other genes, and screens perturb it in "
            f"their controls: import with --controls {','.join(told[0].neutral)} if it is a control, or with "
            f"--controls {NO_CONTROLS} if it is a gene like others"
        )
    selection = None
    if listed_below is not None or listed_above is not None:
        selection = Selection(listed_below, listed_above)
    selected = selected_phenotypes(measurements, selection)
    reading = told[-1]
    summary = summarise(measurements, wild_type, readings[0], selected, reading.remarks)
    if save_mapping is not None:
        save_layout(save_mapping, reading.layout)
    if not json:
        _print_summary(summary)
    if not yes and not _agreed():
        if json:
            print_json(summary)
        raise DatasetError("nothing was imported: repeat the command with --yes to import it")
    dataset = register(
        measurements,
        readings[0],
        wild_type,
        replace=replaced,
        selection=selection,
        policies=reading.policies,
        added=added,
    )
    if reading.rejected:
        rejects = dataset_folder(dataset.name) / REJECTS
        write_text(rejects, reading.rejects())
        notes().print(f"rows that were left out, and why: {rejects}", soft_wrap=True)
    if json:
        print_json(summary | {"dataset": dataset.card()})
        return
    notes().print(
        f"imported: dataset {dataset.name}, {len(dataset):,} rows; see `wildtype data show {dataset.name}`",
        soft_wrap=True,
    )


def _on_terminal() -> bool:
    return sys.stdin.isatty()


def _said_of_names(asked: Mapping[str, tuple[str, ...]], layout: Layout) -> Layout | None:
    """Return the layout with what a person on a terminal says of names like controls or guides, else None."""
    from wildtype.sources.user_tables.guides import SUFFIX
    from wildtype.sources.user_tables.spellings import CONTROL, GUIDE, NO_CONTROLS

    controls, guides = asked.get(CONTROL, ()), asked.get(GUIDE, ())
    if not _on_terminal() or not (controls or guides):
        return None

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(names[:NAMES_SHOWN]) + (
            f" and {len(names) - NAMES_SHOWN:,} more" if names[NAMES_SHOWN:] else ""
        )

    if controls and not layout.controls:
        agreed = typer.confirm(f"Do these names perturb nothing: {listed(controls)}?", err=True)
        return replace(layout, controls=controls if agreed else (NO_CONTROLS,))
    if (
        guides
        and not layout.guides
        and typer.confirm(f"Are these guides, named after their genes: {listed(guides)}?", err=True)
    ):
        return replace(layout, guides=SUFFIX)
    return None


def _agreed() -> bool:
    if not _on_terminal():
        return False
    return typer.confirm("Import this?", err=True)


def _print_problems(error: TableProblems, json: bool) -> None:
    if json:
        print_json({"rows": error.rows, "problems": [problem.to_json() for problem in error.problems]})
        return
    for line in error.lines():
        notes().print(line, soft_wrap=True)


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
    if summary["left_out"]:
        rows["left out"] = counts(summary["left_out"])
    if summary["foreign_genes"]:
        rows["foreign genes"] = ", ".join(summary["foreign_genes"])
    table = Table(show_header=False)
    for line in summary["read_as"]:
        table.add_row(Text("read as"), Text(line))
    for key, text in rows.items():
        table.add_row(Text(key), Text(text))
    for remark in summary["remarks"]:
        table.add_row(Text("remark"), Text(remark))
    console().print(table)
