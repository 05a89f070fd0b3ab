"""Strains with a suppressor: a second, mostly unmapped mutation that masks the first.

Such a strain has both mutations. Recorded as two perturbations of its gene, the first is not lost where a
reader passes over suppressors, and the strain is never taken for the plain mutant.

Legend: m rows · d distinct strains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Environment, PerturbationKind, PhenotypeDefinition, Study
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.parts import measured
from wildtype.sources.yeast.screens.sga_strains import StrainId, Strains, parse_allele

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SUPPRESSOR_TYPES = ("S", "A_S")
_SUPPRESSED = re.compile(r"(?P<first>.*?)-?supp.*", re.IGNORECASE)
_ORF = re.compile(r"y[a-p][lr]\d{3}[wc](-[a-z])?", re.IGNORECASE)


def split_allele(name: str, strain_type: str) -> tuple[PerturbationKind, str, str]:
    """Return the kind and allele of a strain's first mutation, and the name of its suppressor or ``""``.

    The type ``S`` does not say what the first mutation is: it is an allele where its name is more than a
    gene's (``cdc9-1-supp2``), and a deletion otherwise (``tps1-supp2``, ``ygr146c-a-supp1``).
    """
    found = _SUPPRESSED.fullmatch(name)
    first = found["first"] if found else name
    suppressed = found is not None or strain_type in SUPPRESSOR_TYPES
    if strain_type in SUPPRESSOR_TYPES:
        strain_type = "tsq" if "-" in first and not _ORF.fullmatch(first) else "sn"
    return *parse_allele(first, strain_type), name if suppressed else ""


@dataclass(frozen=True, eq=False)
class SuppressedStrains:
    """Distinct strains, each with one perturbed gene and perhaps a suppressor; make them with `build`.

    Attributes
    ----------
    first : Strains
        What was done to the gene.
    second : Strains
        The suppressor, recorded at the same gene; meaningful where `suppressed` holds.
    suppressed : bool [d]
        Strains that carry a suppressor.
    """

    first: Strains
    second: Strains
    suppressed: Flags

    @classmethod
    def build(
        cls, strains: Sequence[StrainId], alleles: Sequence[str], genes: GeneIndex
    ) -> SuppressedStrains:
        """Match the ORFs of d strains, each with its allele name."""
        parsed = [split_allele(name, strain.type) for name, strain in zip(alleles, strains, strict=True)]
        suppressor = PerturbationKind.SUPPRESSOR
        return cls(
            Strains.build(strains, [[(kind, allele)] for kind, allele, _ in parsed], genes, 1),
            Strains.build(strains, [[(suppressor, name)] for _, _, name in parsed], genes, 1),
            np.array([bool(name) for _, _, name in parsed], bool),
        )


def measured_apart(
    study: Study,
    genes: GeneIndex,
    phenotype: PhenotypeDefinition,
    environment: Environment,
    sides: Sequence[tuple[SuppressedStrains, Ints]],
    value: Floats,
    rows: Flags,
    *,
    label: str,
    sd: Floats | None = None,
    p: Floats | None = None,
) -> list[Measurements]:
    """Return the measurements of the rows [m] marked in ``rows``, those with suppressors by themselves.

    Parameters are those of `measured`, with every side's strains and their suppressors.
    """
    parts = []
    for carried in product((False, True), repeat=len(sides)):
        chosen = rows.copy()
        for (strains, code), carries in zip(sides, carried, strict=True):
            chosen &= strains.suppressed[code] == carries
        if chosen.any():
            mutations = [(strains.first, code) for strains, code in sides]
            mutations += [
                (s.second, code) for (s, code), carries in zip(sides, carried, strict=True) if carries
            ]
            parts.append(
                measured(
                    study, genes, phenotype, environment, mutations, value, chosen, label=label, sd=sd, p=p
                )
            )
    return parts
