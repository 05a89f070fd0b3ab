"""The bench of lookups finds what plain loops find."""

from __future__ import annotations

from benchmarks.evidence import bench_evidence


def test_both_ways_find_the_same() -> None:
    report = bench_evidence(genes=60, measured=400, queries=80, repeats=1)
    assert report["equal"]
    assert report["found"]["mean"] > 5
    assert min(report["queries_per_second"].values()) > 0
