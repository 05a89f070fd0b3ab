"""Measurements of one genotype in pairs: what agrees between them, and under resampling of genotypes.

Legend: m values · a genotypes with replicates · s strata (trait and environment) · e entries, one per series
of pairs and genotype · b resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.mutants.ragged import first_of_each, ranks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ENTRIES = 1 << 22  # numbers held at once while resampling


@dataclass(frozen=True, eq=False)
class Values:
    """Different values in the order of stratum, genotype and label, whatever the order of the rows read.

    Attributes
    ----------
    stratum, genotype, label : int64 [m]
        Trait and environment; genotype; replicate or study (0 where any two measurements are replicates).
    value : float64 [m]
        Standardised within each stratum, after centring each label of it.
    sd : float64 [s]
        What the values of each stratum were divided by; 0 where they are all equal.
    names : list of (str, str) [s]
        Trait and environment in words.
    copies : int64 [s]
        Numbers left out because they stand twice.
    """

    stratum: Ints
    genotype: Ints
    label: Ints
    value: Floats
    sd: Floats
    names: list[tuple[str, str]]
    copies: Ints


def _ranks_of_text(texts: Sequence[str], codes: Ints) -> Ints:
    return ranks(np.array(texts, dtype=str))[codes]


def _less_mean(value: Floats, group: Ints) -> Floats:
    return np.asarray(value - (np.bincount(group, weights=value) / np.bincount(group))[group])


def values_of(m: Measurements, between: str) -> Values:
    """Return the different values of one phenotype; see `ceilings.BETWEEN` for what ``between`` may be."""
    # By what they say, not by their codes: the same measurements in another order give the same numbers.
    environment = _ranks_of_text([f"{e}\t{e.id}" for e in m.environments], m.environment)
    stratum = ranks(_ranks_of_text(m.traits, m.trait), environment)
    genotype = m.genotypes[1]
    study = _ranks_of_text([one.name for one in m.studies], m.study)
    replicate = ranks(study, _ranks_of_text(m.replicates, m.replicate))
    names = [
        (m.traits[m.trait[row]], str(m.environments[m.environment[row]])) for row in first_of_each(stratum)
    ]
    order = np.lexsort((replicate, m.sd, m.value, genotype, stratum))
    new = np.diff(ranks(stratum, genotype, m.value, m.sd)[order], prepend=-1) != 0
    copies = np.bincount(stratum[order][~new], minlength=len(names))
    kept = order[new]
    stratum, genotype, value = stratum[kept], genotype[kept], m.value[kept]
    label = {"replicates": replicate, "studies": study}.get(between, np.zeros_like(study))[kept]
    largest = np.zeros(len(names))
    np.maximum.at(largest, stratum, np.abs(value))
    if between != "measurements":
        group = ranks(stratum, genotype, label)
        first = first_of_each(group)
        value = np.bincount(group, weights=value) / np.bincount(group)
        stratum, genotype, label = stratum[first], genotype[first], label[first]
        value = _less_mean(value, ranks(stratum, label))
    value = _less_mean(value, stratum)
    sd = np.sqrt(np.bincount(stratum, weights=value**2) / np.bincount(stratum))
    sd[sd <= 1e-12 * largest] = 0.0
    return Values(stratum, genotype, label, value / np.where(sd > 0, sd, 1)[stratum], sd, names, copies)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Mean products of paired measurements, one entry per series and genotype.

    Attributes
    ----------
    series, stratum, genotype : int64 [e]
        Which two labels of which stratum are paired; its trait and environment; the genotype.
    moments : float64 [e, 5]
        x, y, x², y² and xy of a pair, averaged over all ordered pairs of the genotype's measurements (for one
        pair of labels there is one).
    """

    series: Ints
    stratum: Ints
    genotype: Ints
    moments: Floats

    def take(self, entries: NDArray[np.bool_]) -> Pairs:
        """Return the given entries."""
        return Pairs(*(getattr(self, f.name)[entries] for f in fields(self)))


def any_two(values: Values) -> Pairs:
    """Return all pairs of values of one genotype: one series per stratum, genotypes of equal weight."""
    group = ranks(values.stratum, values.genotype)
    first, n = np.unique(group, return_index=True, return_counts=True)[1:]
    total, square = (np.bincount(group, weights=values.value**power) for power in (1, 2))
    again = n > 1
    first, n, total, square = first[again], n[again], total[again], square[again]
    product = (total**2 - square) / (n * (n - 1))
    moments = np.stack([total / n, total / n, square / n, square / n, product], axis=1)
    return Pairs(values.stratum[first], values.stratum[first], values.genotype[first], moments)


def two_labels(values: Values) -> Pairs:
    """Return the pairs of values of one genotype with two labels: one series per two labels of a stratum."""
    group = ranks(values.stratum, values.genotype)
    lefts, rights, apart = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 1
    while apart < group.size and (same := group[apart:] == group[:-apart]).any():
        lefts.append(np.flatnonzero(same))
        rights.append(lefts[-1] + apart)
        apart += 1
    left, right = np.concatenate(lefts), np.concatenate(rights)
    x, y = values.value[left], values.value[right]
    series = ranks(values.stratum[left], values.label[left], values.label[right])
    moments = np.stack([x, y, x**2, y**2, x * y], axis=1)
    return Pairs(series, values.stratum[left], values.genotype[left], moments)


def statistics(pairs: Pairs, genotype: Ints, weights: Floats, strata: int) -> Floats:
    """Return [3, b, s] correlation, covariance and noise variance under weights [b, a] of the genotypes.

    A stratum of several series gets their mean, weighted by their genotypes; NaN where none is defined.
    """
    sums = np.zeros((4, len(weights), strata))
    entries = np.column_stack([np.ones(len(genotype)), pairs.moments])
    order = np.argsort(pairs.series, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(pairs.series[order])) + 1):
        n, *products = (weights[:, genotype[at]] @ entries[at]).T
        with np.errstate(invalid="ignore", divide="ignore"):
            x, y, xx, yy, xy = (product / n for product in products)
            covariance, var_x, var_y = xy - x * y, xx - x**2, yy - y**2
            r = covariance / np.sqrt(var_x * var_y)
        use = (n > 0) & (np.minimum(var_x, var_y) > 1e-12)  # values are standardised
        each = (np.ones_like(r), r, covariance, (var_x + var_y) / 2 - covariance)
        for k, statistic in enumerate(each):
            sums[k, :, pairs.stratum[at[0]]] += np.where(use, n * statistic, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[1:] / sums[0])


def resampled(pairs: Pairs, genotype: Ints, strata: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return [b, s] the correlation of every stratum in every resample of the genotypes."""
    a = int(genotype.max()) + 1
    step = max(_ENTRIES // max(a, len(genotype)), 1)
    parts = []
    for start in range(0, resamples, step):
        # One resample after the other, so that the draws do not depend on how many are held at once.
        drawn = [np.bincount(rng.integers(0, a, a), minlength=a) for _ in range(min(step, resamples - start))]
        parts.append(statistics(pairs, genotype, np.array(drawn, np.float64), strata)[0])
    return np.concatenate(parts)
