"""Tables of explanations: every section prints, names are plain text, and small terminals can show them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.inference.explaining.models import opened
from tests.report.test_table import printed
from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.inference.explaining.explain import Explanation, ExplanationRequest, explain
from wildtype.inference.explaining.members import OverModels, rank_agreement
from wildtype.report.explained_section import explained_blocks
from wildtype.report.explanation import draw_latents, over_models, print_explanation
from wildtype.report.page import show


@pytest.fixture(scope="module")
def explained(tiny_run: Path) -> Explanation:
    run = opened(tiny_run)
    return explain(
        [run, run], ExplanationRequest(sets=[["G003", "G005"]], mutants=40, graphs=2, exchanges=20)
    )


def test_every_section_is_printed_with_its_agreement(explained: Explanation) -> None:
    console, raw = printed(width=140)
    print_explanation(explained, console)
    text = raw.getvalue().decode()
    for needle in (
        "2 models",
        "Regularised heads",
        "physical",
        "± 0.00",
        "Free heads",
        "2 of 2",
        "overlap",
        "Rand index 1.00",
        "through the whole cell",
        "evidence: a measured mutant",
    ):
        assert needle in text
    for part in explained.mutants[0].parts:
        assert part.name in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_terminal_can_show_it_and_names_are_no_markup(explained: Explanation, encoding: str) -> None:
    head = replace(explained.heads[0], relation="[red]odd[/] <b>\x1b[31m")
    odd = replace(explained, heads=(head, *explained.heads[1:]), runs=("[bold]runs/é", "x"))
    console, raw = printed(width=80, encoding=encoding)
    print_explanation(odd, console)
    text = raw.getvalue().decode(encoding)
    assert "[bold]runs/" in text
    assert "[red]" in text


def test_sections_that_were_not_asked_for_are_not_printed(explained: Explanation) -> None:
    console, raw = printed()
    asked = replace(explained.asked, sections=("heads",))
    print_explanation(replace(explained, asked=asked), console)
    text = raw.getvalue().decode()
    assert "Regularised heads" in text
    assert "Free heads" not in text
    assert "G003" not in text


def test_one_number_over_models() -> None:
    assert over_models(OverModels.of([0.5])) == "0.50"
    assert over_models(OverModels.of([0.5, 0.7])) == "0.60 ± 0.14"
    assert over_models(OverModels.of([0.5, np.nan, 0.7])) == "0.60 ± 0.14"
    assert over_models(OverModels.of([np.nan])) == "–"
    x = np.array([1.0, 2, 3, 4])
    assert rank_agreement([x, x**3, -x]) == pytest.approx((1 - 1 - 1) / 3)
    assert np.isnan(rank_agreement([x]))
    assert np.isnan(rank_agreement([x, np.zeros(4)]))


def test_drawings(explained: Explanation, tmp_path: Path) -> None:
    draw_latents(explained.latents, tmp_path / "z.svg")
    first = (tmp_path / "z.svg").read_bytes()
    draw_latents(explained.latents, tmp_path / "z.svg")
    assert (tmp_path / "z.svg").read_bytes() == first
    with pytest.raises(ConfigError, match="nothing to draw"):
        draw_latents(None, tmp_path / "y.svg")
    with pytest.raises(ConfigError, match="cannot tell the format"):
        draw_latents(explained.latents, tmp_path / "y.txt")


def test_the_page_of_a_run_shows_what_is_written(explained: Explanation) -> None:
    (mutant,) = explained.mutants
    unknown = replace(mutant.tokens[0], value=None)  # measured of another phenotype
    odd = replace(explained, mutants=(replace(mutant, tokens=(unknown, *mutant.tokens[1:])),))
    text = show(explained_blocks(finite(odd.to_json()), "x"))
    assert "Not shown" not in text
    for needle in ("physical (0.0)", "G003, G005", "additive model", "cluster 1"):
        assert needle in text
