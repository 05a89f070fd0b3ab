"""An organism as a folder of tables with an `organism.yaml`, from which an equal organism is imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import OutputError
from wildtype.files import write_text, writing, writing_folder
from wildtype.organism import Coordinates, GeneIndex, Organism
from wildtype.sources.user_organisms.description import YAML, as_yaml, from_plain

if TYPE_CHECKING:
    import pandas as pd

ALIASES = "|"


def export_organism(organism: Organism, folder: Path) -> list[str]:
    """Write an organism as tables into a new folder, and return what tables cannot hold.

    Raises
    ------
    OutputError
        If the folder exists, cannot be written, or a name holds the mark between aliases.
    """
    if folder.exists():
        raise OutputError(f"{str(folder)!r} exists already: name a new folder")
    plain: dict[str, Any] = {"name": organism.name, "description": organism.description}
    units = organism.units
    with writing_folder(folder) as temporary:
        if units is None:
            files = [_genes(organism, temporary, "genes.tsv")]
        else:
            files = [
                _genes(Organism(organism.name, units.genes), temporary, "genes.tsv"),
                _genes(organism, temporary, "facts_of_units.tsv") | {"of": "units"},
            ]
            _write(
                _frame(
                    {
                        "unit": list(organism.genes.names),
                        "genes": [ALIASES.join(units.members(token)) for token in range(len(units))],
                    }
                ),
                temporary / "units.tsv",
            )
            plain["units"] = {"path": "units.tsv", "unit": "unit", "genes": "genes", "separator": ALIASES}
        plain["genes"] = {"files": files}
        of = {} if units is None else {"of": "units"}
        plain["relations"] = [_relation(organism, name, temporary) | of for name in organism.graphs]
        plain["features"] = [_features(organism, name, temporary) | of for name in organism.features]
        # Features that follow from other parts are among those written.
        plain["derive_features"] = False
        if organism.metabolism is not None:
            with writing(temporary / "metabolism.npz") as path, open(path, "wb") as handle:
                np.savez(handle, **organism.metabolism.to_arrays())  # type: ignore[arg-type]
            plain["metabolism"] = {"path": "metabolism.npz"}
        write_text(temporary / YAML, as_yaml(from_plain(plain, YAML)))
    return _lost(organism)


def _lost(organism: Organism) -> list[str]:
    lost = []
    bases = [block.name for block in organism.features.values() if block.basis is not None]
    if bases:
        lost.append(
            f"how columns of {', '.join(bases)} follow from measured ones, which only added genes need"
        )
    if len(organism.appended.genes):
        lost.append("which genes were added, and which of their relations are known")
    if any(relation.dropped for relation in organism.graphs.values()):
        lost.append("the counts of rows that are no edges: they are of the publishers' files")
    return lost


def _frame(columns: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    frame.to_csv(path, sep="\t", index=False, lineterminator="\n")


def _file(kind: str, name: str, suffix: str) -> str:
    return f"{kind}/{re.sub(r'[^A-Za-z0-9._-]+', '_', name)}{suffix}"


def _genes(organism: Organism, folder: Path, file: str) -> dict[str, Any]:
    genes = organism.genes
    columns: dict[str, Any] = {"name": list(genes.names)}
    if genes.standard:
        columns["standard"] = [genes.standard.get(name, "") for name in genes.names]
    if genes.aliases:
        columns["aliases"] = _aliases(genes)
    if genes.descriptions:
        columns["description"] = [
            re.sub(r"[\t\r\n]+", " ", genes.descriptions.get(name, "")) for name in genes.names
        ]
    for key in ("essential", "dubious"):
        known: NDArray[np.bool_] | None = getattr(organism, key)
        if known is not None:
            columns[key] = np.where(known, "yes", "no")
    if organism.coordinates is not None:
        columns |= _places(organism.coordinates)
    _write(_frame(columns), folder / file)
    named = {key: key for key in columns}
    source = "" if organism.coordinates is None else organism.coordinates.source
    return {"path": file, "format": "table", "columns": named, "alias_separator": ALIASES, "source": source}


def _aliases(genes: GeneIndex) -> list[str]:
    marked = next((a for other in genes.aliases.values() for a in other if ALIASES in a), None)
    if marked is not None:
        raise OutputError(f"the alias {marked!r} holds {ALIASES!r}, which separates aliases: rename it")
    return [ALIASES.join(genes.aliases.get(name, ())) for name in genes.names]


def _places(places: Coordinates) -> dict[str, Any]:
    def bases(kilobases: NDArray[np.float64]) -> list[str]:
        return [
            str(round(x * 1000)) if known else "" for x, known in zip(kilobases, places.known, strict=True)
        ]

    return {
        "chromosome": [str(number) if number else "" for number in places.chromosome],
        "start": bases(places.start),
        "end": bases(places.end),
        "strand": [{1: "+", -1: "-"}.get(int(strand), "") for strand in places.strand],
    }


def _relation(organism: Organism, name: str, folder: Path) -> dict[str, Any]:
    relation, names = organism.graphs[name], np.array(organism.genes.names, dtype=object)
    rows, columns, weights = relation.endpoints()
    if not relation.directed:
        once = rows < columns
        rows, columns, weights = rows[once], columns[once], weights[once]
    table: dict[str, Any] = {"gene_a": names[rows], "gene_b": names[columns]}
    if relation.weighted:
        table["weight"] = weights
    file = _file("relations", name, ".tsv")
    _write(_frame(table), folder / file)
    part = {"name": name, "path": file, "format": "edges", "columns": ["gene_a", "gene_b"], "header": True}
    part |= {
        "separator": "\\t",
        "weight": "weight" if relation.weighted else "",
        "directed": relation.directed,
    }
    return part | {"source": relation.source, "version": relation.version, "note": relation.note}


def _features(organism: Organism, name: str, folder: Path) -> dict[str, Any]:
    import pandas as pd

    block = organism.features[name]
    file = _file("features", name, ".parquet")
    (folder / file).parent.mkdir(exist_ok=True)
    frame = pd.DataFrame(block.values, index=list(organism.genes.names), columns=list(block.columns))
    frame.to_parquet(folder / file)
    return {
        "name": name,
        "path": file,
        "source": block.source,
        "note": block.note,
        "measured": list(block.measured),
        "comparable": block.comparable,
    }
