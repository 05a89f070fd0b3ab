"""The stored result of ``wildtype explain`` as a section of the page of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.report.figures.panel import Panel, legend_below, panel_group, shown
from wildtype.report.figures.style import LIGHT, MARKERS, SERIES, plain
from wildtype.report.page import Block, Group, Heading, Notes, Table, Text
from wildtype.report.text_table import NONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = 1
"""Of explain.json."""
MOST_HEADS, MOST_CLAIMS, MOST_MUTANTS, MOST_GENES = 24, 12, 6, 8
Record = Mapping[str, Any]


def explained_blocks(record: Record, key: str) -> list[Block]:
    """Return heads against their relations, what layers attend to, latents, and the parts of predictions.

    A file of another format is refused in one sentence on the page.
    """
    # The file is read from a run directory and may be damaged or of another version: the rest of the page
    # does not depend on it.
    try:
        if record["format"] != FORMAT:
            raise ValueError(f"it has format {record['format']}")
        blocks = [_about(record), *_figures(record, key), *_claims(record["layers"])]
        return [*blocks, *(block for one in record["mutants"][:MOST_MUTANTS] for block in _mutant(one))]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"explain.json is not as this version of wildtype explain writes it ({error})"
        return [Text(f"Not shown: {why}.", "none-there")]


def _about(record: Record) -> Notes:
    count = len(record["models"])
    facts = [f"{count} model{'' if count == 1 else 's'}; {record['agreement']}"]
    facts += [text for name, texts in record["remarks"].items() if name != "general" for text in texts]
    return Notes(facts)


def _figures(record: Record, key: str) -> list[Group]:
    panels = []
    if heads := record["heads"][:MOST_HEADS]:
        panels.append(_heads(heads))
    if record["latents"] and record["latents"]["x"]:
        panels.append(_latents(record["latents"]))
    return panel_group(panels, key)


def _mean(found: Record) -> float:
    return math.nan if found["mean"] is None else float(found["mean"])


def _over_models(found: Record) -> str:
    """Return a mean over models, with the SD where there are several."""
    sd = found.get("sd")
    return shown(_mean(found)) + (f" ± {shown(float(sd), 2)}" if sd is not None else "")


def _heads(heads: Sequence[Record]) -> Panel:
    names = [f"{head['relation']} ({head['layer']}.{head['head']})" for head in heads]
    found = [_mean(head["average_precision"]["found"]) for head in heads]
    random = [float(head["average_precision"]["random_mean"]) for head in heads]
    rows = [
        [
            name,
            *(
                text
                for measure in ("average_precision", "recall_at_degree", "mass")
                for text in (_over_models(head[measure]["found"]), shown(head[measure]["random_mean"]))
            ),
        ]
        for name, head in zip(names, heads, strict=True)
    ]

    def draw(axes: Axes) -> None:
        at = range(len(heads))
        axes.hlines(at, random, found, color=LIGHT["line"], linewidth=2)
        axes.plot(found, at, marker="o", linestyle="none", color=LIGHT["model"], label="heads")
        axes.plot(
            random,
            at,
            marker="|",
            linestyle="none",
            color=LIGHT["other"],
            markeredgewidth=1.6,
            label="random graphs of equal degrees",
        )
        axes.set_yticks(at, [plain(name, 26) for name in names])
        axes.set(
            ylim=(len(heads) - 0.5, -0.5), xlim=(0, None), xlabel="average precision of the relation’s edges"
        )
        axes.tick_params(axis="y", length=0)
        legend_below(axes)

    about = (
        "How well the attention of heads, named by relation, layer and head, finds the edges of the relation "
        "that they follow, against random graphs of equal degrees."
    )
    head = (
        "relation (layer.head)",
        "average precision",
        "random",
        "recall at degree",
        "random",
        "mass",
        "random",
    )
    return Panel("heads against their relations", about, draw, head, rows, min(0.3 + 0.05 * len(heads), 1.3))


def _latents(latents: Record) -> Panel:
    x, y, cluster = (np.array(latents[name], dtype=float) for name in ("x", "y", "cluster"))
    share = [f" ({100 * part:.0f} % of the variance)" for part in latents["explained"][:2]]

    def draw(axes: Axes) -> None:
        for i, number in enumerate(np.unique(cluster)):
            own = cluster == number
            axes.plot(
                x[own],
                y[own],
                linestyle="none",
                marker=MARKERS[i % len(MARKERS)],
                markersize=3.5,
                color=SERIES[i % len(SERIES)],
                alpha=0.75,
                label=f"cluster {number:.0f}",
            )
        axes.set(xlabel=f"first component{share[0]}", ylabel=f"second component{share[1]}")
        axes.legend(loc="best")

    rows = [
        [
            str(one["number"]),
            f"{one['mutants']:,}",
            "; ".join(f"{p['phenotype']} {shown(p['median'])}" for p in one["phenotypes"]) or NONE,
            ", ".join(_enriched(one)) or NONE,
        ]
        for one in latents["clusters"]
    ]
    about = (
        f"{len(x):,} mutants ({latents['drawn']}) by the two main components of their latents, in clusters."
    )
    head = ("cluster", "mutants", "median measured", "enriched")
    return Panel("latents of mutants", about, draw, head, rows, 0.8)


def _enriched(cluster: Record) -> list[str]:
    """Return names of what stands out in a cluster."""
    return [
        str(one.get("name") or one.get("gene")) for one in [*cluster["genes"], *cluster["sets"]][:MOST_GENES]
    ]


def _claims(layers: Sequence[Record]) -> list[Table]:
    claims = sorted(layers, key=lambda one: -np.nan_to_num(_mean(one["fold"])))[:MOST_CLAIMS]
    rows = [
        [
            f"layer {one['layer']}: {one['name']}",
            one["kind"],
            _over_models(one["fold"]),
            NONE if one["untrained"] is None else shown(one["untrained"]),
            f"{one['found_in']} of {one['models']}",
        ]
        for one in claims
    ]
    head = ["free heads attend to", "kind", "fold over chance", "untrained", "found in models"]
    caption = "what heads that follow no relation attend to, the strongest"
    return [Table(caption, head, rows)] if rows else []


def _mutant(one: Record) -> list[Block]:
    parts = sorted(one["parts"], key=lambda part: -abs(np.nan_to_num(_mean(part["integrated"]))))
    rows = [[part["name"], _over_models(part["integrated"])] for part in parts]
    genes = [] if rows else [[g["gene"], _over_models(g["integrated"])] for g in one["perturbed"]]
    cells = [
        [gene["gene"], _over_models(gene["weight"]), _over_models(gene["integrated"])]
        for gene in one["cell"][:MOST_GENES]
    ]
    evidence = [
        [
            token["edit"],
            NONE if token["value"] is None else shown(float(token["value"])),
            _over_models(token["weight"]),
        ]
        for token in one["tokens"][:MOST_GENES]
    ]
    name = ", ".join(one["genes"])
    measured = NONE if one["measured"] is None else shown(float(one["measured"]))
    tables = [
        Table(f"{name}: {what}", head, lines, "wrap")
        for what, head, lines in (
            ("parts of the prediction", ["part", "contribution"], rows),
            ("perturbed genes", ["gene", "contribution"], genes),
            ("genes of the cell", ["gene", "attention", "contribution"], cells),
            ("measured mutants looked up", ["mutant", "measured", "weight"], evidence),
        )
        if lines
    ]
    predicted = f"{one['phenotype']} predicted {_over_models(one['predicted'])}"
    return [Heading(f"{name}: {predicted}, measured {measured}"), Group("two", tables)]
