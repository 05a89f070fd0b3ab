"""Jonikas et al. 2009 (Science 323:1693): a reporter of the unfolded-protein response in double mutants.

The level of a double mutant is one measurement; the level less the one that the publisher's Hill model
expects of its two mutations is another, as epsilon is of fitness.

Legend: s strains · u unordered pairs of strains, a strain with itself included.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import SAME_GENE, Flags, Floats, Ints, RowFilter
from wildtype.sources.text import LARGEST, REMEDY, Collector, GeneNames, ignore, match_genes
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.genes.sgd import read_essential
from wildtype.sources.yeast.screens.mat5 import Variable, read_mat5
from wildtype.sources.yeast.traits.matrix import NO_VALUE, without_gene

PUBLISHER = publisher("jonikas2009")
(MATRIX,) = PUBLISHER.files
UNIT = "logarithm of the reporter's level, taken to be log2: the file states no unit"
"""Expected levels are sums of two where the response is far from its limits, so levels are logarithms."""
UPR = PhenotypeDefinition(
    name="UPR reporter",
    unit=UNIT,
    min_order=1,
    description="fluorescence of a reporter of the unfolded-protein response; higher is more response",
)
UPR_INTERACTION = PhenotypeDefinition(
    name="UPR interaction",
    unit=f"difference of two levels ({UNIT})",
    min_order=2,
    description="reporter level of the double mutant less the one that the publisher's Hill model expects of "
    "its two mutations; above 0 is more response than expected",
)
WILD_TYPE = "WT_DHIS3::KAN"
ONE_GENE = "cross with the wild-type control: one gene"
NOT_EXPECTED = "no level that the Hill model expects"
_NAMES, _VALUES, _COUNTS = ("qnames_out", "anames_out"), "DM_array_merged", "num_measurements"
_EXPECTED = "DM_Hill_merged"
_ALLELE = re.compile(r"(?P<gene>[A-Z]{3}\d+)-(?P<number>\d+)")


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read every unordered pair of strains once, with the number of measurements behind it: the level of the
    reporter, and what it is beyond the expected one.

    Raises
    ------
    SourceError
        If the file or the list of essential genes is missing or damaged, a variable is absent or of another
        shape, or the matrix is not symmetric.
    """
    path = MATRIX.require(folder)
    essential, report = read_essential(folder, genes)
    collect(report)
    names, level, expected, counts = read_matrix(path)
    first, second = np.triu_indices(len(names))
    matched, kind, allele = _perturbations(names, genes, essential)
    control = np.array([name == WILD_TYPE for name in names])
    # Half of the symmetric matrix: a pair is the same measurement in both orders, no replicate.
    renamed = matched.renamed[first] | matched.renamed[second]
    sides, values = [], []
    for phenotype, value, further in (
        (UPR, level, {}),
        (
            UPR_INTERACTION,
            level - expected,
            {
                ONE_GENE: control[first] | control[second],
                NOT_EXPECTED: np.isfinite(level)[first, second] & np.isnan(expected)[first, second],
            },
        ),
    ):
        used = RowFilter(len(first))
        for reason, mask in without_gene(matched, control).items():
            used.drop(reason, mask[first] | mask[second])
        # The control crossed with itself has no gene on either side, and is dropped here too.
        used.drop(SAME_GENE, matched.position[first] == matched.position[second])
        for reason, mask in further.items():
            used.drop(reason, mask)
        used.drop(NO_VALUE, np.isnan(value[first, second]))
        if not used.left.any():
            raise SourceError(
                f"{path} has no {phenotype.name} of two known genes, expected thousands: {REMEDY}"
            )
        collect(used.report(path.name, phenotype.name, renamed))
        sides.append(np.stack([first[used.left], second[used.left]], axis=1))
        values.append(value[first[used.left], second[used.left]])
    pairs = np.concatenate(sides)
    mutant = ~control[pairs]
    perturbed = pairs[mutant]
    return Measurements.build(
        study_of(PUBLISHER, [path]),
        genes=genes.names,
        gene=matched.position[perturbed],
        offsets=np.concatenate([[0], np.cumsum(mutant.sum(1))]),
        kind=kind[perturbed],
        allele=allele[perturbed],
        phenotypes=(UPR, UPR_INTERACTION),
        phenotype=np.repeat([0, 1], [len(one) for one in values]),
        value=np.concatenate(values),
        n=counts[pairs[:, 0], pairs[:, 1]],
    )


def _perturbations(
    names: list[str], genes: GeneIndex, essential: Flags
) -> tuple[GeneNames, NDArray[np.uint8], NDArray[np.object_]]:
    """Return the gene of every strain [s], the kind of its perturbation and its allele.

    ``SEC61-2`` is an allele of SEC61, unless the organism has a gene of that name.
    """
    as_gene, alleles = [], []
    for name in names:
        found = None if name in genes else _ALLELE.fullmatch(name)
        as_gene.append(found["gene"] if found else name)
        alleles.append(name.lower() if found else "")
    matched = match_genes(as_gene, genes)
    other = np.array([bool(allele) for allele in alleles])
    # An essential gene cannot be deleted; how its strain was changed is not in the file (publisher's notes).
    other |= matched.found & essential[matched.position]
    kind = np.where(other, PerturbationKind.OTHER_ALLELE, PerturbationKind.DELETION).astype(np.uint8)
    return matched, kind, np.array(alleles, dtype=object)


def read_matrix(path: Path) -> tuple[list[str], Floats, Floats, Ints]:
    """Return strain names [s], reporter levels [s, s] (NaN: not measured), those that the Hill model expects
    [s, s] (NaN: of an unknown single mutant) and numbers of measurements [s, s].

    Raises
    ------
    SourceError
        If the file is not a MATLAB file of version 5, lacks a variable, or one has another shape or type, is
        not symmetric or not finite.
    """
    found = read_mat5(path, (*_NAMES, _VALUES, _EXPECTED, _COUNTS))
    names, other = (_strains(path, name, found[name]) for name in _NAMES)
    if names != other:
        raise SourceError(f"{path} names other strains in {_NAMES[0]} than in {_NAMES[1]}: {REMEDY}")
    value, expected, counts = (
        _square(path, name, found[name], len(names)) for name in (_VALUES, _EXPECTED, _COUNTS)
    )
    if not (counts >= 0).all() or (counts != np.floor(counts)).any():
        raise SourceError(f"{path}: {_COUNTS} holds other than whole numbers of at least 0: {REMEDY}")
    return names, value, expected, counts.astype(np.int64)


def _strains(path: Path, name: str, texts: Variable) -> list[str]:
    if not isinstance(texts, list):
        raise SourceError(f"{path}: {name} holds numbers, expected names: {REMEDY}")
    strains = [text.strip().upper() for text in texts]
    if len(set(strains)) < len(strains) or not all(strains) or not strains:
        raise SourceError(f"{path}: {name} leaves a strain without a name or names one twice: {REMEDY}")
    return strains


def _square(path: Path, name: str, matrix: Variable, size: int) -> Floats:
    if isinstance(matrix, list) or matrix.shape != (size, size):
        shape = "text" if isinstance(matrix, list) else f"shape {matrix.shape}"
        raise SourceError(f"{path}: {name} has {shape}, expected numbers of shape ({size}, {size}): {REMEDY}")
    # A pair has one number in both orders: anything else is damage or another matrix.
    if not np.array_equal(matrix, matrix.T, equal_nan=True) or (np.abs(matrix) > LARGEST).any():
        raise SourceError(f"{path}: {name} is not symmetric and finite, expected both: {REMEDY}")
    return matrix
