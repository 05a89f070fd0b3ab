from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.step import plain_formulations
from tests.tiny import tiny_organism
from wildtype.errors import ConfigError, ShapeError
from wildtype.models.cell_transformer.config import (
    CellTransformerConfig,
    EvidenceConfig,
    HeadConfig,
    PriorConfig,
    PriorHead,
    assign_heads,
)
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.cell_transformer.summaries import SetSummary
from wildtype.models.interface import CLS, OrganismTensors, prior_operator
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.graph_prior import graph_prior_kl_reference
from wildtype.nn.sparse import SparseOperator
from wildtype.training.objective import objective

SETS = MutantTable.from_sets([[1, 2], [3], [4, 5, 6], [0, 23], []], value=np.arange(5.0), kind=Kind.ABSENT)


def build(**settings: object) -> tuple[CellTransformer, OrganismTensors]:
    torch.manual_seed(0)
    config = CellTransformerConfig(
        **{"width": 16, "layers": 2, "heads": 4, "dropout": 0.0, "feature_dropout": 0.0} | settings
    )  # type: ignore[arg-type]
    config.head.heads = min(config.head.heads, 2)
    organism = tiny_organism()
    features = torch.from_numpy(organism.features.matrix(24)[0])
    model = CellTransformer(config, genes=24, features=3, phenotypes=2, relations=list(organism.graphs))
    return model, OrganismTensors(features, model.priors(organism.graphs))


NOTHING = {"head": HeadConfig(direct=[], heads=0, relations=False), "evidence": EvidenceConfig(tokens=0)}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 0},
        {"features": False},
        {"table": False},
        {"head": HeadConfig(direct=[])},
        {"head": HeadConfig(heads=0)},
        {"head": HeadConfig(summary="set_attention", direct=["mean", "sum", "product", "set_attention"])},
        {
            "head": HeadConfig(
                summary="set_attention_concat", direct=["partners"], scores="bilinear", order=False
            )
        },
        {"prior": PriorConfig(per_relation=2, target="uniform", normaliser="all", reduction="sum", rows=5)},
        {"prior": PriorConfig(loss="bce_all", epsilon=1e-8)},
        {"prior": PriorConfig(loss="bce_sampled", negatives=7)},
        {"prior": PriorConfig(loss="bce")},
        {"prior": PriorConfig(rows=5, reverse=["regulatory"])},
    ],
)
def test_every_setting_gives_finite_losses_and_gradients(settings: dict[str, object]) -> None:
    model, organism = build(**settings)
    wild_type = model.encode(organism, torch.Generator().manual_seed(0))
    batch = MutantBatch.from_table(SETS)
    result = objective(model(wild_type, batch), wild_type, batch)
    result.total.backward()
    assert torch.isfinite(result.total)
    assert all(
        p.grad is not None and torch.isfinite(p.grad).all()
        for p in model.head.parameters()
        if p.requires_grad and p.grad is not None
    )
    expected = {"physical", "regulatory"} if model.config.layers else set()
    assert set(wild_type.losses) == expected


def test_fast_and_plain_formulations_agree_in_values_and_gradients() -> None:
    model, organism = build()
    model.double()
    organism = OrganismTensors(
        organism.features.double(), {name: op.to(dtype=torch.float64) for name, op in organism.priors.items()}
    )
    batch = MutantBatch.from_table(SETS.take(np.arange(4)))
    batch.value = batch.value.double()

    def run() -> tuple[torch.Tensor, list[torch.Tensor]]:
        model.zero_grad()
        wild_type = model.encode(organism)
        loss = objective(model(wild_type, batch), wild_type, batch).total
        loss.backward()
        return loss.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]

    fast, fast_gradients = run()
    with plain_formulations():
        plain, plain_gradients = run()
    torch.testing.assert_close(fast, plain, rtol=1e-6, atol=1e-7)  # the loss itself is kept in float32
    assert len(fast_gradients) == len(plain_gradients) > 10
    for a, b in zip(fast_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("summary", ["sum", "own_reads"])
@pytest.mark.parametrize("doses", [False, True])
def test_prediction_does_not_depend_on_the_rest_of_the_batch(summary: str, doses: bool) -> None:
    """Nor where a gene of several mutants asks once, or asks with another dose in each."""
    model, organism = build(head=HeadConfig(summary=summary, relations=False))
    model.eval()
    wild_type = model.encode(organism)
    table = MutantTable.from_sets([[1, 2], [3], [2, 5, 6], [1, 23], [], [1, 2]], value=np.arange(6.0))
    table.kind[:] = [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]
    if doses:
        table = replace(table, dose=np.linspace(0.1, 0.9, len(table.gene)).astype(np.float32))
    together = model(wild_type, MutantBatch.from_table(table)).mean
    alone = [model(wild_type, MutantBatch.from_table(table.take([i]))).mean for i in range(len(table))]
    torch.testing.assert_close(together, torch.cat(alone))
    assert not torch.allclose(together[0], together[5])  # another kind, or another dose


def test_order_of_genes_does_not_matter_but_their_kind_does() -> None:
    model, organism = build()
    model.eval()
    wild_type = model.encode(organism)

    def predict(genes: list[int], kinds: list[Kind]) -> torch.Tensor:
        return model(
            wild_type, MutantBatch.from_table(MutantTable.build(genes, [0, len(genes)], kind=kinds))
        ).mean

    a, r = Kind.ABSENT, Kind.REDUCED
    torch.testing.assert_close(predict([7, 2], [a, r]), predict([2, 7], [r, a]))
    assert not torch.allclose(predict([2, 7], [a, r]), predict([2, 7], [r, a]))


def test_relabelling_genes_changes_nothing() -> None:
    """Genes carry no positions: permuting them with their inputs permutes the states and leaves CLS."""
    model, organism = build(table=False)
    model.eval()
    order = torch.from_numpy(np.random.default_rng(0).permutation(24))
    cls, genes = (lambda w: (w.cls, w.genes))(model.encode(OrganismTensors(organism.features)))
    cls_p, genes_p = (lambda w: (w.cls, w.genes))(model.encode(OrganismTensors(organism.features[order])))
    torch.testing.assert_close(cls, cls_p)
    torch.testing.assert_close(genes[order], genes_p)


def test_prior_pulls_its_head_towards_the_graph() -> None:
    model, organism = build()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    before = {name: loss.item() for name, loss in model.encode(organism).losses.items()}
    for _ in range(30):
        optimizer.zero_grad()
        torch.stack(list(model.encode(organism).losses.values())).sum().backward()
        optimizer.step()
    after = {name: loss.item() for name, loss in model.encode(organism).losses.items()}
    assert all(after[name] < 0.9 * before[name] for name in before)


def test_prior_operator_shifts_by_the_cls_token() -> None:
    graphs = tiny_organism().graphs
    dense = prior_operator(graphs, "regulatory") @ torch.eye(25)
    np.testing.assert_allclose(dense[1:, 1:].numpy(), graphs["regulatory"].adjacency.toarray())
    assert not dense[CLS].any()
    assert not dense[:, CLS].any()
    reverse = prior_operator(graphs, "regulatory", reverse=True) @ torch.eye(25)
    torch.testing.assert_close(reverse, dense.T)


def test_reported_prior_is_the_defined_one() -> None:
    model, organism = build(layers=1)
    captured = {}

    def keep(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> None:
        captured["qkv"] = output

    model.encoder.layers[0].qkv.register_forward_hook(keep)
    losses = model.encode(organism).losses
    q, k, _ = captured["qkv"].view(25, 3, 4, 4).permute(1, 2, 0, 3)
    for name, place in model.prior_heads.items():
        expected = graph_prior_kl_reference(
            q[place.head], k[place.head], organism.priors[name], scale=0.5, inside=torch.arange(1, 25)
        )
        torch.testing.assert_close(losses[name], expected)


def test_heads_fill_layers_and_leave_one_free() -> None:
    config = CellTransformerConfig(layers=2, heads=4)
    places = assign_heads(config, [f"r{i}" for i in range(5)])
    assert [(p.layer, p.head) for p in places.values()] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    with pytest.raises(ConfigError, match="7 relations need 7 heads"):
        assign_heads(config, [f"r{i}" for i in range(7)])
    assert assign_heads(CellTransformerConfig(layers=0), ["a"]) == {}
    config.prior.per_relation = 2
    places = assign_heads(config, ["a", "b", "c"])
    assert [p.places for p in places.values()] == [[(0, 0), (0, 1)], [(0, 2), (1, 0)], [(1, 1), (1, 2)]]
    with pytest.raises(ConfigError, match="4 relations need 8 heads"):
        assign_heads(config, ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (PriorConfig(relations=["phisical"]), "names 'phisical', which is no relation"),
        (PriorConfig(heads={"a": PriorHead(0, 0), "b": PriorHead(0, 0)}), "the same head"),
        (PriorConfig(heads={"a": PriorHead(9, 0)}), "2 layers of 8 heads"),
        (PriorConfig(heads={"a": PriorHead(0, 0, also=[[1, 8]])}), "layer 1, head 8"),
        (PriorConfig(heads={"a": PriorHead(0, 0, also=[[0, 0]])}), "'a' twice the same head"),
        (PriorConfig(heads={"a": PriorHead(0, 0, also=[[1]])}), r"write places as \[\[layer, head\]"),
        (PriorConfig(tested={"c": "file"}), "names 'c'"),
        (PriorConfig(reverse=["c"]), "names 'c'"),
    ],
)
def test_impossible_priors_are_refused(prior: PriorConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assign_heads(CellTransformerConfig(prior=prior), ["a", "b"])


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 30, "heads": 4},
        {"table": False, "features": False},
        {"head": HeadConfig(summary="max")},
        NOTHING,
        {"name": "oracle"},
        {"prior": PriorConfig(loss="mse")},
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="model|no model"):
        CellTransformer(CellTransformerConfig(**settings), genes=3, features=0, phenotypes=1)  # type: ignore[arg-type]


def test_wrong_features_are_refused() -> None:
    model, _ = build()
    with pytest.raises(ShapeError, match=r"\(24, 2\), expected \(24, 3\)"):
        model.encode(OrganismTensors(torch.zeros(24, 2)))


def test_product_summary_is_the_mean_over_pairs() -> None:
    torch.manual_seed(0)
    summary = SetSummary("product", 4)
    u = torch.randn(6, 4)
    offsets = torch.tensor([0, 3, 3, 4, 6])
    p = summary.project(u)
    expected = torch.stack(
        [(p[0] * p[1] + p[0] * p[2] + p[1] * p[2]) / 3, torch.zeros(4), torch.zeros(4), p[4] * p[5]]
    )
    torch.testing.assert_close(summary(u, offsets), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["set_attention", "set_attention_concat"])
def test_single_genes_ask_different_questions(how: str) -> None:
    """Hyper-SAGNN's static embedding describes a gene without partners, whose dynamic one is 0."""
    torch.manual_seed(0)
    summary = SetSummary(how, 4)
    u, offsets = torch.randn(2, 4), torch.tensor([0, 1, 2, 2])
    one, other, nothing = summary(u, offsets)
    assert one.abs().max() > 1e-3
    assert not torch.allclose(one, other)
    assert not nothing.any()


def test_appended_gene_changes_no_prior_of_old_rows() -> None:
    """With its relations unknown, an appended gene is attended to and is no part of the priors."""
    model, organism = build(table=False, layers=1)
    features = torch.cat([organism.features, torch.randn(1, 3)])
    organism_rows = {name: op.edges() for name, op in organism.priors.items()}
    wider = {
        name: SparseOperator.from_edges(*edges, 26, organism.priors[name].values)
        for name, edges in organism_rows.items()
    }
    before = model.encode(organism)
    after = model.encode(OrganismTensors(features, wider, outside=torch.tensor([24])))
    for name in before.losses:
        torch.testing.assert_close(after.losses[name], before.losses[name], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(after.genes[:24], before.genes)
    pair = torch.tensor([[1, 25], [25, 1]])
    known = SparseOperator.from_edges([1, 25], [25, 1], 26)
    with pytest.raises(ConfigError, match="2 edges at appended genes"):
        OrganismTensors(features, wider | {"physical": known}, outside=torch.tensor([24]))
    listed = OrganismTensors(
        features, wider | {"physical": known}, outside=torch.tensor([24]), valid={"physical": pair}
    )
    assert torch.isfinite(model.encode(listed).losses["physical"])


PUBLISHED = 422_848 + 64 + 299_904 + 16_640 + 8_321
"""Weights of the design's predecessor at d 64, L 6, H 8 over 6,607 genes: table, CLS, six encoder layers,
cross-attention of the head with its four projections, and the output layers over [h_CLS ‖ z_S] (0.75 M)."""


def parameters(head: HeadConfig) -> dict[str, int]:
    config = CellTransformerConfig(width=64, layers=6, heads=8, features=False, head=head)
    model = CellTransformer(config, genes=6607, features=0, phenotypes=1)
    counts: dict[str, int] = {}
    for name, p in model.named_parameters():
        part = ".".join(name.split(".")[:2])
        counts[part] = counts.get(part, 0) + p.numel()
    return counts


def test_parameter_count_at_the_published_size() -> None:
    counts = parameters(HeadConfig(summary="mean", direct=[], heads=8, hidden=64))
    assert counts["encoder.table"] + counts["encoder.cls"] + counts["encoder.layers"] == 722_816
    assert sum(counts.values()) == 762_057
    assert sum(counts.values()) / PUBLISHED - 1 < 0.02
    # What is more: kinds, dose and order of a perturbation, norms of query, key and encoder, a wider output.
    ours = {"encoder.norm": 128, "head.kind": 320, "head.dose": 64, "head.order": 1088}
    assert all(counts[name] == count for name, count in ours.items())


def test_the_default_head_is_larger_by_its_direct_path() -> None:
    counts = parameters(HeadConfig())
    assert sum(counts.values()) == 811_525  # 8.5 % above the published size
    assert counts["head.direct"] == 8_320
    assert counts["head.out"] == 57_729
