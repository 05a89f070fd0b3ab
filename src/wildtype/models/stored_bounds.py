"""What the arrays of a checkpoint must satisfy before they are used: their lengths, and positions in range.

A hash shows that a file is what its record names, not that it fits the other files: an array that is too
short would end a prediction long after loading, and a position beyond the genes would answer about another
gene.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.evidence.other_screens import CROSSED
from wildtype.mutants.table import Kind, MutantTable

LARGEST = 1e15
"""Sums of squares of larger numbers leave the range of float32."""


def require_length(file: str, arrays: Mapping[str, NDArray[Any] | None], length: int) -> None:
    """Refuse arrays of numbers that are not [length], by name; raises ``ValueError``. None is not there."""
    for name, array in arrays.items():
        if array is not None and (array.shape != (length,) or array.dtype.kind not in "biuf"):
            raise ValueError(
                f"{name} of {file} is {array.dtype}{list(array.shape)}, expected {length:,} numbers"
            )


def require_positions(file: str, what: str, positions: NDArray[Any], count: int) -> None:
    """Refuse positions that are no whole numbers from 0 to ``count`` - 1; raises ``ValueError``."""
    if positions.dtype.kind not in "iu":
        raise ValueError(f"{file} names {what} by {positions.dtype}, expected whole numbers")
    if len(positions) and not (positions.min() >= 0 and positions.max() < count):
        raise ValueError(f"{file} names {what} beyond the {count:,} of the model")


def require_magnitudes(file: str, tensors: Mapping[str, Tensor]) -> None:
    """Refuse entries beyond ``LARGEST``, or that are not numbers; raises ``ValueError``."""
    for name, x in tensors.items():
        if x.is_floating_point() and x.numel():
            least, most = (float(bound) for bound in torch.aminmax(x))
            if not (least >= -LARGEST and most <= LARGEST):
                raise ValueError(f"{name} of {file} has entries beyond ±{LARGEST:g}, or that are no numbers")


def require_scaling(mean: NDArray[np.float64], sd: NDArray[np.float64]) -> None:
    """Refuse a scaling of labels that can't be undone; raises ``ValueError``. Of flipped labels, sd < 0."""
    if not ((np.abs(mean) <= LARGEST) & (sd != 0) & (np.abs(sd) <= LARGEST)).all():
        raise ValueError(f"scaling.json has a mean or an sd beyond ±{LARGEST:g}, or an sd of 0")


def require_in_table(
    file: str, table: MutantTable, genes: int, phenotypes: int, part: NDArray[Any], parts: int
) -> None:
    """Refuse a table that no training writes; raises ``ValueError``.

    Its genes and phenotypes are those of the model, each row is in a part of the split, and numbers are of a
    size to compute with.
    """
    require_positions(file, "genes", table.gene, genes)
    require_positions(file, "kinds", table.kind, len(Kind))
    require_positions(file, "phenotypes", table.phenotype, phenotypes)
    if len(table) and table.condition.min() < 0:
        raise ValueError(f"{file} names a condition below 0")
    for name in ("value", "sd", "weight", "profiles"):
        column = getattr(table, name)
        if column is not None and (np.abs(column) > LARGEST).any():
            raise ValueError(f"{name} of {file} has entries beyond ±{LARGEST:g}")
    if table.profiles is not None and table.profiles.shape[1] != genes:
        raise ValueError(f"{file} has profiles of {table.profiles.shape[1]:,} genes, not of {genes:,}")
    require_length(file, {"part": part}, len(table))
    require_positions(file, "parts of the split", part, parts)


def require_screen(file: str, arrays: Mapping[str, NDArray[Any]], genes: int) -> None:
    """Refuse pairs of another screen that fit no matrix of its strains.

    Raises ``ValueError``, or ``KeyError`` where an array is missing.
    """
    gene, kind, first = arrays["gene"], arrays["kind"], arrays["first"]
    strains = len(gene)
    require_length(file, {"gene": gene, "kind": kind}, strains)
    require_length(file, {name: arrays[name] for name in ("first", "second", "value")}, len(first))
    require_positions(file, "genes", gene, genes)
    require_positions(file, "kinds", kind, len(Kind))
    for name in ("first", "second"):
        require_positions(file, "strains", arrays[name], strains)
    # Strains are distinct: their matrix is made with room for the square of their number.
    if strains and (np.diff(gene.astype(np.int64) * len(Kind) + kind) <= 0).any():
        raise ValueError(f"{file} has strains that are not in ascending order")
    if not np.isfinite(arrays["value"]).all():
        raise ValueError(f"{file} has values that are no numbers")
    crossed = arrays.get(CROSSED)
    if crossed is not None and (crossed.dtype != np.uint8 or crossed.shape != (-(-(strains**2) // 8),)):
        raise ValueError(f"{file} has no bit for each of {strains:,} times {strains:,} crosses")
