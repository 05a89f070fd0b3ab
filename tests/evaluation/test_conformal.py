"""Conformal intervals: quantiles against their definition, coverage under known random processes, honest
refusals.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import CheckpointError, ConfigError
from wildtype.evaluation.conformal import Conformal, Group, Quantile
from wildtype.evidence.reference import PARTS
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.models.validation_rows import ValidationRows
from wildtype.mutants import Kind, MutantTable


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 99), st.integers(0, 2**32 - 1))
def test_rows_that_share_nothing_follow_the_plain_rule(n: int, percent: int, seed: int) -> None:
    score = np.random.default_rng(seed).exponential(size=n)
    rank = -(-(n + 1) * percent // 100)  # ceil, in whole numbers
    expected = np.sort(score)[rank - 1] if rank <= n else math.inf
    assert Quantile(score, np.arange(n)[:, None]).at(percent / 100) == expected


def by_definition(score: np.ndarray, clusters: np.ndarray, level: float) -> float:
    """Leave out the clusters of every row in turn."""
    others = [
        np.sort([s for s, c in zip(score, clusters, strict=True) if not set(c) & set(own)])
        for own in clusters
    ]
    below = np.array([(o < s).mean() if o.size else 1.0 for s, o in zip(score, others, strict=True)])
    share = next(x for x in np.sort(below) if (below <= x).mean() >= level - 1e-12)
    thresholds = []
    for o in others:
        rank = math.floor(share * o.size + 1e-9)
        thresholds.append(o[rank] if rank < o.size else math.inf)
    return float(np.sort(thresholds)[math.ceil(score.size / 2) - 1])


@settings(max_examples=50)
@given(st.integers(3, 8), st.integers(1, 2), st.sampled_from([0.5, 0.8, 0.9]), st.integers(0, 2**32 - 1))
def test_clustered_quantile_is_its_definition(genes: int, columns: int, level: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = np.stack([rng.permutation(genes)[:columns] for _ in range(25)])
    score = rng.exponential(size=25)
    quantile = Quantile(score, clusters)
    assert quantile.clustered
    assert quantile.at(level) == by_definition(score, clusters, level)


def test_of_many_clusters_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(300), 4)[:, None]
    score = np.abs(rng.normal(size=1200) + rng.normal(size=300)[clusters[:, 0]])
    every = Quantile(score, clusters).at(0.9)
    monkeypatch.setattr("wildtype.evaluation.conformal.LEFT_OUT", 100)
    assert Quantile(score, clusters).at(0.9) == pytest.approx(every, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_few_repeats_among_many_rows_change_no_quantile(seed: int) -> None:
    """All rows are judged: 512 clusters of 20,000 rows gave a coverage that was off by one per cent."""
    clusters = np.arange(20_000)
    clusters[:20] = clusters[20:40]
    score = np.random.default_rng(seed).exponential(size=20_000)
    quantile = Quantile(score, clusters[:, None])
    assert quantile.clustered
    assert (score <= quantile.at(0.9)).mean() == pytest.approx(0.9, abs=2e-4)


def one_unseen(rng: np.random.Generator, genes: int) -> tuple[np.ndarray, np.ndarray]:
    gene = np.repeat(np.arange(genes), 15)
    return np.abs(np.exp(rng.normal(size=genes))[gene] * rng.normal(size=gene.size)), gene[:, None]


def both_unseen(rng: np.random.Generator, genes: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.stack(np.triu_indices(genes, 1), axis=1)
    return np.abs(0.9 * rng.normal(size=genes)[pairs].sum(1) + rng.normal(size=len(pairs))), pairs


@pytest.mark.parametrize("process", [one_unseen, both_unseen])
def test_rows_of_unseen_genes_are_covered_as_promised(process: object) -> None:
    """Known random processes with errors that rows share through genes: pooled rows cover too little."""
    rng = np.random.default_rng(0)
    found, pooled = [], []
    for _ in range(120):
        score, clusters = process(rng, 16)  # type: ignore[operator]
        new, _ = process(rng, 16)  # type: ignore[operator]
        found.append((new <= Quantile(score, clusters).at(0.9)).mean())
        pooled.append((new <= Quantile(score, np.arange(score.size)[:, None]).at(0.9)).mean())
    assert 0.88 <= np.mean(found) <= 0.92
    assert np.mean(pooled) < np.mean(found)


@pytest.fixture(scope="module")
def checkpoint(tiny_run: Path) -> Checkpoint:
    return load_checkpoint(tiny_run)


def calibrated(checkpoint: Checkpoint, sets: list[list[int]], sd: float = math.nan) -> Checkpoint:
    """Return a checkpoint trained on pairs of genes 0 … 9, with validation rows of given genes whose
    residuals are 1, 2, 3, …
    """
    train = MutantTable.from_matrix([[a, b] for a in range(10) for b in range(a)], value=np.zeros(45))
    rows = MutantTable.from_sets(sets, value=np.arange(1, len(sets) + 1))
    table = MutantTable.concatenate([train, rows])
    table.phenotype[:] = 1
    part = np.array([PARTS.index("train")] * 45 + [PARTS.index("validation")] * len(sets), np.uint8)
    zero = np.zeros(len(sets))
    return replace(
        checkpoint,
        known=replace(checkpoint.known, table=table, part=part),
        validation=ValidationRows(zero, zero + sd, np.full(len(sets), -1)),
    )


def ask(conformal: Conformal, sets: list[list[int]], level: float = 0.8, **columns: object) -> np.ndarray:
    table = MutantTable.from_sets(sets, **columns)  # type: ignore[arg-type]
    zero = np.zeros((len(sets), 1))
    around = conformal.intervals(table, zero, zero + 3.0, level)
    reasons = [""] * len(sets)
    for rows, why in around.reasons:
        for row in rows:
            reasons[row] += why
    np.testing.assert_array_equal(around.low, -around.high)
    return np.array(list(zip(around.high[:, 0], reasons, strict=True)), dtype=object)


SEEN = [[a, b] for a in range(5) for b in range(5, 9)]
ONE = [[a, b] for a in range(4) for b in range(10, 18)]


def test_queries_are_judged_by_rows_that_lack_as_much(checkpoint: Checkpoint) -> None:
    conformal = Conformal(calibrated(checkpoint, SEEN + ONE))
    seen, one, both, triple = ask(conformal, [[0, 9], [0, 20], [20, 21], [0, 1, 2]])
    assert (seen[0], seen[1]) == (17.0, "")  # the ceil(21 · 0.8)-th of 1 … 20
    assert 20 < one[0] <= 52
    assert np.isnan(both[0])
    assert "no validation row had 2 genes of which training has none (split random)" in both[1]
    assert np.isnan(triple[0])
    assert "no validation row had 3 genes that training has" in triple[1]
    assert conformal.rows(Group(0, 2, 1)) == (32, 8)
    assert conformal.rows(Group(0, 2, 0)) == (20, 20)


def test_a_model_of_a_random_split_says_that_it_met_no_unseen_gene(checkpoint: Checkpoint) -> None:
    high, why = ask(Conformal(calibrated(checkpoint, SEEN)), [[0, 20]])[0]
    assert np.isnan(high)
    assert why == (
        "no interval for epsilon: no validation row had 2 genes of which training lacks 1 (split random)"
    )


def test_too_few_rows_or_clusters_give_no_interval(checkpoint: Checkpoint) -> None:
    one_gene = [[a, 10] for a in range(9)] * 3
    conformal = Conformal(calibrated(checkpoint, SEEN + one_gene))
    assert ask(conformal, [[0, 9]], 0.95)[0][0] == 20.0
    seen, one = ask(conformal, [[0, 9], [0, 20]], 0.96)
    assert np.isnan(seen[0])
    assert "20 validation rows like it are too few for 0.96" in seen[1]
    assert "27 validation rows from 1 clusters like it are too few" in one[1]


def test_what_was_done_differently_gets_no_interval(checkpoint: Checkpoint) -> None:
    conformal = Conformal(calibrated(checkpoint, SEEN))
    rows = ask(conformal, [[0, 9], [0, 8]], kind=[Kind.ABSENT, Kind.ABSENT, Kind.ADDED, Kind.ABSENT])
    assert np.isfinite(rows[0][0])
    assert np.isnan(rows[1][0])
    assert rows[1][1] == "no interval: no validation row has this kind of perturbation"
    elsewhere = ask(conformal, [[0, 9]], condition=[1])[0]
    assert np.isnan(elsewhere[0])
    assert "condition" in elsewhere[1]


def test_intervals_widen_where_members_disagree(checkpoint: Checkpoint) -> None:
    conformal = Conformal(calibrated(checkpoint, SEEN, sd=1.0))
    high, _ = ask(conformal, [[0, 9]])[0]  # the query's sd is 3, offset and sd of the rows are 1
    assert high == pytest.approx(17.0 / (1 + 1) * (3 + 1))
    same = Conformal(calibrated(checkpoint, SEEN, sd=0.0))
    assert ask(same, [[0, 9]])[0][0] == 17.0


def test_intervals_are_wide_where_errors_are_large(checkpoint: Checkpoint) -> None:
    """A known process: errors grow with the prediction; each quarter of the widths keeps the promise."""
    rng = np.random.default_rng(0)
    predicted = rng.exponential(size=12_000)
    error = (0.2 + predicted) * rng.normal(size=12_000)
    # Two genes of ten make 45 sets: the rows are told apart by units.
    base = calibrated(checkpoint, [SEEN[i % len(SEEN)] for i in range(6_000)])
    table = base.known.table.take(np.arange(len(base.known.table)))
    table.value[45:] = (predicted + error)[:6_000]
    rows = ValidationRows(predicted[:6_000], np.full(6_000, math.nan), np.arange(6_000))
    conformal = Conformal(replace(base, known=replace(base.known, table=table), validation=rows))
    new = slice(6_000, None)
    asked = MutantTable.from_sets([SEEN[i % len(SEEN)] for i in range(6_000)])
    around = conformal.intervals(asked, predicted[new, None], np.full((6_000, 1), math.nan), 0.9)
    width, miss = (around.high - around.low)[:, 0], np.abs(error[new])
    assert np.corrcoef(np.argsort(np.argsort(width)), np.argsort(np.argsort(miss)))[0, 1] > 0.4
    order = np.argsort(width)
    covered = [(2 * miss <= width)[part].mean() for part in np.array_split(order, 4)]
    assert min(covered) >= 0.87
    assert max(covered) <= 0.94


def test_repeats_of_a_gene_set_are_one_cluster(checkpoint: Checkpoint) -> None:
    conformal = Conformal(calibrated(checkpoint, SEEN * 2))
    assert conformal.rows(Group(0, 2, 0)) == (40, 20)


def test_held_out_screens_are_clusters(checkpoint: Checkpoint) -> None:
    part = calibrated(checkpoint, SEEN)
    assert part.validation is not None
    units = replace(part.validation, unit=np.arange(20) // 5)
    assert Conformal(replace(part, validation=units)).rows(Group(0, 2, 0)) == (20, 4)


def test_refusals(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="without predictions of its validation rows: train again"):
        Conformal(replace(checkpoint, validation=None))
    with pytest.raises(CheckpointError, match="0 validation rows and knows 28"):
        empty = ValidationRows(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        Conformal(replace(checkpoint, validation=empty))
    for level in (0.0, 1.0, 90.0, math.nan):
        with pytest.raises(ConfigError, match="no coverage"):
            ask(Conformal(checkpoint), [[0, 1]], level)
