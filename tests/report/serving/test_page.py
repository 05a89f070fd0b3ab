"""The page in a real browser: typed at, clicked at, and measured at the widths of a desk and of a phone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.browser import Browser
from tests.report.serving.test_server import serving
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.inference.predictor import Predictor
from wildtype.organism import GeneIndex
from wildtype.report.serving.answers import Answers
from wildtype.report.serving.server import Server

pytestmark = pytest.mark.slow
HOSTILE = "<svg/onload=document.title=1>"
CHIPS = """[...document.querySelectorAll('#mutants>li')].map((row) =>
  [...row.querySelectorAll('.chip')].map((chip) => chip.firstChild.textContent))"""
TABLE = """[...document.querySelectorAll('#table tbody tr')].map((row) =>
  [...row.children].map((cell) => cell.textContent))"""
NEAREST = """document.querySelector('#nearest tbody tr') &&
  [...document.querySelectorAll('#nearest tbody tr')].map((row) => row.textContent)"""
CUT = """[...document.querySelectorAll('#drawing text')].filter((name) => {
  const text = name.getBoundingClientRect(), all = name.ownerSVGElement.getBoundingClientRect();
  return text.left < all.left - 1 || text.right > all.right + 1 || text.top < all.top - 1
    || text.bottom > all.bottom + 1; }).map((name) => name.textContent)"""
LIGHT = "getComputedStyle(document.body).%s.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)"
SETTLED = "document.querySelector('#table tbody') && !document.querySelector('[aria-busy=true]')"


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


@pytest.fixture(scope="module")
def server(predictor: Predictor) -> Iterator[Server]:
    with serving(Answers(predictor, "tiny")) as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Browser]:
    """The page as it opens, in a wide window; its console must have stayed silent."""
    browser.problems.clear()
    browser.window(1200, 900)
    browser.open(server.url)
    browser.until("document.querySelector('#examples button')")
    yield browser
    assert browser.problems == []


def rows(browser: Browser, count: int) -> list[list[str]]:
    """Return the cells of the table of predictions once it has so many rows."""
    found = browser.until(f"{SETTLED} && {TABLE}.length == {count} && {TABLE}")
    return [[str(cell) for cell in row] for row in found]


def shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def test_genes_are_typed_chosen_and_predicted(page: Browser, predictor: Predictor) -> None:
    page.click("#mutants input")
    page.type("abc1")
    # Options of the first letters may stand there until those of the whole name come.
    options = page.until(
        "document.querySelector('[role=option] b')?.textContent == 'abc1' && "
        "[...document.querySelectorAll('[role=option] b')].map((option) => option.textContent)"
    )
    assert options[0] == "abc1"
    assert options[1] == "abc10"
    assert (
        page.ask("document.querySelector('[role=option] small').textContent") == "makes the protein of G001"
    )
    page.press("ArrowDown")
    assert page.ask("document.querySelector('[aria-selected=true] b').textContent") == "abc10"
    assert page.ask(
        "document.activeElement.getAttribute('aria-activedescendant') == "
        "document.querySelector('[aria-selected=true]').id"
    )
    page.press("ArrowUp", "ArrowUp")
    assert page.ask("document.querySelector('[aria-selected=true] b').textContent") == options[-1]
    page.press("ArrowDown", "ArrowDown", "Enter")
    assert page.until(f"{CHIPS}[0].length == 1 && {CHIPS}") == [["abc10"]]
    page.type("G002")
    page.press(",")
    assert page.until(f"{CHIPS}[0].length == 2 && {CHIPS}") == [["abc10", "abc2"]]
    ((mutant, epsilon, measured, _, training, note),) = rows(page, 1)
    (said,) = predictor.predict([["G002", "G010"]], interval=0.9).to_dict("records")
    assert mutant == "abc2 abc10"
    digits = len(epsilon.partition("90")[0].partition(".")[2])
    assert digits >= 3
    interval = " … ".join(shown(said[f"epsilon_{end}"], digits) for end in ("low", "high"))
    assert epsilon == f"{shown(said['epsilon'], digits)}90 %: {interval}"
    assert measured == shown(said["epsilon_measured"], digits)
    assert training == "all 2 genes"
    assert note == ""
    assert page.ask("location.hash") == "#mutant=G010,G002&interval=0.9"
    assert page.ask("document.activeElement.getAttribute('role')") == "combobox"
    page.press("Backspace")
    assert page.until(f"{CHIPS}[0].length == 1 && {CHIPS}") == [["abc10"]]


def test_names_that_are_none_stay_to_be_corrected(page: Browser) -> None:
    page.click("#mutants input")
    page.type("nope")
    page.press("Enter")
    assert "'nope' is not in organism 'tiny'" in page.until("document.querySelector('#wrong').textContent")
    assert page.ask("document.querySelector('#mutants input').value") == "nope"
    page.press("Escape")
    assert page.until("document.querySelector('#mutants input').value == ''")
    page.type("G001")
    page.press(" ")
    page.until(f"{CHIPS}[0].length == 1")
    page.type("abc1")
    page.press(",")
    assert "counts once" in page.until("document.querySelector('#wrong').textContent")


def test_the_address_holds_what_was_asked(page: Browser, server: Server, predictor: Predictor) -> None:
    page.open(f"{server.url}#mutant=abc1,G002&mutant=G003:reduced,G023&interval=0.5&fitness=yes")
    found = rows(page, 2)
    assert [row[0] for row in found] == ["abc1 abc2", "abc3 reduced abc23 reduced"]
    assert "50 %:" in found[0][1]
    frame = predictor.predict([["G001", "G002"], ["G003:reduced", "G023"]], as_="fitness", interval=0.5)
    known, unknown = frame["fitness_expected"]
    assert found[0][4].startswith(shown(known, 3))
    # Fitness was measured of deletions, and these are knock-downs.
    assert np.isnan(unknown)
    assert found[1][4] == "–"
    assert "essential: abc23 (G023)" in found[1][6]
    assert page.ask("document.querySelector('#interval').value") == "0.5"
    kinds = page.ask("[...document.querySelectorAll('.chip select')].map((x) => x.value)")
    assert kinds == ["absent", "absent", "reduced", "reduced"]
    page.ask(
        "(() => { const x = document.querySelectorAll('.chip select')[2]; x.value = 'absent'; "
        "x.dispatchEvent(new Event('change')); })()"
    )
    page.until(f"{SETTLED} && {TABLE}[1][0] == 'abc3 abc23 reduced'")
    assert page.ask("document.querySelectorAll('.chip select')[2].value") == "absent"
    assert page.ask("location.hash") == "#mutant=G001,G002&mutant=G003,G023&interval=0.5&fitness=yes"
    page.ask("location.hash = '#mutant=G004'")
    assert rows(page, 1)[0][0] == "abc4"
    page.click("#clear")
    page.until("document.querySelector('#predictions').hidden && !location.hash")


def test_several_lines_are_pasted(page: Browser) -> None:
    page.click("#paste")
    page.ask("document.querySelector('#lines').value = 'G001 G002\\n\\nnope\\nabc3;abc4;abc5\\n'")
    page.click("#take")
    assert [row[0] for row in rows(page, 2)] == ["abc1 abc2", "abc3 abc4 abc5"]
    assert "'nope'" in page.ask("document.querySelector('#wrong').textContent")
    page.ask("""(() => { const data = new DataTransfer(); data.setData("text", "G006,G007\\nG008,G009");
      document.querySelectorAll("#mutants input")[1].dispatchEvent(
        new ClipboardEvent("paste", { clipboardData: data, cancelable: true })); })()""")
    assert [row[0] for row in rows(page, 4)][2:] == ["abc6 abc7", "abc8 abc9"]


def test_what_is_around_follows_the_mutant_that_is_chosen(page: Browser, server: Server) -> None:
    page.open(f"{server.url}#mutant=G001,G002&mutant=G003,G005,G007")
    rows(page, 2)
    assert page.until("document.querySelector('#title').textContent") == "Around abc1 abc2"
    near = page.until(NEAREST)
    assert near[0].startswith("abc1 abc2the same genes")
    names = page.ask("[...document.querySelectorAll('#drawing .own text')].map((x) => x.textContent)")
    assert names == ["abc1", "abc2"]
    edges = page.ask("document.querySelectorAll('#drawing .edge').length")
    page.click("#legend input")
    fewer = page.until(
        f"document.querySelectorAll('#drawing .edge').length < {edges} && "
        "document.querySelectorAll('#drawing .edge').length"
    )
    assert 0 < fewer < edges
    assert page.ask("document.activeElement.checked === false")
    page.click("#table tbody tr:nth-child(2) button")
    page.until("document.querySelector('#title').textContent == 'Around abc3 abc5 abc7'")
    assert page.ask("document.querySelectorAll('#drawing .own').length") == 3
    assert page.ask("document.querySelector('#drawing svg').outerHTML") == page.ask(
        "(dispatchEvent(new Event('resize')), document.querySelector('#drawing svg').outerHTML)"
    )


def test_tables_are_saved(page: Browser, server: Server, predictor: Predictor, tmp_path: Path) -> None:
    page.open(f"{server.url}#mutant=G001,G002&interval=0.9")
    rows(page, 1)
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for kind, read in (("csv", pd.read_csv), ("json", pd.read_json)):
        page.click(f"#{kind}")
        page.event("Page.downloadProgress", state="completed")
        saved: Any = read(tmp_path / f"mutants.{kind}")
        frame = predictor.predict([["G001", "G002"]], interval=0.9)
        assert saved["genes"].tolist() == frame["genes"].tolist()
        np.testing.assert_allclose(saved["epsilon"], frame["epsilon"])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [340, 700, 1200])
def test_it_fits_the_window(page: Browser, server: Server, width: int, dark: bool) -> None:
    page.window(width, 800, dark=dark)
    long = ",".join(f"G{i:03d}" for i in range(12))
    page.open(f"{server.url}#mutant={long}&mutant=G023,G003:reduced&mutant=G001&fitness=yes")
    rows(page, 3)
    page.until("document.querySelector('#drawing svg')")
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    outside = page.ask(
        "[...document.querySelectorAll('main *')].filter((x) => !x.closest('.scroll') && "
        "x.getBoundingClientRect().right > innerWidth + 0.5).map((x) => x.outerHTML.slice(0, 90))"
    )
    assert outside == []
    if width < 600:
        small = page.ask(
            "[...document.querySelectorAll('button, select')].filter((x) => x.checkVisibility() && "
            "x.getBoundingClientRect().height < 27).map((x) => x.outerHTML)"
        )
        assert small == []
    assert page.ask(CUT) == []
    paper, ink = page.ask(LIGHT % "backgroundColor"), page.ask(LIGHT % "color")
    assert (paper > ink) != dark


def test_whoever_hears_the_page_is_told_names(page: Browser, server: Server) -> None:
    page.open(f"{server.url}#mutant=G001,G023&fitness=yes")
    rows(page, 1)
    page.until("document.querySelector('#drawing svg')")
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.call("Accessibility.disable")
    named = {"button", "combobox", "checkbox", "textbox", "searchbox", "region", "image", "group", "table"}
    heard: dict[str, list[str]] = {}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if not node.get("ignored") and role in named:
            heard.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert {"button", "combobox", "checkbox", "region", "image"} <= set(heard)
    assert not {role for role in heard.keys() - {"table", "group"} if "" in heard[role]}, heard
    assert "Remove abc1" in heard["button"]
    assert "What is done to abc23" in heard["combobox"]
    assert any("interval" in name for name in heard["image"])


def test_nothing_but_the_page_s_own_scripts_runs(page: Browser) -> None:
    assert (
        page.ask("(() => { try { return eval('1'); } catch (error) { return error.name; } })()")
        == "EvalError"
    )
    assert (
        page.ask(
            "(() => { try { document.body.innerHTML = '<b>'; } catch (error) { return error.name; } })()"
        )
        == "TypeError"
    )
    page.problems.clear()  # of these two


def test_names_are_text(browser: Browser, predictor: Predictor) -> None:
    checkpoint = predictor.checkpoint
    names = [HOSTILE, *checkpoint.genes.names[1:]]
    standard = {name: f"{HOSTILE}{i}" for i, name in enumerate(names)}
    genes = GeneIndex(names, standard, {HOSTILE: [f"alias{HOSTILE}"]}, HOSTILE)
    known = checkpoint.known
    outputs = [{**checkpoint.phenotypes[0], "name": HOSTILE, "unit": HOSTILE}]
    other = ReferenceMeasurements(
        ("fitness", HOSTILE),
        known.table,
        known.part,
        known.single_fitness,
        known.single_fitness_sd,
        known.essential,
    )
    similarity = checkpoint.organism.similarity
    assert similarity is not None
    organism = replace(
        checkpoint.organism, similarity=replace(similarity, relations=(HOSTILE, f"2{HOSTILE}"))
    )
    bad = Predictor(
        replace(
            checkpoint,
            genes=genes,
            known=other,
            phenotypes=outputs,
            organism=organism,
            conditions=[HOSTILE, "x"],
            origin={"dataset": HOSTILE},
            validation=None,
        )
    )
    browser.problems.clear()
    browser.window(1200, 900)
    with serving(Answers(bad, HOSTILE)) as server:
        browser.open(
            f"{server.url}#mutant={HOSTILE},G001&mutant=<svg/onload=alert(1)>x&condition=x&interval={HOSTILE}"
        )
        rows(browser, 1)
        browser.until("document.querySelector('#drawing svg')")
        browser.click("#mutants input")
        browser.type("<svg")
        browser.until("document.querySelectorAll('[role=option]').length > 3")
        text = browser.ask("document.body.innerText")
        for place in (
            "#model",
            "#mutants .chip",
            "#table",
            "#nearest",
            "#legend",
            "#drawing",
            "#title",
            "#wrong",
            "#condition",
            "#examples",
            "[role=option]",
        ):
            assert "<svg/onload" in browser.ask(f"document.querySelector('{place}').textContent"), place
        assert text.count(HOSTILE) > 20
        assert browser.ask("document.querySelectorAll('[onload], [onerror]').length") == 0
        assert browser.ask("document.title") == f"wildtype: {HOSTILE}"
        assert browser.problems == []


def test_a_server_that_ended_is_said(page: Browser, server: Server) -> None:
    page.open(f"{server.url}#mutant=G001,G002")
    rows(page, 1)
    page.call("Network.enable")
    gone = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.call("Network.emulateNetworkConditions", offline=True, **gone)
    page.ask("location.hash = '#mutant=G003'")
    assert "start wildtype serve again" in page.until("document.querySelector('#wrong').textContent")
    page.call("Network.emulateNetworkConditions", offline=False, **gone)
    page.problems.clear()  # the console says, too, that nobody answers
