"""The stages against the merging of strain pairs that the digenic datasets were made with before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.phenotypes.stages.made import EPSILON, STUDIES
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Organism
from wildtype.phenotypes.measurements import Measurements
from wildtype.phenotypes.records import PerturbationKind
from wildtype.phenotypes.stages.build import build_dataset
from wildtype.phenotypes.stages.policies import Policies
from wildtype.sources.yeast.screens.digenic import StrainPairs

STRAINS = 12  # strain i is of gene i // 3: a deletion, then two alleles
ORGANISM = Organism("toy", GeneIndex([f"G{i}" for i in range(STRAINS // 3)], organism="toy"))
pairs = st.tuples(st.integers(0, STRAINS - 1), st.integers(0, STRAINS - 1)).filter(
    lambda p: p[0] // 3 != p[1] // 3
)


@st.composite
def strain_pairs(draw: st.DrawFn) -> StrainPairs:
    """Pairs in both orientations, with different numbers, and some wholly listed again as they are."""
    strains = draw(st.lists(pairs, min_size=1, max_size=25))
    value = np.random.default_rng(draw(st.integers(0, 99))).normal(size=len(strains))
    known = draw(st.lists(st.booleans(), min_size=len(strains), max_size=len(strains)))
    sd = np.where(known, np.abs(value) / 3, np.nan)
    numbered = {frozenset(pair): 0 for pair in strains}
    for pair in strains:
        numbered[frozenset(pair)] += 1
    # Only a pair with one number is listed again: where it has several, the two ways differ (see below).
    again = [i for i, pair in enumerate(strains) if numbered[frozenset(pair)] == 1 and i % 2]
    at = np.concatenate([np.arange(len(strains)), again]).astype(int)
    strain = np.array(strains, np.int64)[at]
    kind = np.where(strain % 3 == 0, Kind.ABSENT, Kind.REDUCED).astype(np.uint8)
    return StrainPairs(strain // 3, kind, strain, value[at], sd[at])


def as_measurements(given: StrainPairs) -> Measurements:
    recorded = np.where(
        given.kind == Kind.ABSENT, PerturbationKind.DELETION, PerturbationKind.TEMPERATURE_SENSITIVE
    )
    return Measurements.build(
        STUDIES[0], genes=ORGANISM.genes.names, gene=given.gene, kind=recorded,
        allele=given.strain.astype(str).astype(object), value=given.value, sd=given.sd, phenotypes=[EPSILON],
    )  # fmt: skip


def ordered(table: MutantTable) -> list[np.ndarray]:
    gene, kind = table.matrix(2), table.kind.reshape(-1, 2)
    order = np.lexsort((table.sd, table.value, kind[:, 1], kind[:, 0], gene[:, 1], gene[:, 0]))
    return [gene[order], kind[order], table.value[order], table.sd[order]]


@pytest.mark.parametrize("alleles", ["averaged", "apart"])
@given(data=st.data())
def test_the_same_table_from_strain_pairs(alleles: str, data: st.DataObject) -> None:
    given_pairs = data.draw(strain_pairs())
    before, _ = given_pairs.merged()[0].table(alleles)
    dataset = build_dataset(
        as_measurements(given_pairs), ORGANISM, name="toy", policies=Policies(alleles=alleles)
    )
    for old, new in zip(ordered(before), ordered(dataset.table), strict=True):
        np.testing.assert_allclose(new, old, rtol=0, atol=1e-6)
    lost = len(given_pairs) - len(before)
    assert sum(dataset.excluded.values()) == lost


def test_a_number_that_stands_twice_no_longer_counts_twice() -> None:
    strain = np.array([[0, 3], [3, 0], [0, 3]])
    given_pairs = StrainPairs(
        strain // 3, np.zeros((3, 2), np.uint8), strain, np.array([0.1, 0.1, 0.4]), np.full(3, np.nan)
    )
    assert given_pairs.merged()[0].value[0] == pytest.approx(0.2)
    dataset = build_dataset(as_measurements(given_pairs), ORGANISM, name="toy")
    assert dataset.table.value[0] == pytest.approx(0.25)
