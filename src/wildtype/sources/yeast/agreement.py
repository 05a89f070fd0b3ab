"""How far interaction scores agree: between alleles or strains of one gene pair, and between two studies.

Alleles and studies differ in truth too, so these are rough guides to the noise of the labels, no bounds.

Legend: m rows · g groups of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.mutants.ragged import joint, ragged_ranks

FEWEST = 3
"""A correlation over fewer values is not quoted."""
Ints = NDArray[np.int64]


def between_rows(dataset: Dataset) -> tuple[float, int]:
    """Return Pearson r between rows of one gene set, kinds, condition and phenotype, and their number.

    Every two such rows are compared in both orders, so that their numbering does not matter.

    Parameters
    ----------
    dataset : Dataset
        With alleles and replicates apart: what is averaged cannot be compared.

    Returns
    -------
    tuple of float and int
        r (NaN for fewer than 3 comparisons) and the number of comparisons.
    """
    t = dataset.table
    seen = ragged_ranks([t.gene, t.kind.astype(np.int64)], t.offsets)
    code = _joined([seen, t.condition, t.phenotype])
    order = np.argsort(code, kind="stable")
    group, value = code[order], t.value[order].astype(np.float64)
    left, right = [], []
    for apart in range(1, int(np.unique(group, return_counts=True)[1].max())):
        same = group[apart:] == group[:-apart]
        left.append(value[apart:][same])
        right.append(value[:-apart][same])
    first, second = (np.concatenate([*side, np.zeros(0)]) for side in (left, right))
    r = _pearson(np.concatenate([first, second]), np.concatenate([second, first]), len(first))
    return r, len(first)


def between_datasets(first: Dataset, second: Dataset) -> tuple[float, int]:
    """Return Pearson r of two datasets on the gene sets that both have, and the number of these.

    Each gene set counts once: with the mean over its kinds of perturbation and alleles.

    Parameters
    ----------
    first, second : Dataset
        Of one phenotype each, and on one gene index.

    Returns
    -------
    tuple of float and int
        r (NaN for fewer than 3 gene sets) and the number of gene sets.
    """
    tables = [dataset.table for dataset in (first, second)]
    offsets = np.concatenate([tables[0].offsets, tables[0].offsets[-1] + tables[1].offsets[1:]])
    sets = ragged_ranks([np.concatenate([table.gene for table in tables])], offsets)
    m = len(first)
    here, there = (
        _means(code, table.value.astype(np.float64))
        for code, table in zip((sets[:m], sets[m:]), tables, strict=True)
    )
    shared, at_here, at_there = np.intersect1d(here[0], there[0], return_indices=True)
    return _pearson(here[1][at_here], there[1][at_there], len(shared)), len(shared)


def _joined(columns: Sequence[Ints]) -> Ints:
    return joint([(column, int(column.max()) + 1) for column in columns])


def _means(code: Ints, value: NDArray[np.float64]) -> tuple[Ints, NDArray[np.float64]]:
    distinct, group = np.unique(code, return_inverse=True)
    return distinct, np.bincount(group, value) / np.bincount(group)


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64], comparisons: int) -> float:
    if comparisons < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
