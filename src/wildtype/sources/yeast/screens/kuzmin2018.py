"""Kuzmin et al. 2018 (Science 360:eaao1729): trigenic and digenic interactions of 182 double-mutant queries.

Three tables: the raw data set (S1), the thresholded calls (S2), and the strains the queries were made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PhenotypeDefinition, Publication, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import Collector, ignore, match_genes, read_bytes, read_rows
from wildtype.sources.yeast.names import match_pairs
from wildtype.sources.yeast.screens.parts import RowFilter, require_copy, study_of, together
from wildtype.sources.yeast.screens.sga_strains import StrainId
from wildtype.sources.yeast.screens.suppressors import measured_apart, split_allele
from wildtype.sources.yeast.screens.trigenic_table import (
    ENVIRONMENT,
    HEADER,
    MUTANT_TYPES,
    NO_SCORE,
    TYPES,
    build_strains,
    first_mutations,
    measurements,
    read_crosses,
    read_mutant_types,
    read_p_values,
    read_strains,
)

LAB = "https://boonelab.ccbr.utoronto.ca/supplement/kuzmin2018/data_files"
DRYAD = "download it in a browser from Dryad, doi:10.5061/dryad.tt367 (CC0; the host refuses scripts)"
NOT_NEEDED = "another copy, not needed beside the laboratory's"
RAW = (
    RemoteFile(
        "Data File S1_Raw genetic interaction dataset.tsv",
        urls=(f"{LAB}/Data%20File%20S1_Raw%20genetic%20interaction%20dataset.tsv",),
        sha256="c82b60f98590071fcb07b74b672958a5863b58e03b78631e6235cb664ee82afb",
    ),
    RemoteFile("AdditionalDataS1.tsv", gated=f"{NOT_NEEDED}: {DRYAD}"),
    RemoteFile(
        "aao1729_data_s1.tsv",
        aliases=("aao1729_Data_S1.tsv",),
        gated=f"{NOT_NEEDED}: download it in a browser from the journal, doi:10.1126/science.aao1729",
    ),
)
"""Copies of Data File S1, the raw data set: of the laboratory, of Dryad and of the journal."""
SIGNIFICANT = (
    RemoteFile("AdditionalDataS2.tsv", aliases=("AdditionalDataS2.txt",), gated=DRYAD),
    RemoteFile(
        "DataFileS2_Digenic_and_adjusted_trigenic.txt",
        sha256="3c6a6f2dcea490e013dfdd2d7f3e8bd5290d4ed694f4afdb81ac2fe82741efd3",
        gated="another copy, UTF-16, of the laboratory's page of the study; not needed beside Dryad's",
    ),
)
"""Copies of Data File S2, the thresholded calls."""
CALLS = RemoteFile(
    "kuzmin2018_significant_trigenic_and_digenic_orf.tsv",
    gated=f"others have made it from Data File S2, which is read in its place: {DRYAD}",
)
"""S2 as others have reduced it to triplets of alleles: the sign of every call, without scores."""
ASSIGNMENT = RemoteFile(
    "assignment_file_170328.csv",
    urls=(
        "https://raw.githubusercontent.com/csbio/SGA_Public/3761da52beeb7bffd23c696da1ad5908a9d1cfc7/"
        "trigenic/assignment_file_170328.csv",
    ),
    aliases=("kuzmin_tausga_query_assignment.csv",),
)
PUBLISHER = Publisher(
    name="kuzmin2018",
    title="trigenic and digenic interactions of 182 double-mutant queries with about 1,200 arrays",
    publication=Publication(
        citation="Kuzmin et al. 2018, Systematic analysis of complex genetic interactions, "
        "Science 360:eaao1729",
        doi="10.1126/science.aao1729",
        pubmed="29674565",
    ),
    licence="copy at Dryad CC0; copy of the journal: supplementary material of AAAS, no statement",
    files=(*RAW, *SIGNIFICANT, CALLS, ASSIGNMENT),
    published={
        "rows of S1": 501510,
        "digenic rows": 410399,
        "trigenic rows": 91111,
        "gene triples": 91050,
        "significant trigenic interactions": 3196,
        "double-mutant queries": 182,
        "single-mutant control queries": 364,
    },
    notes=(
        "tau is one-sided: the public table has trigenic scores from -1.0816 to 0 only, none above",
        "61 of the trigenic rows repeat a gene triple",
        "calls of the authors: digenic p < 0.05 and |epsilon| > 0.08, trigenic p < 0.05 and tau < -0.08; "
        "they estimate 40 % false negatives and 20 % false positives",
        "standard deviations are over the colonies of a cross; their number is not released",
        "whether the copies of the laboratory, the journal and Dryad are the same bytes is not confirmed",
    ),
)

SCORE_OF_CALL, SIGN_OF_CALL = (
    {
        mutant: PhenotypeDefinition(
            name=f"{what} of significant {mutant} interaction",
            unit=unit,
            min_order=fewest,
            description="thresholded calls only: a combination that is not listed is not known to be zero",
        )
        for mutant, fewest in (("digenic", 2), ("trigenic", 3))
    }
    for what, unit in (("score", "fitness units"), ("sign", "-1 or 1"))
)
"""Phenotypes of the calls, by type of combined mutant."""
STUDY_OF_CALLS = f"{PUBLISHER.name}-calls"
"""Under which the calls stand in a store, beside the scores of S1."""
_SIGNIFICANT_HEADER = (*HEADER[:5], None, "P-value", None)
_SIGNIFICANT_TYPES = (str, str, str, str, str, float, float, str)
_CALLS_HEADER = (
    "type", "allele1", "allele2", "allele3", "orf1", "orf2", "orf3", "n_positive_or_null_rating0",
    "n_negative_rating1",
)  # fmt: skip
_ASSIGNMENT_HEADER = (
    "StrainID1", "ORF1", "StrainID2", "ORF2", "DMstrainID", "SM1strainID", "SM2strainID", "Annotation",
)  # fmt: skip
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the scores and fitness of S1: tau, trigenic epsilon, epsilon and fitness.

    Raises
    ------
    SourceError
        If the file is missing, damaged or of another layout, or names no gene of the organism.
    """
    path = require_copy(folder, RAW)
    columns = read_columns(path, types=TYPES, header=HEADER)
    crosses = read_crosses(columns, genes)
    return together(measurements(crosses, study_of(PUBLISHER, [path]), genes, collect), genes, [path])


def read_calls(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the authors' thresholded calls: positives only, a combination not listed may not be tested.

    From S2 (8 columns, UTF-8 or the laboratory's UTF-16) with scores and p-values, or where the folder has
    only the reduced list, the sign of every triplet of alleles. A call that the reduced list counts with both
    signs gives two measurements; how often it counts a sign is not kept.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged or of another layout.
    """
    reduced = CALLS.find(folder)
    if reduced is not None and not any(copy.find(folder) for copy in SIGNIFICANT):
        return _read_signs(reduced, genes, collect)
    return _read_significant(require_copy(folder, SIGNIFICANT), genes, collect)


def _study_of_calls(path: Path) -> Study:
    return study_of(PUBLISHER, [path]).model_copy(update={"name": STUDY_OF_CALLS})


def _read_significant(path: Path, genes: GeneIndex, collect: Collector) -> Measurements:
    """Return the scores of S2; the publisher's type of interaction stands before the query as replicate."""
    encoding = "utf-16" if read_bytes(path).startswith(_UTF16_MARKS) else "utf-8"
    columns = read_columns(path, types=_SIGNIFICANT_TYPES, header=_SIGNIFICANT_HEADER, encoding=encoding)
    sides = read_strains(columns, genes)
    trigenic, p = read_mutant_types(columns), read_p_values(columns, 6)
    score, kind = columns.numbers(5), columns.text(7)
    study, both, parts = _study_of_calls(path), first_mutations(sides), []
    for mutant, rows in (("digenic", ~trigenic), ("trigenic", trigenic)):
        phenotype = SCORE_OF_CALL[mutant]
        sieve = RowFilter(rows)
        sieve.drop_genes(both)
        sieve.drop(NO_SCORE, np.isnan(score))
        collect(sieve.reading(path.name, phenotype.name, both))
        for code, name in enumerate(kind.names):
            parts += measured_apart(
                study,
                genes,
                phenotype,
                ENVIRONMENT,
                sides,
                score,
                sieve.left & (kind.code == code),
                label=f"{name} query".lstrip(),
                p=p,
            )
    return together(parts, genes, [path])


def _read_signs(path: Path, genes: GeneIndex, collect: Collector) -> Measurements:
    rows = read_rows(path, header=_CALLS_HEADER)
    mutants = np.array(rows.text(0), dtype=object)
    rows.refuse(0, ~np.isin(mutants, MUTANT_TYPES), "digenic or trigenic")
    alleles, orfs = (list(zip(*map(rows.text, at), strict=True)) for at in ((1, 2, 3), (4, 5, 6)))
    strains = build_strains(
        [StrainId("", triple, "") for triple in orfs],
        [[split_allele(name, "") for name in triple] for triple in alleles],
        genes,
        3,
    )
    counts = np.stack([rows.numbers(position) for position in (7, 8)], axis=1)
    for column, position in enumerate((7, 8)):
        wrong = (counts[:, column] < 0) | (counts[:, column] % 1 != 0)
        rows.refuse(position, wrong, "how often the call has this sign")
    side = (strains, np.arange(len(rows)))
    study, first, parts = _study_of_calls(path), first_mutations([side]), []
    for mutant in MUTANT_TYPES:
        sieve = RowFilter(mutants == mutant)
        sieve.drop_genes(first)
        sieve.drop(NO_SCORE, counts.sum(1) == 0)
        collect(sieve.reading(path.name, SIGN_OF_CALL[mutant].name, first))
        for column, sign in ((0, 1.0), (1, -1.0)):
            parts += measured_apart(
                study,
                genes,
                SIGN_OF_CALL[mutant],
                ENVIRONMENT,
                [side],
                np.full(len(rows), sign),
                sieve.left & (counts[:, column] > 0),
                label="",
            )
    return together(parts, genes, [path])


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which strains the double-mutant queries were made of: q queries.

    Attributes
    ----------
    gene : int64 [q, 2]
        Positions in the gene index.
    source : tuple of q pairs of str
        The single-mutant strains that were crossed, ``ORF_typeN``.
    query : tuple of q str
        Short identifiers of the double mutants (``tm2494``).
    control : tuple of q pairs of str
        Short identifiers of the control query ``gene + ho`` of either gene.
    annotation : tuple of q str
        Why the pair was chosen.
    """

    gene: NDArray[np.int64]
    source: tuple[tuple[str, str], ...]
    query: tuple[str, ...]
    control: tuple[tuple[str, str], ...]
    annotation: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.query)


def read_query_assignment(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Assignment:
    """Return the strains behind the double-mutant queries, a tab-separated file in spite of its name.

    Raises
    ------
    SourceError
        If the file is missing, damaged or of another layout, or lists a double mutant twice.
    """
    rows = read_rows(ASSIGNMENT.require(folder), header=_ASSIGNMENT_HEADER)
    first, second = match_genes(rows.text(1), genes), match_genes(rows.text(3), genes)
    names = rows.text(4)
    firsts = {name: row for row, name in reversed(list(enumerate(names)))}
    rows.refuse(4, np.array([firsts[name] != row for row, name in enumerate(names)]), "every query once")
    kept, dropped, renamed = match_pairs(first, second)
    collect(ReadReport(rows.path.name, "strains of queries", len(rows), int(kept.sum()), dropped, renamed))
    at = np.flatnonzero(kept).tolist()
    text = [rows.text(position) for position in range(8)]
    return Assignment(
        gene=np.stack([first.position, second.position], axis=1)[at],
        source=tuple((f"{text[1][i]}_{text[0][i]}", f"{text[3][i]}_{text[2][i]}") for i in at),
        query=tuple(names[i] for i in at),
        control=tuple((text[5][i], text[6][i]) for i in at),
        annotation=tuple(text[7][i] for i in at),
    )
