"""Noise ceilings: how well measurements of one genotype agree, and what that allows a perfect model to reach.

Only true replicates count: the same genotype (genes, kinds, alleles, doses) measured again in the same
environment. A repeated number with the same sd is a copy, not a replicate, and is left out; so is,
whatever its number, what a further study of the same provenance group measured of a genotype.

With y = g + e, genotypes of variance σ²_g and independent errors of variance σ²_e, two measurements of one
genotype correlate by r = σ²_g / (σ²_g + σ²_e), the reliability of one measurement (the intraclass
correlation of Fisher 1925, section 38). A model that knows g correlates with one measurement by √r, and with
the mean of n by √(n r / (1 + (n − 1) r)) (Spearman 1910, Brown 1910; Lord and Novick 1968, chapters 3, 4).

Legend: m values · a genotypes with replicates · s strata (trait and environment) · e entries, one per series
of pairs and genotype · b bootstrap resamples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.provenance import Groups, measured_again
from wildtype.errors import DatasetError
from wildtype.mutants.ragged import first_of_each, ranks
from wildtype.seeds import generator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ENTRIES = 1 << 22  # numbers held at once while resampling
GROUPS = 10_000
"""Above so many genotypes, resamples are of so many groups of them, of one size and drawn once at random: the
sums over a group are as independent as those over a genotype, and intervals as wide on average."""


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
        Trait and environment, as text.
    copies : int64 [s]
        Copies that were left out, and measurements that repeat one of their provenance group.
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


def values_of(m: Measurements, between: str, provenance: Groups) -> Values:
    """Return the different values of one phenotype; see `ceilings.BETWEEN` for what ``between`` may be."""
    # By content, not by codes: the same measurements in another order give the same numbers.
    environment = _ranks_of_text([f"{e}\t{e.id}" for e in m.environments], m.environment)
    stratum = ranks(_ranks_of_text(m.traits, m.trait), environment)
    genotype = m.genotypes[1]
    study = _ranks_of_text([one.name for one in m.studies], m.study)
    replicate = ranks(study, _ranks_of_text(m.replicates, m.replicate))
    names = [
        (m.traits[m.trait[row]], str(m.environments[m.environment[row]])) for row in first_of_each(stratum)
    ]
    # Equal numbers with equal sd are neighbours in this order: each but the first is a copy, no replicate.
    order = np.lexsort((replicate, m.sd, m.value, genotype, stratum))
    # Of a provenance group first, whatever the numbers: an equal number of its first study must stay.
    again = measured_again(m, provenance)
    order = order[~again[order]]
    new = np.diff(ranks(stratum, genotype, m.value, m.sd)[order], prepend=-1) != 0
    copies = np.bincount(np.append(stratum[order][~new], stratum[again]), minlength=len(names))
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
        # Shifts between series are not noise of a genotype, so each label is centred first.
        value = _less_mean(value, ranks(stratum, label))
    value = _less_mean(value, stratum)
    sd = np.sqrt(np.bincount(stratum, weights=value**2) / np.bincount(stratum))
    # Rounding alone leaves a tiny sd on equal values.
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
    count : float64 [e]
        How many genotypes an entry is the mean of.
    """

    series: Ints
    stratum: Ints
    genotype: Ints
    moments: Floats
    count: Floats

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
    # Mean of x y over all ordered pairs i ≠ j: ((Σx)² − Σx²) / (n (n − 1)), without listing the pairs.
    product = (total**2 - square) / (n * (n - 1))
    moments = np.stack([total / n, total / n, square / n, square / n, product], axis=1)
    stratum = values.stratum[first]
    return Pairs(stratum, stratum, values.genotype[first], moments, np.ones(len(first)))


def two_labels(values: Values) -> Pairs:
    """Return the pairs of values of one genotype with two labels: one series per two labels of a stratum."""
    group = ranks(values.stratum, values.genotype)
    lefts, rights, apart = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 1
    # Values of a genotype are neighbours: pairs at every distance, until none is in one genotype.
    while apart < group.size and (same := group[apart:] == group[:-apart]).any():
        lefts.append(np.flatnonzero(same))
        rights.append(lefts[-1] + apart)
        apart += 1
    left, right = np.concatenate(lefts), np.concatenate(rights)
    x, y = values.value[left], values.value[right]
    series = ranks(values.stratum[left], values.label[left], values.label[right])
    moments = np.stack([x, y, x**2, y**2, x * y], axis=1)
    return Pairs(series, values.stratum[left], values.genotype[left], moments, np.ones(len(left)))


def in_groups(pairs: Pairs, groups: int, rng: np.random.Generator) -> Pairs:
    """Return the means over random groups of genotypes, whose sizes differ by 1 at most."""
    genotype = ranks(pairs.genotype)
    group = rng.permutation(int(genotype.max()) + 1)[genotype] % groups
    entry = ranks(pairs.series, group)
    first, count = first_of_each(entry), np.bincount(entry).astype(np.float64)
    moments = [np.bincount(entry, weights=column) / count for column in pairs.moments.T]
    return Pairs(pairs.series[first], pairs.stratum[first], group[first], np.stack(moments, axis=1), count)


def statistics(pairs: Pairs, genotype: Ints, weights: Floats, strata: int) -> Floats:
    """Return [3, b, s] correlation, covariance and noise variance under weights [b, a] of the genotypes.

    A stratum of several series gets their mean, weighted by their genotypes; NaN where none is defined.
    """
    sums = np.zeros((4, len(weights), strata))
    entries = np.column_stack([pairs.count, pairs.moments * pairs.count[:, None]])
    order = np.argsort(pairs.series, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(pairs.series[order])) + 1):
        n, *products = (weights[:, genotype[at]] @ entries[at]).T
        with np.errstate(invalid="ignore", divide="ignore"):
            x, y, xx, yy, xy = (product / n for product in products)
            covariance, var_x, var_y = xy - x * y, xx - x**2, yy - y**2
            r = covariance / np.sqrt(var_x * var_y)
        use = (n > 0) & (np.minimum(var_x, var_y) > 1e-12)  # values are standardised
        # With y = g + e, cov(x, y) = σ²_g and the mean variance is σ²_g + σ²_e: their difference is noise.
        each = (np.ones_like(r), r, covariance, (var_x + var_y) / 2 - covariance)
        for k, statistic in enumerate(each):
            sums[k, :, pairs.stratum[at[0]]] += np.where(use, n * statistic, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[1:] / sums[0])


def resampled(pairs: Pairs, strata: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return [b, s] the correlation of every stratum in every resample of the genotypes, or of `GROUPS`."""
    genotype = ranks(pairs.genotype)
    if genotype.max() >= GROUPS:
        pairs = in_groups(pairs, GROUPS, rng)
        genotype = pairs.genotype
    a = int(genotype.max()) + 1
    step = max(_ENTRIES // max(a, len(genotype)), 1)
    parts = []
    for start in range(0, resamples, step):
        # One resample after the other, so that the draws do not depend on how many are held at once.
        drawn = [np.bincount(rng.integers(0, a, a), minlength=a) for _ in range(min(step, resamples - start))]
        parts.append(statistics(pairs, genotype, np.array(drawn, np.float64), strata)[0])
    return np.concatenate(parts)


LEAST = 3
"""Fewest genotypes with replicates from which a correlation is given."""
BETWEEN = {
    "measurements": "any two measurements of one genotype",
    "replicates": "means of one genotype in two replicates (mating types, batches)",
    "studies": "means of one genotype in two studies",
}
"""What is taken for two replicates; with the latter two, shifts between series are not counted as noise."""
LIMITS = (
    "assumes that errors are independent of each other and of the genotype; what all replicates of a "
    "genotype share (a strain, a plate, a batch) counts as signal; genotypes with replicates may differ from "
    "the others in spread; independent values that happen to be equal, as in coarsely rounded tables, count "
    "as copies, which lowers the estimate; an estimate, not a bound"
)
"""Conditions under which a ceiling holds."""


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval; NaN where it is not known."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "not known"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Ceiling:
    """What replicates allow a perfect model to reach on one phenotype.

    Attributes
    ----------
    phenotype, trait, environment : str
        What was measured; of a mean over several traits or environments, how many.
    between : str
        What was taken for replicates; see `BETWEEN`.
    genotypes, measurements : int
        Genotypes with replicates, and their measurements (or means, between replicates and studies).
    once : int
        Genotypes measured once.
    copies : int
        Copies that were left out, and measurements that repeat one of their provenance group.
    pearson : Interval
        Correlation of two measurements of one genotype: the reliability of one.
    one : Interval
        Highest Pearson to be expected against single measurements: √ of the reliability.
    means : Interval
        The same against the mean of each genotype's measurements, as many as it has.
    genotype_variance, noise_variance : float
        σ²_g and σ²_e over the genotypes with replicates.
    one_of_all : float
        ``one`` at the spread of all genotypes, if their noise is the same: √(1 − σ²_e / variance).
    reason : str
        Why there is none; empty where there is one.
    parts : tuple of Ceiling
        Of a mean: one per trait and environment.
    """

    phenotype: str
    trait: str
    environment: str
    between: str
    genotypes: int
    measurements: int
    once: int
    copies: int
    pearson: Interval = Interval()
    one: Interval = Interval()
    means: Interval = Interval()
    genotype_variance: float = math.nan
    noise_variance: float = math.nan
    one_of_all: float = math.nan
    reason: str = ""
    parts: tuple[Ceiling, ...] = field(default=(), repr=False)

    def of_mean(self, n: int) -> float:
        """Return the highest Pearson to be expected against the mean of ``n`` measurements."""
        known = [part.pearson.value for part in self.parts if not part.reason] or [self.pearson.value]
        return float(_ceiling(np.array(known), 1.0 / n).mean())

    @property
    def text(self) -> str:
        """The ceiling, without its `LIMITS`, or why there is none."""
        what = ", ".join(part for part in (self.phenotype, self.trait, self.environment) if part)
        copies = f" ({self.copies:,} copies left out)" if self.copies else ""
        if self.reason:
            return f"{what}: no noise ceiling: {self.reason}{copies}"
        known = sum(not part.reason for part in self.parts)
        over = f" on average of {known}" if self.parts else ""
        return (
            f"{what}: {BETWEEN[self.between]} correlate by {self.pearson}{over}, from {self.genotypes:,} "
            f"genotypes with replicates and {self.measurements:,} measurements of them{copies}; highest "
            f"Pearson to be expected {self.one} against single measurements, {self.means} against the mean "
            f"of each genotype's measurements, {_two(self.one_of_all)} against single measurements at the "
            f"spread of all {self.genotypes + self.once:,} genotypes"
        )


def statement(ceilings: Iterable[Ceiling]) -> str:
    """Return what a dataset states of its noise: its ceilings, and the limits of all once."""
    found = list(ceilings)
    limits = [LIMITS] if any(not ceiling.reason for ceiling in found) else []
    return "; ".join([*(ceiling.text for ceiling in found), *limits])


def _two(value: float) -> str:
    return "not known" if math.isnan(value) else f"{value:.2f}"


def _ceiling(reliability: Floats, share: Floats | float = 1.0) -> Floats:
    """Return √ of the reliability of a mean whose noise variance is ``share`` of that of one measurement."""
    # Spearman–Brown: √(r / (r + (1 − r) s)) for noise variance s; s = 1/n is the mean of n measurements.
    r = np.clip(reliability, 0.0, 1.0)
    return np.asarray(np.sqrt(r / (r + (1.0 - r) * share)))


def noise_ceilings(
    measurements: Measurements,
    *,
    between: str = "measurements",
    resamples: int = 1000,
    seed: int = 0,
    provenance: Groups | None = None,
) -> dict[str, Ceiling]:
    """Return the ceiling of every phenotype, the mean over its traits and environments where it has several.

    Parameters
    ----------
    measurements : Measurements
        As they were read, before anything is merged.
    between : str
        ``measurements``, ``replicates`` or ``studies``; see `BETWEEN`. The measurements of one genotype in
        one replicate (study) are averaged first.
    resamples : int
        Bootstrap resamples of genotypes behind each interval; the same genotypes for all traits and
        environments of a phenotype.
    seed : int
        Seed of the resamples.
    provenance : dict of str to tuple of str, optional
        Studies by provenance group: of a genotype, only what the first of a group measured counts.

    Raises
    ------
    DatasetError
        If ``between`` is not known, or there are no measurements.
    """
    if between not in BETWEEN:
        raise DatasetError(f"ceilings between {between!r} are not known; known: {', '.join(BETWEEN)}")
    if not len(measurements) or resamples < 1:
        raise DatasetError(
            f"{len(measurements)} measurements and {resamples} resamples: expected some of both"
        )
    names = sorted({(p.name, p.unit) for p in measurements.phenotypes})
    several = [name for name, _ in names]
    of_phenotype = np.array([names.index((p.name, p.unit)) for p in measurements.phenotypes])
    out = {}
    for number, (name, unit) in enumerate(names):
        rows = np.flatnonzero(of_phenotype[measurements.phenotype] == number)
        if rows.size:
            label = f"{name} ({unit})" if several.count(name) > 1 else name
            out[label] = _of_phenotype(
                label, measurements.take(rows), between, resamples, seed, provenance or {}
            )
    return out


def _interval(value: float, replicates: Floats) -> Interval:
    defined = replicates[np.isfinite(replicates)]
    if math.isnan(value) or 2 * defined.size < replicates.size:
        return Interval(value)
    # Percentile bootstrap over genotypes; measurements of one genotype stay together.
    low, high = np.quantile(defined, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def _of_phenotype(
    name: str, m: Measurements, between: str, resamples: int, seed: int, provenance: Groups
) -> Ceiling:
    values = values_of(m, between, provenance)
    strata = len(values.names)
    every = any_two(values) if between == "measurements" else two_labels(values)
    pairs = every.take(np.bincount(every.series)[every.series] >= LEAST)
    r = covariance = noise = np.full(strata, math.nan)
    drawn = np.full((resamples, strata), math.nan)
    if pairs.series.size:
        genotype = ranks(pairs.genotype)
        once = np.ones((1, int(genotype.max()) + 1))
        r, covariance, noise = statistics(pairs, genotype, once, strata)[:, 0]
        drawn = resampled(pairs, strata, resamples, generator(seed, f"ceilings/{name}"))
    # One number per stratum and genotype.
    span = int(values.genotype.max()) + 1
    code, first, group, n = np.unique(
        values.stratum * span + values.genotype, return_index=True, return_inverse=True, return_counts=True
    )
    of_group = values.stratum[first]
    mean, square = (np.bincount(group, weights=values.value**power) / n for power in (1, 2))
    used, found = (np.isin(code, of.stratum * span + of.genotype) for of in (pairs, every))

    def count(groups: NDArray[np.bool_], weights: Floats | None = None) -> list[int]:
        at = np.flatnonzero(groups)
        of_each = None if weights is None else weights[at]
        return np.bincount(of_group[at], of_each, minlength=strata).astype(int).tolist()  # type: ignore[no-any-return]

    def over_genotypes(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(of_group, weights=numbers) / np.bincount(of_group))

    spread = over_genotypes(square) - over_genotypes(mean) ** 2
    share = over_genotypes(1.0 / n)
    # Reliability at the spread of all genotypes, which may differ from those with replicates.
    of_all = np.sqrt(np.clip(1.0 - noise / np.where(spread > 0, spread, math.nan), 0.0, 1.0))
    one, one_drawn = _ceiling(r), _ceiling(drawn)
    means, means_drawn = _ceiling(r, share), _ceiling(drawn, share)
    replicated, measured, single, paired = count(used), count(used, n), count(~used), count(found)
    parts = tuple(
        Ceiling(
            phenotype=name,
            trait=trait,
            environment=environment,
            between=between,
            genotypes=replicated[s],
            measurements=measured[s],
            once=single[s],
            copies=int(values.copies[s]),
            pearson=_interval(r[s], drawn[:, s]),
            one=_interval(one[s], one_drawn[:, s]),
            means=_interval(means[s], means_drawn[:, s]),
            genotype_variance=float(covariance[s] * values.sd[s] ** 2),
            noise_variance=float(noise[s] * values.sd[s] ** 2),
            one_of_all=float(of_all[s]),
            reason="" if np.isfinite(r[s]) else _reason(paired[s], between),
        )
        for s, (trait, environment) in enumerate(values.names)
    )
    if len(parts) == 1:
        return parts[0]
    known = [s for s, part in enumerate(parts) if not part.reason]
    traits, environments = ({names[i] for names in values.names} for i in (0, 1))

    def average(point: Floats, resampled: Floats) -> Interval:
        return _interval(float(point[known].mean()), resampled[:, known].mean(1)) if known else Interval()

    def mean_of(numbers: list[float]) -> float:
        return float(np.mean(numbers)) if numbers else math.nan

    with_replicates = np.unique(pairs.genotype).size
    return Ceiling(
        phenotype=name,
        trait=min(traits) if len(traits) == 1 else f"{len(traits)} traits",
        environment=min(environments) if len(environments) == 1 else f"{len(environments)} environments",
        between=between,
        genotypes=with_replicates,
        measurements=sum(measured),
        once=np.unique(values.genotype).size - with_replicates,
        copies=int(values.copies.sum()),
        pearson=average(r, drawn),
        one=average(one, one_drawn),
        means=average(means, means_drawn),
        genotype_variance=mean_of([parts[s].genotype_variance for s in known]),
        noise_variance=mean_of([parts[s].noise_variance for s in known]),
        one_of_all=mean_of([parts[s].one_of_all for s in known]),
        reason="" if known else f"none of {len(parts)} traits and environments has one: {parts[0].reason}",
        parts=parts,
    )


def _reason(found: int, between: str) -> str:
    if found < LEAST:
        return f"{found} genotypes have replicates, expected at least {LEAST}"
    if between == "measurements":
        return f"the values of the {found} genotypes with replicates are all equal"
    return f"no two {between} share {LEAST} genotypes of different values"
