"""Tables for people: comparisons of models, cards of datasets, relations of organisms.

Names come from users and publishers, so they are set as plain text: brackets in them are never markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.compare import HEADLINES, Comparison, Score, signed

if TYPE_CHECKING:
    from wildtype.organism import Organism

_PLAIN = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "·": "|",
        "→": "->",
        "Δ": "d",
        "ρ": "rho",
        "≥": ">=",
        "²": "^2",
        "…": "...",
    }
    | {"ε": "epsilon", "τ": "tau", "±": "+/-", "×": "x", "Σ": "sum", "√": "sqrt", "≤": "<=", "∅": "0"}
)
NONE = "–"


def plain_text(value: object, console: Console, style: str = "") -> Text:
    """Return text without markup, respelled where the terminal's encoding cannot show it."""
    spelled = str(value)
    try:
        spelled.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        spelled = spelled.translate(_PLAIN).encode("ascii", "replace").decode()
    return Text(spelled, style=style)


def plain_table(
    console: Console, columns: Sequence[str], numeric: Iterable[int] = (), title: str = ""
) -> Table:
    """Return a table without rows that fits a terminal.

    Parameters
    ----------
    console : Console
        Whose width and encoding the table fits.
    columns : sequence of str
        Headings.
    numeric : iterable of int
        Columns of figures, by position: set to the right and never wrapped.
    title : str
        Above the table; none where it is empty.
    """
    right = set(numeric)
    table = Table(
        title=plain_text(title, console, "bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1 if console.width >= 110 else 0, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for i, column in enumerate(columns):
        table.add_column(
            plain_text(column, console),
            justify="right" if i in right else "left",
            overflow="fold",
            no_wrap=i in right,
        )
    return table


def decimals(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals, or a dash where it is not defined."""
    return NONE if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def with_interval(estimate: IntervalEstimate) -> str:
    """Return a metric and its 95 % interval where it has one."""
    if math.isnan(estimate.value) or math.isnan(estimate.low):
        return decimals(estimate.value)
    return f"{decimals(estimate.value)} [{decimals(estimate.low)}, {decimals(estimate.high)}]"


def _delta(score: Score, comparison: Comparison) -> str:
    if score.model == comparison.reference:
        return "reference"
    if score.delta is None:
        return NONE
    delta = score.delta
    return f"{signed(delta.value)} [{signed(delta.low)}, {signed(delta.high)}]"


def _small(value: float) -> str:
    """Return a squared error in six characters or so, whatever its size."""
    if math.isnan(value):
        return NONE
    return f"{value:.4f}" if 1e-3 <= abs(value) < 10 or value == 0 else f"{value:.1e}"


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
    for score in comparison.scores:
        for metric, reason in score.undefined.items():
            if metric not in HEADLINES or metric == "pearson" or comparison.headline == metric:
                reasons.setdefault(f"{metric} is undefined: {reason}", []).append(score.model)
    everyone = len(comparison.scores)
    facts += [
        reason if len(models) == everyone else f"{', '.join(models)}: {reason}"
        for reason, models in reasons.items()
    ]
    return [fact for fact in facts if fact]


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print a comparison as a table of up to 100 columns, then who wins and how the figures were made."""
    console = console or Console()
    headline = "AP" if comparison.headline == "average_precision" else "Pearson"
    # Squared errors of several phenotypes have no common unit; the share of variance explained has none.
    by_share = all(math.isnan(score.mse.value) for score in comparison.scores)
    error = "R²" if by_share else "MSE"
    columns = ["model", f"{headline} [95 %]", "Δ to reference", "ρ", error, "sign", "strong", "s", "MiB"]
    table = plain_table(console, columns, range(1, len(columns)))
    for score in comparison.scores:
        cells = [
            score.model,
            with_interval(score.estimate(comparison.headline)),
            _delta(score, comparison),
            decimals(score.spearman.value),
            decimals(score.r2.value) if by_share else _small(score.mse.value),
            decimals(score.auroc_sign.value),
            decimals(score.auroc_strong.value),
            _measured(score.seconds),
            _measured(score.peak_mib),
        ]
        style = "bold" if score is comparison.best else ""
        table.add_row(*(plain_text(cell, console, style) for cell in cells))
    console.print(table)
    console.print()
    console.print(plain_text(comparison.winner_sentence, console, "bold"))
    strong = "of calls" if comparison.headline == "average_precision" else "of strong interactions"
    legend = f"ρ: Spearman; sign, strong: AUROC of sign and {strong}; s, MiB: time, peak memory"
    if comparison.headline == "average_precision":
        legend = f"AP: average precision, the area under precision and recall; {legend}"
    for fact in (legend, *facts_of(comparison)):
        console.print(plain_text(fact, console, "dim"))


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ").replace("`", "'")


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [list(columns), ruler, *map(list, rows)])


def comparison_cells(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row per model with every metric, as text."""
    columns = [
        "model",
        f"{HEADLINES[comparison.headline]} [95 %]",
        f"Δ to {comparison.reference or NONE} [95 %]",
        "p",
        "Spearman [95 %]",
        "MSE",
        "R²",
        "AUROC sign",
        "AUROC strong",
        "Pearson within negatives",
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
            decimals(score.r2.value),
            decimals(score.auroc_sign.value),
            decimals(score.auroc_strong.value),
            with_interval(score.pearson_negatives),
            _measured(score.seconds),
            _measured(score.peak_mib),
        ]
        for score in comparison.scores
    ]
    return columns, rows


def to_markdown(comparison: Comparison) -> str:
    """Return a comparison as a Markdown table with every metric, the winner and how the figures were made."""
    columns, cells = comparison_cells(comparison)
    rows = [
        [f"`{_cell(score.model)}`" + (" (baseline)" if score.baseline else ""), *row[1:]]
        for score, row in zip(comparison.scores, cells, strict=True)
    ]
    columns = [_cell(column) for column in columns]
    facts = "\n".join(f"* {fact}" for fact in facts_of(comparison))
    return f"{_markdown(columns, rows)}\n\n**{comparison.winner_sentence}**\n\n{facts}\n"


def print_card(card: Mapping[str, Any], console: Console | None = None) -> None:
    """Print what ``Dataset.card`` returns: counts, exclusions, policies, noise, notes, and every stage."""
    console = console or Console()
    console.print(plain_text(card["name"], console, "bold"))
    facts = plain_table(console, ["", ""])
    facts.show_header = False
    description = f": {card['organism_description']}" if card["organism_description"] else ""
    lines: list[tuple[str, object]] = [
        ("organism", f"{card['organism']}{description}"),
        ("genes", f"{card['genes']:,}, of which perturbed in some row: {card['genes_measured']:,}"),
        ("rows", f"{card['rows']:,}"),
        ("targets", ", ".join(card["targets"]) or NONE),
        ("perturbations", _counts(card["perturbations_by_kind"])),
        ("not in the table", _counts(card["excluded"])),
        *((f"policy: {name}", meaning) for name, meaning in card["policies"].items()),
        ("noise ceiling", card["noise"]),
        *(("note", note) for note in card["notes"]),
        ("citation", card["citation"] or NONE),
        ("sha256", card["sha256"]),
    ]
    for name, value in lines:
        facts.add_row(plain_text(name, console, "dim"), plain_text(value, console))
    console.print(facts)
    by_phenotype = card["rows_by_phenotype_and_order"]
    orders = sorted({int(order) for counts in by_phenotype.values() for order in counts})
    columns = ["rows by genes per mutant", *(str(order) for order in orders)]
    table = plain_table(console, columns, range(1, len(columns)))
    for name, counts in by_phenotype.items():
        cells = [name, *(f"{counts.get(str(order), 0):,}" for order in orders)]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print(table)
    if card["stages"]:
        _print_stages(card["stages"], console)


def _print_stages(stages: Iterable[Mapping[str, Any]], console: Console) -> None:
    table = plain_table(console, ["stage", "step", "policy", "rows in", "rows out", "counts"], (3, 4))
    before = ""
    for report in stages:
        cells = [
            report["stage"] if report["stage"] != before else "",
            report["step"],
            report["policy"],
            f"{report['rows_in']:,}",
            f"{report['rows_out']:,}",
            _counts(report["counts"]),
        ]
        before = report["stage"]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print()
    console.print(table)


def _counts(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {count:,}" for name, count in counts.items()) or NONE


def print_relations(organism: Organism, console: Console | None = None) -> None:
    """Print the gene graphs of an organism: sizes, direction, what was dropped and why, where from."""
    console = console or Console()
    if not organism.graphs:
        console.print(
            plain_text(f"{organism.name} ({len(organism.genes):,} genes) has no gene graphs", console)
        )
        return
    columns = ["relation", "nodes", "edges", "rows", "kind", "dropped", "source"]
    title = f"Gene graphs of {organism.name} ({len(organism.genes):,} genes)"
    table = plain_table(console, columns, (1, 2, 3), title)
    for relation in organism.graphs.values():
        cells = [
            relation.name,
            f"{relation.nodes:,}",
            f"{relation.edges:,}",
            f"{relation.regularised_rows:,}",
            f"{'directed' if relation.directed else 'undirected'}{', weighted' if relation.weighted else ''}",
            _counts(relation.dropped),
            " ".join(part for part in (relation.source, relation.version) if part) or NONE,
        ]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    table.columns[0].min_width = min(max(len(name) for name in organism.graphs), 32)
    console.print(table)
    console.print()
    notes: dict[str, list[str]] = {}
    for relation in organism.graphs.values():
        if relation.note:
            notes.setdefault(relation.note, []).append(relation.name)
    for note, names in notes.items():
        console.print(plain_text(f"{', '.join(names)}: {note}", console))
    legend = (
        "rows: genes with an outgoing edge, on which an attention prior acts; undirected edges count once"
    )
    console.print(plain_text(legend, console, "dim"))


def print_features(organism: Organism, cards: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the cards of an organism's feature blocks: sizes, origin, and below what to know of each."""
    title = f"Gene features of {organism.name} ({len(organism.genes):,} genes)"
    table = plain_table(console, ["block", "columns", "genes", "between organisms", "source"], (1, 2), title)
    for card in cards:
        cells = [
            card["block"],
            f"{card['columns']:,}",
            f"{card['genes']:,}",
            "same" if card["comparable"] else "own axes",
            card["source"] or NONE,
        ]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print(table)
    console.print()
    for card in cards:
        facts = [f"REFUSED for {', '.join(card['refused'])}"] if card["refused"] else []
        facts += [f"measured from {', '.join(card['measured'])}"] if card["measured"] else []
        facts += [card["note"]] if card["note"] else []
        if facts:
            console.print(plain_text(f"{card['block']}: {'; '.join(facts)}", console))
    legend = (
        "genes: those with any value, the others are missing and marked so; own axes: components of a "
        "decomposition, which mean nothing in another organism"
    )
    console.print(plain_text(legend, console, "dim"))
