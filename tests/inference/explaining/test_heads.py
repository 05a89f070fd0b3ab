"""Heads of real encoders, with attention that is planted by their weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from tests.inference.explaining.models import model_like, opened
from tests.tiny import tiny_organism
from wildtype.inference.explaining.free_heads import (
    Enrichment,
    FreeHead,
    free_heads,
    free_places,
    layer_claims,
)
from wildtype.inference.explaining.heads import regularised_heads
from wildtype.inference.explaining.members import UNTRAINED, EnsembleMember, members_of
from wildtype.models.cell_transformer.config import (
    CellTransformerConfig,
    EvidenceConfig,
    PriorConfig,
    PriorHead,
)
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.organism.gene_sets import GeneSets

N, WIDTH = 24, 64
CONFIG = CellTransformerConfig(
    width=WIDTH,
    layers=1,
    heads=2,
    features=False,
    evidence=EvidenceConfig(tokens=0),
    prior=PriorConfig(relations=["physical"], heads={"physical": PriorHead(0, 0)}),
)


def look_at(model: CellTransformer, head: int, table: np.ndarray) -> None:
    """Give a head weights with which every gene attends to where ``table`` [n, n] is large."""
    layer = model.encoder.layers[0]
    organism = type("Features", (), {"genes": N, "features": None})
    with torch.no_grad():
        x = layer.attention_norm(model.encoder.tokens(organism))[1:].double()
        width = WIDTH // 2
        # K spans the leading directions of the table, and Q K^T is then nearest to it.
        u, s, v = torch.linalg.svd(8 * torch.from_numpy(table).double(), full_matrices=False)
        q, k = u * s.sqrt() * width**0.25, v.T * s.sqrt() * width**0.25
        inverse = torch.linalg.pinv(x)
        for part, wanted in enumerate((q, k)):
            rows = slice(part * WIDTH + head * width, part * WIDTH + head * width + N)
            layer.qkv.weight[part * WIDTH + head * width : part * WIDTH + (head + 1) * width] = 0
            layer.qkv.bias[part * WIDTH + head * width : part * WIDTH + (head + 1) * width] = 0
            layer.qkv.weight[rows] = (inverse @ wanted).T.float()


def planted(run: Path, tables: dict[int, np.ndarray]) -> EnsembleMember:
    model = model_like(run, CONFIG)
    for head, table in tables.items():
        look_at(model, head, table)
    (one,) = members_of([opened(run, model)])
    return one


def adjacency(name: str) -> np.ndarray:
    return tiny_organism().graphs[name].adjacency.toarray()


def test_a_head_that_follows_its_relation_beats_random_graphs(tiny_run: Path) -> None:
    one = planted(tiny_run, {0: adjacency("physical")})
    ((head,), remarks) = regularised_heads([one, one], graphs=3, most_rows=1000, seed=0)
    assert not remarks
    assert (head.layer, head.head, head.relation, head.reads) == (0, 0, "physical", "sources")
    assert head.average_precision.found.mean > 0.99
    assert head.average_precision.found.sd == pytest.approx(0)
    assert head.recall_at_degree.found.mean > 0.99
    assert head.average_precision.random_mean < 0.7
    assert head.average_precision.random_sd > 0
    assert head.asked == head.rows == (adjacency("physical").sum(1) > 0).sum()
    (some,), _ = regularised_heads([one], graphs=2, most_rows=5, seed=0)
    assert some.asked == 5
    assert np.isnan(some.average_precision.found.sd)


def test_a_head_that_follows_nothing_does_not(tiny_run: Path) -> None:
    draw = np.random.default_rng(0)
    one = planted(tiny_run, {0: draw.random((N, N))})
    ((head,), _) = regularised_heads([one], graphs=5, most_rows=1000, seed=0)
    measure = head.average_precision
    assert abs(measure.found.mean - measure.random_mean) < 5 * measure.random_sd + 0.05


def test_every_head_of_a_relation_is_measured(tiny_run: Path) -> None:
    config = CellTransformerConfig(**{**CONFIG.__dict__})
    config.prior = PriorConfig(heads={"physical": PriorHead(0, 0, also=[[0, 1]])})
    model = model_like(tiny_run, config)
    look_at(model, 1, adjacency("physical"))
    members = members_of([opened(tiny_run, model)])
    (first, second), _ = regularised_heads(members, graphs=2, most_rows=99, seed=0)
    assert [(one.head, one.relation) for one in (first, second)] == [(0, "physical"), (1, "physical")]
    assert first.average_precision.found.mean < 0.7 < 0.99 < second.average_precision.found.mean
    assert free_places(members[0].model) == []


def test_a_relation_read_from_its_targets_is_turned_round(tiny_run: Path) -> None:
    config = CellTransformerConfig(**{**CONFIG.__dict__})
    config.prior = PriorConfig(
        relations=["regulatory"], heads={"regulatory": PriorHead(0, 1)}, reverse=["regulatory"]
    )
    model = model_like(tiny_run, config)
    look_at(model, 1, (adjacency("regulatory").T > 0) * 1.0)
    ((head,), _) = regularised_heads(members_of([opened(tiny_run, model)]), graphs=2, most_rows=99, seed=0)
    assert head.reads == "targets"
    assert head.average_precision.found.mean > 0.95
    assert head.rows == (adjacency("regulatory").sum(0) > 0).sum()


def test_what_a_free_head_attends_to_is_found_and_what_it_does_not_is_not(tiny_run: Path) -> None:
    regulatory = (adjacency("regulatory") > 0) * 1.0
    one = planted(tiny_run, {1: regulatory})
    members = [one, replace(one, label="2")]
    assert free_places(members[0].model) == [(0, 1)]
    heads, claims = free_heads(members, (), attended=2, count=60, seed=0, top=5)
    found = {claim.name: claim for claim in claims}
    assert found["regulatory"].found_in == 2
    assert found["regulatory"].fold.mean > 2
    assert found["regulatory"].fold.sd == pytest.approx(0)
    assert found["regulatory"].untrained < found["regulatory"].fold.mean
    assert found["regulatory"].given_to is None
    assert found["physical"].given_to == (0, 0)
    assert found["physical"].found_in == 0
    assert heads[-1].model == UNTRAINED
    draw = np.random.default_rng(5)
    shuffled = draw.permutation(N)
    _, claims = free_heads(
        [planted(tiny_run, {1: regulatory[shuffled][:, shuffled]})], (), attended=2, count=60, seed=0, top=5
    )
    assert {claim.name: claim.found_in for claim in claims} == {"physical": 0, "regulatory": 0}


def test_a_set_that_a_free_head_looks_up_is_found(tiny_run: Path) -> None:
    table = np.zeros((N, 3))
    table[2:6, 0], table[8:12, 1], table[15:20, 2] = 1, 1, 1
    sets = GeneSets("term", ("plain", "planted [red]", "other"), sparse.csr_array(table))
    look = np.random.default_rng(0).random((N, N))
    look[:, 8:12] -= 3 * (1 - 2 * table[:, [1]])
    one = planted(tiny_run, {1: look})
    heads, claims = free_heads([one], [sets], attended=3, count=60, seed=0, top=5)
    assert [claim.name for claim in claims if claim.kind == "term"] == ["planted [red]"]
    assert [own.name for own in heads[0].sets] == ["planted [red]"]
    assert "shared term" in [own.name for own in heads[0].relations]


def test_what_an_untrained_network_shows_is_found_in_no_model(tiny_run: Path) -> None:
    (one,) = members_of([opened(tiny_run)])
    shown = Enrichment("physical", 9, 1.0, 1.0, 9.0, 1e-9, 1e-9)
    found = [
        (FreeHead(label, 0, 0, 0.5, (), ()), [("relation", [enriched]), ("term", [enriched])])
        for label, enriched in (("1", replace(shown, fold=1.1, q=0.5)), (UNTRAINED, shown))
    ]
    (claim,) = layer_claims([one], found, 5)
    assert (claim.kind, claim.found_in, claim.models) == ("relation", 0, 1)
    assert (claim.fold.each, claim.untrained) == ((1.1,), 9.0)
