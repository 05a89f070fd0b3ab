"""Strain identifiers and allele names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.records import PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.sga_strains import Strains, parse_allele, parse_strain

ORFS = st.from_regex(r"Y[A-P][LR][0-9]{3}[WC](-[A-Z])?|Q0[0-9]{3}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "orfs", "kind", "short"),
    [
        ("YAR002W+YML107C_tm2550", ("YAR002W", "YML107C"), "tm", "tm2550"),
        ("YNL042W-B+YMR160W_tm2731", ("YNL042W-B", "YMR160W"), "tm", "tm2731"),
        ("YDL227C+YAL043C-A_tm1", ("YDL227C", "YAL043C-A"), "tm", "tm1"),
        ("URA3control+YDL227C_y13096", ("URA3control", "YDL227C"), "y", "y13096"),
        ("YNL298W_tm444", ("YNL298W",), "tm", "tm444"),
        ("YAL043C-A_dma12", ("YAL043C-A",), "dma", "dma12"),
        ("YBR001C_tsa100", ("YBR001C",), "tsa", "tsa100"),
        ("YAL001C_damp174", ("YAL001C",), "damp", "damp174"),
        ("YJL014W_S1", ("YJL014W",), "S", "S1"),
        ("YJL014W_A_S12", ("YJL014W",), "A_S", "S12"),
    ],
)
def test_identifiers(text: str, orfs: tuple[str, ...], kind: str, short: str) -> None:
    found = parse_strain(text)
    assert found is not None
    assert (found.name, found.orfs, found.type, found.short) == (text, orfs, kind, short)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "YAR002W",
        "YAR002W+YML107C",
        "+YML107C_tm1",
        "YAR002W+_tm1",
        "YAR002W_tm1+YML107C_tm1",
        "YAR002W_tm",
        "YAR002W_xyz1",
        "YAR002W+YML107C+YDL227C_tm1",
        "YAR002W_tm1 ",
    ],
)
def test_what_is_no_strain(text: str) -> None:
    assert parse_strain(text) is None


@given(ORFS, ORFS, st.integers(0, 99999))
def test_two_orfs_are_never_glued(first: str, second: str, number: int) -> None:
    found = parse_strain(f"{first}+{second}_tm{number}")
    assert found is not None
    assert found.orfs == (first, second)
    assert found.short == f"tm{number}"


@pytest.mark.parametrize(
    ("allele", "strain_type", "kind", "recorded"),
    [
        ("gem1Δ", "dma", PerturbationKind.DELETION, ""),
        ("gem1∆", "", PerturbationKind.DELETION, ""),  # the increment sign
        ("gem1_", "tm", PerturbationKind.DELETION, ""),  # a delta that an export lost
        ("delta", "tm", PerturbationKind.DELETION, ""),
        ("gem1", "sn", PerturbationKind.DELETION, ""),
        ("", "dma", PerturbationKind.DELETION, ""),
        ("", "tm", PerturbationKind.DELETION, ""),
        ("nth2-5001", "tsa", PerturbationKind.TEMPERATURE_SENSITIVE, "nth2-5001"),
        ("sec7-1", "tm", PerturbationKind.TEMPERATURE_SENSITIVE, "sec7-1"),
        ("RPN6-PH", "", PerturbationKind.TEMPERATURE_SENSITIVE, "RPN6-PH"),
        ("exo70-29/37", "", PerturbationKind.TEMPERATURE_SENSITIVE, "exo70-29/37"),
        ("", "tsq", PerturbationKind.TEMPERATURE_SENSITIVE, ""),
        ("mak16_damp", "damp", PerturbationKind.REDUCED_EXPRESSION, "mak16_damp"),
        ("vti1-11-supp1", "tsa", PerturbationKind.SUPPRESSOR, "vti1-11-supp1"),
        ("", "y", PerturbationKind.OTHER_ALLELE, ""),
    ],
)
def test_alleles(allele: str, strain_type: str, kind: PerturbationKind, recorded: str) -> None:
    assert parse_allele(allele, strain_type) == (kind, recorded)


def test_strains_know_what_cannot_be_matched() -> None:
    genes = GeneIndex(["YAL001C", "YAL002W"], aliases={"YAL001C": ["old", "both"], "YAL002W": ["both"]})
    names = ["YAL001C+YAL002W_tm1", "old+YAL002W_tm2", "both+YAL002W_tm3", "both+new_tm4"]
    ids = [found for name in names if (found := parse_strain(name))]
    strains = Strains.build(ids, [[(PerturbationKind.DELETION, "")] * 2] * 4, genes, 2)
    assert len(strains) == 4
    assert strains.gene.tolist() == [[0, 1], [0, 1], [-2, 1], [-2, -1]]
    assert strains.renamed.tolist() == [False, True, False, False]
    assert strains.unknown.tolist() == [False, False, False, True]
    assert strains.ambiguous.tolist() == [False, False, True, False]
