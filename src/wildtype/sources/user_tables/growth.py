"""Fitness and interactions from measured growth of the wild type, single, double and triple mutants.

Everything is relative to the wild-type rows of the same condition and replicate, of which the mean w counts.
Guides of one gene are replicates of its perturbation: parts of a mutant are means over all of them.
With s the score of a mutant, by expectation:

==============  =================  ===============================  ======================================
expectation     s of growth x      epsilon (ab)                     tau (abc)
==============  =================  ===============================  ======================================
multiplicative  x / w              s_ab − s_a s_b                   s_abc − s_ab s_c − s_ac s_b − s_bc s_a
                                                                    + 2 s_a s_b s_c
minimum         x / w              s_ab − min(s_a, s_b)             none
additive-log    ln(x / w)          s_ab − s_a − s_b                 s_abc − s_ab − s_ac − s_bc + s_a + s_b
                                                                    + s_c
additive        x − w              s_ab − s_a − s_b                 the same
==============  =================  ===============================  ======================================

The definitions are those of Mani et al. 2008 (PNAS 105:3461; product, minimum and log), and for tau that of
Kuzmin et al. 2018 (Science 360:eaao1729). ``additive`` is for numbers that are logarithms already.

Legend: m measurements · r rows of one order · t inputs of a formula (its mutant first, then its parts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import ConfigError, SourceError, shown
from wildtype.mutants.ragged import ranks
from wildtype.sources.user_tables.vocabulary import PHENOTYPES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MULTIPLICATIVE, MINIMUM, ADDITIVE_LOG, ADDITIVE = "multiplicative", "minimum", "additive-log", "additive"
EXPECTATIONS = (MULTIPLICATIVE, MINIMUM, ADDITIVE_LOG, ADDITIVE)
NO_WILD_TYPE = "no wild type in the same condition and replicate"
NOT_POSITIVE = "growth, of the mutant or the wild type, that is not above 0"
LACKING = {2: "no epsilon: a single mutant is missing", 3: "no tau: a single or double mutant is missing"}
NO_TAU, TOO_MANY = "no tau: none is defined for the minimum", "no interaction: more than three genes"


@dataclass(frozen=True)
class _Mean:
    """Means of growth by key: ascending keys, their means, and the variance of these (NaN: not known)."""

    key: Ints
    value: Floats
    variance: Floats

    @classmethod
    def of(cls, key: Ints, value: Floats, sd: Floats) -> _Mean:
        distinct, at, count = np.unique(key, return_inverse=True, return_counts=True)
        at = at.reshape(-1)
        mean = np.bincount(at, value, len(distinct)) / count
        given = np.bincount(at, sd**2, len(distinct)) / count**2
        # Without sd, the spread of several rows tells how well their mean is known.
        spread = np.bincount(at, (value - mean[at]) ** 2, len(distinct))
        own = np.where(count > 1, spread / (np.maximum(count - 1, 1) * count), np.nan)
        return cls(distinct, mean, np.where(np.isnan(given), own, given))

    def find(self, key: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance [r] by key, NaN where it has none."""
        if not len(self.key):
            return np.full(key.shape, np.nan), np.full(key.shape, np.nan)
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        there = self.key[at] == key
        return np.where(there, self.value[at], np.nan), np.where(there, self.variance[at], np.nan)


def check_expectation(name: str) -> None:
    """Raise ``ConfigError`` if an expectation is not known."""
    if name not in EXPECTATIONS:
        raise ConfigError(
            f"--from-growth {shown(name)} is not known: choose one of {', '.join(EXPECTATIONS)}"
        )


def definitions(expectation: str, name: str, unit: str) -> dict[int, PhenotypeDefinition]:
    """Return the phenotypes by number of genes (1: fitness, 2: epsilon, 3: tau) that an expectation gives.

    Parameters
    ----------
    expectation : str
        One of `EXPECTATIONS`.
    name, unit : str
        Of what was measured.
    """
    if expectation == MULTIPLICATIVE:
        return {1: PHENOTYPES["fitness"], 2: PHENOTYPES["epsilon"], 3: PHENOTYPES["tau"]}
    if expectation == MINIMUM:
        smaller = "fitness units: double-mutant fitness minus the smaller of the single ones"
        return {
            1: PHENOTYPES["fitness"],
            2: PhenotypeDefinition(name="epsilon_minimum", unit=smaller, min_order=2),
        }
    log = expectation == ADDITIVE_LOG
    end, scale = ("log", "natural log of fitness") if log else ("additive", unit)
    return {
        1: PhenotypeDefinition(
            name="log_fitness" if log else f"relative_{name}",
            unit=f"{scale}, wild type = 0",
            direction="higher is fitter" if log else "neither",
        ),
        2: PhenotypeDefinition(name=f"epsilon_{end}", unit=f"{scale}: double minus singles", min_order=2),
        3: PhenotypeDefinition(
            name=f"tau_{end}", unit=f"{scale}: triple minus doubles plus singles", min_order=3
        ),
    }


def from_growth(
    m: Measurements, expectation: str, runs: Ints | None = None
) -> tuple[Measurements, dict[str, int]]:
    """Return fitness of all mutants, epsilon of doubles and tau of triples, and what has none, by reason.

    The score of a mutant is that of its row; parts of it are means of their rows. sd is first-order error
    propagation from the sd of all rows that enter, the shared wild type counted once; it is NaN where one
    is not known. Where no sd is given, that of a mean of several rows is taken from their spread.

    Parameters
    ----------
    m : Measurements
        Growth rates or other growth, of one phenotype.
    expectation : str
        One of `EXPECTATIONS`.
    runs : int64 [m], optional
        What is measured together, within a condition; the replicate of each row if not given. Guides are
        replicates in ``m`` and no runs: the wild type has none, and parts of a mutant are means over guides.

    Raises
    ------
    ConfigError
        If the expectation is not known.
    SourceError
        If several phenotypes are there, one of genes is, or no wild type is.
    """
    check_expectation(expectation)
    used = np.unique(m.phenotype)
    if len(used) != 1 or m.phenotypes[used[0]].level != "cell":
        names = ", ".join(m.phenotypes[p].name for p in used)
        raise SourceError(f"--from-growth needs one phenotype, growth of cells, and the table has {names}")
    if not (m.order == 0).any():
        raise SourceError("--from-growth needs rows of the wild type (wt, or controls): there are none")
    group = ranks(m.environment, m.replicate if runs is None else runs)
    value, sd = np.asarray(m.value, np.float64), np.asarray(m.sd, np.float64)
    wild, wild_variance = _mean_of(m, 0, group, value, sd).find(group)
    lacking = np.isnan(wild)
    bad = ~lacking & (expectation != ADDITIVE) & (wild <= 0)
    if expectation == ADDITIVE_LOG:
        bad |= ~lacking & (value <= 0)
    counts = {NO_WILD_TYPE: int(lacking.sum()), NOT_POSITIVE: int(bad.sum())}
    good = ~lacking & ~bad
    known = definitions(expectation, m.phenotypes[used[0]].name, m.phenotypes[used[0]].unit)
    means = {order: _mean_of(m, order, group, value, sd, good) for order in (1, 2)}
    rows = np.flatnonzero(good)
    # A row of the wild type has the noise of its own growth; it is itself in the mean.
    shared = np.where(m.order == 0, 0.0, wild_variance)[rows]
    out = [(1, rows, *_scored(expectation, [value[rows]], [sd[rows] ** 2], wild[rows], shared))]
    for order in (2, 3):
        rows = np.flatnonzero(good & (m.order == order))
        if order not in known:
            counts[NO_TAU] = len(rows)
            continue
        parts = [part for size in range(order - 1, 0, -1) for part in combinations(range(order), size)]
        found = [means[len(part)].find(_key(m, rows, group[rows], part)) for part in parts]
        there = ~np.isnan([mean for mean, _ in found]).any(axis=0) if len(rows) else np.zeros(0, bool)
        counts[LACKING[order]] = int((~there).sum())
        rows = rows[there]
        inputs = [value[rows], *(mean[there] for mean, _ in found)]
        variances = [sd[rows] ** 2, *(variance[there] for _, variance in found)]
        out.append((order, rows, *_scored(expectation, inputs, variances, wild[rows], wild_variance[rows])))
    counts[TOO_MANY] = int((good & (m.order > 3)).sum())
    index = np.concatenate([rows for _, rows, _, _ in out])
    orders = list(known)
    phenotype = np.concatenate([np.full(len(rows), orders.index(order)) for order, rows, _, _ in out])
    made = replace(
        m.take(index),
        phenotypes=tuple(known.values()),
        phenotype=phenotype,
        value=np.concatenate([score for _, _, score, _ in out]),
        sd=np.sqrt(np.concatenate([variance for _, _, _, variance in out])),
        se=np.full(len(index), np.nan),
        p=np.full(len(index), np.nan),
    )
    return made, {reason: count for reason, count in counts.items() if count}


def _mean_of(
    m: Measurements,
    order: int,
    group: Ints,
    value: Floats,
    sd: Floats,
    among: NDArray[np.bool_] | None = None,
) -> _Mean:
    """Return the means of all mutants of an order, by group and perturbations."""
    chosen = m.order == order
    rows = np.flatnonzero(chosen if among is None else chosen & among)
    return _Mean.of(_key(m, rows, group[rows], range(order)), value[rows], sd[rows])


def _key(m: Measurements, rows: Ints, group: Ints, part: Sequence[int]) -> Ints:
    """Return a number [r] for the group and some of the perturbations of rows."""
    size = int(m.perturbation.max()) + 1 if len(m.perturbation) else 1
    places = m.offsets[rows][:, None] + np.array(part, np.int64)[None, :]
    key = group.astype(np.int64)
    for perturbation in np.sort(m.perturbation[places], axis=1).T:
        key = key * size + perturbation
    return key


def _scored(
    expectation: str,
    inputs: Sequence[Floats],
    variances: Sequence[Floats],
    wild: Floats,
    wild_variance: Floats,
) -> tuple[Floats, Floats]:
    """Return the score [r] of rows and its variance, from the growth [t, r] of a mutant and its parts."""
    x, variance = np.array(inputs), np.array(variances)
    if expectation == ADDITIVE_LOG:
        s, by_x, by_wild = np.log(x / wild), 1 / x, -np.ones_like(x) / wild
    elif expectation == ADDITIVE:
        s, by_x, by_wild = x - wild, np.ones_like(x), -np.ones_like(x)
    else:
        s, by_x, by_wild = x / wild, np.ones_like(x) / wild, -x / wild**2
    score, slope = _interaction(expectation, s)
    # d score = Σ slope (ds/dx dx + ds/dw dw): w is one number, whose errors add up before squaring.
    own = ((slope * by_x) ** 2 * variance).sum(axis=0)
    return score, own + (slope * by_wild).sum(axis=0) ** 2 * wild_variance


def _interaction(expectation: str, s: Floats) -> tuple[Floats, Floats]:
    """Return an interaction [r] from scores [t, r], and its derivatives [t, r] by each of them.

    Inputs are ab, a, b for epsilon and abc, ab, ac, bc, a, b, c for tau; one input is its own score.
    """
    slope = np.ones_like(s)
    if len(s) == 1:
        return s[0], slope
    if expectation in (ADDITIVE, ADDITIVE_LOG):
        slope[1 : 4 if len(s) == 7 else 3] = -1
        return (slope * s).sum(axis=0), slope
    if expectation == MINIMUM:
        ab, a, b = s
        slope[1:] = np.where([a <= b, a > b], -1.0, 0.0)
        return ab - np.minimum(a, b), slope
    if len(s) == 3:
        ab, a, b = s
        slope[1:] = -b, -a
        return ab - a * b, slope
    abc, ab, ac, bc, a, b, c = s
    slope[1:] = -c, -b, -a, 2 * b * c - bc, 2 * a * c - ac, 2 * a * b - ab
    return abc - ab * c - ac * b - bc * a + 2 * a * b * c, slope
