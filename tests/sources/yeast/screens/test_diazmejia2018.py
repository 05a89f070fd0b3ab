"""BFG-GI: the real table, and a small one written in exactly its layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.diazmejia2018 import CONDITIONS, TABLE, read

FILE = f"{TABLE.name}.gz"
KEYS = [
    "Gene_x", "Gene_y", "Chromosomal_distance_bp", "Remove_by_Chromosomal_distance_or_SameGene",
    "Type_of_gene_x", "Type_of_gene_y", "SOJ_E_NoMMS",
]  # fmt: skip
QUANTITIES = ["GIS_xy", "W_x", "W_y", "W_xy", "W_x_SE", "W_y_SE", "W_xy_SE", "SE_GIS_xy", "Z_GIS_xy"]
PAIRS = [
    ("TFC3", "VPS8", "no"), ("VPS8", "HO", "no"), ("HO", "HO", "YES"), ("TFC3", "SSA1", "YES"),
    ("FLO8", "HO", "no"), ("DOUBLE", "HO", "no"), ("YAR044W", "HO", "no"),
]  # fmt: skip


def table() -> str:
    lines = [
        [
            *KEYS,
            *(f"{q}.{c}" for q in QUANTITIES for c in CONDITIONS),
            *(f"Z_GIS_xy.{c}_Class" for c in CONDITIONS),
        ]
    ]
    for i, (first, second, removed) in enumerate(PAIRS):
        numbers = [f"{i + q / 10 + c / 100:g}" for q in range(len(QUANTITIES)) for c in range(9)]
        lines.append(
            [first, second, "NA", removed, "Neutral", "DNA_repair", "NA", *numbers, *["Expected"] * 9]
        )
    return "\n".join("\t".join(line) for line in lines) + "\n"


def test_score_and_fitness_of_every_pair_in_every_condition(small, genes: GeneIndex) -> None:
    small.write(FILE, table())
    readings: list[ReadReport] = []
    found = read(small.path, genes, collect=readings.append)
    rows = {
        (frozenset(p.gene for p in r.genotype.perturbations), r.phenotype.name, str(r.environment)): r
        for r in found.records()
    }
    assert len(rows) == len(found) == 3 * 18
    pair = frozenset({"YAL001C", "YAL002W"})
    assert (rows[pair, "epsilon", "not stated"].value, rows[pair, "epsilon", "not stated"].se) == (0.0, 0.7)
    fitness = rows[pair, "fitness", "not stated, CSPL"]
    assert (fitness.value, fitness.se) == (0.38, 0.68)
    assert rows[frozenset({"YAL002W", "YDL227C"}), "epsilon", "not stated, DMSO"].value == 1.01
    (reading,) = readings
    assert (reading.rows, reading.kept, reading.renamed) == (7 * 18, 54, 18)
    assert reading.dropped == {
        "unknown gene": 18,
        "ambiguous gene name": 18,
        "both strains of one gene": 18,
        "linked genes, removed by the publisher": 18,
    }


def test_the_order_of_rows_and_of_the_genes_does_not_matter(small, genes: GeneIndex) -> None:
    small.write(FILE, table())
    first = read(small.path, genes)
    head, *lines = table().splitlines()
    swapped = ["\t".join([cells[1], cells[0], *cells[2:]]) for cells in (line.split("\t") for line in lines)]
    small.write(FILE, "\n".join([head, *reversed(swapped)]) + "\n")
    second = read(small.path, genes)
    sets = [{(found.genotype(i).id, found.value[i]) for i in range(len(found))} for found in (first, second)]
    assert sets[0] == sets[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Gene_x\t", "Gene\t", "line 1: received the header"),
        ("\tW_xy.MMS\t", "\tW_xy.HMS\t", "expected one named 'W_xy.MMS'"),
        (
            "\tNeutral\tDNA_repair\tNA\t0\t",
            "\tNeutral\tDNA_repair\tNA\tx\t",
            "line 2: received 'x', expected a number in 'GIS_xy.NoDrug'",
        ),
        ("TFC3\tVPS8\tNA\tno\t", "TFC3\tVPS8\tNA\tmaybe\t", "line 2: received 'maybe', expected YES or no"),
        ("\t0.68\t", "\t-0.68\t", "line 2: received '-0.68', expected a standard error"),
        ("TFC3\tVPS8\tNA\t", "TFC3\tVPS8\t", "line 2: received 96 fields, expected 97"),
    ],
)
def test_another_layout_is_refused(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    text = table()
    assert old in text
    small.write(FILE, text.replace(old, new, 1))
    with pytest.raises(SourceError, match=message):
        read(small.path, genes)


def test_a_missing_or_truncated_file_is_named(small, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=rf"{TABLE.name} is not in"):
        read(small.path, genes)
    small.write(FILE, table())
    path = small.path / FILE
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=rf"{FILE} is cut short"):
        read(small.path, genes)


@pytest.mark.real
def test_real_table(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(mirror, real_genes, collect=readings.append)
    (reading,) = readings
    assert (reading.rows, reading.kept) == (757 * 18, 686 * 18)
    assert reading.dropped == {
        "unknown gene": 39 * 18,
        "both strains of one gene": 26 * 18,
        "linked genes, removed by the publisher": 6 * 18,
    }
    assert len(found.environments) == 9
    epsilon = found.take(found.phenotype == [p.name for p in found.phenotypes].index("epsilon"))
    assert np.unique(epsilon.genotype_key, axis=0).shape[0] == 686
    # RAD51, RAD54, RAD55 and RAD57 act together: a second deletion adds little harm
    together = {real_genes.find(name) for name in ("RAD51", "RAD54", "RAD55", "RAD57")}
    inside = np.isin(epsilon.gene.reshape(-1, 2), list(together)).all(1)
    assert inside.sum() == 6 * 9
    assert np.median(epsilon.value[inside]) > 0.05 > np.median(epsilon.value[~inside])
