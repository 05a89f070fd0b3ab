"""The trigenic screens of 2018: the raw table.

No file with scores is at hand: the tables are made up in exactly the published layout.
"""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.yeast import trigenic_files as files
from wildtype.datasets.interactions import tau
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Measurement
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.kuzmin2018 import PUBLISHER, RAW, read
from wildtype.sources.yeast.screens.sga_strains import HO

ORFS = sorted({o for pair in files.PAIRS for o in pair[::2]} | {s.partition("_")[0] for s, _ in files.ARRAYS})
GENES = GeneIndex([*ORFS, HO], aliases={"YAL048C": ["YAL999C", "DOUBLE"], "YBL007C": ["DOUBLE"]})
TRIGENIC = (
    "YGR109C+YPR120C_tm1", "clb6Δ+clb5Δ", "YAL048C_dma2", "gem1Δ", "trigenic", "-0.300000", "-0.200000",
    "0.00E+00", "0.8000", "0.9500", "0.4600", "0.0300",
)  # fmt: skip
DIGENIC = (
    "YGR109C+YDL227C_tm2", "clb6Δ+hoΔ", "YAL048C_dma2", "gem1Δ", "digenic", "-0.100000", "-0.100000",
    "4.50E-01", "", "0.9500", "0.7600", "NaN",
)  # fmt: skip

QUERIES, ARRAYS = "fitness of query strains", "fitness of array strains"
SAME = "query and array of one gene"


def changed(row: Sequence[str], **cells: str) -> list[str]:
    """A row with other cells, by position (``c0`` … ``c11``)."""
    out = list(row)
    for name, value in cells.items():
        out[int(name[1:])] = value
    return out


def load(folder: Path, genes: GeneIndex = GENES) -> tuple[Measurements, dict[str, ReadReport]]:
    readings: list[ReadReport] = []
    measured = read(folder, genes, collect=readings.append)
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert sum(reading.kept for reading in readings) == len(measured)
    return measured, {reading.use: reading for reading in readings}


def records(measured: Measurements, phenotype: str) -> list[Measurement]:
    return [record for record in measured.records() if record.phenotype.name == phenotype]


def spelled(record: Measurement) -> list[tuple[str, str, str]]:
    return [(p.gene, p.kind.name, p.allele) for p in record.genotype.perturbations]


def test_one_trigenic_row(tmp_path: Path) -> None:
    files.write_2018(tmp_path, [TRIGENIC])
    measured, readings = load(tmp_path)
    triple = [(orf, "DELETION", "") for orf in ("YAL048C", "YGR109C", "YPR120C")]
    (one,) = records(measured, "tau")
    assert spelled(one) == triple
    assert (one.value, one.p, one.replicate) == (-0.2, 0.0, "query YGR109C+YPR120C_tm1")
    assert math.isnan(one.sd)
    assert str(one.environment) == "SGA triple-mutant selection medium, 26 °C"
    (raw,) = records(measured, "trigenic epsilon")
    assert (spelled(raw), raw.value) == (triple, -0.3)
    assert not records(measured, "epsilon")
    fitness = {tuple(gene for gene, *_ in spelled(r)): (r.value, r.sd) for r in records(measured, "fitness")}
    assert fitness.pop(("YAL048C", "YGR109C", "YPR120C")) == (0.46, 0.03)
    assert {genes: value for genes, (value, _) in fitness.items()} == {
        ("YGR109C", "YPR120C"): 0.8,
        ("YAL048C",): 0.95,
    }
    assert readings["tau"].rows == readings["trigenic epsilon"].rows == 1
    assert readings["epsilon"].rows == 0
    assert measured.studies[0].name == "kuzmin2018"
    assert list(measured.studies[0].files) == [RAW[0].name]


def test_one_digenic_row_keeps_the_neutral_locus(tmp_path: Path) -> None:
    files.write_2018(tmp_path, [DIGENIC, changed(DIGENIC, c0="YDL227C+YGR109C_tm3", c1="hoΔ+clb6Δ")])
    measured, readings = load(tmp_path)
    first, second = records(measured, "epsilon")
    assert [gene for gene, *_ in spelled(first)] == ["YAL048C", HO, "YGR109C"]
    assert spelled(first) == spelled(second)  # whichever half of the query the neutral locus is
    assert (first.value, first.p) == (-0.1, 0.45)
    assert not records(measured, "tau")
    assert not records(measured, "trigenic epsilon")
    assert readings[QUERIES].dropped == {"no fitness given": 2}
    assert readings[ARRAYS].dropped == {"the number of another row again": 1}
    assert math.isnan(records(measured, "fitness")[0].sd)


def test_alleles_are_told_by_name_and_strain(tmp_path: Path) -> None:
    row = changed(TRIGENIC, c0="YDR170C+YBR152W_tm9", c1="sec7-1+spp381-ph", c2="YMR197C_tsa635", c3="vti1-2")
    files.write_2018(tmp_path, [row, changed(row, c3="vti1-11-supp1")])
    measured, _ = load(tmp_path)
    first, second = records(measured, "tau")
    ts = "TEMPERATURE_SENSITIVE"
    query = [("YBR152W", ts, "spp381-ph"), ("YDR170C", ts, "sec7-1")]
    assert spelled(first) == [*query, ("YMR197C", ts, "vti1-2")]
    suppressed = [("YMR197C", ts, "vti1-11"), ("YMR197C", "SUPPRESSOR", "vti1-11-supp1")]
    assert spelled(second) == [*query, *suppressed]


def test_tau_follows_from_the_fitness_of_the_mutants(tmp_path: Path) -> None:
    files.write_2018(tmp_path)
    measured, readings = load(tmp_path)
    fitness: dict[frozenset[str], float] = {}
    for record in records(measured, "fitness"):
        genes = {p.gene for p in record.genotype.perturbations} - {HO}
        fitness[frozenset(genes)] = record.value
    found = records(measured, "tau")
    assert len(found) == readings["tau"].kept == len(files.PAIRS) * len(files.ARRAYS)
    for record in found:
        a, b, c = (p.gene for p in record.genotype.perturbations)
        sets = ((a, b, c), (a, b), (a, c), (b, c), (a,), (b,), (c,))
        expected = tau(*(fitness[frozenset(genes)] for genes in sets))
        assert record.value == pytest.approx(float(expected), abs=5e-4)  # fitness has four digits
        assert record.value <= 0


def test_single_fitness_stands_once_per_strain_and_number(tmp_path: Path) -> None:
    files.write_2018(tmp_path)
    measured, readings = load(tmp_path)
    assert readings[QUERIES].kept == 3 * len(files.PAIRS)
    assert readings[ARRAYS].kept == len(files.ARRAYS)
    rows = [DIGENIC, changed(DIGENIC, c9="0.9600"), changed(DIGENIC, c2="YAL048C_dma3"), DIGENIC]
    files.write_2018(tmp_path, rows)
    measured, readings = load(tmp_path)
    arrays = [r for r in records(measured, "fitness") if r.replicate.startswith("array")]
    assert sorted((r.replicate, r.value) for r in arrays) == [
        ("array YAL048C_dma2", 0.95),
        ("array YAL048C_dma2", 0.96),
        ("array YAL048C_dma3", 0.95),
    ]


@pytest.mark.parametrize(
    ("row", "dropped"),
    [
        (changed(TRIGENIC, c0="YGR999C+YPR120C_tm1"), dict.fromkeys(("tau", QUERIES), "unknown gene")),
        (changed(TRIGENIC, c2="YGR999C_dma1"), dict.fromkeys(("tau", ARRAYS), "unknown gene")),
        (changed(TRIGENIC, c2="DOUBLE_dma1"), dict.fromkeys(("tau", ARRAYS), "ambiguous gene name")),
        (changed(TRIGENIC, c2="YPR120C_tsa1", c3="clb5-1"), {"tau": SAME}),
        (changed(TRIGENIC, c0="YGR109C+YGR109C_tm1"), dict.fromkeys(("tau", QUERIES), SAME)),
        (changed(DIGENIC, c2="YDL227C_dma1"), {"epsilon": SAME}),
        (changed(TRIGENIC, c6="NaN"), {"tau": "no score given"}),
        (changed(TRIGENIC, c5=""), {"trigenic epsilon": "no score given"}),
        (changed(TRIGENIC, c10=""), {"fitness of crosses": "no fitness given"}),
        (changed(TRIGENIC, c8="NaN"), {QUERIES: "no fitness given"}),
        (changed(TRIGENIC, c9=""), {ARRAYS: "no fitness given"}),
        (changed(TRIGENIC, c4="digenic"), {"epsilon": "mutant type that its query cannot have"}),
        (changed(DIGENIC, c4="trigenic"), {"tau": "mutant type that its query cannot have"}),
    ],
)
def test_every_reason_is_counted(tmp_path: Path, row: list[str], dropped: dict[str, str]) -> None:
    other = changed(TRIGENIC, c0="YMR199W+YPL256C_tm7", c1="cln1Δ+cln2Δ", c2="YBL008W_dma90", c3="hir1Δ")
    files.write_2018(tmp_path, [other, row])
    _, readings = load(tmp_path)
    for use, reason in dropped.items():
        assert readings[use].dropped == {reason: 1}, use
        assert readings[use].kept == (0 if use == "epsilon" else 1)


def test_an_older_name_is_found_and_counted(tmp_path: Path) -> None:
    files.write_2018(tmp_path, [changed(TRIGENIC, c2="YAL999C_dma2")])
    measured, readings = load(tmp_path)
    assert readings["tau"].renamed == readings[ARRAYS].renamed == 1
    assert readings[QUERIES].renamed == 0
    assert spelled(records(measured, "tau")[0])[0][0] == "YAL048C"


def test_repeated_gene_triples_are_all_kept(tmp_path: Path) -> None:
    rows = [TRIGENIC, changed(TRIGENIC, c2="YAL048C_dma7", c6="-0.3"), changed(TRIGENIC, c6="-0.4")]
    files.write_2018(tmp_path, rows)
    measured, _ = load(tmp_path)
    found = records(measured, "tau")
    assert len(found) == 3
    assert len({record.genotype.id for record in found}) == 1


@pytest.mark.parametrize("name", [name for copy in RAW for name in (copy.name, *copy.aliases)])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_known_name_is_found(tmp_path: Path, name: str, ending: str) -> None:
    path = files.write_2018(tmp_path, [TRIGENIC], name=name)
    if ending:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    measured, _ = load(tmp_path)
    assert list(measured.studies[0].files) == [name + ending]


def test_a_missing_file_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"Data File S1_.*fetch it from https://boonelab"):
        read(tmp_path, GENES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YGR109C+YPR120C_tm1", "YGR109CYPR120C_tm1", "line 2: received 'YGR109CYPR120C_tm1', expected a q"),
        ("YGR109C+YPR120C_tm1", "YGR109C+YPR120C", "line 2: received 'YGR109C.YPR120C', expected a query"),
        ("clb6Δ+clb5Δ", "clb6Δclb5Δ", "line 2: received 'clb6Δclb5Δ', expected two allele names"),
        ("clb6Δ+clb5Δ", "clb6Δ+", "line 2: received 'clb6Δ.', expected two allele names"),
        ("YAL048C_dma2", "YAL048C+YBL007C_dma2", "line 2: .*, expected an array strain"),
        ("YAL048C_dma2", "YAL048C", "line 2: received 'YAL048C', expected an array strain"),
        ("gem1Δ", "", "line 2: received '', expected an allele name"),
        ("\ttrigenic\t", "\tquadrigenic\t", "line 2: received 'quadrigenic', expected digenic or trigenic"),
        ("0.00E+00", "1.5", "line 2: received '1.5', expected a p-value of 0 to 1"),
        ("0.0300", "-0.0300", "line 2: received '-0.03', expected a standard deviation of at least 0"),
        ("-0.200000", "x", "line 2: received 'x', expected a number in 'Adjusted genetic interaction score"),
        ("-0.200000", "inf", "line 2: received 'inf', expected a number"),
        ("\t0.4600", "", "line 2: received 11 fields, expected 12"),
        ("Query allele name", "Query allele", "line 1: received the header"),
        ("Combined mutant fitness\t", "Triple mutant fitness\t", "line 1: received 'Triple mutant fitness, "),
    ],
)
def test_damage_names_the_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = files.write_2018(tmp_path, [TRIGENIC])
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read(tmp_path, GENES)


def test_a_file_cut_short_or_of_another_organism_is_refused(tmp_path: Path) -> None:
    path = files.write_2018(tmp_path)
    whole = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(whole[:-20])
    with pytest.raises(SourceError, match="is cut short"):
        read(tmp_path, GENES)
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="no row is of genes of 'coli', expected most"):
        read(tmp_path, GeneIndex(["b0001"], organism="coli"))


def test_a_byte_order_mark_and_the_later_spelling_are_read(tmp_path: Path) -> None:
    path = files.write_2018(tmp_path, [TRIGENIC])
    expected = [record.model_dump() for record in read(tmp_path, GENES).records()]
    path.write_text("\ufeff" + files.text([TRIGENIC], files.HEADER_2020), encoding="utf-8")
    assert repr([record.model_dump() for record in read(tmp_path, GENES).records()]) == repr(expected)


@given(st.randoms(use_true_random=False))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_rows_changes_nothing(tmp_path: Path, random) -> None:
    rows = files.crosses()[:60]
    files.write_2018(tmp_path, rows)
    expected = Counter(repr(record) for record in read(tmp_path, GENES).records())
    random.shuffle(rows)
    files.write_2018(tmp_path, rows)
    assert Counter(repr(record) for record in read(tmp_path, GENES).records()) == expected


CELLS = st.sampled_from(
    [
        "",
        "NaN",
        "-1",
        "1e308",
        "0",
        "1.00E-310",
        "YAL048C",
        "YAL048C_dma2",
        "YGR109C+YDL227C_tm2",
        "a+b",
        "Δ",
        "digenic",
        "trigenic",
        "x" * 70,
        '"',
        "1_0",
        " ",
        "\0",
        "é",
    ]
)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), CELLS), min_size=1, max_size=4))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_file_is_read_in_full_or_refused(
    tmp_path: Path, changes: list[tuple[int, int, str]]
) -> None:
    rows = [list(row) for row in (TRIGENIC, DIGENIC, changed(TRIGENIC, c2="YBL007C_dma91"), DIGENIC)]
    for row, position, cell in changes:
        rows[row][position : position + 1] = [cell]  # beyond the last: one field more
    files.write_2018(tmp_path, rows)
    refusal = ""
    try:
        _, readings = load(tmp_path)
    except SourceError as error:
        refusal = str(error)
    if refusal:
        assert RAW[0].name in refusal
    else:
        assert readings["tau"].rows + readings["epsilon"].rows == len(rows)


def test_the_publisher_says_what_tau_is_not() -> None:
    assert any("one-sided" in note for note in PUBLISHER.notes)
    assert PUBLISHER.published["digenic rows"] + PUBLISHER.published["trigenic rows"] == 501510
    assert all(url.startswith("https://") for file in PUBLISHER.files for url in file.urls)
