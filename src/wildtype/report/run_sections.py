"""The sections of a run's page, one function each, from facts to blocks of a page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from wildtype.evaluation.comparison import HEADLINES
from wildtype.evaluation.predicted_rows import PredictedRows, best_and_worst
from wildtype.report.comparison_tables import comparison_cells, facts_of
from wildtype.report.explained_section import explained_blocks
from wildtype.report.figures.calibration import calibration_panels
from wildtype.report.figures.comparison import comparison_panel
from wildtype.report.figures.error import error_panels
from wildtype.report.figures.learning import learning_panels
from wildtype.report.figures.panel import panel_figure, panel_group, shown
from wildtype.report.figures.predicted import predicted_panels
from wildtype.report.figures.reliability import reliability_panels
from wildtype.report.page import (
    Block,
    Card,
    Cell,
    Code,
    Details,
    Facts,
    Group,
    Heading,
    Notes,
    Table,
    Text,
    facts,
    lines,
)
from wildtype.report.profile_page import profile_parts
from wildtype.report.run_facts import RunFacts
from wildtype.report.text_table import NONE, decimals, with_interval

MUTANTS = 10
"""In each list of mutants."""
MOST_OTHERS = 60
LEVELS = (0.5, 0.8, 0.9, 0.95)
MOST_COVERAGE = 24
COLUMNS = 9
"""Of a comparison that are shown unfolded: they fit a small screen."""
REMARKS = 2
"""Of a comparison that are shown unfolded: its rows, and the ceiling of its labels."""


Blocks = list[Block]


def _lead(text: str) -> Text:
    return Text(text, "lead")


def _missing(run: RunFacts, name: str) -> Blocks:
    """Return the reason for a missing part; nothing where none was expected."""
    why = run.missing.get(name)
    return [Text(f"Not shown: {why}.", "none-there")] if why else []


# ------------------------------------------------------------------------------------------------ first sight


def head_cards(run: RunFacts) -> list[Card]:
    """Return cards: the run's model, the best baseline, what noise allows, and what training took."""
    cards = []
    table = run.tables[0] if run.tables else None
    if table is not None:
        own = next((score for score in table.scores if score.model == run.model), None)
        best = next((score for score in table.scores if score.baseline), None)
        for score, role in ((own, "model"), (best, "best baseline")):
            if score is None:
                continue
            found = score.estimate(table.headline)
            interval = NONE if math.isnan(found.low) else f"{decimals(found.low)} to {decimals(found.high)}"
            name = f"{HEADLINES[table.headline]}, {table.phenotype}"
            about = [f"95 % interval {interval}", f"{table.rows:,} test rows"]
            cards.append(_card(f"{score.model} ({role})", decimals(found.value), name, about))
        ceiling = run.ceilings.get(table.phenotype, math.nan)
        if math.isfinite(ceiling) and table.headline != "average_precision":
            cards.append(_card("noise ceiling", decimals(ceiling), "Pearson", ["a rough guide, no bound"]))
    fit = run.fit.get("fit") or {}
    if fit.get("seconds"):
        members = 1 + len(run.fit.get("members") or [])
        about = [f"{fit['epochs']} epochs, best {fit['best_epoch']}"]
        if fit.get("mutants_per_second") is not None:  # a run that was resumed at its end trained nothing
            about.append(f"{fit['mutants_per_second']:,.0f} mutants per second")
        about += [f"{run.fit['parameters']:,} parameters"] if run.fit.get("parameters") else []
        about += [f"first of {members} members"] if members > 1 else []
        cards.append(_card("training", *_duration(fit["seconds"]), about))
    return cards


def _card(title: str, big: str, small: str, about: Sequence[str]) -> Card:
    return Card(title, [Text(Markup("{} <small>{}</small>").format(big, small), "big"), Text(lines(about))])


def _duration(seconds: float) -> tuple[str, str]:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}", unit
    return f"{seconds:.0f}", "s"


# ----------------------------------------------------------------------------------------------- the sections


def _comparison(run: RunFacts, key: str) -> Blocks:
    blocks: Blocks = []
    for i, table in enumerate(run.tables):
        panel = comparison_panel(table, run.ceilings.get(table.phenotype, math.nan))
        columns, rows = comparison_cells(table)
        cells: list[list[Cell]] = [
            [_bold(row[0]) if row[0] == run.model else row[0], *map(_interval_below, row[1:])] for row in rows
        ]
        caption = f"{table.phenotype}: every model on the same {table.rows:,} test rows"
        blocks += [
            Text(table.winner_sentence, "win"),
            Group("beside", [panel_figure(panel, f"{key}{i}"), Group("", _folded(facts_of(table)))]),
            Table(caption, columns[:COLUMNS], [row[:COLUMNS] for row in cells], "dense"),
        ]
        if len(columns) > COLUMNS:
            further = [[row[0], *row[COLUMNS:]] for row in cells]
            more = Table(caption, [columns[0], *columns[COLUMNS:]], further, "dense")
            blocks.append(Details("further figures", [more]))
    return blocks + ([_others(run)] if run.others else [])


def _interval_below(text: str) -> Cell:
    """Return a figure with its interval on a second line, so that a wide table fits a screen."""
    value, bracket, interval = text.partition(" [")
    return Markup("{} <br><small>[{}</small>").format(value, interval) if bracket else text


def _folded(remarks: Sequence[str]) -> Blocks:
    """Return the first remarks, and the others to be expanded."""
    first, others = remarks[:REMARKS], remarks[REMARKS:]
    more = "1 further remark" if len(others) == 1 else f"{len(others)} further remarks"
    return [Notes(first), *([Details(more, [Notes(others)])] if others else [])]


def _bold(text: object) -> Markup:
    # `Markup.format` escapes its arguments, so that names of models and genes stay text.
    return Markup("<b>{}</b>").format(text)


def _others(run: RunFacts) -> Table:
    """Return one line for each of the tables that are not shown in full."""
    rows = []
    for table in run.others[:MOST_OTHERS]:
        own = next((score for score in table.scores if score.model == run.model), table.best)
        best = next((score for score in table.scores if score.baseline), None)
        rows.append(
            [
                table.phenotype,
                f"{table.rows:,}",
                with_interval(own.estimate(table.headline)),
                best.model if best else None,
                with_interval(best.estimate(table.headline)) if best else NONE,
            ]
        )
    left = f", {MOST_OTHERS} of {len(run.others)}" if len(run.others) > MOST_OTHERS else ""
    head = ["", "test rows", f"{run.model} [95 %]", "best baseline", "its figure [95 %]"]
    return Table(f"by phenotype or group{left}", head, rows)


def _predicted(run: RunFacts, key: str) -> Blocks:
    groups = [
        g for i, rows in enumerate(run.tested) for g in panel_group(predicted_panels(rows), f"{key}{i}-")
    ]
    if not groups:
        return _missing(run, "predictions")
    lead = "Test rows, which no model has learned from. Colours count rows, each step a factor more."
    if run.undrawn:
        lead += f" The phenotypes with the most test rows are drawn; {run.undrawn:,} more are not."
    return [_lead(lead), *groups]


def _calibration(run: RunFacts, key: str) -> Blocks:
    return [*_intervals(run, key), *_reliability(run, f"{key}r")]


def _reliability(run: RunFacts, key: str) -> Blocks:
    panels = reliability_panels(run.reliability)
    if not panels:
        return _missing(run, "reliability")
    lead = (
        "Do calls that are predicted with a probability of 10 % happen in 10 % of cases? On the dashed line "
        "they do. Each point holds a tenth of the test rows with that many unseen genes."
    )
    return [_lead(lead), *panel_group(panels, key)]


def _intervals(run: RunFacts, key: str) -> Blocks:
    panels = calibration_panels(run.coverage)
    if not panels:
        reasons = dict.fromkeys(f"{one.group}: {one.reason}" for one in run.coverage if one.reason)
        return _missing(run, "calibration") or ([Notes(list(reasons))] if reasons else [])
    lead = (
        "Does an interval of 90 % nominal coverage contain 90 % of the measured values? On the dashed line "
        "it does; below it, intervals are too narrow. Rows are grouped by their number of genes, and by how "
        "many of them no training row has. A rank correlation of width and error above 0 says that wide "
        "intervals warn of large errors."
    )
    rows = [
        [
            f"{one.phenotype}: {one.group}",
            f"{one.level:.0%}",
            f"{one.rows:,}",
            decimals(100 * one.coverage, 1) + " %",
            shown(one.width),
            decimals(one.ranked, 2),
        ]
        for one in sorted(run.coverage, key=lambda one: (one.phenotype, one.order, one.unseen, one.level))
        if one.level in LEVELS and math.isfinite(one.coverage)
    ]
    head = ["", "promised", "test rows", "covered", "mean width", "width and error"]
    table = Table("coverage at the most common levels", head, rows[:MOST_COVERAGE], "dense")
    drawn = [panel_figure(panel, f"{key}{i}") for i, panel in enumerate(panels)]
    return [_lead(lead), Group("beside", [*drawn, table])]


def _error(run: RunFacts, key: str) -> Blocks:
    groups = [g for i, rows in enumerate(run.tested) for g in panel_group(error_panels(rows), f"{key}{i}-")]
    if not groups:
        return _missing(run, "predictions")
    lead = (
        "Root mean squared error on test rows with 95 % intervals, of the run’s model and of the best "
        "baseline. Which gene of a double was the query’s is guessed from the sets."
    )
    return [_lead(lead), *groups]


def _learning(run: RunFacts, key: str) -> Blocks:
    if run.learning is None:
        return _missing(run, "learning")
    members = 1 + len(run.fit.get("members") or [])
    lead = "Means over the steps of each epoch."
    lead += f" Of {members} members, the first is shown." if members > 1 else ""
    return [_lead(lead), *panel_group(learning_panels(run.learning), key)]


def _time(run: RunFacts, key: str) -> Blocks:
    return profile_parts(run.profile) or _missing(run, "profile.json")


def _mutants(run: RunFacts, key: str) -> Blocks:
    groups: Blocks = []
    named: list[str] = []
    for rows in run.tested:
        best, worst = best_and_worst(rows, run.model, MUTANTS)
        named += [gene for i in (*best, *worst) for gene in rows.names(int(i))]
        strongest = f"{rows.phenotype}: best predicted of the strongest tenth"
        tables = [
            _mutant_table(run, rows, best.tolist(), strongest),
            _mutant_table(run, rows, worst.tolist(), f"{rows.phenotype}: worst predicted"),
        ]
        groups.append(Group("two", tables))
    if not groups:
        return []
    lead = (
        "Worst: the largest absolute errors of all test rows. Best: the smallest among the tenth of rows "
        "whose measured value lies farthest from the median, as a small error is easy where nothing "
        "happens."
    )
    lead += " † marks essential genes." if run.essential else ""
    return [_lead(lead), *groups, *_descriptions(run, named)]


def _mutant_table(run: RunFacts, rows: PredictedRows, at: Sequence[int], caption: str) -> Table:
    several = len(set(rows.condition)) > 1
    largest = float(np.abs(rows.measured[at]).max(initial=0.0)) or 1.0
    # Four significant digits of the largest value, so that rows of one table line up.
    digits = min(max(4 - math.ceil(math.log10(largest)), 0), 6)
    head = ["genes", "measured", "predicted", "error", *(["condition"] if several else [])]
    cells: list[list[Cell]] = []
    for i in at:
        measured, predicted = float(rows.measured[i]), float(rows.predicted[run.model][i])
        numbers = (_fixed(x, digits) for x in (measured, predicted, predicted - measured))
        cells.append([_genes(run, rows.names(i)), *numbers, *([rows.condition[i]] if several else [])])
    return Table(caption, head, cells)


def _fixed(value: float, digits: int) -> str:
    """Return a number with this many decimals; a number that rounds to 0 has no sign."""
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _genes(run: RunFacts, names: Iterable[str]) -> Markup:
    """Return genes by standard name, with the systematic one, and a mark for essential ones."""
    found = []
    for name in names:
        standard = run.genes.standard.get(name)
        text = Markup("<b>{}</b> <small>{}</small>").format(standard, name) if standard else name
        mark = Markup(' <abbr title="essential">†</abbr>') if name in run.essential else ""
        found.append(Markup('<span class="gene">{}{}</span>').format(text, mark))
    return Markup(", ").join(found)


def _descriptions(run: RunFacts, names: Iterable[str]) -> Blocks:
    """Return the descriptions of genes, each once, folded up."""
    known = run.genes.descriptions
    # Predictions name a kind behind the gene, as in CDC28:reduced.
    described = sorted({name.partition(":")[0] for name in names} & set(known))
    pairs: list[tuple[Cell, Cell]] = [(_genes(run, [name]), known[name]) for name in described]
    return [Details("what these genes do", [Facts(pairs)])] if pairs else []


def _next(run: RunFacts, key: str) -> Blocks:
    blocks: Blocks = []
    named: list[str] = []
    for predicted in run.unmeasured:
        blocks.append(_lead(predicted.what))
        if predicted.frame is None or not len(predicted.frame):
            continue
        tables = []
        for (phenotype, direction), frame in predicted.frame.groupby(["phenotype", "direction"], sort=False):
            head = ["genes", "predicted", "90 % interval", "singles"]
            cells: list[list[Cell]] = [
                [
                    _genes(run, str(row["genes"]).split(",")),
                    shown(float(row[str(phenotype)])),
                    _interval(row, str(phenotype)),
                    str(row["single_fitness"]).replace(",", ", "),
                ]
                for row in frame.to_dict("records")
            ]
            tables.append(Table(f"{phenotype}: {direction}est predictions", head, cells))
            named += [gene for genes in frame["genes"] for gene in str(genes).split(",")]
        blocks.append(Group("two", tables))
    return blocks + _descriptions(run, named)


def _interval(row: Mapping[Any, Any], phenotype: str) -> str:
    low, high = (row.get(f"{phenotype}_{end}", math.nan) for end in ("low", "high"))
    return f"{shown(float(low))} to {shown(float(high))}" if math.isfinite(low) else NONE


def _explained(run: RunFacts, key: str) -> Blocks:
    return [] if run.explained is None else explained_blocks(run.explained, key)


# -------------------------------------------------------------------------------------------- how it was made


def _made(run: RunFacts, key: str) -> Blocks:
    record = run.record
    blocks: Blocks = _missing(run, "record.json")
    if record:
        blocks = [Heading("command"), Code(shlex.join(map(str, record.get("command") or [])))]
    blocks += [Heading("data"), *_data(run), Heading("split"), *_split(run)]
    if record:
        versions = {"python": record.get("python"), **(record.get("packages") or {})}
        versions["git"] = record.get("git")
        machine = {k.replace("_", " "): v for k, v in (record.get("machine") or {}).items()}
        halves = [
            Group("", [Heading(name), facts(x)]) for name, x in (("versions", versions), ("machine", machine))
        ]
        blocks.append(Group("two", halves))
    return [*blocks, Details("all settings", [Facts(_flat(run.settings))])]


def _data(run: RunFacts) -> Blocks:
    card = run.card
    if not card:
        return _missing(run, "card.json")
    counts = card.get("rows_by_phenotype_and_order") or {}
    orders = sorted({order for by in counts.values() for order in by}, key=int)
    found: dict[str, object] = {
        "dataset": card.get("name"),
        "organism": f"{card.get('organism')}: {card.get('organism_description') or NONE}",
        "genes": f"{card.get('genes', 0):,}, of which some row perturbs {card.get('genes_measured', 0):,}",
        "rows": f"{card.get('rows', 0):,}",
        "not in the table": "; ".join(f"{k} {v:,}" for k, v in (card.get("excluded") or {}).items()) or NONE,
        **{f"policy: {k}": v for k, v in (card.get("policies") or {}).items()},
        # What a list's labels mean stands at the top of its page; here, which columns of a whole screen.
        **({"selected": "; ".join((card.get("selection") or {}).values())} if "crosses" in card else {}),
        "noise": card.get("noise"),
        "citation": card.get("citation"),
        "sha256": card.get("sha256"),
    }
    blocks: Blocks = [facts(found)]
    if counts:
        rows = [[name, *(f"{by.get(order, 0):,}" for order in orders)] for name, by in counts.items()]
        blocks.append(Table("rows by genes per mutant", ["", *orders], rows))
    return [*blocks, Notes(card.get("notes") or [])]


def _split(run: RunFacts) -> Blocks:
    split, sides = run.split, run.sides
    found: dict[str, object] = {}
    if split:
        options = ", ".join(f"{k} {v}" for k, v in (split.get("options") or {}).items())
        dropped = "; ".join(f"{v:,} {k}" for k, v in (split.get("dropped") or {}).items())
        found |= {
            "name": split.get("name"),
            "seed": split.get("seed"),
            "options": options or NONE,
            "dropped": dropped or "no rows",
            "dataset sha256": split.get("dataset_sha256"),
        }
    if sides is not None:
        found["rows"] = ", ".join(f"{side} {count:,}" for side, count in sides.rows.items())
        found["gene sets"] = ", ".join(f"{side} {count:,}" for side, count in sides.gene_sets.items())
        shared = f"{sides.on_two_sides:,} gene sets stand on two sides"
        found["leak check"] = f"{shared} (counted again from the rows that the checkpoint keeps)"
        for side, counts in sides.unseen.items():
            told = ", ".join(f"{rows:,} rows with {unseen}" for unseen, rows in counts.items())
            found[f"{side}: genes not in training"] = told or NONE
    return [*_missing(run, "split.json"), *([facts(found)] if found else []), *_missing(run, "sides")]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[Cell, Cell]]:
    """Return nested settings as dotted names and values."""
    found: list[tuple[Cell, Cell]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) and value else [(name, value)]
    return found


SECTIONS: tuple[tuple[str, str, Callable[[RunFacts, str], Blocks]], ...] = (
    ("comparison", "Models compared", _comparison),
    ("predicted", "Predicted against measured", _predicted),
    ("calibration", "Do intervals have their nominal coverage?", _calibration),
    ("error", "Where it is wrong", _error),
    ("learning", "How it learned", _learning),
    ("time", "Where the time went", _time),
    ("mutants", "Best and worst predicted mutants", _mutants),
    ("next", "Predicted, not yet measured", _next),
    ("explained", "What the model looks at", _explained),
    ("made", "How this was made", _made),
)
"""Key, title and maker of every section, in order."""
