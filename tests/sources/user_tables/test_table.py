"""A user's table: everything that is right is kept, and everything that is wrong is said at once."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.user_tables.tables import GENES, write, yeast
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, Genotype, Perturbation, PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.in_units import in_units
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.problems import SHOWN, TableProblems
from wildtype.sources.user_tables.table import read_table, study_name
from wildtype.sources.user_tables.vocabulary import PHENOTYPES, Columns
from wildtype.sources.yeast.screens import trigenic_table

FULL = """\
genes,value,kind,dose,condition,phenotype,sd,replicate,plate
SGS1;HPR5,0.41,absent,,YPD,fitness,0.05,1,7
sgs1;srs2,0.43,,,YPD,fitness,NA,2,8
CDC28;CLN2,-0.2,temperature-sensitive;absent,,YPD 37 C,epsilon,,1,7
PDR5,1.1,overexpressed,2.5,,titre,0,,7
"""
NO_KIND = (
    "is not a kind of perturbation; known kinds: absent, reduced, temperature sensitive, other allele, "
    "suppressor, overexpressed, added"
)

COMMA = "has a comma: import with --decimal , if 0,93 means 0.93, or with --thousands , if 1,234 means 1234"
EMPTY = "received '', expected a number: give it, or leave the row out (--skip-bad leaves out all such rows)"


def problems(path: Path, **options: str) -> list[str]:
    with pytest.raises(TableProblems) as error:
        read_table(path, yeast(), Layout(**options))  # type: ignore[arg-type]
    return [str(problem) for problem in error.value.problems]


def test_a_full_table_becomes_measurements(tmp_path: Path) -> None:
    readings: list[ReadReport] = []
    path = write(tmp_path, FULL, "My Screen.csv")
    m = read_table(path, yeast(), Layout(unit="mg/l"), collect=readings.append)
    assert readings == [ReadReport("My Screen.csv", "own data", 4, 4, renamed=1)]
    (study,) = m.studies
    assert (study.name, study.organism, study.licence) == ("my-screen", "yeast", "own data")
    assert study.publication.citation == "own data: My Screen.csv"
    assert study.files == {"My Screen.csv": hashlib.sha256(FULL.encode()).hexdigest()}
    assert study.notes == ("columns of the table that are not used: plate",)
    records = list(m.records())
    pair = Genotype(perturbations=(Perturbation(gene="YMR190C"), Perturbation(gene="YJL092W")))
    assert [r.genotype.id for r in records[:2]] == [pair.id, pair.id]
    assert [(r.value, r.sd, r.replicate) for r in records[:2]] == [
        (0.41, 0.05, "1"),
        (0.43, pytest.approx(math.nan, nan_ok=True), "2"),
    ]
    assert records[0].phenotype == PHENOTYPES["fitness"]
    assert records[0].environment == Environment(medium="YPD")
    assert {p.gene: p.kind for p in records[2].genotype.perturbations} == {
        "YBR160W": PerturbationKind.TEMPERATURE_SENSITIVE,
        "YPL256C": PerturbationKind.DELETION,
    }
    assert records[3].phenotype.name == "titre"
    assert records[3].phenotype.unit == "mg/l"
    assert records[3].environment == Environment()
    (pump,) = records[3].genotype.perturbations
    assert (pump.kind, pump.dose, records[3].sd) == (PerturbationKind.OVEREXPRESSION, 2.5, 0.0)


def test_every_problem_of_every_row_is_said(tmp_path: Path) -> None:
    text = """\
genes,value,kind,dose,condition,phenotype,sd,replicate
SGS1;SGS1,0.5,,,,fitness,0.1,a
YMR19OC,half,gone,lots,,fitness,-1,a
STS1,inf,absent;absent,1;2,,fitness,x,a
,,,,,,,
;SRS2,0.5,,-1,,,,
SGS1;SRS2;HO,"0,5",absent;reduced,1;2,,tau,,a
SGS1,,,,"a
b",a:b,1e999,"c\td"
SGS1;SRS2,1,,,,tau,,
HO,1_000,present,0x1,,epsilon,,
HO,1
"""
    assert problems(write(tmp_path, text)) == [
        f"row {place}: {message}"
        for place, message in (
            (
                "1 (line 2), column 'genes'",
                "names 'YMR190C' more than once ('SGS1', 'SGS1'): a gene counts once in a mutant",
            ),
            ("2 (line 3), column 'kind'", f"'gone' {NO_KIND}"),
            (
                "2 (line 3), column 'genes'",
                "'YMR19OC' is not in organism 'yeast' (8 genes); did you mean YMR190C?",
            ),
            ("2 (line 3), column 'dose'", "received 'lots', expected a number of at least 0"),
            ("2 (line 3), column 'value'", "received 'half', expected a number"),
            ("2 (line 3), column 'sd'", "received -1, expected a number of at least 0"),
            ("3 (line 4), column 'kind'", "names 2 kinds for 1 gene, expected one for all or one each"),
            (
                "3 (line 4), column 'genes'",
                "'STS1' is ambiguous in organism 'yeast' (8 genes): it may mean YOR153W, YIR026C; use one of "
                "these",
            ),
            ("3 (line 4), column 'dose'", "gives 2 doses for 1 gene, expected one each"),
            ("3 (line 4), column 'value'", "received 'inf', expected a number"),
            ("3 (line 4), column 'sd'", "received 'x', expected a number"),
            ("4 (line 6), column 'genes'", "has an empty name between separators"),
            ("4 (line 6), column 'dose'", "received '-1', expected a number of at least 0"),
            ("4 (line 6), column 'dose'", "gives 1 doses for 2 genes, expected one each"),
            (
                "4 (line 6), column 'phenotype'",
                "is empty, expected a name: give it, or one for all with --phenotype",
            ),
            ("5 (line 7), column 'kind'", "names 2 kinds for 3 genes, expected one for all or one each"),
            ("5 (line 7), column 'dose'", "gives 2 doses for 3 genes, expected one each"),
            ("5 (line 7), column 'value'", COMMA),
            ("6 (line 8), column 'value'", EMPTY),
            ("6 (line 8), column 'sd'", "received '1e999', expected a number"),
            (
                "6 (line 8), column 'condition'",
                "'a\\nb' holds the hidden character \\n: write the name without it",
            ),
            (
                "6 (line 8), column 'replicate'",
                "'c\\td' holds the hidden character \\t: write the name without it",
            ),
            (
                "6 (line 8), column 'phenotype'",
                "'a:b' cannot name a phenotype: write it without ':', '+' and ','",
            ),
            ("7 (line 10), column 'genes'", "names 2 of the at least 3 genes that tau is about"),
            ("8 (line 11), column 'kind'", f"'present' {NO_KIND}"),
            ("8 (line 11), column 'dose'", "received '0x1', expected a number of at least 0"),
            ("8 (line 11), column 'value'", "received '1_000', expected a number"),
            ("8 (line 11), column 'genes'", "names 1 of the at least 2 genes that epsilon is about"),
            ("9 (line 12)", "received 2 cells, expected 8"),
        )
    ]


def test_an_empty_set_of_genes_is_a_problem(tmp_path: Path) -> None:
    assert problems(write(tmp_path, "genes,value,kind,dose\n,1,gone,x\n")) == [
        "row 1 (line 2), column 'genes': is empty, expected at least one gene, or wt for the wild type",
        f"row 1 (line 2), column 'kind': 'gone' {NO_KIND}",
        "row 1 (line 2), column 'dose': received 'x', expected a number of at least 0",
    ]


def test_a_long_list_of_problems_is_capped_and_counted(tmp_path: Path) -> None:
    numbers = [f"HO,x{i}" for i in range(842)]
    rows = [*numbers, *[f"G{i},1" for i in range(SHOWN + 4)], "HO;HO,1"]
    path = write(tmp_path, "genes,value\n" + "\n".join(rows) + "\n")
    with pytest.raises(TableProblems) as error:
        read_table(path, yeast())
    assert len(error.value.problems) == 842 + SHOWN + 4 + 1
    lines = str(error.value).splitlines()
    assert lines[0] == f"{path} has 852 problems in 852 of 852 rows; nothing was read:"
    assert len(lines) == 1 + 1 + (SHOWN + 1) + (SHOWN + 1)
    # The one error of its kind comes first, and those without number last.
    assert "column 'genes': names 'YDL227C' more than once" in lines[1]
    assert lines[7] == "  … and 4 more of this kind (unknown name)"
    assert lines[8] == "  row 1 (line 2), column 'value': received 'x0', expected a number"
    assert lines[-1] == f"  … and {842 - SHOWN} more of this kind (not a number)"
    path = write(tmp_path, "genes,value\n" + "HO,x\n" * 1000)
    with pytest.raises(TableProblems) as error:
        read_table(path, yeast())
    assert str(error.value).splitlines()[1:] == [
        "  row 1 (line 2), row 2 (line 3), row 3 (line 4), row 4 (line 5), row 5 (line 6) and 995 more rows, "
        "column 'value': received 'x', expected a number"
    ]


@pytest.mark.parametrize(
    ("cell", "separator"),
    [
        ("SGS1;SRS2;HO", ""),
        ("SGS1,SRS2,HO", ""),
        ("SGS1+SRS2+HO", ""),
        ("SGS1|SRS2|HO", ""),
        ("SGS1 SRS2  HO", ""),
        ("SGS1 ; SRS2;HO", ""),
        ("SGS1,SRS2, HO", ","),
        ("SGS1/SRS2/HO", "/"),
        ("SGS1 SRS2 HO", " "),
    ],
)
def test_sets_are_written_in_many_ways(tmp_path: Path, cell: str, separator: str) -> None:
    m = read_table(write(tmp_path, f"genes\tvalue\n{cell}\t1\n"), yeast(), Layout(gene_separator=separator))
    assert {p.gene for p in m.genotype(0).perturbations} == {"YMR190C", "YJL092W", "YDL227C"}


def test_a_gene_with_a_separator_in_its_name(tmp_path: Path) -> None:
    m = read_table(write(tmp_path, 'genes;value\n"ARG5,6";1\n"ARG5,6+HO";1\n'), yeast())
    assert [len(m.genotype(row).perturbations) for row in (0, 1)] == [1, 2]


def test_kinds_in_many_words(tmp_path: Path) -> None:
    words = {
        "": 0, "absent": 0, "Deletion": 0, "reduced": 1, "DAmP": 1, "ts": 2, "temperature_sensitive": 2,
        "other allele": 3, "suppressor": 4, "OVEREXPRESSED": 5, "added": 6,
    }  # fmt: skip
    text = "genes,value,kind\n" + "".join(f"HO,1,{word}\n" for word in words)
    assert read_table(write(tmp_path, text), yeast()).kind.tolist() == list(words.values())
    text = "genes,value,kind\nHO;SGS1,1,\nHO;SGS1,1,ts\nHO;SGS1,1,;ts\nHO;SGS1,1,other allele;other allele\n"
    assert read_table(write(tmp_path, text), yeast()).kind.tolist() == [0, 0, 2, 2, 0, 2, 3, 3]


def test_doses_follow_their_genes(tmp_path: Path) -> None:
    text = "genes,value,dose\nHO;SGS1,1,0.5;2\nHO;SGS1,1,;2\nHO;SGS1,1,NA\nHO,1,3\n"
    doses = read_table(write(tmp_path, text), yeast()).dose
    assert np.nan_to_num(doses, nan=-1).tolist() == [0.5, 2, -1, 2, -1, -1, 3]


def test_a_foreign_gene_is_one_that_was_added(tmp_path: Path) -> None:
    m = read_table(
        write(tmp_path, "genes,value,kind\ncrtE;HO,1,added;absent\ncrtE,2,added\nHO,1,added\n"), yeast()
    )
    assert m.genes == (*GENES, "crtE")
    assert [m.genes[g] for g in m.gene] == ["crtE", "YDL227C", "crtE", "YDL227C"]
    assert "'crtE' is not in organism 'yeast'" in problems(write(tmp_path, "genes,value\ncrtE,1\n"))[0]
    text = "genes,value,kind\nSTS1,1,added\n"
    assert "'STS1' is ambiguous" in problems(write(tmp_path, text))[0]


def test_columns_by_other_names(tmp_path: Path) -> None:
    text = "Mutant,Titre,Was,Spread\nHO,3.5,ts,0.1\n"
    columns = Columns(genes="Mutant", value="titre", kind="Was", sd="Spread")
    m = read_table(write(tmp_path, text), yeast(), Layout(columns))
    assert (m.phenotypes[0].name, m.phenotypes[0].unit) == ("Titre", "not stated")
    assert (m.value[0], m.sd[0], m.kind[0]) == (3.5, 0.1, PerturbationKind.TEMPERATURE_SENSITIVE)


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ("gene,value", Columns(), r"no column 'genes' \(it has 'gene', 'value'\): .*--genes-column"),
        ("genes,y", Columns(), "no column 'value' .*--value-column"),
        ("genes,value", Columns(sd="error"), "no column 'error' .*--sd-column"),
        ("Genes,GENES,value", Columns(), "several columns 'genes'"),
        ("genes,value", Columns(sd="value"), "column 'value' is to be two things"),
        ("genes/value", Columns(), "or another --separator"),
    ],
)
def test_missing_and_doubtful_columns(tmp_path: Path, header: str, columns: Columns, message: str) -> None:
    row = ",".join("abc"[: header.count(",") + 1])
    path = write(tmp_path, f"{header}\n{row}\n")
    with pytest.raises(SourceError, match=message):
        read_table(path, yeast(), Layout(columns))


def test_phenotypes_are_named_by_option_column_or_header(tmp_path: Path) -> None:
    def names(text: str, **options: str) -> list[str]:
        m = read_table(write(tmp_path, text), yeast(), Layout(**options))  # type: ignore[arg-type]
        return [m.phenotypes[p].name for p in m.phenotype]

    assert names("genes,value\nHO,1\n") == ["value"]
    assert names("genes,value\nHO,1\n", phenotype="Fitness") == ["fitness"]
    assert names("genes,value,phenotype\nHO,1,size\nHO,1,\n", phenotype="fitness") == ["size", "fitness"]
    with pytest.raises(SourceError, match="'a,b' cannot name a phenotype"):
        names("genes,value\nHO,1\n", phenotype="a,b")
    with pytest.raises(SourceError, match="the unit of fitness is fixed, received 'cm'"):
        names("genes,value\nHO,1\n", phenotype="fitness", unit="cm")
    with pytest.raises(SourceError, match="cannot be a unit"):
        names("genes,value\nHO,1\n", unit="c\nm")


def test_known_phenotypes_mean_what_they_mean_in_the_screens() -> None:
    for ours, theirs in (
        (PHENOTYPES["fitness"], trigenic_table.FITNESS),
        (PHENOTYPES["epsilon"], trigenic_table.EPSILON),
        (PHENOTYPES["tau"], trigenic_table.TAU),
    ):
        for name in ("name", "unit", "direction", "level", "min_order"):
            assert getattr(ours, name) == getattr(theirs, name)


def test_names_of_studies() -> None:
    assert study_name("a/My Screen (2).final.CSV.gz") == "my-screen-2-.final"
    assert study_name("(.csv") == "own-data"
    assert study_name("my.csv", "other-2") == "other-2"
    for wrong in ("My", "a b", "-a", "a/b", "..", "é"):
        with pytest.raises(SourceError, match="cannot name a study"):
            study_name("my.csv", wrong)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.sampled_from(["SGS1", "HO", "CDK1", "sts1", "NOPE", "", "crtE"]), max_size=3),
            st.sampled_from(["1", "0.5", "-2e-3", "", "x", "nan", "1e31"]),
            st.lists(st.sampled_from(["absent", "ts", "added", "gone", ""]), max_size=3),
            st.sampled_from(["", "0.1", "-0.1", "NA"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_table_is_read_whole_or_not_at_all(
    tmp_path: Path, rows: list[tuple[list[str], str, list[str], str]]
) -> None:
    lines = [f"{'+'.join(genes)},{value},{'+'.join(kinds)},{sd},x" for genes, value, kinds, sd in rows]
    path = write(tmp_path, "genes,value,kind,sd,filler\n" + "\n".join(lines) + "\n")
    wrong, found = set(), None
    try:
        found = read_table(path, yeast())
    except TableProblems as error:
        wrong = {problem.row for problem in error.problems}
    for row, (genes, value, kinds, sd) in enumerate(rows, start=1):
        known = {"SGS1", "HO", "CDK1"} | ({"crtE", "NOPE"} if kinds == ["added"] else set())
        simple = len(set(genes)) == len(genes) > 0 and len(kinds) <= 1
        fine = simple and set(genes) <= known and "gone" not in kinds and value in ("1", "0.5", "-2e-3")
        if fine and sd != "-0.1":
            assert row not in wrong
        if value not in ("1", "0.5", "-2e-3") or sd == "-0.1" or not genes or "gone" in kinds:
            assert row in wrong
    assert (found is None) == bool(wrong)
    if found is not None:
        assert found.value.tolist() == [float(value) for _, value, _, _ in rows]


@pytest.mark.parametrize(
    "row",
    [
        "{long},0.1",
        "SGS1,{long}",
        "SGS1,-{digits}",
        "{long};{long},0.1",
        "{long};{long},0.1,added",
        "SGS1;SRS2,0.1,{long}",
        "SGS1,0.1,added,{long}",
    ],
)
def test_a_long_cell_is_shown_cut(row: str, tmp_path: Path) -> None:
    row = row.format(long="x" * 10_000, digits="9" * 10_000)
    path = write(tmp_path, f"genes,value,kind,dose\n{row}\n")
    assert all(len(problem) < 600 for problem in problems(path))


def operons() -> Organism:
    own = {"op1": ["YMR190C", "YJL092W"], "op2": ["YJL092W", "YPL256C"], "op3": ["YOR153W"]}
    return in_units(yeast(), own)


def test_units_are_named_or_spelled_by_their_genes(tmp_path: Path) -> None:
    text = (
        "queryA,arrayB,gi_rep1,gi_rep2\n"
        '"SGS1,HPR5",PDR5,1,2\nop1,op3,3,4\nop2,"YPL256C, YJL092W",5,6\nop1,op2,7,8\nop1,CDC28,9,\n'
    )
    readings: list[ReadReport] = []
    m = read_table(write(tmp_path, text), operons(), Layout(kind="reduced"), collect=readings.append)
    names = [sorted(m.genes[g] for g in m.gene[m.offsets[i] : m.offsets[i + 1]]) for i in range(len(m))]
    assert names == [["op1", "op3"]] * 4 + [["YBR160W", "op1"]]
    assert readings[0].dropped == {
        "pairs of a unit with itself": 2,
        "pairs of units that share a gene": 2,
        "empty cells": 1,
    }
    matrix = 'query,op1,op2,op3\nop1,1,2,3\n"YPL256C,SRS2",4,5,6\n'
    m = read_table(write(tmp_path, matrix), operons(), Layout(shape="crosses"), collect=readings.append)
    assert sorted(m.value) == [3, 6]
    assert readings[1].dropped == {"crosses of a gene with itself": 2, "pairs of units that share a gene": 2}
    with pytest.raises(TableProblems, match="'SRS2' is not in organism 'yeast'"):
        read_table(write(tmp_path, "genes,value\nop3,1\nSRS2,1\n"), operons())


def test_guides_by_a_table(tmp_path: Path) -> None:
    guides = write(tmp_path, "gene,guide\nSGS1,a1\nSGS1,a2\nSRS2,b1\nnegative,n1\n,n2\n", "guides.csv")
    path = write(tmp_path, "guideA,guideB,value\na1,b1,1\na2,b1,2\na1,a2,3\nn1,b1,4\nn1,n2,5\n")
    layout = Layout(guides=str(guides), controls=("negative", "control"))
    readings: list[ReadReport] = []
    m = read_table(path, yeast(), layout, collect=readings.append)
    assert m.value.tolist() == [1, 2, 5]
    assert [m.replicates[code] for code in m.replicate] == ["a1 b1", "a2 b1", ""]
    assert readings[0].dropped == {"pairs of guides of one gene": 1, "a gene beside a control": 1}
    with pytest.raises(TableProblems, match="looks like a control"):
        read_table(path, yeast(), Layout(guides=str(guides)))
    twice = write(tmp_path, "guide,gene\na,SGS1\na,SRS2\n", "guides.csv")
    with pytest.raises(SourceError, match="row 2: guide 'a' is against 'SRS2' and 'SGS1'"):
        read_table(path, yeast(), Layout(guides=str(twice)))
    with pytest.raises(SourceError, match="--guides 'prefix' is no file: give a table"):
        read_table(path, yeast(), Layout(guides="prefix"))


def test_a_matrix_and_a_list_of_its_cells_are_one(tmp_path: Path) -> None:
    names = ["SGS1", "HPR5", "CDC28", "CLN2", "PDR5", "ARG5,6"]
    rng = np.random.default_rng(0)
    for queries in (names, [*names[:3], "CLN2;PDR5"]):
        matrix, long = ["query;x," + ",".join(f'"{name}"' for name in names)], ["genes,value"]
        for query in queries:
            cells = [f"{value:.3f}" if value > -1 else "" for value in rng.normal(size=len(names))]
            matrix.append(f'"{query}",' + ",".join(cells))
            for name, cell in zip(names, cells, strict=True):
                if cell and name not in query.split(";"):
                    long.append(f'"{query};{name}",{cell}')
        a = read_table(write(tmp_path, "\n".join(matrix) + "\n"), yeast(), Layout(shape="crosses"))
        b = read_table(write(tmp_path, "\n".join(long) + "\n"), yeast(), Layout())
        assert [(r.genotype.id, r.value) for r in a.records()] == [
            (r.genotype.id, r.value) for r in b.records()
        ]


def test_a_name_that_is_written_as_a_deletion_is_one_whatever_the_others_are(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("genes,value\nAΔ,1\nB,2\n")
    organism = Organism("tiny", GeneIndex(["A", "B"], organism="tiny"))
    m = read_table(path, organism, Layout(kind="reduced"))
    assert m.kind.tolist() == [PerturbationKind.DELETION, PerturbationKind.REDUCED_EXPRESSION]


def test_genes_that_commas_separate_without_quotes_are_no_names_of_rows(tmp_path: Path) -> None:
    """The first gene of every row was dropped, as a name of the row that R writes."""
    path = tmp_path / "own.csv"
    organism = Organism("tiny", GeneIndex(["abcA", "abcB", "abcC"], organism="tiny"))
    path.write_text("genes,value\nabcA,abcB,0.98\nabcB,abcC,0.91\n")
    with pytest.raises(
        SourceError, match=r"one cell more than the header, .* \('abcA,abcB,0.98'\): put them"
    ):
        read_table(path, organism)
    for text in ("value\nabcA,0.9\nabcB,0.8\n", "gene,value\n1,abcA,0.9\n2,abcB,0.8\n",
                 "gene,value\nabcA,abcA,0.9\nabcB,abcB,0.8\n"):  # fmt: skip
        path.write_text(text)
        found = read_table(path, organism)
        assert [found.genes[gene] for gene in found.gene] == ["abcA", "abcB"]


def test_two_genes_with_a_hyphen_between_are_no_allele(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    organism = Organism("tiny", GeneIndex(["b0902", "b0724"], organism="tiny"))
    path.write_text("genes,value\nb0902-b0724,0.6\n")
    with pytest.raises(SourceError, match="may be two genes, b0902 and b0724: write b0902;b0724"):
        read_table(path, organism)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("abcA,97", "abcB,55"), "half of the values exceed 76"),
        (("abcA,0.5", "wt,0.65", "wt,0.64"), "wild types have 0.645"),
        (("abcA,0.5", "wt,1.02"), ""),
        (("abcA,0.97", "abcB,1.8"), ""),
    ],
)
def test_fitness_that_is_not_relative_to_the_wild_type_is_remarked(
    tmp_path: Path, rows: tuple[str, ...], said: str
) -> None:
    """Percentages and growth rates were taken as they are, and products of singles were in the thousands."""
    path, told = tmp_path / "own.csv", []
    path.write_text("\n".join(["genes,fitness", *rows]) + "\n")
    read_table(path, Organism("tiny", GeneIndex(["abcA", "abcB"], organism="tiny")), tell=told.append)
    remarks = [line for line in told[0].remarks if line.startswith("fitness is relative")]
    assert [said in line and "--from-growth" in line for line in remarks] == [True] * bool(said)


def test_a_cross_of_which_one_side_is_unknown_is_no_single_mutant(tmp_path: Path) -> None:
    """The column of queries was left out, and double mutants became mutants of the array gene."""
    path = tmp_path / "own.csv"
    path.write_text("query;array;fitness\nX1+X2;abcA;0.4\nX1+X3;abcB;0.5\n")
    organism = Organism("tiny", GeneIndex(["abcA", "abcB"], organism="tiny"))
    with pytest.raises(SourceError, match=r"most cells of column 'query', such as 'X1\+X2', are no genes"):
        read_table(path, organism)
    layout = Layout(columns=Columns(genes="array"))
    assert len(read_table(path, organism, layout)) == 2
    path.write_text("query;array;fitness\n;abcA;0.4\n;abcB;0.5\n")
    assert len(read_table(path, organism)) == 2


def test_conditions_that_differ_in_case_alone_are_remarked(tmp_path: Path) -> None:
    path, told = tmp_path / "own.csv", []
    path.write_text("genes,value,condition\nabcA,0.98,glucose\nabcA,0.96,Glucose\nabcB,0.9,heat\n")
    read_table(path, Organism("tiny", GeneIndex(["abcA", "abcB"], organism="tiny")), tell=told.append)
    remarks = [line for line in told[0].remarks if "case alone" in line]
    assert remarks == ["conditions that differ in upper and lower case alone: Glucose, glucose"]
