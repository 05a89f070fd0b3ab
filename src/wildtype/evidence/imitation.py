"""What a training row may see of the other training rows, so that it sees what a test row will see.

A test row sees all training rows. How much they tell depends on the split: nothing is known of an unseen
gene. So a training row's label features are made from a part of the training rows only: never from its own
gene set, and short of as many of its genes as a held-out row is short of.

======  =============================================  =======================================================
regime  most held-out rows have                        a training row sees the training rows …
======  =============================================  =======================================================
seen    only genes with training rows                  of the other random folds of gene sets
one     some genes with, some without training rows    without any gene of one fold; the row has one such gene
none    no gene with training rows                     without any gene of any gene fold that the row touches
pair    three or more genes, and a leading pair that   without the row's leading pair and those of its fold
        is in (nearly) no training row
======  =============================================  =======================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import MutantTable
from wildtype.mutants.rows import Codes, pairs_of
from wildtype.seeds import generator

ROW_FOLDS = 10
GENE_FOLDS = 20
TOUCHED_FOLDS = 8


def leading_pairs(
    table: MutantTable, train: MutantTable, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every row's pair with most training rows (a·n + b, −1: none) and their number, [m] each."""
    row, left, right = pairs_of(train)
    codes, counts = np.unique(left * n + right, return_counts=True)
    row, left, right = pairs_of(table)
    book = Codes(codes)
    at = book.find(left * n + right)
    count = np.where(at >= 0, counts[at] if len(counts) else 0, 0)
    order = np.lexsort((count, row))
    last = np.flatnonzero(np.diff(row[order], append=-1))
    code, most = np.full(len(table), -1, np.int64), np.zeros(len(table), np.int64)
    at_row = row[order][last]
    code[at_row] = (left * n + right)[order][last]
    most[at_row] = count[order][last]
    return code, most


def regime(train: MutantTable, validation: MutantTable, n: int) -> str:
    """Return ``seen``, ``one``, ``none`` or ``pair``: what held-out rows lack, judged by genes alone."""
    rows = np.flatnonzero(validation.order > 0)
    if not rows.size:
        return "seen"
    seen = np.zeros(n, bool)
    seen[train.gene] = True
    known = np.bincount(validation.row, weights=seen[validation.gene], minlength=len(validation))[rows]
    order = validation.order[rows]
    shares = {"none": (known == 0).mean(), "one": ((known > 0) & (known < order)).mean()}
    shares["seen"] = 1 - shares["none"] - shares["one"]
    best = max(("seen", "one", "none"), key=lambda name: shares[name])
    if best == "seen" and np.median(order) >= 3:
        many = train.take(train.order >= 3)
        if len(many):
            _, own = leading_pairs(many, train, n)
            _, held = leading_pairs(validation.take(rows), train, n)
            if np.median(held) < 0.2 * (np.median(own) - 1):
                return "pair"
    return best


Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


def folds(name: str, train: MutantTable, n: int, seed: int) -> Iterator[Fold]:
    """Yield (rows that ask, rows they may see) of the training table; a row may ask in several folds or none.

    No row is ever among those it may see, nor is any row of its gene set, in any condition, of any kind.
    """
    rng = generator(seed, f"imitation {name}")
    rows = np.arange(len(train))
    if name in ("seen", "pair"):
        group = train.set_id
        if name == "pair":
            code, _ = leading_pairs(train, train, n)
            # Rows of one gene set have one leading pair; rows without a pair are folded by their gene set.
            group = np.unique(
                np.stack([code, np.where(code < 0, train.set_id, -1)]), axis=1, return_inverse=True
            )[1]
            group = group.reshape(-1)
        fold = rng.permutation(np.arange(group.max() + 1) % ROW_FOLDS)[group]
        for f in range(ROW_FOLDS):
            yield rows[fold == f], rows[fold != f]
        return
    count = GENE_FOLDS if name == "one" else TOUCHED_FOLDS
    measured = np.unique(train.gene)
    of_gene = np.zeros(n, np.int64)
    of_gene[measured] = rng.permutation(np.arange(len(measured)) % count)
    if name == "one":
        for f in range(count):
            inside = np.bincount(train.row, weights=of_gene[train.gene] == f, minlength=len(train))
            yield rows[(inside == 1) & (train.order > 1)], rows[inside == 0]
        return
    mask = np.zeros(len(train), np.int64)
    np.bitwise_or.at(mask, train.row, 1 << of_gene[train.gene])
    for touched in np.unique(mask[train.order > 0]):
        yield rows[mask == touched], rows[(mask & touched) == 0]
