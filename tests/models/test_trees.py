"""Trees over evidence: few tokens are the first of many, mixing weights by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.tiny import similar_genes
from wildtype.evidence.edits import ADDED, REMOVED, REPLACED
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.models.cell_transformer.equivalents import Equivalents
from wildtype.models.cell_transformer.trees import (
    CERTAIN,
    EvidenceTrees,
    least_squares_weight,
    posterior_weight,
)
from wildtype.models.interface import Output, WildType
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.nn.forest import Forest

N = 14
SIMILARITY = similar_genes(N)
TRAITS = torch.from_numpy(SIMILARITY.traits)
SIZES = EvidenceSizes(tokens=40, two=20, neighbours=6, replacements=12)


def measured(phenotypes: int = 2) -> MutantTable:
    rng = np.random.default_rng(0)
    sets = [rng.choice(N, rng.integers(1, 4), replace=False).tolist() for _ in range(150)]
    return MutantTable.from_sets(sets, value=rng.normal(size=150), phenotype=rng.integers(0, phenotypes, 150))


INDEX = EvidenceIndex(SIMILARITY, measured(), 2, SIZES)
ASKED = [[0, 5], [3], [1, 4, 9], [], [2, 13], [7, 8]]


def asked(sets: list[list[int]]) -> MutantBatch:
    batch = MutantBatch.from_table(MutantTable.from_sets(sets))
    batch.evidence = INDEX.tokens_of(batch)
    return batch


def test_few_tokens_are_the_first_of_many() -> None:
    few = EvidenceSizes(tokens=5, two=3, neighbours=2, replacements=12)
    many = EvidenceSizes(tokens=40, two=20, neighbours=6, replacements=12, ranked=(5, 3))
    table, queries = measured(), MutantTable.from_sets(ASKED)
    part = EvidenceIndex(SIMILARITY, table, 2, few).part()
    short, long = (
        EvidenceIndex(SIMILARITY, table, 2, sizes)
        .part()
        .tokens_of(queries.gene, queries.offsets, queries.condition)
        for sizes in (few, many)
    )
    near, alike = SIMILARITY.near.toarray(), (part.profiles @ part.profiles.T).toarray()
    chosen = np.zeros((N, N))
    for gene, (others, scores) in enumerate(zip(*part.nearest(), strict=True)):
        chosen[gene, others[others >= 0]] = scores[others >= 0]

    def scores(tokens: EvidenceTokens, q: int) -> tuple[list[float], list[float]]:
        one = []
        for there, edit, old, new in zip(
            tokens.one.mask[q], tokens.one.edit[q], tokens.one.old[q], tokens.one.new[q], strict=True
        ):
            if there:
                likeness = near[old, new] + max(alike[old, new], 0) ** 2
                one.append(likeness if edit == REPLACED else {REMOVED: 8.0, ADDED: 4.0}[int(edit)])
        two = [
            float(np.prod(chosen[old, new]))
            for there, old, new in zip(tokens.two.mask[q], tokens.two.old[q], tokens.two.new[q], strict=True)
            if there
        ]
        return one, two

    kept = long.first(5, 3, 2)
    assert kept.one.mask.shape[1:2] + kept.two.mask.shape[1:2] + kept.neighbours.mask.shape[1:2] == (5, 3, 2)
    for q in range(len(ASKED)):
        for own, first, every in zip(scores(short, q), scores(kept, q), scores(long, q), strict=True):
            np.testing.assert_allclose(sorted(own), sorted(first), rtol=1e-5, atol=1e-7)
            assert len(first) == len(every) or min(first) >= max(every[len(first) :]) - 1e-6
    assert torch.equal(short.neighbours.gene, kept.neighbours.gene)
    torch.testing.assert_close(short.two.pooled, kept.two.pooled)


def trees_saying(value: float, outputs: tuple[Output, ...], share: float) -> EvidenceTrees:
    trees = EvidenceTrees(outputs, 0, 1)
    leaf = (
        torch.tensor([-1]),
        torch.zeros(1, 2).long(),
        torch.tensor([value]).double(),
        torch.tensor([True]),
    )
    for i in trees.asked:
        trees.forests[str(i)] = Forest.of([leaf])
    trees.mixing_weight.fill_(share)
    return trees


def test_trees_and_network_are_averaged() -> None:
    wild_type = WildType(torch.zeros(1), torch.zeros(N, 1), traits=TRAITS)
    outputs = (Output("a", "scalar"), Output("b", "class"))
    batch, mean = asked(ASKED), torch.tensor([[1.0, 0.0]]).expand(len(ASKED), -1)
    said = trees_saying(0.5, outputs, 0.25)(wild_type, batch, mean)
    torch.testing.assert_close(said[:, 0], torch.full((len(ASKED),), 0.875))
    torch.testing.assert_close(said[:, 1], torch.zeros(len(ASKED)))  # logits of one half and one half
    sure = trees_saying(7.0, outputs, 1.0)(wild_type, batch, mean)[:, 1].sigmoid()
    torch.testing.assert_close(sure, torch.full((len(ASKED),), 1 - CERTAIN))
    assert trees_saying(0.5, outputs, 0.0)(wild_type, batch, mean) is mean


def test_shares() -> None:
    draw = torch.Generator().manual_seed(0)
    label, noise = torch.randn(4000, generator=draw), torch.randn(4000, generator=draw)
    good, bad = label + 0.1 * noise, -label
    assert least_squares_weight(bad, good, label) == pytest.approx(1, abs=0.01)
    assert least_squares_weight(good, bad, label) == pytest.approx(0, abs=0.01)
    assert least_squares_weight(label, -label, label) == 0
    assert posterior_weight(bad, good, label) > 0.95
    assert posterior_weight(good, bad, label) < 0.05
    assert posterior_weight(good[:1], bad[:1], label[:1]) == pytest.approx(0.5, abs=0.2)
    assert posterior_weight(good[:0], bad[:0], label[:0]) == 0.5
    assert posterior_weight(good, good, label) == 0.5


def test_rows_count_as_the_mutants_that_they_stand_for_in_the_mixing_weight() -> None:
    draw = torch.Generator().manual_seed(0)
    label, noise = torch.randn(300, generator=draw), torch.randn(300, generator=draw)
    network, trees = label + noise, label * (torch.arange(300) % 3 > 0)
    count = torch.where(torch.arange(300) % 3 > 0, 5, 1)
    weight = posterior_weight(network, trees, label, count)
    assert weight > posterior_weight(network, trees, label) + 0.02
    # Three times the same number of mutants per row is the same number of rows, none more certain.
    assert posterior_weight(network, trees, label, 3 * count) == pytest.approx(weight, rel=1e-12)
    ones = torch.ones(300, dtype=torch.int64)
    assert posterior_weight(network, trees, label, ones) == posterior_weight(network, trees, label)


def test_equivalents_move_scalars_alone() -> None:
    outputs = (Output("a", "scalar"), Output("b", "class"))
    equivalents = Equivalents(outputs)
    equivalents.mixing_weight[0], equivalents.shift[0] = 0.5, 2.0
    tokens = INDEX.tokens_of(MutantTable.from_sets([[0, 1], [2, 3]], kind=[Kind.ABSENT] * 4))
    tokens.equivalents.value[0], tokens.equivalents.known[0] = (
        torch.tensor([4.0, 9.0]),
        torch.tensor([True, True]),
    )
    moved = equivalents(torch.ones(2, 2), tokens)
    assert moved.tolist() == [[3.5, 1.0], [1.0, 1.0]]
