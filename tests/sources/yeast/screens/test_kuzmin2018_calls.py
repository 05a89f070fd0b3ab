"""The trigenic screens of 2018: thresholded calls, and the strains of the queries.

The publisher's file of calls is not at hand: it is made up in exactly the published layout. The reduced list
of calls and the assignment of queries are tested on the real files too.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.sources.yeast import trigenic_files as files
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Measurement, PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens import kuzmin2018
from wildtype.sources.yeast.screens.kuzmin2018 import read_calls, read_query_assignment
from wildtype.sources.yeast.screens.sga_strains import HO

ORFS = sorted({o for pair in files.PAIRS for o in pair[::2]} | {s.partition("_")[0] for s, _ in files.ARRAYS})
GENES = GeneIndex([*ORFS, HO])
TRIGENIC = ("YGR109C+YPR120C_tm1", "clb6Δ+clb5Δ", "YAL048C_dma2", "gem1Δ", "trigenic")
DIGENIC = ("YGR109C+YDL227C_tm2", "clb6Δ+hoΔ", "YAL048C_dma2", "gem1Δ", "digenic")


def changed(row: Sequence[str], **cells: str) -> list[str]:
    """A row with other cells, by position (``c0`` …)."""
    out = list(row)
    for name, value in cells.items():
        out[int(name[1:])] = value
    return out


def records(measured: Measurements, phenotype: str) -> list[Measurement]:
    return [record for record in measured.records() if record.phenotype.name == phenotype]


def spelled(record: Measurement) -> list[tuple[str, str, str]]:
    return [(p.gene, p.kind.name, p.allele) for p in record.genotype.perturbations]


S2_HEADER = (
    *files.HEADER_2018[:5], "Adjusted genetic interaction score (epsilon or tau)", "P-value",
    "Interaction type",
)  # fmt: skip
S2_ROWS = (
    (*TRIGENIC, "-0.200000", "1.00E-03", "novel"),
    (*changed(TRIGENIC, c2="YBL007C_dma91"), "-0.100000", "1.00E-02", "modified"),
    (*DIGENIC, "0.300000", "0.00E+00", "digenic"),
    (*changed(DIGENIC, c2="YGR999C_dma1"), "0.300000", "0.00E+00", "digenic"),
)


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("AdditionalDataS2.tsv", "utf-8"), ("DataFileS2_Digenic_and_adjusted_trigenic.txt", "utf-16")],
)
def test_calls_with_scores(tmp_path: Path, name: str, encoding: str) -> None:
    text = files.text(S2_ROWS, S2_HEADER)
    (tmp_path / name).write_bytes(text.encode(encoding))
    readings: list[ReadReport] = []
    measured = read_calls(tmp_path, GENES, collect=readings.append)
    trigenic = records(measured, "score of significant trigenic interaction")
    assert sorted((r.value, r.p, r.replicate) for r in trigenic) == [
        (-0.2, 0.001, "novel query YGR109C+YPR120C_tm1"),
        (-0.1, 0.01, "modified query YGR109C+YPR120C_tm1"),
    ]
    (digenic,) = records(measured, "score of significant digenic interaction")
    assert [gene for gene, *_ in spelled(digenic)] == ["YAL048C", HO, "YGR109C"]
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(2, 1, {"unknown gene": 1}), (2, 2, {})]
    assert not records(measured, "tau")


CALLS_HEADER = (
    "type", "allele1", "allele2", "allele3", "orf1", "orf2", "orf3", "n_positive_or_null_rating0",
    "n_negative_rating1",
)  # fmt: skip
CALLS = (
    ("digenic", "clb6Δ", "gem1Δ", "hoΔ", "YGR109C", "YAL048C", HO, "0", "2"),
    ("digenic", "clb5Δ", "gem1Δ", "hoΔ", "YPR120C", "YAL048C", HO, "1", "0"),
    ("digenic", "cln1Δ", "gem1Δ", "hoΔ", "YMR199W", "YAL048C", HO, "1", "1"),
    ("trigenic", "SPP381-ph", "mud2Δ", "prm6Δ", "YBR152W", "YKL074C", "YML047C", "0", "1"),
    ("trigenic", "aΔ", "mud2Δ", "prm6Δ", "YGR999C", "YKL074C", "YML047C", "0", "1"),
)


def write_calls(folder: Path, rows: Sequence[Sequence[str]] = CALLS) -> None:
    path = folder / f"{kuzmin2018.CALLS.name}.gz"
    path.write_bytes(gzip.compress(files.text(rows, CALLS_HEADER).encode(), mtime=0))


def test_calls_reduced_to_signs(tmp_path: Path) -> None:
    write_calls(tmp_path)
    readings: list[ReadReport] = []
    measured = read_calls(tmp_path, GENES, collect=readings.append)
    digenic = records(measured, "sign of significant digenic interaction")
    assert sorted((min(set(g for g, *_ in spelled(r)) - {HO, "YAL048C"}), r.value) for r in digenic) == [
        ("YGR109C", -1.0),
        ("YMR199W", -1.0),
        ("YMR199W", 1.0),
        ("YPR120C", 1.0),
    ]
    (trigenic,) = records(measured, "sign of significant trigenic interaction")
    assert trigenic.value == -1.0
    assert ("YBR152W", "TEMPERATURE_SENSITIVE", "SPP381-ph") in spelled(trigenic)
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(3, 3, {}), (2, 1, {"unknown gene": 1})]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"c0": "monogenic"}, "line 2: received 'monogenic', expected digenic or trigenic"),
        ({"c8": "-1"}, "line 2: received '-1', expected how often"),
        ({"c7": "0.5"}, "line 2: received '0.5', expected how often"),
        ({"c7": "x"}, "line 2: received 'x', expected a number"),
    ],
)
def test_damaged_calls_name_the_line(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    write_calls(tmp_path, [changed(CALLS[0], **cells), *CALLS[1:]])
    with pytest.raises(SourceError, match=message):
        read_calls(tmp_path, GENES)


def test_without_calls_the_publishers_file_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"AdditionalDataS2.tsv is not in .*: download it in a browser"):
        read_calls(tmp_path, GENES)


@pytest.mark.real
def test_real_calls(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    measured = read_calls(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(11562, 11562, {}), (2382, 2382, {})]
    assert len(measured) == 13944 + 2  # two calls are listed with both signs
    names = np.array([p.name.split()[3] for p in measured.phenotypes])[measured.phenotype]
    assert Counter(zip(names.tolist(), measured.value.tolist(), strict=True)) == {
        ("digenic", -1.0): 7471,
        ("digenic", 1.0): 4093,
        ("trigenic", -1.0): 2382,
    }
    ho = real_genes.find(HO)
    assert int((measured.gene.reshape(-1, 3) == ho).any(1).sum()) == 11564
    assert set(measured.kind.tolist()) == {PerturbationKind.DELETION, PerturbationKind.TEMPERATURE_SENSITIVE}


ASSIGNMENT_HEADER = (
    "StrainID1", "ORF1", "StrainID2", "ORF2", "DMstrainID", "SM1strainID", "SM2strainID", "Annotation",
)  # fmt: skip
ASSIGNMENT = (
    ("sn1", "YGR109C", "dma2", "YPR120C", "tm1", "tm2", "tm3", "Tspace"),
    ("tsq4", "YDR170C", "tsa5", "YBR152W", "tm9", "tm10", "tm11", "PPI controls"),
    ("sn6", "YGR999C", "dma7", "YPR120C", "tm12", "tm13", "tm14", "Tspace"),
)


def test_query_assignment(tmp_path: Path) -> None:
    path = tmp_path / kuzmin2018.ASSIGNMENT.name
    path.write_text(files.text(ASSIGNMENT, ASSIGNMENT_HEADER))
    readings: list[ReadReport] = []
    found = read_query_assignment(tmp_path, GENES, collect=readings.append)
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(3, 2, {"unknown gene": 1})]
    assert len(found) == 2
    assert found.query == ("tm1", "tm9")
    assert found.source == (("YGR109C_sn1", "YPR120C_dma2"), ("YDR170C_tsq4", "YBR152W_tsa5"))
    assert found.control == (("tm2", "tm3"), ("tm10", "tm11"))
    assert found.gene.tolist() == [
        [GENES.find(a), GENES.find(b)] for a, b in (("YGR109C", "YPR120C"), ("YDR170C", "YBR152W"))
    ]
    path.write_text(files.text([ASSIGNMENT[0], ASSIGNMENT[0]], ASSIGNMENT_HEADER))
    with pytest.raises(SourceError, match="line 3: received 'tm1', expected every query once"):
        read_query_assignment(tmp_path, GENES)


@pytest.mark.real
def test_real_query_assignment(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read_query_assignment(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept) for r in readings] == [(146, 146)]
    assert Counter(found.annotation) == {"Tspace": 130, "PPI controls": 7, "POMBE": 6, "Duplicate PPI": 3}
    calls = read_calls(mirror, real_genes)
    trigenic = calls.take(np.array(["trigenic" in p.name for p in calls.phenotypes])[calls.phenotype])
    triples = trigenic.gene.reshape(-1, 3)
    pairs = {frozenset(pair) for pair in found.gene.tolist()}
    hit = [
        any(frozenset((t[i], t[j])) in pairs for i, j in ((0, 1), (0, 2), (1, 2))) for t in triples.tolist()
    ]
    assert (sum(hit), len(hit)) == (2309, 2382)
