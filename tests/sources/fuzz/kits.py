"""Folders of small valid files, one per source or more: hand-written ones, and first lines of real ones.

Everything is taken from the tests of the readers themselves, where the files are described; what is written
here only chooses few rows. The real files are cut when the tests run and stored nowhere.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from tests.sources.spreadsheets import xls, xlsx
from tests.sources.user_tables import tables as own_tables
from tests.sources.yeast import test_metabolism, trigenic_files
from tests.sources.yeast.conftest import FILES
from tests.sources.yeast.genes import test_coordinates, test_sequences, test_sgd, test_uniprot
from tests.sources.yeast.genes.conftest import GFF
from tests.sources.yeast.graphs.conftest import TEXTS as GRAPHS
from tests.sources.yeast.screens import (
    test_baryshnikova2010,
    test_celaj2020,
    test_diazmejia2018,
    test_emap,
    test_jonikas2009,
    test_kuzmin2018,
    test_kuzmin2018_calls,
    test_kuzmin2020,
    test_tau_sga,
)
from tests.sources.yeast.traits import test_calmorph, test_damaged_tables
from tests.sources.yeast.traits.test_phenome import TWO_PLOIDIES
from tests.tiny import tiny_dataset
from wildtype.datasets.pinned import write_pinned
from wildtype.datasets.storage import save_dataset
from wildtype.organism import GeneIndex
from wildtype.organism.storage import save_organism
from wildtype.sources.yeast.genes.sgd import read_genes
from wildtype.sources.yeast.graphs.pair_lists import LISTS
from wildtype.sources.yeast.screens import celaj2020, diazmejia2018, emap, kuzmin2018
from wildtype.sources.yeast.screens.costanzo2010 import (
    INTERMEDIATE,
    RAW_TABLE,
    RESERVED_CROSSES,
    RESERVED_GENES,
    STRINGENT,
)
from wildtype.sources.yeast.screens.single_fitness import FITNESS, STRAIN_TABLE
from wildtype.sources.yeast.traits import calmorph
from wildtype.sources.yeast.traits.phenome import COSTANZO2021, GALARDINI, JORGENSEN, MATTIAZZI

Build = Callable[[Path], Any]
"""Fills an empty folder and returns what it is read for."""
SCREEN_GENES = GeneIndex(
    ["YAL001C", "YAL002W", "YAL043C-A", "YAR042W", "YBR126C", "YDL164C", "YDL227C", "YFL039C", "Q0045"],
    {"YAL001C": "TFC3", "YAL002W": "VPS8", "YBR126C": "TPS1", "YDL164C": "CDC9", "YDL227C": "HO"},
    {"YAR042W": ["YAR044W", "DOUBLE"], "YFL039C": ["ABY1", "DOUBLE"]},
    "yeast",
)
HEAD = 60
"""Lines of every real file."""
LINES = {"fasta": 1_500, "yeast_genes": 10_000, "emap_alleles": 1_000}
"""More of those whose records are long, or that number what the others name."""


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data, 1, mtime=0) if name.endswith(".gz") else data)


def _small(folder: Path, more: dict[str, str] | None = None) -> GeneIndex:
    _write(folder, FILES | (more or {}))
    return read_genes(folder)[0]


def _genes(folder: Path) -> GeneIndex:
    texts = {
        test_coordinates.TABLE: test_coordinates.ROWS,
        "sgd_id_to_systematic_name.lst": test_sgd.LIST,
        "SGDgeneNames.tsv": test_sgd.TABLE,
        test_sequences.TRANSLATED: test_sequences.PROTEINS,
        "UP000002311_559292.fasta": test_uniprot.HEADERS,
        "saccharomyces_cerevisiae.gff": GFF,
    }
    return _small(folder, texts)


def _mapping(folder: Path) -> GeneIndex:
    return _small(folder, {"YEAST_559292_idmapping.dat": test_uniprot.MAPPING})


def _graphs(folder: Path) -> GeneIndex:
    accessions = {"UP000002311_559292.fasta.gz": _proteome()}
    genes = _small(folder, GRAPHS | accessions)
    for name in ("regulatory_yeastract_20190713_both.tsv.gz", *(n for n in FILES if n.startswith("string"))):
        (folder / name).unlink()
    return genes


def _proteome() -> str:
    known = {"P03069": "GCN4", "P34111": "TFC3", "P39702": "VPS8", "P32471": "EFB1", "P10591": "SSA1"}
    lines = [f">sp|{a}|X_YEAST One OS=Yeast OX=559292 GN={name} PE=1 SV=1\nMA\n" for a, name in known.items()]
    return "".join(lines)


def _lists(version: str) -> Build:
    def build(folder: Path) -> GeneIndex:
        texts = {name.replace("12.0", version): text for name, text in GRAPHS.items() if "4932" in name}
        return _small(folder, texts)

    return build


def _pair_lists(folder: Path) -> GeneIndex:
    pairs = [("YAL001C", "YAL002W"), ("YAR044W", "YDL227C"), ("YAL003W", "YZZ999W"), ("YAL001C", "YAL003W")]
    texts = {}
    for item in LISTS:
        rows = [(*pair, f"0.{i}5") if item.weighted else pair for i, pair in enumerate(pairs)]
        texts[item.file] = "".join(item.separator.join(row) + "\n" for row in rows)
    return _small(folder, texts)


def _traits(folder: Path) -> GeneIndex:
    who = "Someone A~Other B, 2002"
    sizes = (
        f"orf\thap ? | cell size | YPD [standard] | {who}\thet | cell size | YPD [standard] | {who}\n"
        "YAL001C\t\t-0.1\nYAL002W\t0.2\t\n"
    )
    return _small(folder, test_damaged_tables.TEXTS | {JORGENSEN.file: sizes})


def _calmorph(folder: Path) -> GeneIndex:
    return _small(
        folder,
        {
            f"{calmorph.MUTANTS.name}.gz": test_calmorph.table("ORF", ["yal001c", "yal002w", "ycl074w"], 0.5),
            f"{calmorph.WILD_TYPES.name}.gz": test_calmorph.table("NAME", ["his3_1", "his3_2"], 0.25),
        },
    )


def _kuzmin2018(folder: Path) -> GeneIndex:
    rows = trigenic_files.crosses(pairs=trigenic_files.PAIRS[:1], arrays=trigenic_files.ARRAYS[:5])
    trigenic_files.write_2018(folder, [*rows, test_kuzmin2018.TRIGENIC, test_kuzmin2018.DIGENIC])
    test_kuzmin2018_calls.write_calls(folder)
    return test_kuzmin2018.GENES


def _calls(encoding: str, name: str) -> Build:
    def build(folder: Path) -> GeneIndex:
        text = trigenic_files.text(test_kuzmin2018_calls.S2_ROWS, test_kuzmin2018_calls.S2_HEADER)
        (folder / name).write_bytes(text.encode(encoding))
        return test_kuzmin2018_calls.GENES

    return build


def _kuzmin2020(folder: Path) -> GeneIndex:
    rows = [test_kuzmin2020.TRIGENIC, test_kuzmin2020.DIGENIC]
    trigenic_files.write_2020(folder, rows, rows[:1])
    test_kuzmin2020.write_s5(folder)
    return test_kuzmin2020.GENES


def _tau_sga(folder: Path) -> GeneIndex:
    _write(folder, test_tau_sga.SMALL)
    return test_tau_sga.GENES


RAW_2010 = (
    "YAL002W\tVPS8\tYAL043C-A\tYAL043C-A\t-0.2\t0.03\t1.5e-08\t0.9\t0.05\t1.01\t0.02\t0.7\t0.04\n"
    "YAL001C_tsq508\ttfc3-g349e\tyal002w\tVPS8\t0.01\t0.02\t0.4\t0.6\t0.1\t0.91\t0.05\t0.55\t0.06\n"
    "YAL001C_damp\tTFC3_damp\tQ0045\tCOX1\t0.02\t0.02\t0.3\tNaN\tNaN\tNaN\tNaN\t0.9\tNaN\n"
    "YAL002W\tVPS8\tYCL074W\tYCL074W\t0.1\t0.02\t0.04\t0.9\t0.05\t1\t0.01\t1\t0.05\n"
)
CROSSES_2016 = (
    "Query Strain ID\tQuery allele name\tArray Strain ID\tArray allele name\tArraytype/Temp\t"
    "Genetic interaction score (ε)\tP-value\tQuery single mutant fitness (SMF)\tArray SMF\t"
    "Double mutant fitness\tDouble mutant fitness standard deviation\n"
    "YAL002W_sn1\tvps8\tYAL043C-A_dma2\tyal043c-a\tDMA30\t-0.1234\t1.234E-02\t0.9\t\t0.8\t0.05\n"
    "YAL001C_tsq508\ttfc3-g349e\tQ0045_tsa7\tcox1-1\tTSA26\t0.2\t0.0\t0.5\t1\t0.7\t0.1\n"
    "YBR126C_S26\ttps1-supp2\tYAL002W_dma4\tvps8\tDMA30\t-0.05\t0.2\tNaN\t0.9\t0.6\t0.02\n"
    "YCL074W_sn8\tycl074w\tYAL002W_dma4\tvps8\tDMA30\t0.1\t0.1\t1\t0.9\t0.9\t0.1\n"
)


def _costanzo2010(folder: Path) -> GeneIndex:
    _write(folder, {f"{RAW_TABLE.name.removesuffix('.gz')}.gz": RAW_2010})
    return SCREEN_GENES


def _lists_2010(folder: Path) -> GeneIndex:
    rows = FILES[STRINGENT]
    return _small(
        folder,
        {
            INTERMEDIATE: rows + "YAL005C\tSSA1\tYAL002W\tVPS8\t-0.0800\t0.0300\t0.05\n",
            f"{RESERVED_CROSSES.name}.gz": "orf_a\torf_b\nYAL002W\tYAR044W\nYAL001C\tYCL074W\n",
            f"{RESERVED_GENES.name}.gz": "YAR044W\nYCL074W\n",
        },
    )


def _emaps(folder: Path) -> GeneIndex:
    tables = {emap.COLLINS_ALLELES: test_emap.ALLELES, emap.COLLINS_PAIRS: test_emap.PAIRS}
    tables[emap.SCHULDINER_PAIRS] = test_emap.NAMED
    return _small(folder, {f"{file.name}.gz": "\n".join(lines) + "\n" for file, lines in tables.items()})


def _costanzo2016(folder: Path) -> GeneIndex:
    _write(folder, {"SGA_NxN.txt": CROSSES_2016, FITNESS: FILES[FITNESS]})
    return SCREEN_GENES


def _strain_table(folder: Path) -> GeneIndex:
    _write(folder, {"SGA_ExE.txt": CROSSES_2016})
    rows = [[_number(cell) for cell in line.split("\t")] for line in FILES[FITNESS].splitlines()]
    (folder / STRAIN_TABLE.name).write_bytes(xlsx({"Sheet1": rows}))
    return SCREEN_GENES


def _number(cell: str) -> str | float | None:
    if cell.replace(".", "").isdigit():
        return float(cell)
    return cell or None


def _baryshnikova2010(folder: Path) -> GeneIndex:
    test_baryshnikova2010.write_workbook(folder)
    return SCREEN_GENES


def _compiled(folder: Path) -> GeneIndex:
    heading = "hap a/hap alpha | growth (colony size) | standard [standard] | Baryshnikova A~Myers CL, 2010"
    _write(
        folder,
        {f"{test_baryshnikova2010.COMPILED.name}.gz": f"orf\t{heading}\nYAL002W\t0.7\nYCL074W\t1\nQ0045\t\n"},
    )
    return SCREEN_GENES


def _celaj2020(folder: Path) -> GeneIndex:
    t = test_celaj2020
    texts = {
        celaj2020.GENOTYPES.name: t.genotypes(),
        celaj2020.RESISTANCE.name: t.table("both", ["tamoxifen", "benomyl"], ["A1", "A2", "A3", "B1", "B3"]),
        celaj2020.GROWTH_A.name: t.table("A", ["CTRL", "tamoxifen"], ["A1", "A2", "A3"]),
        celaj2020.GROWTH_ALPHA.name: t.table("alpha", ["CTRL", "tamoxifen"], ["B1", "XX"]),
    }
    _write(folder, texts)
    names = {orf: name for orf, name in t.TRANSPORTERS.items() if name}
    return GeneIndex(list(t.TRANSPORTERS), names, {}, "yeast")


def _jonikas2009(folder: Path) -> GeneIndex:
    genes = _small(folder)
    test_jonikas2009.write(folder, test_jonikas2009.variables())
    return genes


def _diazmejia2018(folder: Path) -> GeneIndex:
    return _small(folder, {f"{diazmejia2018.TABLE.name}.gz": test_diazmejia2018.table()})


def _growth(folder: Path) -> GeneIndex:
    names = [name for name in FILES if name.startswith("phenotype_growth_")]
    return _small(folder, dict.fromkeys(names, TWO_PLOIDIES))


def _two_conditions(folder: Path) -> GeneIndex:
    heads = [
        f"hap a (post-SGA) | {what} | {where} | None | Someone A~Other B, 2002"
        for what, where in (("growth (colony size)", "galactose [2 %]"), ("growth (colony size)", "standard"))
    ]
    text = (
        "\n".join(["\t".join(["orf", *heads]), "YAL001C\t0.1\t", "YAL002W\t-0.2\t0.3", "YZZ999W\t1\t1"])
        + "\n"
    )
    spots = text.replace("growth (colony size)", "spots", 1).replace("growth (colony size)", "tubes")
    return _small(folder, {COSTANZO2021.file: text, GALARDINI.file: text, MATTIAZZI.file: spots})


MODEL_GENES = GeneIndex(
    ["YAL001C", "YAL002W", "YHR001W-A", "Q0045"], {"YAL002W": "VPS8"}, {"Q0045": ["OXI3"]}, "yeast"
)
YAML = """!!omap
- metabolites:
  - !!omap
    - id: s_1
    - name: a
    - compartment: c
- reactions:
  - !!omap
    - id: r_1
    - name: uptake
    - metabolites: !!omap
      - s_1: 1.0
    - lower_bound: 0.0
    - upper_bound: 1000.0
    - gene_reaction_rule: YAL001C or VPS8
- genes:
  - !!omap
    - id: YAL001C
    - name: TFC3
  - !!omap
    - id: VPS8
    - name: VPS8
- id: tiny
- compartments: !!omap
  - c: cytosol
- version: '1'
"""


def _model(name: str, text: str) -> Build:
    def build(folder: Path) -> GeneIndex:
        _write(folder, {name: text})
        return MODEL_GENES

    return build


BIGG = test_metabolism.bigg_json("YAL001C and (VPS8 or YHR001W_A)", "OXI3", "YZZ999W or YAL001C")
KITS: dict[str, Build] = {
    "the organism's files": _small,
    "files of genes": _genes,
    "UniProt's mapping": _mapping,
    "publishers' graphs": _graphs,
    "STRING 11.0": _lists("11.0"),
    "STRING 11.5": _lists("11.5"),
    "lists of pairs": _pair_lists,
    "tables of traits": _traits,
    "CalMorph": _calmorph,
    "Kuzmin 2018": _kuzmin2018,
    "calls": _calls("utf-8", kuzmin2018.SIGNIFICANT[0].name),
    "calls in UTF-16": _calls("utf-16", kuzmin2018.SIGNIFICANT[1].name),
    "Kuzmin 2020": _kuzmin2020,
    "tau-SGA": _tau_sga,
    "Costanzo 2010": _costanzo2010,
    "Costanzo 2010, lists": _lists_2010,
    "E-MAPs": _emaps,
    "Costanzo 2016": _costanzo2016,
    "Costanzo 2016 with the workbook": _strain_table,
    "Baryshnikova 2010": _baryshnikova2010,
    "Baryshnikova 2010, compiled": _compiled,
    "Celaj 2020": _celaj2020,
    "Jonikas 2009": _jonikas2009,
    "Diaz-Mejia 2018": _diazmejia2018,
    "growth of two ploidies": _growth,
    "two conditions": _two_conditions,
    "Yeast-GEM": _model("yeast-GEM.yml", YAML),
    "Yeast-GEM, packed": _model("yeast-GEM_9.0.2.yml.gz", YAML),
    "Yeast-GEM as SBML": _model("yeast-GEM.xml", test_metabolism.SBML),
    "iMM904": _model("iMM904.json", BIGG),
    "iMM904 as SBML": _model("iMM904.xml", test_metabolism.SBML),
}
"""Seeds of the readers of publishers' files."""


def _own(name: str, content: bytes) -> Build:
    def build(folder: Path) -> Any:
        (folder / name).write_bytes(content)
        return folder / name, own_tables.yeast()

    return build


OWN = [
    ["genes", "kind", "dose", "value", "sd", "condition", "phenotype", "replicate"],
    ["SGS1", "", "", "0.5", "0.1", "SC", "fitness", "a"],
    ["YMR190C;SRS2", "absent;reduced", ";0.5", "-0.25", "", "", "epsilon", "b"],
    ["CDC28", "reduced", "", "1e-3", "0", "heat", "my yield", "c"],
    ["crtE;crtYB", "added;added", "2;1", "4.5", "", "", "my yield", "d"],
]


def own_csv() -> bytes:
    """A table of one's own, every column used."""
    return ("# made up\n" + "\n".join(",".join(row) for row in OWN) + "\n").encode()


def own_parquet() -> bytes:
    """The same as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = dict(zip(OWN[0], zip(*OWN[1:], strict=True), strict=True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array(list(cells)) for name, cells in columns.items()}), sink)
    return bytes(sink.getvalue().to_pybytes())


def _archive(kind: str) -> Build:
    def build(folder: Path) -> str:
        members = {"a/one.tsv": b"x\t1\n" * 40, "a/two.tsv": b"y\t2\n", "three.txt": b"z"}
        if kind == "zip":
            with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in members.items():
                    archive.writestr(zipfile.ZipInfo(name), data)
            return "archive.zip"
        source = folder.parent / f"{folder.name}.members"
        name = f"archive.{kind}"
        with tarfile.open(folder / name, "w:gz" if kind == "tgz" else "w") as tar:
            for member, data in members.items():
                path = source / member
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                tar.add(path, member)
        return name

    return build


def _pinned(suffix: str) -> Build:
    def build(folder: Path) -> Any:
        dataset = tiny_dataset(8)
        path = folder / f"pinned{suffix}"
        write_pinned(dataset.split("random", 1), dataset, path)
        return path, dataset

    return build


def _dataset(folder: Path) -> Any:
    dataset = tiny_dataset(8)
    save_dataset(dataset, folder)
    return dataset


def _organism(folder: Path) -> None:
    save_organism(tiny_dataset(8).organism, folder)


SHEET = [["gene", "value"], ["YAL001C", 1.5], ["YAL002W", -2.0], ["ACT1", None]]
OTHERS: dict[str, Build] = {
    "own CSV": _own("my.csv", own_csv()),
    "own TSV, packed": _own("my.tsv.gz", gzip.compress(own_csv().replace(b",", b"\t"), mtime=0)),
    "own Parquet": _own("my.parquet", own_parquet()),
    "own workbook": _own("my.xlsx", xlsx({"data": OWN})),
    "own old workbook": _own("my.xls", xls({"data": OWN})),
    "workbook": _own("book.xlsx", xlsx({"s": SHEET})),
    "old workbook": _own("book.xls", xls({"s": SHEET})),
    "zip": _archive("zip"),
    "tar": _archive("tar"),
    "tgz": _archive("tgz"),
    "pinned split": _pinned(".json"),
    "pinned split as Parquet": _pinned(".parquet"),
    "dataset": _dataset,
    "organism": _organism,
}
"""Seeds of what reads other files than publishers' tables."""


def build_heads(mirror: Path, folder: Path) -> None:
    """Write the first lines of every text file of a folder of publishers' files."""
    for path in sorted(mirror.iterdir()):
        if path.name.endswith(".gz") and "GEM" not in path.name:
            with gzip.open(path, "rb") as handle:
                lines = next((count for word, count in LINES.items() if word in path.name), HEAD)
                head = b"".join(islice(handle, lines))
            (folder / path.name).write_bytes(gzip.compress(head, 1, mtime=0))
