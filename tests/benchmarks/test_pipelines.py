"""The bench of pipelines at toy size: every cell is there, typed, plausible, and both paths agree."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import numpy as np
import pytest

from benchmarks import pipelines as bench
from benchmarks.pipelines import bench_pipelines
from wildtype.errors import ConfigError
from wildtype.profiling import pipelines
from wildtype.profiling.pipelines import PIPELINES, Row

SMALL: dict[str, Any] = {
    "nodes": 90, "relations": 4, "edges": 900, "batch_size": 8, "large_batch": 16, "mutants": 200,
    "compared": 5, "repeats": 1, "seconds": 0.02, "budget_gib": 1.0, "seed": 3,
}  # fmt: skip
NAMES = [name for name, _, _ in PIPELINES]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return json.loads(json.dumps(bench_pipelines(**SMALL)))


def test_every_cell_is_typed(report: dict[str, Any]) -> None:
    hints = get_type_hints(Row)
    rows = report["rows"]
    assert [(r["path"], r["batch_size"], r["name"]) for r in rows] == [
        (path, size, name) for path, size in (("fast", 8), ("fast", 16), ("reference", 8)) for name in NAMES
    ]
    for row in rows:
        assert list(row) == list(hints)
        for name, value in row.items():
            assert type(value) is hints[name], (name, value)
            nothing = row["name"] == "perturbation" and name in ("edges_per_mutant", "representation_ms")
            within = name == "fetch_ms" or (row["path"] == "fast" and name == "collate_ms")
            assert value or nothing or within, row


def test_cells_fit_each_other(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        assert row["mutants_per_second"] == pytest.approx(row["batch_size"] * row["iterations_per_second"])
        assert row["largest_batch"] >= row["largest_batch_built"]
        if row["name"] == "perturbation":
            assert row["ratio_to_perturbation"] == 1.0
            assert (row["nodes_per_mutant"], row["edges_per_mutant"]) == (pytest.approx(2.4), 0.0)
    cells = {(r["path"], r["batch_size"], r["name"]): r for r in report["rows"]}
    for name in NAMES:
        fast, plain = cells["fast", 8, name], cells["reference", 8, name]
        for cell in ("nodes_per_mutant", "edges_per_mutant"):
            assert fast[cell] == plain[cell]
        ratio = fast["mutants_per_second"] / plain["mutants_per_second"]
        assert report["ratios"]["fast_to_reference"][name] == pytest.approx(ratio)
    nodes = [cells["fast", 8, name]["nodes_per_mutant"] for name in ("1-hop", "2-hop", "3-hop")]
    assert 0 < nodes[0] < nodes[1] <= nodes[2] <= 90 - 2.4
    assert cells["fast", 8, "lazy_subgraph"]["nodes_per_mutant"] == pytest.approx(90 - 2.4)


def test_memory_of_masks_and_of_copied_graphs(report: dict[str, Any]) -> None:
    cells = {(r["path"], r["batch_size"], r["name"]): r for r in report["rows"]}
    for name in NAMES[1:]:
        # masks, and per mutant four columns, an offset and two or three genes with their kinds
        masks = cells["fast", 16, name]
        least, most = (16 * (90 + 24 + 8 + 9 * k) + 8 for k in (2, 3))
        assert least <= masks["mib_per_batch"] * 2**20 <= most
        assert 2**30 / (90 + 32 + 28) < masks["largest_batch"] < 2**30 / (90 + 32 + 17)
        assert masks["largest_batch_built"] >= 16
    lazy, edges = cells["reference", 8, "lazy_subgraph"], report["problem"]["edges"]
    assert 890 < edges <= 900
    masks_and_edges = (8 * (edges + 90) + 16 * edges) / 2**20
    assert lazy["mib_per_batch"] == pytest.approx(masks_and_edges, rel=0.1)
    # one byte per edge and gene, and some 60 per mutant; the shared edges count once
    fits = (2**30 - 16 * edges) / (edges + 90)
    assert 0.85 * fits < lazy["largest_batch"] <= fits


def test_both_paths_agree(report: dict[str, Any]) -> None:
    assert report["equal"] is True
    assert list(report["k_hop"]) == ["1-hop", "2-hop", "3-hop"]
    for hop in report["k_hop"].values():
        assert hop["equal"] is True
        seconds = hop["seconds_per_mutant"]
        assert hop["ratio"] == pytest.approx(seconds["torch_geometric"] / seconds["fast"])


def test_a_difference_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = pipelines._kept_by_samples

    def wrong(kind: Any, part: Any) -> Any:
        return [(genes[1:], counts) for genes, counts in real(kind, part)]

    monkeypatch.setattr(pipelines, "_kept_by_samples", wrong)
    assert bench_pipelines(**SMALL)["equal"] is False


def test_reference_can_be_left_out() -> None:
    report = bench_pipelines(**SMALL, reference=False)
    assert {row["path"] for row in report["rows"]} == {"fast"}
    assert not {"equal", "k_hop", "ratios"} & set(report)


def test_synthetic_problem_is_what_it_says() -> None:
    graph = bench._graph(120, 5, 2000, seed=1)
    directed = [relation.directed for relation in graph.relations.values()]
    assert directed == [False] * 4 + [True]
    assert list(graph.edges.values()) == [400] * 5
    for relation in graph.relations.values():
        same = (relation.adjacency != relation.adjacency.T).nnz == 0
        assert same is not relation.directed
    table = bench._table(6, 500, seed=1)
    assert np.bincount(table.order).tolist() == [0, 0, 250, 250]
    assert set(np.unique(table.gene)) == set(range(6))
    with pytest.raises(ConfigError, match="edges per relation are too many for 20 genes"):
        bench_pipelines(nodes=20, relations=1, edges=2000)
    with pytest.raises(ConfigError, match="batches no larger than the table"):
        bench_pipelines(**SMALL | {"mutants": 10})
    with pytest.raises(ConfigError, match="3 genes are too few"):
        bench_pipelines(nodes=3, relations=1, edges=0)
