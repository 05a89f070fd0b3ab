"""Growth of a cost with sizes: of a training step, say, with the batch, genes, edges and perturbed genes.

One size varies at a time, the others stay at the base. All points of an axis are in memory together and take
turns, so that a drift of the machine does not bend the curve; the shortest step of each point counts, because
other work on a machine only adds time.

Two laws of two numbers each describe an axis: cost = c · x^exponent, and cost = fixed + slope · x. A step has
costs that do not grow, so over a small range the second often fits better than any exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from wildtype.errors import ConfigError
from wildtype.profiling.machine import machine
from wildtype.profiling.synthetic_problem import Measure, ProblemSizes, training_steps

FACTORS = (1.0, 2.0, 4.0, 8.0)
"""Sizes of an axis, in multiples of the base."""


class Sizes(Protocol):
    """A dataclass of sizes; those named in ``AXES`` can be varied."""

    AXES: ClassVar[tuple[str, ...]]


S = TypeVar("S", bound=Sizes)


@dataclass(frozen=True)
class Point:
    """The cost at one size.

    Attributes
    ----------
    value : int
        The size that varies, x; of edges, what was drawn.
    seconds : float
        Of the shortest step.
    parameters, peak_mib
        As in ``Trial``.
    """

    value: int
    seconds: float
    parameters: int
    peak_mib: float | None


@dataclass(frozen=True)
class PowerLaw:
    """cost = factor · x^exponent, by least squares of the logarithms.

    Attributes
    ----------
    exponent, error : float
        The exponent and its standard error, NaN with two points only.
    factor : float
        Seconds at x = 1.
    r2 : float
        Of the logarithms; NaN where all costs are equal.
    deviation : float
        Root mean square of fit / cost - 1.
    """

    exponent: float
    error: float
    factor: float
    r2: float
    deviation: float


@dataclass(frozen=True)
class FixedAndSlope:
    """cost = fixed + slope · x, by least squares of fit / cost - 1, so that small costs count like large.

    A cost that grows faster than x has a negative ``fixed``.

    Attributes
    ----------
    fixed, slope : float
        Seconds, and seconds per unit of x.
    share : float
        fixed / (fixed + slope · x) at the smallest x: how much of the cost does not depend on x there.
    deviation : float
        Root mean square of fit / cost - 1.
    """

    fixed: float
    slope: float
    share: float
    deviation: float


@dataclass(frozen=True)
class Axis:
    """One size varied, and the cost at each value.

    Attributes
    ----------
    name : str
        One of the sizes' ``AXES``.
    points : tuple of Point
        In rising order, at least two.
    """

    name: str
    points: tuple[Point, ...]

    @property
    def power(self) -> PowerLaw:
        """The exponent of the seconds."""
        return fit_power(*self._curve())

    @property
    def linear(self) -> FixedAndSlope:
        """The fixed cost and the slope of the seconds."""
        return fit_fixed_and_slope(*self._curve())

    @property
    def local(self) -> tuple[float, ...]:
        """Exponent between each point and the next."""
        x, y = np.log(self._curve())
        return tuple((np.diff(y) / np.diff(x)).tolist())

    @property
    def law(self) -> str:
        """Which of the two describes the points better: ``power`` or ``linear``."""
        return "power" if self.power.deviation < self.linear.deviation else "linear"

    def _curve(self) -> tuple[list[int], list[float]]:
        return [p.value for p in self.points], [p.seconds for p in self.points]


@dataclass(frozen=True)
class ScalingReport:
    """The cost on all axes.

    Attributes
    ----------
    model : str
        Its name, or that of the work whose cost it is.
    base : Sizes
        Sizes that stay while another one varies.
    repeats : int
        Timed steps per point.
    wanted : tuple of str
        Axes that were asked for.
    axes : dict of str to Axis
        Those done so far, by name.
    machine : dict
        The machine of the measurement.
    """

    model: str
    base: Any
    repeats: int
    wanted: tuple[str, ...]
    axes: dict[str, Axis] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=machine)

    @property
    def complete(self) -> bool:
        """Whether all axes are done."""
        return set(self.axes) == set(self.wanted)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per point, for a table."""
        return [
            {"axis": axis.name, "exponent from the last": exponent} | asdict(point)
            for axis in self.axes.values()
            for point, exponent in zip(axis.points, (None, *axis.local), strict=True)
        ]

    def fits(self) -> list[dict[str, Any]]:
        """Return one row per axis, for a table."""
        return [
            {
                "axis": axis.name,
                "exponent": axis.power.exponent,
                "standard error": axis.power.error,
                "R²": axis.power.r2,
                "fixed seconds": axis.linear.fixed,
                "seconds per unit": axis.linear.slope,
                "fixed share at the smallest": axis.linear.share,
                "better law": axis.law,
            }
            for axis in self.axes.values()
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, seconds and MiB."""
        return {
            "complete": self.complete,
            "model": self.model,
            "base": asdict(self.base),
            "repeats": self.repeats,
            "machine": self.machine,
            "axes": {
                axis.name: {
                    "points": [asdict(point) for point in axis.points],
                    "power": asdict(axis.power),
                    "linear": asdict(axis.linear),
                    "local_exponents": list(axis.local),
                    "better_law": axis.law,
                }
                for axis in self.axes.values()
            },
        }


def scaling(
    config: Any,
    base: ProblemSizes,
    *,
    axes: Sequence[str] = (),
    factors: Sequence[float] = FACTORS,
    repeats: int = 3,
    seed: int = 0,
    measure: Measure[ProblemSizes] | None = None,
    on_axis: Callable[[ScalingReport], None] = lambda report: None,
) -> ScalingReport:
    """Measure a training step of a model with the settings ``config``; the others as in `scaling_of`.

    ``seed`` is of all that is drawn. Points are built by `training_steps` unless ``measure`` is given.
    """
    return scaling_of(
        config.name,
        base,
        measure or training_steps(config, seed=seed),
        lambda sizes: sizes.check(config),
        axes=axes,
        factors=factors,
        repeats=repeats,
        on_axis=on_axis,
    )


def scaling_of(
    name: str,
    base: S,
    measure: Measure[S],
    check: Callable[[S], None],
    *,
    axes: Sequence[str] = (),
    factors: Sequence[float] = FACTORS,
    repeats: int = 3,
    on_axis: Callable[[ScalingReport], None] = lambda report: None,
) -> ScalingReport:
    """Measure a cost along axes of size.

    Parameters
    ----------
    name : str
        Of the model whose step is measured, or of other work.
    base : Sizes
        Sizes that stay while another one varies.
    measure : callable
        Builds a point, as `training_steps` does.
    check : callable
        Refuses impossible sizes.
    axes : sequence of str
        Any of the sizes' ``AXES``; all unless given.
    factors : sequence of float
        Sizes of an axis, in multiples of the base.
    repeats : int
        Timings per point, after the first one.
    on_axis : callable
        Told the report so far after every axis, so that a killed run leaves what was found.

    Raises
    ------
    ConfigError
        Before anything is measured, if an axis is unknown or any point is impossible.
    """
    if repeats < 1:
        raise ConfigError(f"repeats={repeats}: it must be at least 1")
    plan = {axis: _points(base, check, axis, factors) for axis in axes or base.AXES}
    report = ScalingReport(name, base, repeats, tuple(plan))
    for axis, sizes in plan.items():
        report = replace(report, axes=report.axes | {axis: _axis(axis, sizes, measure, repeats)})
        on_axis(report)
    return report


def fit_power(x: ArrayLike, y: ArrayLike) -> PowerLaw:
    """Fit y = factor · x^exponent to at least two positive points with different x."""
    # Least squares of log y = log factor + exponent · log x, standard error of the slope with n − 2 degrees.
    a, b = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    centred = a - a.mean()
    spread = float(centred @ centred)
    exponent = float(centred @ b) / spread
    rest = b - b.mean() - exponent * centred
    error = math.sqrt(float(rest @ rest) / (len(a) - 2) / spread) if len(a) > 2 else math.nan
    total = float(np.sum((b - b.mean()) ** 2))
    return PowerLaw(
        exponent=exponent,
        error=error,
        factor=math.exp(b.mean() - exponent * a.mean()),
        r2=1 - float(rest @ rest) / total if total else math.nan,
        deviation=_root_mean_square(np.expm1(-rest)),
    )


def fit_fixed_and_slope(x: ArrayLike, y: ArrayLike) -> FixedAndSlope:
    """Fit y = fixed + slope · x to at least two positive points with different x."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    slope, fixed = np.polyfit(a, b, 1, w=1 / b)  # weights 1/y: the sum of squares of fit / y - 1
    at_smallest = fixed + slope * a.min()
    return FixedAndSlope(
        fixed=float(fixed),
        slope=float(slope),
        share=float(fixed / at_smallest),
        deviation=_root_mean_square((fixed + slope * a) / b - 1),
    )


def _root_mean_square(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _points(base: S, check: Callable[[S], None], axis: str, factors: Sequence[float]) -> list[S]:
    """Return the sizes of an axis in rising order, all of them possible."""
    if axis not in base.AXES:
        raise ConfigError(f"there is no axis {axis!r} to scale; known axes: {', '.join(base.AXES)}")
    values = sorted({round(getattr(base, axis) * factor) for factor in factors})
    if len(values) < 2:
        raise ConfigError(
            f"factors={list(factors)} give {axis} only the sizes {values}: take two different ones at least"
        )
    points: list[S] = [replace(base, **{axis: value}) for value in values]  # type: ignore[type-var]
    for sizes in points:
        check(sizes)
    return points


def _axis(name: str, points: Sequence[S], measure: Measure[S], repeats: int) -> Axis:
    trials = [measure(sizes) for sizes in points]
    seconds: list[list[float]] = [[] for _ in trials]
    for repeat in range(repeats):
        # Forth and back: a machine that slows down steadily would otherwise always favour the small sizes.
        order = range(len(trials)) if repeat % 2 == 0 else reversed(range(len(trials)))
        for i in order:
            seconds[i].append(trials[i].seconds())
    return Axis(
        name,
        tuple(
            Point(
                value=trial.edges if name == "edges" else getattr(sizes, name),
                seconds=min(times),
                parameters=trial.parameters,
                peak_mib=trial.peak_mib,
            )
            for sizes, trial, times in zip(points, trials, seconds, strict=True)
        ),
    )
