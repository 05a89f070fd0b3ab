"""`wildtype organism import`: an organism from files, of which every row is checked and counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json


def import_(
    description: Annotated[
        Path | None, typer.Argument(help="An organism.yaml; without it, options name the files.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the organism; instead of that of the YAML.")] = "",
    about: Annotated[str, typer.Option("--description", help="One line about the organism.")] = "",
    genes: Annotated[
        list[Path] | None, typer.Option(help="File of genes: a table, GFF3, or a plain list.")
    ] = None,
    names_from: Annotated[
        list[str] | None,
        typer.Option(
            help="Genes are also the names in relations, gene_sets, features, sequences or units, or in "
            "columns of a table: pairs.tsv:gene_a,gene_b."
        ),
    ] = None,
    relation: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: an edge list, STRING links or BioGRID tab3.")
    ] = None,
    gene_sets: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: GMT, a table of complexes, or gene and term.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: vectors by gene (CSV, TSV, Parquet, NPZ, .h5ad).")
    ] = None,
    sequences: Annotated[list[Path] | None, typer.Option(help="FASTA of proteins or genes.")] = None,
    metabolism: Annotated[Path | None, typer.Option(help="Genome-scale model: SBML, JSON or YAML.")] = None,
    units: Annotated[
        str, typer.Option(help="FILE:UNIT,GENES: a table that maps units, such as operons, to genes.")
    ] = "",
    save_description: Annotated[
        Path | None, typer.Option(help="Write what the options say to this organism.yaml.")
    ] = None,
    measurements: Annotated[
        Path | None,
        typer.Option(help="Folder for tables of rows that are measurements, for `wildtype data import`."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an imported organism of the same name.")
    ] = False,
    json: Json = False,
) -> None:
    """Import an organism from an organism.yaml, or from files named by options, if no row has a problem.

    What is not said is guessed from the files, and printed with the number of rows that were used.
    """
    from wildtype.errors import ConfigError, SourceError
    from wildtype.files import write_text
    from wildtype.report.organism_card import print_organism
    from wildtype.sources.user_organisms.build import build_organism
    from wildtype.sources.user_organisms.description import as_yaml, from_plain, read_description
    from wildtype.sources.user_organisms.problems import OrganismProblems
    from wildtype.sources.user_organisms.register import check_name, register, write_measurements

    given = (about, genes, names_from, relation, gene_sets, features, sequences, metabolism, units)
    if description is not None:
        if any(given) or save_description is not None:
            raise ConfigError(
                f"both {str(description)!r} and options name files: write them all into the YAML"
            )
        folder, told = description.parent, read_description(description)
        saved, origin = told, folder
    else:
        folder, told = Path(), from_plain(_plain(Path(), name, *given), "the options")
        origin = folder if save_description is None else save_description.parent
        saved = from_plain(_plain(origin, name, *given), "the options")
        if not genes and not names_from:
            keys = ", ".join(map(str, told.genes.names_from))
            notes().print(f"no --genes: genes are the names in {keys}", soft_wrap=True)
    if name:
        named = {"name": from_plain({"name": name, "genes": {"names_from": ["relations"]}}, "--name").name}
        told, saved = told.model_copy(update=named), saved.model_copy(update=named)
    check_name(told.name, replace=replace)
    try:
        built = build_organism(told, folder)
    except OrganismProblems as error:
        if json:
            print_json({"problems": error.problems.to_json()})
        else:
            for line in error.problems.lines():
                notes().print(line, soft_wrap=True)
        raise SourceError(error.headline) from error
    if save_description is not None:
        write_text(save_description, as_yaml(saved))
    remarks = register(built, saved, origin=origin, replace=replace)
    remarks += write_measurements(built, measurements)
    if json:
        print_json(built.card | {"remarks": [*built.card["remarks"], *remarks]})
        return
    print_organism(built.card, console())
    for remark in remarks:
        notes().print(remark, soft_wrap=True)
    notes().print(
        f"imported: organism {told.name}, {len(built.organism.genes):,} genes; add measurements with "
        f"`wildtype data import TABLE --organism {told.name}`",
        soft_wrap=True,
    )


def _plain(
    folder: Path,
    name: str,
    about: str,
    genes: list[Path] | None,
    names_from: list[str] | None,
    relation: list[str] | None,
    gene_sets: list[str] | None,
    features: list[str] | None,
    sequences: list[Path] | None,
    metabolism: Path | None,
    units: str,
) -> dict[str, Any]:
    """Return the description that options give; paths relative to ``folder``."""
    from wildtype.errors import ConfigError

    def path(file: str | Path) -> str:
        return os.path.relpath(file, folder)

    def named(option: str, texts: list[str] | None) -> list[dict[str, Any]]:
        parts = []
        for text in texts or []:
            called, mark, file = text.partition("=")
            if not mark or not called or not file:
                raise ConfigError(f"--{option} {text!r} is not NAME=FILE: give a name, =, and a file")
            parts.append({"name": called, "path": path(file)})
        return parts

    def of_table(option: str, text: str) -> tuple[str, list[str]]:
        file, mark, columns = text.rpartition(":")
        if not mark or not file or not columns:
            raise ConfigError(
                f"--{option} {text!r} is not FILE:COLUMN,COLUMN: give a file, :, and its columns"
            )
        return path(file), [column.strip() for column in columns.split(",")]

    if not name:
        raise ConfigError("name the organism with --name, or give an organism.yaml")
    plain: dict[str, Any] = {"name": name, "description": about}
    plain |= {
        "relations": named("relation", relation),
        "gene_sets": named("gene-sets", gene_sets),
        "features": named("features", features),
        "sequences": [{"path": path(file)} for file in sequences or []],
    }
    sources: list[Any] = []
    for text in names_from or []:
        if text in (*plain, "units"):
            sources.append(text)
        else:
            file, columns = of_table("names-from", text)
            sources.append({"path": file, "columns": columns})
    if units:
        file, columns = of_table("units", units)
        if len(columns) != 2:
            raise ConfigError(f"--units {units!r} is not FILE:UNIT,GENES: name these two columns")
        plain["units"] = {"path": file, "unit": columns[0], "genes": columns[1]}
    if metabolism is not None:
        plain["metabolism"] = {"path": path(metabolism)}
    if not genes and not sources:
        # Without a list of genes, they are those that the other files name.
        sources = [
            key for key in ("units", "relations", "gene_sets", "features", "sequences") if plain.get(key)
        ]
    plain["genes"] = {"files": [{"path": path(file)} for file in genes or []], "names_from": sources}
    return plain
