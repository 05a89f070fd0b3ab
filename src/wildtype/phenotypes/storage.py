"""A dataset on disk: one folder with `dataset.json` (what it is) and `table.npz` (no pickle).

The organism is stored once, beside its datasets; a dataset pins the gene index that it was built on and is
re-mapped by name when the organism has since been rebuilt with another one.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.errors import DatasetError
from wildtype.files import sha256_of_file, write_json, writing, writing_folder
from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex, Organism
from wildtype.phenotypes.dataset import Dataset, Phenotype

FORMAT = 1
COLUMNS = ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd")


def save_table(table: MutantTable, path: str | Path) -> None:
    """Write a table as one npz file, whole or not at all; raises ``OutputError``."""
    arrays = {name: getattr(table, name) for name in COLUMNS}
    if table.dose is not None:
        arrays["dose"] = table.dose
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, **arrays)


def read_table(path: str | Path) -> MutantTable:
    """Read what ``save_table`` wrote; raises ``OSError``, ``ValueError`` or ``KeyError`` when it is
    damaged.
    """
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in COLUMNS}
        return MutantTable(**arrays, dose=stored["dose"] if "dose" in stored.files else None)


def save_dataset(dataset: Dataset, folder: str | Path) -> None:
    """Write a dataset (without its organism's graphs and features) to ``folder``, whole or not at all."""
    singles: dict[str, Any] = {}
    if dataset.single_fitness is not None:
        singles["single_fitness"] = dataset.single_fitness
    if dataset.single_fitness_sd is not None:
        singles["single_fitness_sd"] = dataset.single_fitness_sd
    with writing_folder(folder) as temporary:
        save_table(dataset.table, temporary / "table.npz")
        with writing(temporary / "singles.npz") as path, open(path, "wb") as handle:
            np.savez(handle, **singles)
        record = {
            "format_version": FORMAT,
            "name": dataset.name,
            "organism": dataset.organism.name,
            "genes": dataset.organism.genes.to_json(),
            "phenotypes": [asdict(p) for p in dataset.phenotypes],
            "conditions": list(dataset.conditions),
            "targets": list(dataset.targets),
            "excluded": dict(dataset.excluded),
            "policies": dict(dataset.policies),
            "single_fitness_source": dataset.single_fitness_source,
            "noise": dataset.noise,
            "notes": list(dataset.notes),
            "citation": dataset.citation,
            "table_sha256": sha256_of_file(temporary / "table.npz"),
            "singles_sha256": sha256_of_file(temporary / "singles.npz"),
            "sha256": dataset.sha256,
        }
        write_json(temporary / "dataset.json", record)


def read_dataset(folder: str | Path, organism: Organism) -> Dataset:
    """Read what ``save_dataset`` wrote, on ``organism``'s gene index.

    Raises
    ------
    DatasetError
        If the folder is missing, damaged, of another format, or a gene of it is no longer in the organism.
    """
    folder = Path(folder)
    remedy = "remove the folder and build it again"
    try:
        record = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        if record["format_version"] != FORMAT:
            raise DatasetError(f"{folder} has format {record['format_version']}, expected {FORMAT}: {remedy}")
        for name in ("table", "singles"):
            if sha256_of_file(folder / f"{name}.npz") != record[f"{name}_sha256"]:
                raise DatasetError(f"{folder / f'{name}.npz'} does not match its recorded sha256: {remedy}")
        table = read_table(folder / "table.npz")
        with np.load(folder / "singles.npz", allow_pickle=False) as stored:
            singles = {key: stored[key] for key in stored.files}
        genes = GeneIndex.from_json(record["genes"])
        if genes != organism.genes:
            mapping = genes.mapping_to(organism.genes)
            table = table.remap(mapping)
            for key, values in singles.items():
                moved = np.full(len(organism.genes), np.nan, np.float32)
                moved[mapping[mapping >= 0]] = values[mapping >= 0]
                singles[key] = moved
        return Dataset(
            name=record["name"],
            organism=organism,
            table=table,
            phenotypes=tuple(Phenotype(**p) for p in record["phenotypes"]),
            conditions=tuple(record["conditions"]),
            targets=tuple(record["targets"]),
            excluded=record["excluded"],
            policies=record["policies"],
            single_fitness=singles.get("single_fitness"),
            single_fitness_sd=singles.get("single_fitness_sd"),
            single_fitness_source=record["single_fitness_source"],
            noise=record["noise"],
            notes=tuple(record["notes"]),
            citation=record["citation"],
        )
    except FileNotFoundError as error:
        raise DatasetError(
            f"there is no dataset at {folder} ({error.filename} is missing): build it first"
        ) from error
    except (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"the dataset at {folder} is damaged ({error}): {remedy}") from error
