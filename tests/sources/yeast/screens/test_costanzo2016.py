"""Digenic interactions of 2016."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.spreadsheets import xlsx
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.screens import costanzo2016
from wildtype.sources.yeast.screens.costanzo2016 import FILES, PUBLISHER, TABLES, read_dcell
from wildtype.sources.yeast.screens.single_fitness import FITNESS as FITNESS_TABLE
from wildtype.sources.yeast.screens.single_fitness import STRAIN_TABLE

HEADER = (
    "Query Strain ID\tQuery allele name\tArray Strain ID\tArray allele name\tArraytype/Temp\t"
    "Genetic interaction score (ε)\tP-value\tQuery single mutant fitness (SMF)\tArray SMF\t"
    "Double mutant fitness\tDouble mutant fitness standard deviation"
)
CROSSES = [
    "YAL002W_sn1\tvps8\tYAL043C-A_dma2\tyal043c-a\tDMA30\t-0.1234\t1.234E-02\t0.9\t\t0.8\t0.05",
    "YAL043C-A_sn3\tyal043c-a\tYAL002W_dma4\tvps8\tDMA30\t-0.11\t0.02\t\t0.9\t0.81\t0.04",  # the other order
    "YAL001C_tsq508\ttfc3-g349e\tQ0045_tsa7\tcox1-1\tTSA26\t0.2\t0.0\t0.5\t1\t0.7\t0.1",
    "YAL001C_damp174\ttfc3_damp\tyal002w_dma4\tvps8\tDMA26\t0.01\t5.000E-01\t0.9\t0.9\t0.82\t",
    "YBR126C_S26\ttps1-supp2\tYAL002W_dma4\tvps8\tDMA30\t-0.05\t0.2\tNaN\t0.9\t0.6\t0.02",
    "YAR044W_sn7\tyar044w\tYFL039C_dma8\tact1\tDMA30\t0.3\t0.01\t1\t1\t\t",  # no double-mutant fitness
    "YAL002W_sn1\tvps8\tYBR126C_dma9\ttps1\tDMA30\t\t\t0.9\t0.7\t0.61\t0.03",  # no score
    "YCL074W_sn8\tycl074w\tYAL002W_dma4\tvps8\tDMA30\t0.1\t0.1\t1\t0.9\t0.9\t0.1",
    "YAL002W_sn1\tvps8\tDOUBLE_dma5\tdouble\tDMA30\t0.1\t0.1\t0.9\t1\t0.9\t0.1",
    "YAL002W_sn1\tvps8\tYAL002W_dma4\tvps8\tDMA30\t-0.4\t0.1\t0.9\t0.9\t0.3\t0.1",
]
STRAIN_ROWS = [
    ["YAL002W_sn1", "YAL002W", "vps8", 0.9, 0.05, 0.9, 0.05],
    ["YAL043C-A_dma2", "YAL043C-A", "yal043c-a", "NaN", "NaN", 0.95, 0.04],
    ["YAL001C_tsq508", "YAL001C", "tfc3-g349e", 0.75, 0.1, 0.5, 0.2],
    ["YBR126C_S26", "YBR126C", "tps1-supp2", 0.7, 0.1, 0.7, 0.1],
    ["YCL074W_sn8", "YCL074W", "ycl074w", 1.0, 0.1, 1.0, 0.1],
]
STRAIN_HEADER = [
    "Strain ID", "Systematic gene name", "Allele/Gene name", "Single mutant fitness (26°)",
    "Single mutant fitness (26°) stddev", "Single mutant fitness (30°)", "Single mutant fitness (30°) stddev",
]  # fmt: skip


def write_crosses(folder: Path, rows: Sequence[str] = CROSSES, name: str = "SGA_NxN.txt") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return path


def collected(folder: Path, genes: GeneIndex) -> tuple[Measurements, list[ReadReport]]:
    readings: list[ReadReport] = []
    return read(folder, genes, readings.append), readings


def read(folder: Path, genes: GeneIndex, collect: Collector = ignore) -> Measurements:
    """Return all parts as one."""
    return Measurements.concatenate(list(costanzo2016.read(folder, genes, collect=collect)))


def facts(measurements: Measurements) -> set[tuple[object, ...]]:
    return {
        (
            record.phenotype.name,
            record.replicate,
            record.environment.temperature,
            record.value,
            *(f"{p.gene} {p.kind.name.lower()} {p.allele}".strip() for p in record.genotype.perturbations),
        )
        for record in measurements.records()
    }


def test_crosses_in_the_published_layout(tmp_path: Path, screen_genes: GeneIndex) -> None:
    """The file is written by hand in the layout of the publisher's SGA_NxN.txt; all numbers are invented."""
    write_crosses(tmp_path)
    measurements, readings = collected(tmp_path, screen_genes)
    assert facts(measurements) == {
        ("epsilon", "query YAL002W_sn1", 30, -0.1234, "YAL002W deletion", "YAL043C-A deletion"),
        ("fitness", "query YAL002W_sn1", 30, 0.8, "YAL002W deletion", "YAL043C-A deletion"),
        ("epsilon", "query YAL043C-A_sn3", 30, -0.11, "YAL002W deletion", "YAL043C-A deletion"),
        ("fitness", "query YAL043C-A_sn3", 30, 0.81, "YAL002W deletion", "YAL043C-A deletion"),
        (
            "epsilon",
            "query YAL001C_tsq508",
            26,
            0.2,
            "Q0045 temperature_sensitive cox1-1",
            "YAL001C temperature_sensitive tfc3-g349e",
        ),
        (
            "fitness",
            "query YAL001C_tsq508",
            26,
            0.7,
            "Q0045 temperature_sensitive cox1-1",
            "YAL001C temperature_sensitive tfc3-g349e",
        ),
        (
            "epsilon",
            "query YAL001C_damp174",
            26,
            0.01,
            "YAL001C reduced_expression tfc3_damp",
            "YAL002W deletion",
        ),
        (
            "fitness",
            "query YAL001C_damp174",
            26,
            0.82,
            "YAL001C reduced_expression tfc3_damp",
            "YAL002W deletion",
        ),
        (
            "epsilon",
            "query YBR126C_S26",
            30,
            -0.05,
            "YAL002W deletion",
            "YBR126C deletion",
            "YBR126C suppressor tps1-supp2",
        ),
        (
            "fitness",
            "query YBR126C_S26",
            30,
            0.6,
            "YAL002W deletion",
            "YBR126C deletion",
            "YBR126C suppressor tps1-supp2",
        ),
        ("epsilon", "query YAR044W_sn7", 30, 0.3, "YAR042W deletion", "YFL039C deletion"),
        ("fitness", "query YAL002W_sn1", 30, 0.61, "YAL002W deletion", "YBR126C deletion"),
    }
    lost = {"unknown gene": 1, "ambiguous gene name": 1, "query and array of one gene": 1}
    assert [(r.file, r.use, r.rows, r.kept, r.dropped) for r in readings] == [
        ("SGA_NxN.txt", "epsilon", 10, 6, {**lost, "no score given": 1}),
        ("SGA_NxN.txt", "fitness of crosses", 10, 6, {**lost, "no fitness given": 1}),
    ]
    assert measurements.environments[0].medium == "SGA double-mutant selection medium"


def test_scores_carry_p_and_fitness_carries_sd(tmp_path: Path, screen_genes: GeneIndex) -> None:
    write_crosses(tmp_path, CROSSES[:4])
    measurements, _ = collected(tmp_path, screen_genes)
    numbers = {
        (record.phenotype.name, record.value): (record.sd, record.p) for record in measurements.records()
    }
    assert numbers["epsilon", -0.1234] == (pytest.approx(np.nan, nan_ok=True), 0.01234)
    assert numbers["fitness", 0.8] == (0.05, pytest.approx(np.nan, nan_ok=True))
    assert np.isnan(numbers["fitness", 0.82][0])
    assert numbers["epsilon", 0.2][1] == 0


@given(order=st.permutations(CROSSES))
@settings(max_examples=15)
def test_the_order_of_rows_does_not_matter(
    order: list[str], screen_genes: GeneIndex, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "order"
    write_crosses(folder)
    expected = facts(read(folder, screen_genes))
    write_crosses(folder, order)
    assert facts(read(folder, screen_genes)) == expected


def test_all_files_of_the_unpacked_archive_are_read(tmp_path: Path, screen_genes: GeneIndex) -> None:
    """The workbook is written by hand in the layout of the publisher's; the numbers are invented."""
    inner = tmp_path / "Data File S1. Raw genetic interaction datasets_ Pair-wise interaction format"
    for name in TABLES:
        write_crosses(inner, CROSSES[:1], name)
    (inner / STRAIN_TABLE.name).write_bytes(xlsx({"SMF": [STRAIN_HEADER, *STRAIN_ROWS]}))
    measurements, readings = collected(tmp_path, screen_genes)
    files = (STRAIN_TABLE.name, *TABLES)
    assert list(dict.fromkeys(reading.file for reading in readings)) == list(files)
    assert tuple(measurements.studies[0].files) == files
    assert len(measurements) == 4 * 2 + 4 + 3  # two per cross; strains at 30 and at 26 °C
    # A part is of one file, phenotype and temperature: single mutants first, then every table.
    apart = list(costanzo2016.read(inner, screen_genes))
    of_crosses = [part for part in apart if (np.diff(part.offsets) == 2).all()]
    assert [len(part) for part in of_crosses[-8:]] == [1] * 8
    assert [part.phenotypes[0].name for part in of_crosses[-8:]] == ["epsilon", "fitness"] * 4
    assert all(part.studies == measurements.studies for part in apart)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "YAL001C_tsq508",
            "YAL001C_xyz508",
            "line 4: received 'YAL001C_xyz508', expected a strain such as ORF_snN",
        ),
        (
            "YAL001C_tsq508",
            "YAL001C+YAL002W_tm5",
            "line 4: received 'YAL001C.YAL002W_tm5', expected a strain",
        ),
        ("TSA26", "26", "line 4: received '26', expected DMA or TSA and a temperature"),
        ("0.2\t0.0\t", "0.2\t1.5\t", "line 4: received '1.5', expected a p-value of 0 to 1"),
        ("0.7\t0.1\n", "0.7\t-0.1\n", "line 4: received '-0.1', expected a standard deviation of at least 0"),
        (
            "0.2\t0.0\t",
            "high\t0.0\t",
            "line 4: received 'high', expected a number in 'Genetic interaction score",
        ),
        ("TSA26\t", "", "line 4: received 10 fields, expected 11"),
        ("Arraytype/Temp\t", "Temp\t", "line 1: received the header"),
    ],
)
def test_damage_of_a_table_names_the_line(
    tmp_path: Path, screen_genes: GeneIndex, old: str, new: str, message: str
) -> None:
    path = write_crosses(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SourceError, match=rf"SGA_NxN\.txt, {message}"):
        read(tmp_path, screen_genes)


def test_any_spelling_of_the_epsilon_in_the_header_is_accepted(
    tmp_path: Path, screen_genes: GeneIndex
) -> None:
    path = write_crosses(tmp_path)
    expected = facts(read(tmp_path, screen_genes))
    for epsilon in (b"e", b"\xee", "ɛ".encode()):  # the second is one byte of another encoding
        path.write_bytes(
            (HEADER + "\n").encode().replace("ε".encode(), epsilon) + "\n".join(CROSSES).encode()
        )
        assert facts(read(tmp_path, screen_genes)) == expected


def test_missing_truncated_and_foreign_files_are_refused(tmp_path: Path, screen_genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=r"SGA_NxN\.txt is not in .*https://thecellmap\.org"):
        read(tmp_path, screen_genes)
    packed = tmp_path / "SGA_ExE.txt.gz"
    packed.write_bytes(gzip.compress((HEADER + "\n" + CROSSES[0] + "\n").encode()))
    assert len(read(tmp_path, screen_genes)) == 2
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(SourceError, match="is cut short"):
        read(tmp_path, screen_genes)
    packed.unlink()
    write_crosses(tmp_path, ["b0001_sn1\tthrL\tb0002_dma1\tthrA\tDMA30\t0.1\t0.1\t1\t1\t1\t0.1"])
    with pytest.raises(SourceError, match="no row is of genes of 'yeast', expected most"):
        read(tmp_path, screen_genes)


def test_the_publisher_says_where_every_file_is() -> None:
    assert [remote.name for remote in PUBLISHER.files] == [*TABLES, STRAIN_TABLE.name]
    for remote in PUBLISHER.files:
        assert remote.urls[0].startswith("https://thecellmap.org/")
        assert remote.member.endswith(f"/{remote.name}")
        assert remote.sha256.startswith("05adf2aa")
    assert sum(PUBLISHER.published[f"rows of {name}"] for name in TABLES) == 20_705_612


def kinds_of(measurements: Measurements) -> dict[str, str]:
    return {
        p.gene: p.kind.name.lower()
        for record in measurements.records()
        for p in record.genotype.perturbations
    }


def test_dcell_pairs_name_genes_and_essential_ones_are_reduced(small, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    measurements = read_dcell(small.path, genes, collect=readings.append)
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [
        (4, 3, {"unknown gene": 1}),
        (3, 2, {"both strains of one gene": 1}),
    ]
    assert kinds_of(measurements) == {
        "YAL001C": "temperature_sensitive",
        "YAL002W": "deletion",
        "YDL227C": "deletion",
        "YEL009C": "deletion",
    }
    assert sorted(measurements.value) == [
        -0.1,
        -0.1,
        -0.04,
        0.01,
        0.02,
    ]  # the pair in both orders stays twice
    terms = {(r.replicate, r.value) for r in measurements.records()}
    repair, chromatin = "GO:0006281", "GO:0000790"
    assert terms == {(repair, -0.1), (repair, 0.01), (repair, 0.02), (chromatin, -0.1), (chromatin, -0.04)}
    for suffix in ("tsa508", "tsq508"):
        row = f"YAL001C_{suffix}\tYAL001C\ttfc3-g349e\t0.8658\t0.1789\t0.8285\t0.1964\t\t\t\t\t\n"
        small.replace(FITNESS_TABLE, row, "")
    assert kinds_of(read_dcell(small.path, genes))["YAL001C"] == "reduced_expression"


@pytest.mark.real
def test_real_dcell_measurements(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    measurements = read_dcell(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept, r.dropped) for r in readings] == [(6731, 6731, {}), (3967, 3967, {})]
    assert (len(measurements), set(measurements.order.tolist())) == (10698, {2})
    assert measurements.value.mean() == pytest.approx(-0.016, abs=0.005)
    assert measurements.value.std() == pytest.approx(0.08, abs=0.01)
    assert np.isnan(measurements.sd).all()


@pytest.mark.real
def test_the_real_strain_table_alone_gives_single_mutants(mirror: Path, real_genes: GeneIndex) -> None:
    measurements, readings = collected(mirror, real_genes)
    assert {reading.use: (reading.rows, reading.kept, reading.dropped) for reading in readings} == {
        "fitness at 30 °C": (10859, 10186, {"unknown gene": 38, "no fitness given": 635}),
        "fitness at 26 °C": (10859, 10222, {"unknown gene": 38, "no fitness given": 599}),
    }
    assert len(measurements) == 20408
    suppressed = np.bincount(measurements.row, measurements.kind == PerturbationKind.SUPPRESSOR)
    assert np.array_equal(suppressed > 0, measurements.order == 2)
    assert int(suppressed.sum()) == 224


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 YAL001C YDL227C 0.0100", "3 YAL001C YDL227C 0.0100", "line 2: received '3', expected 2"),
        ("2 YAL001C YDL227C 0.0100", "2 YAL001C YDL227C nan", "line 2: received 'nan', expected a number"),
        ("2 YAL001C YDL227C 0.0100", "2 YAL001C YDL227C", "line 2: received 3 fields, expected 4"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(FILES[0], old, new)
    with pytest.raises(SourceError, match=message):
        read_dcell(small.path, genes)
