"""Saccharomyces Genome Database: the reference gene list and its names; the essential genes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, Rows, match_genes, read_rows
from wildtype.sources.yeast.names import one_row_per_gene

FEATURES = "SGD_features_2020.tab.gz"
ESSENTIAL = "essential_orfs_sgdp_041902.txt.gz"
TYPE, QUALIFIER, SYSTEMATIC, STANDARD, ALIASES, DESCRIPTION = 1, 2, 3, 4, 5, 15
_HOSTS = ("https://sgd-archive.yeastgenome.org", "https://downloads.yeastgenome.org")


def _urls(tail: str) -> tuple[str, ...]:
    return tuple(f"{host}/{tail}" for host in _HOSTS)


_RELEASES = ("R64-5-1_20240529", "R64-4-1_20230830", "R64-3-1_20210421", "R64-2-1_20150113")


def _dated(stem: str, ending: str) -> tuple[str, ...]:
    """Return the names that the files have inside the archives of the genome releases."""
    return tuple(f"{stem}_{release}.{ending}" for release in _RELEASES)


FEATURE_TABLE = RemoteFile(
    "SGD_features.tab", _urls("curation/chromosomal_feature/SGD_features.tab"), aliases=(FEATURES,)
)
ANNOTATED_GENOME = RemoteFile(
    "saccharomyces_cerevisiae.gff.gz",
    _urls("curation/chromosomal_feature/saccharomyces_cerevisiae.gff.gz"),
    aliases=("saccharomyces_cerevisiae.gff", *_dated("saccharomyces_cerevisiae", "gff")),
)
CODING_SEQUENCES = RemoteFile(
    "orf_coding_all.fasta.gz",
    _urls("sequence/S288C_reference/genome_releases/S288C_reference_genome_R64-2-1_20150113.tgz"),
    aliases=("orf_coding_all.fasta", *_dated("orf_coding_all", "fasta"), "orf_coding_all_R64-2-1.fasta"),
    member="S288C_reference_genome_R64-2-1_20150113/orf_coding_all_R64-2-1_20150113.fasta.gz",
)
PROTEIN_SEQUENCES = RemoteFile(
    "orf_trans_all.fasta.gz",
    _urls("sequence/S288C_reference/orf_protein/orf_trans_all.fasta.gz"),
    aliases=("orf_trans_all.fasta", *_dated("orf_trans_all", "fasta")),
)
_RAW = "https://raw.githubusercontent.com"
SYSTEMATIC_NAMES = RemoteFile(
    "sgd_id_to_systematic_name.lst",
    (
        f"{_RAW}/jameszha/pyOnto2Vec/a36da71f4179b2fe6511a482c69e29e947eb0c6f/"
        "data/yeast/supplementary_scripts/sgdid_to_systematic_map.lst",
    ),
    aliases=("sgdid_to_systematic_map.lst",),
)
STANDARD_NAMES = RemoteFile(
    "SGDgeneNames.tsv",
    gated="take data/databases/SGDgeneNames.tsv of the repository SysBioChalmers/yeast-GEM; the names stand "
    "in SGD_features.tab too",
)
PUBLISHER = Publisher(
    name="sgd",
    title="SGD: genes, their names, places and sequences",
    publication=Publication(
        citation="Cherry et al. 2012, Saccharomyces Genome Database: the genomics resource of budding yeast, "
        "Nucleic Acids Res 40:D700",
        doi="10.1093/nar/gkr1029",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(
        FEATURE_TABLE,
        ANNOTATED_GENOME,
        CODING_SEQUENCES,
        PROTEIN_SEQUENCES,
        SYSTEMATIC_NAMES,
        STANDARD_NAMES,
    ),
    published={"features of type gene in R64": 6_607},
    notes=(
        "SGD_features.tab and the annotated genome change weekly, so that no checksum can be given",
        "in release R64-5-1 a gene spans its transcripts with their untranslated ends: coordinates of ORFs "
        "are those of the CDS rows",
        "an alias may belong to several genes; names of genes that left the reference (YAR037W, YCL006C and "
        "others of older studies) are unknown or aliases of the gene they were merged into",
    ),
)
DELETION_PROJECT = Publisher(
    name="sgdp-essential",
    title="Saccharomyces Genome Deletion Project: essential ORFs, strain table of 2002-04-19",
    publication=Publication(
        citation="Giaever et al. 2002, Functional profiling of the Saccharomyces cerevisiae genome, "
        "Nature 418:387"
    ),
    licence="not stated",
    files=(
        RemoteFile(
            ESSENTIAL.removesuffix(".gz"),
            (
                f"{_RAW}/yeastphenome/yp-data/b77d0752b48439a8e14d08dd3d14099159a8b4b7/"
                "Datasets/16630279/raw_data/Hetero_essential_041902.txt",
            ),
            aliases=("Hetero_essential_041902.txt",),
        ),
    ),
    notes=("a few dozen of its genes have since been deleted alive",),
)
"""The list of essential genes, which SGD does not make itself."""


def read_genes(folder: str | Path) -> tuple[GeneIndex, ReadReport, str]:
    """Return the index of all ORFs (verified, uncharacterized, dubious), the row counts and a summary.

    The order is the file's: along the chromosomes. An alias that is the own name of another feature (a
    pseudogene, a tRNA, a gene of another strain) is left out, since the name does not mean the ORF.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has no ORF, or names an ORF twice.
    """
    rows = read_rows(FEATURE_TABLE.require(folder), fields=16)
    systematic, standard = rows.text(SYSTEMATIC), rows.text(STANDARD)
    types = np.array(rows.text(TYPE))
    orf = np.flatnonzero(types == "ORF")
    if not orf.size:
        raise SourceError(f"{rows.path} holds no row of type ORF in column 2, expected thousands: {REMEDY}")
    names = _unique_names(rows, systematic, orf)
    others = {n for i in np.flatnonzero(types != "ORF") for n in (systematic[i], standard[i]) if n} - set(
        names
    )
    aliases: dict[str, list[str]] = {}
    withheld = 0
    for i in orf:
        given = [alias for alias in rows.cells[i][ALIASES].strip().split("|") if alias]
        kept = [alias for alias in given if alias not in others]
        withheld += len(given) - len(kept)
        aliases[systematic[i]] = kept
    told = {systematic[i]: rows.cells[i][DESCRIPTION].strip() for i in orf}
    genes = GeneIndex(names, {systematic[i]: standard[i] for i in orf}, aliases, "yeast", told)
    kinds, counts = np.unique(
        [rows.cells[i][QUALIFIER].split("|")[0].lower() for i in orf], return_counts=True
    )
    what = ", ".join(f"{c:,} {k or 'unqualified'}" for k, c in zip(kinds, counts, strict=True))
    about = (
        f"{len(genes):,} ORFs of SGD ({what}); aliases left out since they name another feature: {withheld}"
    )
    dropped = {"not an ORF": len(rows) - orf.size} if len(rows) > orf.size else {}
    return genes, ReadReport(rows.path.name, "genes", len(rows), int(orf.size), dropped), about


def _unique_names(rows: Rows, systematic: list[str], orf: NDArray[np.int64]) -> list[str]:
    seen: set[str] = set()
    for i in orf:
        if not systematic[i] or systematic[i] in seen:
            raise rows.error(int(i), systematic[i], "an ORF name in column 4 that no earlier ORF has")
        seen.add(systematic[i])
    return [systematic[i] for i in orf]


def read_essential(folder: str | Path, genes: GeneIndex) -> tuple[NDArray[np.bool_], ReadReport]:
    """Return which genes the Saccharomyces Genome Deletion Project found essential [n], and the row counts.

    The list is of 2002-04-19 (Giaever et al. 2002, Nature 418:387); a few dozen of its genes have since been
    deleted alive. Names are compared without regard to case.

    Raises
    ------
    SourceError
        If the file is missing, damaged or names no known gene.
    """
    # Notes at the end of a line bring further tabs, so only the first columns can be held to a number.
    rows = read_rows(
        DELETION_PROJECT.files[0].require(folder),
        header=("RECORD #", "ORF", "Strain", "PLATE", ...),
        least=2,
        blank_lines=True,
    )
    matched = match_genes([name.upper() for name in rows.text(1)], genes)
    found, first, dropped = one_row_per_gene(matched, rows.path)
    essential = np.zeros(len(genes), bool)
    essential[found] = True
    if rows.blank:
        dropped["blank line"] = rows.blank
    renamed = int(matched.renamed[first].sum())
    return essential, ReadReport(
        rows.path.name, "essential", len(rows) + rows.blank, int(found.size), dropped, renamed
    )
