"""`PredictedRows`: predictions of the test rows of one phenotype, and where their errors are large.

Everything is computed from the predictions that a run stores, so no figure needs the model. Errors of groups
are root mean squared errors, with intervals from the cluster bootstrap over the rows of the group.

Legend: m rows · b bins along an axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.query_pairs import query_strains, strain_of_rows
from wildtype.errors import DatasetError
from wildtype.evaluation.bootstrap import IntervalEstimate, bootstrap, clusters_for, find_clusters, interval
from wildtype.evaluation.metrics import Floats, Undefined, mse_statistic, pearson
from wildtype.evaluation.noise import NoiseGuide, guide
from wildtype.mutants import MutantTable

if TYPE_CHECKING:
    import pandas as pd

Ints = NDArray[np.int64]
BINS = ((500, 24), (20_000, 48), (math.inf, 72))
"""Bins along an axis for fewer rows than the first number."""
EFFECT_BINS = 9
REPLICATES = 200
LEAST_ROWS = 10
"""Fewest rows of a query strain whose error is shown."""
MOST_QUERIES = 12


def gene_sets(texts: pd.Series[str]) -> tuple[MutantTable, tuple[str, ...]]:
    """Return the gene sets of texts such as ``"YAL001C,YBR002W"`` [M], and the names of the genes in them."""
    names, gene = np.unique(np.array(",".join(texts).split(",")), return_inverse=True)
    table = MutantTable.build(gene.reshape(-1), np.cumsum([0, *(texts.str.count(",") + 1)]))
    return table, tuple(names.tolist())


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Test rows of one phenotype.

    Attributes
    ----------
    phenotype, unit : str
        Name of the phenotype, and its unit.
    table : MutantTable
        Gene sets of the m rows; positions refer to ``genes``.
    genes : tuple of str
        Systematic names.
    condition : tuple of str
        Of each row.
    measured, sd : float64 [M]
        In the phenotype's unit; sd is NaN where it is not known.
    predicted : mapping of str to float64 [M]
        By model: the run's model first, then the best baseline where there is one.
    calls : bool
        Whether labels are 0 and 1 only.
    standard : mapping of str to str
        Names to show for systematic ones, where there are any.
    """

    phenotype: str
    unit: str
    table: MutantTable
    genes: tuple[str, ...]
    condition: tuple[str, ...]
    measured: Floats
    sd: Floats
    predicted: Mapping[str, Floats]
    calls: bool = False
    standard: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        phenotype: str,
        models: Sequence[str],
        *,
        unit: str = "",
        calls: bool = False,
        standard: Mapping[str, str] | None = None,
    ) -> PredictedRows:
        """Take the rows of a phenotype from stored predictions, where the label is a number.

        Raises
        ------
        DatasetError
            If there is none, or a model has no predictions.
        """
        own = frame[(frame["phenotype"] == phenotype) & np.isfinite(frame["value"])]
        if not len(own):
            raise DatasetError(f"the stored predictions have no rows of {phenotype!r} with a number")
        if missing := [model for model in models if model not in own]:
            raise DatasetError(f"there are no stored predictions of {missing[0]!r}: train again")
        table, genes = gene_sets(own["genes"])
        values = {name: own[name].to_numpy(np.float64) for name in ("value", "sd", *models)}
        return cls(
            phenotype,
            unit,
            table,
            genes,
            tuple(own["condition"]),
            values["value"],
            values["sd"],
            {model: values[model] for model in models},
            calls,
            standard or {},
        )

    def __len__(self) -> int:
        return len(self.measured)

    def names(self, row: int) -> tuple[str, ...]:
        """Return the perturbed genes of a row."""
        start, stop = self.table.offsets[row : row + 2]
        return tuple(self.genes[gene] for gene in self.table.gene[start:stop])

    def noise(self, stated: str = "") -> NoiseGuide:
        """Return the noise guide of these labels."""
        return guide(self.measured, self.sd, stated)

    def pearson(self, model: str) -> float:
        """Return a model's correlation with the labels, NaN where it is undefined."""
        return pearson(self.measured, self.predicted[model])


@dataclass(frozen=True, eq=False)
class Density:
    """Rows counted by measured value (first axis) and predicted value (second axis).

    Attributes
    ----------
    counts : int64 [b, b']
        Rows per rectangle.
    measured, predicted : float64 [b + 1], [b' + 1]
        Edges.
    outside : int
        Rows beyond the edges, which are not drawn.
    """

    counts: Ints
    measured: Floats
    predicted: Floats
    outside: int


def density(rows: PredictedRows, model: str, *, bins: int | None = None) -> Density:
    """Count the rows per rectangle; all models share the edges.

    The edges are equally spaced, and the same on both axes except for calls, whose labels have two columns.
    """
    # One outlier would squeeze all others into a few bins, so up to 0.1 % of the numbers lie beyond the
    # edges.
    every = np.concatenate([rows.measured, *rows.predicted.values()])
    low, high = np.quantile(every[np.isfinite(every)], [0.0005, 0.9995])
    margin = 0.02 * (high - low) or 0.5
    if bins is None:
        bins = next(count for limit, count in BINS if len(rows) < limit)
    edges = np.linspace(low - margin, high + margin, bins + 1)
    columns = np.array([-0.5, 0.5, 1.5]) if rows.calls else edges
    counts = np.histogram2d(rows.measured, rows.predicted[model], bins=[columns, edges])[0].astype(np.int64)
    return Density(counts, columns, edges, len(rows) - int(counts.sum()))


@dataclass(frozen=True)
class GroupError:
    """Root mean squared error of every model on some rows, in the phenotype's unit.

    Attributes
    ----------
    label : str
        Which rows.
    rows : int
        How many.
    errors : mapping of str to IntervalEstimate
        By model, with 95 % intervals.
    mean : float
        Mean label of the rows.
    """

    label: str
    rows: int
    errors: Mapping[str, IntervalEstimate]
    mean: float


def group_error(
    rows: PredictedRows, at: Ints, label: str, *, replicates: int = REPLICATES, seed: int = 0
) -> GroupError:
    """Return the error of every model on rows ``at``; NaN where a prediction is not finite."""
    statistics = {}
    for model, predicted in rows.predicted.items():
        try:
            statistics[model] = mse_statistic(rows.measured[at], predicted[at])
        except Undefined:
            continue
    table = rows.table.take(at)
    clusters = find_clusters(table, clusters_for(table))
    drawn = bootstrap(statistics, clusters, replicates=replicates, seed=seed) if statistics else {}
    equal = np.ones((at.size, 1))
    errors = {
        # The bootstrap is of the mean square; its quantiles commute with the square root, which is monotonic.
        model: IntervalEstimate(float(np.sqrt(statistics[model](equal)[0])), *interval(np.sqrt(drawn[model])))
        if model in statistics
        else IntervalEstimate()
        for model in rows.predicted
    }
    return GroupError(label, int(at.size), errors, float(rows.measured[at].mean()))


def error_by_order(rows: PredictedRows) -> list[GroupError]:
    """Return the error by number of perturbed genes."""
    order = rows.table.order
    return [
        group_error(rows, np.flatnonzero(order == k), f"{k} gene{'' if k == 1 else 's'}")
        for k in np.unique(order).tolist()
    ]


def error_by_effect(rows: PredictedRows, *, bins: int = EFFECT_BINS) -> list[GroupError]:
    """Return the error by measured value, in bins of equal width over the middle 99 % of labels.

    The outermost bins include all labels beyond; bins without rows are left out. Calls have one group each.
    """
    if rows.calls:
        return [
            group_error(rows, np.flatnonzero(rows.measured == call), text)
            for call, text in ((0.0, "no call"), (1.0, "call"))
            if (rows.measured == call).any()
        ]
    low, high = np.quantile(rows.measured, [0.005, 0.995])
    edges = np.linspace(low, high, bins + 1)
    which = np.clip(np.searchsorted(edges, rows.measured, side="right") - 1, 0, bins - 1)
    edges[[0, -1]] = rows.measured.min(), rows.measured.max()
    return [
        group_error(
            rows, np.flatnonzero(which == i), f"{edges[i]:.3g} to {edges[i + 1]:.3g}".replace("-", "−")
        )
        for i in np.unique(which).tolist()
    ]


@dataclass(frozen=True)
class QueryErrors:
    """Errors of query strains, and how many strains there are.

    Attributes
    ----------
    groups : tuple of GroupError
        At most ``MOST_QUERIES``, in falling order of the error of the run's model.
    queries, large : int
        Number of queries, and of those with at least ``LEAST_ROWS`` test rows, which groups are taken from.
    """

    groups: tuple[GroupError, ...]
    queries: int
    large: int


def error_by_query(rows: PredictedRows) -> QueryErrors:
    """Return the error by query strain.

    A gene set does not say which genes came from the query strain. `query_pairs.query_strains` infers the
    strains of doubles and triples from the test rows, which for doubles is a guess.
    """
    strains = query_strains(rows.table) if np.isin(rows.table.order, (2, 3)).any() else []
    of_row = strain_of_rows(rows.table, strains, len(rows.genes))
    counts = np.bincount(of_row[of_row >= 0], minlength=len(strains))
    large = np.flatnonzero(counts >= LEAST_ROWS)
    first = next(iter(rows.predicted.values()))
    inside = np.flatnonzero(of_row >= 0)
    squares = (rows.measured - first)[inside] ** 2
    mean = np.bincount(of_row[inside], weights=squares, minlength=len(strains))[large] / counts[large]
    worst = large[np.argsort(-mean, kind="stable")[:MOST_QUERIES]]
    named = [rows.standard.get(gene, gene) for gene in rows.genes]
    groups = [
        group_error(rows, np.flatnonzero(of_row == i), " + ".join(named[g] for g in strains[i]))
        for i in worst.tolist()
    ]
    return QueryErrors(tuple(groups), int((counts > 0).sum()), int(large.size))


def best_and_worst(rows: PredictedRows, model: str, count: int) -> tuple[Ints, Ints]:
    """Return the rows that a model predicts best and worst, the most extreme first.

    Worst are the rows with the largest absolute error. Best are those with the smallest error among the tenth
    of rows with labels farthest from the median: near the median a small error is easy.
    """
    error = np.abs(rows.measured - rows.predicted[model])
    effect = np.abs(rows.measured - np.median(rows.measured))
    known = np.flatnonzero(np.isfinite(error))
    strongest = known[np.argsort(-effect[known], kind="stable")[: max(len(known) // 10, count)]]
    best = strongest[np.argsort(error[strongest], kind="stable")[:count]]
    return best, known[np.argsort(-error[known], kind="stable")[:count]]
