"""Contributions against plain definitions, and that they sum to what they are to explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.inference.explaining.models import member
from wildtype.inference.explaining.contributions import Carried, batch_of, carried, in_double, mean_gradient
from wildtype.inference.explaining.members import EnsembleMember
from wildtype.inference.explaining.tokens import evidence_tokens
from wildtype.inference.predictor import Predictor
from wildtype.models.cell_transformer.config import (
    OWN_READS,
    CellTransformerConfig,
    EvidenceConfig,
    HeadConfig,
    TreesConfig,
)
from wildtype.models.explainable import WHOLE_CELL
from wildtype.mutants import Kind, MutantTable

SMALL = CellTransformerConfig(width=16, layers=1, heads=4, head=HeadConfig(heads=2))
ALL = ["sum", "mean", "product", "set_attention"]
CASES = {
    "everything": replace(SMALL, head=HeadConfig(heads=2, direct=ALL, smallest=True)),
    "twice the same summary": replace(SMALL, head=HeadConfig(heads=2, direct=["sum", "sum"])),
    "reads of single genes": replace(SMALL, head=HeadConfig(heads=2, summary=OWN_READS)),
    "without z_S": replace(SMALL, head=HeadConfig(heads=0)),
    "without encoder": replace(SMALL, layers=0),
    "without evidence": replace(SMALL, evidence=EvidenceConfig(tokens=0)),
    "z_S alone": replace(
        SMALL, evidence=EvidenceConfig(tokens=0), head=HeadConfig(heads=2, direct=[], relations=False)
    ),
    "evidence alone": replace(SMALL, head=HeadConfig(heads=0, direct=[], relations=False, additive=False)),
    "trees that read more": replace(SMALL, trees=TreesConfig(bags=1)),
}


def mutant(*genes: int, kind: Kind = Kind.ABSENT) -> MutantTable:
    return MutantTable.from_sets([genes], kind=kind)


def said(one: EnsembleMember, table: MutantTable) -> float:
    """The network's prediction in the phenotype's unit."""
    with torch.no_grad():
        out = one.model.head(one.wild_type, one.model.for_network(batch_of(one, table))).mean[0, 0]
    return float(one.checkpoint.mean[0] + one.checkpoint.sd[0] * out)


@pytest.mark.parametrize("case", list(CASES))
def test_contributions_sum_to_the_prediction_less_that_of_the_wild_type(tiny_run: Path, case: str) -> None:
    one = member(tiny_run, CASES[case])
    for table in (mutant(3, 5), mutant(1, 4, 9, kind=Kind.OVEREXPRESSED)):
        found = carried(one, table, 0)
        assert found.network == pytest.approx(said(one, table), abs=1e-6)
        assert found.predicted == pytest.approx(found.network, abs=1e-6)  # trees are not fitted
        assert sum(found.integrated.values()) == pytest.approx(found.network - found.baseline, abs=1e-8)
        assert abs(found.error) < 1e-7
        parts = sum(found.integrated[name] for name in found.to_genes)
        assert found.perturbed.sum() == pytest.approx(parts, abs=1e-10)
        assert (found.cell is None) == (case in ("without z_S", "evidence alone"))
        if found.cell is not None:
            assert found.cell.integrated.sum() == pytest.approx(found.integrated[WHOLE_CELL], abs=1e-10)
            assert found.cell.weight.sum() == pytest.approx(1)
            # Where every gene asks by itself, nothing asks in the wild type.
            assert found.cell.weight_before.sum() == pytest.approx(int(case != "reads of single genes"))
            assert found.cell.linear_change.sum() == pytest.approx(found.linear[WHOLE_CELL], abs=1e-10)


def test_weights_sum_to_one_and_weighted_values_to_the_latent(tiny_run: Path) -> None:
    one = member(tiny_run, CASES["everything"])
    head, wild, batch = in_double(one, batch_of(one, mutant(3, 5)))
    with torch.no_grad():
        beta, phi = head.attended(wild, batch)
        z = head.whole_cell(wild, batch)
        read = head.perturbed(wild, batch)[WHOLE_CELL]
    torch.testing.assert_close(beta.sum(1), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(torch.einsum("hn,hnd->hd", beta, phi).reshape(1, -1), z, atol=1e-12, rtol=0)
    torch.testing.assert_close(read, z, atol=0, rtol=0)


def test_linear_contributions_are_small_steps_of_the_output(tiny_run: Path) -> None:
    """∇f·β_i φ_i against a central difference of f when z_S moves by a little of β_i φ_i."""
    one = member(tiny_run, CASES["everything"])
    found = carried(one, mutant(3, 5), 0)
    assert found.cell is not None
    head, wild, batch = in_double(one, batch_of(one, mutant(3, 5)))
    with torch.no_grad():
        parts = head.perturbed(wild, batch) | head.looked_up(wild, batch)
        beta, phi = head.attended(wild, batch)
        for gene in (0, 3, 17):
            step = (beta[:, gene, None] * phi[:, gene]).reshape(1, -1)
            values = []
            for sign in (1, -1):
                moved = parts | {WHOLE_CELL: parts[WHOLE_CELL] + sign * 1e-4 * step}
                x = torch.cat([moved[name] for name in head.columns], 1)
                values.append(float(head.outputs.columns(head.out[:-1](x))[0, 0]))
            slope = (values[0] - values[1]) / 2e-4 * one.checkpoint.sd[0]
            assert found.cell.linear[gene] == pytest.approx(slope, abs=1e-9)


def test_integrated_gradients_are_those_of_a_fine_sum() -> None:
    x0, x1 = torch.tensor([[0.2, -1.0, 0.5], [1.5, 0.3, -0.7]], dtype=torch.float64)

    def read(x: torch.Tensor) -> torch.Tensor:
        return (x[:, 0] * x[:, 1]).tanh() + x[:, 2] ** 3

    steps = 20_000
    x = (x0 + (torch.arange(steps) + 0.5)[:, None] / steps * (x1 - x0)).requires_grad_()
    expected = torch.autograd.grad(read(x).sum(), x)[0].mean(0)
    torch.testing.assert_close(mean_gradient(read, x0, x1, 64), expected, atol=1e-8, rtol=0)


def test_doses_and_conditions_are_kept(tiny_run: Path) -> None:
    one = member(tiny_run, SMALL)
    table = mutant(3, 5, kind=Kind.OVEREXPRESSED)
    dosed = replace(table, dose=np.array([0.3, 2.0], np.float32))
    one.model.head.dose.weight.data += 1.0
    assert carried(one, dosed, 0).network == pytest.approx(said(one, dosed), abs=1e-6)
    assert carried(one, dosed, 0).network != pytest.approx(carried(one, table, 0).network, abs=1e-6)


def test_weights_of_evidence_are_those_it_is_pooled_by(tiny_run: Path) -> None:
    one = member(tiny_run, CASES["everything"])
    table = mutant(3, 5)
    head, wild, batch = in_double(one, batch_of(one, table))
    assert head.evidence is not None
    assert batch.evidence is not None
    with torch.no_grad():
        near, far = head.evidence.weights(wild.genes, batch.evidence)
        pooled = head.evidence(wild, batch, batch.evidence)
    heads, width = head.evidence.one.heads, head.evidence.one.width_out
    torch.testing.assert_close(near.sum(1), pooled[:, width - heads : width], atol=1e-12, rtol=0)
    tokens, null_one, null_two = evidence_tokens([one], table, 0, 1000)
    total = sum(token.weight.mean for token in tokens if token.away == 1)
    assert total + null_one.mean == pytest.approx(1)
    assert sum(t.weight.mean for t in tokens if t.away == 2) + null_two.mean == pytest.approx(1)
    assert float(far.mean(-1).sum()) == pytest.approx(1 - null_two.mean)


@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_evidence_is_named_with_what_was_measured(tiny_run: Path, mean: float) -> None:
    """Whatever the labels scatter around: far from 0, values are evidence less their mean."""
    one = member(tiny_run, CASES["everything"])
    checkpoint = replace(one.checkpoint, mean=np.array([mean]))
    one = replace(one, run=replace(one.run, predictor=Predictor(checkpoint)))
    known = one.checkpoint.known
    tokens, _, _ = evidence_tokens([one], mutant(3, 5), 0, 1000)
    names = one.checkpoint.genes
    values = {}
    for row, genes in enumerate(known.table.sets()):
        if known.part[row] == 0 and known.table.phenotype[row] == 1:
            values[tuple(names.names[g] for g in genes)] = float(known.table.value[row])
    assert tokens
    for token in tokens:
        assert token.value == pytest.approx(values[token.genes], abs=1e-5)
        assert set(token.genes) != {"G003", "G005"}
        if token.away == 1 and "replaced" in token.edit:
            old, new = token.edit.split(" replaced by ")
            assert {names.names[names.find(old.split(" ")[0])], "G003", "G005"} == {"G003", "G005"}
            assert names.names[names.find(new.split(" ")[0])] in token.genes


def test_the_shares_of_trees_are_no_part_of_the_network(tiny_run: Path) -> None:
    one = member(tiny_run, CASES["without evidence"])
    found: Carried = carried(one, mutant(3, 5), 0)
    assert "evidence" not in found.integrated
