"""Gene Ontology: annotations of yeast genes, propagated to the terms above, as features and as sets of genes.

Two sources: annotations of SGD (GAF) with the ontology itself, and a 0/1 table of biological process of
2014-08-19, propagated by others.

Legend: n genes · m annotated genes · t terms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex, components
from wildtype.organism.gene_sets import TERM, GeneSets
from wildtype.sources.gaf import PROCESS, SYMBOL, SYNONYMS, WITHOUT, Annotations, annotate, read_gaf
from wildtype.sources.obo import read_obo
from wildtype.sources.row_filter import Ints, RowFilter
from wildtype.sources.text import REMEDY, GeneNames, match_genes, read_text
from wildtype.sources.yeast.files import publisher

GO = "go_bp_140819_gene_by_term.txt.gz"
TABLE_PUBLISHER, ANNOTATION_PUBLISHER = publisher("go-process-2014"), publisher("sgd-annotations")
ONTOLOGY_PUBLISHER = publisher("gene-ontology")
(TABLE,), (FILE,) = TABLE_PUBLISHER.files, ANNOTATION_PUBLISHER.files
(ONTOLOGY,) = ONTOLOGY_PUBLISHER.files


def present(folder: str | Path) -> bool:
    """Return whether both the ontology and the annotations are in a folder."""
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
    ontology = read_obo(ONTOLOGY.require(folder))
    rows = read_gaf(FILE.require(folder))
    matched = _genes(rows.text(SYMBOL), rows.text(SYNONYMS), genes)
    annotations, used, renamed = annotate(rows, matched, ontology, namespace=namespace, without=without)
    return annotations, used.report(rows.path.name, namespace, renamed)


def _genes(symbols: list[str], synonyms: list[str], genes: GeneIndex) -> GeneNames:
    # The ORF name does not change; a symbol may have moved to another gene since the annotation.
    by_locus = match_genes([text.partition("|")[0].strip() for text in synonyms], genes)
    by_symbol = match_genes(symbols, genes)
    return GeneNames(
        np.where(by_locus.found, by_locus.position, by_symbol.position),
        np.where(by_locus.found, by_locus.renamed, by_symbol.renamed),
    )


def annotation_block(annotations: Annotations, n: int, name: str, count: int = 64) -> FeatureBlock:
    """Return the components of annotations as a block [n, 64]; see ``wildtype.organism`` for how.

    Raises
    ------
    SourceError
        If no term distinguishes genes.
    """
    return components.annotation_block(
        annotations.table,
        annotations.gene,
        n,
        name,
        source=f"Gene Ontology {annotations.version}, annotations of SGD",
        note=annotations.note,
        count=count,
        what=str(annotations.path),
    )


@dataclass(frozen=True, eq=False)
class GoTable:
    """The table of 2014: m genes by t terms.

    Attributes
    ----------
    table : csr [m, t] of float64
        1 where a gene is annotated with the term or with one below it.
    genes : int64 [m]
        Positions of the rows.
    terms : tuple of t str
        Names.
    report : ReadReport
        The counts of the rows of the file.
    """

    table: sparse.csr_array
    genes: Ints
    terms: tuple[str, ...]
    report: ReadReport


def read_go_process(folder: str | Path, genes: GeneIndex, count: int = 64) -> tuple[FeatureBlock, ReadReport]:
    """Return the block ``go_process`` [n, 64]: components of annotations weighted by information.

    Terms are weighted as in ``wildtype.organism.components``. Genes that the table lacks are NaN;
    errors as in ``read_go_table``.
    """
    found = read_go_table(folder, genes)
    block = components.annotation_block(
        found.table,
        found.genes,
        len(genes),
        "go_process",
        source="Gene Ontology biological process, 2014-08-19",
        note="evidence codes are lost: annotations inferred from genetic interactions known before August "
        "2014 may leak",
        count=count,
        what=found.report.file,
    )
    return block, found.report


def read_go_table(folder: str | Path, genes: GeneIndex) -> GoTable:
    """Return the table as it is.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    path = TABLE.require(folder)
    lines = read_text(path).rstrip("\n").split("\n")
    terms = lines[0].split("\t")
    if terms[0] != "ORF" or len(terms) < 3:
        raise SourceError(f"{path}, line 1: received {lines[0][:40]!r}, expected ORF and the terms; {REMEDY}")
    width = len(terms) - 1
    names, entries = [], []
    # 26 million entries of one character each: checked as bytes, since splitting them would cost seconds.
    for number, line in enumerate(lines[1:], 2):
        name, _, rest = line.partition("\t")
        row = np.frombuffer(rest.encode(), np.uint8)
        if row.size != 2 * width - 1 or (row[1::2] != ord("\t")).any() or ((row[::2] | 1) != ord("1")).any():
            raise SourceError(
                f"{path}, line {number}: received {rest[:20]!r}…, expected {width:,} entries that are "
                f"0 or 1; {REMEDY}"
            )
        names.append(name.strip())
        entries.append(np.flatnonzero(row[::2] == ord("1")))
    matched = match_genes(names, genes)
    used = RowFilter(len(names))
    used.drop_names(matched)
    positions, first = used.first_of_each(matched, path)
    chosen = [entries[i] for i in first]
    columns = np.concatenate(chosen)
    offsets = np.cumsum([0] + [len(e) for e in chosen])
    table = sparse.csr_array((np.ones(columns.size), columns, offsets), shape=(len(chosen), width))
    return GoTable(table, positions, tuple(terms[1:]), used.report(path.name, "go_process", matched.renamed))


def read_go_terms(folder: str | Path, genes: GeneIndex) -> GeneSets:
    """Return propagated terms as sets of genes, from the same file as the features.

    Raises
    ------
    SourceError
        If the file is missing or damaged.
    """
    if TABLE.find(folder) is None and present(folder):
        annotations, _ = read_annotations(folder, genes)
        rows, table, names = annotations.gene, annotations.table, annotations.names
        source = f"{annotations.path.name}, without {', '.join(annotations.without)}"
    else:
        found = read_go_table(folder, genes)
        rows, table, names = found.genes, found.table, found.terms
        source = f"{found.report.file}; evidence codes are lost"
    coo = sparse.coo_array(table)
    of, terms = rows[coo.coords[0]], coo.coords[1]
    ones = np.ones(len(of))
    carried = sparse.csr_array((ones, (of, terms)), shape=(len(genes), len(names)))
    return GeneSets(TERM, names, carried, source)
