"""A table of mutants on disk: one npz file of its columns, without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.files import writing
from wildtype.mutants.table import MutantTable

COLUMNS = ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd")
OPTIONAL = ("dose", "p", "profile", "profiles")
"""Columns that a file has where its table has them."""


def save_table(
    table: MutantTable, path: str | Path, beside: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write a table, and further arrays ``beside`` it under names of their own, as one npz file.

    The file is whole or not there; raises ``OutputError``.
    """
    table = table.with_own_profiles()
    arrays: dict[str, Any] = {name: getattr(table, name) for name in (*COLUMNS, *OPTIONAL)}
    arrays = {name: column for name, column in arrays.items() if column is not None}
    arrays |= beside or {}
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, **arrays)


def read_table(path: str | Path) -> tuple[MutantTable, dict[str, NDArray[Any]]]:
    """Read what ``save_table`` wrote: the table, and what stood beside it.

    Raises ``OSError``, ``ValueError``, ``KeyError`` or ``zipfile.BadZipFile`` when the file is damaged.
    """
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    columns = {name: arrays.pop(name) for name in COLUMNS}
    return MutantTable(**columns, **{name: arrays.pop(name, None) for name in OPTIONAL}), arrays
