"""Tables as laboratories have them, one test per kind: imported as meant, or refused with row and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.sources.user_tables.tables import MORE, yeast
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.table import Reading, read_table
from wildtype.sources.user_tables.vocabulary import Columns

LETTERS = {
    PerturbationKind.DELETION: "",
    PerturbationKind.REDUCED_EXPRESSION: ":reduced",
    PerturbationKind.TEMPERATURE_SENSITIVE: ":ts",
    PerturbationKind.OTHER_ALLELE: ":other",
}
SKIP = Layout(skip_bad=True)
COMMA = Layout(decimal=",")


class Kind(NamedTuple):
    """One kind of table: its text, how it is laid out, what it becomes, and what is said about it."""

    text: str
    becomes: list[str]
    layout: Layout = Layout()
    said: tuple[str, ...] = ()
    left_out: dict[str, int] = {}  # noqa: RUF012


class Refused(NamedTuple):
    """One kind of table that is refused, and parts of what is said."""

    text: str
    said: tuple[str, ...]
    layout: Layout = Layout()


def spelled(m: Measurements) -> list[str]:
    """Return a measurement per line: genes and their kinds, value, trait, label, sd."""
    index = yeast(MORE).genes
    lines = []
    for row in range(len(m)):
        at = slice(m.offsets[row], m.offsets[row + 1])
        genes = "+".join(
            index.standard[m.genes[g]] + LETTERS[PerturbationKind(k)]
            for g, k in zip(m.gene[at], m.kind[at], strict=True)
        )
        parts = [genes or "wt", f"{m.value[row]:g}", index.standard.get(m.traits[m.trait[row]], "")]
        parts += [m.replicates[m.replicate[row]], f"±{m.sd[row]:g}" if np.isfinite(m.sd[row]) else ""]
        lines.append(" ".join(filter(None, parts)))
    return lines


IMPORTED = {
    # --- genes
    "two columns of genes": Kind(
        "geneA,geneB,value\nSGS1,SRS2,0.4\nSGS1,HO,1\n",
        ["SGS1+SRS2 0.4", "SGS1+HO 1"],
        Layout(Columns(genes="geneA,geneB")),
    ),
    "two columns of genes, guessed": Kind(
        "query,array,note,fitness\nSGS1,SRS2,fine,0.4\nCDC28,PDR5,fine,1\n",
        ["SGS1+SRS2 0.4", "CDC28+PDR5 1"],
        said=("genes: columns 'query', 'array', by what the cells hold", "values: column 'fitness'"),
    ),
    "three columns of genes": Kind(
        "a,b,c,value\nSGS1,SRS2,CLN2,0.4\nSGS1,HO,wt,1\n", ["SGS1+SRS2+CLN2 0.4", "SGS1+HO 1"]
    ),
    "a further gene left empty": Kind(
        "geneA,geneB,value\nSGS1,SRS2,0.4\nSGS1,,0.9\n",
        ["SGS1+SRS2 0.4", "SGS1 0.9"],
        said=("an empty cell in a column of genes, taken for mutants of the others: 1",),
    ),
    "systematic and standard name in columns": Kind(
        "ORF,name,value\nYMR190C,SGS1,0.9\nYJL092W,SRS2,1\nYPL256C,cln2,1\n",
        ["SGS1 0.9", "SRS2 1", "CLN2 1"],
        said=("column 'name' names the genes of 'ORF' again",),
    ),
    "systematic and standard name in a cell": Kind(
        "genes,value\nSGS1 (YMR190C),0.9\nYJL092W [SRS2],1\n", ["SGS1 0.9", "SRS2 1"]
    ),
    "wild-type rows": Kind(
        "genes,value\nwt,1\nWT,1.01\n+,0.99\nwild type,1\nwildtype,1\nSGS1;wt,0.9\n",
        ["wt 1", "wt 1.01", "wt 0.99", "wt 1", "wt 1", "SGS1 0.9"],
        said=("measurements of the wild type or of controls alone", "left out of datasets: 5"),
    ),
    "wild type in a column of genes": Kind(
        "geneA,geneB,value\nSGS1,WT,0.9\nWT,SRS2,1\n+,+,1\n", ["SGS1 0.9", "SRS2 1", "wt 1"]
    ),
    "declared controls": Kind(
        "geneA,geneB,value\nSGS1,negative,0.9\nsafe_12,Negative,1\nSGS1,HO,0.8\n",
        ["SGS1 0.9", "wt 1", "SGS1 0.8"],
        Layout(controls=("negative", "safe*", "HO"), control_pairs="single"),
    ),
    "genes beside controls": Kind(
        "geneA,geneB,value\nSGS1,negative,0.9\nsafe_12,Negative,1\nSGS1,SRS2,0.8\n",
        ["wt 1", "SGS1+SRS2 0.8"],
        Layout(controls=("negative", "safe*")),
        said=("left out as controls: 1; --control-pairs single keeps them",),
        left_out={"a gene beside a control": 1},
    ),
    "names like controls that are none": Kind(
        "geneA,geneB,value\nSGS1,HO,0.9\n", ["SGS1+HO 0.9"], Layout(controls=("none",))
    ),
    "guides, by a suffix": Kind(
        "guideA,guideB,value\nSGS1_g1,SRS2_g1,0.4\nSGS1_g2,sgSRS2-1,0.6\nSGS1_g1,SGS1_g2,1\n",
        ["SGS1+SRS2 0.4 SGS1_g1 SRS2_g1", "SGS1+SRS2 0.6 SGS1_g2 sgSRS2-1"],
        Layout(guides="suffix"),
        said=("guides, taken for their genes: SGS1_g1 (SGS1 (YMR190C))",),
        left_out={"pairs of guides of one gene": 1},
    ),
    "guides below the wild type": Kind(
        "geneA,geneB,value\nwt,wt,1\nSGS1_g1,wt,0.9\nwt,SRS2_g1,0.8\nSGS1_g1,SRS2_g1,0.4\n",
        ["wt 1", "SGS1 0.9 SGS1_g1", "SRS2 0.8 SRS2_g1", "SGS1+SRS2 0.4 SGS1_g1 SRS2_g1"],
        Layout(guides="suffix"),
    ),
    "guides of a published library": Kind(
        "guide,value\nSGS1_+_44280922.23-P1P2,0.4\n",
        ["SGS1 0.4 SGS1_+_44280922.23-P1P2"],
        Layout(guides="suffix"),
    ),
    "one kind for all": Kind(
        "genes,value,kind\nSGS1,1,\nSRS2,1,absent\ncdc28-ts,1,\n",
        ["SGS1:reduced 1", "SRS2 1", "CDC28:ts 1"],
        Layout(kind="CRISPRi"),
    ),
    "genes as rows of a matrix of expression": Kind(
        "gene,wt,SGS1_rep1,SGS1_rep2,CDC28;SRS2\nHO,5,6,7,8\nCLN2,1,,3,4\n",
        [
            "wt 5 HO",
            "SGS1 6 HO rep1",
            "SGS1 7 HO rep2",
            "CDC28+SRS2 8 HO",
            "wt 1 CLN2",
            "SGS1 3 CLN2 rep2",
            "CDC28+SRS2 4 CLN2",
        ],
        Layout(shape="responses"),
        left_out={"empty cells": 1},
    ),
    "a column that is no gene, left out": Kind(
        "mutant,SRS2,HO,total\nCDC28,1,2,3\nSGS1,1,2,3\n",
        ["CDC28 1 SRS2", "CDC28 2 HO", "SGS1 1 SRS2", "SGS1 2 HO"],
        Layout(shape="profiles", skip_bad=True),
        left_out={"columns with a problem, left out": 2},
    ),
    "a matrix of crosses with a control": Kind(
        "query,SRS2,negative\nSGS1,1,2\nnegative,3,4\n",
        ["SGS1+SRS2 1", "wt 4"],
        Layout(shape="crosses", controls=("negative",)),
        left_out={"a gene beside a control": 2},
    ),
    "several phenotypes with replicates and their sd": Kind(
        "genes,n_rep1,n_rep2,sn1,sn2,area,sa\nSGS1,1,2,.1,.2,3,.3\nSRS2,4,,.4,,5,.5\n",
        [
            "SGS1 1 n_rep1 ±0.1",
            "SGS1 2 n_rep2 ±0.2",
            "SGS1 3 area ±0.3",
            "SRS2 4 n_rep1 ±0.4",
            "SRS2 5 area ±0.5",
        ],
        Layout(Columns(value="n_rep1,n_rep2; size=area", sd="sn1,sn2,sa")),
        left_out={"empty cells": 1},
    ),
    "notes below the table, marked": Kind(
        "genes,value\nSGS1,1\n,\n* p below 0.05\nMeasured in May by two people\n",
        ["SGS1 1"],
        said=("lines below the table are taken for notes: '* p below 0.05'",),
        left_out={"notes below the table": 2},
    ),
    "a column of perturbations that are genes": Kind(
        "perturbation,value\nSGS1,1\nSRS2,2\n", ["SGS1 1", "SRS2 2"]
    ),
    "a neutral locus": Kind(
        "genes,value\nSGS1;HO,0.9\nHO,1\n",
        ["SGS1+HO 0.9", "HO 1"],
        said=("mutants with HO, which screens perturb in their controls: 2", "--controls HO"),
    ),
    "alleles": Kind(
        "genes,value\ncdc48-3,0.5\ncdc28-ts;SGS1,0.4\nCDC28_damp,0.7\nygr146c-3,1\n",
        ["CDC48:ts 0.5", "CDC28:ts+SGS1 0.4", "CDC28:reduced 0.7", "ECL1:ts 1"],
        said=("alleles, taken for temperature-sensitive ones", "cdc48-3 (CDC48 (YDL126C))"),
    ),
    "alleles with a column of kinds": Kind(
        "genes,value,kind\ncdc48-3,0.5,other allele\n", ["CDC48:other 0.5"]
    ),
    "deletions by their mark": Kind(
        "genes,value\nACH1Δ,1\nrad52Δ::kanMX4,0.8\nrad52::URA3,0.8\nsgs1-delta srs2∆,0.4\nΔho,1\nsgs1Δ0,1\n",
        ["ACH1 1", "RAD52 0.8", "RAD52 0.8", "SGS1+SRS2 0.4", "HO 1", "SGS1 1"],
    ),
    "genes with their kind, as predictions have them": Kind(
        "genes,value\nSGS1:absent;SRS2:reduced,0.5\nYBR160W:ts,1\n", ["SGS1+SRS2:reduced 0.5", "CDC28:ts 1"]
    ),
    "proteins": Kind("genes,value\nRad52p,1\nCdc48p;Sgs1p,2\n", ["RAD52 1", "CDC48+SGS1 2"]),
    "strains of collections": Kind(
        "genes,value\nYMR190C_dma12,1\nYBR160W_tsq508,0.4\n", ["SGS1 1", "CDC28:ts 0.4"]
    ),
    "genes that became dates": Kind(
        "genes,value\n1-Oct,1\nOct-01;SGS1,0.5\n2023-10-01 00:00:00,1\nOCT1,1\n4-Sep,2\n",
        ["OCT1 1", "OCT1+SGS1 0.5", "OCT1 1", "OCT1 1", "CDC12 2"],
        said=("dates that a spreadsheet program made", "1-Oct (OCT1 (YKL134C))"),
    ),
    "names with spaces around": Kind("genes , value\n SGS1 ; SRS2\u00a0, 0.5\n", ["SGS1+SRS2 0.5"]),
    # --- numbers
    "decimal commas": Kind("genes;value;sd\nSGS1;0,93;0,1\nSRS2;1;\n", ["SGS1 0.93 ±0.1", "SRS2 1"], COMMA),
    "thousands beside a decimal mark": Kind(
        'genes,value\nSGS1,"1,234.5"\nSRS2,"12,345,678.0"\n', ["SGS1 1234.5", "SRS2 1.23457e+07"]
    ),
    "thousands by blanks or apostrophes": Kind(
        "genes,value\nSGS1,1 234\nSRS2,1\u202f234.5\nHO,1'234\n", ["SGS1 1234", "SRS2 1234.5", "HO 1234"]
    ),
    "thousands that are declared": Kind(
        'genes,value\nSGS1,"1,234"\nHO,12\n', ["SGS1 1234", "HO 12"], Layout(thousands=",")
    ),
    "thousands beside decimal commas": Kind("genes;value\nSGS1;1.234,5\n", ["SGS1 1234.5"], COMMA),
    "another minus sign": Kind("genes,value\nSGS1,\u22120.5\n", ["SGS1 -0.5"]),
    "units in headers": Kind(
        "genes,titre (mg/l),sd [mg/l]\nSGS1,2,0.5\n", ["SGS1 2 ±0.5"], said=("values: column 'titre (mg/l)'",)
    ),
    "empty cells, left out": Kind(
        "genes,value\nSGS1,1\nSRS2,\nHO,NA\nCLN2,#DIV/0!\nNOPE,1\n",
        ["SGS1 1"],
        SKIP,
        left_out={"rows with a problem, left out": 4},
    ),
    # --- replicates and matrices
    "replicates as columns": Kind(
        "genes,rep1,rep2,rep3\nSGS1,0.5,0.7,\nSRS2,1,1,1\n",
        ["SGS1 0.5 rep1", "SGS1 0.7 rep2", "SRS2 1 rep1", "SRS2 1 rep2", "SRS2 1 rep3"],
        said=("values: replicates in the columns 'rep1', 'rep2', 'rep3'",),
        left_out={"empty cells": 1},
    ),
    "replicates with units": Kind(
        "genes,size rep1 (mm2),size rep2 (mm2)\nSGS1,0.5,0.7\n",
        ["SGS1 0.5 size rep1 (mm2)", "SGS1 0.7 size rep2 (mm2)"],
        said=("values: replicates",),
    ),
    "replicates in brackets": Kind(
        "genes,size (rep 1),size (rep 2)\nSGS1,0.5,0.7\n",
        ["SGS1 0.5 size (rep 1)", "SGS1 0.7 size (rep 2)"],
        said=("values: replicates",),
    ),
    "replicates as columns, named": Kind(
        "genes,mon,tue,n\nSGS1,0.5,0.7,9\n",
        ["SGS1 0.5 mon", "SGS1 0.7 tue"],
        Layout(Columns(value="mon,tue")),
    ),
    "a matrix of crosses": Kind(
        "query,SGS1,SRS2,cdc48-3\nSGS1,,-0.4,0.1\nHO,0.01,NA,0\n",
        ["SGS1+SRS2 -0.4", "SGS1+CDC48:ts 0.1", "HO+SGS1 0.01", "HO+CDC48:ts 0"],
        Layout(phenotype="epsilon"),
        left_out={"empty cells": 2},
    ),
    "a matrix of crosses with its diagonal": Kind(
        ",SGS1,SRS2\nSGS1,0,-0.4\nSRS2,-0.4,0\n",
        ["SGS1+SRS2 -0.4", "SRS2+SGS1 -0.4"],
        Layout(shape="crosses"),
        left_out={"crosses of a gene with itself": 2},
    ),
    "a matrix of expression": Kind(
        "mutant,YMR190C,SRS2,HO\nwt,5,6,7\nCDC28,1,2,\n",
        ["wt 5 SGS1", "wt 6 SRS2", "wt 7 HO", "CDC28 1 SGS1", "CDC28 2 SRS2"],
        Layout(shape="profiles"),
        left_out={"empty cells": 1},
    ),
    "names of rows without a header": Kind(
        "value,sd\nSGS1,0.5,0.1\nSRS2,1,0.2\n", ["SGS1 0.5 ±0.1", "SRS2 1 ±0.2"]
    ),
    # --- lines around the table
    "a byte order mark": Kind("\ufeffgenes,value\nSGS1,1\n", ["SGS1 1"]),
    "a title above": Kind("My screen of 2024,,\n,,\ngenes,value,sd\nSGS1,1,0.1\n", ["SGS1 1 ±0.1"]),
    "a merged header": Kind(
        "Strain,Fitness,,\n,rep1,rep2,rep3\nSGS1,1,2,3\n",
        ["SGS1 1 rep1", "SGS1 2 rep2", "SGS1 3 rep3"],
        said=("are taken for one header: Strain, rep1, rep2, rep3",),
    ),
    "a repeated header": Kind(
        "genes,value\nSGS1,1\ngenes,value\nSRS2,2\n",
        ["SGS1 1", "SRS2 2"],
        said=("the header stands 2 times",),
        left_out={"repeated header": 1},
    ),
    "totals at the end": Kind(
        "genes,value\nSGS1,1\nSRS2,3\n\nMean,2\nTotal:,4\n",
        ["SGS1 1", "SRS2 3"],
        left_out={"totals below the table": 2},
    ),
    "columns twice with the same cells": Kind(
        "genes,value,genes\nSGS1,1,SGS1\n", ["SGS1 1"], said=("2 columns 'genes' have the same cells",)
    ),
    "another separator in the header": Kind(
        "genes,value\nSGS1;1\nSRS2;2\n", ["SGS1 1", "SRS2 2"], said=("another separator than the rows",)
    ),
    "columns by usual names": Kind(
        "Strain,Fitness,StDev,Medium\nSGS1,0.5,0.1,YPD\n",
        ["SGS1 0.5 ±0.1"],
        said=("sd: column 'StDev'", "condition: column 'Medium'"),
    ),
}
REFUSED = {
    "an undeclared control": Refused(
        "geneA,geneB,value\nSGS1,SRS2,1\nSGS1,negative,1\nSGS1,non-targeting 3,1\n",
        (
            "row 2 (line 3), column 'geneB'",
            "'negative' looks like a control",
            "--controls 'negative'",
            "'non-targeting 3'",
        ),
    ),
    "a guide or an allele": Refused(
        "genes,value\nSGS1-1,1\n", ("row 1", "allele of SGS1 or one of several guides")
    ),
    "an unknown gene like a known one": Refused(
        "genes,value\nYGR146C-B,1\n", ("row 1", "did you mean YGR146C")
    ),
    "a deletion with another kind": Refused(
        "genes,value,kind\nach1Δ,1,overexpressed\n",
        ("row 1", "says overexpressed of 'ach1Δ', which is written as absent"),
    ),
    "a date that may be two genes": Refused(
        "genes,value\n7-Mar,1\n", ("row 1", "write which of MARCH7, MARC7")
    ),
    "a date that is no gene": Refused(
        "genes,value\n2-Feb,1\n", ("row 1", "as in FEB2, which this organism does not have")
    ),
    "two names of two genes": Refused(
        "genes,value\nSGS1 (SRS2),1\n", ("row 1", "'SGS1' and 'SRS2' are two genes")
    ),
    "undeclared decimal commas": Refused(
        "genes;value\n" + "SGS1;0,93\n" * 842 + "NOPE;1\n",
        (
            "column 'genes': 'NOPE' is not in organism",
            "and 837 more rows, column 'value': has a comma: import with --decimal ,",
        ),
    ),
    "undeclared thousands": Refused(
        'genes,value\nSGS1,"1,234"\n', ("row 1", "or with --thousands , if 1,234 means 1234")
    ),
    "points beside decimal commas": Refused(
        "genes;value\nSGS1;1,5\nHO;1.5\n", ("row 2", "has a point"), COMMA
    ),
    "decimal commas that separate": Refused(
        "genes,value\nSGS1,0,93\nSRS2,1,01\n",
        ("as if decimal commas separated columns", "semicolons or tabs"),
    ),
    "units in cells": Refused(
        "genes,value\nSGS1,3 mg/l\nHO,<5\n", ("row 1", "received '3 mg/l'", "received '<5'")
    ),
    "empty cells": Refused("genes,value\nSGS1,1\nHO,\n", ("row 2", "received ''", "--skip-bad")),
    "an empty gene": Refused("genes,value\nSGS1,1\n,2\n", ("row 2", "or wt for the wild type")),
    "nothing but bad rows": Refused("genes,value\nNOPE,1\nHO,\n", ("2 problems in 2 of 2 rows",), SKIP),
    "a matrix of two meanings": Refused(
        "query,SGS1,SRS2\nHO,1,2\n",
        ("is a matrix with genes as columns", "--shape crosses", "--shape profiles"),
    ),
    "a column of a matrix that is no gene": Refused(
        "query,SGS1,SRS2,total\nHO,1,2,3\n",
        ("the header, column 'total'", "'total' is not in organism"),
        Layout(shape="profiles"),
    ),
    "several columns of numbers": Refused(
        "genes,size,titre\nHO,1,2\n", ("several columns of numbers ('size', 'titre')", "--value-column")
    ),
    "columns twice with other cells": Refused(
        "genes,value,value\nSGS1,1,2\n", ("several columns 'value': rename",)
    ),
    "a named column that is missing": Refused(
        "geneA,value\nSGS1,1\n", ("no column 'geneB'", "--genes-column"), Layout(Columns(genes="geneA,geneB"))
    ),
    "separators mixed between rows": Refused(
        "genes,value\nSGS1,1\nSRS2;2\nHO,3\n", ("row 2 (line 3)", "it is separated by ';'")
    ),
    "a lost cell below the table": Refused(
        "genes,value\nSGS1,1\nSRS2 HO\n", ("row 2 (line 3)", "received 1 cells")
    ),
    "guides that nobody named": Refused(
        "guideA,guideB,value\nCDC28_g1,sgSGS1-2,1\n",
        ("row 1", "'CDC28_g1' looks like a guide against CDC28", "--guides suffix", "'sgSGS1-2'"),
    ),
    "a control that nobody named is not left out": Refused(
        "genes,value\nSGS1,1\nnegative,2\n", ("row 2", "--controls none"), SKIP
    ),
    "a flag that is none": Refused(
        "genes,value,censored\nSGS1,1,perhaps\n", ("row 1", "received 'perhaps', expected yes or no")
    ),
    "a matrix with censored values": Refused(
        "query,SGS1,SRS2\nHO,1,2\n",
        ("in which no value can be censored",),
        Layout(shape="crosses", censored_at="0"),
    ),
    "fewer genes than an interaction has": Refused(
        "geneA,geneB,value\nSGS1,SRS2,0.4\nSGS1,,0.9\n",
        ("row 2", "names 1 of the at least 2 genes that gi is about"),
        Layout(phenotype="gi", fewest_genes=2),
    ),
    "sd for some of the values": Refused(
        "genes,a1,a2,a3,s1,s2\nSGS1,1,2,3,4,5\n",
        ("2 columns of sd for 3 of values",),
        Layout(Columns(value="a1,a2,a3", sd="s1,s2")),
    ),
    "two phenotypes of one name": Refused(
        "genes,a1,a2,a3,a4\nSGS1,1,2,3,4\n",
        ("both the phenotype 'a'", "size=a1,a2"),
        Layout(Columns(value="a1,a2;a3,a4")),
    ),
    "a row with two sorts of errors": Refused(
        "genes,value,sd\nNOPE,x,-1\n", ("'NOPE' is not in organism", "received 'x'", "received -1")
    ),
}


def read(folder: Path, text: str, layout: Layout) -> tuple[Measurements, ReadReport, Reading]:
    path = folder / "my.csv"
    path.write_text(text, encoding="utf-8")
    reports: list[ReadReport] = []
    readings: list[Reading] = []
    m = read_table(path, yeast(MORE), layout, collect=reports.append, tell=readings.append)
    return m, reports[0], readings[0]


@pytest.mark.parametrize("name", IMPORTED)
def test_imported_as_meant(tmp_path: Path, name: str) -> None:
    kind = IMPORTED[name]
    m, report, reading = read(tmp_path, kind.text, kind.layout)
    assert spelled(m) == kind.becomes
    said = "\n".join(reading.remarks)
    for part in kind.said:
        assert part in said
    assert report.dropped == kind.left_out
    assert report.rows == report.kept + sum(report.dropped.values())
    # What was guessed reads the table in the same way, and then nothing about columns is guessed.
    again = Layout.from_plain(reading.layout.to_plain())
    assert spelled(read(tmp_path, kind.text, again)[0]) == kind.becomes


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_row_and_remedy(tmp_path: Path, name: str) -> None:
    kind = REFUSED[name]
    with pytest.raises(SourceError) as error:
        read(tmp_path, kind.text, kind.layout)
    for part in kind.said:
        assert part in str(error.value)
