"""Cross-validation: k splits of one draw, which together test all rows that the kind of split can test.

What is dealt to the folds, and how often a row is tested:

===========  =================================================  ==============================================
split        dealt to the folds                                 a row is tested
===========  =================================================  ==============================================
random       gene sets, order by order                          once
one-unseen   genes                                              at most once for each of its genes: when that
                                                                gene's fold is out and the others are seen
unseen       genes                                              once if its genes are all in one fold; mixed
                                                                rows never
any-unseen   genes                                              once for each fold that has one of its genes
query-pair   query pairs, as many triples each as they allow    once if it is a triple
screen       screens, as many rows each as they allow           once if it is in a screen
order        gene sets of the tested order                      once if it is of that order; training and
                                                                validation rows are the same in all folds
===========  =================================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.splits import Split, make_split


def make_folds(
    dataset: DatasetRecord, name: str = "random", folds: int = 5, seed: int = 0, **options: Any
) -> tuple[Split, ...]:
    """Return the k splits of a cross-validation, each checked for leaks.

    Parameters
    ----------
    dataset : DatasetRecord
        What to split.
    name : str
        Any split; see ``splits.make_split``.
    folds : int
        How many, at least 2.
    seed : int
        Seed of the one draw that all folds share.
    **options
        Of ``make_split``: ``validation`` (drawn from what is not tested), ``order``, ``by``.

    Raises
    ------
    SplitError
        As ``make_split`` does, for the first fold that cannot be made.
    """
    first = make_split(dataset, name, seed, fold=0, folds=folds, **options)
    others = (make_split(dataset, name, seed, fold=i, folds=folds, **options) for i in range(1, folds))
    return (first, *others)


def times_tested(splits: Sequence[Split]) -> NDArray[np.int64]:
    """Return [M] in how many of some splits of one dataset each row is a test row."""
    out = np.zeros(splits[0].total, np.int64)
    for split in splits:
        out[split.test] += 1
    return out
