"""The difference GNN: sizes, what it must not depend on, and that it learns."""

from __future__ import annotations

import pytest
import torch

from tests.models.difference_gnn.problems import RELATIONS, N, batch_of, build, organism
from wildtype.errors import ConfigError, ShapeError
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.registry import check, config_class, make_model
from wildtype.mutants import Kind
from wildtype.nn.oversmoothing import oversmoothing

SETS = [([3], [Kind.ABSENT]), ([0, 7, 2], [Kind.ABSENT] * 3), ([], []), ([5, 1], [Kind.ADDED, Kind.REDUCED])]


@pytest.mark.parametrize("aggregation", ["sum", "mean", "attention", "pairwise"])
def test_quick(aggregation):
    model = build(phenotypes=2, aggregation=aggregation, dtype=torch.float32)
    out = model(model.encode(organism(dtype=torch.float32)), batch_of(SETS)).mean
    assert out.shape == (4, 2)
    assert out.isfinite().all()
    nobody = model(model.encode(organism(dtype=torch.float32)), batch_of([])).mean
    assert nobody.shape == (0, 2)


@pytest.mark.parametrize(("width", "bottleneck", "total"), [(64, 32, 1_781_187), (16, 8, 195_339)])
def test_published_sizes(width, bottleneck, total):
    """Nine relations of 6,607 genes; the parts as well as the sum."""
    config = DifferenceGNNConfig(
        width=width, bottleneck=bottleneck, aggregation="pairwise", combination="concat"
    )
    model = DifferenceGNN(config, genes=6607, features=0, phenotypes=1, relations=[str(i) for i in range(9)])
    d, b = width, bottleneck
    linear, norm = d * d + d, 2 * d
    pairs = 45 * ((2 * d * b + b) + (b * d + d)) + (d * b + b) + (b + 1)
    parts = {
        "table": 6607 * d,
        "preprocess": 2 * linear + norm,
        "layers": 3 * (9 * (4 * linear + 1 + norm) + pairs + norm),
        "pool": (d * b + b) + (b + 1) + linear,
        "global_head": linear + d + 1,
        "local_head": linear + 2 * (4 * linear + 1) + d + 1,
    }
    counted = dict.fromkeys(parts, 0)
    for name, parameter in model.named_parameters():
        counted[name.split(".")[0]] += parameter.numel()
    assert counted == parts
    assert sum(counted.values()) == total


@pytest.mark.slow
def test_overfits_32_mutants():
    torch.manual_seed(0)
    drawn = {tuple(torch.randperm(40)[: 1 + i % 3].sort().values.tolist()) for i in range(60)}
    sets = [(list(genes), [Kind.ABSENT] * len(genes)) for genes in sorted(drawn)[:32]]
    batch = batch_of(sets)
    batch.value = torch.randn(32)
    config = DifferenceGNNConfig(width=16, layers=2, gin_layers=1, tile=32)
    model = DifferenceGNN(config, genes=40, features=0, phenotypes=1, relations=["physical", "regulatory"])
    tensors = organism(n=40, edges=80, dtype=torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    found = 0.0
    for _ in range(400):
        optimizer.zero_grad()
        out = model(model.encode(tensors), batch).mean[:, 0]
        torch.mean((out - batch.value) ** 2).backward()
        optimizer.step()
        found = float(torch.corrcoef(torch.stack([out, batch.value]).detach())[0, 1])
        if found > 0.99:
            break
    assert found > 0.99


def test_the_order_within_a_set_does_not_matter():
    model = build(combination="gating")
    kinds = [Kind.ABSENT, Kind.OVEREXPRESSED, Kind.REDUCED]
    one = batch_of([([4, 9, 0], kinds)])
    other = batch_of([([0, 4, 9], [kinds[2], kinds[0], kinds[1]])])
    wild = model.encode(organism())
    torch.testing.assert_close(model(wild, one).mean, model(wild, other).mean)


def test_a_mutant_does_not_depend_on_those_beside_it():
    model = build(dtype=torch.float64)
    wild = model.encode(organism())
    together = model(wild, batch_of(SETS)).mean
    alone = torch.cat([model(wild, batch_of([one])).mean for one in SETS])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("combination", ["global", "concat"])
def test_overexpression_removes_nothing(combination):
    model = build(combination=combination)
    batch = batch_of([([3, 5], [Kind.OVEREXPRESSED] * 2), ([], [])])
    out = model(model.encode(organism()), batch).mean
    same = bool(torch.isclose(out[0], out[1]).all())
    assert same == (combination == "global")  # the local head sees the set, whatever was done


def test_removed_kinds_are_a_setting():
    model = build(combination="global", removes=["absent"])
    batch = batch_of([([3], [Kind.REDUCED]), ([3], [Kind.ABSENT]), ([], [])])
    out = model(model.encode(organism()), batch).mean[:, 0]
    torch.testing.assert_close(out[0], out[2])
    assert abs(float((out[1] - out[2]).detach())) > 1e-4


def test_a_slab_is_no_boundary(monkeypatch):
    model = build(tile=1)
    wild = model.encode(organism())
    expected = model(wild, batch_of(SETS)).mean
    monkeypatch.setattr("wildtype.models.difference_gnn.model.SLAB", 1)
    torch.testing.assert_close(model(wild, batch_of(SETS)).mean, expected)


def test_frozen_parts_get_no_gradient():
    model = build(tile=1)
    for parameter in model.pool.parameters():
        parameter.requires_grad_(False)
    model(model.encode(organism()), batch_of(SETS)).mean.sum().backward()
    assert all(p.grad is None for p in model.pool.parameters())
    assert model.layers[1].gins[0].epsilon.grad is not None


def test_a_wild_type_without_gradient_still_trains_the_upper_layers():
    model = build(tile=1, wild_type="epoch")
    assert model.encode_per_epoch
    with torch.no_grad():
        wild = model.encode(organism())
    model(wild, batch_of(SETS)).mean.sum().backward()
    assert model.table.grad is None
    assert float(model.layers[1].gins[0].linears[0].weight.grad.abs().max()) > 0


def test_dropout_is_off_when_evaluating_and_repeats_under_recomputation():
    model = build(dropout=0.5, tile=2, phenotypes=2)
    tensors, batch = organism(), batch_of(SETS)
    torch.manual_seed(1)
    model(model.encode(tensors), batch).mean.sum().backward()
    first = model.table.grad.clone()
    model.zero_grad()
    torch.manual_seed(1)
    model(model.encode(tensors), batch).mean.sum().backward()
    torch.testing.assert_close(model.table.grad, first)
    model.eval()
    torch.testing.assert_close(
        model(model.encode(tensors), batch).mean, model(model.encode(tensors), batch).mean
    )


def test_a_second_derivative_is_refused():
    model = build(tile=1, relations=["physical", "regulatory"])
    out = model(model.encode(organism()), batch_of(SETS)).mean
    (grad,) = torch.autograd.grad(out.pow(2).sum(), model.table, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_half_precision_under_autocast_is_close():
    model = build(dtype=torch.float32, aggregation="pairwise", tile=1)
    tensors, batch = organism(dtype=torch.float32), batch_of(SETS)
    expected = model(model.encode(tensors), batch).mean
    with torch.autocast("cpu", torch.bfloat16):
        out = model(model.encode(tensors), batch).mean
    out.float().sum().backward()
    torch.testing.assert_close(out.float(), expected, rtol=0.2, atol=0.2)


def test_states_of_every_layer_can_be_watched():
    model, tensors = build(layers=3), organism()
    states = model.layer_states(tensors)
    assert list(states) == ["table", "preprocess", "layer 1", "layer 2", "layer 3"]
    torch.testing.assert_close(states["layer 3"], model.encode(tensors).genes)
    table = oversmoothing(states, tensors.relations)
    assert [row["layer"] for row in table] == list(states)
    assert all(float(row["energy/physical"]) > 0 and row["energy/empty"] == 0 for row in table)


def test_made_by_name():
    config = config_class("difference_gnn")(width=8, heads=2)
    model = make_model(config, genes=N, features=5, phenotypes=1, relations=RELATIONS)
    assert isinstance(model, DifferenceGNN)
    assert model.needs == ("relations",)
    assert model.relations == RELATIONS


def test_relations_are_chosen():
    model = build(relations=["regulatory"])
    assert model.relations == ("regulatory",)
    tensors = organism()
    expected = model(model.encode(tensors), batch_of(SETS)).mean
    del tensors.relations["physical"]
    torch.testing.assert_close(model(model.encode(tensors), batch_of(SETS)).mean, expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "dango"}, "model.name='dango': choose difference_gnn"),
        ({"width": 0}, "model.width=0: it must be at least 1"),
        ({"layers": 0}, "model.layers=0"),
        ({"tile": -1}, "model.tile=-1: it must be at least 0"),
        ({"aggregation": "max"}, "model.aggregation='max': choose sum, mean, attention, pairwise"),
        ({"combination": "product"}, "model.combination='product'"),
        ({"activation": "tanh"}, "model.activation='tanh'"),
        ({"wild_type": "never"}, "model.wild_type='never': choose step, epoch"),
        ({"dropout": 1.0}, "model.dropout=1.0: it must be at least 0 and below 1"),
        ({"heads": 3}, "model.heads=3 does not divide model.width=64"),
        ({"removes": ["gone"]}, "model.removes=.* names 'gone': choose absent, reduced"),
        ({"combination": "local", "metabolism": True}, "model.combination=local sees no metabolism"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        check(DifferenceGNNConfig(**settings))


def test_wrong_organisms_are_named():
    with pytest.raises(
        ConfigError, match="names 'genetic', which is no relation with edges here; known: physical"
    ):
        build(relations=["genetic"])
    with pytest.raises(ConfigError, match="names a relation twice"):
        build(relations=["physical", "physical"])
    with pytest.raises(ConfigError, match="no relation with edges to pass messages over"):
        DifferenceGNN(DifferenceGNNConfig(), genes=3, features=0, phenotypes=1)
    model = build()
    with pytest.raises(ShapeError, match="the organism has 14 genes, expected 13"):
        model.encode(organism(n=14))
    tensors = organism()
    del tensors.relations["empty"]
    with pytest.raises(ConfigError, match="lack the relations empty"):
        model.encode(tensors)
