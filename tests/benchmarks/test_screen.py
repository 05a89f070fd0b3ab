from __future__ import annotations

import pytest

from benchmarks.screen import SUMMARIES, bench_screen


@pytest.mark.parametrize("reference", [True, False])
def test_screen(reference: bool) -> None:
    report = bench_screen(
        nodes=60, relations=3, edges=600, candidates=20, width=8, heads=2, pieces=2, reference=reference
    )
    assert report["problem"]["mutants in all"] == 1140
    assert report["problem"]["pieces"] == 1
    assert report["products"]["floating_point_operations_per_mutant"] == 2 * 2 * 60 * 5
    assert report["products"]["mutants_per_second"] > 0
    for name in SUMMARIES:
        assert report[name]["mutants_per_second"] > 0
        assert ("one_by_one_per_second" in report[name]) == reference
        if reference:
            assert report[name]["difference, of the largest"] < 1e-5
