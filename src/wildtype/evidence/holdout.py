"""Holdout schemes: what a training mutant sees of the other measurements, so that it sees what a test mutant
will see.

A test mutant is predicted from all training measurements. How informative they are depends on the split:
nothing is measured of an unseen gene. A training mutant is therefore shown a part of the training
measurements only: never those of its own gene set, and those of as few of its genes as a held-out mutant
is shown.

======  =============================================  ===================================================
scheme  most held-out mutants have                     a training mutant sees the training mutants …
======  =============================================  ===================================================
seen    no unseen gene                                 of the other random folds of gene sets
one     some unseen genes, but not all                 without any gene of one fold; it has one such gene
none    unseen genes only                              without any gene of any gene fold that it touches
pair    three or more genes, and a leading pair that   without its leading pair and those of the same fold
        is in (nearly) no training mutant
======  =============================================  ===================================================

`folds` splits a table once, for baselines; `wildtype.evidence.out_of_fold` draws folds anew in every epoch.

Legend: n genes · m rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.mutants import MutantTable
from wildtype.mutants.rows import Codes, pairs_of
from wildtype.seeds import generator

SCHEMES = ("seen", "one", "none", "pair")
ROW_FOLDS = 10
GENE_FOLDS = 20
TOUCHED_FOLDS = 8
"""Gene folds of ``none``: few, since a mutant of k genes hides up to k of them."""
NEW_PAIRS = 0.2
"""Leading pairs count as new where held-out ones are in less than this fraction of the training mutants that
those of training mutants are in.
"""

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


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
    # Sorted by row, then by count: the last pair of each row is its leading one.
    last = np.flatnonzero(np.diff(row[order], append=-1))
    code, most = np.full(len(table), -1, np.int64), np.zeros(len(table), np.int64)
    at_row = row[order][last]
    code[at_row] = (left * n + right)[order][last]
    most[at_row] = count[order][last]
    return code, most


def holdout_scheme(train: MutantTable, validation: MutantTable, n: int) -> str:
    """Return the holdout scheme of a split, judged by the genes of the validation rows, never by labels."""
    rows = np.flatnonzero(validation.order > 0)
    if not rows.size:
        return "seen"
    seen = np.zeros(n, bool)
    seen[train.gene] = True
    known = np.bincount(validation.row, weights=seen[validation.gene], minlength=len(validation))[rows]
    order = validation.order[rows]
    fractions = {"none": (known == 0).mean(), "one": ((known > 0) & (known < order)).mean()}
    fractions["seen"] = 1 - fractions["none"] - fractions["one"]
    best = max(("seen", "one", "none"), key=lambda name: fractions[name])
    if best == "seen" and np.median(order) >= 3:
        many = train.take(train.order >= 3)
        if len(many):
            _, own = leading_pairs(many, train, n)
            _, held = leading_pairs(validation.take(rows), train, n)
            # The pair of a training row is in that row itself, which is not evidence for it: minus 1.
            if np.median(held) < NEW_PAIRS * (np.median(own) - 1):
                return "pair"
    return best


def folds(scheme: str, train: MutantTable, n: int, seed: int) -> Iterator[Fold]:
    """Yield (rows predicted, rows they may see) of the training table.

    A row may be predicted in several folds or in none. It never sees itself, nor any row of its gene set, in
    any condition, of any kind.
    """
    # The name of the stream stays as it was: another one would draw other folds.
    rng = generator(seed, f"imitation {scheme}")
    rows = np.arange(len(train))
    if scheme in ("seen", "pair"):
        group = train.set_id
        if scheme == "pair":
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
    count = GENE_FOLDS if scheme == "one" else TOUCHED_FOLDS
    measured = np.unique(train.gene)
    of_gene = np.zeros(n, np.int64)
    of_gene[measured] = rng.permutation(np.arange(len(measured)) % count)
    if scheme == "one":
        for f in range(count):
            inside = np.bincount(train.row, weights=of_gene[train.gene] == f, minlength=len(train))
            # Rows with one gene of the fold: with two, the second would be unseen too.
            yield rows[(inside == 1) & (train.order > 1)], rows[inside == 0]
        return
    mask = np.zeros(len(train), np.int64)
    np.bitwise_or.at(mask, train.row, 1 << of_gene[train.gene])
    for touched in np.unique(mask[train.order > 0]):
        yield rows[mask == touched], rows[(mask & touched) == 0]


def check_holdout(fractions: Mapping[str, float]) -> None:
    """Refuse unknown holdout schemes, and fractions that are negative or all 0: raises ``ConfigError``."""
    for name, fraction in fractions.items():
        if name not in SCHEMES or not fraction >= 0:
            raise ConfigError(
                f"model.evidence.holdout.{name}={fraction}: known holdout schemes are {', '.join(SCHEMES)}, "
                f"fractions at least 0"
            )
    if not sum(fractions.values()):
        raise ConfigError(
            "model.evidence.holdout gives no holdout scheme a fraction above 0: name one, or leave it out"
        )
