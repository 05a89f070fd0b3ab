"""Small files in the publishers' own layouts, written by hand: none of them is in any mirror."""

from __future__ import annotations

import pytest

from wildtype.sources.biogrid import HEADER as BIOGRID_HEADER
from wildtype.sources.yeast.graphs.complexes import HEADER as COMPLEX_HEADER
from wildtype.sources.yeast.graphs.regulation import TFLINK_HEADER

DETAILED = (
    "protein1 protein2 neighborhood fusion cooccurence coexpression experimental database textmining "
    "combined_score"
)
STRING_ROWS = """
4932.YAL001C 4932.YAL002W 0 0 0 310 450 0 120 600
4932.YAL002W 4932.YAL001C 0 0 0 310 455 0 120 600
4932.Q0045 4932.YFL039C 41 0 0 62 0 900 0 905
4932.YAL003W 4932.YBL005W-B 0 7 0 0 80 0 55 200
4932.YAL005C 4932.OLD1 0 0 0 500 0 0 0 500
4932.YAL005C 4932.OLD2 0 0 0 400 0 0 0 400
"""
ALIASES = """#string_protein_id	alias	source
4932.OLD1	ACT1	Ensembl_gene
4932.OLD1	nothing known	BLAST
4932.OLD2	ACT1	Ensembl_gene
4932.OLD2	HO	Ensembl_gene
4932.YAL001C	ACT1	BLAST
"""


def _biogrid(*rows: dict[str, str]) -> str:
    usual = dict.fromkeys(BIOGRID_HEADER, "-") | {
        "Experimental System": "Affinity Capture-MS",
        "Experimental System Type": "physical",
        "Publication Source": "PUBMED:1",
        "Organism ID Interactor A": "559292",
        "Organism ID Interactor B": "559292",
    }
    lines = ["\t".join(BIOGRID_HEADER)]
    for number, row in enumerate(rows, 1):
        cells = usual | {BIOGRID_HEADER[0]: str(number)} | row
        assert len(cells) == 37
        lines.append("\t".join(cells.values()))
    return "\n".join(lines) + "\n"


def _pair(a: str, b: str, **other: str) -> dict[str, str]:
    names = {"Systematic Name Interactor A": a, "Systematic Name Interactor B": b}
    return names | {key.replace("_", " "): value for key, value in other.items()}


GENETIC = {"Experimental_System": "Negative Genetic", "Experimental_System_Type": "genetic"}
BIOGRID = _biogrid(
    _pair("YAL001C", "YAL002W"),
    _pair("YAL002W", "YAL001C"),
    _pair("YAR044W", "YDL227C"),
    _pair("YAL001C", "YAL001C"),
    _pair("YAL003W", "YAL005C", **GENETIC),
    _pair("-", "YAL005C", Official_Symbol_Interactor_A="TFC3"),
    _pair("YBL005W-B", "YAL005C"),
    _pair("YAL003W", "DOUBLE"),
    _pair("YAL003W", "YEL009C", Organism_ID_Interactor_B="9606"),
)


def _sgd(a: str, b: str, kind: str) -> str:
    experiment = "Two-hybrid" if kind.startswith("physical") else "Synthetic Lethality"
    return "\t".join(
        [
            a,
            "name",
            b,
            "name",
            experiment,
            kind,
            "BioGRID",
            "high-throughput",
            "",
            "",
            "SGD_REF: S1|PMID: 2",
            'Someone "quoted" (2002)',
        ]
    )


SGD = (
    "\n".join(
        [
            _sgd("YAL001C", "YAL002W", "physical interactions"),
            _sgd("YAL002W", "YAL001C", "physical interactions"),
            _sgd("YAL003W", "YAL005C", "genetic interactions"),
            _sgd("YAL003W", "YAL001C", "genetic interactions"),
            _sgd("YCL074W", "YAL001C", "genetic interactions"),
        ]
    )
    + "\n"
)


def _tflink(accession: str, target: str, name: str, target_name: str, organism: str) -> str:
    return "\t".join(
        [
            accession,
            target,
            "1",
            "2",
            name,
            target_name,
            "chromatin immunoprecipitation assay",
            "1;2",
            organism,
            "GTRD;YEASTRACT",
            "No",
            "-",
            "-",
            "-",
            "-",
        ]
    )


YEAST = "Saccharomyces cerevisiae"
TFLINK = (
    "\n".join(
        [
            "\t".join(TFLINK_HEADER),
            _tflink("P03069", "P34111", "GCN4", "TFC3", YEAST),
            _tflink("P03069", "-", "GCN4", "VPS8;FUN15", YEAST),  # two names of one gene
            _tflink("-", "P34111", "ROX3", "somebody else", YEAST),  # the accession decides
            _tflink("P03069", "P34111;P39702", "GCN4", "-", YEAST),  # two genes: ambiguous
            _tflink("-", "-", "GCN4", "MEL1", YEAST),
            _tflink("P03069", "P34111", "GCN4", "TFC3", "Homo sapiens"),
            _tflink("P03069", "P34111", "GCN4", "TFC3", YEAST),
        ]
    )
    + "\n"
)
ACCESSIONS = {
    "P03069": (7,), "P34111": (0,), "P39702": (1,), "P32471": (2,), "P10591": (4,), "P60010": (11,),
    "P61830": (5, 6),
}  # fmt: skip


def _complex(name: str, direct: str, expanded: str, taxon: str = "559292") -> str:
    cells = dict.fromkeys(COMPLEX_HEADER, "-")
    cells |= {
        "Complex ac": name,
        "Recommended name": f"complex, {name}",
        "Taxonomy identifier": taxon,
        "Identifiers (and stoichiometry) of molecules in complex": direct,
        "Expanded participant list": expanded,
    }
    return "\t".join(cells.values())


COMPLEXES = (
    "\n".join(
        [
            "#" + "\t".join(COMPLEX_HEADER),
            _complex("CPX-1", "P34111(1)|P39702(2)|CHEBI:29105(0)", "P34111(1)|P39702(2)"),
            _complex("CPX-2", "CPX-1(1)|P32471(0)|URS000012D749_559292(0)|EBI-1(1)", "-"),
            _complex(
                "CPX-3", "[P32471,P10591](0)|P60010-PRO_0000000001(1)", "[P32471,P10591](0)|P60010-2(1)"
            ),
            _complex("CPX-4", "P34111(2)|Q99999(1)", "P34111(2)|Q99999(1)"),
            _complex("CPX-5", "P34111(2)|P39702(1)", "P34111(2)|P39702(1)", taxon="9606"),
        ]
    )
    + "\n"
)
OBO = """format-version: 1.2
data-version: releases/2024-11-03
default-namespace: gene_ontology
ontology: go

[Term]
id: GO:0008150
name: biological_process
namespace: biological_process
alt_id: GO:0000004

[Term]
id: GO:0000001
name: repair ! of things
namespace: biological_process
is_a: GO:0008150 ! biological_process

[Term]
id: GO:0000002
name: repair of breaks
namespace: biological_process
alt_id: GO:0000022
is_a: GO:0000001 {source="x"} ! repair
relationship: part_of GO:0000005 ! response
relationship: regulates GO:0000006 ! translation

[Term]
id: GO:0000005
name: response
namespace: biological_process
is_a: GO:0008150 ! biological_process

[Term]
id: GO:0000006
name: translation
namespace: biological_process
is_a: GO:0008150 ! biological_process

[Term]
id: GO:0003674
name: molecular_function
namespace: molecular_function
relationship: part_of GO:0008150 ! across namespaces: not followed

[Term]
id: GO:0000009
name: obsolete repair
namespace: biological_process
is_obsolete: true
replaced_by: GO:0000002

[Term]
id: GO:0000010
name: obsolete nothing
namespace: biological_process
is_obsolete: true

[Typedef]
id: part_of
name: part of
is_transitive: true
"""


def _gaf(symbol: str, term: str, evidence: str, locus: str, qualifier: str = "involved_in") -> str:
    return "\t".join(
        [
            "SGD",
            "S000000001",
            symbol,
            qualifier,
            term,
            "PMID:1",
            evidence,
            "",
            "P",
            "a name",
            f"{locus}|alias",
            "protein",
            "taxon:559292",
            "20240101",
            "SGD",
            "",
            "",
        ]
    )


GAF = (
    "\n".join(
        [
            "!gaf-version: 2.2",
            "!",
            _gaf("TFC3", "GO:0000002", "IDA", "YAL001C"),
            _gaf("VPS8", "GO:0000022", "IMP", "YAL002W"),  # an alternative id
            _gaf("EFB1", "GO:0000009", "IEA", "YAL003W"),  # obsolete, replaced
            _gaf("SSA1", "GO:0000010", "IDA", "YAL005C"),  # obsolete, nothing in its place
            _gaf("SSA1", "GO:0000006", "IGI", "YAL005C"),
            _gaf("SSA1", "GO:0000006", "IDA", "YAL005C", "NOT|involved_in"),
            _gaf("SSA1", "GO:0008150", "ND", "YAL005C"),
            _gaf("HO", "GO:0000006", "IDA", "unknown locus"),  # found by its symbol
            _gaf("GCN4", "GO:0000006", "IPI", "YEL009C"),
            _gaf("nobody", "GO:0000006", "IDA", "YZZ999W"),
            _gaf("TFC3", "GO:0003674", "IDA", "YAL001C"),
            _gaf("TFC3", "GO:9999999", "IDA", "YAL001C"),
        ]
    )
    + "\n"
)
MATRIX = ";YAL001C;VPS8;EF-1 beta;MEL1\nGcn4p;1;0;1;0\nRox3p;0;1;0;1\nAbf1p;1;0;0;0\nHo;0;0;0;0\n"
TEXTS: dict[str, str] = {
    "4932.protein.links.detailed.v12.0.txt.gz": DETAILED + STRING_ROWS,
    "4932.protein.aliases.v12.0.txt.gz": ALIASES,
    "BIOGRID-ORGANISM-Saccharomyces_cerevisiae_S288c-5.0.261.tab3.txt": BIOGRID,
    "interaction_data.tab": SGD,
    "TFLink_Saccharomyces_cerevisiae_interactions_All_simpleFormat_v1.0.tsv": TFLINK,
    "559292.tsv": COMPLEXES,
    "go-basic.obo": OBO,
    "gene_association.sgd.gaf.gz": GAF,
    "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_2020511.csv": MATRIX,
    "RegulationTwoColumnTable_Documented_2013927.tsv": "Gcn4p;YAL001C\nRox3p;VPS8\n2Doc;EFB1\nGcn4p;GCN4\n",
    "coexpression_hu2007_bionic.txt": "YAL001C YAL002W 0.75\nYAL002W YAL001C 0.8\nYAL003W YBL005W-B 0.9\n",
    "ppi_dip_2017.csv": "YAL001C,YAL002W\nYAR044W,YDL227C\nYAL003W,YAL003W\n",
    "regulatory_gold_standard_inferelator.tsv": '"YEL009C"\t"YBL093C"\n"YAL001C"\t1\t-1\n"YAL999C"\t0\t1\n',
    "regulatory_motif_prior_inferelator.tsv": "YEL009C\tYBL093C\nYAL001C\t3\t0\nYBL093C\t-2\t1\n",
    "regulatory_tf_gene_chip_kemmeren_zscores.tsv": (
        "tf\ttarget\tvalue\tpvalue\tstudy\nGCN4\tYAL001C\t-2.5\t0.01\tHu_2006\nGCN4\tYAL001C\t2\t0.02\tChua_2006\n"
        "ROX3\tYAL002W\t0\t1\tHu_2006\nMEL1\tYAL002W\t3\t0.1\tHu_2006\n"
    ),
}


@pytest.fixture
def texts() -> dict[str, str]:
    """The files by name."""
    return dict(TEXTS)


@pytest.fixture
def accessions() -> dict[str, tuple[int, ...]]:
    """UniProt accessions of some genes of the small folder."""
    return dict(ACCESSIONS)


@pytest.fixture
def raw(small):
    """The folder of small files with the publishers' own ones beside them."""
    for name, text in TEXTS.items():
        small.write(name, text)
    return small
