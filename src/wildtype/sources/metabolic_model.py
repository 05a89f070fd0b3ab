"""Metabolic models of any organism, their genes found in the gene index."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.organism import GeneIndex
from wildtype.organism.metabolism import Metabolism, read_metabolism
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import AMBIGUOUS, match_genes

UNKNOWN = "gene of the model that is not in the index"
_NAME = re.compile(r"[^\s()&|]+")
_TRANSCRIPT = re.compile(r"(_AT|\.)\d+$")
SPELLINGS: tuple[Callable[[str], str], ...] = (
    # SBML identifiers have no hyphen: models write _ or __45__, its code, for the one in YAL043C-A.
    lambda name: name.replace("__45__", "-").replace("_", "-"),
    # Models of human number the transcripts of a gene: 8639_AT1, 8639.1, ENSG00000141510.18.
    lambda name: _TRANSCRIPT.sub("", name),
)
"""What a model may have made of a gene's name, tried in turn where it is unknown as it is."""


def read_model_file(
    path: str | Path, genes: GeneIndex, *, cache: bool = True
) -> tuple[Metabolism, ReadReport]:
    """Return any metabolic model (SBML, YAML or JSON, plain or gzipped) with genes by systematic name.

    A gene that the model calls by another name, with ``_`` for a hyphen or with the number of a transcript
    (`SPELLINGS`), gets its systematic name in every rule. A gene that the index lacks stays in the rules,
    where no deletion takes it away; it is counted. Rows of the report are the genes of the model.

    Raises
    ------
    SourceError
        If the file is missing, of another kind, or cannot be parsed, or has a damaged gene rule.
    """
    path = Path(path)
    metabolism = read_metabolism(path, cache=cache)
    names = list(metabolism.genes)
    position = match_genes(names, genes).position
    for spelling in SPELLINGS:
        other = match_genes([spelling(name) for name in names], genes).position
        position = np.where(position == -1, other, position)
    spelled = {
        name: genes.names[at]
        for name, at in zip(names, position, strict=True)
        if at >= 0 and genes.names[at] != name
    }
    used = RowFilter(len(names))
    used.drop(UNKNOWN, position == -1)
    used.drop(AMBIGUOUS, position == -2)
    report = used.report(path.name, "metabolism", np.array([name in spelled for name in names], bool))
    return (_spelled(metabolism, spelled) if spelled else metabolism), report


def _spelled(metabolism: Metabolism, names: dict[str, str]) -> Metabolism:
    """Return the model with other gene names in its rules."""
    # Rules are rebuilt as text: the parser of rules then sees systematic names only.
    return Metabolism.build(
        metabolism.reactions,
        metabolism.metabolites,
        metabolism.stoichiometry,
        metabolism.lower,
        metabolism.upper,
        metabolism.objective,
        [_NAME.sub(lambda m: names.get(m.group(), m.group()), rule) for rule in metabolism.rules],
    )
