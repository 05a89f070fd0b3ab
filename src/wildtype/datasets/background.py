"""Background for lists of calls: sets that were crossed but are not listed, drawn and assumed to be negative.

A list of significant interactions has positives only. A screen crosses its query strains with the same
arrays, so the combinations of its queries and arrays that are not listed are its background: most of them
were tested and were not significant, some were never tested, and some are interactions that the screen
missed. None of this is known row by row, so rows drawn from it are assumed, not measured.

Legend: m rows · s query strains · a arrays · g sets of the grid · p positives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.query_pairs import query_pairs
from wildtype.datasets.reading import StageReport
from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.seeds import generator

Ints = NDArray[np.int64]
ASSUMED = "background rows with value 0, assumed"


@dataclass(frozen=True)
class Background:
    """How much background is drawn, and with which seed.

    Attributes
    ----------
    per_call : mapping of int to int
        By number of genes (2 or 3): how many sets are drawn for every listed one. Where the grid holds fewer,
        all of it is taken.
    seed : int
        Of the draw.
    """

    per_call: Mapping[int, int] = field(default_factory=lambda: {2: 2, 3: 10})
    seed: int = 0


def grid(table: MutantTable) -> dict[int, Ints]:
    """Return the sets that the screens behind a list of calls crossed, by order: {2: [g, 2], 3: [g, 3]}.

    The query pairs are those of the triples (`query_pairs`); their third genes are the arrays. A pair is a
    gene of a query pair with an array, and so is the control of such a query. Arrays are those of the triples
    and the genes that are in a listed pair with a query gene. Sets ascend and are distinct; sets with a
    repeated gene are left out.

    Raises
    ------
    DatasetError
        If there are no triples, from which the queries are found.
    """
    at = np.flatnonzero(table.order == 3)
    if not at.size:
        raise DatasetError("a grid of queries and arrays is found from triples, and there are none")
    triples = np.unique(table.take(at).matrix(3), axis=0)
    query = query_pairs(triples)
    queries = np.unique(query, axis=0)
    genes = np.unique(queries)
    # The third gene of a triple is the sum of its genes less those of its query pair.
    arrays = [triples.sum(1) - query.sum(1)]
    pairs = table.take(np.flatnonzero(table.order == 2)).matrix(2)
    for mine, other in ((0, 1), (1, 0)):
        arrays.append(pairs[np.isin(pairs[:, mine], genes), other])
    array = np.unique(np.concatenate(arrays))
    found = {2: _crossed(genes[:, None], array), 3: _crossed(queries, array)}
    return {order: np.unique(sets, axis=0) for order, sets in found.items()}


def _crossed(strains: Ints, array: Ints) -> Ints:
    """Return [g, k + 1] every strain [s, k] with every array [a] that is none of its genes, ascending."""
    left = np.repeat(strains, len(array), axis=0)
    right = np.tile(array, len(strains))
    crossed = np.concatenate([left, right[:, None]], axis=1)[(left != right[:, None]).all(1)]
    return np.sort(crossed, axis=1)


def add_background(dataset: Dataset, background: Background) -> Dataset:
    """Return a dataset of listed calls with background rows of value 0 added.

    A drawn gene has the kind that it has in most listed rows (`Kind.ABSENT` where it is in none). A set
    that is listed with any kinds or sign is never drawn. The draw depends on the listed sets and the seed,
    not on the order of rows.

    Parameters
    ----------
    dataset : Dataset
        Listed calls of one phenotype and one condition, of two and three genes.
    background : Background
        How much.

    Raises
    ------
    DatasetError
        If the dataset has several phenotypes or conditions, rows of other orders, or no triples.
    """
    table = dataset.table
    if len(dataset.phenotypes) != 1 or len(dataset.conditions) != 1:
        raise DatasetError(
            f"background of dataset {dataset.name!r}: expected one phenotype in one condition, received "
            f"{len(dataset.phenotypes)} in {len(dataset.conditions)}; select one first"
        )
    if not np.isin(table.order, (2, 3)).all():
        raise DatasetError(f"background of dataset {dataset.name!r}: expected rows of two and three genes")
    n = len(dataset.organism.genes)
    kind = _usual_kind(table, n)
    parts = [table]
    added, held = 0, grid(table)
    for order, sets in held.items():
        listed = np.unique(table.take(np.flatnonzero(table.order == order)).matrix(order), axis=0)
        # A listed set is a known positive, whatever its kinds: as a negative it would contradict a label.
        free = sets[~np.isin(_codes(sets, n), _codes(listed, n))]
        count = min(background.per_call.get(order, 0) * len(listed), len(free))
        rng = generator(background.seed, f"background/{order}")
        # Sorting makes the table independent of the order of the draw.
        drawn = free[np.sort(rng.choice(len(free), count, replace=False))]
        if len(drawn):
            parts.append(
                MutantTable.from_matrix(drawn, kind=kind[drawn].reshape(-1), value=np.zeros(len(drawn)))
            )
        added += len(drawn)
    everything = MutantTable.concatenate(parts)
    size = {order: len(sets) for order, sets in held.items()}
    report = StageReport(
        "background",
        "sampled",
        f"seed {background.seed}",
        len(table),
        len(everything),
        added={ASSUMED: added},
    )
    note = (
        f"{added:,} rows are background, drawn with seed {background.seed} from the sets of a query and an "
        f"array that are not listed ({size[2]:,} pairs and {size[3]:,} triples in the grid): assumed to be "
        "negative, not measured"
    )
    return replace(dataset, table=everything, notes=(note, *dataset.notes), stages=(*dataset.stages, report))


def _usual_kind(table: MutantTable, n: int) -> NDArray[np.uint8]:
    counts = np.bincount(table.gene * len(Kind) + table.kind, minlength=n * len(Kind)).reshape(n, len(Kind))
    return np.where(counts.any(1), counts.argmax(1), Kind.ABSENT).astype(np.uint8)


def _codes(sets: Ints, n: int) -> NDArray[np.uint64]:
    """Return one number per ascending set; below 2⁶⁴ for three of up to two million genes."""
    code = np.zeros(len(sets), np.uint64)
    for column in sets.T:
        code = code * np.uint64(n) + column.astype(np.uint64)
    return code
