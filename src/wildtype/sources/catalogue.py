"""The catalogue: every organism and dataset by name, built when needed and kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wildtype.datasets import Dataset
from wildtype.datasets.draws import studies_of
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import ConfigError, DatasetError, did_you_mean
from wildtype.files import cache_dir, json_text
from wildtype.organism import Organism
from wildtype.organism.storage import is_current, read_organism, save_organism

# Dataset name -> organism name. In-silico entries are built on demand; the others from a folder of
# publishers' files.
DATASETS = {
    "ecoli-core-growth": "ecoli-core",
    "ecoli-core-triples": "ecoli-core",
    "ecoli-core-media": "ecoli-core",
    "ecoli-core-doses": "ecoli-core-foreign",
    "ecoli-ijo1366-growth": "ecoli-ijo1366",
    "ecoli-ijo1366-triples": "ecoli-ijo1366",
    "yeast-digenic-costanzo2010": "yeast",
    "yeast-digenic-costanzo2010-stringent": "yeast",
    "yeast-digenic-costanzo2016-full": "yeast",
    "yeast-digenic-costanzo2016": "yeast",
    "yeast-dcell-repair": "yeast",
    "yeast-dcell-chromatin": "yeast",
    "yeast-emap-collins2007": "yeast",
    "yeast-emap-schuldiner2005": "yeast",
    "yeast-gis-diazmejia2018": "yeast",
    "yeast-digenic-tausga": "yeast",
    "yeast-upr-jonikas2009": "yeast",
    "yeast-fitness-costanzo2016": "yeast",
    "yeast-trigenic-kuzmin2018": "yeast",
    "yeast-trigenic-kuzmin": "yeast",
    "yeast-calls-kuzmin2018": "yeast",
    "yeast-xga-celaj2020": "yeast",
    "yeast-growth-costanzo2021": "yeast",
    "yeast-morphology-mattiazzi2020": "yeast",
    "yeast-morphology-vizeacoumar2010": "yeast",
    "yeast-metabolome-mulleder2016": "yeast",
    "yeast-cellsize-jorgensen2002": "yeast",
}
# Provenance group -> its studies: one laboratory, and partly one set of plates. What they measured of one
# mutant is one measurement, whatever their numbers; the first that has it stands for it. Costanzo 2010 and
# 2016 agree by r .86 to .90 on listed pairs. The E-MAPs of Collins and of Schuldiner are no group: they are
# screens of their own, which agree with each other by r .71 and with Costanzo by .61 and .62. Nor are
# Diaz-Mejia (r .80 with Costanzo 2016) and Jonikas, who measured no growth.
PROVENANCE = {
    "costanzo": ("costanzo2016", "costanzo2016-dcell", "costanzo2010", "costanzo2010-stringent"),
    "kuzmin2018": ("kuzmin2018", "kuzmin2018-calls"),
    "kuzmin2020": ("kuzmin2020", "tau-sga"),
}
ORGANISMS = tuple(dict.fromkeys(DATASETS.values()))
DESCRIPTION = "description.yaml"
"""File that the folder of an imported organism has, and no other: what it was made from."""
CARD = "card.json"
"""File beside an organism of files that counts every row of them."""
IN_SILICO = ("ecoli-core", "ecoli-core-foreign", "ecoli-ijo1366")


def organism_folder(name: str) -> Path:
    """Return where an organism is kept."""
    return cache_dir() / "organisms" / name


def dataset_folder(name: str) -> Path:
    """Return where a dataset is kept."""
    return cache_dir() / "datasets" / name


def further_datasets() -> dict[str, dict[str, Any]]:
    """Return the records of datasets in the cache that are not in ``DATASETS``, by name: own data, and
    those made by a query.
    """
    found = {}
    for path in sorted((cache_dir() / "datasets").glob("[!.]*/dataset.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            whole = record["name"] == path.parent.name and {"organism", "notes"} <= record.keys()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # `wildtype data verify` says what is wrong with it
        if whole and record["name"] not in DATASETS:
            found[record["name"]] = record
    return found


def imported_organisms() -> list[str]:
    """Return the names of organisms in the cache that were imported from files of the user."""
    found = (cache_dir() / "organisms").glob(f"[!.]*/{DESCRIPTION}")
    return sorted(path.parent.name for path in found if path.parent.name not in ORGANISMS)


def known_organisms() -> list[str]:
    """Return every organism that can be loaded or built, by name."""
    return [*ORGANISMS, *imported_organisms()]


def datasets_on(organism: str) -> list[str]:
    """Return the datasets in the cache that are of an organism."""
    return [name for name, record in further_datasets().items() if record["organism"] == organism]


def organism_facts() -> list[dict[str, Any]]:
    """Return for every known organism its name, what it is made from, its genes, and its datasets there."""
    rows = []
    for name in known_organisms():
        made = (
            "simulation" if name in IN_SILICO else "publishers' files" if name in ORGANISMS else "own files"
        )
        genes = None
        if is_current(organism_folder(name)):
            record = json.loads((organism_folder(name) / "organism.json").read_text(encoding="utf-8"))
            genes = len(record["genes"]["names"])
        built = sum(organism == name and is_built(of) for of, organism in known_datasets().items())
        rows.append({"organism": name, "made from": made, "genes": genes, "datasets": built})
    return rows


def known_datasets() -> dict[str, str]:
    """Return every dataset that can be loaded or built, by name, and its organism."""
    return DATASETS | {name: record["organism"] for name, record in further_datasets().items()}


def organism_of(dataset: str) -> str:
    """Return the organism of a dataset by name; raises ``DatasetError`` with the nearest names if unknown."""
    if dataset not in (known := known_datasets()):
        hint = did_you_mean(dataset, known, f"known datasets: {', '.join(known)}")
        raise DatasetError(f"there is no dataset {dataset!r}; {hint}")
    return known[dataset]


def is_built(name: str) -> bool:
    """Return whether a dataset is in the cache."""
    return (dataset_folder(name) / "dataset.json").is_file()


def _known_organism(name: str) -> None:
    if name not in (known := known_organisms()):
        others = f"known organisms: {', '.join(known)}; another one comes in with `wildtype organism import`"
        raise DatasetError(f"there is no organism {name!r}; {did_you_mean(name, known, others)}")


def load_organism(name: str) -> Organism:
    """Load an organism by name; in-silico ones are built on first use.

    Raises
    ------
    DatasetError
        If there is no such organism, or if it must first be built from publishers' files.
    """
    _known_organism(name)
    folder = organism_folder(name)
    # An organism of an older format is built again where that needs no files, else refused.
    if not is_current(folder):
        if name in imported_organisms():
            raise DatasetError(
                f"organism {name!r} was imported by an earlier version: import its organism.yaml again, "
                f"with `wildtype organism import --replace`"
            )
        if name not in IN_SILICO:
            built = "was built by an earlier version" if folder.is_dir() else "is not built yet"
            raise DatasetError(
                f"organism {name!r} {built}: run `wildtype data build {name} --from FOLDER` "
                f"with a folder of publishers' files"
            )
        from wildtype.sources import insilico

        organism = insilico.build_organism(name)
        save_organism(organism, folder)
        return organism
    return read_organism(folder)


def load_dataset(name: str, *, organism: str = "", progress: bool = True) -> Dataset:
    """Load a dataset by name; in-silico ones are simulated on first use.

    Parameters
    ----------
    name : str
        One of ``known_datasets``.
    organism : str
        A variant of its organism to put it on (see ``build_variant``); empty: the organism itself.
    progress : bool
        Whether a simulation draws a bar.

    Raises
    ------
    DatasetError
        If there is no such dataset, or if it or the variant must first be built from publishers' files.
    """
    organism_name = organism_of(name)
    variant = load_variant(organism_name, organism) if organism else None
    if not is_built(name) and organism_name not in IN_SILICO:
        raise DatasetError(
            f"dataset {name!r} is not built yet: run `wildtype data build {organism_name} --from FOLDER` "
            f"with a folder of publishers' files"
        )
    whole = load_organism(organism_name) if variant is None else variant
    if is_built(name):
        return with_provenance(read_dataset(dataset_folder(name), whole))
    from wildtype.sources import insilico

    dataset = insilico.build_dataset(name, whole, progress=progress)
    save_dataset(dataset, dataset_folder(name))
    return dataset


def with_provenance(dataset: Dataset) -> Dataset:
    """Return the dataset with the provenance groups of its studies."""
    measured = {study for phenotype in dataset.phenotypes for study in studies_of(phenotype.source)}
    groups = {name: studies for name, studies in PROVENANCE.items() if measured & set(studies)}
    return replace(dataset, provenance=groups)


def variants(name: str) -> list[str]:
    """Return the names of an organism's variants: with another version of STRING, or the user's own files."""
    found = (cache_dir() / "organisms").glob(f"{name}-*/organism.json")
    imported = imported_organisms()
    others = {*ORGANISMS, *imported}
    built = [path.parent.name for path in found if path.parent.name not in others]
    return sorted([*built, *(one for one in imported if _built_upon(one) == name)])


def _built_upon(imported: str) -> str:
    """Return the organism whose genes an imported one has, or an empty text."""
    from wildtype.sources.user_organisms.description import read_description

    try:
        told = read_description(organism_folder(imported) / DESCRIPTION)
    except ConfigError:
        return ""  # damaged, or of another version: loading it says so
    return "" if told.publishers is None or told.units is not None else told.publishers.readers


def load_variant(name: str, variant: str) -> Organism:
    """Load a variant of the organism ``name``; raises ``DatasetError`` if it is not built."""
    if variant not in variants(name):
        known = ", ".join(variants(name)) or "none yet"
        raise DatasetError(
            f"data.organism={variant!r} is no variant of {name!r} that is built; built: {known}; make one "
            f"with `wildtype data build yeast --from FOLDER --string VERSION`, or with `wildtype organism "
            f"import` of a description that has publishers"
        )
    return read_organism(organism_folder(variant))


def build_variant(name: str, folder: Path, *, string: str) -> Organism:
    """Build an organism with the gene graphs of another version of STRING, keep it, and return it.

    It is kept beside the organism as ``<name>-string<version>``; every dataset of the organism can be put on
    it with ``data.organism``. Versions are never mixed.

    Raises
    ------
    DatasetError
        If the organism has no variants.
    ConfigError, SourceError
        If the version is unknown, or its files are not in the folder or damaged.
    """
    _known_organism(name)
    if name != "yeast":
        raise DatasetError(f"organism {name!r} has no graphs of STRING: leave out --string")
    return _build_described(name, folder, name=f"{name}-string{string}", string=string)


def _build_described(organism: str, folder: Path, *, name: str = "", string: str = "") -> Organism:
    """Build an organism of publishers' files as its description says, and keep it with its card."""
    from wildtype.sources.user_organisms.build import build_organism
    from wildtype.sources.user_organisms.description import built_in

    built = build_organism(built_in(organism, name=name, string=string), folder)
    folder = organism_folder(built.organism.name)
    save_organism(built.organism, folder, beside={CARD: json_text(built.card)})
    return built.organism


@dataclass(frozen=True)
class LeftOut:
    """A dataset that was not built: its name, and why."""

    name: str
    why: str


Built = Organism | Dataset | LeftOut


def build(
    name: str,
    folder: Path | None = None,
    *,
    alleles: str = "averaged",
    report: Callable[[Built], None] = lambda built: None,
) -> None:
    """Build an organism and its datasets anew and keep them; ``report`` is called with each as it is done.

    Measurements go into the store in the cache first. A dataset whose files are not in the folder is left
    out, and reported as such.

    Raises
    ------
    DatasetError
        If there is no such organism, a folder of publishers' files is needed and not given, or it has the
        files of no dataset.
    SourceError
        If a publisher's file that the organism needs is missing, or any file is damaged or not in the
        published layout.
    """
    _known_organism(name)
    if name not in ORGANISMS:
        raise DatasetError(
            f"organism {name!r} was imported and is there: add datasets with `wildtype data import TABLE "
            f"--organism {name}`"
        )
    datasets = [dataset for dataset, organism in DATASETS.items() if organism == name]
    if name in IN_SILICO:
        from wildtype.sources import insilico

        organism = insilico.build_organism(name)
        save_organism(organism, organism_folder(name))
        report(organism)
        for dataset_name in datasets:
            dataset = insilico.build_dataset(dataset_name, organism)
            save_dataset(dataset, dataset_folder(dataset_name))
            report(dataset)
        return
    if folder is None:
        raise DatasetError(
            f"organism {name!r} is built from publishers' files: say where they are with --from FOLDER"
        )
    from wildtype.datasets.store import Store, store_path
    from wildtype.sources import yeast

    organism = _build_described(name, folder)
    report(organism)
    # Studies go into the store first, so that datasets are rebuilt from it without the files.
    path = store_path()
    with Store.open(path) if path.is_file() else Store.create(path) as store:
        absent = yeast.ingest_needed(store, folder, organism.genes)
        left_out = {
            recipe: "; ".join(dict.fromkeys(absent[study] for study in missing))
            for recipe in datasets
            if (missing := [study for study in yeast.RECIPES[recipe].needed if study in absent])
        }
        if len(left_out) == len(datasets):
            raise DatasetError(
                f"no dataset of {name!r} can be built from {str(folder)!r}: "
                + "; ".join(dict.fromkeys(left_out.values()))
            )
        for dataset_name in datasets:
            why = left_out.get(dataset_name) or yeast.RECIPES[dataset_name].lacking(store)
            if why:
                report(LeftOut(dataset_name, why))
                continue
            dataset = yeast.build_dataset(dataset_name, store, organism, alleles=alleles)
            save_dataset(dataset, dataset_folder(dataset_name))
            report(dataset)
