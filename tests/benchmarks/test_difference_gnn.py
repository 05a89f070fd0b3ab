"""The bench of the difference GNN at toy size: its report is complete, JSON-able, and shows equal results."""

from __future__ import annotations

import json

import pytest

from benchmarks import difference_gnn
from benchmarks.difference_gnn import bench_difference_gnn
from wildtype.errors import ConfigError

SMALL = {"nodes": 40, "relations": 3, "edges": 240, "width": 8, "layers": 2, "batch_size": 4}


@pytest.mark.slow
@pytest.mark.parametrize(("aggregation", "tile"), [("sum", 1), ("pairwise", 0)])
def test_report_of_a_small_step(monkeypatch, aggregation, tile):
    pytest.importorskip("torch_geometric")
    monkeypatch.setattr(difference_gnn, "PEAK_BATCHES", (3,))
    memory = aggregation == "sum"
    report = bench_difference_gnn(**SMALL, aggregation=aggregation, tile=tile, repeats=2, memory=memory)
    report = json.loads(json.dumps(report))
    assert report["problem"] == SMALL | {"aggregation": aggregation, "tile": tile, "repeats": 2, "seed": 0}
    assert set(report["phases"]) == {
        "mutants from the table",
        "wild type",
        "forward",
        "backward",
        "optimizer",
    }
    assert report["seconds_per_step"] == pytest.approx(sum(report["phases"].values()))
    assert report["seconds_per_mutant"] * 4 == pytest.approx(report["seconds_per_step"])
    per_graph = report["reference"]["seconds_per_graph"]
    assert report["reference"]["seconds_per_mutant"] == pytest.approx(per_graph * 1.25)
    assert report["ratio"] == pytest.approx(
        report["reference"]["seconds_per_mutant"] / report["seconds_per_mutant"]
    )
    assert all(value < 1e-3 for value in report["difference"].values())
    assert report["difference"]["gradients in float64, of the largest"] < 1e-10
    if memory:
        assert set(report["peak_mib_above_import"]) == {"batch 3"}
        assert 0 < report["peak_mib_above_import"]["batch 3"] < 1000


def test_the_reference_can_be_left_out():
    report = bench_difference_gnn(**SMALL, reference=False, memory=False)
    assert {"reference", "ratio", "difference", "peak_mib_above_import"}.isdisjoint(report)


def test_an_unknown_aggregation_is_named():
    with pytest.raises(ConfigError, match="model.aggregation='max'"):
        bench_difference_gnn(**SMALL, aggregation="max", reference=False, memory=False)
