"""Strains with a suppressor: two mutations, neither of which is lost."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.sga_strains import parse_strain
from wildtype.sources.yeast.screens.single_fitness import sga_environment
from wildtype.sources.yeast.screens.suppressors import SuppressedStrains, measured_apart, split_allele
from wildtype.sources.yeast.screens.trigenic_table import FITNESS

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
    strains = SuppressedStrains.build(ids, list(named.values()), screen_genes)
    assert strains.suppressed.tolist() == [False, True, True]
    study = Study(name="x", publication=Publication(citation="nobody"), organism="yeast")
    side, value = (strains, np.array([0, 1, 2, 0])), np.array([1.0, 0.7, 0.5, 0.9])
    parts = measured_apart(
        study,
        screen_genes,
        FITNESS,
        sga_environment(26),
        [side],
        value,
        np.array([True, True, True, False]),
        label="strain",
    )
    found = {
        record.replicate: [(p.gene, p.kind, p.allele) for p in record.genotype.perturbations]
        for part in parts
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
