"""Laws of cost are recovered exactly; the plan varies one size at a time; real steps of every model do the
same work each time and see what was asked for.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.models.cell_transformer.config import CellTransformerConfig, PriorConfig, PriorHead
from wildtype.models.dango.config import DangoConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.profiling import synthetic_problem as synthetic
from wildtype.profiling.scaling import fit_fixed_and_slope, fit_power, scaling
from wildtype.profiling.synthetic_problem import (
    ProblemSizes,
    Trial,
    peak_above_import,
    synthetic_step,
    training_steps,
)

BASE = ProblemSizes(genes=100, relations=2, edges=200, batch_size=10, perturbed=3)
SMALL = ProblemSizes(genes=40, relations=2, edges=101, batch_size=6, perturbed=3, features=5)
CELL = CellTransformerConfig(width=8, layers=1, heads=4, dropout=0.0, feature_dropout=0.0)
DANGO = DangoConfig(width=8)
GNN = DifferenceGNNConfig(width=8, layers=2)


def costs(law: Callable[[ProblemSizes], float]) -> Callable[[ProblemSizes], Trial]:
    return lambda sizes: Trial(lambda: law(sizes), edges=sizes.edges, parameters=1)


def test_a_power_of_one_size_is_found_and_no_cost_of_the_others() -> None:
    report = scaling(CELL, BASE, measure=costs(lambda s: 3e-4 * s.genes**1.5))
    genes = report.axes["genes"]
    assert [p.value for p in genes.points] == [100, 200, 400, 800]
    assert genes.power.exponent == pytest.approx(1.5)
    assert genes.power.factor == pytest.approx(3e-4)
    assert genes.power.error == pytest.approx(0, abs=1e-9)
    assert genes.power.r2 == pytest.approx(1)
    assert genes.local == pytest.approx((1.5, 1.5, 1.5))
    assert genes.law == "power"
    assert genes.linear.fixed < 0  # grows faster than its size
    for name in ("batch_size", "edges", "perturbed"):
        assert report.axes[name].power.exponent == pytest.approx(0, abs=1e-9)
        assert report.axes[name].linear.share == pytest.approx(1)


def test_a_fixed_cost_and_a_slope_are_found() -> None:
    report = scaling(CELL, BASE, axes=["batch_size"], measure=costs(lambda s: 0.02 + 0.001 * s.batch_size))
    axis = report.axes["batch_size"]
    assert axis.linear.fixed == pytest.approx(0.02)
    assert axis.linear.slope == pytest.approx(0.001)
    assert axis.linear.share == pytest.approx(2 / 3)
    assert axis.linear.deviation == pytest.approx(0, abs=1e-9)
    assert axis.law == "linear"
    assert 0 < axis.power.exponent < 1
    assert list(axis.local) == sorted(axis.local)  # the fixed cost matters less and less
    assert axis.local[0] == pytest.approx(np.log(0.04 / 0.03) / np.log(2))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.floats(1e-4, 1e3)),
        min_size=3,
        max_size=8,
        unique_by=lambda point: point[0],
    )
)
def test_the_exponent_and_its_error_are_those_of_regression(points: list[tuple[int, float]]) -> None:
    doublings, y = np.array(points).T
    x = 7 * 2**doublings
    law = fit_power(x, y)
    right = stats.linregress(np.log(x), np.log(y))
    assert law.exponent == pytest.approx(right.slope, rel=1e-6, abs=1e-9)
    if np.ptp(np.log(y)) < 1e-3:  # SciPy's error is NaN where all are equal
        assert law.error == pytest.approx(0, abs=1e-3)
    else:
        assert law.error == pytest.approx(right.stderr, rel=1e-5, abs=1e-7)
        assert law.r2 == pytest.approx(right.rvalue**2, abs=1e-6)


def test_two_points_have_no_error_and_small_costs_count_in_the_line() -> None:
    law = fit_power([1, 2], [3, 12])
    assert law.exponent == pytest.approx(2)
    assert np.isnan(law.error)
    # An absolute fit would give the last point its way and miss the first two by half.
    line = fit_fixed_and_slope([1, 2, 1000], [1.0, 2.0, 1500.0])
    assert abs(line.fixed + line.slope - 1) < 0.35


def test_points_take_turns_and_the_shortest_step_counts() -> None:
    calls: list[int] = []

    def measure(sizes: ProblemSizes) -> Trial:
        times = iter([9.0, float(sizes.perturbed), 7.0])

        def seconds() -> float:
            calls.append(sizes.perturbed)
            return next(times)

        return Trial(seconds, sizes.edges, 1)

    report = scaling(CELL, BASE, axes=["perturbed"], factors=(2, 1, 3), repeats=3, measure=measure)
    assert calls == [3, 6, 9, 9, 6, 3, 3, 6, 9]
    assert [p.seconds for p in report.axes["perturbed"].points] == [3, 6, 7]


def test_one_size_varies_and_edges_count_as_drawn() -> None:
    seen: list[ProblemSizes] = []

    def measure(sizes: ProblemSizes) -> Trial:
        seen.append(sizes)
        return Trial(lambda: 1.0, sizes.edges - 1, 7, peak_mib=2.5)

    report = scaling(CELL, BASE, axes=["edges", "genes"], factors=(1, 2), measure=measure)
    assert seen == [BASE, replace(BASE, edges=400), BASE, replace(BASE, genes=200)]
    assert [p.value for p in report.axes["edges"].points] == [199, 399]
    assert report.rows()[0] == {
        "axis": "edges",
        "exponent from the last": None,
        "value": 199,
        "seconds": 1.0,
        "parameters": 7,
        "peak_mib": 2.5,
    }
    assert [row["axis"] for row in report.fits()] == ["edges", "genes"]


def test_what_was_found_is_told_after_every_axis() -> None:
    told = []
    measure = costs(lambda sizes: 1.0)
    scaling(CELL, BASE, axes=["genes", "edges"], factors=(1, 2), measure=measure, on_axis=told.append)
    parts = [json.loads(json.dumps(finite(report.to_json()))) for report in told]
    assert [part["complete"] for part in parts] == [False, True]
    assert [list(part["axes"]) for part in parts] == [["genes"], ["genes", "edges"]]
    assert parts[0]["axes"]["genes"]["power"]["error"] is None  # two points
    assert parts[0]["base"] == asdict(BASE)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (CELL, {"axes": ["width"]}, "no axis 'width' to scale; known axes: batch_size, genes"),
        (CELL, {"factors": (1, 1.001)}, r"give batch_size only the sizes \[10\]"),
        (CELL, {"repeats": 0}, "repeats=0"),
        (CELL, {"factors": (1, 0.01)}, "batch_size=0: it must be at least 1"),
        (CELL, {"axes": ["edges"], "factors": (1, 10)}, "edges=2000 are too many .* at most 1980 edges"),
        (CELL, {"axes": ["edges"], "factors": (1, 0.005)}, "edges=1 leaves some of relations=2 without any"),
        (CELL, {"axes": ["perturbed"], "factors": (1, 40)}, "perturbed=120: .* between 1 and genes=100"),
        (DANGO, {"axes": ["perturbed"], "factors": (1, 0.34)}, "perturbed=1: .* dango .* between 2 and"),
        (replace(GNN, metabolism=True), {}, "model.metabolism=true: a random organism has no metabolism"),
        (replace(DANGO, relations=["a", "b", "c"]), {}, "relations=2, but the model's settings name 3"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_measured(config, change, message) -> None:
    def measure(sizes: ProblemSizes) -> Trial:
        raise AssertionError("measured")

    with pytest.raises(ConfigError, match=message):
        scaling(config, BASE, **change, measure=measure)


@pytest.mark.parametrize("config", [CELL, DANGO, GNN], ids=lambda c: c.name)
def test_every_step_of_a_model_does_the_same_work(config) -> None:
    made = synthetic_step(config, SMALL, seed=3)
    before = [p.detach().clone() for p in made.model.parameters()]
    losses = [float(made.step()) for _ in range(2)]
    assert losses[0] == losses[1] > 0
    assert all(torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))
    assert any(p.grad is not None and bool(p.grad.any()) for p in made.model.parameters())
    assert made.edges == SMALL.edges
    assert made.parameters == sum(p.numel() for p in made.model.parameters())
    operators = (made.organism.priors or made.organism.relations).values()
    assert sum(len(op.edges()[0]) for op in operators) == SMALL.edges
    assert made.batch.offsets.diff().tolist() == [3] * 6
    assert made.organism.features.shape == (40, 5 if config is CELL else 0)
    assert float(synthetic_step(config, SMALL, seed=3).step()) == losses[0]
    assert float(synthetic_step(config, SMALL, seed=4).step()) != losses[0]


def test_relations_that_settings_name_are_drawn() -> None:
    prior = PriorConfig(heads={"complex": PriorHead(0, 1)}, reverse=["complex", "ppi"], loss="bce")
    made = synthetic_step(replace(CELL, prior=prior), SMALL)
    assert list(made.organism.priors) == ["complex"]
    assert float(made.step()) != float(made.step())  # negatives are drawn anew
    named = synthetic_step(replace(DANGO, relations=["ppi"], zeros={"ppi": 0.1}), SMALL)
    assert named.model.relations == ("ppi",)


def test_what_is_encoded_once_per_epoch_is_not_part_of_a_step(monkeypatch) -> None:
    made = synthetic_step(replace(GNN, wild_type="epoch"), SMALL)
    monkeypatch.setattr(type(made.model), "encode", lambda *_: pytest.fail("encoded again"))
    assert torch.isfinite(made.step())


def test_autocast_changes_the_loss_a_little() -> None:
    exact, rough = (float(synthetic_step(DANGO, SMALL, bf16=bf16).step()) for bf16 in (False, True))
    assert exact != rough
    assert rough == pytest.approx(exact, rel=0.1)


def test_a_trial_times_whole_steps_by_the_clock_and_asks_for_memory_once(monkeypatch) -> None:
    asked, steps, step = [], [], synthetic.SyntheticStep.step
    monkeypatch.setattr(synthetic.SyntheticStep, "step", lambda made: steps.append(made.sizes) or step(made))
    monkeypatch.setattr(synthetic, "peak_in_fresh_process", lambda *what: asked.append(what) or 12.0)
    ticks = itertools.accumulate(itertools.count(1))  # 0 + 1, + 2, + 3 …
    measure = training_steps(DANGO, seed=5, memory=True, clock=lambda: float(next(ticks)))
    trials = [measure(SMALL), measure(SMALL), measure(replace(SMALL, batch_size=7))]
    steps.clear()  # the first of each is not timed
    assert [trials[0].seconds(), trials[2].seconds()] == [2.0, 4.0]
    assert [sizes.batch_size for sizes in steps] == [6, 7]
    assert [trial.peak_mib for trial in trials] == [12.0] * 3
    assert [what[2]["batch_size"] for what in asked] == [6, 7]
    module, *arguments = json.loads(json.dumps(asked[0]))
    assert module == "wildtype.profiling.synthetic_problem"
    assert np.isfinite(peak_above_import(*arguments))
    assert training_steps(DANGO)(SMALL).peak_mib is None


def test_real_steps_fill_a_report() -> None:
    report = scaling(DANGO, SMALL, axes=["batch_size"], factors=(1, 2), repeats=1)
    first, second = report.axes["batch_size"].points
    assert (first.value, second.value) == (6, 12)
    assert min(first.seconds, second.seconds) > 0
    assert first.parameters == second.parameters > 0
