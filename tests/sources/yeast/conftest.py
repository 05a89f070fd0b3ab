"""A folder of small files in exactly the published layouts, and the real organism, built once."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast import build_organism
from wildtype.sources.yeast.genes.sgd import read_genes

ORFS = {  # systematic: (standard, aliases, qualifier)
    "YAL001C": ("TFC3", "FUN24|tau 138|TSV115", "Verified"),
    "YAL002W": ("VPS8", "FUN15|VPT8", "Verified"),
    "YAL003W": ("EFB1", "EF-1 beta|TEF5", "Verified"),
    "YAL004W": ("", "", "Dubious"),
    "YAL005C": ("SSA1", "YG100|FLO8", "Verified"),
    "YAR042W": ("SWH1", "OSH1|YAR044W", "Verified"),
    "YDL227C": ("HO", "", "Verified"),
    "YEL009C": ("GCN4", "AAS101|ARG9|AAS3", "Verified"),
    "YGL045W": ("RIM8", "PAL3|YGL046W|DOUBLE", "Verified"),
    "YBL093C": ("ROX3", "MED19|NUT3|SSN7|DOUBLE", "Verified"),
    "Q0045": ("COX1", "OXI3", "Verified"),
    "YFL039C": ("ACT1", "ABY1|END7", "Verified"),
}
CHANNELS = "neighborhood\tfusion\tcooccurence\tcoexpression\texperimental\tdatabase"


def _features() -> str:
    lines = []
    for i, (orf, (standard, aliases, qualifier)) in enumerate(ORFS.items()):
        cells = [
            f"S{i:09d}",
            "ORF",
            qualifier,
            orf,
            standard,
            aliases,
            "chromosome 1",
            "",
            "1",
            # 1,000 kb apart: no two of these genes are linked
            f"{i * 1_000_000 + 10}",
            f"{i * 1_000_000 + 99}",
            "W",
        ]
        lines.append("\t".join([*cells, "", "1996-07-31", "1996-07-31", 'Subunit, "quoted" here']))
        lines.append(
            "\t".join([f"T{i:09d}", "CDS", "", "", "", "", orf, "", "1", "10", "99", "W", "", "", "", ""])
        )
    lines.append("\t".join(["S99", "blocked_reading_frame", "", "YER109C", "FLO8", "", *[""] * 10]))
    return "\r\n".join(lines) + "\r\n"


def _coding() -> str:
    sequence = {
        orf: "ATG" + "GCTGAAAAACTGTCT"[i:] + "TTTGGGCATTAA"[: 3 * (i % 4)] for i, orf in enumerate(ORFS)
    }
    records = [f'>{o} x SGDID:S1, Chr I, "text > more"\n{s[:9]}\n{s[9:]}\n' for o, s in sequence.items()]
    return "".join(records) + ">YAR009C\nATGTAA\n"


def _phenotype(first: str, columns: int, scale: float, genes: list[str], separator: str = "\t") -> str:
    head = separator.join([first, *(f"hap a | growth {j} | standard | A~B, 2002" for j in range(columns))])
    rows = []
    for i, gene in enumerate(genes):
        values = [
            "" if (i + j) % 5 == 4 else f"{scale * ((7 * i + 3 * j) % 11 - 5):.4f}" for j in range(columns)
        ]
        rows.append(separator.join([gene, *values]))
    return "\n".join([head, *rows]) + "\n"


_SMF_HEAD = (
    "Strain ID\tSystematic gene name\tAllele/Gene name\tSingle mutant fitness (26°)\t"
    "Single mutant fitness (26°) stddev\tSingle mutant fitness (30°)\tSingle mutant fitness (30°) stddev"
    + "\t"
    * 5
)
_SMF = [
    "YAL002W_sn1\tYAL002W\tvps8\t0.9\t0.05\t0.9\t0.05",
    "YAL002W_dma1\tYAL002W\tvps8\t0.9\t0.05\t0.9\t0.05",  # the query strain's number again
    "YAL002W_damp9\tYAL002W\tvps8_damp\t0.5\t0.1\t0.5\t0.1",
    "YAL001C_tsa508\tYAL001C\ttfc3-g349e\t0.8658\t0.1789\t0.8285\t0.1964",
    "YAL001C_tsq508\tYAL001C\ttfc3-g349e\t0.8658\t0.1789\t0.8285\t0.1964",
    "YAL001C_damp174\tYAL001C\ttfc3_damp\t0.9395\t0.0988\t0.9395\t0.0988",
    "YFL039C_tsq1\tYFL039C\tact1-101\tNaN\tNaN\t0.6\tNaN",
    "YAL003W_S26\tYAL003W\tefb1-supp2\tNaN\tNaN\tNaN\tNaN",
    "YAL005C_dma30\tYAL005C\tssa1-supp1\t0.7\t0.1\t0.7\t0.1",  # a deletion with a suppressor
    "YAR044W_sn7\tYAR044W\tyar044w\t1.01\t0.02\t1.01\t0.02",
    "YCL074W_sn8\tYCL074W\tycl074w\t1\t0.1\t1\t0.1",
    "YDL227C_sn9\tYDL227C\tho\tNaN\tNaN\tNaN\tNaN",
]
_STUDY_GENES = ["YAL001C", "YAL002W", "YAL003W", "YAL005C", "YDL227C", "YEL009C", "YFL039C"]

FILES: dict[str, str] = {
    "SGD_features_2020.tab.gz": _features(),
    "essential_orfs_sgdp_041902.txt.gz": (
        "RECORD #\tORF\tStrain\tPLATE\tROW\tCOLUMN\tRG NOTES\tDB notes\n"
        "1\tYAL001C\tBY4743\t401\tA\t2\t\t\n"
        '2\tYFL039C\tBY4743\t481\tA\t1\t"qc failure--no B isolate, used A"\tmates as an A\t\n'
        "3\tYAL003w\tBY4743\t401\tA\t4\n"
        "\n"
        "4\tYFL039C\tBY4743\t401\tA\t5\t\t\n"
        "5\tYCL053C\tBY4743\t401\tA\t6\t\t\n"
    ),
    "ppi_irefindex_pubmed.csv.gz": (
        "PROTEIN_U,PROTEIN_V,PUBMED\nYAL001C,YAL002W,123\nYAL002W,YAL001C,456\nYAL003W,YAL003W,7\n"
        "YAL003W,YBL005W-B,8\nYAR044W,YDL227C,9\nYAL003W,DOUBLE,9\n"
    ),
    "regulatory_yeastract_20190713_both.tsv.gz": (
        "SystematicName\tYEL009C\tYBL093C\tFLO8\nYAL001C\t1\t0\t1\nYAL002W\t0\t1\t0\nYEL009C\t1\t0\t0\nMEL1\t0\t1\t0\n"
    ),
    "regulatory_yeastract2020_documented_edges.csv.gz": (
        "YAL001C,Gcn4p\nYAL001C,Rox3p\nYAL002W,YGL045W\nYAL003W,2Doc\nYBL005W-B,Gcn4p\nYAL001C,Gcn4p\n"
    ),
    "string_v11.5_combined900_six_channels.tsv.gz": (
        f"protein1\tprotein2\t{CHANNELS}\n"
        "YAL001C\tYAL002W\t0\t900\t0\t999\t500\t1\nYAL003W\tYAL005C\t120\t0\t0\t0\t0\t0\n"
        "YAL003W\tYBL005W-B\t5\t6\t7\t8\t9\t10\nQ0045\tYFL039C\t0\t0\t0\t0\t0\t0\n"
    ),
    "string_v9.1_yeast_genes.txt.gz": "Q0045\nYAL001C\nYAL002W\nYBL005W-B\n",
    **{
        f"string_v9.1_{channel}.tsv.gz": "1\t2\t0.150000\n2\t1\t0.150000\n2\t3\t0.000000\n3\t4\t0.5\n"
        for channel in ("neighborhood", "fusion", "cooccurence", "database")
    },
    "go_bp_140819_gene_by_term.txt.gz": 'ORF\ta process\tanother\tthird, of "it"\tfourth\n'
    + "".join(
        f"{orf}\t{1 if i < 9 else 0}\t{i % 2}\t{1 if i % 3 == 0 else 0}\t{1 if i == 5 else 0}\n"
        for i, orf in enumerate([*ORFS, "YCL074W"])
    ),
    "orf_coding_all_R64-2-1.fasta.gz": _coding(),
    "protein_abundance_paxdb_gpm2012.txt.gz": (
        "#id: 450\n#name: S.cerevisiae\n#\n#internal_id\tstring_external_id\tabundance\traw_spectral_count\n"
        "633090\t4932.YAL001C\t42.8\t2\n633742\t4932.YAL003W\t1000\t16\n6\t4932.YAL005C\t0\t0\n7\t4932.YBL005W-B\t1\t1\n"
    ),
    "costanzo2016_single_mutant_fitness.tsv.gz": "\n".join([_SMF_HEAD, *(s + "\t" * 5 for s in _SMF)]) + "\n",
    "costanzo2010_sga_stringent_cutoff_101120.tsv.gz": (
        "YAL002W\tVPS8\tYDL227C\tHO\t-0.2000\t0.0300\t1.5188e-08\n"
        "YDL227C\tHO\tYAL002W\tVPS8\t-0.2000\t0.0300\t1.5188e-08\n"
        "YAL001C_tsq508\tTFC3\tYAL002W\tVPS8\t-0.4000\t0.0300\t1e-3\n"
        "YAL001C_tsq99\tTFC3\tYAL002W\tVPS8\t-0.2000\t0.0400\t1e-3\n"
        "YAL001C_damp\tTFC3\tYDL227C\tHO\t0.2500\t0.0400\t0.0\n"
        "YAR044W\tYAR044W\tYAL002W\tVPS8\t-0.3\t0.01\t0.01\n"
        "YAR042W\tSWH1\tYAR044W\tYAR044W\t-0.3\t0.01\t0.01\n"
        "YCL074W\tYCL074W\tYAL002W\tVPS8\t-0.3\t0.01\t0.01\n"
        "YGL045W\tRIM8\tDOUBLE\tDOUBLE\t-0.3\t0.01\t0.01\n"
        "YAL003W\tEFB1\tYAL002W\tVPS8\t-0.3\t0.01\t0.01\n"
    ),
    "costanzo2016_dcell_GO0006281_train.txt.gz": (
        "2 YAL002W YDL227C -0.1000\n2 YAL001C YDL227C 0.0100\n"
        "2 YAL002W YEL009C 0.0200\n2 YAL001C YCL074W 0.1\n"
    ),
    "costanzo2016_dcell_GO0000790_train.txt.gz": (
        "2 YDL227C YAL002W -0.1000\n2 YEL009C YEL009C 0.3\n2 YEL009C YDL227C -0.0400\n"
    ),
    "phenotype_growth_breslow2008.tsv.gz": _phenotype("orf", 1, 0.1, _STUDY_GENES),
    "phenotype_growth_deutschbauer2005.tsv.gz": _phenotype("orf", 4, 0.1, _STUDY_GENES[:5]),
    "phenotype_growth_qian2012.tsv.gz": _phenotype("orf", 6, 0.2, _STUDY_GENES),
    "phenotype_growth_steinmetz2002.tsv.gz": _phenotype("orf", 3, 0.05, _STUDY_GENES),
    "phenotype_growth_giaever2002.tsv.gz": _phenotype("orf", 5, 50.0, _STUDY_GENES),
    "phenotype_growth14cond_costanzo2021.tsv.gz": _phenotype("orf", 14, 0.1, _STUDY_GENES),
    "phenotype_morphology_vizeacoumar2010.tsv.gz": _phenotype("orf", 9, 20.0, _STUDY_GENES),
    "phenotype_morphology_mattiazzi2020.tsv.gz": _phenotype("orf", 7, 0.05, _STUDY_GENES),
    "phenotype_metabolome_mulleder2016_zscores.csv.gz": (
        'ORF,gene,alanine,aspartate\nYAL002W,VPS8,3.4,2.4\nYBR208C,"DUR1,2",-1.0,-2.1\nYAL005C,SSA1,-0.3,-0.5\n'
    ),
}


@dataclass(frozen=True)
class Folder:
    """A folder of small publishers' files that a test may change."""

    path: Path

    def text(self, name: str) -> str:
        return gzip.decompress((self.path / name).read_bytes()).decode("utf-8")

    def write(self, name: str, text: str | bytes) -> None:
        data = text.encode("utf-8") if isinstance(text, str) else text
        (self.path / name).write_bytes(gzip.compress(data, compresslevel=1, mtime=0))

    def replace(self, name: str, old: str, new: str) -> None:
        """Change one place of a file; the place must be there exactly once."""
        text = self.text(name)
        assert text.count(old) == 1
        self.write(name, text.replace(old, new))

    def remove(self, name: str) -> None:
        (self.path / name).unlink()


def _fill(path: Path) -> Folder:
    folder = Folder(path)
    for name, text in FILES.items():
        folder.write(name, text)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Folder:
    """A fresh folder of small files."""
    return _fill(tmp_path)


@pytest.fixture(scope="session")
def shared_small(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder of small files for tests that change one and put it back."""
    return _fill(tmp_path_factory.mktemp("yeast"))


@pytest.fixture
def genes(small: Folder) -> GeneIndex:
    """The genes of the small folder."""
    return read_genes(small.path)[0]


@pytest.fixture
def organism(small: Folder) -> Organism:
    """The organism of the small folder."""
    return build_organism(small.path)


@pytest.fixture(scope="session")
def real_genes(mirror: Path) -> GeneIndex:
    """The 6,604 ORFs."""
    return read_genes(mirror)[0]


@pytest.fixture(scope="session")
def real_build(mirror: Path) -> tuple[Organism, list[ReadReport]]:
    """The organism of the real files, without metabolism, and what became of their rows."""
    readings: list[ReadReport] = []
    return build_organism(mirror, metabolism=False, collect=readings.append), readings


@pytest.fixture(scope="session")
def real_organism(real_build: tuple[Organism, list[ReadReport]]) -> Organism:
    """The organism of the real files, without metabolism."""
    return real_build[0]


@pytest.fixture(scope="session")
def screen_genes() -> GeneIndex:
    """Genes whose names have set traps: hyphens, a mitochondrial name, a merged ORF, an ambiguous alias."""
    return GeneIndex(
        ["YAL001C", "YAL002W", "YAL043C-A", "YAR042W", "YBR126C", "YDL164C", "YDL227C", "YFL039C", "Q0045"],
        {"YAL001C": "TFC3", "YAL002W": "VPS8", "YBR126C": "TPS1", "YDL164C": "CDC9", "YDL227C": "HO"},
        {"YAR042W": ["YAR044W", "DOUBLE"], "YFL039C": ["ABY1", "DOUBLE"]},
        "yeast",
    )
