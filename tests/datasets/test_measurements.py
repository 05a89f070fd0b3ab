"""Records, and the same facts in columns."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wildtype.datasets.measurements import Measurements, bits, coded
from wildtype.datasets.records import (
    Compound,
    Environment,
    Genotype,
    Measurement,
    Perturbation,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.errors import DatasetError

STUDY = Study(name="tiny2024", publication=Publication(citation="Tiny et al. 2024"), organism="tiny")
OTHER = Study(name="other2025", publication=Publication(citation="Other et al. 2025"), organism="tiny")
EPSILON = PhenotypeDefinition(name="epsilon", min_order=2)
SIZE = PhenotypeDefinition(name="size", level="trait")

maybe = st.just(math.nan) | st.floats(0, 1e6)
names = st.sampled_from(["g1", "g2", "g3", "g4"])
perturbations = st.builds(
    Perturbation,
    gene=names,
    kind=st.sampled_from(PerturbationKind),
    allele=st.sampled_from(["", "a-1", "Δ"]),
    dose=maybe,
)
genotypes = st.lists(perturbations, max_size=4, unique_by=lambda p: p.id).map(
    lambda ps: Genotype(perturbations=tuple(ps))
)
environments = st.builds(
    Environment,
    medium=st.sampled_from(["YPD", "SC"]),
    temperature=st.sampled_from([math.nan, 26.0, 30.0]),
    compounds=st.lists(
        st.builds(Compound, name=st.sampled_from(["NaCl", "DMSO"]), dose=maybe, unit=st.just("mM")),
        max_size=2,
        unique_by=lambda c: c.name,
    ).map(tuple),
)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    phenotype = draw(st.sampled_from([EPSILON, SIZE]))
    return Measurement(
        study=draw(st.sampled_from(["tiny2024", "other2025"])),
        genotype=draw(genotypes),
        environment=draw(environments),
        phenotype=phenotype,
        trait=draw(st.sampled_from(["area", "length"])) if phenotype is SIZE else "",
        value=draw(st.floats(-1e6, 1e6)),
        sd=draw(maybe),
        se=draw(maybe),
        p=draw(st.just(math.nan) | st.floats(0, 1)),
        n=draw(st.integers(0, 9)),
        replicate=draw(st.sampled_from(["", "MATa"])),
        reference=draw(st.sampled_from(["", "BY4741"])),
    )


def plain(records: list[Measurement]) -> list[str]:
    return [repr(record.model_dump()) for record in records]  # NaN is not equal to itself, its text is


@given(st.lists(measurements(), min_size=1, max_size=8))
def test_columns_say_what_the_records_say(records: list[Measurement]) -> None:
    columns = Measurements.from_records([STUDY, OTHER], records)
    assert plain(list(columns.records())) == plain(records)
    keys = ["".join(f"{half:016x}" for half in row.tolist()) for row in columns.genotype_key]
    assert keys == [record.genotype.id for record in records]


@given(st.lists(measurements(), min_size=2, max_size=8), st.data())
def test_taking_and_putting_together(records: list[Measurement], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(records) - 1))
    first = Measurements.from_records([STUDY, OTHER], records[:cut])
    second = Measurements.from_records([OTHER, STUDY], records[cut:])
    joined = Measurements.concatenate([first, second])
    assert plain(list(joined.records())) == plain(records)
    assert len(joined.studies) == 2
    assert len(set(joined.genes)) == len(joined.genes)
    rows = data.draw(st.permutations(range(len(records))))
    assert plain(list(joined.take(rows).records())) == plain([records[row] for row in rows])


@given(genotypes, st.randoms())
def test_order_of_perturbations_does_not_matter(genotype: Genotype, random: object) -> None:
    turned = list(genotype.perturbations)[::-1]
    assert Genotype(perturbations=tuple(turned)).id == genotype.id


def test_identity_never_drops_allele_kind_dose_or_environment() -> None:
    base = Perturbation(gene="g1", allele="a-1", dose=2.0)
    others = [
        base.model_copy(update=change)
        for change in (
            {"allele": "a-2"},
            {"kind": PerturbationKind.SUPPRESSOR},
            {"dose": 3.0},
            {"gene": "g2"},
        )
    ]
    ids = {Genotype(perturbations=(p,)).id for p in (base, *others)}
    assert len(ids) == 5
    assert Environment(medium="YPD", temperature=26).id != Environment(medium="YPD", temperature=30).id
    salt, drug = Compound(name="NaCl", dose=1, unit="M"), Compound(name="DMSO")
    assert Environment(compounds=(salt, drug)).id == Environment(compounds=(drug, salt)).id


@given(st.lists(st.text(max_size=3), max_size=20))
def test_texts_become_codes_in_ascending_order(texts: list[str]) -> None:
    distinct, codes = coded(texts)
    assert list(distinct) == sorted(set(texts))
    assert [distinct[code] for code in codes] == texts


def test_perturbations_that_differ_in_sign_or_knowledge_of_the_dose_differ() -> None:
    doses = [math.nan, -1.0, 0.0, -0.0]
    columns = Measurements.build(
        STUDY, genes=["g1"], gene=[0, 0, 0, 0], dose=doses, value=[1, 1, 1, 1], phenotypes=[EPSILON]
    )
    records = [Genotype(perturbations=(Perturbation(gene="g1", dose=dose),)).id for dose in doses]
    keys = ["".join(f"{half:016x}" for half in row.tolist()) for row in columns.genotype_key]
    assert keys == records
    assert len(set(keys)) == 4


def test_every_column_is_carried() -> None:
    columns = {field.name for field in fields(Measurements)}
    one = Measurements.build(STUDY, genes=["g1"], gene=[0], value=[1.0], phenotypes=[EPSILON])
    assert columns == set(vars(one)) - {"order", "row", "distinct_perturbations", "genotype_key"}
    both = Measurements.concatenate([one, one])
    assert len(both) == 2
    assert both.take([1]).value.tolist() == [1.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": [math.nan]}, "not a number"),
        ({"sd": -1.0}, "negative sd"),
        ({"p": 1.5}, "p-value outside"),
        ({"trait": ["area"]}, "a trait for a phenotype of the whole cell"),
        ({"gene": [[0, 0]]}, "one perturbation twice"),
        ({"gene": [7]}, "code of gene"),
        ({"dose": [math.inf]}, "infinite dose"),
        ({"allele": ["a\n1"]}, "alleles .* 'a.*n1'"),
        ({"replicate": [" b"]}, "replicates .* ' b'"),
    ],
)
def test_a_row_that_no_record_accepts_is_refused(columns: dict[str, object], message: str) -> None:
    given = {"gene": [0], "value": [1.0]} | columns
    with pytest.raises(DatasetError, match=message):
        Measurements.build(STUDY, genes=["g1"], phenotypes=[EPSILON], **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [{"value": math.inf}, {"value": math.nan}, {"sd": -1}, {"p": 2}, {"trait": "x"}, {"colour": "red"}],
)
def test_records_refuse_the_same(change: dict[str, object]) -> None:
    good = {"study": "s", "genotype": Genotype(perturbations=()), "environment": Environment(),
            "phenotype": EPSILON, "value": 1.0}  # fmt: skip
    Measurement(**good)  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        Measurement(**good | change)  # type: ignore[arg-type]


def test_flat_rows_of_different_order() -> None:
    built = Measurements.build(
        STUDY,
        genes=["g1", "g2", "g3"],
        gene=[0, 1, 2, 0],
        offsets=[0, 0, 1, 4],
        value=[1, 2, 3],
        kind=np.array([0, 2, 1, 0]),
        allele=["", "ts-1", "", ""],
        phenotypes=[EPSILON],
        replicate=["", "a", "b"],
    )
    assert built.order.tolist() == [0, 1, 3]
    assert [p.gene for p in built.genotype(2).perturbations] == ["g1", "g2", "g3"]
    assert built.genotype(0).id == "0" * 32


def test_bits_tell_zeros_apart_and_no_two_nans() -> None:
    odd = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    spelled = bits(np.array([math.nan, odd, 0.0, -0.0])).tolist()
    assert spelled[0] == spelled[1]
    assert len(set(spelled)) == 3
