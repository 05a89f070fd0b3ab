from __future__ import annotations

import math

import numpy as np
import pytest

from tests.datasets.stages.made import EPSILON, ORGANISM, SALT, WARM, measured, one, sensitive
from wildtype.datasets import Dataset
from wildtype.datasets.records import Measurement
from wildtype.datasets.stages.aggregate import SEVERAL_P, agreed, average, sd_floor, weighted
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import ConfigError
from wildtype.mutants import Kind
from wildtype.organism import Organism

nan = math.nan


def built(*records: Measurement, organism: Organism = ORGANISM, **settings: object) -> Dataset:
    return build_dataset(measured(*records), organism, name="toy", policies=Policies(**settings))  # type: ignore[arg-type]


def counts(dataset: Dataset, step: str) -> dict[str, int]:
    return next(report.counts for report in dataset.stages if report.step == step)


def numbers(dataset: Dataset) -> list[tuple[float, float]]:
    return list(zip(dataset.table.value.tolist(), dataset.table.sd.tolist(), strict=True))


def test_average() -> None:
    value, sd = average(
        np.array([0, 0, 1, 2, 2, 2]), np.array([1.0, 3, 5, 1, 1, 4]), np.array([3.0, 4, 2, nan, nan, nan])
    )
    assert value.tolist() == [2, 5, 2]
    np.testing.assert_allclose(sd, [math.sqrt(12.5 + 1), 2, nan])


def test_a_group_of_one_keeps_its_numbers_to_the_last_bit() -> None:
    given, errors = np.array([0.1, 1 / 3]), np.array([0.07, 1e-9])
    group, floor = np.arange(2), np.full(2, 0.01)
    for value, sd in (average(group, given, errors), weighted(group, given, errors, floor)):
        assert (value.tobytes(), sd.tobytes()) == (given.tobytes(), errors.tobytes())


def test_inverse_variance() -> None:
    group = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    value = np.array([1.0, 2, 1, 9, 1, 2, 1, 4])
    sd = np.array([0.5, 1, 0.5, nan, nan, nan, 0, 1])
    mean, spread = weighted(group, value, sd, np.full(8, 0.5))
    np.testing.assert_allclose(mean, [(4 * 1 + 2) / 5, 1, 1.5, (4 * 1 + 4) / 5])
    np.testing.assert_allclose(spread, [1 / math.sqrt(5), 0.5, nan, 1 / math.sqrt(5)])


def test_inverse_variance_without_any_noise() -> None:
    mean, spread = weighted(np.zeros(2, int), np.array([1.0, 3]), np.zeros(2), np.zeros(2))
    assert (mean.tolist(), spread.tolist()) == ([2], [0])


def test_agreed_p_values() -> None:
    group = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4])
    p = np.array([1 / 3, 0.1, 0.1, 0.1, 0.2, 0.1, nan, nan, nan])
    one, lost = agreed(group, p, np.ones(9, bool))
    np.testing.assert_array_equal(one, [1 / 3, 0.1, nan, nan, nan])
    assert lost == 2
    one, lost = agreed(group, p, np.array([0, 1, 1, 0, 1, 1, 0, 1, 1], bool))
    np.testing.assert_array_equal(one, [nan, 0.1, 0.2, 0.1, nan])
    assert lost == 0
    one, lost = agreed(group[:0], p[:0], np.zeros(0, bool))
    assert (one.size, lost) == (0, 0)


def test_floor_of_sd() -> None:
    phenotype = np.array([1, 0, 1, 1, 2, 1, 1])
    sd = np.array([0.4, 9, 0.2, nan, nan, 0, 0.8])
    np.testing.assert_allclose(sd_floor(phenotype, sd)[phenotype], [0.04, 0.9, 0.04, 0.04, 0, 0.04, 0.04])


def test_a_number_that_stands_twice_is_one_row() -> None:
    twice = [one("G1", value=0.3, sd=0.1, replicate=label) for label in ("", "a", "b")]
    other = [one("G1", value=0.3, sd=0.2), one("G1", value=0.3), one("G1", value=0.3, n=3)]
    dataset = built(*twice, *other, replicates="apart", alleles="apart")
    assert numbers(dataset)[:2] == [
        (pytest.approx(0.3), pytest.approx(0.1)),
        (pytest.approx(0.3), pytest.approx(0.2)),
    ]
    assert len(dataset) == 3
    assert counts(dataset, "listed again") == {"merged: duplicate entry (same value and sd)": 3}
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        rows = (one("G1", value=first, sd=second), one("G1", value=second, sd=first))
        zeros = built(*rows, replicates="apart", alleles="apart")
        assert counts(zeros, "listed again") == {"merged: duplicate entry (same value and sd)": 1}
        assert not np.signbit([zeros.table.value, zeros.table.sd]).any()


def test_another_environment_allele_or_dose_is_no_repeat_unless_pooled() -> None:
    rows = [one("G1"), one("G1", environment=WARM), one(sensitive("G2", "a")), one(sensitive("G2", "b"))]
    dataset = built(*rows, alleles="apart")
    assert (len(dataset), dataset.excluded) == (4, {})
    pooled = built(*rows, alleles="apart", environments="pooled")
    assert pooled.excluded == {"merged: duplicate entry (same value and sd)": 1}
    assert pooled.conditions == ("pooled",)


def test_replicates() -> None:
    rows = [one("G1", value=1.0, sd=0.1), one("G1", value=2.0, sd=0.2), one("G1", value=9.0)]
    assert numbers(built(*rows)) == [(4, pytest.approx(math.sqrt(0.025 + 38 / 3)))]
    weighed = built(*rows, replicates="inverse variance")
    assert numbers(weighed) == [(pytest.approx(1.2), pytest.approx(1 / math.sqrt(125)))]
    assert counts(weighed, "replicates") == {
        "replicate without sd beside one that has it": 1,
        "merged: replicates of one mutant": 1,
    }
    assert len(built(*rows, replicates="apart", alleles="apart")) == 3


def p_values(dataset: Dataset) -> list[float] | None:
    return None if dataset.table.p is None else [round(p, 6) for p in dataset.table.p.tolist()]


def test_a_row_that_is_kept_keeps_its_p_value() -> None:
    rows = [one("G1", p=1 / 3), one("G2"), one("G4", p=-0.0)]
    kept = built(*rows)
    np.testing.assert_array_equal(kept.table.p, np.float32([1 / 3, nan, 0]))  # type: ignore[arg-type]
    assert not np.signbit(kept.table.p[2])  # type: ignore[index]
    assert built(one("G1"), one("G2")).table.p is None
    dropped = built(one("G1"), one("X9", p=0.5))  # the row with the p-value is left out
    assert dropped.table.p is None
    added = built(one("G1", p=0.5), essential="fitness 0")
    np.testing.assert_array_equal(added.table.p, np.float32([0.5, nan, nan]))  # type: ignore[arg-type]


def test_p_values_of_a_number_that_stands_twice() -> None:
    def again(*p: float) -> Dataset:
        return built(*[one("G1", p=each) for each in p], one("G2", p=0.5))

    assert p_values(again(0.01, 0.01)) == [0.01, 0.5]
    assert p_values(again(0.01, nan, 0.01)) == [0.01, 0.5]  # the same number: what one row says holds
    assert counts(again(0.01, nan), "listed again") == {"merged: duplicate entry (same value and sd)": 1}
    different = again(0.01, 0.02, nan)
    np.testing.assert_array_equal(different.table.p, np.float32([nan, 0.5]))  # type: ignore[arg-type]
    assert counts(different, "listed again") == {
        "merged: duplicate entry (same value and sd)": 2,
        SEVERAL_P: 1,
    }


@pytest.mark.parametrize("policy", ["mean", "inverse variance"])
def test_p_values_of_replicates(policy: str) -> None:
    def merged(*p: float) -> Dataset:
        numbers = [one("G1", value=i / 8, sd=0.1, p=each) for i, each in enumerate(p)]
        return built(*numbers, one("G2", p=0.5), replicates=policy)

    assert p_values(merged(0.01, 0.01, 0.01)) == [0.01, 0.5]
    assert SEVERAL_P not in counts(merged(0.01, 0.01), "replicates")
    for different in (merged(0.01, 0.02), merged(0.01, nan)):
        np.testing.assert_array_equal(different.table.p, np.float32([nan, 0.5]))  # type: ignore[arg-type]
        assert counts(different, "replicates")[SEVERAL_P] == 1
    unknown = merged(nan, nan)
    np.testing.assert_array_equal(unknown.table.p, np.float32([nan, 0.5]))  # type: ignore[arg-type]
    assert SEVERAL_P not in counts(unknown, "replicates")


def test_replicates_left_out_of_a_mean_have_no_say_in_its_p_value() -> None:
    rows = [one("G1", value=1.0, sd=0.1, p=0.01), one("G1", value=9.0, p=0.9)]
    weighed = built(*rows, replicates="inverse variance")
    assert p_values(weighed) == [0.01]
    assert SEVERAL_P not in counts(weighed, "replicates")
    apart = built(*rows, replicates="apart", alleles="apart")
    assert p_values(apart) == [0.01, 0.9]


def test_p_values_of_alleles() -> None:
    def averaged(*p: float) -> Dataset:
        return built(*[one(sensitive("G1", f"a{i}"), value=i, p=each) for i, each in enumerate(p)])

    assert p_values(averaged(0.01, 0.01)) == [0.01]
    assert averaged(0.01, 0.02).table.p is None
    assert counts(averaged(0.01, 0.02), "alleles") == {"merged: alleles averaged": 1, SEVERAL_P: 1}


def test_alleles() -> None:
    rows = [
        one(sensitive("G1", "a"), value=1.0, sd=0.1), one(sensitive("G1", "a"), value=3.0, sd=0.1),
        one(sensitive("G1", "b"), value=8.0, sd=0.3), one("G1", value=7.0),
    ]  # fmt: skip
    averaged = built(*rows)  # alleles count alike, however often each was measured; deletions are no allele
    assert averaged.table.kind.tolist() == [Kind.ABSENT, Kind.REDUCED]
    assert averaged.table.value.tolist() == [7, 5]
    assert averaged.table.sd[1] == pytest.approx(math.sqrt((1.01 + 0.09) / 2 + 9))
    apart = built(*rows, alleles="apart")
    assert apart.table.value.tolist() == [7, 2, 8]


def test_lethal_deletions_that_were_not_measured() -> None:
    rows = [
        one("G1", value=0.9), one("G3", value=0.2, environment=SALT), one(sensitive("G4"), value=0.5),
        one("G3", "G4", value=0.1), one("G1", "G2", phenotype=EPSILON),
    ]  # fmt: skip
    kept = built(*rows)
    assert len(kept) == 5
    dataset = built(*rows, essential="fitness 0")
    added = dataset.table.take(dataset.table.value == 0)
    assert [ORGANISM.genes.names[g] for g in added.gene] == ["G4"]  # a deletion of G3 was measured
    assert (added.kind.tolist(), added.condition.tolist()) == ([Kind.ABSENT], [0])
    assert np.isnan(added.sd).all()
    assert dataset.phenotypes[added.phenotype[0]].name == "fitness"
    assert counts(dataset, "essential") == {"added: essential genes with fitness 0, assumed": 1}
    assert "1 rows give essential genes fitness 0: assumed, not measured" in dataset.notes
    assert dataset.sha256 == built(*rows[::-1], essential="fitness 0").sha256


def test_lethal_deletions_of_each_study() -> None:
    rows = [one("G3", value=0.2), one("G1", value=0.4, study="second2020")]
    dataset = built(*rows, essential="fitness 0", studies="apart")
    names = [dataset.phenotypes[p].name for p in dataset.table.phenotype]
    genes = [ORGANISM.genes.names[g] for g in dataset.table.gene]
    assert list(zip(names, genes, dataset.table.value.round(1).tolist(), strict=True)) == [
        ("first2018:fitness", "G3", pytest.approx(0.2)),
        ("first2018:fitness", "G4", 0),
        ("second2020:fitness", "G1", pytest.approx(0.4)),
        ("second2020:fitness", "G3", 0),
        ("second2020:fitness", "G4", 0),
    ]


def test_an_organism_that_does_not_know_its_essential_genes() -> None:
    bare = Organism("bare", ORGANISM.genes)
    assert len(built(one("G1", "G2", phenotype=EPSILON), organism=bare, essential="fitness 0")) == 1
    with pytest.raises(ConfigError, match="'bare' does not list essential genes"):
        built(one("G1"), organism=bare, essential="fitness 0")


def test_an_equal_number_with_another_replicate_label_counts_once_per_replicate() -> None:
    labels = ((0.5, "b"), (0.5, "a"), (0.5, "b"), (0.8, "c"), (0.8, "c"))
    rows = [one("G1", value=v, replicate=label) for v, label in labels]
    policies = {"listed_again": "once per replicate", "replicates": "mean and sd"}
    for given in (rows, rows[::-1]):
        dataset = built(*given, **policies)
        assert numbers(dataset) == [(pytest.approx(0.6), pytest.approx(math.sqrt(0.03)))]
        assert counts(dataset, "listed again") == {"merged: duplicate entry (same value and sd)": 2}
    added = built(*rows, essential="fitness 0", **policies)
    assert added.table.value.tolist() == [pytest.approx(0.6), 0, 0]


def test_replicates_that_agree_count_each() -> None:
    rows = [one("G1", value=v, replicate=label) for v, label in ((0.5, "a"), (0.5, "b"), (0.8, "c"))]
    rows += [one("G2", value=1.0, replicate=label) for label in "ab"]
    every = {"listed_again": "every", "replicates": "mean and sd"}
    assert numbers(built(*rows, one("G3", value=2.0, sd=0.3), **every)) == [
        (pytest.approx(0.6), pytest.approx(math.sqrt(0.03))),
        (pytest.approx(1.0), pytest.approx(0.0)),
        (pytest.approx(2.0), pytest.approx(0.3)),
    ]
