"""E-MAPs: S-scores of pairs of strains, by a table of alleles or by gene names alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.emap import (
    COLLINS_ALLELES,
    COLLINS_PAIRS,
    S_SCORE,
    SCHULDINER_PAIRS,
    parse_mutation,
    read_collins,
    read_schuldiner,
)
from wildtype.sources.yeast.screens.parts import EPSILON

HEADER = "row_a\trow_b\tname_a\tname_b\ts_score"
ALLELES = [
    "row\tmatrix_name\tsystematic_name\tmutation",
    "1\tREP1\tREP1\tDELETION",
    "2\tYAL001C\tYAL001C\tDAMP",
    "3\tYAL002W\tYAL002W\tDELETION",
    "4\tYAL002W\tYAL002W\tdelta yal002w",
    "5\tYAR044W\tYAR044W\tdelta yal002w",
    "6\tYAL003W\tYAL003W\tEFB1-7",
    "7\tYAL003W\tYAL003W\tDELETION",
]
PAIRS = [
    HEADER,
    "1\t2\tREP1\tYAL001C\t0.5",
    "2\t3\tYAL001C\tYAL002W\t-6.5",
    "2\t4\tYAL001C\tYAL002W\t-4.5",
    "2\t5\tYAL001C\tYAR044W\t1.5",
    "3\t6\tYAL002W\tYAL003W\t0",
    "3\t7\tYAL002W\tYAL003W\tNA",
    "6\t7\tYAL003W\tYAL003W\t3.0",
]
NAMED = [HEADER, "1\t2\tYAL001C\tYAL002W\t-3", "1\t3\tYAL001C\tYCL074W\t1", "2\t4\tYAL002W\tYFL039C\t2"]
"""Pairs of a publisher who gives no alleles."""


def write_collins(small, alleles: list[str] = ALLELES, pairs: list[str] = PAIRS) -> None:
    small.write(f"{COLLINS_ALLELES.name}.gz", "\n".join(alleles) + "\n")
    small.write(f"{COLLINS_PAIRS.name}.gz", "\n".join(pairs) + "\n")


def facts(measurements: Measurements) -> set[tuple[object, ...]]:
    return {
        (r.value, r.replicate, *(f"{p.gene} {p.kind.name.lower()} {p.allele}".strip() for p in _sorted(r)))
        for r in measurements.records()
    }


def _sorted(record):
    return sorted(record.genotype.perturbations, key=lambda p: p.gene)


def test_rows_of_the_matrix_are_strains_of_the_table_of_alleles(small, genes: GeneIndex) -> None:
    """Both files are written by hand in the layout of the package; all numbers are invented."""
    write_collins(small)
    readings: list[ReadReport] = []
    measurements = read_collins(small.path, genes, collect=readings.append)
    low = "YAL001C reduced_expression damp"
    assert facts(measurements) == {
        (-6.5, "", low, "YAL002W deletion"),
        (-4.5, "row 4", low, "YAL002W deletion"),  # a second strain of one deletion
        (1.5, "", low, "YAR042W other_allele delta yal002w"),  # a neighbour was deleted
        (0.0, "", "YAL002W deletion", "YAL003W other_allele EFB1-7"),
    }
    strains, scores = readings
    assert (strains.use, strains.rows, strains.kept, strains.dropped) == (
        "strains",
        7,
        6,
        {"unknown gene": 1},
    )
    assert (scores.use, scores.rows, scores.kept, scores.renamed) == ("s_score", 7, 4, 1)
    assert scores.dropped == {"unknown gene": 1, "both strains of one gene": 1, "no score given": 1}
    assert measurements.studies[0].files.keys() == {f"{COLLINS_PAIRS.name}.gz", f"{COLLINS_ALLELES.name}.gz"}


def test_an_s_score_is_never_epsilon() -> None:
    assert S_SCORE.name != EPSILON.name
    assert S_SCORE.unit == "S-score (scale of a t statistic)"
    assert S_SCORE.min_order == 2


def test_without_alleles_essential_genes_are_reduced(small, genes: GeneIndex) -> None:
    small.write(f"{SCHULDINER_PAIRS.name}.gz", "\n".join(NAMED) + "\n")
    readings: list[ReadReport] = []
    measurements = read_schuldiner(small.path, genes, collect=readings.append)
    assert facts(measurements) == {
        (-3.0, "", "YAL001C reduced_expression damp", "YAL002W deletion"),
        (2.0, "", "YAL002W deletion", "YFL039C reduced_expression damp"),
    }
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(3, 2, {"unknown gene": 1})]


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        ("DELETION", (PerturbationKind.DELETION, "")),
        ("DAMP", (PerturbationKind.REDUCED_EXPRESSION, "damp")),
        ("delta yal002w", (PerturbationKind.DELETION, "")),
        ("delta yal003w", (PerturbationKind.OTHER_ALLELE, "delta yal003w")),
        ("POL30-79", (PerturbationKind.OTHER_ALLELE, "POL30-79")),
    ],
)
def test_the_mutation_says_what_was_done(mutation: str, expected: tuple[PerturbationKind, str]) -> None:
    assert parse_mutation("YAL002W", mutation) == expected


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        (2, "2\t3\tYAL001C\tYAL003W\t-6.5", "line 3: received 'YAL003W', expected the name that this row"),
        (2, "2\t30\tYAL001C\tYAL002W\t-6.5", "line 3: received 'YAL002W', expected the name that this row"),
        (2, "3\t2\tYAL002W\tYAL001C\t-6.5", "line 3: received '2', expected a row below that of the first"),
        (2, "2.5\t3\tYAL001C\tYAL002W\t1", "line 3: received '2.5', expected a row number of the matrix"),
        (2, "2\t3\tYAL001C\tYAL002W\tlow", "line 3: received 'low', expected a number in 's_score'"),
        (2, "2\t3\tYAL001C\tYAL002W", "line 3: received 4 fields, expected 5"),
        (0, "a\tb\tc\td\te", "line 1: received the header"),
    ],
)
def test_damage_of_the_pairs_names_the_line(
    small, genes: GeneIndex, line: int, wrong: str, message: str
) -> None:
    write_collins(small, pairs=[*PAIRS[:line], wrong, *PAIRS[line + 1 :]])
    with pytest.raises(SourceError, match=message):
        read_collins(small.path, genes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7\tYAL003W", "8\tYAL003W", "line 8: received '8', expected the rows 1, 2, 3 and so on"),
        ("\tEFB1-7", "\t", "line 7: received '', expected a mutation"),
    ],
)
def test_damage_of_the_alleles_names_the_line(
    small, genes: GeneIndex, old: str, new: str, message: str
) -> None:
    write_collins(small, alleles=[line.replace(old, new) for line in ALLELES])
    with pytest.raises(SourceError, match=message):
        read_collins(small.path, genes)


def test_missing_and_foreign_files_are_refused(small, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match="collins2007_emap_alleles.tsv is not in"):
        read_collins(small.path, genes)
    with pytest.raises(SourceError, match="schuldiner2005_emap_sscore_pairs.tsv is not in"):
        read_schuldiner(small.path, genes)
    small.write(f"{SCHULDINER_PAIRS.name}.gz", f"{HEADER}\n1\t2\tb0001\tb0002\t-3\n")
    with pytest.raises(SourceError, match="no pair of two known genes, expected thousands"):
        read_schuldiner(small.path, genes)


@pytest.mark.real
def test_real_counts(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    collins = read_collins(mirror, real_genes, collect=readings.append)
    schuldiner = read_schuldiner(mirror, real_genes, collect=readings.append)
    assert [(r.use, r.rows, r.kept, r.dropped) for r in readings] == [
        ("strains", 754, 753, {"unknown gene": 1}),
        ("s_score", 150_863, 150_496, {"unknown gene": 367}),
        ("s_score", 68_487, 68_487, {}),
    ]
    assert (len(collins), len(schuldiner)) == (150_496, 68_487)
    assert np.unique(schuldiner.gene).size == 406
    assert {PerturbationKind(k).name for k in np.unique(schuldiner.kind)} == {
        "DELETION",
        "REDUCED_EXPRESSION",
    }
    assert np.isnan(collins.sd).all()
