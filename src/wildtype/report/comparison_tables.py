"""How good models are, as tables: comparisons, summaries, agreement, coverage of intervals, retrieval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from wildtype.evaluation.agreement import Agreement
from wildtype.evaluation.bootstrap import UNDEFINED
from wildtype.evaluation.calibration import Coverage, MeanCoverage
from wildtype.evaluation.comparison import HEADLINES, Comparison, Difference, Score, signed
from wildtype.evaluation.pair_scores import NO_PAIRS
from wildtype.evaluation.retrieval import LISTS, TOP
from wildtype.evaluation.summary import Spread, Summary
from wildtype.report.text_table import (
    NONE,
    decimals,
    markdown_table,
    print_line,
    print_table,
    signed_decimals,
    with_interval,
)
from wildtype.terminal import PlainConsole

OF_CALLS = ("log_loss", "brier")
"""Errors that only calls have."""
NEGATIVES = "negative/average_precision"
SHOWN = {
    "pearson": "Pearson",
    "pearson_by_condition": "by condition",
    "pearson_gene_removed": "without genes",
    NEGATIVES: "AP negatives",
    "rmse": "RMSE",
    "bias": "size of bias",
}
SHOWN_OF_CALLS = {"average_precision": "AP", "log_loss": "log loss", "brier": "Brier", "bias": "size of bias"}
"""Metrics whose paired differences tables show: all are in the JSON."""

# ------------------------------------------------------------------------------------------- one comparison


def _delta(score: Score, comparison: Comparison) -> str:
    if score.model == comparison.reference:
        return "reference"
    if score.delta is None:
        return NONE
    delta = score.delta
    return f"{signed(delta.value)} [{signed(delta.low)}, {signed(delta.high)}]"


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _small(value: float) -> str:
    """Return an error or a squared one in six characters or so, whatever its size."""
    if math.isnan(value):
        return NONE
    text = f"{value:.4f}" if 1e-3 <= abs(value) < 10 or value == 0 else f"{value:.1e}"
    return text if value >= 0 else text.replace("-", "−", 1)


def _measured(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def facts_of(comparison: Comparison) -> list[str]:
    """Return in sentences how the figures of a comparison were made, and why some are missing."""
    split = f", split {comparison.split}" if comparison.split else ""
    facts = [
        f"{comparison.rows:,} rows of {comparison.dataset}, {comparison.phenotype}{split}; ranked by "
        f"{HEADLINES[comparison.headline]}; 95 % intervals from {comparison.replicates:,} resamples of "
        f"{comparison.cluster_count:,} {comparison.clusters} (seed {comparison.seed})",
        *comparison.notes,
        comparison.noise,
    ]
    reasons: dict[str, list[str]] = {}
    calls = comparison.headline == "average_precision"
    for score in comparison.scores:
        for metric, reason in score.undefined.items():
            if (metric in OF_CALLS and not calls) or reason == NO_PAIRS:
                continue
            if metric not in HEADLINES or metric == "pearson" or comparison.headline == metric:
                reasons.setdefault(f"{metric} is undefined: {reason}", []).append(score.model)
    # A reason that holds for all models is given once, without their names.
    everyone = len(comparison.scores)
    facts += [
        reason if len(models) == everyone else f"{', '.join(models)}: {reason}"
        for reason, models in reasons.items()
    ]
    return [fact for fact in facts if fact]


def _errors(score: Score, calls: bool, by_share: bool) -> list[str]:
    if calls:
        return [_small(score.log_loss.value), _small(score.brier.value)]
    sign = decimals(score.auroc_sign.value)
    return [decimals(score.r2.value) if by_share else _small(_root(score.mse.value)), sign]


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print a comparison as a table of up to 100 columns, then who wins and how the figures were made."""
    console = console or PlainConsole()
    headline = "AP" if comparison.headline == "average_precision" else "Pearson"
    # Squared errors of several phenotypes have no common unit; the share of variance explained has none.
    by_share = all(math.isnan(score.mse.value) for score in comparison.scores)
    calls = headline == "AP"
    error = "R²" if by_share else "RMSE"
    # Calls have no sign.
    errors = ["log loss", "Brier"] if calls else [error, "sign"]
    columns = ["model", f"{headline} [95 %]", "Δ to reference", "ρ", *errors, "strong", "s", "MiB"]
    rows = [
        [
            score.model,
            with_interval(score.estimate(comparison.headline)),
            _delta(score, comparison),
            decimals(score.spearman.value),
            *_errors(score, calls, by_share),
            decimals(score.auroc_strong.value),
            _measured(score.seconds),
            _measured(score.peak_mib),
        ]
        for score in comparison.scores
    ]
    print_table(
        console, columns, rows, numeric=range(1, len(columns)), bold=comparison.scores.index(comparison.best)
    )
    console.print()
    print_line(comparison.winner_sentence, console, "bold")
    strong = "of calls" if comparison.headline == "average_precision" else "of strong interactions"
    legend = (
        "ρ: Spearman; RMSE: root of the mean squared error; sign, strong: AUROC of sign and "
        f"{strong}; s, MiB: time, peak memory"
    )
    if calls:
        legend = (
            "AP: average precision, the area under precision and recall; ρ: Spearman; log loss in nats; "
            f"Brier: mean squared error of the probability; strong: AUROC {strong}; s, MiB: time, peak memory"
        )
    biases = [f"{s.model} {_small(s.bias.value)}" for s in comparison.scores if math.isfinite(s.bias.value)]
    bias = [f"bias, mean prediction minus mean label: {', '.join(biases)}"] if biases else []
    for fact in (legend, *bias, *_pair_scores(comparison), *facts_of(comparison)):
        print_line(fact, console, "dim")
    for title, columns, rows in difference_tables(comparison, "\n"):
        console.print()
        print_table(console, columns, rows, numeric=range(1, len(columns)), title=title)


def _pair_scores(comparison: Comparison) -> list[str]:
    """Return both scores of pairs of every model as a line; none of rows that are no pairs."""
    found = [
        f"{s.model} {decimals(s.pearson_gene_removed.value)}, {decimals(s.pearson_shuffled.value)}"
        for s in comparison.scores
        if math.isfinite(s.pearson_gene_removed.value) or math.isfinite(s.pearson_shuffled.value)
    ]
    what = "Pearson without additive gene effects, and where only one gene is right"
    return [f"{what}: {'; '.join(found)}"] if found else []


def difference_tables(
    comparison: Comparison, separator: str = " "
) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, headings and rows of the differences of each model that is no baseline to every baseline.

    Parameters
    ----------
    comparison : Comparison
    separator : str
        Between a difference and its interval.
    """
    shown = SHOWN_OF_CALLS if comparison.headline == "average_precision" else SHOWN
    tables = []
    for score in comparison.scores:
        against = {other: found for other, found in score.differences.items() if comparison[other].baseline}
        metrics = [metric for metric in shown if any(metric in found for found in against.values())]
        if score.baseline or not metrics:
            continue
        rows = [
            [other, *(_difference(found.get(metric), separator) for metric in metrics)]
            for other, found in against.items()
        ]
        title = f"{score.model} minus each baseline, paired by resample [95 %]"
        tables.append((title, ["baseline", *(shown[metric] for metric in metrics)], rows))
    return tables


def _difference(delta: Difference | None, separator: str) -> str:
    if delta is None:
        return NONE
    value, low, high = (signed_decimals(x, 3) for x in (delta.value, delta.low, delta.high))
    return value if math.isnan(delta.low) else f"{value}{separator}[{low}, {high}]"


def comparison_cells(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row per model with every metric, as text."""
    calls = comparison.headline == "average_precision"
    negatives = any(NEGATIVES in score.retrieval for score in comparison.scores) and not calls
    pairs = any(math.isfinite(score.pearson_shuffled.value) for score in comparison.scores)
    columns = [
        "model",
        f"{HEADLINES[comparison.headline]} [95 %]",
        f"Δ to {comparison.reference or NONE} [95 %]",
        "p",
        "Spearman [95 %]",
        "MSE",
        "RMSE",
        "bias",
        "R²",
        "AUROC sign",
        "AUROC strong",
        "Pearson within negatives",
        *(["log loss [95 %]", "Brier"] if calls else []),
        *(["AP of strong negatives [95 %]"] if negatives else []),
        *(["Pearson without gene effects [95 %]", "Pearson, one gene right"] if pairs else []),
        "s",
        "peak MiB",
    ]
    rows = [
        [
            score.model,
            with_interval(score.estimate(comparison.headline)),
            _delta(score, comparison),
            NONE if score.delta is None else decimals(score.delta.p, 3),
            with_interval(score.spearman),
            _small(score.mse.value),
            _small(_root(score.mse.value)),
            _small(score.bias.value),
            decimals(score.r2.value),
            decimals(score.auroc_sign.value),
            decimals(score.auroc_strong.value),
            with_interval(score.pearson_negatives),
            *([with_interval(score.log_loss), _small(score.brier.value)] if calls else []),
            *([with_interval(score.retrieval.get(NEGATIVES, UNDEFINED))] if negatives else []),
            *(
                [with_interval(score.pearson_gene_removed), decimals(score.pearson_shuffled.value)]
                if pairs
                else []
            ),
            _measured(score.seconds),
            _measured(score.peak_mib),
        ]
        for score in comparison.scores
    ]
    return columns, rows


def comparison_to_markdown(comparison: Comparison) -> str:
    """Return a comparison as a Markdown table with every metric, the winner and how the figures were made."""
    columns, cells = comparison_cells(comparison)
    rows = [
        ["`{}`{}".format(score.model.replace("`", "'"), " (baseline)" if score.baseline else ""), *row[1:]]
        for score, row in zip(comparison.scores, cells, strict=True)
    ]
    facts = "\n".join(f"* {fact}" for fact in facts_of(comparison))
    table = markdown_table(columns, rows, figures=True)
    differences = "".join(
        f"\n**{title}**\n\n{markdown_table(headings, lines, figures=True)}\n"
        for title, headings, lines in difference_tables(comparison)
    )
    return f"{table}\n\n**{comparison.winner_sentence}**\n\n{facts}\n{differences}"


# -------------------------------------------------------------------------------------------- several runs

SUMMARY_COLUMNS = {
    "spearman": "Spearman",
    "mse": "MSE",
    "auroc_sign": "AUROC of sign",
    "auroc_strong": "AUROC of strong",
    "pearson_negatives": "Pearson in negatives",
}


POOLED_COLUMNS = {
    "rmse": "RMSE",
    "bias": "bias",
    NEGATIVES: "AP of strong negatives",
    "pearson_gene_removed": "Pearson without gene effects",
    "pearson_shuffled": "Pearson, one gene right",
}
POOLED_OF_CALLS = {"log_loss": "log loss", "brier": "Brier", "bias": "bias"}
"""Columns of summaries of stored rows."""


def print_summary(summary: Summary, console: Console) -> None:
    """Print the mean and the spread of every model over runs of one question."""
    print_table(console, *summary_cells(summary), title=_summary_title(summary))
    if summary.pooled is None:
        return
    for line in (summary.pooled.winner_sentence, _pooled_line(summary.pooled)):
        print_line(line, console, "dim")
    for title, columns, rows in difference_tables(summary.pooled, "\n"):
        print_table(console, columns, rows, numeric=range(1, len(columns)), title=title)


def _pooled_line(pooled: Comparison) -> str:
    return "; ".join(
        [
            *pooled.notes,
            f"{pooled.rows:,} rows in all; 95 % intervals from {pooled.replicates:,} resamples of "
            f"{pooled.cluster_count:,} {pooled.clusters}",
        ]
    )


def summary_to_markdown(summary: Summary) -> str:
    """Return one summary as a Markdown table under its title, and its differences to baselines."""
    text = f"**{_summary_title(summary)}**\n\n{markdown_table(*summary_cells(summary))}\n"
    if summary.pooled is None:
        return text
    text += f"\n{summary.pooled.winner_sentence} {_pooled_line(summary.pooled)}.\n"
    for title, columns, rows in difference_tables(summary.pooled):
        text += f"\n{title}:\n\n{markdown_table(columns, rows, figures=True)}\n"
    return text


def _summary_title(summary: Summary) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    what = "runs" if summary.pooled is None else "seeds"
    return (
        f"{summary.dataset}, {summary.phenotype}, split {summary.split}: mean ± SD over "
        f"{len(summary.seeds)} {what} (seeds {seeds}); {summary.rows:,} test rows in the first"
    )


def summary_cells(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row per model, as text."""
    pooled, columns = summary.pooled, SUMMARY_COLUMNS
    if pooled is not None:
        shown = POOLED_OF_CALLS if summary.headline == "average_precision" else POOLED_COLUMNS
        columns = {
            name: title
            for name, title in shown.items()
            if any(name in metrics and metrics[name].runs for metrics in summary.models.values())
        }
    interval = [] if pooled is None else ["95 %"]
    header = ["model", HEADLINES[summary.headline], *interval, *columns.values(), "best in", "seconds"]
    rows = []
    for name, metrics in summary.models.items():
        cells = [name, spread_text(metrics[summary.headline])]
        if pooled is not None:
            found = pooled[name].estimate(summary.headline)
            low, high = decimals(found.low, 3), decimals(found.high, 3)
            cells.append(NONE if math.isnan(found.low) else f"[{low}, {high}]")
        cells += [spread_text(metrics[metric]) if metric in metrics else NONE for metric in columns]
        seconds = summary.seconds[name]
        cells += [
            f"{summary.wins[name]} of {len(summary.seeds)}",
            NONE if math.isnan(seconds) else f"{seconds:,.1f}",
        ]
        rows.append(cells)
    return header, rows


def spread_text(value: Spread) -> str:
    """Return mean ± SD; a dash where there is no mean."""
    if math.isnan(value.mean):
        return NONE
    digits = 3 if abs(value.mean) >= 0.05 or value.mean == 0 else 4
    text = f"{value.mean:.{digits}f}"
    return text if math.isnan(value.sd) else f"{text} ± {value.sd:.{digits}f}"


def print_agreement(found: Sequence[Agreement], console: Console) -> None:
    """Print the agreement of pairs of runs, and of all together; runs have numbers."""
    runs = list(dict.fromkeys(run for one in found for run in one.runs))
    columns = ["phenotype", "runs", "rows", "between", "differ", "alone", "mean"]
    rows = [
        [
            one.phenotype,
            " ".join(str(runs.index(run) + 1) for run in one.runs),
            f"{one.rows:,}",
            decimals(one.between, 3),
            f"{one.difference:.3g}" if one.rows else NONE,
            " ".join(decimals(value, 3) for value in one.alone),
            decimals(one.together, 3),
        ]
        for one in found
    ]
    legend = (
        "between: Pearson between the predictions; differ: mean absolute difference; alone: Pearson of each "
        "run with the labels; mean: that of their mean prediction; all on the shared test rows"
    )
    notes = [*(f"{i}: {run}" for i, run in enumerate(runs, 1)), legend]
    print_table(
        console, columns, rows, numeric=range(2, len(columns)), title="Agreement between runs", notes=notes
    )


# ----------------------------------------------------------------------------------------------- intervals


def print_coverage(found: Sequence[Coverage], console: Console) -> None:
    """Print coverage and width of every group of one run's test rows."""
    columns = ["phenotype", "group", "level", "coverage [95 %]", "width", "ρ", "test rows", "resting on"]
    rows = [
        [
            one.phenotype,
            one.group,
            f"{one.level:g}",
            decimals(one.coverage, 3) + ("" if math.isnan(one.low) else f" [{one.low:.2f}, {one.high:.2f}]"),
            _width(one.width),
            decimals(one.ranked, 2),
            f"{one.rows:,}" + (f" ({one.without:,} without)" if one.without else ""),
            f"{one.calibration_rows:,} ({one.calibration_clusters:,})",
        ]
        for one in found
    ]
    legend = (
        "unseen: genes that no training row has; width: mean, in the phenotype's unit; ρ: rank correlation "
        "of width and error; resting on: validation rows (clusters of them that share unseen genes, a gene "
        "set, or a held-out screen)"
    )
    reasons = dict.fromkeys(f"{one.group}: {one.reason}" for one in found if one.reason)
    print_table(
        console,
        columns,
        rows,
        numeric=range(2, len(columns)),
        title="Intervals on test rows",
        notes=[*reasons, legend],
    )


def print_mean_coverage(found: Sequence[MeanCoverage], console: Console) -> None:
    """Print mean coverage and width over several runs."""
    columns = ["phenotype", "group", "level", "coverage ± SD", "width", "ρ", "runs", "test rows"]
    rows = [
        [
            one.phenotype,
            one.group,
            f"{one.level:g}",
            decimals(one.coverage, 3) + ("" if math.isnan(one.coverage_sd) else f" ± {one.coverage_sd:.3f}"),
            _width(one.width),
            decimals(one.ranked, 2),
            f"{one.runs}",
            f"{one.rows:,}",
        ]
        for one in found
    ]
    title = "Intervals on test rows, mean over runs"
    print_table(console, columns, rows, numeric=range(2, len(columns)), title=title)


def _width(width: float) -> str:
    return NONE if math.isnan(width) else f"{width:.3g}"


# ----------------------------------------------------------------------------------------------- retrieval


def print_retrieved(comparison: Comparison, console: Console) -> None:
    """Print who finds the strong interactions; the 95 % intervals of all metrics are in the JSON."""
    metrics = ("average_precision", *(f"precision@{k}" for k in (*TOP, "hits")), "enrichment@hits")
    rows = []
    for name in LISTS:
        scores = [score for score in comparison.scores if f"{name}/average_precision" in score.retrieval]
        for score in sorted(scores, key=lambda s: -s.retrieval[f"{name}/average_precision"].value):
            found = [score.retrieval.get(f"{name}/{metric}", UNDEFINED) for metric in metrics]
            precisions = [decimals(one.value) for one in found[1:-2]]
            last = [with_interval(found[-2]), decimals(found[-1].value, 1)]
            rows.append([name, score.model, with_interval(found[0]), *precisions, *last])
    if not rows:
        why = "it has no strong interactions among these rows, or the run was made by an earlier version"
        print_line(f"no list of {comparison.phenotype} is stored: {why}", console)
        return
    columns = ["list", "model", "AP [95 %]", *(f"P@{k}" for k in TOP), "P@hits [95 %]", "times"]
    title = f"{comparison.dataset}, {comparison.phenotype}, split {comparison.split}: strong interactions"
    legend = (
        "AP: average precision; P@k: share of hits among the first k, k as many as there are hits in P@hits; "
        "times: P@hits over the share of hits among all rows. strong: labels far from 0, ranked by absolute "
        "prediction; negative, positive: those of one sign, ranked by signed prediction"
    )
    print_table(console, columns, rows, numeric=range(2, len(columns)), title=title, notes=[legend])


def retrieval_json(comparison: Comparison) -> dict[str, Any]:
    """Return the retrieval metrics of every model, by model and ``list/metric``."""
    return {score["model"]: score["retrieval"] for score in comparison.to_json()["scores"]}
