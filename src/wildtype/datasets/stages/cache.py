"""A dataset is built once: the same question to the same store, and the answer is read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import FORMAT, read_dataset, save_dataset
from wildtype.errors import ConfigError, DatasetError, OutputError
from wildtype.files import cache_dir, content_hash
from wildtype.organism import Organism

VERSION = 2
"""Raised whenever the stages turn equal measurements into another dataset than before."""


def dataset_key(query: str, store_sha256: str, policies: Policies, organism: Organism, **further: Any) -> str:
    """Return the key under which a dataset is kept: a hash of everything that it is made from.

    Parameters
    ----------
    query : str
        As it was asked, letter by letter.
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
