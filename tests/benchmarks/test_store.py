"""The store bench at toy size: its report is complete, JSON-able, and shows that the rows came back."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.store import bench_store, synthetic_measurements


def test_report_of_a_small_store(tmp_path) -> None:
    report = json.loads(json.dumps(bench_store(rows=3000, genes=60, folder=tmp_path)))
    assert report["equal"] is True
    assert report["problem"] == {"rows": 3000, "genes": 60, "perturbations": 6000, "seed": 0}
    assert set(report["seconds"]) == {"ingest", "query, all rows", "query, triples", "hash"}
    assert set(report["rows_per_second"]) == {"ingest", "query, all rows", "query, triples"}
    assert all(value > 0 for value in (*report["seconds"].values(), *report["rows_per_second"].values()))
    assert report["mib"]["file"] > 0
    assert list(tmp_path.iterdir()) == []


def test_synthetic_measurements_are_many_sided() -> None:
    rows = synthetic_measurements(300, 40)
    assert np.bincount(rows.order).tolist() == [0, 100, 100, 100]
    assert len(np.unique(rows.environment)) == len(np.unique(rows.phenotype)) == 3
    assert set(np.unique(rows.kind)) == {0, 2}
    assert (synthetic_measurements(300, 40).value == rows.value).all()
    assert (synthetic_measurements(300, 40, seed=1).value != rows.value).any()
