"""The leakage report counts what the sides share, and says so when a split breaks its own rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.datasets import Dataset, Split
from wildtype.datasets.leakage import leakage_report
from wildtype.datasets.query_pairs import query_pairs
from wildtype.datasets.splits import rows_sha256
from wildtype.errors import SplitError
from wildtype.files import finite
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.identity import mutant_id
from wildtype.organism import FeatureBlock, GeneFeatures

Factory = Callable[..., Dataset]


def split_of(dataset: Dataset, side: np.ndarray) -> Split:
    """Make a split by hand: 0 training, 1 validation, 2 test, 3 dropped."""
    train, validation, test = (np.flatnonzero(side == s) for s in range(3))
    dropped = {"by hand": int((side == 3).sum())}
    return Split(
        "random", 0, dataset.sha256, rows_sha256(dataset), len(side), train, validation, test, dropped
    )


def by_definition(dataset: Dataset, rows: np.ndarray, train: np.ndarray) -> dict[str, int]:
    """Count with sets of tuples what `Shared` counts."""
    t, sets = dataset.table, dataset.table.sets()
    spans = [slice(a, b) for a, b in zip(t.offsets[:-1], t.offsets[1:], strict=True)]
    dose = np.full(len(t.gene), np.nan) if t.dose is None else t.dose
    mutants = [(sets[i], t.kind[s].tobytes(), str(dose[s].tolist())) for i, s in enumerate(spans)]
    keys = {
        "gene_set": sets,
        "gene_set_and_condition": [(s, c) for s, c in zip(sets, t.condition, strict=True)],
        "mutant": mutants,
        "replicate": [(m, c, p) for m, c, p in zip(mutants, t.condition, t.phenotype, strict=True)],
        "value": [(s, v) for s, v in zip(sets, t.value, strict=True)],
    }
    out = {name: sum(key[i] in {key[j] for j in train} for i in rows) for name, key in keys.items()}
    seen = {g for i in train for g in sets[i]}
    genes = {g for i in rows for g in sets[i]}
    known = [sum(g in seen for g in sets[i]) for i in rows]
    order = [len(sets[i]) for i in rows]
    triples = sorted({s for s in sets if len(s) == 3})
    queries = query_pairs(np.array(triples, dtype=np.int64).reshape(-1, 3)).tolist()
    of_set = dict(zip(triples, map(tuple, queries), strict=True))
    pairs = {of_set[sets[i]] for i in rows if len(sets[i]) == 3}
    together = {pair for i in train for pair in combinations(sets[i], 2)}
    return out | {
        "rows": len(rows),
        "all_genes": sum(k == o for k, o in zip(known, order, strict=True)),
        "no_gene": sum(k == 0 < o for k, o in zip(known, order, strict=True)),
        "some_genes": sum(0 < k < o for k, o in zip(known, order, strict=True)),
        "genes": len(genes),
        "genes_in_training": len(genes & seen),
        "query_pairs": len(pairs),
        "query_pairs_in_training": len(pairs & together),
    }


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(4, 12), st.booleans())
def test_counts_are_those_of_plain_sets(
    make_random_dataset: Factory, seed: int, genes: int, dosed: bool
) -> None:
    dataset = make_random_dataset(seed, genes, 60, (0, 1, 2, 3, 4))
    rng = np.random.default_rng(seed)
    table = replace(dataset.table, value=rng.integers(0, 3, len(dataset)).astype(np.float32))
    if dosed:
        table = replace(table, dose=rng.choice(np.float32([np.nan, 1, 2]), len(table.gene)))
    dataset = replace(dataset, table=table)
    split = split_of(dataset, rng.choice(4, len(dataset), p=[0.5, 0.2, 0.2, 0.1]))
    report = leakage_report(split, dataset)
    for part in ("validation", "test"):
        assert vars(report.shared[part]) == by_definition(dataset, getattr(split, part), split.train)
    assert json.loads(json.dumps(finite(report.to_json())))["shared"]["test"]["rows"] == split.test.size


@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), min_size=1, max_size=8))
def test_mutants_are_equal_for_equal_genes_kinds_and_doses(sets: list[list[int]]) -> None:
    rng = np.random.default_rng(len(sets))
    total = sum(map(len, sets))
    kind = rng.choice([int(Kind.ABSENT), int(Kind.ADDED)], total)
    dose = rng.choice(np.float32([np.nan, 0.5]), total)
    table = MutantTable.from_sets(sets, kind=kind, dose=dose)
    spans = zip(table.offsets[:-1], table.offsets[1:], strict=True)
    plain = [
        str((table.gene[a:b].tolist(), table.kind[a:b].tolist(), table.dose[a:b].tolist())) for a, b in spans
    ]
    found = mutant_id(table)
    assert [[a == b for a in found] for b in found] == [[a == b for a in plain] for b in plain]


def test_a_split_that_leaks_is_reported(make_dataset: Factory) -> None:
    dataset = make_dataset([(0, 1), (0, 1), (1, 2), (3, 4), (5, 6)], 7, value=np.array([1, 1, 2, 3, 4.0]))
    report = leakage_report(split_of(dataset, np.array([0, 2, 0, 1, 3])), dataset)
    assert "1 gene sets are on two sides" in report.broken
    assert report.lines()[0] == f"RULE BROKEN: {report.broken}"
    test = next(line for line in report.lines() if line.startswith("test"))
    assert "gene set shared by 1 (100.0%)" in test
    assert "same gene set and same number 1 (100.0%)" in test
    assert "on no side: 1 by hand" in report.lines()


def test_a_split_that_keeps_its_rule(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(1, 12, 200, (2, 3))
    report = leakage_report(dataset.split("G", 3), dataset)
    assert report.broken == ""
    assert report.lines()[0] == f"rule kept: {report.rule}"
    assert report.shared["test"].no_gene == report.rows["test"]
    assert report.shared["test"].genes_in_training == 0


def test_another_dataset_is_refused(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(30)], 31)
    split = dataset.split("R")
    with pytest.raises(SplitError, match="another version of dataset 'toy'"):
        leakage_report(split, make_dataset([(g, g + 2) for g in range(29)], 31))


def test_features_of_the_target_and_of_its_study(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(30)], 31)
    measured = {"own": "screen:tau", "sister": "screen:fitness", "other": "atlas:size", "none": ""}
    blocks = [
        FeatureBlock(name, np.zeros((31, 1), np.float32), ("x",), measured=(source,) * bool(source))
        for name, source in measured.items()
    ]
    dataset = replace(
        dataset,
        organism=replace(dataset.organism, features=GeneFeatures(blocks)),
        phenotypes=tuple(replace(p, source="screen:tau") for p in dataset.phenotypes),
        single_fitness=np.ones(31, np.float32),
        single_fitness_source="screen:single-fitness",
    )
    report = leakage_report(dataset.split("R"), dataset)
    assert report.refused_features == {"own": ("screen:tau",)}
    assert report.same_study_features == {
        "sister": ("screen:fitness",),
        "single_fitness": ("screen:single-fitness",),
    }
    lines = report.lines()
    assert lines[-2].endswith("models are not given: own (screen:tau)")
    assert report.lines(features=False) == lines[:-2]
    same = replace(dataset, single_fitness_source="screen:tau")
    assert "single_fitness" in leakage_report(dataset.split("R"), same).refused_features
    # Phenotypes pooled over studies name them all.
    pooled = replace(
        dataset, phenotypes=tuple(replace(p, source="a:tau + atlas:tau") for p in dataset.phenotypes)
    )
    assert leakage_report(dataset.split("R"), pooled).same_study_features == {"other": ("atlas:size",)}
