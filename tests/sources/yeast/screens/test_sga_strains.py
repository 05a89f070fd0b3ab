"""Strain identifiers and allele names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import ignore
from wildtype.sources.yeast.screens.parts import FITNESS, Screen, drop_genes
from wildtype.sources.yeast.screens.sga_strains import Side, Strains, parse_allele, parse_strain, split_allele
from wildtype.sources.yeast.screens.single_fitness import sga_environment

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
    strains = Strains.build(ids, [[(PerturbationKind.DELETION, "", "")] * 2] * 4, genes, 2)
    assert len(strains) == 4
    assert strains.gene.tolist() == [[0, 1], [0, 1], [-2, 1], [-2, -1]]
    assert strains.renamed.tolist() == [False, True, False, False]
    assert not strains.suppressed.any()
    rows = RowFilter(4)
    drop_genes(rows, [Side(strains, np.arange(4))])
    assert rows.left.tolist() == [True, True, False, False]
    assert rows.dropped == {"unknown gene": 1, "ambiguous gene name": 1}


DELETION, SENSITIVE = PerturbationKind.DELETION, PerturbationKind.TEMPERATURE_SENSITIVE
REDUCED = PerturbationKind.REDUCED_EXPRESSION


@pytest.mark.parametrize(
    ("name", "strain_type", "expected"),
    [
        ("vps8", "sn", (DELETION, "", "")),
        ("asp3-2", "dma", (DELETION, "", "")),
        ("tfc3-g349e", "tsq", (SENSITIVE, "tfc3-g349e", "")),
        ("mak16_damp", "damp", (REDUCED, "mak16_damp", "")),
        ("lte1-supp1", "dma", (DELETION, "", "lte1-supp1")),
        ("cdc9-1-supp2", "tsa", (SENSITIVE, "cdc9-1", "cdc9-1-supp2")),
        ("tps1-supp2", "S", (DELETION, "", "tps1-supp2")),
        ("mrpl32-supp1a", "S", (DELETION, "", "mrpl32-supp1a")),
        ("cdc9-1-supp2", "S", (SENSITIVE, "cdc9-1", "cdc9-1-supp2")),
        ("ygr146c-a-supp1", "A_S", (DELETION, "", "ygr146c-a-supp1")),
        ("tps1", "S", (DELETION, "", "tps1")),
        ("cdc9-1-SUPP.x", "tsq", (SENSITIVE, "cdc9-1", "cdc9-1-SUPP.x")),
        ("supp1", "dma", (DELETION, "", "supp1")),
    ],
)
def test_an_allele_name_gives_both_mutations(name: str, strain_type: str, expected) -> None:
    assert split_allele(name, strain_type) == expected


def test_a_suppressed_strain_has_a_perturbation_more(screen_genes: GeneIndex) -> None:
    named = {"YAL002W_sn1": "vps8", "YBR126C_S26": "tps1-supp2", "YDL164C_tsa33": "cdc9-1-supp2"}
    ids = [found for found in map(parse_strain, named) if found is not None]
    mutations = [
        [split_allele(allele, strain.type)] for allele, strain in zip(named.values(), ids, strict=True)
    ]
    strains = Strains.build(ids, mutations, screen_genes, 1)
    assert strains.suppressed.tolist() == [False, True, True]
    study = Study(name="x", publication=Publication(citation="nobody"), organism="yeast")
    side, value = Side(strains, np.array([0, 1, 2, 0])), np.array([1.0, 0.7, 0.5, 0.9])
    screen = Screen(study, screen_genes, ignore)
    rows = np.array([True, True, True, False])
    screen.add(FITNESS, sga_environment(26), [side], value, rows, label="strain")
    found = {
        record.replicate: [(p.gene, p.kind, p.allele) for p in record.genotype.perturbations]
        for part in screen.parts
        for record in part.records()
    }
    assert found == {
        "strain YAL002W_sn1": [("YAL002W", DELETION, "")],
        "strain YBR126C_S26": [
            ("YBR126C", DELETION, ""),
            ("YBR126C", PerturbationKind.SUPPRESSOR, "tps1-supp2"),
        ],
        "strain YDL164C_tsa33": [
            ("YDL164C", SENSITIVE, "cdc9-1"),
            ("YDL164C", PerturbationKind.SUPPRESSOR, "cdc9-1-supp2"),
        ],
    }
