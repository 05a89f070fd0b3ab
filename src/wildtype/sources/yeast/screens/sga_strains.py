"""Strains of synthetic genetic array (SGA) screens: what identifiers and allele names say was perturbed.

A strain of the deletion or temperature-sensitive collections is ``ORF_typeN``. A query strain of the trigenic
screens is ``ORF1+ORF2_tmN``, with a suffix at its second half only. The control query of one gene deletes the
neutral locus HO (YDL227C) besides: that deletion is part of the strain, and a reader keeps it.

Legend: d distinct strains · k genes that each of them perturbs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.records import PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes

HO = "YDL227C"
"""The neutral locus that control queries delete so that they carry as many markers as double mutants."""
STRAIN_TYPES: Mapping[str, PerturbationKind] = {
    "sn": PerturbationKind.DELETION,  # natMX, query
    "dma": PerturbationKind.DELETION,  # kanMX, array
    "tsq": PerturbationKind.TEMPERATURE_SENSITIVE,
    "tsa": PerturbationKind.TEMPERATURE_SENSITIVE,
    "damp": PerturbationKind.REDUCED_EXPRESSION,
    "S": PerturbationKind.SUPPRESSOR,
    "A_S": PerturbationKind.SUPPRESSOR,
    "y": PerturbationKind.OTHER_ALLELE,  # a strain of the laboratory's own collection
}
"""What a strain's type says of its mutation where its allele is not named."""
DELETION_MARKS = ("Δ", "∆", "_")
"""A deletion is the gene's name and a delta: Greek letter, increment sign, or what exports make of it."""

_STRAIN = re.compile(
    r"(?P<first>[^_+]+)(?:\+(?P<second>[^_+]+))?_(?P<type>sn|dma|tsq|tsa|damp|A_S|S|y|tm)\d+"
)


@dataclass(frozen=True)
class StrainId:
    """A strain identifier taken apart.

    Attributes
    ----------
    name : str
        All of it.
    orfs : tuple of str
        Its one or two ORFs.
    type : str
        ``dma``, ``tsa``, ``tm`` …
    """

    name: str
    orfs: tuple[str, ...]
    type: str

    @property
    def short(self) -> str:
        """The part after the last underscore, by which other tables name the strain."""
        return self.name.rpartition("_")[2]


def parse_strain(text: str) -> StrainId | None:
    """Return the parts of ``ORF_typeN`` or ``ORF1+ORF2_typeN``, None if the text is neither."""
    found = _STRAIN.fullmatch(text)
    if found is None:
        return None
    orfs = (found["first"],) if found["second"] is None else (found["first"], found["second"])
    return StrainId(text, orfs, found["type"])


def parse_allele(name: str, strain_type: str = "") -> tuple[PerturbationKind, str]:
    """Return what an allele name means, and the allele to record (none for a deletion: it is the gene's).

    Every allele of these screens that is neither a deletion nor marked otherwise is from the collection of
    temperature-sensitive strains: names such as ``sec7-1``, ``RPN6-PH`` or ``dfr1-td``.

    Parameters
    ----------
    name : str
        ``gem1Δ``, ``nth2-5001``, ``vti1-11-supp1`` (with a suppressor), ``mak16_damp``; empty where it is
        not stated, and then the strain's type decides.
    strain_type : str
        A key of ``STRAIN_TYPES``; ``tm`` and none say nothing.
    """
    low = name.lower()
    kind = STRAIN_TYPES.get(strain_type)
    if "supp" in low or kind is PerturbationKind.SUPPRESSOR:
        return PerturbationKind.SUPPRESSOR, name
    if "damp" in low:
        return PerturbationKind.REDUCED_EXPRESSION, name
    if name.endswith(DELETION_MARKS) or low == "delta" or kind is PerturbationKind.DELETION:
        return PerturbationKind.DELETION, ""
    if kind is None:
        kind = PerturbationKind.TEMPERATURE_SENSITIVE if name else PerturbationKind.DELETION
    return kind, name


@dataclass(frozen=True, eq=False)
class Strains:
    """Distinct strains and what they perturb; make them with `build`.

    Attributes
    ----------
    ids : tuple of d StrainId
        Their identifiers.
    gene : int64 [d, k]
        Positions in the gene index; -1 where the name is unknown, -2 where it is ambiguous.
    kind : uint8 [d, k]
        ``PerturbationKind``.
    allele : str [d, k], as objects
        Allele names; empty for deletions.
    renamed : bool [d]
        Strains whose name has an older name or alias of a gene.
    """

    ids: tuple[StrainId, ...]
    gene: NDArray[np.int64]
    kind: NDArray[np.uint8]
    allele: NDArray[np.object_]
    renamed: NDArray[np.bool_]

    @classmethod
    def build(
        cls,
        strains: Sequence[StrainId],
        alleles: Sequence[Sequence[tuple[PerturbationKind, str]]],
        genes: GeneIndex,
        k: int,
    ) -> Strains:
        """Match the ORFs of d strains of k genes; `alleles` [d][k] as ``parse_allele`` gives them."""
        matched = match_genes([orf for strain in strains for orf in strain.orfs], genes)
        shape = (len(strains), k)
        return cls(
            tuple(strains),
            matched.position.reshape(shape),
            np.array([kind for strain in alleles for kind, _ in strain], np.uint8).reshape(shape),
            np.array([name for strain in alleles for _, name in strain], object).reshape(shape),
            np.asarray(matched.renamed.reshape(shape).any(1)),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def unknown(self) -> NDArray[np.bool_]:
        """Strains with a gene that the organism does not have [d]."""
        return np.asarray((self.gene == -1).any(1))

    @cached_property
    def ambiguous(self) -> NDArray[np.bool_]:
        """Other strains with a name that stands for several genes [d]."""
        return np.asarray((self.gene == -2).any(1) & ~self.unknown)
