"""Costanzo et al. 2010 (Science 327:425): digenic interactions at the stringent cut-off, by allele."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.text import REMEDY, count_reasons, match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs
from wildtype.sources.yeast.screens.digenic import SAME_GENE, Screen, StrainPairs

STRINGENT = "costanzo2010_sga_stringent_cutoff_101120.tsv.gz"
QUERY, ARRAY, EPSILON, SD, P_VALUE = 0, 2, 4, 5, 6
NEGATIVE, POSITIVE = -0.12, 0.16
"""The publisher's cut-offs (and p < 0.05): nothing between them is in the file."""
_STRAIN = re.compile(r"(?P<orf>[^_]+)(?:_(?:tsq\d+|damp))?")


def read_pairs(folder: str | Path, genes: GeneIndex) -> Screen:
    """Return the strain pairs of the file, seven columns without a header.

    A suffix ``_tsqN`` (temperature-sensitive) or ``_damp`` (DAmP) makes a perturbation ``reduced``; a bare
    ORF name is a deletion.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has an unknown strain suffix, a label that is not a number, or no
        usable row.
    """
    rows = read_rows(require(folder, STRINGENT), fields=7)
    sides, kinds, strains = [], [], []
    for position in (QUERY, ARRAY):
        names = rows.text(position)
        parsed = {name: _STRAIN.fullmatch(name) for name in set(names)}
        wrong = next((i for i, name in enumerate(names) if parsed[name] is None), None)
        if wrong is not None:
            raise rows.error(wrong, names[wrong], "an ORF name, alone or followed by _tsqN or _damp")
        orf = {name: found["orf"] for name, found in parsed.items() if found}
        sides.append(match_genes([orf[name] for name in names], genes))
        kinds.append([Kind.ABSENT if orf[name] == name else Kind.REDUCED for name in names])
        strains.append(names)
    value, sd, p = rows.numbers(EPSILON), rows.numbers(SD), rows.numbers(P_VALUE)
    rows.refuse(SD, sd < 0, "a standard deviation of at least 0")
    rows.refuse(P_VALUE, (p < 0) | (p > 1), "a p-value of 0 to 1")
    kept, excluded, _ = match_pairs(*sides)
    same = kept & (sides[0].position == sides[1].position)
    kept = kept & ~same
    if not kept.any():
        raise SourceError(
            f"{rows.path} has no pair of two ORFs of the gene list, expected thousands: {REMEDY}"
        )
    number = {name: i for i, name in enumerate(sorted({*strains[0], *strains[1]}))}
    pairs = StrainPairs(
        gene=np.stack([side.position for side in sides], axis=1)[kept],
        kind=np.array(kinds, dtype=np.uint8).T[kept],
        strain=np.array([[number[name] for name in names] for names in strains], dtype=np.int64).T[kept],
        value=value[kept],
        sd=sd[kept],
    )
    renamed = int((kept & (sides[0].renamed | sides[1].renamed)).sum())
    return Screen(pairs, excluded | count_reasons({SAME_GENE: same}), len(rows), renamed, (STRINGENT,))
