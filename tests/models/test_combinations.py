"""Sets asked by tables of their members against the head's forward pass, in float64."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from tests.tiny import similar_genes, tiny_organism
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.models.cell_transformer import combinations as tables
from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig, HeadConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Members, OrganismTensors, Output, organism_tensors
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch

N = 24
SIMILARITY = similar_genes(N)
DRAW = np.random.default_rng(0)
MEASURED = [list(DRAW.choice(N, 2, replace=False)) for _ in range(40)] + [[3, 5], [9, 11, 17], [20]]
INDEX = EvidenceIndex(
    SIMILARITY,
    MutantTable.from_sets(
        MEASURED,
        value=DRAW.normal(size=len(MEASURED)).astype(np.float32),
        phenotype=DRAW.integers(0, 2, len(MEASURED)),
    ),
    2,
    EvidenceSizes(tokens=0, two=0, neighbours=0, replacements=0),
)
GENE = np.array([3, 5, 5, 9, 11, 17, 20])
KIND = np.array([Kind.ABSENT] * 2 + [Kind.OVEREXPRESSED] + [Kind.ABSENT] * 3 + [Kind.REDUCED], np.uint8)


def build(
    seed: int = 0, outputs: list[Output] | int = 2, **head: object
) -> tuple[CellTransformer, OrganismTensors]:
    torch.manual_seed(seed)
    settings = HeadConfig(**({"heads": 2} | head))  # type: ignore[arg-type]
    config = CellTransformerConfig(
        width=8, layers=1, heads=2, head=settings, evidence=EvidenceConfig(tokens=0)
    )
    model = (
        CellTransformer(
            config,
            genes=N,
            features=0,
            phenotypes=outputs,
            conditions=3,
            relations=["physical"],
            channels=len(SIMILARITY.channels),
            traits=len(SIMILARITY.trait_names),
        )
        .double()
        .eval()
    )
    model.head.largest_order.fill_(3)
    return model, organism_tensors(model, tiny_organism(N), torch.zeros(N, 0), SIMILARITY).without_priors()


def sets_of(order: int) -> np.ndarray:
    every = [s for s in combinations(range(len(GENE)), order) if len({GENE[i] for i in s}) == order]
    return np.array(every)


def plain(model: CellTransformer | Ensemble, organism: OrganismTensors, sets: np.ndarray) -> torch.Tensor:
    table = MutantTable.from_matrix(
        GENE[sets], kind=KIND[sets].reshape(-1), condition=np.full(len(sets), 1, np.int64)
    )
    batch = MutantBatch.from_table(table)
    batch.evidence = INDEX.tokens_of(table)
    with torch.no_grad():
        return model(model.encode(organism), batch).mean


def members(order: int) -> Members:
    return Members(torch.from_numpy(GENE), torch.from_numpy(KIND), order, 1)


def in_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let likenesses of genes and additive effects, which are single, be double."""
    part = INDEX.part()
    similar, traits = part.similar, part.traits_of
    monkeypatch.setattr(part, "similar", lambda *genes: similar(*genes).astype(np.float64))
    monkeypatch.setattr(part, "traits_of", lambda i, j: traits(i, j).astype(np.float64))
    monkeypatch.setattr(part, "effects", part.effects.astype(np.float64))
    monkeypatch.setattr(INDEX, "part", lambda hidden=None: part)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "head",
    [
        {},
        {"summary": "own_reads"},
        {"summary": "mean", "direct": ["mean", "product", "sum"]},
        {"summary": "product", "relations": False},
        {"heads": 0},
        {"heads": 0, "direct": []},
        {"additive": False},
        {"direct": ["sum", "set_attention"]},
        {"summary": "set_attention", "relations": False, "additive": False},
        {"summary": "set_attention_concat", "direct": ["partners"], "relations": False, "order": False},
        {"summary": "mean", "scores": "bilinear", "direct": []},
        {"summary": "own_reads", "scores": "bilinear"},
        {"outputs": [Output("a", "class"), Output("b")]},
    ],
    ids=str,
)
def test_the_same_as_one_by_one(head: dict[str, object], order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_double(monkeypatch)
    model, organism = build(**head)
    answer = model.combinations(model.encode(organism), members(order), INDEX)
    assert answer is not None
    sets = sets_of(order)
    expected = plain(model, organism, sets)
    torch.testing.assert_close(answer(torch.from_numpy(sets)), expected, rtol=1e-9, atol=1e-9)
    some = np.random.default_rng(0).permutation(len(sets))[:5]
    torch.testing.assert_close(answer(torch.from_numpy(sets[some])), expected[some], rtol=1e-9, atol=1e-9)


def test_pairs_without_room_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    in_double(monkeypatch)
    model, organism = build()
    with monkeypatch.context() as patch:
        patch.setattr(tables, "ROOM", 800)
        answer = model.combinations(model.encode(organism), members(3), INDEX)
    assert answer is not None
    assert not answer.kept
    sets = sets_of(3)
    torch.testing.assert_close(
        answer(torch.from_numpy(sets)), plain(model, organism, sets), rtol=1e-9, atol=1e-9
    )


def test_an_ensemble_is_the_mean_of_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    in_double(monkeypatch)
    one, organism = build(seed=0)
    both = Ensemble([one, build(seed=1)[0]])
    answer = both.combinations(both.encode(organism), members(3), INDEX)
    assert answer is not None
    sets = sets_of(3)
    torch.testing.assert_close(
        answer(torch.from_numpy(sets)), plain(both, organism, sets), rtol=1e-9, atol=1e-9
    )


def test_evidence_numbers_per_gene_and_too_many_members_have_no_tables() -> None:
    head = build()[0].head
    assert tables.SetTables.applies(head, 7)
    assert not tables.SetTables.applies(head, 10**8)
    assert not tables.SetTables.applies(build(outputs=[Output("a"), Output("b", "gene")])[0].head, 7)
    config = CellTransformerConfig(width=8, layers=0, heads=2, head=HeadConfig(heads=2))
    reads = CellTransformer(config, genes=N, features=0, phenotypes=1, channels=4).head
    assert not tables.SetTables.applies(reads, 7)
