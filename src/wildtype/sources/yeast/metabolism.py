"""Metabolic models of yeast: Yeast-GEM, iMM904 or any other file, their genes found in the gene index."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex
from wildtype.organism.metabolism import Metabolism, read_metabolism
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import AMBIGUOUS, match_genes
from wildtype.sources.yeast.files import find_copy, publisher

METABOLISM = "yeast-GEM_9.0.2.yml.gz"
YEAST_GEM, BIGG = publisher("yeast-gem"), publisher("bigg-imm904")
MODELS = {"yeast-gem": YEAST_GEM, "imm904": BIGG}
"""Models by name; of several files of one model the first that is there is read."""
UNKNOWN = "gene of the model that is not in the index"
_NAME = re.compile(r"[^\s()&|]+")


def find_model(folder: str | Path, name: str = "yeast-gem") -> Path | None:
    """Return the file of a model in a folder, or None; raises ``ConfigError`` if there is no such model."""
    if name not in MODELS:
        raise ConfigError(f"there is no metabolic model {name!r}; known models: {', '.join(MODELS)}")
    return find_copy(folder, MODELS[name].files)


def read_model(
    folder: str | Path, genes: GeneIndex, name: str = "yeast-gem", *, cache: bool = True
) -> tuple[Metabolism, ReadReport]:
    """Return a model by name; see `read_model_file`.

    Raises
    ------
    ConfigError
        If there is no such model.
    SourceError
        If no file of it is in the folder, or it cannot be read.
    """
    path = find_model(folder, name)
    return read_model_file(
        MODELS[name].files[0].require(folder) if path is None else path, genes, cache=cache
    )


def read_model_file(
    path: str | Path, genes: GeneIndex, *, cache: bool = True
) -> tuple[Metabolism, ReadReport]:
    """Return any metabolic model (SBML, YAML or JSON, plain or gzipped) with genes by systematic name.

    A gene that the model calls by another name, or with ``_`` for the hyphen, gets its systematic name in
    every rule. A gene that the index lacks stays in the rules, where no deletion takes it away; it is
    counted. Rows of the report are the genes of the model.

    Raises
    ------
    SourceError
        If the file is missing, of another kind, or cannot be parsed, or has a damaged gene rule.
    """
    path = Path(path)
    metabolism = read_metabolism(path, cache=cache)
    names = list(metabolism.genes)
    matched = match_genes(names, genes)
    # SBML identifiers have no hyphen: models write _ or __45__, its code, for the one in YAL043C-A.
    hyphened = match_genes([name.replace("__45__", "-").replace("_", "-") for name in names], genes)
    position = np.where(matched.position == -1, hyphened.position, matched.position)
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
