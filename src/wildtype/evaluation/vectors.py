"""Phenotypes of many numbers on identical rows: vectors of traits, and one number per gene.

A vector (morphology, metabolome, 16 drugs) is ranked by the mean over its members of the Pearson over
mutants; a number per gene by the mean over genes of the Pearson over mutants. Both are told as one
`Comparison`, whose labels are scaled as training saw them (each member by its own mean and sd), so that
members of different units may stand in one table; its ``pearson_by_condition`` is that mean, a member in one
condition counting as a condition.

Legend: m rows · n genes · r resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wildtype.datasets import Dataset, Phenotype
from wildtype.errors import DatasetError
from wildtype.evaluation.compare import Comparison, evaluate_predictions
from wildtype.evaluation.metrics import Undefined, pearson_statistic
from wildtype.mutants.ragged import joint

if TYPE_CHECKING:
    from wildtype.datasets.scaling import LabelScaler

Floats = NDArray[np.float64]
GENES_SHOWN = 300
"""Genes that the table of a number per gene is over: the bootstrap holds rows × resamples at once."""


def compare_vector(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    scaler: LabelScaler,
    group: str,
    **options: Any,
) -> Comparison:
    """Compare models on all members of a group.

    Members whose labels on these rows are fewer than three or all equal are left out, and counted in a note.

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
    told, left_out = [], 0
    for p in np.unique(table.phenotype):
        own = np.flatnonzero(table.phenotype == p)
        if own.size < 3 or np.ptp(table.value[own]) == 0:
            left_out += 1
        else:
            told.append(own)
    if not told:
        raise DatasetError(f"no member of {group!r} has three different labels on these rows: test on more")
    keep = np.sort(np.concatenate(told))
    table = table.take(keep)
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
        f"{len(told)} members of {group}, each scaled by its training labels; the mean over conditions is "
        f"that over members",
        *(
            [f"{left_out} members have fewer than three different labels here and are left out"]
            * bool(left_out)
        ),
    ]
    return replace(found, dataset_sha256=dataset.sha256, notes=(*notes, *found.notes))


def compare_profiles(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, NDArray[Any]],
    scaler: LabelScaler,
    phenotype: str,
    **options: Any,
) -> Comparison:
    """Compare models on a phenotype that has a number per gene, as members of a vector.

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
    At most ``GENES_SHOWN`` genes are in the table, evenly spaced over those measured, whatever their labels.
    """
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    assert table.profile is not None
    assert table.profiles is not None
    truth = table.profiles[table.profile]
    measured = np.flatnonzero(np.isfinite(truth).sum(0) >= 3)
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
    found = compare_vector(flat, np.arange(len(long)), values, one, phenotype, **options)
    note = f"{len(genes):,} of {len(measured):,} measured genes are scored"
    return replace(found, dataset_sha256=dataset.sha256, notes=(note, *found.notes))


def by_member(
    dataset: Dataset, rows: ArrayLike, predictions: Mapping[str, ArrayLike], members: Sequence[int]
) -> pd.DataFrame:
    """Return a line per phenotype at ``members``: group, rows, every model's Pearson (NaN: undefined)."""
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    lines = []
    for p in members:
        own = np.flatnonzero(table.phenotype == p)
        line: dict[str, Any] = {
            "phenotype": dataset.phenotypes[p].name, "group": dataset.phenotypes[p].group, "rows": own.size
        }  # fmt: skip
        for name, values in predictions.items():
            try:
                statistic = pearson_statistic(table.value[own], np.asarray(values, dtype=np.float64)[own])
                line[name] = float(statistic(np.ones((own.size, 1)))[0])
            except Undefined:
                line[name] = float("nan")
        lines.append(line)
    return pd.DataFrame(lines)
