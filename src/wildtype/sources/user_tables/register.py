"""A user's measurements into the store and into a dataset that is loaded by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.ceilings import noise_ceilings, statement
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.profiles import profile_dataset
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Study
from wildtype.datasets.stages.build import DEFAULT, build_dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import save_dataset
from wildtype.datasets.store import Store, store_path
from wildtype.errors import DatasetError, SourceError
from wildtype.mutants.selection import Selection
from wildtype.organism import Organism
from wildtype.organism.added_gene import AddedGene, with_added
from wildtype.sources import catalogue
from wildtype.sources.publishers import publishers
from wildtype.sources.user_tables.added_genes import unknown_added
from wildtype.sources.user_tables.table import USE
from wildtype.sources.user_tables.vocabulary import CENSORED
from wildtype.tables import ENDINGS, TAKEN

NOTE = "own data, as imported from a table: not published, not checked by anyone else"


def check_name(name: str, *, replace: bool = False) -> None:
    """Raise ``DatasetError`` if own data cannot be called `name`: it is other data, or there already.

    What an import that was cut off left in the store is not there yet: ``register`` finishes it.

    Parameters
    ----------
    name : str
        Of a study and of its dataset.
    replace : bool
        Whether own data of that name may be replaced.
    """
    stored, kept = _stored(), catalogue.further_datasets()
    published = name in catalogue.DATASETS or name in publishers() or name == "queries"
    if published or stored.get(name, USE) != USE:
        raise DatasetError(f"{name!r} is a name of published data: give yours another one with --name")
    if name in kept and NOTE not in kept[name]["notes"]:
        raise DatasetError(f"{name!r} is a dataset made by a query: give yours another name with --name")
    if not replace and name in kept:
        raise _taken(name)


def _taken(name: str) -> DatasetError:
    return DatasetError(f"there is own data called {name!r} already: take --replace or another --name")


def _stored() -> dict[str, str]:
    """Return the licence of every study in the store."""
    if not store_path().is_file():
        return {}
    with Store.open(store_path(), read_only=True) as store:
        return {study.name: study.licence for study in store.studies()}


def register(
    measurements: Measurements,
    reading: ReadReport,
    organism: Organism,
    *,
    replace: bool = False,
    selection: Selection | None = None,
    policies: Policies = DEFAULT,
    added: Sequence[AddedGene] = (),
) -> Dataset:
    """Ingest a user's measurements into the store, and keep the dataset made from them in the cache.

    Parameters
    ----------
    measurements : Measurements
        Of one study, whose name becomes that of the dataset.
    reading : ReadReport
        What became of the rows of its file.
    organism : Organism
        The wild type, with the genes ``added`` at its end. Further genes that strains were given are
        appended behind these.
    replace : bool
        Whether own data of the same name is replaced. It need not be asked for to finish an import of the
        same table that was cut off after its rows were stored and before its dataset was.
    selection : Selection, optional
        By which cut-offs the values of interactions, or of the only phenotype, were listed.
    policies : Policies
        How rows of one mutant are merged (`Reading.policies`); those of numbers per gene are always averaged.
    added : sequence of AddedGene
        Foreign genes of the organism, which are kept with the dataset.

    Raises
    ------
    SourceError
        If a value lies between the cut-offs, or a phenotype has the name of another column of tables of
        predictions.
    DatasetError
        If the name is taken, also by an import of another table that was cut off, no row is left for a
        dataset, or the store is damaged or in use.
    OutputError
        If something cannot be written.
    """
    (study,) = measurements.studies
    check_name(study.name, replace=replace)
    _check_phenotypes([definition.name for definition in measurements.phenotypes])
    selected = selected_phenotypes(measurements, selection)
    further = unknown_added(measurements, organism)
    organism = with_added(organism, further)
    notes = (NOTE, *study.notes, *_of_added(added, further))
    if all(phenotype.level == "gene" for phenotype in measurements.phenotypes):
        dataset = dataclasses.replace(profile_dataset(measurements, organism, name=study.name), notes=notes)
    else:
        noise = statement(noise_ceilings(measurements).values())
        names = [definition.name for definition in measurements.phenotypes]
        exact = [name for name in names if not name.endswith(CENSORED)]
        dataset = build_dataset(
            measurements,
            organism,
            name=study.name,
            policies=policies,
            targets=exact if 0 < len(exact) < len(names) else None,
            notes=notes,
            noise=noise,
        )
    dataset = of_list(dataset, selected, selection)
    path = store_path()
    with Store.open(path) if path.is_file() else Store.create(path) as store:
        store.ingest(measurements, [reading], replace=replace or _cut_off(store, study))
        save_dataset(dataset, catalogue.dataset_folder(dataset.name), (*added, *further))
    return dataset


def _check_phenotypes(names: Sequence[str]) -> None:
    """Raise ``SourceError`` if a phenotype has the name of another column of tables of predictions."""
    columns = {f"{name}{ending}": name for name in names for ending in ENDINGS}
    for name in names:
        if name in TAKEN:
            raise SourceError(
                f"the phenotype {name!r} has the name of another column of tables of predictions: "
                f"give it one of its own, as the header of its column or by --phenotype"
            )
        if name in columns:
            raise SourceError(
                f"the phenotype {name!r} has the name of a column that tables of predictions have for the "
                f"phenotype {columns[name]!r}: rename one of them, in the header or the column of phenotypes"
            )


def _of_added(added: Sequence[AddedGene], further: Sequence[AddedGene]) -> list[str]:
    """Return notes on the foreign genes of a dataset."""
    notes = []
    if added:
        notes.append(f"foreign genes, absent from strains without them: {', '.join(g.name for g in added)}")
    if further:
        names = ", ".join(gene.name for gene in further)
        notes.append(
            f"foreign genes of which only the name is known: {names}; describe them by --added-genes"
        )
    return notes


def selected_phenotypes(measurements: Measurements, selection: Selection | None) -> tuple[str, ...]:
    """Return the phenotypes that a list's cut-offs are about: interactions, or the only one.

    Raises
    ------
    SourceError
        If a value lies between the cut-offs, or no phenotype is meant.
    """
    if selection is None:
        return ()
    found = measurements.phenotypes
    chosen = [p for p, it in enumerate(found) if it.min_order > 1 or len(found) == 1]
    if not chosen:
        raise SourceError(
            f"cut-offs of a list are about interactions or about one phenotype, and the table has "
            f"{', '.join(it.name for it in found)}: import one phenotype at a time"
        )
    rows = np.isin(measurements.phenotype, chosen) & selection.between(measurements.value)
    if rows.any():
        at = int(np.flatnonzero(rows)[0])
        raise SourceError(
            f"row {at + 1}: {found[measurements.phenotype[at]].name} is {measurements.value[at]:g}, and only "
            f"values {selection.rule} are said to be in the table: correct the cut-offs"
        )
    return tuple(found[p].name for p in chosen)


def of_list(dataset: Dataset, phenotypes: Collection[str], selection: Selection | None) -> Dataset:
    """Return a dataset whose phenotypes of these names were listed by a selection."""
    listed = (
        dataclasses.replace(p, selection=selection) if p.name in phenotypes else p for p in dataset.phenotypes
    )
    return dataclasses.replace(dataset, phenotypes=tuple(listed))


def _cut_off(store: Store, study: Study) -> bool:
    """Whether an import of this table stored its rows and no dataset.

    Raises
    ------
    DatasetError
        If it was another table, or somebody finished meanwhile: nobody else can while the store is open here.
    """
    left = {one.study.name: one.study.files for one in store.studies()}
    if study.name not in left:
        return False
    if study.name in catalogue.further_datasets():
        raise _taken(study.name)
    if left[study.name] != study.files:
        raise DatasetError(
            f"an import of another table as {study.name!r} was cut off, and its rows are in the store: take "
            "--replace or another --name"
        )
    return True
