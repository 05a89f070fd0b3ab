"""The cost of evidence: what is drawn, what is refused, and that each cost is of what it says."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.part import EvidencePart
from wildtype.profiling import evidence_scaling as scaling
from wildtype.profiling.evidence_scaling import (
    EvidenceProblemSizes,
    evidence_costs,
    evidence_scaling,
    peak_above_import,
)

SMALL = EvidenceProblemSizes(genes=40, relations=2, edges=101, measured=300, batch_size=50, perturbed=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measured": 0}, "measured=0: it must be at least 1"),
        ({"perturbed": 41, "measured": 1}, "perturbed=41: it must be at most genes=40"),
        ({"measured": 400}, "measured=400 and batch_size=50 are too many: of 780 sets of"),
        ({"edges": 1}, "edges=1 leaves some of relations=2 without any"),
        (
            {"edges": 79},
            "edges=79 leave genes=40 without a neighbour in each of relations=2: take at least 80",
        ),
        ({"edges": 1000}, "edges=1000 are too many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, **change).check()
    with pytest.raises(ConfigError, match=message):
        evidence_scaling(replace(SMALL, **change), axes=["genes"], factors=(1, 2))


def test_each_cost_is_timed_by_the_clock_and_memory_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, calls = [], []
    monkeypatch.setattr(scaling, "peak_in_fresh_process", lambda *what: asked.append(what) or 12.0)
    for kind, name in ((EvidencePart, "one_edit"), (EvidencePart, "tokens_of"), (EvidenceIndex, "__init__")):
        run = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *a, r=run, n=name, **k: calls.append(n) or r(*a, **k))
    ticks = itertools.accumulate(itertools.count(1))  # 0 + 1, + 2, + 3 …
    costs = evidence_costs(memory=True, clock=lambda: float(next(ticks)))
    trials = {name: cost(SMALL) for name, cost in costs.items()}
    found = {}
    for name, trial in trials.items():
        calls.clear()
        found[name] = trial.seconds(), list(dict.fromkeys(calls))
    assert found == {
        "index": (2.0, ["__init__", "tokens_of", "one_edit"]),
        "lookup": (4.0, ["one_edit"]),
        "whole tokens": (6.0, ["tokens_of", "one_edit"]),
    }
    assert [trial.peak_mib for trial in trials.values()] == [12.0] * 3
    module, *arguments = json.loads(json.dumps(asked[0]))
    assert len(asked) == 1
    assert module == "wildtype.profiling.evidence_scaling"
    assert np.isfinite(peak_above_import(*arguments))


def test_a_report_for_every_cost_over_every_size() -> None:
    base = replace(SMALL, measured=150, edges=200)
    reports = evidence_scaling(base, factors=(1, 2), repeats=1)
    assert [report.model for report in reports] == [
        "evidence: index",
        "evidence: lookup",
        "evidence: whole tokens",
    ]
    for report in reports:
        assert list(report.axes) == ["measured", "genes", "perturbed"]
        assert [point.value for point in report.axes["measured"].points] == [150, 300]
        assert report.to_json()["base"] == asdict(base)
