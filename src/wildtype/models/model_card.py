"""The model card of a checkpoint: what it predicts, what it was trained on, how good it was, its limits.

It is for people. Nothing reads it, so that an older checkpoint without one, or one whose card was edited, is
as good as before.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import metadata
from typing import Any

import numpy as np
import torch

from wildtype.evidence.reference import PARTS, TRAIN, ReferenceMeasurements
from wildtype.models.ensemble import class_of, members_of
from wildtype.models.registry import MODELS
from wildtype.models.trained import TrainedModel
from wildtype.mutants import Kind
from wildtype.mutants.selection import selection_sentences
from wildtype.plugins import recorded

FILE = "model_card.md"
SHOWN = (
    "pearson", "spearman", "mse", "r2", "auroc_sign", "auroc_strong", "pearson_negatives",
    "average_precision",
)  # fmt: skip
"""Metrics of test rows, in the order in which they are listed."""
INTERVALS = "from validation rows; they hold for mutants drawn as those were."
LONGEST = 12
"""Names of a list that are written out."""


def plain(text: object) -> str:
    """Return text that Markdown shows as it is, on one line: names come from users and publishers."""
    # Control characters and line breaks in a name could start a heading or hide text.
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return re.sub(r"[\\`*\[\]#|~$!]|(?<!\w)_|_(?!\w)", r"\\\g<0>", escape(line, quote=False))


def model_card(checkpoint: TrainedModel, format_version: int) -> str:
    """Return the card of a checkpoint as Markdown.

    Rows are counted as they stand in ``known``; metrics are those that are stored, with their intervals.
    """
    known, genes, origin = checkpoint.known, checkpoint.genes, checkpoint.origin
    config, metrics = checkpoint.model.config, checkpoint.metrics
    plugins = recorded((MODELS, config.name))
    dataset, sha256 = origin.get("dataset", "–"), str(origin.get("dataset_sha256", "–"))[:12]
    evidence, members = class_of(checkpoint.model).evidence_line(config), len(members_of(checkpoint.model))
    # Evidence may hold further phenotypes; rows are counted for those that the model predicts.
    used = [i for i, name in enumerate(known.phenotypes) if name in (*checkpoint.names, known.effect)]
    mine = np.isin(known.table.phenotype, used)
    trained = known.table.take(mine & (known.part == TRAIN))
    lines = [
        f"# {plain(config.name)} on {plain(dataset)}",
        "",
        "Written by wildtype with the checkpoint that it lies in. Numbers are those stored beside it.",
        "",
        "## What it predicts",
        "",
        *_table(
            ("phenotype", "unit", "is", "a prediction is", "genes at least"),
            [
                (p["name"], p.get("unit", ""), p.get("description") or "–", _FORMS[p.get("form", "scalar")],
                 p.get("min_order", 1))
                for p in checkpoint.phenotypes
            ],
        ),
        "",
        *_selected(checkpoint),
        "## What it was trained on",
        "",
        *_table(
            ("", ""),
            [
                ("dataset", f"{dataset} (sha256 {sha256})"),
                ("organism", f"{origin.get('organism', genes.organism)}, {len(genes):,} genes are tokens"),
                ("split", f"{origin.get('split', '–')}, seed {origin.get('seed', '–')}"),
                *_rows_by_part(known, used),
                ("gene graphs", _names(checkpoint.relations)),
                ("parameters", f"{metrics['parameters']:,}" if metrics.get("parameters") else "–"),
                ("members of the ensemble", members),
            ],
        ),
        "",
        "## How good it was on test rows",
        "",
        *_scores(metrics.get("test") or {}),
        "",
        "## What it is for, and its limits",
        "",
        "For ranking mutants of this organism before an experiment, beside the baselines of its run. Not for "
        "decisions about people.",
        "",
        f"* Genes per mutant in training: {_orders(trained.order)}. Other numbers are extrapolated, and "
        "predictions say so.",
        f"* {len(np.unique(trained.gene)):,} of {len(genes):,} genes were perturbed in training rows; for "
        "all others the model has features and graphs alone.",
        f"* What was done to genes in training: {plain(_names(_kinds(trained.kind)))}.",
        f"* Conditions: {plain(_names(checkpoint.conditions))}. It knows no other.",
        f"* Evidence: {plain(evidence)}",
        f"* Intervals: {'none.' if checkpoint.validation is None else INTERVALS}",
        "",
        "## Made with",
        "",
        *_table(
            ("", ""),
            [
                ("checkpoint format", format_version),
                *(("plug-in", f"{p['file']} (sha256 {p['sha256'][:12]})") for p in plugins),
                ("wildtype", metadata.version("wildtype")),
                ("torch", torch.__version__),
                ("numpy", np.__version__),
                ("Python", platform.python_version()),
            ],
        ),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


_FORMS = {"scalar": "a number", "class": "a probability", "gene": "a number per gene"}


def _rows_by_part(known: ReferenceMeasurements, used: list[int]) -> list[tuple[str, str]]:
    """Return the number of rows of the phenotypes ``used`` by part, and of listed crosses of a grid."""
    counts = {part: int(np.isin(known.rows(part).phenotype, used).sum()) for part in PARTS[:3]}
    what = "train rows" if known.grid is None else "train rows that are listed crosses"
    named = {what: counts.pop("train")} | {f"{part} rows": count for part, count in counts.items()}
    return [(name, f"{count:,}") for name, count in named.items()]


def _selected(checkpoint: TrainedModel) -> list[str]:
    """Return what predictions mean of phenotypes whose labels were selected for a list."""
    whole = {p["name"] for p in checkpoint.phenotypes if p.get("of_cross")}
    lines = [
        f"* {'' if name in whole else 'Trained on selected rows: '}{plain(sentence)}."
        for name, sentence in selection_sentences(checkpoint.phenotypes).items()
    ]
    return [*lines, ""] if lines else []


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [
        f"| {' | '.join(columns)} |",
        "|" + "---|" * len(columns),
        *(f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows),
    ]


def _scores(test: Mapping[str, Any]) -> list[str]:
    """Return the metrics of every phenotype; undefined ones are left out."""
    rows = []
    for phenotype, score in test.items():
        for name in SHOWN:
            found = score.get(name)
            if found and found["value"] is not None and math.isfinite(found["value"]):
                rows.append((phenotype, score.get("n", "–"), name, _number(found["value"]), _interval(found)))
    if not rows:
        return ["None are stored."]
    return _table(("phenotype", "rows", "metric", "value", "95 % interval"), rows)


def _interval(score: Mapping[str, Any]) -> str:
    ends = [score.get("low"), score.get("high")]
    return "–" if None in ends else f"{_number(ends[0])} to {_number(ends[1])}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LONGEST:,} more" if len(names) > LONGEST else ""
    return ", ".join(names[:LONGEST]) + more if names else "none"


def _orders(order: Any) -> str:
    found, counts = np.unique(order, return_counts=True)
    return ", ".join(f"{k} ({n:,} rows)" for k, n in zip(found, counts, strict=True)) or "none"


def _kinds(kind: Any) -> list[str]:
    return [Kind(value).name.lower() for value in np.unique(kind)]
