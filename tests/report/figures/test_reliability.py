"""The reliability diagram and its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.evaluation.reliability import reliability
from wildtype.report.figures.panel import save_panels
from wildtype.report.figures.reliability import reliability_panels


def test_a_panel_per_phenotype_with_its_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    probability, unseen = rng.uniform(0, 0.4, 400), np.repeat([0, 1], 200)
    call = (rng.random(400) < probability).astype(float)
    found = [one for name in ("negative", "positive") for one in reliability(name, call, probability, unseen)]
    panels = reliability_panels(found)
    assert [panel.title for panel in panels] == ["reliability of negative", "reliability of positive"]
    assert len(panels[0].rows) == 20
    assert panels[0].rows[0][:2] == ["negative: no unseen genes", "20"]
    assert "Farthest apart" in panels[0].about
    save_panels(panels, tmp_path / "drawn.svg")
    drawn = (tmp_path / "drawn.svg").read_text()
    assert "1 unseen gene" in drawn
    assert reliability_panels([]) == []
