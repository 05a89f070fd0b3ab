"""Learning curves: the terms of the loss, their shares, the validation score, and how alike genes become."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from wildtype.evaluation.metrics import Floats
from wildtype.evaluation.training_record import LearningCurves
from wildtype.report.figures.panel import Panel, legend_below, shown
from wildtype.report.figures.style import DASHES, LIGHT, SERIES, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning_panels(curves: LearningCurves) -> list[Panel]:
    """Return panels of the terms, of the shares of several, and of the validation score, as far as logged."""
    epochs, panels = curves.epochs, []
    last = f"epoch {epochs[-1]:.0f}"
    if curves.terms:
        ends = ", ".join(f"{name} {shown(values[-1])}" for name, values in curves.terms.items())
        panels.append(
            Panel(
                "terms of the loss",
                f"Each term by epoch, before its weight: data, and each graph's prior. At {last}: {ends}.",
                lambda axes: _draw_terms(axes, curves),
                *_table(curves, {**curves.terms, "objective": curves.total}),
            )
        )
    if len(curves.shares) > 1:  # one term is all of the objective
        ends = ", ".join(f"{name} {values[-1]:.0%}" for name, values in curves.shares.items())
        panels.append(
            Panel(
                "shares of the objective",
                f"Stacked to one. At {last}: {ends}.",
                lambda axes: _draw_shares(axes, curves),
                *_table(curves, curves.shares),
            )
        )
    if curves.best is not None:
        at = curves.best
        told = f"{shown(curves.score[at])} at epoch {epochs[at]:.0f}, the highest of {len(epochs)}"
        columns = {"score": curves.score, "squared error": curves.error}
        if curves.train_score is not None:
            told += f"; on training rows {shown(curves.train_score[at])} then"
            columns["score on training rows"] = curves.train_score
        panels.append(
            Panel(
                "score on validation rows",
                f"Validation score by epoch: {told}.",
                lambda axes: _draw_score(axes, curves),
                *_table(curves, columns),
            )
        )
    for name, about, by_layer, unit in (
        ("cosine of gene states", "Mean cosine of all pairs of genes", curves.cosine, "mean cosine"),
        ("energy of gene states", "Dirichlet energy of the edges", curves.energy, "Dirichlet energy"),
    ):
        if by_layer:
            layers = _known_layers(by_layer)
            ends = ", ".join(f"{layer} {shown(values[-1])}" for layer, values in layers.items())
            panels.append(
                Panel(
                    name,
                    f"{about}, by layer and epoch. At {last}: {ends}. A cosine near 1 or an energy near 0 "
                    f"means that a layer no longer tells genes apart.",
                    partial(_draw_layers, curves=curves, layers=layers, unit=unit),
                    *_table(curves, layers),
                )
            )
    return panels


def _known_layers(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name.replace("_layer_", " layer ").replace("layer_", "layer "): x for name, x in columns.items()}


def _table(curves: LearningCurves, columns: Mapping[str, Floats]) -> tuple[list[str], list[list[str]]]:
    """Return at most some 40 epochs of the columns."""
    every = max(len(curves.epochs) // 40, 1)
    at = range(0, len(curves.epochs), every)
    rows = [[f"{curves.epochs[i]:.0f}", *(shown(values[i]) for values in columns.values())] for i in at]
    return ["epoch", *columns], rows


def _term(name: str) -> str:
    """Return how a legend names a term: a graph's prior by its graph."""
    return plain(name.removeprefix("prior/"), 20)


def _looks(names: Mapping[str, Floats]) -> dict[str, tuple[str, str]]:
    """Return colour and dashes of every term: alike in both panels, the data first."""
    # By name and not by size, so that a term keeps its colour in both panels and in all runs.
    ordered = sorted(names, key=lambda name: (name != "data", name))
    return {
        name: (SERIES[i % len(SERIES)], DASHES[(i // len(SERIES)) % len(DASHES)])
        for i, name in enumerate(ordered)
    }


def _draw_terms(axes: Axes, curves: LearningCurves) -> None:
    looks = _looks(curves.terms)
    for name, (colour, dashes) in looks.items():
        axes.plot(
            curves.epochs,
            curves.terms[name],
            color=colour,
            linestyle=dashes,
            label=_term(name),
            marker="." if len(curves.epochs) < 3 else None,
        )
    every = np.concatenate(list(curves.terms.values()))
    known = every[np.isfinite(every)]
    # Priors in nats and the data term may differ by orders of magnitude; a logarithm needs positive terms.
    if known.size and known.min() > 0 and known.max() > 30 * known.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(lambda x, _: "")
    axes.set(xlabel="epoch", ylabel="loss (priors: nats)")
    _finish(axes, curves)
    legend_below(axes)


def _draw_shares(axes: Axes, curves: LearningCurves) -> None:
    looks = _looks(curves.shares)
    stacked = [np.nan_to_num(curves.shares[name]) for name in looks]
    parts = axes.stackplot(
        curves.epochs,
        *stacked,
        labels=[_term(name) for name in looks],
        colors=[colour for colour, _ in looks.values()],
        alpha=0.85,
    )
    for part, (_, dashes) in zip(parts, looks.values(), strict=True):
        part.set_edgecolor(LIGHT["paper"])
        part.set_linewidth(0.6)
        if dashes != "-":
            part.set_hatch("//")
    axes.set(xlabel="epoch", ylabel="share of the objective", ylim=(0, 1))
    _finish(axes, curves)
    legend_below(axes)


def _draw_layers(axes: Axes, curves: LearningCurves, layers: Mapping[str, Floats], unit: str) -> None:
    looks = _looks(layers)
    marker = "." if len(curves.epochs) < 3 else None
    for name, (colour, dashes) in looks.items():
        label = plain(name, 20)
        axes.plot(curves.epochs, layers[name], color=colour, linestyle=dashes, label=label, marker=marker)
    axes.set(xlabel="epoch", ylabel=unit)
    _finish(axes, curves)
    legend_below(axes)


def _draw_score(axes: Axes, curves: LearningCurves) -> None:
    at = curves.best
    assert at is not None
    marker = "o" if len(curves.epochs) < 30 else None
    axes.plot(curves.epochs, curves.score, color=LIGHT["model"], marker=marker, label="validation rows")
    if curves.train_score is not None:
        name = "training rows, while training"
        axes.plot(curves.epochs, curves.train_score, color=LIGHT["other"], linestyle="--", label=name)
        legend_below(axes)
    axes.plot(
        curves.epochs[at],
        curves.score[at],
        marker="o",
        color=LIGHT["baseline"],
        markersize=7,
        clip_on=False,
        fillstyle="none",
        linestyle="none",
        markeredgewidth=1.2,
    )
    axes.annotate(
        f"best: {shown(curves.score[at])}, epoch {curves.epochs[at]:.0f}",
        (0.98, 0.05),
        xycoords="axes fraction",
        ha="right",
        color=LIGHT["quiet"],
    )
    axes.set(xlabel="epoch", ylabel="Pearson" if curves.train_score is not None else "validation Pearson")
    _finish(axes, curves)


def _finish(axes: Axes, curves: LearningCurves) -> None:
    from matplotlib.ticker import MaxNLocator

    first, last = curves.epochs[0], curves.epochs[-1]
    # One epoch alone would give an axis of zero width, of which matplotlib warns.
    axes.set_xlim((first, last) if last > first else (first - 1, last + 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
