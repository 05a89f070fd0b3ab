from __future__ import annotations

import pytest
import torch

from benchmarks.dango import REFERENCES, bench_dango, largest_array


@pytest.mark.slow
def test_fast_and_reference_steps_agree_and_only_one_makes_dense_arrays() -> None:
    pytest.importorskip("torch_geometric")
    report = bench_dango(nodes=300, relations=3, edges=3000, width=8, batch_size=6, repeats=1)
    assert report["difference"]["loss, relative"] < 1e-5
    assert report["difference"]["gradients, of the largest"] < 1e-5
    assert report["largest_array"]["elements"] < 300**2 / 8
    assert set(report["seconds_per_step"]) == {"fast", *REFERENCES}
    assert set(report["peak_mib_above_import"]) == {"fast", "reference"}
    assert set(report["ratios"]) == {f"{name} to fast" for name in REFERENCES}


def test_largest_array_sees_what_is_stored() -> None:
    x = torch.ones(5, 7)
    assert largest_array(lambda: x.unsqueeze(0).expand(1000, 5, 7)) == 35
    assert largest_array(lambda: (x + 1)[:1, :1]) == 35
    assert largest_array(lambda: torch.eye(9).to_sparse_csr()) == 81
    sparse = torch.eye(9).to_sparse_csr()
    assert largest_array(lambda: sparse * 2) <= 10
    assert largest_array(lambda: None) == 0
