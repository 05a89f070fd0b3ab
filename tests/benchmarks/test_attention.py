"""The attention bench at toy size: its report is complete, JSON-able, and shows equal results."""

import json

import pytest

from benchmarks.attention import bench_attention

SMALL = {"nodes": 60, "heads": 3, "width": 4, "relations": 4, "edges": 500, "repeats": 2}


@pytest.mark.slow
def test_report_of_a_small_layer():
    report = json.loads(json.dumps(bench_attention(**SMALL)))
    assert report["problem"] == {"nodes": 60, "heads": 3, "width": 4, "relations": 4, "edges": 500, "seed": 0}
    assert sum(report["edges_per_relation"]) == 500
    assert set(report["seconds"]) == {"plain", "padded", "regularised", "explicit"}
    assert all(seconds > 0 for seconds in report["seconds"].values())
    assert set(report["ratios"]) == {
        "regularised_to_plain",
        "regularised_to_padded",
        "explicit_to_regularised",
    }
    assert 0 < report["peak_mib"] < 500
    for result, tolerance in zip(report["difference"].values(), (1e-4, 1e-11), strict=True):
        assert set(result) == {"loss", "grad_q", "grad_k", "grad_v"}
        assert all(part["relative"] < tolerance for part in result.values())


@pytest.mark.slow
def test_explicit_maps_can_be_left_out():
    report = bench_attention(**SMALL, reference=False)
    assert set(report["seconds"]) == {"plain", "padded", "regularised"}
    assert "difference" not in report
