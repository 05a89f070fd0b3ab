"""The page of a run: what was reached, where it is wrong, and how it was made, in one HTML file.

Numbers come from `evaluation`, drawings from `report.figures` and `profile_drawing`, and every name from
data passes `html_text`. A part that a run folder lacks is told of in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from wildtype.errors import ConfigError
from wildtype.evaluation.summary import Summary
from wildtype.report.figures.comparison import summary_panel
from wildtype.report.figures.panel import panel_html
from wildtype.report.figures.style import figure_style
from wildtype.report.page import html_page, html_table, html_text
from wildtype.report.profile_drawing import HATCH, profile_style
from wildtype.report.run_facts import RunFacts
from wildtype.report.run_sections import SECTIONS, head_cards, section
from wildtype.report.summary import summary_cells

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
    letters = [chr(ord("a") + i) if len(runs) > 1 else "" for i in range(len(runs))]
    contents, body = [], []
    for letter, run in zip(letters, runs, strict=True):
        mark = f"{letter}-" if letter else ""
        parts = [(key, title, html) for key, title, make in SECTIONS if (html := make(run, f"{mark}{key}"))]
        links = "".join(f'<li><a href="#{mark}{key}">{html_text(title)}</a></li>' for key, title, _ in parts)
        sections = "".join(section(f"{mark}{key}", title, html) for key, title, html in parts)
        if not letter:
            contents.append(f"<ul>{links}</ul>")
            body.append(f"<header>{_title(run)}{head_cards(run)}</header>{_contents(contents)}{sections}")
            continue
        badge = f'<span class="letter">{letter.upper()}</span> '
        contents.append(f'<p><a href="#run-{letter}">{badge}{html_text(run.name)}</a></p><ul>{links}</ul>')
        body.append(
            f'<div class="one-run" id="run-{letter}">{_title(run, badge)}{head_cards(run)}{sections}</div>'
        )
    if len(runs) > 1:
        head = f"<header><h1>{len(runs)} runs</h1></header>"
        body.insert(0, f"{head}{_together(summaries)}{_contents(contents)}")
    title = ", ".join(dict.fromkeys(f"{run.model} on {_dataset(run)}" for run in runs))
    skip = '<a class="skip" href="#main">skip to the contents</a>'
    style = profile_style() + figure_style() + STYLE
    return html_page(title, f'{skip}{HATCH}<main id="main">{"".join(body)}{FOOT}</main>', style)


def _dataset(run: RunFacts) -> str:
    return str(run.card.get("name") or (run.tables[0].dataset if run.tables else "unknown data"))


def _title(run: RunFacts, badge: str = "") -> str:
    split = run.split.get("name") or (run.tables[0].split if run.tables else "")
    when = str(run.record.get("time") or "")[:10]
    facts = [f"split {split}" if split else "", f"seed {run.settings.get('seed')}", when, run.name]
    level = "h2" if badge else "h1"
    return (
        f"<{level}>{badge}{html_text(run.model)} on {html_text(_dataset(run))}</{level}>"
        f'<p class="sub">{html_text(" · ".join(fact for fact in facts if fact))}</p>'
    )


def _contents(contents: Sequence[str]) -> str:
    return f'<nav aria-label="contents">{"".join(contents)}</nav>'


def _together(summaries: Sequence[Summary]) -> str:
    """Return what several runs of one question reached on average."""
    parts = []
    for i, summary in enumerate(summaries):
        if len(summary.seeds) < 2 and len(summary.models) - len(summary.baselines) < 2:
            continue  # one run alone stands below
        head, rows = summary_cells(summary)
        seeds = ", ".join(map(str, summary.seeds))
        caption = html_text(f"{summary.phenotype} of {summary.dataset}, split {summary.split}, seeds {seeds}")
        panel = panel_html(summary_panel(summary), f"together{i}")
        parts.append(f'<div class="panels">{panel}</div>{_plain_table(caption, head, rows)}')
    return section("together", "All runs together", "".join(parts)) if parts else ""


def _plain_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return html_table(caption, list(map(html_text, head)), [list(map(html_text, row)) for row in rows])


FOOT = (
    "<footer><p>Made by <code>wildtype report</code>. This file holds all that it shows: it loads nothing "
    "and runs no script. Intervals are 95 % intervals of a bootstrap over clusters of rows unless another "
    "level is said.</p></footer>"
)
STYLE = """
.sub{color:var(--quiet);margin:-12px 0 18px;overflow-wrap:anywhere}
a{color:var(--less);text-underline-offset:2px} a:focus-visible,summary:focus-visible{outline:2px solid
var(--less);outline-offset:2px;border-radius:2px}
.skip{position:absolute;left:-999px} .skip:focus{left:12px;top:8px;background:var(--paper);padding:4px 10px}
nav{margin:22px 0 0;border-top:1px solid var(--line);border-bottom:1px solid var(--line);padding:10px 0}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0;font-size:13.5px}
nav p{font-size:13.5px;font-weight:600;margin:8px 0 2px;overflow-wrap:anywhere} nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
section{scroll-margin-top:12px} section h2 a{color:inherit;text-decoration:none}
.lead{color:var(--quiet);max-width:76ch;margin:0 0 14px} .lead b{color:var(--ink);font-weight:600}
.win{font-weight:600;max-width:76ch;margin:0 0 12px} .notes{color:var(--quiet);font-size:13px;margin:0 0 14px;
padding-left:18px;max-width:90ch;overflow-wrap:anywhere}
.none-there{color:var(--quiet)}
.dense th,.dense td{padding-left:9px;font-size:13px} .dense th:first-child{padding-left:0}
.dense thead th{white-space:normal;min-width:52px}
.cards{grid-template-columns:repeat(auto-fit,minmax(min(100%,225px),1fr))} .legend{margin-bottom:18px}
 .wrap tbody th{white-space:normal;overflow-wrap:anywhere;min-width:150px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:4px 36px;
align-items:start} .two>*{min-width:0}
.gene{white-space:nowrap} .gene small{color:var(--quiet)} abbr{text-decoration:none;color:var(--quiet)}
pre{margin:0 0 18px;padding:12px 14px;background:var(--band);border-radius:6px;overflow-x:auto;
white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",
monospace} summary{cursor:pointer;color:var(--less);width:fit-content}
.one-run{margin-top:64px;border-top:3px solid var(--ink);padding-top:18px} .one-run>h2{font-size:24px}
dl{display:grid;grid-template-columns:auto 1fr;gap:2px 18px;margin:0 0 18px;font-size:13.5px}
dt{color:var(--quiet)} dd{margin:0;overflow-wrap:anywhere;min-width:0}
@media (max-width:560px){dl{grid-template-columns:1fr;gap:0} dd{margin:0 0 6px}}
@media print{details::details-content{content-visibility:visible;display:block}
nav,.skip,summary{display:none} .panel{break-inside:avoid} .lead{break-after:avoid}
a{color:inherit;text-decoration:none} .panels{grid-template-columns:repeat(2,1fr)}}
"""
