"""Imported organisms in the cache: under which names, and what becomes of datasets when one is replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wildtype.datasets.storage import read_dataset
from wildtype.errors import DatasetError, WildtypeError
from wildtype.files import json_text, write_text
from wildtype.organism import Organism
from wildtype.organism.storage import save_organism
from wildtype.sources import catalogue
from wildtype.sources.user_organisms.build import Built
from wildtype.sources.user_organisms.card import card_of
from wildtype.sources.user_organisms.description import Description, as_yaml
from wildtype.tables import frame_to_csv


def check_name(name: str, *, replace: bool = False) -> None:
    """Raise ``DatasetError`` if an organism cannot be called ``name``.

    Parameters
    ----------
    name : str
        Of the organism.
    replace : bool
        Whether an imported organism of that name may be replaced.
    """
    built_in = {one.lower() for one in catalogue.ORGANISMS}
    if name.lower() in built_in or any(name.lower().startswith(f"{one}-string") for one in built_in):
        raise DatasetError(f"{name!r} is a name of an organism that is built in: give yours another one")
    if name in catalogue.imported_organisms():
        if not replace:
            raise DatasetError(f"there is an organism {name!r} already: take --replace or another --name")
    elif catalogue.organism_folder(name).exists():
        raise DatasetError(f"{str(catalogue.organism_folder(name))!r} is in the way: give another --name")


def register(built: Built, description: Description, *, origin: Path, replace: bool = False) -> list[str]:
    """Keep an organism in the cache, with its description and card, and return remarks on its datasets.

    Parameters
    ----------
    built : Built
        The organism and its card.
    description : Description
        What it was made from; its paths are relative to ``origin``.
    origin : path
        Folder of the description.
    replace : bool
        Whether an imported organism of that name is replaced. Its datasets stay, and are re-mapped by the
        names of genes when they are loaded.

    Raises
    ------
    DatasetError
        If the name is taken, or a dataset on the organism perturbs a gene that the new one does not have.
    OutputError
        If the cache cannot be written.
    """
    name = built.organism.name
    check_name(name, replace=replace)
    remarks = _datasets(built.organism)
    card = built.card | {"origin": str(origin.resolve())}
    save_organism(
        built.organism,
        catalogue.organism_folder(name),
        beside={catalogue.DESCRIPTION: as_yaml(description), catalogue.CARD: json_text(card)},
    )
    return remarks


def _datasets(organism: Organism) -> list[str]:
    """Return a remark on the datasets that are on an older organism of that name.

    Raises
    ------
    DatasetError
        If one perturbs a gene that the organism does not have.
    """
    records = catalogue.further_datasets()
    old = {name: records[name]["genes"]["names"] for name in catalogue.datasets_on(organism.name)}
    moved = {name: genes for name, genes in old.items() if tuple(genes) != organism.genes.names}
    if not moved:
        return [f"datasets on it keep their genes: {', '.join(old)}"] if old else []
    new = set(organism.genes.names)
    for name, genes in moved.items():
        try:
            read_dataset(catalogue.dataset_folder(name), organism)
        except WildtypeError as error:
            lost = [gene for gene in genes if gene not in new]
            first = ", ".join(lost[:5]) + (", …" if len(lost) > 5 else "")
            raise DatasetError(
                f"organism {organism.name!r} is not replaced: dataset {name!r} stands on it, and "
                f"{len(lost):,} of its genes are gone ({first or error}), some perturbed in its rows; "
                f"keep these genes, take another --name, or remove {str(catalogue.dataset_folder(name))!r}"
            ) from error
    return [
        f"its genes changed: rows of {', '.join(moved)} are re-mapped by the names of genes whenever they "
        f"are loaded; models that were trained before keep the genes they were trained with"
    ]


def write_measurements(built: Built, folder: Path | None) -> list[str]:
    """Write rows of an organism's files that are measurements to a folder, and return remarks on them.

    Without a folder the remarks only count them. Raises ``OutputError``.
    """
    remarks = []
    for name, frame in built.measurements.items():
        if folder is None:
            remarks.append(
                f"{len(frame):,} rows are measurements ({name}): --measurements FOLDER writes them as a table"
            )
            continue
        write_text(folder / name, frame_to_csv(frame))
        remarks.append(
            f"{len(frame):,} rows are measurements: `wildtype data import {folder / name} --organism "
            f"{built.organism.name}`"
        )
    return remarks


def read_card(name: str) -> dict[str, Any]:
    """Return the card of an organism: as imported, or made of an organism that is built in.

    Raises
    ------
    DatasetError
        If there is no such organism.
    """
    organism = catalogue.load_organism(name)
    path = catalogue.organism_folder(name) / catalogue.CARD
    if name not in catalogue.imported_organisms() and not path.exists():
        return card_of(organism)  # of a simulation, or built by a version that kept no card
    try:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} is damaged: import the organism again, with --replace") from error
    return card
