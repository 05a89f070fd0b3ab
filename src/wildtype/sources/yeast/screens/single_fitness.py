"""Costanzo et al. 2016 (Science 353:aaf1420): fitness of single mutants at 26 and 30 °C, one line per strain.

Legend: n genes · m strains · 2 temperatures (30 °C, then 26 °C).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import (
    REMEDY,
    GeneNames,
    count_reasons,
    match_genes,
    read_rows,
    require,
)
from wildtype.sources.yeast.screens.digenic import average, distinct

FITNESS = "costanzo2016_single_mutant_fitness.tsv.gz"
FITNESS_SOURCE = "costanzo2016:fitness"
TEMPERATURES = ("30C", "26C")
SINGLE_FITNESS = (
    "Costanzo et al. 2016 at 30 °C: the mean over deletion strains where there is one, else the mean over "
    "temperature-sensitive and DAmP alleles; one number per allele, strains with a suppressor left out"
)
NO_FITNESS = "no fitness given"
SUPPRESSOR = "strain with a suppressor mutation"
_COLUMNS = (
    "Strain ID",
    "Systematic gene name",
    "Allele/Gene name",
    "Single mutant fitness (26°)",
    "Single mutant fitness (26°) stddev",
    "Single mutant fitness (30°)",
    "Single mutant fitness (30°) stddev",
)
_VALUE, _SD = (5, 3), (6, 4)
_STRAIN = re.compile(r"(?P<orf>[^_]+)_(?P<type>sn|dma|tsq|tsa|damp|S|A_S)\d+")
_KINDS = {
    "sn": Kind.ABSENT,  # natMX deletion, query
    "dma": Kind.ABSENT,  # kanMX deletion, array
    "tsq": Kind.REDUCED,  # temperature-sensitive, query
    "tsa": Kind.REDUCED,  # temperature-sensitive, array
    "damp": Kind.REDUCED,  # decreased abundance by mRNA perturbation
    "S": Kind.ABSENT,  # carries a suppressor
    "A_S": Kind.ABSENT,
}
_MISSING = ("NaN", "")


@dataclass(frozen=True, eq=False)
class Strains:
    """The strains of the table.

    Attributes
    ----------
    gene : GeneNames
        Mutated gene of every strain [m].
    kind : uint8 [m]
        ``Kind``, by the strain's suffix.
    suppressor : bool [m]
        Strains that carry a suppressor mutation besides, by suffix or by allele name.
    allele : tuple of m str
        Allele names.
    value, sd : float64 [m, 2]
        Fitness and its standard deviation at 30 and 26 °C (NaN: not known).
    """

    gene: GeneNames
    kind: NDArray[np.uint8]
    suppressor: NDArray[np.bool_]
    allele: tuple[str, ...]
    value: NDArray[np.float64]
    sd: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def allele_number(self) -> NDArray[np.int64]:
        """Equal numbers for equal allele names [m]: query and array strains share a measurement."""
        return np.unique(np.array(self.allele, dtype=object), return_inverse=True)[1].reshape(-1)


def read_strains(folder: str | Path, genes: GeneIndex) -> Strains:
    """Read the strain table.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has an unknown strain type, a strain that is not of its ORF, or a
        fitness that is neither a number nor NaN.
    """
    rows = read_rows(require(folder, FITNESS), header=_COLUMNS)
    ids, orfs, alleles = rows.text(0), rows.text(1), tuple(rows.text(2))
    kinds, suppressor = [], []
    for row, (strain, orf, allele) in enumerate(zip(ids, orfs, alleles, strict=True)):
        found = _STRAIN.fullmatch(strain)
        if not found or found["orf"] != orf:
            raise rows.error(
                row, strain, f"a strain of {orf} ending in _snN, _dmaN, _tsqN, _tsaN, _dampN or _SN"
            )
        kinds.append(_KINDS[found["type"]])
        suppressor.append(found["type"].endswith("S") or "supp" in allele)
    value = np.stack([rows.numbers(i, missing=_MISSING) for i in _VALUE], axis=1)
    sd = np.stack([rows.numbers(i, missing=_MISSING) for i in _SD], axis=1)
    for column, position in enumerate(_SD):
        rows.refuse(position, sd[:, column] < 0, "a standard deviation of at least 0")
    matched = match_genes(orfs, genes)
    if not (matched.found[:, None] & np.isfinite(value)).any():
        raise SourceError(
            f"{rows.path} has no fitness of an ORF of the gene list, expected thousands: {REMEDY}"
        )
    return Strains(matched, np.array(kinds, dtype=np.uint8), np.array(suppressor), alleles, value, sd)


def deleted_genes(strains: Strains, n: int) -> NDArray[np.bool_]:
    """Return which genes [n] the study has a deletion strain of, without a suppressor."""
    out = np.zeros(n, bool)
    deletion = strains.gene.found & (strains.kind == Kind.ABSENT) & ~strains.suppressor
    out[strains.gene.position[deletion]] = True
    return out


def by_gene(strains: Strains, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return fitness and sd [n, 2] at 30 and 26 °C (NaN: not known), as ``SINGLE_FITNESS`` says."""
    value = np.full((n, 2), np.nan, np.float32)
    sd = np.full((n, 2), np.nan, np.float32)
    for t in range(2):
        usable = strains.gene.found & ~strains.suppressor & np.isfinite(strains.value[:, t])
        for kind in (Kind.REDUCED, Kind.ABSENT):  # deletions last: they replace the hypomorphs
            rows = np.flatnonzero(usable & (strains.kind == kind))
            keys = np.column_stack([strains.gene.position[rows], strains.allele_number[rows]])
            rows = rows[distinct(keys, strains.value[rows, t], strains.sd[rows, t])]
            gene, group = np.unique(strains.gene.position[rows], return_inverse=True)
            if gene.size:
                value[gene, t], sd[gene, t] = average(group, strains.value[rows, t], strains.sd[rows, t])
    return value, sd


def fitness_block(strains: Strains, n: int) -> tuple[FeatureBlock, Reading]:
    """Return the block ``fitness`` [n, 2], fitness at 30 and 26 °C, and the counts of strains."""
    value, _ = by_gene(strains, n)
    block = FeatureBlock(
        "fitness",
        value,
        tuple(f"fitness_{t}" for t in TEMPERATURES),
        source="Costanzo et al. 2016",
        measured=(FITNESS_SOURCE,),
        note=f"{SINGLE_FITNESS}; 26 °C repeats 30 °C for all but temperature-sensitive alleles",
    )
    kept = int(np.isfinite(value).any(1).sum())
    known, found = np.isfinite(strains.value).any(1), strains.gene.found
    usable = found & known & ~strains.suppressor
    dropped = strains.gene.dropped() | count_reasons(
        {NO_FITNESS: found & ~known, SUPPRESSOR: found & known & strains.suppressor}
    )
    if int(usable.sum()) > kept:
        dropped["merged: strains of one gene"] = int(usable.sum()) - kept
    renamed = int(strains.gene.renamed[usable].sum())
    return block, Reading(FITNESS, block.name, len(strains), kept, dropped, renamed)
