"""Mutants of one effect: the same reactions lost, by each gene and by all, fluxes tied to each other."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from tests.insilico import in_silico
from tests.tiny import similar_genes
from wildtype.evidence.effects import KnockoutEffects
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.out_of_fold import OutOfFold
from wildtype.models.cell_transformer.rows import knockout_effects
from wildtype.models.interface import MetabolismTensors
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism.flux_coupling import coupled_reactions

# Genes 0 and 1 make one enzyme of reaction 0; 2 and 3 are isozymes of reaction 1; 4 alone makes reactions 2
# and 3, 5 makes reaction 4. Reactions 3 and 4 are one chain. No rule names genes 6 and 7.
COMPLEXES = sparse.csr_array(
    np.array(
        [
            [1, 1, 0, 0, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 0, 0, 0, 0],
            [0, 0, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 1, 0, 0],
        ],
        float,
    )
)
ISOZYMES = sparse.csr_array(
    np.array([[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]], float)
)
NETWORK = sparse.csr_array(
    np.array([[1.0, 1, -1, -1, 0, 0], [0, 0, 0, 1, -1, 0], [0, 0, 1, 0, 0, 1.0]])[:, :5]
)
EFFECTS = KnockoutEffects(COMPLEXES, ISOZYMES, NETWORK)


def keys(sets: list[list[int]], **columns: object) -> list[int]:
    table = MutantTable.from_sets(sets, **columns)  # type: ignore[arg-type]
    return EFFECTS.of(table.gene, table.offsets, table.kind, table.condition, table.dose).keys[:, 0].tolist()


def wholes(sets: list[list[int]]) -> list[int]:
    table = MutantTable.from_sets(sets)
    return EFFECTS.of(table.gene, table.offsets, table.kind, table.condition).keys[:, 1].tolist()


def test_the_whole_is_what_is_lost_in_all() -> None:
    none, isozyme, one, both, five, six = wholes([[], [2], [0], [0, 1, 3], [4, 5], [6]])
    assert none == isozyme
    assert one == both
    assert five == wholes([[4]])[0]
    assert len({none, one, five, six}) == 4


def test_by_hand() -> None:
    assert coupled_reactions(NETWORK).tolist()[2] == -1  # a dead end: nothing leaves by reaction 2
    a, b, both, one, two, pair = keys([[0], [1], [0, 1], [2], [3], [2, 3]])
    assert a == b != both  # the second gene of an enzyme changes nothing, but is a second gene
    assert one == two
    assert len({a, one, pair}) == 3
    four, five = keys([[4], [5]])
    assert four == five  # reaction 2 carries no flux; 3 and 4 are tied
    six, seven = keys([[6], [7]])
    assert six != seven
    assert len(set(keys([[0, 4], [1, 5], [0, 6], [1, 6], [0, 7]]))) == 3
    assert len(set(keys([[0], [0]], condition=[0, 1]))) == 2
    assert len(set(keys([[0], [1]], kind=[Kind.REDUCED, Kind.REDUCED]))) == 2
    assert len(set(keys([[0], [0], [0]], kind=[Kind.REDUCED] * 3, dose=[0.5, 0.25, 0.5]))) == 2


def test_triples_are_told_apart_by_their_pairs() -> None:
    # All lose reaction 1 with the isozymes 2 and 3; only in the first does a pair do it without gene 0.
    assert len(set(keys([[2, 3, 0], [2, 3, 1], [2, 3, 6]]))) == 2


@pytest.fixture(scope="module")
def core() -> tuple[KnockoutEffects, list[frozenset[int]], int]:
    organism = in_silico("ecoli-core")
    effects = knockout_effects(MetabolismTensors.of(CellGraph.of(organism, (), metabolism=True)))
    assert effects is not None
    pairs = list(itertools.combinations(range(60), 2))
    return effects, [frozenset(p) for p in pairs], len(organism.genes)


def test_the_plain_definition_on_the_core_network(core: tuple[KnockoutEffects, list, int]) -> None:
    effects, pairs, _ = core
    organism = in_silico("ecoli-core")
    assert organism.metabolism is not None
    tied = coupled_reactions(organism.metabolism.stoichiometry)

    def lost(sets: list[list[int]]) -> list[frozenset[int]]:
        dead = organism.metabolism.dead_reactions(organism.genes, MutantTable.from_sets(sets))
        return [frozenset(tied[dead[[i]].indices].tolist()) - {-1} for i in range(len(sets))]

    chosen = [sorted(p) for p in pairs[::7]]
    alone = lost([[g] for g in range(60)])
    plain = [
        (frozenset(Counter(alone[g] for g in p).items()), joint)
        for p, joint in zip(chosen, lost(chosen), strict=True)
    ]
    table = MutantTable.from_sets(chosen)
    found = effects.of(table.gene, table.offsets, table.kind, table.condition).keys[:, 0].tolist()
    assert len(set(found)) == len(set(plain)) == len(set(zip(found, plain, strict=True)))
    assert len(set(found)) < len(found)


def test_a_mutant_sees_its_equals_but_not_out_of_fold() -> None:
    similarity = similar_genes(8)
    table = MutantTable.from_sets(
        [[0, 4], [1, 4], [1, 5], [0, 6], [2], [1]], value=[1.0, 2.0, 3.0, 4.0, 5.0, np.nan][:6]
    ).take(np.arange(5))
    index = EvidenceIndex(similarity, table, 1, EvidenceSizes(8, 4, 2, 4), effects=EFFECTS)
    asked = MutantTable.from_sets([[0, 5], [3], [1, 6], [6, 7]])
    tokens = index.tokens_of(asked)
    assert tokens.equivalents.known[:, 0].tolist() == [True, True, True, False]
    assert tokens.equivalents.value[:, 0].tolist() == [2.0, 5.0, 4.0, 0.0]
    for epoch in range(3):
        for shares in ({"seen": 1.0}, {"one": 1.0}, {"none": 1.0}):
            fold = OutOfFold(index, shares, 0)
            fold.set_epoch(epoch)
            hidden = fold.tokens_of(table)
            if "seen" in shares:
                assert not hidden.equivalents.known.any()  # equals are hidden together
    whole = EvidenceIndex(
        similarity, table, 1, EvidenceSizes(8, 4, 2, 4), effects=EFFECTS, interactions=[False]
    )
    tokens = whole.tokens_of(MutantTable.from_sets([[4, 5], [1, 6, 2], [1]]))
    assert tokens.equivalents.known[:, 0].tolist() == [False, True, False]
    assert tokens.equivalents.value[1, 0] == 4  # the isozyme takes nothing away
    plain = EvidenceIndex(similarity, table, 1, EvidenceSizes(8, 4, 2, 4)).tokens_of(asked)
    assert not plain.equivalents.known.any()


def test_nothing_grows_faster_than_what_loses_less() -> None:
    rng = np.random.default_rng(0)
    sets = [rng.choice(8, rng.integers(1, 4), replace=False).tolist() for _ in range(60)]
    table = MutantTable.from_sets(
        sets,
        value=rng.normal(size=60),
        condition=rng.integers(0, 2, 60),
        kind=rng.choice([Kind.ABSENT] * 4 + [Kind.REDUCED], sum(map(len, sets))),
    )
    index = EvidenceIndex(
        similar_genes(8), table, 1, EvidenceSizes(8, 4, 2, 4), effects=EFFECTS, interactions=[False]
    )
    part = index.part()
    tied = coupled_reactions(NETWORK)

    def lost(genes: list[int]) -> frozenset[int]:
        there = np.ones(COMPLEXES.shape[1])
        there[genes] = 0
        whole = (COMPLEXES @ (1 - there)) == 0
        return frozenset(tied[(ISOZYMES @ whole) == 0].tolist()) - {-1}

    known: dict[tuple[frozenset[int], int], list[float]] = {}
    measured = part.measured
    for i in range(len(measured)):
        span = slice(*measured.mutants.offsets[i : i + 2])
        genes, kinds = measured.mutants.gene[span].tolist(), measured.mutants.kind[span]
        if (kinds == Kind.ABSENT).all() and not {6, 7} & set(genes):
            known.setdefault((lost(genes), int(measured.condition[i])), []).append(
                float(measured.value[i, 0])
            )
    asked = MutantTable.from_sets([[0, 1, 4], [2, 3, 5], [0, 5], [6, 0], [2]], condition=[0, 1, 0, 0, 1])
    tokens = part.tokens_of(asked.gene, asked.offsets, asked.condition, index.effect_of(asked))
    for q, genes in enumerate([[0, 1, 4], [2, 3, 5], [0, 5], [6, 0], [2]]):
        own = lost(genes)
        below = [
            np.mean(values)
            for (others, condition), values in known.items()
            if others and others <= own and condition == asked.condition[q]
        ]
        expected = min(below) if below and 6 not in genes else np.inf
        assert float(tokens.equivalents.bound[q, 0]) == pytest.approx(expected, rel=1e-6)
    assert np.isfinite(tokens.equivalents.bound.numpy()).sum() >= 2
