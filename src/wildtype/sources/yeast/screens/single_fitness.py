"""Costanzo et al. 2016 (Science 353:aaf1420): fitness of single mutants at 26 and 30 °C, one line per strain.

Legend: n genes · m strains · 2 temperatures (30 °C, then 26 °C).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PerturbationKind, Study
from wildtype.datasets.stages.aggregate import average
from wildtype.errors import SourceError, shown
from wildtype.mutants import Kind
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.sources.publisher import RemoteFile
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import REMEDY, Collector, GeneNames, Rows, count_reasons, read_rows
from wildtype.sources.yeast.screens.parts import RowFilter
from wildtype.sources.yeast.screens.sga_strains import StrainId, parse_strain
from wildtype.sources.yeast.screens.suppressors import SuppressedStrains, measured_apart
from wildtype.sources.yeast.screens.trigenic_table import FITNESS as FITNESS_PHENOTYPE

ARCHIVE = "Data File S1. Raw genetic interaction datasets: Pair-wise interaction format"
"""Folder in the publisher's archive; its colon is no part of a file name everywhere."""
_URL = (
    "https://thecellmap.org/costanzo2016/data_files/"
    "Raw%20genetic%20interaction%20datasets:%20Pair-wise%20interaction%20format.zip"
)
_SHA256 = "05adf2aa309e5336cd1c3045eb033a2bc7b24e6f249d57a0cc25549ec6772522"


def archived(name: str, *aliases: str, gated: str = "") -> RemoteFile:
    """Return one file of the publisher's archive, which may also lie unpacked in its folder."""
    folders = dict.fromkeys((ARCHIVE, ARCHIVE.replace(":", "_"), ARCHIVE.replace(":", "")))
    return RemoteFile(
        name,
        (_URL,),
        _SHA256,
        (*aliases, *(f"{folder}/{name}" for folder in folders)),
        f"{ARCHIVE}/{name}",
        gated,
    )


FITNESS = "costanzo2016_single_mutant_fitness.tsv.gz"
STRAIN_TABLE = archived(
    "strain_ids_and_single_mutant_fitness.xlsx",
    FITNESS.removesuffix(".gz"),
    gated=f"take it out of the archive at {_URL} (or its first sheet as text, {FITNESS})",
)
"""The table as the publisher's workbook, or its first sheet as text."""
FITNESS_SOURCE = "costanzo2016:fitness"
MEDIUM = "SGA double-mutant selection medium"
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
_MISSING = ("NaN", "")


def sga_environment(temperature: float = np.nan) -> Environment:
    """Return what crosses and their controls grow on, at degrees Celsius where they are stated."""
    return Environment(medium=MEDIUM, temperature=temperature)


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


@dataclass(frozen=True, eq=False)
class _Table:
    rows: Rows
    strains: SuppressedStrains
    alleles: tuple[str, ...]
    value: NDArray[np.float64]
    sd: NDArray[np.float64]


def _read_table(path: Path, genes: GeneIndex) -> _Table:
    workbook = path.name.removesuffix(".gz").endswith(".xlsx")
    rows = read_sheet(path, header=_COLUMNS) if workbook else read_rows(path, header=_COLUMNS)
    alleles = tuple(rows.text(2))
    rows.refuse(2, np.array([not name.isprintable() for name in alleles]), "an allele name")
    ids: list[StrainId] = []
    for row, (strain, orf) in enumerate(zip(rows.text(0), rows.text(1), strict=True)):
        found = parse_strain(strain)
        if found is None or found.orfs != (orf,):
            raise rows.error(
                row, strain, f"a strain of {shown(orf)} ending in _snN, _dmaN, _tsqN, _tsaN, _dampN or _SN"
            )
        ids.append(found)
    value = np.stack([rows.numbers(i, missing=_MISSING) for i in _VALUE], axis=1)
    sd = np.stack([rows.numbers(i, missing=_MISSING) for i in _SD], axis=1)
    for column, position in enumerate(_SD):
        rows.refuse(position, sd[:, column] < 0, "a standard deviation of at least 0")
    return _Table(rows, SuppressedStrains.build(ids, alleles, genes), alleles, value, sd)


def read_strains(folder: str | Path, genes: GeneIndex) -> Strains:
    """Read the strain table.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has an unknown strain type, a strain that is not of its ORF, or a
        fitness that is neither a number nor NaN.
    """
    table = _read_table(STRAIN_TABLE.require(folder), genes)
    first = table.strains.first
    matched = GeneNames(first.gene[:, 0], first.renamed)
    if not (matched.found[:, None] & np.isfinite(table.value)).any():
        raise SourceError(
            f"{table.rows.path} has no fitness of an ORF of the gene list, expected thousands: {REMEDY}"
        )
    kind = np.where(first.kind[:, 0] == PerturbationKind.DELETION, Kind.ABSENT, Kind.REDUCED)
    return Strains(
        matched, kind.astype(np.uint8), table.strains.suppressed, table.alleles, table.value, table.sd
    )


def measure_strains(path: Path, genes: GeneIndex, study: Study, collect: Collector) -> list[Measurements]:
    """Return the table as measurements: one per strain and temperature with a fitness.

    Query and array strains of one allele carry one number, and all but temperature-sensitive strains the
    same at both temperatures: these repetitions are left in, under the strains' names as replicates.

    Raises
    ------
    SourceError
        As `read_strains`.
    """
    table = _read_table(path, genes)
    side = (table.strains, np.arange(len(table.rows)))
    parts = []
    for column, name in enumerate(TEMPERATURES):
        temperature = float(name.removesuffix("C"))
        value, sd = table.value[:, column], table.sd[:, column]
        sieve = RowFilter(np.ones(len(table.rows), bool))
        sieve.drop_genes([(side[0].first, side[1])])
        sieve.drop(NO_FITNESS, np.isnan(value))
        collect(sieve.reading(path.name, f"fitness at {temperature:g} °C", [(side[0].first, side[1])]))
        parts += measured_apart(
            study,
            genes,
            FITNESS_PHENOTYPE,
            sga_environment(temperature),
            [side],
            value,
            sieve.left,
            label="strain",
            sd=sd,
        )
    return parts


def deleted_genes(strains: Strains, n: int) -> NDArray[np.bool_]:
    """Return which genes [n] the study has a deletion strain of, without a suppressor."""
    out = np.zeros(n, bool)
    deletion = strains.gene.found & (strains.kind == Kind.ABSENT) & ~strains.suppressor
    out[strains.gene.position[deletion]] = True
    return out


def expression_only(strains: Strains, n: int) -> NDArray[np.bool_]:
    """Return which genes [n] the study has DAmP strains of and no other, leaving suppressors aside."""
    expression, other = np.zeros(n, bool), np.zeros(n, bool)
    damp = np.array([name.lower().endswith("_damp") for name in strains.allele], bool)
    plain = strains.gene.found & ~strains.suppressor
    expression[strains.gene.position[plain & damp]] = True
    other[strains.gene.position[plain & ~damp]] = True
    return expression & ~other


def _distinct(
    keys: NDArray[np.int64], value: NDArray[np.float64], sd: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the first row of every distinct combination of keys [m, c], value and sd, ordered by keys."""
    columns = [keys, value.view(np.int64), np.nan_to_num(sd, nan=-1.0).view(np.int64)]
    return np.unique(np.column_stack(columns), axis=0, return_index=True)[1]


def by_gene(strains: Strains, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return fitness and sd [n, 2] at 30 and 26 °C (NaN: not known), as ``SINGLE_FITNESS`` says."""
    value = np.full((n, 2), np.nan, np.float32)
    sd = np.full((n, 2), np.nan, np.float32)
    for t in range(2):
        usable = strains.gene.found & ~strains.suppressor & np.isfinite(strains.value[:, t])
        for kind in (Kind.REDUCED, Kind.ABSENT):  # deletions last: they replace the hypomorphs
            rows = np.flatnonzero(usable & (strains.kind == kind))
            keys = np.column_stack([strains.gene.position[rows], strains.allele_number[rows]])
            rows = rows[_distinct(keys, strains.value[rows, t], strains.sd[rows, t])]
            gene, group = np.unique(strains.gene.position[rows], return_inverse=True)
            if gene.size:
                value[gene, t], sd[gene, t] = average(group, strains.value[rows, t], strains.sd[rows, t])
    return value, sd


def fitness_block(strains: Strains, n: int) -> tuple[FeatureBlock, ReadReport]:
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
    return block, ReadReport(FITNESS, block.name, len(strains), kept, dropped, renamed)
