"""Noise ceilings: how well measurements of one genotype agree, and what that allows a perfect model to reach.

Only true replicates count: the same genotype (genes, kinds, alleles, doses) measured again in the same
environment. A number that stands twice with the same sd is a copy, not a replicate, and is left out.

With y = g + e, genotypes of variance σ²_g and independent errors of variance σ²_e, two measurements of one
genotype correlate by r = σ²_g / (σ²_g + σ²_e), the reliability of one measurement (the intraclass
correlation of Fisher 1925, section 38). A model that knows g correlates with one measurement by √r, and with
the mean of n by √(n r / (1 + (n − 1) r)) (Spearman 1910, Brown 1910; Lord and Novick 1968, chapters 3, 4).

Legend: s strata (trait and environment) · b bootstrap resamples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.replicates import any_two, resampled, statistics, two_labels, values_of
from wildtype.errors import DatasetError
from wildtype.mutants.ragged import ranks
from wildtype.seeds import generator

Floats = NDArray[np.float64]

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
    "the others in spread; independent values that happen to be equal, as in coarsely rounded tables, are "
    "taken for copies, which lowers the guide; a guide and no bound"
)
"""When a ceiling means what it says."""


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval; NaN where it cannot be said."""

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
        Numbers that stand twice, left out.
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
        """The ceiling and its limits, in words."""
        what = ", ".join(part for part in (self.phenotype, self.trait, self.environment) if part)
        copies = f" ({self.copies:,} numbers that stand twice left out)" if self.copies else ""
        if self.reason:
            return f"{what}: no noise ceiling: {self.reason}{copies}"
        known = sum(not part.reason for part in self.parts)
        over = f" on average of {known}" if self.parts else ""
        return (
            f"{what}: {BETWEEN[self.between]} correlate by {self.pearson}{over}, from {self.genotypes:,} "
            f"genotypes with replicates and {self.measurements:,} measurements of them{copies}; highest "
            f"Pearson to be expected {self.one} against single measurements, {self.means} against the mean "
            f"of each genotype's measurements, {_two(self.one_of_all)} against single measurements at the "
            f"spread of all {self.genotypes + self.once:,} genotypes; {LIMITS}"
        )


def _two(value: float) -> str:
    return "not known" if math.isnan(value) else f"{value:.2f}"


def _ceiling(reliability: Floats, share: Floats | float = 1.0) -> Floats:
    """Return √ of the reliability of a mean whose noise variance is ``share`` of that of one measurement."""
    r = np.clip(reliability, 0.0, 1.0)
    return np.asarray(np.sqrt(r / (r + (1.0 - r) * share)))


def noise_ceilings(
    measurements: Measurements, *, between: str = "measurements", resamples: int = 1000, seed: int = 0
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
            out[label] = _of_phenotype(label, measurements.take(rows), between, resamples, seed)
    return out


def _interval(value: float, replicates: Floats) -> Interval:
    defined = replicates[np.isfinite(replicates)]
    if math.isnan(value) or 2 * defined.size < replicates.size:
        return Interval(value)
    low, high = np.quantile(defined, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def _of_phenotype(name: str, m: Measurements, between: str, resamples: int, seed: int) -> Ceiling:
    values = values_of(m, between)
    strata = len(values.names)
    every = any_two(values) if between == "measurements" else two_labels(values)
    pairs = every.take(np.bincount(every.series)[every.series] >= LEAST)
    r = covariance = noise = np.full(strata, math.nan)
    drawn = np.full((resamples, strata), math.nan)
    if pairs.series.size:
        genotype = ranks(pairs.genotype)
        once = np.ones((1, int(genotype.max()) + 1))
        r, covariance, noise = statistics(pairs, genotype, once, strata)[:, 0]
        drawn = resampled(pairs, genotype, strata, resamples, generator(seed, f"ceilings/{name}"))
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
