"""Strains of synthetic genetic array (SGA) screens: the perturbations behind identifiers and allele names.

A strain of the deletion or temperature-sensitive collections is ``ORF_typeN``. A query strain of the trigenic
screens is ``ORF1+ORF2_tmN``, with a suffix at its second half only. The control query of one gene deletes the
neutral locus HO (YDL227C) besides: that deletion is part of the strain, and a reader keeps it.

A strain can carry a suppressor: a second, mostly unmapped mutation that masks the first. Such a strain has
both mutations. Recorded as two perturbations of its gene, the first is not lost where a reader passes over
suppressors, and the strain is never taken for the plain mutant.

Legend: d distinct strains · k genes that each of them perturbs · m rows of a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.records import PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, TextColumn
from wildtype.sources.row_filter import Flags, Ints
from wildtype.sources.text import match_genes

HO = "YDL227C"
"""The neutral locus that control queries delete so that they carry as many markers as double mutants."""
STRAIN_TYPES: Mapping[str, PerturbationKind] = {
    "sn": PerturbationKind.DELETION,  # natMX, query
    "dma": PerturbationKind.DELETION,  # kanMX, array
    # Essential genes cannot be deleted: their strains have an allele that works at low temperature (query,
    # array) …
    "tsq": PerturbationKind.TEMPERATURE_SENSITIVE,
    "tsa": PerturbationKind.TEMPERATURE_SENSITIVE,
    # … or a marker in the 3' untranslated region that destabilises the mRNA (DAmP; Schuldiner et al. 2005,
    # Cell).
    "damp": PerturbationKind.REDUCED_EXPRESSION,
    "S": PerturbationKind.SUPPRESSOR,
    "A_S": PerturbationKind.SUPPRESSOR,
    "y": PerturbationKind.OTHER_ALLELE,  # a strain of the laboratory's collection
}
"""The kind of a strain's mutation by the strain's type, where its allele is not named."""
DELETION_MARKS = ("Δ", "∆", "_")
"""A deletion is the gene's name and a delta: Greek letter, increment sign, or what exports make of it."""

SUPPRESSOR_TYPES = ("S", "A_S")
_SUPPRESSED = re.compile(r"(?P<first>.*?)-?supp.*", re.IGNORECASE)
ORF = re.compile(r"y[a-p][lr]\d{3}[wc](-[a-z])?", re.IGNORECASE)
_STRAIN = re.compile(
    r"(?P<first>[^_+]+)(?:\+(?P<second>[^_+]+))?_(?P<type>sn|dma|tsq|tsa|damp|A_S|S|y|tm)\d+"
)


Mutation = tuple[PerturbationKind, str, str]
"""The kind and allele of a gene's first mutation, and the name of its suppressor or ``""``."""


@dataclass(frozen=True)
class StrainId:
    """The parts of a strain identifier.

    Attributes
    ----------
    name : str
        The identifier.
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
        A key of ``STRAIN_TYPES``; ``tm`` and none leave the kind open.
    """
    low = name.lower()
    kind = STRAIN_TYPES.get(strain_type)
    # Order matters: a suppressed DAmP strain is a suppressor first, and "damp" goes before the endings.
    if "supp" in low or kind is PerturbationKind.SUPPRESSOR:
        return PerturbationKind.SUPPRESSOR, name
    if "damp" in low:
        return PerturbationKind.REDUCED_EXPRESSION, name
    if name.endswith(DELETION_MARKS) or low == "delta" or kind is PerturbationKind.DELETION:
        return PerturbationKind.DELETION, ""
    if kind is None:
        kind = PerturbationKind.TEMPERATURE_SENSITIVE if name else PerturbationKind.DELETION
    return kind, name


def split_allele(name: str, strain_type: str) -> Mutation:
    """Return the mutation of a gene that an allele name and the strain's type name.

    The type ``S`` leaves the first mutation open: it is an allele where its name is more than a
    gene's (``cdc9-1-supp2``), and a deletion otherwise (``tps1-supp2``, ``ygr146c-a-supp1``).
    """
    found = _SUPPRESSED.fullmatch(name)
    first = found["first"] if found else name
    suppressed = found is not None or strain_type in SUPPRESSOR_TYPES
    if strain_type in SUPPRESSOR_TYPES:
        # ORF names with a hyphen (ygr146c-a) are no alleles.
        strain_type = "tsq" if "-" in first and not ORF.fullmatch(first) else "sn"
    return *parse_allele(first, strain_type), name if suppressed else ""


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
    suppressor : str [d], as objects
        Name of the suppressor; empty where a strain carries none.
    suppressed_gene : int64 [d]
        Position of the gene whose mutation it masks; meaningful where there is a suppressor.
    """

    ids: tuple[StrainId, ...]
    gene: Ints
    kind: NDArray[np.uint8]
    allele: NDArray[np.object_]
    renamed: Flags
    suppressor: NDArray[np.object_]
    suppressed_gene: Ints

    @classmethod
    def build(
        cls, strains: Sequence[StrainId], mutations: Sequence[Sequence[Mutation]], genes: GeneIndex, k: int
    ) -> Strains:
        """Match the ORFs of d strains of k genes; ``mutations`` [d][k] as ``split_allele`` gives them."""
        matched = match_genes([orf for strain in strains for orf in strain.orfs], genes)
        shape = (len(strains), k)
        position = matched.position.reshape(shape)
        # Of two suppressors in one strain both names are kept, joined, at the gene of the first.
        at = np.array([next((i for i, of in enumerate(one) if of[2]), 0) for one in mutations], np.int64)
        return cls(
            tuple(strains),
            position,
            np.array([kind for of in mutations for kind, _, _ in of], np.uint8).reshape(shape),
            np.array([allele for of in mutations for _, allele, _ in of], object).reshape(shape),
            np.asarray(matched.renamed.reshape(shape).any(1)),
            np.array(["+".join(name for _, _, name in of if name) for of in mutations], object),
            position[np.arange(len(strains)), at],
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def suppressed(self) -> Flags:
        """Strains that carry a suppressor [d]."""
        return np.array([bool(name) for name in self.suppressor], bool)


class Side(NamedTuple):
    """One side of a cross, such as its query: the distinct strains, and which of them each row [m] has."""

    strains: Strains
    code: Ints

    @property
    def controls(self) -> Flags:
        """Which rows [m] have a strain that deletes the neutral locus."""
        return np.array([HO in strain.orfs for strain in self.strains.ids], bool)[self.code]


def distinct_pairs(strain: TextColumn, allele: TextColumn) -> tuple[list[tuple[str, str]], Ints]:
    """Return the distinct pairs of strain and allele name, and which of them each row has [m].

    Of one strain identifier with two allele names it is unknown which was screened: they are two strains.
    """
    pair = strain.code.astype(np.int64) * len(allele.names) + allele.code
    distinct, code = np.unique(pair, return_inverse=True)
    first, second = np.divmod(distinct, len(allele.names))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [(strain.names[i], allele.names[j]) for i, j in pairs], code.reshape(-1).astype(np.int64)


def read_side(
    columns: Columns, position: int, k: int, genes: GeneIndex, strain_form: str, allele_form: str = ""
) -> Side:
    """Return one side of a cross from a column of identifiers and the column of allele names behind it.

    Parameters
    ----------
    k : int
        Genes of a strain.
    strain_form : str
        What identifiers look like, for messages.
    allele_form : str, optional
        What allele names look like: k of them, joined by +. Without it a strain has one, which may be any.

    Raises
    ------
    SourceError
        Naming the first line with another identifier or allele name.
    """
    strain, allele = columns.text(position), columns.names(position + 1)
    ids = {name: found for name in strain.names if (found := parse_strain(name)) and len(found.orfs) == k}
    columns.refuse(position, strain.map(lambda name: name not in ids, bool), strain_form)
    named = {name: name.split("+") if allele_form else [name] for name in allele.names}
    wrong = allele.map(lambda name: len(named[name]) != k or not all(named[name]), bool)
    columns.refuse(position + 1, wrong & bool(allele_form), allele_form)
    pairs, code = distinct_pairs(strain, allele)
    # ORFs and allele names have one order, so that each allele goes to its gene.
    mutations = [[split_allele(part, ids[name].type) for part in named[text]] for name, text in pairs]
    return Side(Strains.build([ids[name] for name, _ in pairs], mutations, genes, k), code)
