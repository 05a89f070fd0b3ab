"""Headings of the Yeast Phenome tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.records import Compound, Environment, PerturbationKind
from wildtype.errors import SourceError
from wildtype.sources.yeast.traits.headings import parse_environment, parse_heading


@pytest.mark.parametrize(
    ("condition", "medium", "expected"),
    [
        ("standard [standard]", "", Environment(medium="standard")),
        ("YPD [standard]", "", Environment(medium="YPD")),
        ("standard", "YPG [5%]", Environment(medium="YPG [5%]")),
        ("YPG [3%]", "", Environment(medium="YPG [3%]")),
        (
            "benomyl [30 ug/ml]",
            "YPD",
            Environment(medium="YPD", compounds=(Compound(name="benomyl", dose=30, unit="ug/ml"),)),
        ),
        (
            "glucitol [1.5 M], time [15 gen]",
            "YPD",
            Environment(
                medium="YPD, time 15 gen", compounds=(Compound(name="glucitol", dose=1.5, unit="M"),)
            ),
        ),
        ("pH [8], time [5 gen]", "YPD", Environment(medium="YPD, pH 8, time 5 gen")),
        (
            "YPG+ 0.1mM dinitrophenol (dinitrophenol [0.1 mM], YPG [3%])",
            "",
            Environment(medium="YPG [3%]", compounds=(Compound(name="dinitrophenol", dose=0.1, unit="mM"),)),
        ),
        (
            "YPD+ 0.25mM dinitrophenol (dinitrophenol [0.25 mM])",
            "",
            Environment(medium="YPD", compounds=(Compound(name="dinitrophenol", dose=0.25, unit="mM"),)),
        ),
    ],
)
def test_what_is_stated_becomes_medium_and_compounds(
    condition: str, medium: str, expected: Environment
) -> None:
    assert parse_environment(condition, medium).id == expected.id


@pytest.mark.parametrize(
    ("condition", "medium"),
    [
        ("YPGal, time [5 gen]", "YPD"),  # two media: which one it was is not for us to say
        ("SC -Lys, time [5 gen]", "YPD"),
        ("SD + His + Leu + Ura, time [5 gen]", "YPD"),
        ("heat shock", ""),
        ("benomyl [a lot]", "YPD"),
        ("benomyl [1 uM], benomyl [2 uM]", "YPD"),
    ],
)
def test_what_would_have_to_be_guessed_is_kept_as_text(condition: str, medium: str) -> None:
    expected = f"{condition} | {medium}" if medium else condition
    assert parse_environment(condition, medium).id == Environment(medium=expected).id


item = st.one_of(
    st.sampled_from(
        ["standard", "YPD", "YPG [3%]", "SC -Lys", "pH [8]", "time [5 gen]", "standard [standard]"]
    ),
    st.text("abcXYZ01+- []%./", min_size=1).map(lambda text: " ".join(text.split())).filter(bool),
)


@given(st.lists(item, min_size=1, max_size=3), st.sampled_from(["", "YPD", "SD[low] + Met"]))
def test_no_word_of_a_heading_is_lost(items: list[str], medium: str) -> None:
    found = str(parse_environment(", ".join(items), medium))
    for part in items:
        name = part.split(" [")[0]
        assert name == "standard" or name in found
    assert medium in found


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z]{3,9}", fullmatch=True).filter(
                lambda name: name not in ("time", "standard")
            ),
            st.integers(1, 500),
            st.sampled_from(["uM", "mM", "M", "ug/ml", "%"]),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda item: item[0],
    )
)
def test_compounds_and_doses_are_read_back(items: list[tuple[str, int, str]]) -> None:
    text = ", ".join(f"{name} [{dose}{'' if unit == '%' else ' '}{unit}]" for name, dose, unit in items)
    found = parse_environment(text, "SC")
    assert found.medium == "SC"
    assert sorted((c.name, c.dose, c.unit) for c in found.compounds) == sorted(items)


def test_a_heterozygous_deletion_is_half_the_dose_and_no_deletion() -> None:
    het = parse_heading("het | growth (x) | YPD [standard] | Someone A~Other B, 2002", "file").strain
    assert (het.kind, het.dose) == (PerturbationKind.REDUCED_EXPRESSION, 0.5)
    hom = parse_heading("hom | growth (x) | YPD [standard] | Someone A~Other B, 2002 | remark", "file").strain
    assert hom.kind == PerturbationKind.DELETION
    assert math.isnan(hom.dose)


@pytest.mark.parametrize(
    ("heading", "message"),
    [
        ("growth", "expected strain | phenotype | condition"),
        ("hap a | growth | Someone A~Other B, 2002", "expected strain | phenotype | condition"),
        ("hap a |  | standard | Someone A~Other B, 2002", "expected strain | phenotype | condition"),
        ("hap a | growth | a\x01b | Someone A~Other B, 2002", "expected plain text"),
        ("hap a | growth | a\xa0 [1 M] | Someone A~Other B, 2002", "expected plain text"),
        ("tetraploid | growth | standard | Someone A~Other B, 2002", "received the strain 'tetraploid'"),
    ],
)
def test_a_heading_of_another_form_is_refused_with_its_place(heading: str, message: str) -> None:
    with pytest.raises(SourceError, match="table.tsv, line 1: ") as caught:
        parse_heading(heading, "table.tsv, line 1")
    assert message in str(caught.value)
