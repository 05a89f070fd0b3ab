"""Evidence lookups against their plain definitions."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.examples import GENES, MANY, SIMILARITY, measured, same, sets_of
from wildtype.evidence.edits import ADDED, REMOVED, REPLACED
from wildtype.evidence.hashed_sets import may_hold
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.measured import SHRINKAGE, Buckets, MeasuredSets, additive_effects
from wildtype.evidence.similarity_kernels import UNKNOWN
from wildtype.mutants import MutantTable


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_every_set_one_edit_away_is_found_and_no_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, asked = measured(rng, 40, conditions=2), measured(rng, 6, conditions=2)
    own = set(sets_of(asked))
    part = EvidenceIndex(SIMILARITY, table, 1, MANY).part(np.array([s in own for s in sets_of(table)]))
    tokens = part.tokens_of(asked.gene, asked.offsets, asked.condition)
    known = list(zip(sets_of(part.measured.mutants), part.measured.condition.tolist(), strict=True))
    values = part.measured.value[:, 0]
    for q, query in enumerate(sets_of(asked)):
        expected = []
        for (other, condition), value in zip(known, values, strict=True):
            gone, new = query - other, other - query
            edit = {(1, 1): REPLACED, (1, 0): REMOVED, (0, 1): ADDED}.get((len(gone), len(new)))
            if edit is not None:
                same = float(condition == asked.condition[q])
                expected.append((edit, *(gone or {-1}), *(new or {-1}), same, round(float(value), 5)))
        at = tokens.one.mask[q].nonzero()[:, 0]
        columns = (
            tokens.one.edit,
            tokens.one.old,
            tokens.one.new,
            tokens.one.same_condition,
            tokens.one.value[..., 0],
        )
        found = [tuple(column[q, i].item() for column in columns) for i in at]
        assert sorted(expected) == sorted((*f[:4], round(f[4], 5)) for f in found)


@pytest.mark.parametrize(
    ("few", "table"), [(0, 1 << 20), (0, 0), (GENES, 1 << 20)], ids=["ranked genes", "profiles", "products"]
)
@pytest.mark.parametrize("conditions", [1, 2])
@pytest.mark.parametrize("order", [2, 3])
def test_of_many_candidates_the_tokens_are_the_best(
    few: int, table: int, conditions: int, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the same condition first, then smaller and larger sets, then those of most similar genes."""
    monkeypatch.setattr("wildtype.evidence.part.FEW", few)
    monkeypatch.setattr("wildtype.evidence.part.TABLE", table)
    rng = np.random.default_rng(order)
    sizes = rng.choice([1, order, order + 1], 1500, p=[0.02, 0.96, 0.02])
    known = MutantTable.from_sets(
        [rng.choice(GENES, size, replace=False) for size in sizes],
        condition=rng.integers(0, conditions, len(sizes)),
        value=rng.normal(size=len(sizes)),
    )
    asked = MutantTable.from_sets([rng.choice(GENES, order, replace=False) for _ in range(40)])
    part = EvidenceIndex(SIMILARITY, known, 1, EvidenceSizes(tokens=6, two=0, replacements=2)).part()
    assert (part._ranking is not None) == (table > 0 and not few)
    every = EvidenceIndex(SIMILARITY, known, 1, MANY).part()
    found, candidates = (p.one_edit(asked.gene, asked.offsets, asked.condition) for p in (part, every))
    profiles = every.profiles.toarray()
    alike = SIMILARITY.near.toarray() + np.maximum(profiles @ profiles.T, 0) ** 2
    for q in range(len(asked)):
        there = candidates.row[q] >= 0
        row, edit, old, new, _ = (column[q, there] for column in candidates)
        score = np.where(edit == REPLACED, alike[old, new], np.where(edit == REMOVED, 8, 4))
        score = score + 16 * (every.measured.condition[row] == 0)
        scores = dict(zip(zip(row, edit, old, new, strict=True), score.tolist(), strict=True))
        tokens = list(zip(*(column[q] for column in found[:4]), strict=True))
        assert len(set(tokens)) == 6 < len(scores)
        # Which of several equally good ones is a token is not promised.
        assert sorted(scores[token] for token in tokens) == pytest.approx(sorted(score)[-6:], abs=1e-6)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_two_edits_are_all_pairs_of_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = measured(rng, 60)
    asked = MutantTable.from_sets([[0, 1], [2, 5, 9]])
    own = set(sets_of(asked))
    part = EvidenceIndex(SIMILARITY, table, 1, MANY).part(np.array([s in own for s in sets_of(table)]))
    tokens = part.tokens_of(asked.gene, asked.offsets, asked.condition)
    where = {s: i for i, s in enumerate(sets_of(part.measured.mutants))}
    near = part.nearest()
    for q, query in enumerate(sets_of(asked)):
        expected: dict[tuple[int, ...], float] = {}
        total = weight = 0.0
        genes = sorted(query)
        for i, a in enumerate(genes):
            for b in genes[i + 1 :]:
                for x, c in enumerate(near.gene[a]):
                    for y, d in enumerate(near.gene[b]):
                        other = frozenset(query - {a, b} | {int(c), int(d)})
                        legal = c >= 0 and d >= 0 and c != d and not {c, d} & query
                        if legal and other in where:
                            w = float(near.score[a, x] * near.score[b, y])
                            value = float(part.measured.value[where[other], 0])
                            expected[(a, b, int(c), int(d))] = value
                            total, weight = total + w * value, weight + w
        found = {
            (*tokens.two.old[q, t].tolist(), *tokens.two.new[q, t].tolist()): tokens.two.value[q, t, 0].item()
            for t in tokens.two.mask[q].nonzero()[:, 0]
        }
        assert found == pytest.approx(expected, abs=1e-6)
        assert tokens.two.pooled[q, 0].item() == pytest.approx(total / (weight + 0.01), abs=1e-4)


def test_no_record_of_a_querys_own_gene_set_is_evidence() -> None:
    rng = np.random.default_rng(1)
    table = measured(rng, 80, conditions=2, phenotypes=2)
    index = EvidenceIndex(SIMILARITY, table, 2, MANY)
    for row in range(0, 80, 7):
        asked = table.take([row])
        own = np.array([s == sets_of(asked)[0] for s in sets_of(table)])
        changed = replace(table, value=np.where(own, table.value + 50, table.value).astype(np.float32))
        assert same(index.tokens_of(asked), EvidenceIndex(SIMILARITY, changed, 2, MANY).tokens_of(asked))
        others = replace(table, value=np.where(own, table.value, table.value + 1).astype(np.float32))
        assert not same(index.tokens_of(asked), EvidenceIndex(SIMILARITY, others, 2, MANY).tokens_of(asked))


@pytest.mark.parametrize("own", [0, 1, 3, 12, 20])
def test_a_mutant_is_answered_alike_alone_and_among_others(own: int) -> None:
    """However many of a batch were measured: each of these is answered without a tenth of all records."""
    rng = np.random.default_rng(2)
    table = measured(rng, 80, conditions=2, phenotypes=2)
    known = {tuple(sorted(genes)) for genes in sets_of(table)}
    new = [
        s for s in (rng.choice(GENES, 3, replace=False) for _ in range(60)) if tuple(sorted(s)) not in known
    ]
    sets = [list(map(int, genes)) for genes in [*sets_of(table)[:own], *new[: 20 - own]]]
    asked = MutantTable.from_sets([sets[i] for i in rng.permutation(20)])
    index = EvidenceIndex(SIMILARITY, table, 2, MANY)
    together = index.tokens_of(asked)
    for row in range(20):
        first, last = asked.offsets[row : row + 2]
        assert same(together.slice(row, row + 1, first, last), index.tokens_of(asked.take([row])))


@pytest.mark.parametrize("conditions", [1, 2])
@pytest.mark.parametrize("table", [0, 1 << 20], ids=["profiles", "ranked genes"])
def test_what_pairs_with_one_first_gene_share_is_what_each_finds_alone(
    conditions: int, table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of profiles and partners of neighbours are made once for many such pairs, not for a few."""
    monkeypatch.setattr("wildtype.evidence.part.FEW", 0)
    monkeypatch.setattr("wildtype.evidence.part.TABLE", table)
    rng = np.random.default_rng(conditions)
    pairs = [[i, j] for i in range(GENES) for j in range(i)]
    sets = [*(pairs[i] for i in rng.permutation(len(pairs))[:70]), *rng.permutation(pairs)[:20].tolist()]
    others = [[2], [1, 2, 3], [4, 5, 6], [2, 7, 9], []]
    known = MutantTable.from_sets(
        [*sets, *others[:-1]],
        condition=rng.integers(0, conditions, len(sets) + 4),
        value=rng.normal(size=len(sets) + 4),
    )
    asked = MutantTable.from_sets([[*pairs, *others][i] for i in rng.permutation(len(pairs) + len(others))])
    sizes = EvidenceSizes(tokens=6, two=5, neighbours=4, replacements=GENES - 1)
    part = EvidenceIndex(SIMILARITY, known, 1, sizes).part()
    # A pair alone has nothing to share its first gene's work with; the 13 pairs of gene 0 have.
    partners = np.bincount(
        part.measured.mutants.gene[part.measured.mutants.order[part.measured.mutants.row] == 2]
    )
    assert (GENES - 1) ** 2 < 2 * partners[1:].sum() < (GENES - 1) ** 3
    assert part._paths.max() < 2 * part._paths.min()
    together = part.tokens_of(asked.gene, asked.offsets, asked.condition)
    for row in range(len(asked)):
        first, last = asked.offsets[row : row + 2]
        one = asked.take([row])
        alone = part.tokens_of(one.gene, one.offsets, one.condition)
        assert same(together.slice(row, row + 1, first, last), alone)


def test_without_measurements_only_relations_are_told() -> None:
    asked = MutantTable.from_sets([[0, 1, 2], [3]])
    tokens = EvidenceIndex(SIMILARITY, asked.take([]), 1, EvidenceSizes(0, 0, 0, 0)).tokens_of(asked)
    assert tokens.one.mask.shape == (2, 0)
    assert tokens.pairs.row.tolist() == [0, 0, 0]
    assert tokens.pairs.similarity.abs().sum() > 0
    assert not tokens.genes.statistics.any()


def test_similarity_is_what_its_channels_say() -> None:
    part = EvidenceIndex(SIMILARITY, measured(np.random.default_rng(7), 50), 1).part()
    left, right = np.repeat(np.arange(GENES), GENES), np.tile(np.arange(GENES), GENES)
    found = part.similar(left, right) / SIMILARITY.scale
    profiles = part.profiles.toarray()
    joint = SIMILARITY.unit @ SIMILARITY.unit.T
    names = SIMILARITY.channels
    assert found[:, names.index("joint")] == pytest.approx(joint.reshape(-1), abs=1e-5)
    likeness = (profiles @ profiles.T).reshape(-1)
    assert found[:, names.index("label profiles")] == pytest.approx(likeness, abs=1e-5)
    for i in range(len(SIMILARITY.relations)):
        weights = SIMILARITY.adjacency(i).toarray().reshape(-1)
        assert weights.any()
        assert found[:, i] == pytest.approx(weights, abs=1e-6)
    parts = found[:, len(SIMILARITY.relations) : -2]
    assert parts.sum(1) == pytest.approx(joint.reshape(-1), abs=1e-5)
    assert (part.similar(np.array([-1]), np.array([2])) == 0).all()


@pytest.mark.parametrize("few", [0, GENES], ids=["profiles", "products"])
@pytest.mark.parametrize("tokens", [4, 500], ids=["the best", "all"])
def test_products_found_with_mutants_are_those_of_their_genes(
    few: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wildtype.evidence.part.FEW", few)
    rng = np.random.default_rng(5)
    sizes = EvidenceSizes(tokens=tokens, two=0, replacements=2)
    part = EvidenceIndex(SIMILARITY, measured(rng, 300, conditions=2), 1, sizes).part()
    asked = measured(rng, 30, conditions=2)
    one = part.one_edit(asked.gene, asked.offsets, asked.condition)
    replaced = one.edit == REPLACED
    assert replaced.any()
    assert (one.alike[replaced] != UNKNOWN).any() == (tokens < 500)
    np.testing.assert_array_equal(part.similar(one.old, one.new, one.alike), part.similar(one.old, one.new))
    assert (one.alike[one.edit != REPLACED] == UNKNOWN).all()


def test_values_of_kinds_and_phenotypes_are_averaged_per_mutant() -> None:
    table = MutantTable.from_sets(
        [[0, 1], [0, 1], [0, 1], [0, 1]], condition=[0, 0, 0, 1], phenotype=[0, 0, 1, 0], value=[1, 3, 5, 7]
    )
    found = MeasuredSets(table, GENES, 2)
    assert found.value.tolist()[0] == [2, 5]
    assert found.value[1, 0] == 7
    assert np.isnan(found.value[1, 1])
    assert found.statistics[0].tolist() == [2, 1, 9, 5, 2, 1]


def test_additive_effects_are_ridge() -> None:
    table = measured(np.random.default_rng(8), 200)
    table = table.take(table.order == 2)
    found = additive_effects(MeasuredSets(table, GENES, 1))[:, 0]
    mutants = MeasuredSets(table, GENES, 1)
    x = np.zeros((len(mutants), GENES))
    x[mutants.mutants.row, mutants.mutants.gene] = 1
    y = mutants.value[:, 0] - mutants.value[:, 0].mean()
    expected = np.linalg.solve(x.T @ x + SHRINKAGE * np.eye(GENES), x.T @ y)
    assert found == pytest.approx(expected, abs=1e-3)


def test_without_tokens_nothing_is_known_but_the_additive_model() -> None:
    rng = np.random.default_rng(9)
    table, asked = measured(rng, 60, phenotypes=2), measured(rng, 10)
    sizes = EvidenceSizes(0, 0, 0, 0)
    found = EvidenceIndex(SIMILARITY, table, 2, sizes).tokens_of(asked)
    blank = EvidenceIndex(SIMILARITY, table.take([]), 2, sizes).tokens_of(asked)
    effects = additive_effects(MeasuredSets(table, GENES, 2))[asked.gene]
    assert np.abs(effects).min(0).max() > 0
    np.testing.assert_array_equal(found.genes.additive.numpy(), effects)
    blank.genes.additive = found.genes.additive
    assert same(found, blank)


PROFILES_THAT_ARE_NO_NUMBERS = """
import numpy as np
from wildtype.evidence.neighbour_kernels import Csr, neighbours

n = 6
start, every = np.arange(0, n * n + 1, n), np.tile(np.arange(n), n)
profile = Csr(start, every, np.full(n * n, np.nan, np.float32))
nothing = Csr(np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
found = np.full((n, 3), -1)
scratch = (np.zeros(n, np.float32), np.zeros(3, np.float32))
near = np.zeros((n, 3), np.float32)
neighbours(0, n, np.arange(n), np.ones(n, bool), nothing, profile, profile, *scratch, found, near)
print([len(set(row)) for row in found.tolist()])
"""


@pytest.mark.slow
def test_profiles_that_are_no_numbers_do_not_overwrite_memory(tmp_path: Path) -> None:
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROFILES_THAT_ARE_NO_NUMBERS], env=checked, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[3, 3, 3, 3, 3, 3]", done.stderr


@pytest.mark.parametrize("count", [0, 1, 7, 5000])
def test_marks_miss_no_key_and_tell_most_others(count: int) -> None:
    draw = np.random.default_rng(count)
    keys, others = (draw.integers(0, 2**64, size, np.uint64) for size in (count, 2000))
    marks = Buckets(keys).marks
    assert all(may_hold(key, marks) for key in keys)
    assert sum(int(may_hold(key, marks)) for key in others) < 0.1 * len(others)


def test_what_genes_and_neighbours_have_in_common_is_the_same_kept_or_not() -> None:
    rng = np.random.default_rng(11)
    table = measured(rng, 60)
    index = EvidenceIndex(SIMILARITY, table, 1, MANY)
    lasting, passing = index.part(), index.part(np.zeros(len(table), bool))
    for asked in (measured(rng, 5), measured(rng, 9)):
        arrays = (asked.gene, asked.offsets, asked.condition)
        assert same(lasting.tokens_of(*arrays), passing.tokens_of(*arrays))
    assert lasting._table is not None
    assert passing._table is None
