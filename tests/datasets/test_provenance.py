"""Provenance groups: their studies of one mutant are one measurement, whatever the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.screened import screened_dataset, strain_crosses, tiny_grid
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.ceilings import noise_ceilings
from wildtype.datasets.crosses import split_crosses
from wildtype.datasets.leakage import leakage_report
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.provenance import (
    group_of,
    groups_of,
    measured_again,
    one_measurement,
    sources_of_group,
)
from wildtype.datasets.records import Environment, PhenotypeDefinition, Publication, Study
from wildtype.errors import SplitError
from wildtype.mutants import MutantTable
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex

GROUPS = {"lab": ("later", "earlier"), "other lab": ("third",)}
EPSILON = PhenotypeDefinition(name="epsilon", min_order=2)
Factory = Callable[..., Dataset]


def apart(studies: tuple[str, ...], pairs: int = 60, seed: int = 0) -> Dataset:
    """Return pairs of 24 genes, each measured by every study with another number, a phenotype per study."""
    whole = tiny_dataset()
    draw = np.random.default_rng(seed)
    rows = np.flatnonzero(whole.table.phenotype == 1)
    table = whole.table.take(draw.choice(rows, pairs, replace=False))
    parts = [
        replace(
            table,
            value=(table.value + draw.normal(0, 0.05, pairs)).astype(np.float32),
            phenotype=np.full(pairs, number),
        )
        for number in range(len(studies))
    ]
    names = [f"{study}:epsilon" for study in studies]
    return replace(
        whole,
        table=MutantTable.concatenate(parts),
        phenotypes=tuple(Phenotype(name, source=name, min_order=2) for name in names),
        targets=tuple(names),
        provenance=GROUPS,
    )


def measured(study: str, gene: list[list[int]], value: list[float], **columns: Any) -> Measurements:
    return Measurements.build(
        Study(name=study, publication=Publication(citation=study), organism="toy"),
        genes=[f"G{i}" for i in range(60)],
        gene=gene,
        value=value,
        phenotypes=[EPSILON],
        **columns,
    )


def test_a_study_without_a_group_stands_for_itself() -> None:
    assert [group_of(name, GROUPS) for name in ("later", "earlier", "fourth")] == ["lab", "lab", "fourth"]
    pooled = Phenotype("epsilon", source="earlier:epsilon + fourth:epsilon")
    assert groups_of([pooled], GROUPS) == {"lab", "fourth"}
    assert sources_of_group(["earlier:epsilon", "fourth:size"], GROUPS) == {
        "earlier:epsilon",
        "later:epsilon",
        "fourth:size",
    }


def test_phenotypes_are_one_measurement_by_group_and_name() -> None:
    kinds = [
        Phenotype("later:epsilon", source="later:epsilon"),
        Phenotype("earlier:epsilon", source="earlier:epsilon"),
        Phenotype("earlier:fitness", source="earlier:fitness"),
        Phenotype("third:epsilon", source="third:epsilon"),
        Phenotype("epsilon", source="fourth:epsilon"),
        Phenotype("epsilon", source="fifth:epsilon"),
    ]
    assert one_measurement(kinds, GROUPS).tolist() == [0, 0, 2, 3, 4, 5]
    assert one_measurement(kinds, {}).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["random", "one-unseen", "unseen", "any-unseen"])
def test_every_split_draws_one_side_for_both_numbers_of_a_pair(name: str) -> None:
    dataset = apart(("later", "earlier"), 200)
    split = dataset.split(name, 3, validation=0.2, test=0.2)
    side = np.full(len(dataset), -1)
    for number, rows in enumerate((split.train, split.validation, split.test)):
        side[rows] = number
        assert len(rows)
    np.testing.assert_array_equal(side[:200], side[200:])


def test_screens_of_one_group_have_the_same_side_of_every_cross() -> None:
    # By a hash of both names: another grid, another list and another order of genes change no side.
    first, n = screened_dataset(30), 30
    back = np.arange(n)[::-1].copy()
    grid = tiny_grid(n).without(np.array([5, 9])).remap(back, n)
    genes = GeneIndex(first.organism.genes.names[::-1], organism="tiny")
    table = screened_dataset(n, seed=1).table.remap(back, n)
    second = replace(
        first,
        organism=replace(first.organism, genes=genes, graphs=GeneGraphs([]), features=GeneFeatures([])),
        grid=grid,
        table=table.take(grid.measured(table)),
    )
    crosses = strain_crosses(grid)
    there = split_crosses(second, "random", 4).sides.of_table(crosses)
    here = split_crosses(first, "random", 4).sides.of_table(crosses.remap(back, n))
    np.testing.assert_array_equal(here, there)
    assert len(np.unique(here)) == 3
    assert not np.array_equal(split_crosses(first, "random", 5).sides.of_table(crosses.remap(back, n)), there)


def test_studies_of_one_group_are_one_screen() -> None:
    dataset = apart(("later", "earlier", "third", "fourth"))
    split = dataset.split("screen", by="study")
    on = [np.unique(dataset.table.phenotype[rows]) for rows in (split.train, split.validation, split.test)]
    assert sorted(map(tuple, (part.tolist() for part in on))) == [(0, 1), (2,), (3,)]
    split.check(dataset)
    # Without its group the two studies are two screens, and one could be learned from for the other.
    alone = replace(dataset, provenance={})
    sides = {
        tuple(np.unique(dataset.table.phenotype[alone.split("screen", s, by="study").test])) for s in range(9)
    }
    assert {(0,), (1,)} <= sides
    with pytest.raises(SplitError, match="has 2 screens by study, expected at least 3"):
        apart(("later", "earlier", "third")).split("screen", by="study")


def test_the_leakage_report_counts_them_as_replicates() -> None:
    dataset = apart(("later", "earlier", "third"))
    split = replace(dataset, provenance={}).split("screen", 0, by="study")
    (tested,) = np.unique(dataset.table.phenotype[split.test])
    for groups, expected in (({}, 0), ({"all": ("later", "earlier", "third")}, 60)):
        report = leakage_report(split, replace(dataset, provenance=groups))
        assert report.shared["test"].replicate == expected, tested
        assert report.shared["test"].gene_set == 60


def test_features_made_from_another_study_of_the_group_are_refused() -> None:
    dataset = apart(("later",))
    n = len(dataset.organism.genes)
    blocks = [
        FeatureBlock(name, np.zeros((n, 1), np.float32), ("x",), measured=(source,))
        for name, source in (("twin", "earlier:epsilon"), ("far", "third:epsilon"), ("size", "earlier:size"))
    ]
    dataset = replace(dataset, organism=replace(dataset.organism, features=GeneFeatures(blocks)))
    assert set(leakage_report(dataset.split("R"), dataset).refused_features) == {"twin"}
    alone = replace(dataset, provenance={})
    assert leakage_report(alone.split("R"), alone).refused_features == {}


def test_what_a_further_study_measured_again() -> None:
    pairs = [[i, i + 1] for i in range(4)]
    m = Measurements.concatenate(
        [
            measured("earlier", pairs, [0.1, 0.2, 0.3, 0.4]),
            measured("later", pairs[:3], [0.1, -0.2, 0.5]),
            measured("third", pairs, [0.1, 0.2, 0.3, 0.4]),
            measured("fourth", pairs, [0.1, 0.2, 0.3, 0.4]),
            measured("earlier", pairs[:1], [0.7], environments=[Environment(temperature=26)]),
        ]
    )
    # The first study of the group stands for it: an equal number, another number, in its environment.
    assert np.flatnonzero(measured_again(m, GROUPS)).tolist() == [0, 1, 2]
    assert not measured_again(m, {}).any()
    order = np.random.default_rng(0).permutation(len(m))
    np.testing.assert_array_equal(measured_again(m.take(order), GROUPS), measured_again(m, GROUPS)[order])


@pytest.mark.parametrize("between", ["measurements", "studies", "replicates"])
def test_a_group_is_no_replicate_of_itself_in_a_ceiling(between: str) -> None:
    draw = np.random.default_rng(0)
    pairs = [[i, i + 1] for i in range(50)]
    truth = draw.normal(size=50)
    value = {name: (truth + draw.normal(0, 0.5, 50)).tolist() for name in ("later", "earlier", "third")}
    value["earlier"][:5] = value["later"][:5]  # equal numbers: still one of them stays
    both = Measurements.concatenate([measured(name, pairs, value[name]) for name in ("later", "earlier")])
    (found,) = noise_ceilings(both, between=between, resamples=5, provenance=GROUPS).values()
    assert (found.genotypes, found.once, found.copies) == (0, 50, 50)
    assert "0 genotypes have replicates" in found.text
    (alone,) = noise_ceilings(both, between=between, resamples=5).values()
    assert alone.genotypes == 45
    # With another laboratory: the ceiling is that without the further study of the group.
    third = measured("third", pairs, value["third"])
    (of_all,) = noise_ceilings(
        Measurements.concatenate([both, third]), between=between, resamples=5, provenance=GROUPS
    ).values()
    (of_two,) = noise_ceilings(
        Measurements.concatenate([measured("later", pairs, value["later"]), third]),
        between=between,
        resamples=5,
    ).values()
    assert of_all.pearson == of_two.pearson
    assert of_all.genotypes == 50
