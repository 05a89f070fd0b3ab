"""A genome-scale model of metabolism: SBML, JSON or YAML, its genes found in the index."""

from __future__ import annotations

import zipfile
from pathlib import Path

from wildtype.errors import SourceError, reason_of
from wildtype.organism import GeneIndex, Metabolism
from wildtype.organism.metabolic_features import metabolic_features
from wildtype.organism.metabolism import read_metabolism
from wildtype.sources.metabolic_model import read_model_file
from wildtype.sources.text import match_genes
from wildtype.sources.user_organisms.description import MetabolismPart
from wildtype.sources.user_organisms.gene_sets import lost_names
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import FileCard, Read, locate, no_gene_known
from wildtype.unpacking import read_arrays

ARRAYS = ".npz"
"""Suffix of the models that `wildtype organism export` writes: arrays, without loss."""


def read(part: MetabolismPart, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the model and the features that are read off it; rows of the card are its genes."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return _read(part, path, names)
    return Read()


def names_in(part: MetabolismPart, folder: Path, problems: Problems) -> list[str]:
    """Return the genes in the rules of the model, ascending."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return list((_arrays(path) if path.suffix == ARRAYS else read_metabolism(path)).genes)
    return []


def _read(part: MetabolismPart, path: Path, genes: GeneIndex) -> Read:
    if path.suffix == ARRAYS:
        return _read_arrays(part, path, genes)
    metabolism, report = read_model_file(path, genes)
    if not metabolism.genes:
        raise SourceError("no reaction has a gene rule: give a model with gene rules (GPRs)")
    if not report.kept:
        raise no_gene_known(part.path, metabolism.genes, genes.organism)
    source = f"metabolic model {part.source or Path(part.path).name}"
    blocks = metabolic_features(metabolism, genes, source=source)
    note = (
        f"{len(metabolism.reactions):,} reactions, {int(metabolism.has_rule.sum()):,} of them with a gene "
        f"rule, {len(metabolism.metabolites):,} metabolites; {report.renamed:,} genes by another name; genes "
        f"that the organism lacks stay in the rules, where no deletion takes them away"
    )
    card = FileCard(
        part.path,
        f"metabolism, features {', '.join(block.name for block in blocks)}",
        report.rows,
        report.kept,
        dict(report.dropped),
        note,
        lost_names(metabolism.genes, match_genes(metabolism.genes, genes)),
    )
    return Read((card,), features=tuple(blocks), metabolism=metabolism)


def _arrays(path: Path) -> Metabolism:
    try:
        return Metabolism.from_arrays(read_arrays(path))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"cannot be read as the arrays of a model ({reason_of(error)}): export it again"
        ) from error


def _read_arrays(part: MetabolismPart, path: Path, genes: GeneIndex) -> Read:
    """Return the model of `wildtype organism export`, whose features stand in files of their own."""
    metabolism = _arrays(path)
    matched = match_genes(metabolism.genes, genes)
    used, rows = int(matched.found.sum()), len(metabolism.genes)
    note = f"{len(metabolism.reactions):,} reactions"
    lost = lost_names(metabolism.genes, matched)
    card = FileCard(part.path, "metabolism", rows, used, matched.dropped(), note, lost)
    return Read((card,), metabolism=metabolism)
