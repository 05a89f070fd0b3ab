"""Ohya et al. 2005 (PNAS 102:19015): 501 CalMorph traits of 4,718 haploid deletions and 122 wild types.

Legend: m strains · c traits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition, Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, Collector, ignore, match_genes
from wildtype.sources.yeast.screens.parts import study_of
from wildtype.sources.yeast.traits.matrix import (
    Column,
    Mutants,
    measure,
    readable,
    sift,
    told_apart,
    without_gene,
)
from wildtype.sources.yeast.traits.wide import read_wide, stack

MUTANTS = RemoteFile(
    "mt4718data.tsv",
    ("https://uofi.box.com/shared/static/da9uevinx6euzp5lhkw88mvtzv9pq9sd.tsv",),
    "c4ba1e84b4ea6273f0162ef9230e15634933c8c0c4910dd7546a21c6293e0fc0",
)
WILD_TYPES = RemoteFile(
    "wt122data.tsv",
    ("https://uofi.box.com/shared/static/ji5wzym3lc3vd0kbv0frfk9xmruqp7d2.tsv",),
    "ab2c31b5150b2a33c15b5d22f1bef8687719975223559a740ea233c1f67b27c3",
)
PUBLISHER = Publisher(
    "ohya2005",
    "Morphology of deletions: 501 CalMorph traits (SCMD)",
    Publication(
        citation="Ohya et al. 2005, PNAS 102:19015", doi="10.1073/pnas.0509436102", pubmed="16365294"
    ),
    "not confirmed",
    (MUTANTS, WILD_TYPES),
    {"mutants": 4718, "wild types": 122, "traits": 501},
    (
        "the addresses are third-party copies; SCMD itself (www.yeast.ib.k.u-tokyo.ac.jp/SCMD) answers only "
        "web browsers, without encryption",
        "the 122 wild types are his3 replicates; a later analysis of the same table left out 13 of them",
        "the paper does not state the temperature; 25 °C by laboratory practice, not confirmed",
        "some open reading frames of 2005 have been retired or merged since: the former are dropped, and two "
        "strains of one gene are kept as replicates",
    ),
)
PHENOTYPE = PhenotypeDefinition(
    name="CalMorph",
    unit="as in SCMD, by trait",
    level="trait",
    description="mean or coefficient of variation over the cells of a class; the trait is SCMD's name of it",
)


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read mutants and wild types: every number of both tables is one measurement.

    The wild types are replicates of the mutant without perturbations, named as in their table.

    Raises
    ------
    SourceError
        If a file is missing, damaged, not in the published layout, or the two have not the same traits.
    """
    paths = [MUTANTS.require(folder), WILD_TYPES.require(folder)]
    study = study_of(PUBLISHER, paths)
    parts = []
    traits: tuple[str, ...] | None = None
    for path, key in zip(paths, ("ORF", "NAME"), strict=True):
        table, found = read_wide(path, key)
        if traits is not None and found != traits:
            raise SourceError(
                f"{path}, line 1: received other traits than {paths[0].name} has, expected the same in the "
                f"same order; {REMEDY}"
            )
        traits = found
        names = [table.text(0)[row] for row in range(len(table))]
        readable(path, (*found, *names))
        value = stack(table, range(1, len(found) + 1)).T
        columns = [Column(PHENOTYPE, trait) for trait in found]
        if key == "ORF":
            names = [name.upper() for name in names]  # lower case in the published table
            matched = match_genes(names, genes)
            value, reading = sift(
                path, "measurements", value, rows=without_gene(matched), renamed=matched.renamed
            )
            mutants = Mutants.single(matched.position, told_apart(matched.position, names))
        else:
            value, reading = sift(path, "measurements of wild types", value, rows={})
            mutants = Mutants.single(np.full(len(names), -1), names)
        collect(reading)
        parts.append(measure(study, genes, mutants, columns, value))
    return Measurements.concatenate(parts)
