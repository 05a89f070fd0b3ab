"""Models over many phenotypes on identical rows: independent ones, vectors of traits, and per-gene profiles.

Three tables, each a `Comparison`, whose headline is an unweighted mean of Pearson correlations over mutants:

=====================  =================================================================================
`evaluate_across`      mean over phenotypes, each in its unit; a phenotype without a defined correlation is
                       left out, and a constant prediction within a phenotype counts as a correlation of 0
`evaluate_vector`      mean over members of a group (morphology, metabolome, 16 drugs). Labels are scaled by
                       mean and sd of each member's training rows, so that squared errors can be pooled
`evaluate_profiles`    mean over genes of a per-gene phenotype, as the members of a vector
=====================  =================================================================================

A mutant has a row for every phenotype it was measured for. The bootstrap draws genes (or gene sets) once for
all phenotypes, so that their dependence through common mutants is in the interval.

Legend: m rows of all phenotypes · n genes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wildtype.datasets import Dataset, Phenotype
from wildtype.errors import DatasetError
from wildtype.evaluation.compare import ComparisonOptions, evaluate_predictions, rank_models
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.metrics import Bound, Floats, Statistic, among, bind, mean_of, pearson
from wildtype.mutants.ragged import joint

if TYPE_CHECKING:
    from wildtype.datasets.scaling import LabelScaler

AVERAGED = ("pearson", "pearson_by_condition", "spearman", "r2", "auroc_strong", "average_precision")
"""Metrics without a unit; squared errors of different phenotypes cannot be averaged."""
CORRELATIONS = ("pearson", "pearson_by_condition", "spearman")
CONSTANT = "all predictions are equal"
GENES_SHOWN = 300
"""Most genes in a table of profiles: the bootstrap holds rows × resamples at once."""
Ints = NDArray[np.int64]


def evaluate_across(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    **options: Unpack[ComparisonOptions],
) -> Comparison:
    """Score predictions of several models by the mean over phenotypes of every metric of ``AVERAGED``.

    Every phenotype has the same weight, whatever its number of rows. Phenotypes whose labels allow no
    correlation (all equal, or fewer than two) are left out for all models and named. A prediction that is
    constant within a phenotype has correlation 0 there, unless it is constant in all of them; the notes count
    these cases.

    Parameters
    ----------
    dataset : Dataset
        Holds the labels.
    rows : int64 [M]
        Row numbers, of two or more phenotypes.
    predictions : mapping of str to float64 [M]
        Model name to predictions, each in the unit of its row's phenotype.
    **options
        Of ``evaluate_predictions``.

    Returns
    -------
    Comparison
        Its ``phenotype`` is ``"mean over p phenotypes"``; squared errors, and metrics of signs, are
        undefined.

    Raises
    ------
    DatasetError
        If fewer than two phenotypes have labels that allow a correlation.
    """
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    members: list[tuple[int, Ints]] = []
    left_out = []
    for p in np.unique(table.phenotype):
        of_p = np.flatnonzero(table.phenotype == p)
        truth = table.value[of_p]
        if "pearson" in bind(truth, truth).statistics:
            members.append((int(p), of_p))
        else:
            left_out.append(dataset.phenotypes[p].name)
    if len(members) < 2:
        raise DatasetError(
            f"{len(members)} phenotypes of dataset {dataset.name!r} have labels that allow a correlation, "
            "expected at least 2 to average over: compare on the phenotype itself"
        )
    bound, constant = {}, {}
    for model, predicted in predictions.items():
        parts = [_bind(dataset, at[of_p], np.asarray(predicted)[of_p], p) for p, of_p in members]
        bound[model] = _mean(parts, [of_p for _, of_p in members])
        constant[model] = sum(part.undefined.get("pearson") == CONSTANT for part in parts)
    notes = [
        f"{model} predicts one number in {count} of {len(members)} phenotypes: a correlation of 0 there"
        for model, count in constant.items()
        if 0 < count < len(members)
    ]
    notes.append("squared errors and metrics of signs are not averaged over phenotypes: see each by itself")
    if left_out:
        notes.append(f"left out, since labels allow no correlation: {', '.join(left_out)}")
    phenotype = f"mean over {len(members)} phenotypes"
    return rank_models(
        table,
        bound,
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        phenotype=phenotype,
        noise=dataset.noise,
        notes=notes,
        **options,
    )


def _bind(dataset: Dataset, at: Ints, predicted: NDArray[np.float64], p: int) -> Bound:
    table, kind = dataset.table.take(at), dataset.phenotypes[p]
    strong, positive = (kind.strong, kind.strong_positive) if kind.min_order >= 2 else (None, None)
    return bind(table.value, predicted, strong=strong, strong_positive=positive, condition=table.condition)


def _mean(parts: Sequence[Bound], rows: Sequence[Ints]) -> Bound:
    """Return the mean over phenotypes, bound to all rows [m]; ``rows`` has the positions of each."""
    statistics: dict[str, Statistic] = {}
    undefined: dict[str, str] = {}
    for metric in AVERAGED:
        found: list[Statistic] = []
        for part, of_part in zip(parts, rows, strict=True):
            if metric in part.statistics:
                found.append(among(of_part, part.statistics[metric]))
            elif metric in CORRELATIONS and part.undefined[metric] == CONSTANT:
                # A model that ignores the mutants has learned nothing of this phenotype. Leaving the
                # phenotype out would reward it.
                found.append(_zero)
            else:
                undefined[metric] = part.undefined[metric]
                break
        if len(found) == len(parts) and all(statistic is _zero for statistic in found):
            undefined[metric] = CONSTANT
        elif len(found) == len(parts):
            statistics[metric] = mean_of(found)
    return Bound(statistics, undefined)


def _zero(weights: Floats) -> Floats:
    return np.zeros(weights.shape[1])


def evaluate_vector(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    scaler: LabelScaler,
    group: str,
    **options: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare models on all members of a group.

    Members with fewer than three labels on these rows, or equal ones, are left out; a note counts them.

    Parameters
    ----------
    dataset, rows, predictions
        As for ``evaluate_predictions``; rows are of members of the group.
    scaler : LabelScaler
        Fitted on training rows of ``dataset``.
    group : str
        Name.
    **options
        Of ``evaluate_predictions``.

    Raises
    ------
    DatasetError
        If no member can be scored.
    """
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    scored, left_out = [], 0
    for p in np.unique(table.phenotype):
        of_p = np.flatnonzero(table.phenotype == p)
        if of_p.size < 3 or np.ptp(table.value[of_p]) == 0:
            left_out += 1
        else:
            scored.append(of_p)
    if not scored:
        raise DatasetError(f"no member of {group!r} has three different labels on these rows: test on more")
    keep = np.sort(np.concatenate(scored))
    table = table.take(keep)
    # Labels keep their signs, also where training flipped them.
    scaler = replace(scaler, sd=np.abs(scaler.sd))
    # One pseudo-phenotype in which a (member, condition) pair is a condition: ``pearson_by_condition`` is
    # then the mean over members, and all other metrics and the bootstrap are those of any single phenotype.
    scaled = replace(
        table,
        value=scaler.transform(table.value, table.phenotype).astype(np.float32),
        condition=joint(
            [(table.phenotype, len(dataset.phenotypes)), (table.condition, len(dataset.conditions))]
        ),
        phenotype=np.zeros(len(table), np.int64),
        sd=np.full(len(table), np.nan, np.float32),
    )
    pairs = [f"{p.name}, {c}" for p in dataset.phenotypes for c in dataset.conditions]
    pooled = replace(
        dataset,
        table=scaled,
        phenotypes=(Phenotype(group, unit="sd of training labels"),),
        conditions=tuple(pairs),
        targets=(group,),
        noise="",
    )
    values = {
        name: scaler.transform(np.asarray(one, dtype=np.float64)[keep], table.phenotype)
        for name, one in predictions.items()
    }
    found = evaluate_predictions(pooled, np.arange(len(table)), values, phenotype=group, **options)
    notes = [
        f"{len(scored)} members of {group}, each scaled by its training labels; the mean over conditions is "
        f"that over members"
    ]
    if left_out:
        notes.append(f"{left_out} members have fewer than three different labels here and are left out")
    return replace(found, dataset_sha256=dataset.sha256, notes=(*notes, *found.notes))


def evaluate_profiles(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, NDArray[Any]],
    scaler: LabelScaler,
    phenotype: str,
    **options: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare models on a per-gene phenotype; its genes are the members of a vector.

    Parameters
    ----------
    dataset, rows
        As for ``evaluate_predictions``.
    predictions : mapping of str to float32 [m, n]
        In the phenotype's unit.
    scaler : LabelScaler
        Fitted on training rows of ``dataset``.
    phenotype : str
        Name.
    **options
        Of ``evaluate_predictions``.

    Notes
    -----
    At most ``GENES_SHOWN`` genes are in the table, evenly spaced over the measured ones.
    """
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    assert table.profile is not None
    assert table.profiles is not None
    truth = table.profiles[table.profile]
    measured = np.flatnonzero(np.isfinite(truth).sum(0) >= 3)
    # Spaced evenly, not chosen by their labels: the most variable genes would flatter every model.
    genes = measured[
        np.unique(np.linspace(0, len(measured) - 1, min(len(measured), GENES_SHOWN)).astype(int))
    ]
    row, column = np.nonzero(np.isfinite(truth[:, genes]))
    p = dataset.phenotype_index(phenotype)
    long = replace(
        table.take(row),
        value=truth[:, genes][row, column],
        phenotype=column.astype(np.int64),
        profile=None,
        profiles=None,
    )
    names = [dataset.organism.genes.names[g] for g in genes]
    members = tuple(Phenotype(name, unit=dataset.phenotypes[p].unit, group=phenotype) for name in names)
    flat = replace(dataset, table=long, phenotypes=members, targets=tuple(names))
    one = type(scaler)(*(np.repeat(getattr(scaler, key)[p], len(genes)) for key in ("mean", "sd", "count")))
    values = {name: np.asarray(each)[:, genes][row, column] for name, each in predictions.items()}
    found = evaluate_vector(flat, np.arange(len(long)), values, one, phenotype, **options)
    note = f"{len(genes):,} of {len(measured):,} measured genes are scored"
    return replace(found, dataset_sha256=dataset.sha256, notes=(note, *found.notes))


def by_member(
    dataset: Dataset, rows: ArrayLike, predictions: Mapping[str, ArrayLike], members: Sequence[int]
) -> pd.DataFrame:
    """Return one line per phenotype at ``members``: group, rows, and every model's Pearson."""
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    lines = []
    for p in members:
        of_p = np.flatnonzero(table.phenotype == p)
        kind = dataset.phenotypes[p]
        line: dict[str, Any] = {"phenotype": kind.name, "group": kind.group, "rows": of_p.size}
        for name, values in predictions.items():
            line[name] = pearson(table.value[of_p], np.asarray(values, dtype=np.float64)[of_p])
        lines.append(line)
    return pd.DataFrame(lines)
