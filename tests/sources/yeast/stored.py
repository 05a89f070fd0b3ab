"""From a folder of publishers' files to datasets by way of a store of their own, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from wildtype.datasets import Dataset
from wildtype.datasets.store import Store
from wildtype.organism import Organism
from wildtype.sources.yeast import build_dataset, ingest_needed


@contextmanager
def stored(folder: Path, organism: Organism) -> Iterator[Store]:
    """Give a store with every study of the yeast datasets whose files are in the folder."""
    with TemporaryDirectory() as place, Store.create(Path(place) / "store.duckdb") as store:
        ingest_needed(store, folder, organism.genes)
        yield store


def build(name: str, folder: Path, organism: Organism, *, alleles: str = "averaged") -> Dataset:
    """Build one dataset from the files in a folder."""
    with stored(folder, organism) as store:
        return build_dataset(name, store, organism, alleles=alleles)


def rows(dataset: Dataset) -> dict[tuple[str, str, str], float]:
    """Return the value of every mutant in every condition."""
    frame = dataset.to_pandas()
    return {(r.genes, r.kinds, r.condition): r.value for r in frame.itertuples()}
