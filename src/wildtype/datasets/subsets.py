"""Smaller and smaller parts of some rows, for studies of how a model scales with the number of measurements.

Legend: m rows · s strata (order and phenotype).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.errors import SplitError
from wildtype.mutants.identity import mutant_id
from wildtype.mutants.ragged import joint
from wildtype.seeds import generator


def subset(
    dataset: DatasetRecord,
    rows: ArrayLike,
    *,
    size: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return exactly so many of some rows, ascending, drawn at random with every stratum in proportion.

    A stratum is all rows of one order and one phenotype. For one seed the smaller subset is contained in the
    larger one: all rows have one order of preference, in which row i (from 0) of a shuffled stratum of m
    rows has the key (i + 1/2) / m, and a subset is its head. The shares of the strata are so those of
    Webster's method, within about one row of proportion; a stratum of few rows enters late.

    Drawing depends on what the rows are, not on their order.

    Parameters
    ----------
    dataset : DatasetRecord
        Where the rows are.
    rows : int [M]
        Row numbers to draw from, such as ``split.train``.
    size : int, optional
        Number of rows to draw.
    fraction : float, optional
        The same as a fraction of ``rows``, rounded; give one of the two.
    seed : int
        Seed of the draw.

    Raises
    ------
    SplitError
        If both or none are given, if there are not so many rows, or if none would be left.
    """
    given = np.asarray(rows)
    at = np.unique(given.astype(np.int64))
    if at.size != given.size or (at.size and (at[0] < 0 or at[-1] >= len(dataset))):
        raise SplitError(f"rows to draw from must be different row numbers within 0 … {len(dataset) - 1}")
    if (size is None) == (fraction is None):
        raise SplitError(f"size={size} and fraction={fraction}: give one of the two")
    request = f"size {size}" if fraction is None else f"fraction {fraction:g}"
    share = 0.0 if fraction is None or not 0 < fraction <= 1 else fraction
    count = round(share * at.size) if size is None else size
    if not 1 <= count <= at.size:
        raise SplitError(f"{request} of {at.size:,} rows: expected between 1 row and all of them")
    table = dataset.table.take(at)
    stratum = np.unique(
        joint([(table.order, int(table.order.max()) + 1), (table.phenotype, len(dataset.phenotypes))]),
        return_inverse=True,
    )[1].reshape(-1)
    # The draw is over rows in the order of their content; rows that agree in all of it are the same row.
    content = np.lexsort((table.sd, table.value, table.phenotype, table.condition, mutant_id(table)))
    shuffled = content[generator(seed, "subset").permutation(at.size)]
    ranked = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    counts = np.bincount(stratum)
    place = np.arange(at.size) - np.repeat(np.cumsum(counts) - counts, counts)
    # Webster: row i of a stratum of m enters at (i + 1/2) / m, so every stratum keeps its proportion.
    key = (place + 0.5) / np.repeat(counts, counts)
    return np.sort(at[ranked[np.argsort(key, kind="stable")[:count]]])
