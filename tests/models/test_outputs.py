"""Phenotypes by name: every head against its plain definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.outputs import GeneOutput, Outputs
from wildtype.models.interface import GeneProfile, Output, WildType
from wildtype.models.registry import config_class, make_model
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

SETS = st.lists(st.sets(st.integers(0, 4), max_size=3).map(sorted), min_size=1, max_size=6)
MIXED = [
    Output("a"),
    Output("v1", group="v"),
    Output("g", "gene"),
    Output("b", "class"),
    Output("v2", group="v"),
]


def wild_type(n: int = 5, d: int = 4) -> WildType:
    return WildType(torch.randn(d).double(), torch.randn(n, d).double().requires_grad_())


@settings(max_examples=20)
@given(SETS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_number_per_gene_is_its_definition(sets: list[list[int]], rank: int, draw) -> None:
    table = MutantTable.from_sets(sets, kind=torch.randint(0, 5, (sum(map(len, sets)),)).numpy())
    batch, seen = MutantBatch.from_table(table), wild_type()
    head = GeneOutput(3, 4, rank).double()
    torch.nn.init.normal_(head.own)
    x = torch.randn(len(sets), 3).double().requires_grad_()
    rows = torch.tensor(draw.sample(range(len(sets)), draw.randint(1, len(sets))))
    found = head(x, seen, batch).dense(rows)
    a, a0 = head.of_mutant.weight, head.of_mutant.bias
    c = head.of_gene.weight
    plain = torch.zeros(len(rows), 5).double()
    for at, i in enumerate(rows.tolist()):
        for j, h in enumerate(seen.genes):
            plain[at, j] = (a[:-1] @ x[i] + a0[:-1]) @ (c[:-1] @ h) / rank**0.5
            plain[at, j] += a[-1] @ x[i] + a0[-1] + c[-1] @ h
        for k in range(*batch.offsets[i : i + 2].tolist()):
            plain[at, batch.gene[k]] += head.own[int(batch.kind[k])]
    leaves = [x, seen.genes, *head.parameters()]
    probe = torch.randn_like(plain)
    ours, theirs = (
        torch.autograd.grad((y * probe).sum(), leaves, allow_unused=True, materialize_grads=True)
        for y in (found, plain)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_every_phenotype_comes_from_its_head_in_the_order_given() -> None:
    outputs = Outputs(6, MIXED, gene_width=4, rank=1).double()
    batch = MutantBatch.from_table(MutantTable.from_sets([[0], [1, 2], [3]]))
    x = torch.randn(3, 6).double()
    found = outputs(x, wild_type(), batch)
    alone = x @ outputs.weight.T + outputs.bias
    vector = outputs.groups[0](x)
    expected = torch.stack([alone[:, 0], vector[:, 0], torch.zeros(3).double(), alone[:, 1], vector[:, 1]], 1)
    torch.testing.assert_close(found.mean, expected)
    assert list(found.profiles) == [2]
    assert found.profiles[2].dense().shape == (3, 5)
    assert torch.linalg.matrix_rank((vector - outputs.groups[0][1].bias).detach()) == 1


def test_scalars_alone_are_one_linear_map_with_its_weights() -> None:
    torch.manual_seed(0)
    outputs = Outputs(6, Output.of(3), gene_width=4)
    torch.manual_seed(0)
    linear = torch.nn.Linear(6, 3)
    outputs.load_state_dict(linear.state_dict())  # the names that stored checkpoints have
    x = torch.randn(2, 6)
    batch = MutantBatch.from_table(MutantTable.from_sets([[0], [1]]))
    assert torch.equal(outputs(x, wild_type(), batch).mean, linear(x))


def test_mean_of_profiles_is_exact() -> None:
    batch = MutantBatch.from_table(MutantTable.from_sets([[0], [1, 2]]))
    profiles = [
        GeneProfile(torch.randn(2, r), torch.randn(5, r), torch.randn(3), batch.gene, batch.offsets)
        for r in (2, 3)
    ]
    mean = (profiles[0].dense() + profiles[1].dense()) / 2
    torch.testing.assert_close(GeneProfile.mean(profiles).dense(), mean)


def test_models_without_such_a_head_refuse_numbers_per_gene() -> None:
    with pytest.raises(ConfigError, match="'gene', which 'g' needs: choose model=cell_transformer, or"):
        make_model(config_class("dango")(), genes=5, features=0, phenotypes=MIXED, relations=["a"])
