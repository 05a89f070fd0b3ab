"""Both ways to evaluate trees give the same."""

from __future__ import annotations

from benchmarks.trees import bench_trees


def test_both_ways_give_the_same() -> None:
    report = bench_trees(rows=130, columns=9, outputs=2, trees=5, leaves=12, repeats=1)
    assert report["equal"] is True
    assert set(report["mutants_per_second"]) == {"quantised", "plain"}
