"""Evidence that is looked up for several batches together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.evidence.examples import MANY, SIMILARITY, measured, same
from wildtype.evidence import loader as module
from wildtype.evidence.loader import EvidenceLoader
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.out_of_fold import OutOfFold
from wildtype.mutants.loader import MutantLoader
from wildtype.nn.threads import ahead


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("together", [1, 20, 10**6])
@pytest.mark.parametrize("phenotypes", [1, 3], ids=["a target each", "several targets"])
def test_a_batch_has_its_evidence_however_many_are_looked_up_together(
    together: int, phenotypes: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER", together)
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    table = measured(np.random.default_rng(0), 75, conditions=2, phenotypes=phenotypes)
    index = EvidenceIndex(SIMILARITY, table, phenotypes, MANY)
    sources = [OutOfFold(index, {"seen": 1.0, "one": 1.0, "none": 1.0}, 0) for _ in range(2)]
    plain = MutantLoader(table, 8, shuffle=True, seed=1)
    loader = EvidenceLoader(MutantLoader(table, 8, shuffle=True, seed=1), sources[0], ahead=ahead)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        plain.set_epoch(epoch)
        sources[1].set_epoch(epoch)
        served, expected = list(loader), list(plain)
        assert len(served) == len(expected) == len(loader) > 5
        for one, other in zip(served, expected, strict=True):
            assert one.gene.tolist() == other.gene.tolist()
            assert one.value.tolist() == other.value.tolist()
            assert one.evidence is not None
            assert same(one.evidence, sources[1].tokens_of(other))


def test_lookups_grow_with_what_was_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 24)
    table = measured(np.random.default_rng(4), 120)
    index = EvidenceIndex(SIMILARITY, table, 1, MANY)
    asked: list[int] = []
    original = index.tokens_of
    monkeypatch.setattr(index, "tokens_of", lambda mutants: asked.append(len(mutants)) or original(mutants))
    served = list(EvidenceLoader(MutantLoader(table, 4), index))
    assert sum(asked) == sum(map(len, served)) == len(table)
    # A batch, then as many batches as hold a third of what came before, up to 24 mutants.
    assert asked[:9] == [4, 4, 4, 4, 8, 8, 12, 16, 20]
    assert max(asked) == 24


def test_evidence_that_never_changes_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = measured(np.random.default_rng(2), 30)
    index = EvidenceIndex(SIMILARITY, table, 1, MANY)
    calls: list[int] = []
    original = index.tokens_of
    monkeypatch.setattr(index, "tokens_of", lambda asked: calls.append(len(asked)) or original(asked))
    loader = EvidenceLoader(MutantLoader(table, 8), index, keep=True)
    first, second = list(loader), list(loader)
    assert sum(calls) == sum(map(len, first))
    assert all(a is b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_epoch_that_was_left_changes_no_other(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 16)
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    table = measured(np.random.default_rng(3), 75)
    index = EvidenceIndex(SIMILARITY, table, 1, MANY)
    left, whole = (
        EvidenceLoader(
            MutantLoader(table, 8, shuffle=True, seed=1), OutOfFold(index, {"seen": 1.0}, 0), ahead=ahead
        )
        for _ in range(2)
    )
    started = iter(left)
    for _ in range(2):
        next(started)
    for loader in (left, whole):
        loader.set_epoch(1)
    for one, other in zip(left, whole, strict=True):
        assert one.evidence is not None
        assert other.evidence is not None
        assert same(one.evidence, other.evidence)
    assert not list(started)  # it ended as the next one was chosen
