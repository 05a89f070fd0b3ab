"""A user's measurements into the store and into a dataset that is loaded by its name."""

from __future__ import annotations

from wildtype.datasets import Dataset
from wildtype.datasets.ceilings import noise_ceilings
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Study
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.storage import save_dataset
from wildtype.datasets.store import Store, store_path
from wildtype.errors import DatasetError
from wildtype.organism import Organism
from wildtype.sources import catalogue
from wildtype.sources.publishers import publishers
from wildtype.sources.user_tables.table import USE

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
    measurements: Measurements, reading: ReadReport, organism: Organism, *, replace: bool = False
) -> Dataset:
    """Ingest a user's measurements into the store, and keep the dataset made from them in the cache.

    Parameters
    ----------
    measurements : Measurements
        Of one study, whose name becomes that of the dataset.
    reading : ReadReport
        What became of the rows of its file.
    organism : Organism
        The wild type.
    replace : bool
        Whether own data of the same name is replaced. It need not be asked for to finish an import of the
        same table that was cut off after its rows were stored and before its dataset was.

    Raises
    ------
    DatasetError
        If the name is taken, also by an import of another table that was cut off, no row is left for a
        dataset, or the store is damaged or in use.
    OutputError
        If something cannot be written.
    """
    (study,) = measurements.studies
    check_name(study.name, replace=replace)
    noise = "; ".join(ceiling.text for ceiling in noise_ceilings(measurements).values())
    notes = (NOTE, *study.notes)
    dataset = build_dataset(measurements, organism, name=study.name, notes=notes, noise=noise)
    path = store_path()
    with Store.open(path) if path.is_file() else Store.create(path) as store:
        store.ingest(measurements, [reading], replace=replace or _cut_off(store, study))
        save_dataset(dataset, catalogue.dataset_folder(dataset.name))
    return dataset


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
