"""The sections of a run's page, one function each: from facts to HTML, empty where nothing is to be said."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wildtype.evaluation.compare import HEADLINES
from wildtype.evaluation.predicted_rows import PredictedRows, best_and_worst
from wildtype.report.explained_section import explained_html
from wildtype.report.figures.calibration import calibration_panels
from wildtype.report.figures.comparison import comparison_panel
from wildtype.report.figures.error import error_panels
from wildtype.report.figures.learning import learning_panels
from wildtype.report.figures.panel import Panel, panel_html, shown
from wildtype.report.figures.predicted import predicted_panels
from wildtype.report.page import html_table, html_text
from wildtype.report.profile_page import profile_parts
from wildtype.report.run_facts import RunFacts
from wildtype.report.table import NONE, comparison_cells, decimals, facts_of, with_interval

MUTANTS = 10
"""In each list of mutants."""
MOST_OTHERS = 60
LEVELS = (0.5, 0.8, 0.9, 0.95)
MOST_COVERAGE = 24


def section(key: str, title: str, html: str) -> str:
    """Return a section with a heading that links to itself."""
    return (
        f'<section id="{key}" aria-labelledby="h-{key}"><h2 id="h-{key}"><a href="#{key}">'
        f"{html_text(title)}</a></h2>{html}</section>"
    )


def _panels(panels: Iterable[Panel], key: str) -> str:
    drawn = "".join(panel_html(panel, f"{key}{i}") for i, panel in enumerate(panels))
    return f'<div class="panels">{drawn}</div>' if drawn else ""


def _lead(text: str) -> str:
    return f'<p class="lead">{text}</p>'


def _missing(run: RunFacts, name: str) -> str:
    why = run.missing.get(name)
    return f'<p class="none-there">Not shown: {html_text(why)}.</p>' if why else ""


def _notes(facts: Sequence[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{html_text(fact)}</li>" for fact in facts)}</ul>'


# ------------------------------------------------------------------------------------------------ first sight


def head_cards(run: RunFacts) -> str:
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
            lines = [f"95 % interval {interval}", f"{table.rows:,} test rows"]
            cards.append(_card(f"{score.model} ({role})", decimals(found.value), name, lines))
        ceiling = run.ceilings.get(table.phenotype, math.nan)
        if math.isfinite(ceiling) and table.headline != "average_precision":
            cards.append(_card("noise ceiling", decimals(ceiling), "Pearson", ["a rough guide, no bound"]))
    fit = run.fit.get("fit") or {}
    if fit.get("seconds"):
        members = 1 + len(run.fit.get("members") or [])
        rate = f"{fit['mutants_per_second']:,.0f} mutants per second"
        lines = [f"{fit['epochs']} epochs, best {fit['best_epoch']}", rate]
        lines += [f"{run.fit['parameters']:,} parameters"] if run.fit.get("parameters") else []
        lines += [f"first of {members} members"] if members > 1 else []
        cards.append(_card("training", *_duration(fit["seconds"]), lines))
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(title: str, big: str, small: str, lines: Sequence[str]) -> str:
    return (
        f'<article class="card"><h2>{html_text(title)}</h2><p class="big">{html_text(big)} '
        f"<small>{html_text(small)}</small></p><p>{'<br>'.join(map(html_text, lines))}</p></article>"
    )


def _duration(seconds: float) -> tuple[str, str]:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}", unit
    return f"{seconds:.0f}", "s"


# ----------------------------------------------------------------------------------------------- the sections


def _comparison(run: RunFacts, key: str) -> str:
    parts = []
    for i, table in enumerate(run.tables):
        panel = comparison_panel(table, run.ceilings.get(table.phenotype, math.nan))
        columns, rows = comparison_cells(table)
        cells = [[html_text(cell) for cell in row] for row in rows]
        for row in cells:
            if row[0] == html_text(run.model):
                row[0] = f"<b>{row[0]}</b>"
        caption = html_text(f"{table.phenotype}: every model on the same {table.rows:,} test rows")
        parts.append(
            f'<p class="win">{html_text(table.winner_sentence)}</p>'
            f'<div class="beside">{panel_html(panel, f"{key}{i}")}{_notes(facts_of(table))}</div>'
            f"{html_table(caption, list(map(html_text, columns)), cells, 'dense')}"
        )
    if run.others:
        parts.append(_others(run))
    return "".join(parts)


def _others(run: RunFacts) -> str:
    """Return one line for each of the tables that are not shown in full."""
    rows = []
    for table in run.others[:MOST_OTHERS]:
        own = next((score for score in table.scores if score.model == run.model), table.best)
        best = next((score for score in table.scores if score.baseline), None)
        rows.append(
            [
                html_text(table.phenotype),
                f"{table.rows:,}",
                with_interval(own.estimate(table.headline)),
                html_text(best.model if best else None),
                with_interval(best.estimate(table.headline)) if best else NONE,
            ]
        )
    left = f", {MOST_OTHERS} of {len(run.others)}" if len(run.others) > MOST_OTHERS else ""
    head = ["", "test rows", f"{html_text(run.model)} [95 %]", "best baseline", "its figure [95 %]"]
    return html_table(f"by phenotype or group{left}", head, rows)


def _predicted(run: RunFacts, key: str) -> str:
    parts = [_panels(predicted_panels(rows), f"{key}{i}-") for i, rows in enumerate(run.tested)]
    if not parts:
        return _missing(run, "predictions")
    lead = "Test rows, which no model has learned from. Colours count rows, each step a like factor more."
    if run.undrawn:
        lead += f" Drawn are the phenotypes with the most test rows; {run.undrawn:,} more are not."
    return _lead(lead) + "".join(parts)


def _calibration(run: RunFacts, key: str) -> str:
    panels = calibration_panels(run.coverage)
    if not panels:
        reasons = dict.fromkeys(f"{one.group}: {one.reason}" for one in run.coverage if one.reason)
        return _missing(run, "calibration") or (_notes(list(reasons)) if reasons else "")
    lead = (
        "Does an interval that promises to hold 90 % of all values hold 90 % of them? On the dashed line it "
        "does; below it, intervals are too narrow. Rows are judged in groups: by their number of genes, and "
        "of genes that no training row has."
    )
    rows = [
        [
            html_text(f"{one.phenotype}: {one.group}"),
            f"{one.level:.0%}",
            f"{one.rows:,}",
            decimals(100 * one.coverage, 1) + " %",
            shown(one.width),
        ]
        for one in sorted(run.coverage, key=lambda one: (one.phenotype, one.order, one.unseen, one.level))
        if one.level in LEVELS and math.isfinite(one.coverage)
    ]
    head = ["", "promised", "test rows", "covered", "mean width"]
    table = html_table("coverage at the levels that are most asked for", head, rows[:MOST_COVERAGE])
    drawn = "".join(panel_html(panel, f"{key}{i}") for i, panel in enumerate(panels))
    return f'{_lead(lead)}<div class="beside">{drawn}{table}</div>'


def _error(run: RunFacts, key: str) -> str:
    parts = [_panels(error_panels(rows), f"{key}{i}-") for i, rows in enumerate(run.tested)]
    if not parts:
        return _missing(run, "predictions")
    lead = (
        "Root mean squared error on test rows with 95 % intervals, of the run’s model and of the best "
        "baseline. Which gene of a double was the query’s is guessed from the sets."
    )
    return _lead(lead) + "".join(parts)


def _learning(run: RunFacts, key: str) -> str:
    if run.learning is None:
        return _missing(run, "learning")
    members = 1 + len(run.fit.get("members") or [])
    lead = "Means over the steps of each epoch."
    lead += f" Of {members} members, the first is shown." if members > 1 else ""
    return _lead(lead) + _panels(learning_panels(run.learning), key)


def _time(run: RunFacts, key: str) -> str:
    return profile_parts(run.profile) or _missing(run, "profile.json")


def _mutants(run: RunFacts, key: str) -> str:
    parts: list[str] = []
    named: list[str] = []
    for rows in run.tested:
        best, worst = best_and_worst(rows, run.model, MUTANTS)
        named += [gene for i in (*best, *worst) for gene in rows.names(int(i))]
        name = html_text(rows.phenotype)
        parts.append(
            '<div class="two">'
            + _mutant_table(run, rows, best.tolist(), f"{name}: best predicted of the strongest tenth")
            + _mutant_table(run, rows, worst.tolist(), f"{name}: worst predicted")
            + "</div>"
        )
    if not parts:
        return ""
    lead = (
        "Worst: the largest absolute errors of all test rows. Best: the smallest among the tenth of rows "
        "whose measured value lies farthest from the median, as a small error is no feat where nothing "
        "happens."
    )
    lead += " † marks essential genes." if run.essential else ""
    return _lead(lead) + "".join(parts) + _what_genes_do(run, named)


def _mutant_table(run: RunFacts, rows: PredictedRows, at: Sequence[int], caption: str) -> str:
    several = len(set(rows.condition)) > 1
    largest = float(np.abs(rows.measured[at]).max(initial=0.0)) or 1.0
    digits = min(max(4 - math.ceil(math.log10(largest)), 0), 6)
    head = ["genes", "measured", "predicted", "error", *(["condition"] if several else [])]
    cells = []
    for i in at:
        measured, predicted = float(rows.measured[i]), float(rows.predicted[run.model][i])
        numbers = (_fixed(x, digits) for x in (measured, predicted, predicted - measured))
        cells.append(
            [_genes(run, rows.names(i)), *numbers, *([html_text(rows.condition[i])] if several else [])]
        )
    return html_table(caption, head, cells)


def _fixed(value: float, digits: int) -> str:
    """Return a number with so many decimals, without a sign where it is 0 then."""
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _genes(run: RunFacts, names: Iterable[str]) -> str:
    """Return genes by standard name, with the systematic one, and a mark for essential ones."""
    shown_genes = []
    for name in names:
        standard = run.genes.standard.get(name)
        text = html_text(name)
        if standard:
            text = f"<b>{html_text(standard)}</b> <small>{text}</small>"
        mark = ' <abbr title="essential">†</abbr>' if name in run.essential else ""
        shown_genes.append(f'<span class="gene">{text}{mark}</span>')
    return ", ".join(shown_genes)


def _what_genes_do(run: RunFacts, names: Iterable[str]) -> str:
    """Return the descriptions of genes, each once, folded up."""
    known = run.genes.descriptions
    told = [(name, known[name]) for name in sorted({name.partition(":")[0] for name in names} & set(known))]
    if not told:
        return ""
    lines = "".join(f"<dt>{_genes(run, [name])}</dt><dd>{html_text(text)}</dd>" for name, text in told)
    return f"<details><summary>what these genes do</summary><dl>{lines}</dl></details>"


def _next(run: RunFacts, key: str) -> str:
    parts: list[str] = []
    named: list[str] = []
    for asked in run.asked:
        parts.append(_lead(html_text(asked.what)))
        if asked.frame is None or not len(asked.frame):
            continue
        tables = []
        for (phenotype, direction), frame in asked.frame.groupby(["phenotype", "direction"], sort=False):
            head = ["genes", "predicted", "90 % interval", "singles"]
            cells = [
                [
                    _genes(run, str(row["genes"]).split(",")),
                    shown(float(row[str(phenotype)])),
                    _interval(row, str(phenotype)),
                    html_text(str(row["single_fitness"]).replace(",", ", ")),
                ]
                for row in frame.to_dict("records")
            ]
            caption = html_text(f"{phenotype}: {direction}est predictions")
            tables.append(html_table(caption, head, cells))
            named += [gene for genes in frame["genes"] for gene in str(genes).split(",")]
        parts.append(f'<div class="two">{"".join(tables)}</div>')
    return "".join(parts) + _what_genes_do(run, named)


def _interval(row: Mapping[Any, Any], phenotype: str) -> str:
    low, high = (row.get(f"{phenotype}_{end}", math.nan) for end in ("low", "high"))
    return f"{shown(float(low))} to {shown(float(high))}" if math.isfinite(low) else NONE


def _explained(run: RunFacts, key: str) -> str:
    return "" if run.explained is None else explained_html(run.explained, key)


def _facts(facts: Mapping[str, object]) -> str:
    lines = "".join(f"<dt>{html_text(name)}</dt><dd>{html_text(value)}</dd>" for name, value in facts.items())
    return f"<dl>{lines}</dl>"


# -------------------------------------------------------------------------------------------- how it was made


def _made(run: RunFacts, key: str) -> str:
    record, parts = run.record, []
    if record:
        words = shlex.join(map(str, record.get("command") or []))
        parts.append(f"<h3>command</h3><pre>{html_text(words)}</pre>")
    else:
        parts.append(_missing(run, "record.json"))
    parts.append(f"<h3>data</h3>{_data(run)}<h3>split</h3>{_split(run)}")
    if record:
        versions = {"python": record.get("python"), **(record.get("packages") or {})}
        versions["git"] = record.get("git")
        machine = {k.replace("_", " "): v for k, v in (record.get("machine") or {}).items()}
        parts.append(
            f'<div class="two"><div><h3>versions</h3>{_facts(versions)}</div>'
            f"<div><h3>machine</h3>{_facts(machine)}</div></div>"
        )
    settings = _facts({name: value for name, value in _flat(run.settings)})
    parts.append(f"<details><summary>all settings</summary>{settings}</details>")
    return "".join(parts)


def _data(run: RunFacts) -> str:
    card = run.card
    if not card:
        return _missing(run, "card.json")
    counts = card.get("rows_by_phenotype_and_order") or {}
    orders = sorted({order for by in counts.values() for order in by}, key=int)
    facts: dict[str, object] = {
        "dataset": card.get("name"),
        "organism": f"{card.get('organism')}: {card.get('organism_description') or NONE}",
        "genes": f"{card.get('genes', 0):,}, of which some row perturbs {card.get('genes_measured', 0):,}",
        "rows": f"{card.get('rows', 0):,}",
        "not in the table": "; ".join(f"{k} {v:,}" for k, v in (card.get("excluded") or {}).items()) or NONE,
        **{f"policy: {k}": v for k, v in (card.get("policies") or {}).items()},
        "noise": card.get("noise"),
        "citation": card.get("citation"),
        "sha256": card.get("sha256"),
    }
    table = ""
    if counts:
        rows = [
            [html_text(name), *(f"{by.get(order, 0):,}" for order in orders)] for name, by in counts.items()
        ]
        table = html_table("rows by genes per mutant", ["", *map(html_text, orders)], rows)
    return _facts(facts) + table + _notes(card.get("notes") or [])


def _split(run: RunFacts) -> str:
    split, sides = run.split, run.sides
    facts: dict[str, object] = {}
    if split:
        options = ", ".join(f"{k} {v}" for k, v in (split.get("options") or {}).items())
        dropped = "; ".join(f"{v:,} {k}" for k, v in (split.get("dropped") or {}).items())
        facts |= {
            "name": split.get("name"),
            "seed": split.get("seed"),
            "options": options or NONE,
            "dropped": dropped or "no rows",
            "dataset sha256": split.get("dataset_sha256"),
        }
    if sides is not None:
        facts["rows"] = ", ".join(f"{side} {count:,}" for side, count in sides.rows.items())
        facts["gene sets"] = ", ".join(f"{side} {count:,}" for side, count in sides.gene_sets.items())
        found = f"{sides.on_two_sides:,} gene sets stand on two sides"
        facts["leak check"] = f"{found} (counted again from the rows that the checkpoint keeps)"
        for side, counts in sides.unseen.items():
            told = ", ".join(f"{rows:,} rows with {unseen}" for unseen, rows in counts.items())
            facts[f"{side}: genes not in training"] = told or NONE
    return _missing(run, "split.json") + (_facts(facts) if facts else "") + _missing(run, "sides")


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) and value else [(name, value)]
    return found


SECTIONS: tuple[tuple[str, str, Callable[[RunFacts, str], str]], ...] = (
    ("comparison", "Models compared", _comparison),
    ("predicted", "Predicted against measured", _predicted),
    ("calibration", "Do intervals hold what they promise?", _calibration),
    ("error", "Where it is wrong", _error),
    ("learning", "How it learned", _learning),
    ("time", "Where the time went", _time),
    ("mutants", "Best and worst predicted mutants", _mutants),
    ("next", "Predicted, not yet measured", _next),
    ("explained", "What the model looks at", _explained),
    ("made", "How this was made", _made),
)
"""Key, title and maker of every section, in order."""
