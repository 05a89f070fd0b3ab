from __future__ import annotations

import torch
from torch_geometric.data import HeteroData

from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.representations import NodeMasks
from wildtype.profiling.pipelines import tensor_bytes


def test_shared_storage_counts_once() -> None:
    x = torch.zeros(10, dtype=torch.int64)
    assert tensor_bytes([x, x, (x[:], x.view(10))]) == 80
    assert tensor_bytes([x[:4], x[4:]]) == 80
    assert tensor_bytes(x[:3]) == 24
    assert tensor_bytes(torch.zeros(1).expand(1000)) == 4
    assert tensor_bytes([None, 3, "x"]) == 0


def test_batches_of_any_kind_are_looked_into() -> None:
    batch = MutantBatch.from_table(MutantTable.from_sets([[0, 1], [2]]))
    assert tensor_bytes(batch) == 3 * 8 + 3 * 8 + 3 + 2 * (8 + 8 + 4 + 4)
    masks = NodeMasks(torch.ones(5, 2, dtype=torch.bool))
    assert tensor_bytes((batch, masks)) == tensor_bytes(batch) + 10
    data = HeteroData()
    data["a"].x, data["a", "to", "a"].edge_index = torch.zeros(4), torch.zeros(2, 3, dtype=torch.int64)
    assert tensor_bytes(data) == 16 + 48
