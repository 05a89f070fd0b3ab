"""Costanzo et al. 2016 (Science 353:aaf1420): fitness of single mutants at 26 and 30 °C, one line per strain.

Legend: n genes · m strains · 2 temperatures (30 °C, then 26 °C).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PerturbationKind
from wildtype.datasets.stages.aggregate import average
from wildtype.errors import SourceError, shown
from wildtype.mutants import Kind
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.sources.row_filter import Flags, Floats, Ints, RowFilter
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import REMEDY, GeneNames, read_rows
from wildtype.sources.yeast.files import publisher
from wildtype.sources.yeast.screens.parts import FITNESS as FITNESS_PHENOTYPE
from wildtype.sources.yeast.screens.parts import NO_FITNESS, Screen, drop_genes
from wildtype.sources.yeast.screens.sga_strains import Side, StrainId, Strains, parse_strain, split_allele

FITNESS = "costanzo2016_single_mutant_fitness.tsv.gz"
STRAIN_TABLE = publisher("costanzo2016").files[-1]
"""The table as the publisher's workbook, or its first sheet as text."""
FITNESS_SOURCE = "costanzo2016:fitness"
MEDIUM = "SGA double-mutant selection medium"
TEMPERATURES = ("30C", "26C")
SINGLE_FITNESS = (
    "Costanzo et al. 2016 at 30 °C: the mean over deletion strains where there is one, else the mean over "
    "temperature-sensitive and DAmP alleles; one number per allele, strains with a suppressor left out"
)
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
class StrainTable:
    """The m strains of the table.

    Attributes
    ----------
    path : Path
        The file.
    strains : Strains
        What each of them perturbs.
    allele : tuple of m str
        Allele names.
    value, sd : float64 [m, 2]
        Fitness and its standard deviation at 30 and 26 °C (NaN: not known).
    """

    path: Path
    strains: Strains
    allele: tuple[str, ...]
    value: Floats
    sd: Floats

    def __len__(self) -> int:
        return len(self.allele)

    @property
    def gene(self) -> GeneNames:
        """Mutated gene of every strain [m]."""
        return GeneNames(self.strains.gene[:, 0], self.strains.renamed)

    @property
    def kind(self) -> NDArray[np.uint8]:
        """``Kind`` of the first mutation [m]."""
        # DAmP and temperature-sensitive alleles leave some activity: reduced, never absent.
        deletion = self.strains.kind[:, 0] == PerturbationKind.DELETION
        return np.where(deletion, Kind.ABSENT, Kind.REDUCED).astype(np.uint8)

    @property
    def suppressor(self) -> Flags:
        """Strains that carry a suppressor mutation besides, by suffix or by allele name [m]."""
        return self.strains.suppressed

    @cached_property
    def allele_number(self) -> Ints:
        """Equal numbers for equal allele names [m]: query and array strains share a measurement."""
        return np.unique(np.array(self.allele, dtype=object), return_inverse=True)[1].reshape(-1)


def _read_table(path: Path, genes: GeneIndex) -> StrainTable:
    workbook = path.name.removesuffix(".gz").endswith(".xlsx")
    rows = read_sheet(path, header=_COLUMNS) if workbook else read_rows(path, header=_COLUMNS)
    alleles = tuple(rows.names(2))
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
    mutations = [[split_allele(name, of.type)] for name, of in zip(alleles, ids, strict=True)]
    return StrainTable(path, Strains.build(ids, mutations, genes, 1), alleles, value, sd)


def read_strains(folder: str | Path, genes: GeneIndex) -> StrainTable:
    """Read the strain table.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has an unknown strain type, a strain that is not of its ORF, or a
        fitness that is neither a number nor NaN.
    """
    table = _read_table(STRAIN_TABLE.require(folder), genes)
    if not (table.gene.found[:, None] & np.isfinite(table.value)).any():
        raise SourceError(
            f"{table.path} has no fitness of an ORF of the gene list, expected thousands: {REMEDY}"
        )
    return table


def measure_strains(screen: Screen, path: Path) -> None:
    """Measure the table: one number per strain and temperature with a fitness.

    Query and array strains of one allele carry one number, and all but temperature-sensitive strains the
    same at both temperatures: these repetitions are left in, under the strains' names as replicates.

    Raises
    ------
    SourceError
        As `read_strains`.
    """
    table = _read_table(path, screen.genes)
    sides = [Side(table.strains, np.arange(len(table)))]
    for column, name in enumerate(TEMPERATURES):
        temperature = float(name.removesuffix("C"))
        value = table.value[:, column]
        use, missing = f"fitness at {temperature:g} °C", {NO_FITNESS: np.isnan(value)}
        used = screen.select(path.name, use, sides, drop_genes(RowFilter(len(table)), sides), missing)
        where = sga_environment(temperature)
        screen.add(FITNESS_PHENOTYPE, where, sides, value, used, label="strain", sd=table.sd[:, column])


def deleted_genes(strains: StrainTable, n: int) -> Flags:
    """Return which genes [n] the study has a deletion strain of, without a suppressor."""
    out = np.zeros(n, bool)
    deletion = strains.gene.found & (strains.kind == Kind.ABSENT) & ~strains.suppressor
    out[strains.gene.position[deletion]] = True
    return out


def expression_only(strains: StrainTable, n: int) -> Flags:
    """Return which genes [n] the study has DAmP strains of and no other, leaving suppressors aside."""
    expression, other = np.zeros(n, bool), np.zeros(n, bool)
    # By the name of the allele: `kind` does not separate DAmP from temperature-sensitive alleles.
    damp = np.array([name.lower().endswith("_damp") for name in strains.allele], bool)
    plain = strains.gene.found & ~strains.suppressor
    expression[strains.gene.position[plain & damp]] = True
    other[strains.gene.position[plain & ~damp]] = True
    return expression & ~other


def _distinct(keys: Ints, value: Floats, sd: Floats) -> Ints:
    """Return the first row of every distinct combination of keys [m, c], value and sd, ordered by keys."""
    # Numbers are compared by their bits, as whole numbers: equal text in the file gives equal bits.
    columns = [keys, value.view(np.int64), np.nan_to_num(sd, nan=-1.0).view(np.int64)]
    return np.unique(np.column_stack(columns), axis=0, return_index=True)[1]


def by_gene(strains: StrainTable, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return fitness and sd [n, 2] at 30 and 26 °C (NaN: not known), as ``SINGLE_FITNESS`` says."""
    value = np.full((n, 2), np.nan, np.float32)
    sd = np.full((n, 2), np.nan, np.float32)
    for t in range(2):
        usable = strains.gene.found & ~strains.suppressor & np.isfinite(strains.value[:, t])
        for kind in (Kind.REDUCED, Kind.ABSENT):  # deletions last: they replace the hypomorphs
            rows = np.flatnonzero(usable & (strains.kind == kind))
            keys = np.column_stack([strains.gene.position[rows], strains.allele_number[rows]])
            # Query and array strain of one allele repeat one number: counted twice, it would weigh double.
            rows = rows[_distinct(keys, strains.value[rows, t], strains.sd[rows, t])]
            gene, group = np.unique(strains.gene.position[rows], return_inverse=True)
            if gene.size:
                value[gene, t], sd[gene, t] = average(group, strains.value[rows, t], strains.sd[rows, t])
    return value, sd


def fitness_block(strains: StrainTable, n: int) -> tuple[FeatureBlock, ReadReport]:
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
    used = RowFilter(len(strains))
    used.drop_names(strains.gene)
    used.drop(NO_FITNESS, np.asarray(np.isnan(strains.value).all(1)))
    used.drop(SUPPRESSOR, strains.suppressor)
    report = used.report(FITNESS, block.name, strains.gene.renamed)
    # Several strains of one gene are averaged: all but one of them are counted as merged.
    kept = int(np.isfinite(value).any(1).sum())
    merged = {"merged: strains of one gene": report.kept - kept} if report.kept > kept else {}
    return block, replace(report, kept=kept, dropped={**report.dropped, **merged})
