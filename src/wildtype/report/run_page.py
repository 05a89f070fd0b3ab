"""The page of a run: what was reached, where it is wrong, and how it was made, in one HTML file.

Numbers come from `evaluation`, drawings from `report.figures` and `profile_drawing`. A part that a run
directory lacks is named in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from wildtype.errors import ConfigError
from wildtype.evaluation.summary import Summary
from wildtype.report.comparison_tables import summary_cells
from wildtype.report.figures.comparison import summary_panel
from wildtype.report.figures.panel import panel_group
from wildtype.report.figures.style import figure_colours
from wildtype.report.page import Block, Section, Table, Text, render
from wildtype.report.profile_drawing import HATCH, phase_colours
from wildtype.report.run_facts import RunFacts
from wildtype.report.run_sections import SECTIONS, head_cards

MOST_RUNS = 6
"""On one page, which stays below 3 MB with them."""


def run_page(runs: Sequence[RunFacts], summaries: Sequence[Summary] = ()) -> str:
    """Return the page of one or several runs.

    Parameters
    ----------
    runs : sequence of RunFacts
        In the order in which they are shown.
    summaries : sequence of Summary
        Several runs of one question, summed up over their seeds.

    Raises
    ------
    ConfigError
        If there are no runs, or more than one page holds.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        raise ConfigError(f"a page shows 1 to {MOST_RUNS} runs, and {len(runs)} were named: name fewer")
    # Sections and drawings of several runs share a page, whose ids must be unique.
    letters = [chr(ord("a") + i) if len(runs) > 1 else "" for i in range(len(runs))]
    return render(
        "run.html",
        title=", ".join(dict.fromkeys(f"{run.model} on {_dataset(run)}" for run in runs)),
        styles=["profile.css", "figure.css", "run.css"],
        colours=phase_colours() + figure_colours(),
        hatch=HATCH,
        runs=[_shown(run, letter) for run, letter in zip(runs, letters, strict=True)],
        together=_together(summaries) if len(runs) > 1 else [],
    )


def _shown(run: RunFacts, letter: str) -> dict[str, object]:
    """Return what the template shows of one run; ids of several runs begin with their letters."""
    mark = f"{letter}-" if letter else ""
    made = [(f"{mark}{key}", title, make(run, f"{mark}{key}")) for key, title, make in SECTIONS]
    split = run.split.get("name") or (run.tables[0].split if run.tables else "")
    when = str(run.record.get("time") or "")[:10]
    facts = [f"split {split}" if split else "", f"seed {run.settings.get('seed')}", when, run.name]
    return {
        "letter": letter,
        "name": run.name,
        "model": run.model,
        "dataset": _dataset(run),
        "facts": [fact for fact in facts if fact],
        "selected": _selected(run),
        "cards": head_cards(run),
        "sections": [Section(key, title, blocks) for key, title, blocks in made if blocks],
    }


def _selected(run: RunFacts) -> list[Block]:
    """Return what predictions mean where labels were selected for a list: the first to read of a page."""
    if "crosses" in run.card:
        return []  # the rows of a whole screen are of any cross; its columns of listed ones stand at the data
    shown = {table.phenotype for table in (*run.tables, *run.others)}
    sentences = [text for name, text in (run.card.get("selection") or {}).items() if name in shown]
    return [Text(f"Trained on selected rows: {sentence}.", "win") for sentence in sentences]


def _dataset(run: RunFacts) -> str:
    return str(run.card.get("name") or (run.tables[0].dataset if run.tables else "unknown data"))


def _together(summaries: Sequence[Summary]) -> list[Section]:
    """Return what several runs of one question reached on average."""
    blocks: list[Block] = []
    for i, summary in enumerate(summaries):
        if len(summary.seeds) < 2 and len(summary.models) - len(summary.baselines) < 2:
            continue  # a single run has its table below
        seeds = ", ".join(map(str, summary.seeds))
        caption = f"{summary.phenotype} of {summary.dataset}, split {summary.split}, seeds {seeds}"
        blocks += panel_group([summary_panel(summary)], f"together{i}-")
        blocks.append(Table(caption, *summary_cells(summary)))
    return [Section("together", "All runs together", blocks)] if blocks else []
