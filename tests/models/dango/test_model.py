from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.dango import largest_array
from tests.models.dango.examples import NAMES, RAGGED, N, mutants, tiny_model, tiny_tensors
from wildtype.errors import ConfigError, ShapeError
from wildtype.models.dango.config import DangoConfig
from wildtype.models.dango.model import Dango
from wildtype.models.interface import OrganismTensors, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.reconstruction import reconstruction_loss_reference
from wildtype.nn.sparse import SparseOperator

ORGANISM = tiny_tensors()


def total(wild_type: WildType, predicted: Tensor, batch: MutantBatch) -> Tensor:
    own = predicted.gather(1, batch.phenotype[:, None]).squeeze(1)
    loss = wild_type.weights["data"] * ((own - batch.value) ** 2).mean()
    return loss + sum(wild_type.weights[name] * value for name, value in wild_type.losses.items())


def test_parameters_of_the_published_size() -> None:
    names = NAMES[:6]
    model = Dango(DangoConfig(), genes=6607, features=0, phenotypes=1, relations=names)

    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    reconstruction = sum(count(network.reconstruct) for network in model.networks)
    assert count(model.table) == 6607 * 64 == 422_848
    assert reconstruction == 6 * (64 * 6607 + 6607) == 2_576_730
    assert count(model.networks) - reconstruction == 6 * 2 * (2 * 64 * 64 + 64) == 99_072
    assert count(model.meta) == 64 * 32 + 32 + 32 + 1 == 2_113
    assert [count(layer) for layer in model.head.attention] == [4 * (64 * 64 + 64) + 1] * 2
    assert (count(model.head.static), count(model.head.score)) == (64 * 64 + 64, 65)
    assert count(model) == 3_138_270
    assert 0.095 < float(model.table.weight.detach().std()) < 0.105


@pytest.mark.parametrize("conditions", [1, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"layers_head": 1, "heads": 1}, {"relations": [NAMES[6], NAMES[0]]}]
)
def test_ragged_sets_give_finite_predictions_and_gradients(
    settings: dict[str, object], conditions: int
) -> None:
    model = tiny_model(conditions=conditions, **settings)
    batch = mutants(RAGGED, conditions=conditions)
    wild_type = model.encode(ORGANISM)
    assert (wild_type.cls.shape, wild_type.genes.shape) == ((16,), (N, 16))
    torch.testing.assert_close(wild_type.cls, wild_type.genes.mean(0))
    predicted = model(wild_type, batch).mean
    assert predicted.shape == (len(RAGGED), 2)
    assert not predicted[5].any()
    if conditions == 1:
        assert torch.equal(predicted[1], predicted[6])
    model.set_epoch(5)
    wild_type = model.encode(ORGANISM)
    total(wild_type, model(wild_type, batch).mean, batch).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if not name.endswith(("key.bias", "meta.score.2.bias")):  # a softmax does not feel what all share
            assert parameter.grad.any(), name


def test_how_a_gene_is_perturbed_makes_no_difference_but_the_condition_does() -> None:
    model = tiny_model(conditions=2)
    torch.nn.init.normal_(model.condition.weight)
    sets = [[1, 2]] * 4
    table = MutantTable.from_sets(
        sets, value=np.zeros(4), kind=[0, 0, 1, 4, 0, 0, 0, 0], condition=[0, 0, 0, 1]
    )
    predicted = model(model.encode(ORGANISM), MutantBatch.from_table(table)).mean
    assert torch.equal(predicted[0], predicted[1])
    assert torch.equal(predicted[0], predicted[2])
    assert not torch.equal(predicted[0], predicted[3])


def test_losses_and_their_weights_follow_the_epoch_in_training_only() -> None:
    model = tiny_model(schedule="linear_until_flipped", transition=4, zeros={"regulatory": 0.25})
    names = [f"reconstruction/{name}" for name in NAMES]
    for epoch, share in ((0, 1.0), (1, 0.75), (3, 0.25)):
        model.set_epoch(epoch)
        wild_type = model.encode(ORGANISM)
        assert wild_type.weights == pytest.approx({"data": 1 - share} | dict.fromkeys(names, share / 7))
        assert list(wild_type.losses) == names
    zeros = dict.fromkeys(NAMES, 1.0) | {NAMES[0]: 0.1, NAMES[1]: 0.1, "regulatory": 0.25}
    for name, network in zip(NAMES, model.networks, strict=True):
        op, layer = ORGANISM.relations[name], network.reconstruct
        states = network(model.table.weight, op)
        expected = reconstruction_loss_reference(states, layer.weight, layer.bias, op, zeros=zeros[name])
        torch.testing.assert_close(wild_type.losses[f"reconstruction/{name}"], expected)
    model.set_epoch(4)
    wild_type = model.encode(ORGANISM)
    assert (wild_type.losses, wild_type.weights) == ({}, {"data": 1.0})
    model.set_epoch(0)
    trained = model.encode(ORGANISM).genes
    model.eval()
    wild_type = model.encode(ORGANISM)
    assert (wild_type.losses, wild_type.weights) == ({}, {})
    assert torch.equal(wild_type.genes, trained)


def test_without_neighbours_the_mean_is_zero_and_edge_weights_do_not_count() -> None:
    model = tiny_model(relations=["regulatory"])
    layer, op = model.networks[0].first, ORGANISM.relations["regulatory"]
    x = torch.randn(N, 16)
    found = layer(x, op)
    torch.testing.assert_close(found[-1], layer.neighbours.bias + layer.own.weight @ x[-1])
    rows, cols = op.edges()
    gene = int(rows[0])
    mean = x[cols[rows == gene]].mean(0)
    torch.testing.assert_close(found[gene], layer.neighbours(mean) + layer.own(x[gene]))


@pytest.mark.slow
def test_overfits_32_mutants() -> None:
    model = tiny_model(phenotypes=1, width=32, transition=20, relations=[NAMES[0], NAMES[3]])
    draw = np.random.default_rng(1)
    batch = mutants([list(draw.choice(N, 2 + i % 2, replace=False)) for i in range(32)])
    batch.phenotype.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(150):
        model.set_epoch(epoch)
        optimizer.zero_grad()
        wild_type = model.encode(ORGANISM)
        total(wild_type, model(wild_type, batch).mean, batch).backward()
        optimizer.step()
    model.eval()
    predicted = model(model.encode(ORGANISM), batch).mean[:, 0]
    assert torch.corrcoef(torch.stack([predicted, batch.value]))[0, 1] > 0.99


def test_reconstruction_alone_learns_the_networks() -> None:
    model = tiny_model(schedule="pre_then_post", relations=[NAMES[0], "regulatory"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    course = []
    for _ in range(80):
        optimizer.zero_grad()
        wild_type = model.encode(ORGANISM)
        loss = sum(wild_type.weights[name] * value for name, value in wild_type.losses.items())
        loss.backward()
        optimizer.step()
        course.append(loss.item())
    assert course[-1] < 0.6 * course[0]


def test_no_array_of_the_size_of_all_pairs_is_made() -> None:
    n = 400
    stream = torch.Generator().manual_seed(0)
    names = NAMES[:2]
    relations = {
        name: SparseOperator.from_edges(*torch.randint(0, n, (2, 3000), generator=stream), n)
        for name in names
    }
    organism = OrganismTensors(torch.zeros(n, 0), relations=relations)
    config = DangoConfig(width=8, zeros={names[1]: 1.0})
    model = Dango(config, genes=n, features=0, phenotypes=2, relations=names)
    batch = mutants([[i, i + 1, i + 2] for i in range(64)])

    def step() -> None:
        wild_type = model.encode(organism)
        total(wild_type, model(wild_type, batch).mean, batch).backward()

    model.set_epoch(5)
    model.encode(organism)  # what is computed once per graph does not belong to the step
    assert 3000 * 0.9 < largest_array(step) < n * n / 10


def test_another_organism_is_refused() -> None:
    model = tiny_model()
    with pytest.raises(ShapeError, match="the organism has 41 genes, expected 40"):
        model.encode(tiny_tensors(41))
    organism = OrganismTensors(torch.zeros(N, 3), relations={"regulatory": ORGANISM.relations["regulatory"]})
    with pytest.raises(ConfigError, match="no operator for relation 'string12_coexpression'.*: regulatory"):
        model.encode(organism)
