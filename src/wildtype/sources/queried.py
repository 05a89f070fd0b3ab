"""Datasets from a query: measurements of the store pass the stages and get a name chosen by the user."""

from __future__ import annotations

from pathlib import Path

from wildtype.datasets import Dataset
from wildtype.datasets.ceilings import noise_ceilings, statement
from wildtype.datasets.provenance import measured_again
from wildtype.datasets.reading import StageReport
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import dataset_key, materialise, save_dataset
from wildtype.datasets.store import Query, Store
from wildtype.errors import DatasetError
from wildtype.organism import Organism
from wildtype.sources import catalogue

NOTE = "made by a query"
AGAIN = "mutant that the first study of the provenance group has measured"


def dataset_from_query(
    name: str, query: Query | str, store: Store, organism: Organism, policies: Policies
) -> tuple[Dataset, bool]:
    """Return the dataset of a query, and whether the same query of the same store was built before.

    Afterwards ``load_dataset(name)`` gives it too.

    Parameters
    ----------
    name : str
        What it is called; a dataset that another query made under this name is replaced.
    query : Query or str
        Which measurements; SQL must give the column ``id`` of the view ``measurements``.
    store : Store
        Where they are.
    organism : Organism
        The wild type.
    policies : Policies
        How rows are converted and merged.

    Raises
    ------
    DatasetError
        If the name is taken by published or own data, the query gives no ids, or no row is left.
    ConfigError
        If the policies name a gene or an environment that is not there.
    """
    taken = catalogue.further_datasets().get(name)
    if name in catalogue.DATASETS or (taken is not None and not any(_asked(note) for note in taken["notes"])):
        raise DatasetError(f"{name!r} is the name of another dataset: choose another one")
    # The name becomes a folder in the cache and must not leave it.
    if not Path(name).name == name or name.startswith(".") or name == "queries":
        raise DatasetError(f"{name!r} cannot be the name of a dataset: use letters, digits, - and _")
    sql = query.sql if isinstance(query, Query) else query
    note = f"{NOTE}: {' '.join(sql.split())}"

    def build() -> Dataset:
        measurements = store.select(query)
        ceilings = noise_ceilings(measurements, provenance=catalogue.PROVENANCE)
        noise = statement(ceilings.values())
        before = []
        if policies.studies == "pooled":
            # Pooled, two numbers of one group would weigh as two replicates; apart, each is a phenotype.
            again = measured_again(measurements, catalogue.PROVENANCE)
            rows, measurements = len(measurements), measurements.take(~again)
            merged = {AGAIN: int(again.sum())}
            before = [StageReport("raw", "provenance", "once", rows, len(measurements), merged=merged)]
        return build_dataset(
            measurements,
            organism,
            name=name,
            policies=policies,
            notes=(note,),
            noise=noise or "no replicate measurements: no noise guide",
            before=before,
        )

    # The key holds the content of the store, so that new measurements never return an old dataset.
    key = dataset_key(
        sql, store.content_hash(query), policies, organism, name=name, provenance=catalogue.PROVENANCE
    )
    dataset, known = materialise(key, build, organism)
    save_dataset(dataset, catalogue.dataset_folder(name))
    return catalogue.with_provenance(dataset), known


def _asked(note: object) -> bool:
    return str(note).startswith(NOTE)
