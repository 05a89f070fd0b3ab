from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from tests.browser import Browser
from tests.command import assert_one_sentence, wildtype
from tests.experiments.test_crosses import settings
from tests.report.explained import explanation
from tests.report.test_profile_page import HOSTILE, Page, chromium
from tests.screened import screened_dataset
from wildtype.errors import ConfigError
from wildtype.evaluation.predicted_rows import PredictedRows
from wildtype.evidence.reference import PARTS
from wildtype.experiments import report as module
from wildtype.experiments.report import MOST_PHENOTYPES, PLOTS, report_after_training, run_facts, write_report
from wildtype.experiments.run import train
from wildtype.experiments.stored import Run
from wildtype.files import write_json
from wildtype.organism import GeneIndex
from wildtype.report.explained_section import explained_blocks
from wildtype.report.page import show
from wildtype.report.run_facts import RunFacts, UnmeasuredPredictions
from wildtype.report.run_page import MOST_RUNS, run_page

__all__ = ["chromium"]  # a fixture
SECTIONS = [
    "comparison", "predicted", "calibration", "error", "learning", "time", "mutants", "next", "made"
]  # fmt: skip
MOST_BYTES = 3 * 2**20


@pytest.fixture(scope="module")
def facts(tiny_run: Path) -> RunFacts:
    return run_facts(Run(tiny_run))


@pytest.fixture(scope="module")
def text(facts: RunFacts) -> str:
    return run_page([replace(facts, explained=explanation())])


def texts(value: Any, name: str) -> Any:
    """Return a record in which every text is ``name``, numbers in texts aside."""
    if isinstance(value, dict):
        return {key: texts(one, name) for key, one in value.items()}
    if isinstance(value, list):
        return [texts(one, name) for one in value]
    return name if isinstance(value, str) else value


def hostile(facts: RunFacts, name: str) -> RunFacts:
    """Return facts in which everything that a person named is called ``name``."""
    named = dict.fromkeys(facts.genes.names, name)
    genes = GeneIndex(facts.genes.names, named, descriptions=named)
    rows = [replace(one, phenotype=name, unit=name, standard=genes.standard) for one in facts.tested]
    tables = [
        replace(
            table,
            dataset=name,
            phenotype=name,
            split=name,
            noise=name,
            notes=(name,),
            reference=name,
            scores=tuple(replace(score, model=name, undefined={"pearson": name}) for score in table.scores),
        )
        for table in facts.tables
    ]
    column = {"phenotype": name, "direction": "low", "genes": "G001,G002", "single_fitness": name, name: 0.5}
    card = texts(dict(facts.card), name) | {"excluded": {name: 1}, "policies": {name: name}}
    card["rows_by_phenotype_and_order"] = {name: {"2": 3}}
    return replace(
        facts,
        name=name,
        tables=tables,
        others=tables,
        tested=rows,
        coverage=[replace(one, phenotype=name, group=name, reason=name) for one in facts.coverage],
        unmeasured=[UnmeasuredPredictions(name, pd.DataFrame([column]))],
        explained=explanation(name),
        settings=texts(dict(facts.settings), name),
        record=texts(dict(facts.record), name),
        card=card,
        split=texts(dict(facts.split), name) | {"options": {name: name}, "dropped": {name: 1}},
        missing={"sides": name},
    )


def test_page_is_whole_in_itself(text: str) -> None:
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in html.unescape(text)
    assert not re.search(r"https?:|url\((?!#)|@import|javascript:|data:", text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "image", "iframe", "object", "form"}
    names = {name for _, attrs in page.tags for name in attrs}
    assert not {name for name in names if name.startswith("on") or name == "src"}
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for _, attrs in page.tags if "href" in attrs]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)
    assert {f"#{key}" for key in [*SECTIONS, "explained"]} <= set(links)
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= {*ids, "hatch"}
    for _, attrs in page.tags:
        assert attrs.get("aria-labelledby") in {None, *ids}
        assert attrs.get("role") not in {"img", "region"} or attrs.get("aria-label")
    assert len(text.encode()) < MOST_BYTES


def test_browsers_show_the_model_and_its_data_as_the_title(facts: RunFacts, text: str) -> None:
    title = "cell_transformer on tiny-growth"
    assert f"<title>{title}</title>" in text
    assert f"<title>{title}</title>" in run_page([facts, facts])


def test_a_run_of_a_list_says_so_at_the_top(facts: RunFacts, text: str) -> None:
    sentence = "E[epsilon given listed at <= -0.1]; the others <i>were</i> measured"
    card = {**facts.card, "selection": {"epsilon": sentence, "tau": "of another table"}}
    page = run_page([replace(facts, card=card)])
    shown = f'<p class="win">Trained on selected rows: {html.escape(sentence)}.</p>'
    assert shown in page
    assert page.index(shown) < page.index("<nav")
    assert "of another table" not in page
    assert page.count(html.escape(sentence)) == 1
    assert run_page([replace(facts, card=card)] * 2).count(shown) == 2
    assert "selected rows" not in text


def test_a_whole_screen_names_its_columns_of_listed_crosses_at_the_data(facts: RunFacts) -> None:
    sentence = "column epsilon_listed only: E[epsilon_listed given listed at <= -0.1]"
    card = {**facts.card, "selection": {"epsilon_listed": sentence}, "crosses": {"listed": 1}}
    page = run_page([replace(facts, card=card)])
    assert "Trained on selected rows" not in page
    assert page.count(html.escape(sentence)) == 1
    assert page.index(html.escape(sentence)) > page.index('<section id="made"')


def test_every_section_shows_its_figure(text: str) -> None:
    for key in [*SECTIONS, "explained"]:
        section = re.search(rf'<section id="{key}".*?</section>', text, re.DOTALL)
        assert section, key
        drawn = len(re.findall('<svg[^>]*role="img"', section[0]))
        least = {"predicted": 2, "error": 1, "learning": 5, "time": 2, "explained": 2}
        assert drawn >= least.get(key, 1 if key in ("comparison", "calibration") else 0), key
        assert "Not shown" not in section[0]


def test_numbers_stand_beside_the_figures(text: str, facts: RunFacts) -> None:
    page = Page(text)
    table = facts.tables[0]
    own = table["cell_transformer"]
    interval = f"{own.pearson.value:.2f} [{own.pearson.low:.2f}, {own.pearson.high:.2f}]".replace("-", "−")
    assert ["cell_transformer", interval] in [row[:2] for row in page.cells]
    assert table.winner_sentence in page.text
    assert "0 gene sets stand on two sides" in page.text
    assert facts.record["git"] in page.text
    assert "training.batch_size 64" in page.text
    (rows,) = facts.tested
    worst = int(np.argmax(np.abs(rows.predicted["cell_transformer"] - rows.measured)))
    names = ", ".join(f"{facts.genes.standard[gene]} {gene}" for gene in rows.names(worst))
    assert any(row[0].replace(" †", "").strip() == names for row in page.cells)
    described = [gene for gene in rows.names(worst) if gene in facts.genes.descriptions]
    assert described
    assert all(f"makes the protein of {gene}" in page.text for gene in described)


def test_names_are_text(facts: RunFacts, text: str) -> None:
    few = replace(facts, learning=None, tested=facts.tested[:1])
    attacked = Page(run_page([hostile(few, HOSTILE)]))
    assert {tag for tag, _ in attacked.tags} <= {tag for tag, _ in Page(text).tags}
    assert HOSTILE in attacked.text
    assert not {name for _, attrs in attacked.tags for name in attrs if name.startswith("on")}


ATTACKS = [
    "<script>document.title = 'x'</script>",
    "</script><script>document.title = 'x'</script>",
    '"><img src=x onerror="document.title = 1">',
    "'><svg/onload=document.title=1>",
    "</title></style><iframe srcdoc='<script>top.document.title=1</script>'>",
    "javascript:document.title=1",
    "{{ document.title }}{% raw %}${document.title=1}",
    "<!--<script>document.title=1//-->",
    '</template><base href="https://example.org/"><meta http-equiv=refresh content="0;url=x">',
    "x<a href=javascript:document.title=1 autofocus onfocus=document.title=1>",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_name_runs_as_a_script_in_a_browser(
    name: str, facts: RunFacts, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        run_page([hostile(replace(facts, learning=None, tested=facts.tested[:1]), name)]), "utf-8"
    )
    browser.problems.clear()
    browser.open(path.as_uri())
    assert browser.ask("document.title") == f"cell_transformer on {name}"
    assert browser.ask("location.href") == path.as_uri()
    forms = "'iframe, base, object, embed, [onerror], [onload], [onfocus], a[href^=javascript]'"
    assert browser.ask(f"document.querySelectorAll({forms}).length") == 0
    # What the policy of the page blocks, the browser's console tells.
    assert browser.problems == []


def test_what_an_older_run_lacks_is_told(tiny_run: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(tiny_run, old)
    shutil.rmtree(old / "logs")
    for name in ("predictions.parquet", "record.json", "card.json", "split.json", "profile.json"):
        (old / name).unlink()
    text = run_page([run_facts(Run(old))])
    page = Page(text)
    assert page.text.count("Not shown: the run folder holds no predictions of test rows") == 2
    for name in ("record.json", "card.json", "split.json", "profile.json"):
        assert f"Not shown: the run folder holds no {name}: train again with this version" in page.text
    assert "Not shown: the run folder holds no log of its steps (logs/metrics.csv)." in page.text
    assert "coverage of intervals" in page.text
    assert 'id="explained"' not in text
    assert 'id="mutants"' not in text
    nothing = wildtype("plot", "error", str(old), "-o", str(tmp_path / "x.svg"))
    assert_one_sentence(nothing, "there is nothing to draw of error: the run folder holds no predictions")
    (old / "comparison.json").unlink()
    assert_one_sentence(wildtype("report", str(old)), "holds no finished run (comparison.json is missing)")


def test_another_format_of_explanations_is_told() -> None:
    for record, why in (({"format": 99}, "it has format 99"), ({"format": 1}, "models")):
        told = Page(show(explained_blocks(record, "x"))).text
        assert "explain.json is not as this version" in told
        assert why in told


@pytest.mark.slow
def test_many_runs_stay_apart_and_below_three_megabytes(facts: RunFacts) -> None:
    draw = np.random.default_rng(0)
    (rows,) = facts.tested
    take = draw.integers(0, len(rows), 30_000)
    cloud = {name: draw.normal(0, 0.1, take.size) for name in rows.predicted}
    many: PredictedRows = replace(
        rows,
        table=rows.table.take(take),
        measured=draw.normal(0, 0.1, take.size),
        sd=np.full(take.size, np.nan),
        predicted=cloud,
        condition=("reference",) * take.size,
    )
    crowded = replace(facts, explained=explanation())
    alone, two = run_page([replace(crowded, tested=[many])]), run_page([crowded, crowded])
    for page, times in ((alone, max(MOST_PHENOTYPES, MOST_RUNS)), (two, MOST_RUNS)):
        assert times * len(page.encode()) < MOST_BYTES
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids))
    with pytest.raises(ConfigError, match="name fewer"):
        run_page([facts] * (MOST_RUNS + 1))


@pytest.mark.slow
def test_command_writes_a_page_and_asks_about_mutants(tiny_run: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    said = wildtype("report", str(tiny_run), "-o", str(target), "--screen", "100")
    assert said.returncode == 0, said.stderr
    text = Page(target.read_text(encoding="utf-8")).text
    assert "all 91 sets of 2 of the 14 genes with most training rows; every one of them was measured" in text


def test_command_refuses(tiny_run: Path, tmp_path: Path) -> None:
    several = wildtype("report", str(tiny_run), str(tiny_run))
    assert_one_sentence(several, "give a file, as in -o report.html")
    assert_one_sentence(wildtype("report", str(tmp_path)), "holds no finished run")
    assert_one_sentence(wildtype("report", str(tiny_run), "--screen", "-1"), "screen=-1")
    assert os.listdir(tmp_path) == []


def test_unmeasured_mutants_are_listed(tiny_run: Path) -> None:
    run = Run(tiny_run)
    from wildtype.inference.predictor import Predictor

    everything = module.predict_unmeasured(Predictor(run.predictor.checkpoint), "epsilon", 60)
    assert everything.what.endswith("every one of them was measured.")
    known = run.predictor.checkpoint.known
    some = np.random.default_rng(0).random(len(known.part)) < 0.7
    some |= known.part == PARTS.index("validation")
    known = replace(known, table=known.table.take(some), part=known.part[some])
    found = module.predict_unmeasured(
        Predictor(replace(run.predictor.checkpoint, known=known)), "epsilon", 60
    )
    assert found.frame is not None
    assert "all 55 sets of 2 of the 11 genes with most training rows, of which" in found.what
    measured = {frozenset(genes) for genes in known.table.take(known.table.phenotype == 1).sets()}
    assert "left out: " in found.what
    assert "two genes within 200 kb. A list" in found.what
    names = list(run.genes.names)
    for genes in found.frame["genes"]:
        assert frozenset(names.index(gene) for gene in genes.split(",")) not in measured


def test_training_goes_well_without_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(module, "run_page", fail)
    report_after_training(Run(tmp_path), said.append)
    monkeypatch.setattr(module, "write_report", fail)
    report_after_training(Run(tmp_path), said.append)
    assert "holds no finished run" in said[0]
    assert said[1] == f"no page was written (no ink); wildtype report {tmp_path} tries again"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_train_writes_the_page(tmp_path: Path) -> None:
    words = ["model.width=16", "model.heads=8", "model.layers=1", "model.head.heads=2", "training.epochs=1",
             "baselines=[mean]", "run.progress=false", "run.replicates=20", "data.rows=400"]  # fmt: skip
    said = wildtype("train", "data.name=ecoli-core-growth", f"run.folder={tmp_path / 'r'}", *words)
    assert said.returncode == 0, said.stderr
    assert "no page was written" not in said.stderr
    text = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "epsilon: all 1,953 sets of 2 of the 63 genes" in Page(text).text
    again = [f"run.folder={tmp_path / 'r'}", "run.overwrite=true", "execution=forward"]
    assert wildtype("train", "data.name=ecoli-core-growth", *words, *again).returncode == 0
    assert not (tmp_path / "r" / "report.html").exists()  # it was another run's


# ---------------------------------------------------------------------------------------------------- browser

MEASURE = """<!DOCTYPE html><title>harness</title><body style="margin:0">
<iframe src="page.html" width="1200" height="900"></iframe>
<iframe src="page.html" width="360" height="900"></iframe>
<pre id="measured"></pre>
<script>
const box = (x) => x.getBoundingClientRect();
addEventListener("load", () => {
  const measured = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, view = frame.contentWindow;
    const all = (selector, root = page) => [...root.querySelectorAll(selector)];
    const colour = (x) => view.getComputedStyle(x);
    const jumps = all("nav a").map((link) => {
      link.click();
      const target = page.querySelector(link.getAttribute("href"));
      return [link.getAttribute("href"), target !== null && Math.abs(box(target).top) < view.innerHeight];
    });
    view.scrollTo(0, 0);
    const folded = (x) => x.tagName != "SUMMARY" && x.closest("details:not([open])");
    const stops = all("a, summary, [tabindex]").filter((x) => !folded(x));
    const keyboard = stops.filter((x) => { x.focus(); return page.activeElement === x; });
    return {
      mode: page.compatMode, width: page.documentElement.clientWidth,
      scrollWidth: page.documentElement.scrollWidth,
      outside: all("body *").filter((x) => !x.closest(".scroll, .defs, pre, .skip")
        && box(x).right > view.innerWidth + 0.5 && box(x).width > 0).map((x) => x.outerHTML.slice(0, 120)),
      cut: all(".scroll").filter((x) => !folded(x) && x.scrollWidth > x.clientWidth + 1
          && !x.closest("#explained"))  // its names are long on purpose
        .map((x) => x.ariaLabel),
      figures: all("figure.panel > svg").map((x) => [x.closest("section").id, box(x).width, box(x).height]),
      letters: Math.min(...all("figure.panel > svg text").map((x) => box(x).height).filter((h) => h > 0)),
      jumps, reached: keyboard.length, reachable: stops.length,
      paper: colour(page.body).backgroundColor, ink: colour(page.querySelector("figure.panel svg text")).fill,
      scripts: all("script, img, image").length,
    };
  });
  document.getElementById("measured").textContent = JSON.stringify(measured);
});
</script>"""


def browse(
    chromium: str, folder: Path, page: Path, scheme: str, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--allow-file-access-from-files",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'user'}",
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
            "--enable-logging=stderr",
            *words,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_a_browser_renders_it(chromium: str, tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / ("a_run_with_a_long_name" * 6)
    shutil.copytree(tiny_run, run)
    write_json(run / "explain.json", explanation("a relation with a long name" * 3))
    write_report([Run(run)], tmp_path / "page.html", screened=200)
    (tmp_path / "harness.html").write_text(MEASURE, encoding="utf-8")
    seen, pictures = {}, {}
    for scheme in ("light", "dark"):
        harness = tmp_path / "harness.html"
        done = browse(chromium, tmp_path, harness, scheme, "--window-size=1600,1900", "--dump-dom")
        found = re.search(r'<pre id="measured">(.+?)</pre>', done.stdout, re.DOTALL)
        assert found, f"chromium measured nothing: {done.stderr[-2000:]}"
        assert "CONSOLE" not in done.stderr, done.stderr
        seen[scheme] = json.loads(html.unescape(found[1]))
        shot = tmp_path / f"{scheme}.png"
        done = browse(
            chromium,
            tmp_path,
            tmp_path / "page.html",
            scheme,
            "--window-size=1200,1600",
            f"--screenshot={shot}",
        )
        assert "CONSOLE" not in done.stderr, done.stderr
        pictures[scheme] = brightness(shot)
    for scheme, frames in seen.items():
        assert [frame["width"] > 1100 for frame in frames] == [True, False]
        assert frames[0]["cut"] == []  # no table of the wide page scrolls
        for frame in frames:
            assert frame["mode"] == "CSS1Compat"
            assert frame["scripts"] == 0
            assert frame["scrollWidth"] <= frame["width"], scheme
            assert frame["outside"] == []
            sections = [section for section, _, _ in frame["figures"]]
            wanted = {"comparison": 1, "predicted": 2, "calibration": 1, "error": 1, "learning": 5,
                      "explained": 2}  # fmt: skip
            assert {section: sections.count(section) for section in sections} == wanted
            assert all(width > 280 and height > 90 for _, width, height in frame["figures"])
            assert frame["letters"] > 9  # pixels
            assert [href for href, there in frame["jumps"] if not there] == []
            assert {href for href, _ in frame["jumps"]} == {f"#{key}" for key in [*SECTIONS, "explained"]}
            assert frame["reached"] == frame["reachable"] > 20
    light, dark = (seen[scheme][0] for scheme in ("light", "dark"))
    assert light["paper"] != dark["paper"]
    assert light["ink"] != dark["ink"]
    assert pictures["light"] > 200 > 60 > pictures["dark"]


def brightness(picture: Path) -> float:
    """Return the median grey of a screenshot, 0 to 255."""
    from matplotlib.image import imread

    return float(np.median(imread(picture)[..., :3]) * 255)


@pytest.fixture(scope="module")
def run_of_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "calls"
    train(settings(f"run.folder={folder}"), dataset=screened_dataset(36))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLOTS)
def test_every_kind_in_every_format(kind: str, tiny_run: Path, run_of_calls: Path, tmp_path: Path) -> None:
    of_kind = run_of_calls if kind == "reliability" else tiny_run
    runs = [str(of_kind)] * (1 if kind == "comparison" else 2)
    for ending in ("pdf", "svg", "png"):
        target = tmp_path / f"x.{ending}"
        said = wildtype("plot", kind, *runs, "-o", str(target))
        assert said.returncode == 0, said.stderr
        assert target.stat().st_size > 5000
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(drawn)
    assert root.get("width") in {"252pt", "518.4pt"}  # one column, or two
    assert "<text" in drawn  # letters stay letters
    assert len(list(root.iter())) > 40
