"""Attention in blocks of rows against the full map, and its measures against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import average_precision_score

from tests.tiny import tiny_organism
from wildtype.inference.explaining.attention import logit_blocks, most_attended, recoveries
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import organism_tensors

N, WIDTH = 30, 4


def head(seed: int, *, tied: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    q, k = torch.randn(2, N + 1, WIDTH, dtype=torch.float64)
    if tied:
        k[5:15] = k[5]
    return q, k


def graph(seed: int) -> sparse.csr_array:
    draw = np.random.default_rng(seed)
    table = (draw.random((N, N)) < 0.15) & ~np.eye(N, dtype=bool)
    table[:, 0] |= ~table.any(1)
    table[0] = False
    return sparse.csr_array(table * 1.0)


def full(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return (WIDTH**-0.5 * q @ k.T)[1:, 1:].softmax(-1)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_of_rows_are_the_full_softmax(block: int) -> None:
    q, k = head(0)
    rows = np.array([3, 0, 29, 11, 12, 5, 6, 20])
    found = torch.cat([logits.softmax(-1) for _, logits in logit_blocks(q, k, rows, block)])
    torch.testing.assert_close(found, full(q, k)[rows], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.sum(1), torch.ones(len(rows), dtype=torch.float64))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("block", [4, 100])
def test_recovery_is_that_of_plain_definitions(tied: bool, block: int) -> None:
    q, k = head(1, tied=tied)
    graphs = [graph(0), graph(1)]
    rows = np.flatnonzero((np.diff(graphs[0].indptr) > 0) & (np.diff(graphs[1].indptr) > 0))
    alpha = full(q, k).numpy()
    for one, found in zip(graphs, recoveries(q, k, graphs, rows, block), strict=True):
        table = one.toarray() > 0
        precision, recall, mass = [], [], []
        for i in rows:
            others = np.arange(N) != i
            score, true = alpha[i, others], table[i, others]
            precision.append(average_precision_score(true, score))
            # Of genes that are tied, neighbours come last.
            order = np.lexsort((true, -score))
            recall.append(true[order[: true.sum()]].mean())
            mass.append(alpha[i][table[i]].sum())
        assert found.average_precision == pytest.approx(np.mean(precision), abs=1e-12)
        assert found.mass == pytest.approx(np.mean(mass), abs=1e-12)
        if not tied:
            assert found.recall == pytest.approx(np.mean(recall), abs=1e-12)
        else:  # here a tied neighbour counts at the last place of all that are tied
            assert found.recall <= np.mean(recall) + 1e-12


def test_a_head_that_follows_the_relation_finds_all_of_it() -> None:
    table = graph(2)
    q = torch.zeros(N + 1, N, dtype=torch.float64)
    q[1:] = 50 * torch.from_numpy(table.toarray())
    k = torch.zeros(N + 1, N, dtype=torch.float64)
    k[1:] = torch.eye(N)
    rows = np.flatnonzero(np.diff(table.indptr) > 0)
    (found,) = recoveries(q, k, [table], rows)
    assert found.average_precision == pytest.approx(1)
    assert found.recall == pytest.approx(1)
    assert found.mass > 0.99


def test_most_attended_are_the_largest_of_the_row_without_itself() -> None:
    q, k = head(3)
    alpha = full(q, k).numpy().copy()
    np.fill_diagonal(alpha, -1)
    np.testing.assert_array_equal(most_attended(q, k, 5, block=8), np.argsort(-alpha, axis=1)[:, :5])


def test_queries_and_keys_are_those_that_priors_pull() -> None:
    torch.manual_seed(0)
    config = CellTransformerConfig(width=16, layers=2, heads=2)
    config.evidence.tokens, config.head.relations = 0, False
    model = CellTransformer(config, genes=24, features=0, phenotypes=1, relations=["physical", "regulatory"])
    organism = organism_tensors(model.eval(), tiny_organism(), torch.zeros(24, 0))
    wild = model.encode(organism)
    assert wild.regularised is not None
    states = list(model.encoder.queries_and_keys(organism))
    for i, place in enumerate(model.prior_heads.values()):
        q, k = (x[place.head, 1:] for x in states[place.layer])
        torch.testing.assert_close(wild.regularised[0][:, i], q * 8**-0.5)
        torch.testing.assert_close(wild.regularised[1][:, i], k)
