"""Annotations of yeast genes with Gene Ontology terms (GAF), propagated to the terms above.

Legend: m annotated genes · t terms of one namespace.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import ConfigError, SourceError
from wildtype.organism import FeatureBlock, GeneIndex, components
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN, GeneNames, count_reasons, match_genes, read_rows
from wildtype.sources.yeast.graphs.obo import FILE as ONTOLOGY
from wildtype.sources.yeast.graphs.obo import Ontology, read_obo

FILE = RemoteFile(
    "gene_association.sgd.gaf.gz",
    (
        "https://sgd-archive.yeastgenome.org/curation/literature/gene_association.sgd.gaf.gz",
        "https://downloads.yeastgenome.org/curation/literature/gene_association.sgd.gaf.gz",
    ),
    aliases=("gene_association.sgd.gaf", "sgd.gaf"),
)
PUBLISHER = Publisher(
    name="sgd-annotations",
    title="SGD: annotations of genes with Gene Ontology terms",
    publication=Publication(
        citation="Cherry et al. 2012, Saccharomyces Genome Database: the genomics resource of budding yeast, "
        "Nucleic Acids Res 40:D700",
        doi="10.1093/nar/gkr1029",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(FILE,),
    notes=(
        "changes weekly, so that no checksum can be given",
        "evidence IGI is inferred from genetic interactions and leaks their labels: left out by default; IPI "
        "is inferred from physical interactions",
    ),
)
GENETIC_INTERACTION, NO_DATA = "IGI", "ND"
WITHOUT = (GENETIC_INTERACTION, NO_DATA)
"""Evidence codes that are left out unless the caller says otherwise."""
PROCESS = "biological_process"
NAMESPACES = (PROCESS, "molecular_function", "cellular_component")
SYMBOL, QUALIFIER, TERM, EVIDENCE, SYNONYMS = 2, 3, 4, 6, 10
FIELDS = (15, 17)
"""Number of columns in GAF 1.0 and 2.x."""


@dataclass(frozen=True, eq=False)
class Annotations:
    """Which genes carry which terms.

    Attributes
    ----------
    path : Path
        The file of annotations, for messages.
    gene : int64 [m]
        Positions of the annotated genes, ascending.
    terms, names : tuple of t str
        Ids and names of all terms that any of them carries, in the order of the ontology.
    table : csr [m, t] of float64
        1 where a gene carries a term, its own or one above its own.
    version : str
        Release of the ontology.
    without : tuple of str
        Evidence codes left out.
    """

    path: Path
    gene: NDArray[np.int64]
    terms: tuple[str, ...]
    names: tuple[str, ...]
    table: sparse.csr_array
    version: str
    without: tuple[str, ...]


def present(folder: str | Path) -> bool:
    """Say whether both the ontology and the annotations are in a folder."""
    return FILE.find(folder) is not None and ONTOLOGY.find(folder) is not None


def read_annotations(
    folder: str | Path, genes: GeneIndex, *, namespace: str = PROCESS, without: Collection[str] = WITHOUT
) -> tuple[Annotations, ReadReport]:
    """Return the propagated annotations of one namespace.

    A gene is found by its ORF name, the first of the synonyms, else by its symbol. Alternative and replaced
    terms count as their successors, and are counted as renamed.

    Parameters
    ----------
    folder : path
        Holds the ontology and the annotations.
    genes : GeneIndex
        The n genes.
    namespace : str
        One of ``NAMESPACES``.
    without : collection of str
        Evidence codes to leave out.

    Raises
    ------
    ConfigError
        If there is no such namespace.
    SourceError
        If a file is missing, damaged or not in the published layout, or no annotation is left.
    """
    if namespace not in NAMESPACES:
        raise ConfigError(f"there is no namespace {namespace!r}: choose one of {', '.join(NAMESPACES)}")
    ontology_path = ONTOLOGY.require(folder)
    ontology = read_obo(ontology_path)
    inside = np.array([name == namespace for name in ontology.namespaces])
    if not inside.any():
        raise SourceError(f"{ontology_path} has no term in {namespace}, expected thousands: {REMEDY}")
    path = FILE.require(folder)
    rows = read_rows(path, comment="!", least=FIELDS[0])
    for row, cells in enumerate(rows.cells):
        if len(cells) not in FIELDS:
            raise rows.error(row, len(cells), f"{FIELDS[0]} or {FIELDS[1]} fields")
    matched = _genes(rows.text(SYMBOL), rows.text(SYNONYMS), genes)
    resolved = {term: ontology.resolve(term) for term in set(rows.text(TERM))}
    term = np.array([resolved[text][0] for text in rows.text(TERM)])
    how = np.array([resolved[text][1] for text in rows.text(TERM)])
    evidence = np.array(rows.text(EVIDENCE))
    negated = np.array(["NOT" in text.split("|") for text in rows.text(QUALIFIER)])
    reasons = {
        "negated (NOT)": negated,
        **{f"evidence {code} left out": evidence == code for code in sorted(without)},
        **{text: (term < 0) & (how == text) for text in sorted(set(how[term < 0].tolist()))},
        "term of another namespace": (term >= 0) & ~inside[term],
        UNKNOWN: matched.position == -1,
        AMBIGUOUS: matched.position == -2,
    }
    kept = np.ones(len(rows), bool)
    for reason, mask in reasons.items():  # a row counts under the first reason that fits it
        reasons[reason] = kept & mask
        kept &= ~mask
    if not kept.any():
        raise SourceError(f"{path} has no usable annotation in {namespace}, expected thousands: {REMEDY}")
    renamed = int((kept & ((how != "") | matched.renamed)).sum())
    reading = ReadReport(path.name, namespace, len(rows), int(kept.sum()), count_reasons(reasons), renamed)
    return _propagated(path, ontology, matched.position[kept], term[kept], tuple(sorted(without))), reading


def _genes(symbols: list[str], synonyms: list[str], genes: GeneIndex) -> GeneNames:
    by_locus = match_genes([text.partition("|")[0].strip() for text in synonyms], genes)
    by_symbol = match_genes(symbols, genes)
    return GeneNames(
        np.where(by_locus.found, by_locus.position, by_symbol.position),
        np.where(by_locus.found, by_locus.renamed, by_symbol.renamed),
    )


def _propagated(
    path: Path, ontology: Ontology, gene: NDArray[np.int64], term: NDArray[np.int64], without: tuple[str, ...]
) -> Annotations:
    found, row = np.unique(gene, return_inverse=True)
    direct = sparse.csr_array(
        (np.ones(len(term)), (row.reshape(-1), term)), shape=(len(found), len(ontology.ids))
    )
    table = sparse.csr_array(direct @ ontology.ancestors)
    carried = np.unique(table.indices)
    table = sparse.csr_array(table[:, carried])
    table.sort_indices()
    table.data[:] = 1.0
    return Annotations(
        path,
        found,
        tuple(ontology.ids[i] for i in carried),
        tuple(ontology.names[i] for i in carried),
        table,
        ontology.version,
        without,
    )


def annotation_block(annotations: Annotations, n: int, name: str, count: int = 64) -> FeatureBlock:
    """Return the components of annotations as a block [n, 64]; see ``wildtype.organism`` for how.

    Raises
    ------
    SourceError
        If no term tells genes apart.
    """
    note = f"evidence codes left out: {', '.join(annotations.without) or 'none'}"
    if GENETIC_INTERACTION not in annotations.without:
        note += "; annotations inferred from genetic interactions may leak"
    return components.annotation_block(
        annotations.table,
        annotations.gene,
        n,
        name,
        source=f"Gene Ontology {annotations.version}, annotations of SGD",
        note=note,
        count=count,
        what=str(annotations.path),
    )
