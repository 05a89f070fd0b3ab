"""The bench of masks at toy size: complete, JSON-able, and its ways agree."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.mask_vs_filter import bench_mask_vs_filter, crossover, masked_messages, messages, problem_of


def test_report_of_a_small_problem() -> None:
    report = json.loads(
        json.dumps(
            bench_mask_vs_filter(
                nodes=80, relations=3, edges=1000, width=4, batch_size=5, repeats=1, shares=(0.01, 0.5)
            )
        )
    )
    assert report["equal"] is True
    assert report["difference"] < 1e-5
    assert report["problem"]["edges"] == 1000
    assert set(report["generators"]) == {"loop", "padded", "csr", "csr, fresh memory", "reset", "filter"}
    for row in report["generators"].values():
        assert row["seconds_per_mutant"] > 0
    assert report["generators"]["csr"]["bytes_of_a_batch"] == 5 * 1000
    assert report["generators"]["csr"]["bytes_kept"] == 4 * 2 * 1000 + 3 * 8 * 81
    assert report["generators"]["padded"]["bytes_kept"] > report["generators"]["csr"]["bytes_kept"]
    assert report["ratios"]["loop_to_loop"] == 1
    assert list(report["steps"]["shares"]) == ["1.0%", "50.0%"]
    assert report["steps"]["edges"] == 334
    half = report["steps"]["shares"]["50.0%"]
    assert half["removed_share"] == pytest.approx(0.5, abs=0.15)
    assert all(half[f"{way}_seconds"] > 0 for way in ("masked", "filtered", "shared", "filtering_alone"))


def test_the_problem_has_the_edges_asked_for_and_repeats() -> None:
    graph, batch = problem_of(50, 3, 1000, 4, seed=1)
    assert sorted(graph.edges.values()) == [333, 333, 334]
    assert batch.offsets.diff().tolist() == [2, 3, 2, 3]
    again, other = problem_of(50, 3, 1000, 4, seed=1)
    assert torch.equal(batch.gene, other.gene)
    assert (again.union != graph.union).nnz == 0


def rows(*more: float) -> list[dict[str, float]]:
    return [
        {"removed_share": (i + 1) / 10, "masked_seconds": 1.0, "filtered_seconds": 1.0 + m}
        for i, m in enumerate(more)
    ]


@pytest.mark.parametrize(
    ("more", "share"),
    [([0.3, 0.1, -0.1, -0.5], 0.25), ([-0.1, 0.1, -0.3], 0.225), ([-0.1, 0.0], 0.1), ([-0.1, 0.2], None)],
)
def test_crossover(more: list[float], share: float | None) -> None:
    found = crossover(rows(*more), "filtered")
    assert found is None if share is None else found == pytest.approx(share)


def test_masked_messages_are_those_of_the_kept_edges() -> None:
    x = torch.tensor([[1.0], [10.0], [100.0]])
    index = torch.tensor([[0, 1, 2], [1, 0, 0]])
    mask = torch.tensor([True, False, True])
    assert masked_messages(x, index, mask).tolist() == [[100.0], [1.0], [0.0]]
    assert messages(x, index).tolist() == [[110.0], [1.0], [0.0]]
