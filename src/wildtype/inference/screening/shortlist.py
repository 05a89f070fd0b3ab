"""What to build next: the mutants that a screen kept, and what to know before building them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.inference.screening.stream import Outcome, Screen

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.inference.predictor import Predictor


def shortlist(
    predictor: Predictor,
    screen: Screen,
    found: Outcome,
    top: int,
    *,
    interval: float | None,
    max_per_gene: int | None,
    exempt: frozenset[int],
) -> pd.DataFrame:
    """Return the first ``top`` mutants per output and direction as a table.

    Columns are ``phenotype``, ``direction`` and ``rank``, those of ``Predictor.predict``, then
    ``single_fitness`` (of the genes, in their order; empty where not known) and ``linkage_kb`` (the shortest
    distance between two of the genes on one chromosome; infinite if there is none, NaN if a place is not
    known). With ``max_per_gene``, no gene but the ``exempt`` ones stands in more rows of a list than that: a
    mutant with a gene that does is passed over for the next best.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    short: list[str] = []
    lists = iter(found.best)
    for output in screen.outputs:
        for direction in screen.directions:
            best = next(lists)
            mutants = screen.mutants(best.number)
            assert mutants.rows.all()  # only mutants of their own were asked about
            genes = mutants.genes
            chosen = spread(genes, top, max_per_gene, exempt) if max_per_gene else np.arange(len(genes))[:top]
            if len(chosen) < top and len(genes) == screen.keep:
                short.append(f"{predictor.phenotypes[output]}, {direction}: {len(chosen)} of {top}")
            table = mutants.table.take(chosen)
            frame = predictor.predict_table(table, interval=interval)
            frame.insert(0, "rank", np.arange(1, len(chosen) + 1))
            frame.insert(0, "direction", direction)
            frame.insert(0, "phenotype", predictor.phenotypes[output])
            at = frame.columns.tolist().index("note")
            frame.insert(at, "linkage_kb", _linkage(predictor, genes[chosen]))
            frame.insert(at, "single_fitness", _single_fitness(predictor, genes[chosen]))
            frames.append(frame)
    out = pd.concat(frames, ignore_index=True)
    out.attrs |= {"count": screen.design.count, "asked": found.asked, "left_out": dict(found.left_out)}
    out.attrs["short"] = short
    return out


def spread(
    genes: NDArray[np.int64], top: int, max_per_gene: int, exempt: frozenset[int] = frozenset()
) -> NDArray[np.int64]:
    """Return the first ``top`` of ranked mutants [m, k] with no gene in more than ``max_per_gene``."""
    used: Counter[int] = Counter()
    chosen: list[int] = []
    for i, members in enumerate(genes.tolist()):
        if len(chosen) == top:
            break
        counted = [gene for gene in members if gene not in exempt]
        if all(used[gene] < max_per_gene for gene in counted):
            used.update(counted)
            chosen.append(i)
    return np.array(chosen, np.int64)


def _linkage(predictor: Predictor, genes: NDArray[np.int64]) -> NDArray[np.float64]:
    places = predictor.checkpoint.known.coordinates
    pairs = list(combinations(range(genes.shape[1]), 2))
    if places is None or not pairs:
        return np.full(len(genes), np.nan)
    apart = np.stack([places.distance(genes[:, i], genes[:, j]) for i, j in pairs])
    return np.asarray(apart.min(0))  # NaN if one is


def _single_fitness(predictor: Predictor, genes: NDArray[np.int64]) -> list[str]:
    values = predictor.checkpoint.known.single_fitness[genes]
    return [",".join("" if np.isnan(x) else f"{x:.3g}" for x in row) for row in values]
