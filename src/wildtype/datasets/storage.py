"""A dataset on disk: one folder, no pickle.

    dataset.json     what it is, and the SHA-256 of everything
    table.npz        the arrays of its table
    singles.npz      fitness of single mutants
    grid.npz         which crosses a screen measured, of a dataset that lists its significant ones
    added_genes.json foreign genes that its strains carry, which are appended to the organism
    table.parquet    the same table for people and other programs; nothing here reads it

The organism is stored once, beside its datasets; a dataset pins the gene index that it was built on and is
re-mapped by name when the organism has since been rebuilt with another one.

`materialise` builds a dataset once: the same query on the same store reads the stored one.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.reading import StageReport
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import ConfigError, DatasetError, OutputError, reason_of
from wildtype.files import cache_dir, content_hash, sha256_of_file, write_json, writing, writing_folder
from wildtype.memory import release_memory
from wildtype.mutants.grid import ScreenGrid
from wildtype.mutants.table import read_table, save_table
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.added_gene import AddedGene, with_added
from wildtype.unpacking import read_arrays

FORMAT = 5
ADDED = "added_genes.json"
READABLE = (1, 2, 3, 4, 5)
"""Format 1 has neither stages nor a Parquet table, and no hash of ``dataset.json`` itself; format 3 has
p-values, format 4 profiles (a number per gene), format 5 a grid of crosses, and a dataset without any of them
is written as format 2 still.
"""
FILES = {"table": "table.npz", "singles": "singles.npz", "readable": "table.parquet", "grid": "grid.npz"}
"""File by the name under which its SHA-256 is recorded; the last is there for a dataset with a grid."""


def save_dataset(dataset: Dataset, folder: str | Path, added: Sequence[AddedGene] = ()) -> None:
    """Write a dataset (without its organism's graphs and features) to ``folder``, completely or not at all.

    ``added`` are the genes at the end of its organism that the organism of that name does not have.

    Raises
    ------
    OutputError
        If it cannot be written.
    DatasetError
        If it holds rows of a phenotype that follows from the grid and the listed crosses.
    """
    import pyarrow.parquet as pq

    for p, phenotype in enumerate(dataset.phenotypes):
        derived = phenotype.of_cross not in ("", "effect")
        if derived and (rows := int((dataset.table.phenotype == p).sum())):
            raise DatasetError(
                f"dataset {dataset.name!r} has {rows:,} rows of {phenotype.name!r}, which follow from its "
                f"listed crosses: leave them out before it is stored"
            )

    singles: dict[str, Any] = {}
    if dataset.single_fitness is not None:
        singles["single_fitness"] = dataset.single_fitness
    if dataset.single_fitness_sd is not None:
        singles["single_fitness_sd"] = dataset.single_fitness_sd
    if dataset.single_fitness_kind is not None:
        singles["single_fitness_kind"] = dataset.single_fitness_kind
    with writing_folder(folder) as temporary:
        save_table(dataset.table, temporary / "table.npz")
        with writing(temporary / "singles.npz") as path, open(path, "wb") as handle:
            np.savez(handle, **singles)
        with writing(temporary / "table.parquet") as path:
            blocks = dataset.arrow_blocks()
            first = next(blocks)
            with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
                for number, block in enumerate(chain([first], blocks)):
                    writer.write_table(block)
                    if number:
                        release_memory()
        if dataset.grid is not None:
            with writing(temporary / FILES["grid"]) as path, open(path, "wb") as handle:
                np.savez(handle, **dataset.grid.to_arrays())  # type: ignore[arg-type]
        record = {
            "format_version": _format(dataset),
            "name": dataset.name,
            "organism": dataset.organism.name,
            "genes": dataset.organism.genes.to_json(),
            "phenotypes": [p.to_json() for p in dataset.phenotypes],
            "conditions": list(dataset.conditions),
            "targets": list(dataset.targets),
            "excluded": dict(dataset.excluded),
            "policies": dict(dataset.policies),
            "single_fitness_source": dataset.single_fitness_source,
            "noise": dataset.noise,
            "notes": list(dataset.notes),
            "citation": dataset.citation,
            "stages": [report.to_json() for report in dataset.stages],
            "sha256": dataset.sha256,
        }
        if added:
            write_json(temporary / ADDED, [gene.to_json() for gene in added])
        record |= {
            f"{name}_sha256": sha256_of_file(temporary / file)
            for name, file in FILES.items()
            if (temporary / file).exists()
        }
        write_json(temporary / "dataset.json", record | {"record_sha256": content_hash(record)})


def stored_rows(folder: str | Path) -> tuple[int, bool]:
    """Return the number of rows of a stored dataset, and whether each is one number for one mutant.

    Rows of a screen's grid stand for many mutants, calls are classes, and profiles have a number per gene.
    Only the headers of the files are read.

    Raises
    ------
    DatasetError
        If the dataset is missing or damaged.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    folder = Path(folder)
    try:
        record = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        numbers = all(phenotype.get("form", "scalar") == "scalar" for phenotype in record["phenotypes"])
        rows = int(read_metadata(folder / "table.parquet").num_rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArrowException) as error:
        raise DatasetError(
            f"{folder} is damaged ({reason_of(error)}): remove it and build it again"
        ) from error
    return rows, numbers and "grid_sha256" not in record


def read_dataset(folder: str | Path, organism: Organism) -> Dataset:
    """Read what ``save_dataset`` wrote, on ``organism``'s gene index and the foreign genes kept with it.

    Raises
    ------
    DatasetError
        If the folder is missing, damaged, of another format, or a gene of it is no longer in the organism.
    """
    folder = Path(folder)
    remedy = "remove the folder and build it again"
    organism = with_added_of(organism, folder)
    try:
        record = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        version = record["format_version"]
        if version not in READABLE:
            raise DatasetError(
                f"{folder} has format {version}, this version of wildtype reads up to {FORMAT}: update "
                f"wildtype, or {remedy}"
            )
        _verify(folder, record, remedy)
        table, _ = read_table(folder / "table.npz")
        singles = read_arrays(folder / "singles.npz")
        genes = GeneIndex.from_json(record["genes"])
        grid = _read_grid(folder, len(genes)) if "grid_sha256" in record else None
        # The organism may have been rebuilt since: genes move by name, never by position.
        if genes != organism.genes:
            mapping = genes.mapping_to(organism.genes)
            table = table.remap(mapping, len(organism.genes))
            grid = None if grid is None else grid.remap(mapping, len(organism.genes))
            for key, values in singles.items():
                # A gene without fitness has any kind.
                nothing = np.nan if values.dtype.kind == "f" else 0
                moved = np.full(len(organism.genes), nothing, values.dtype)
                moved[mapping[mapping >= 0]] = values[mapping >= 0]
                singles[key] = moved
        return Dataset(
            name=record["name"],
            organism=organism,
            table=table,
            phenotypes=tuple(Phenotype.from_json(p) for p in record["phenotypes"]),
            conditions=tuple(record["conditions"]),
            targets=tuple(record["targets"]),
            excluded=record["excluded"],
            policies=record["policies"],
            single_fitness=singles.get("single_fitness"),
            single_fitness_sd=singles.get("single_fitness_sd"),
            single_fitness_source=record["single_fitness_source"],
            single_fitness_kind=singles.get("single_fitness_kind"),
            noise=record["noise"],
            notes=tuple(record["notes"]),
            citation=record["citation"],
            stages=tuple(StageReport(**report) for report in record.get("stages", ())),
            grid=grid,
        )
    except FileNotFoundError as error:
        raise DatasetError(
            f"there is no dataset at {folder} ({error.filename} is missing): build it first"
        ) from error
    except (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DatasetError) and str(folder) in str(error):
            raise
        raise DatasetError(f"the dataset at {folder} is damaged ({reason_of(error)}): {remedy}") from error


def read_added(folder: str | Path) -> tuple[AddedGene, ...]:
    """Return the foreign genes of a dataset's strains; raises ``DatasetError`` if their file is damaged."""
    path = Path(folder) / ADDED
    if not path.is_file():
        return ()
    try:
        return tuple(AddedGene.from_json(one) for one in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{path} is damaged ({reason_of(error)}): import the data again") from error


def with_added_of(organism: Organism, folder: str | Path) -> Organism:
    """Return an organism with those foreign genes of a dataset that it lacks; errors as `read_added`."""
    return with_added(organism, [gene for gene in read_added(folder) if gene.name not in organism.genes])


def _format(dataset: Dataset) -> int:
    """Return the oldest format that holds a dataset."""
    if dataset.grid is not None:
        return FORMAT
    if dataset.table.profiles is not None:
        return 4
    return 2 if dataset.table.p is None else 3


def _read_grid(folder: Path, genes: int) -> ScreenGrid:
    return ScreenGrid.from_arrays(genes, read_arrays(folder / FILES["grid"]))


def _verify(folder: Path, record: dict[str, Any], remedy: str) -> None:
    if record["format_version"] > 1:
        recorded = record.pop("record_sha256")
        if content_hash(record) != recorded:
            raise DatasetError(f"{folder / 'dataset.json'} does not match its recorded sha256: {remedy}")
    for name, file in FILES.items():
        if record["format_version"] == 1 and name == "readable":
            continue
        if name == "grid" and record["format_version"] < 5:
            continue
        if sha256_of_file(folder / file) != record[f"{name}_sha256"]:
            raise DatasetError(f"{folder / file} does not match its recorded sha256: {remedy}")


VERSION = 2
"""Raised whenever the stages turn equal measurements into another dataset than before."""


def dataset_key(query: str, store_sha256: str, policies: Policies, organism: Organism, **further: Any) -> str:
    """Return the key under which a dataset is kept: a hash of everything that it is made from.

    Parameters
    ----------
    query : str
        The text of the query.
    store_sha256 : str
        Content hash of the store.
    policies : Policies
        How rows are converted and merged.
    organism : Organism
        Its genes, and which of them are essential.
    **further
        Whatever enters the dataset besides, as JSON-like values: its name, targets, notes, the content hash
        of its single-mutant fitness.
    """
    essential = None if organism.essential is None else organism.essential
    # The key holds everything that can change the dataset: a miss costs a build, a false hit is wrong.
    return content_hash(
        VERSION, FORMAT, query, store_sha256, policies.to_json(), organism.genes.sha256, essential, further
    )


def materialised_folder(key: str) -> Path:
    """Return where the dataset of a key is kept; raises ``ConfigError`` if it is not a key."""
    if not re.fullmatch(r"[0-9a-f]{16,64}", key):
        raise ConfigError(f"{key!r} is not the key of a dataset: make it with dataset_key")
    return cache_dir() / "datasets" / "queries" / key


def materialise(key: str, build: Callable[[], Dataset], organism: Organism) -> tuple[Dataset, bool]:
    """Return the dataset of a key, and whether it was there already; else it is built and kept.

    A damaged or half-removed entry is built again.

    Raises
    ------
    OutputError
        If the cache cannot be written.
    ConfigError
        If `key` is not a key.
    """
    folder = materialised_folder(key)
    stored = _stored(folder, organism)
    if stored is not None:
        return stored, True
    dataset = build()
    try:
        save_dataset(dataset, folder)
    except OutputError:
        # Another process may have put the same content there at the same moment: then all is well.
        if _stored(folder, organism) is None:
            raise
    return dataset, False


def _stored(folder: Path, organism: Organism) -> Dataset | None:
    try:
        return read_dataset(folder, organism)
    except DatasetError:
        return None
