"""Annotations with the Gene Ontology (GAF, OBO): terms as sets of genes, propagated to the terms above.

Legend: m annotations · n genes · t terms.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from wildtype.organism import GeneIndex
from wildtype.organism.gene_sets import TERM, GeneSets
from wildtype.sources.gaf import NAMESPACES, OBJECT, SYMBOL, SYNONYMS, TAXON, Annotations, annotate, read_gaf
from wildtype.sources.obo import read_obo
from wildtype.sources.text import GeneNames, Rows, match_genes
from wildtype.sources.user_organisms.description import Gaf
from wildtype.sources.user_organisms.gene_sets import lost_names, made
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import FileCard, Read, locate, no_gene_known

ASPECTS = {"P": NAMESPACES[0], "F": NAMESPACES[1], "C": NAMESPACES[2], "": None}
"""Namespaces by the letter of a description; none: all of them."""
FOREIGN = "another taxon"


def read(part: Gaf, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return terms as features and relation; a gene carries every term above those of its annotations."""
    path = ontology = None
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
    with problems.of(part.ontology):
        ontology_path = locate(part.ontology, folder, problems)
        ontology = None if ontology_path is None else read_obo(ontology_path)
    if path is None or ontology is None:
        return Read()
    with problems.of(part.path):
        rows = read_gaf(path)
        matched = _matched(rows, names)
        if not matched.found.any():
            raise no_gene_known(part.path, list(dict.fromkeys(rows.text(SYMBOL))), names.organism)
        # Rows of two taxa are of a host and its guest; the first is that of the gene.
        taxa = [text.partition("|")[0].removeprefix("taxon:") for text in rows.text(TAXON)]
        foreign = np.array([part.taxon is not None and taxon != str(part.taxon) for taxon in taxa])
        annotations, used, renamed = annotate(
            rows,
            matched,
            ontology,
            namespace=ASPECTS[part.aspect],
            without=part.leave_out_evidence,
            unused={FOREIGN: foreign},
        )
        sets = sets_of(annotations, len(names))
        features, relations = made(part, sets, names, version=annotations.version, note=annotations.note)
        size = sets.sizes
        kept = int(((size >= part.smallest) & (size <= part.largest)).sum())
        note = (
            f"{kept:,} of {len(sets):,} terms have {part.smallest:,} to {part.largest:,} genes; "
            f"{annotations.note}; {int((renamed & used.left).sum()):,} rows by an older name or id"
        )
        card = FileCard(
            part.path,
            f"gene sets {part.name} as {' and '.join(part.made)}",
            used.rows,
            int(used.left.sum()),
            used.dropped,
            note,
            lost_names(rows.text(SYMBOL), matched),
        )
        terms, carried = len(ontology.ids) + len(ontology.obsolete), len(annotations.terms)
        ontology_card = FileCard(
            part.ontology,
            f"terms of {part.name}",
            terms,
            carried,
            {"term that no gene carries": terms - carried} if terms > carried else {},
        )
        return Read((card, ontology_card), relations, features)
    return Read()


def names_in(part: Gaf, folder: Path, problems: Problems) -> list[str]:
    """Return the symbols of the annotated genes, ascending, each once."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return sorted({name for name in read_gaf(path).text(SYMBOL) if name})
    return []


def _matched(rows: Rows, genes: GeneIndex) -> GeneNames:
    """Return the gene of every row: by its object's id, symbol, or the one gene of its synonyms."""
    keys = list(zip(rows.text(OBJECT), rows.text(SYMBOL), rows.text(SYNONYMS), strict=True))
    distinct = list(dict.fromkeys(keys))
    by_id, by_symbol = (match_genes([key[i] for key in distinct], genes) for i in (0, 1))
    position = np.where(by_id.found, by_id.position, by_symbol.position)
    renamed = np.where(by_id.found, by_id.renamed, by_symbol.renamed)
    for i in np.flatnonzero(position < 0).tolist():
        synonyms = [name.strip() for name in distinct[i][2].split("|") if name.strip()]
        found = np.unique(match_genes(synonyms, genes).position)
        found = found[found >= 0]
        if found.size:
            # Synonyms of different genes decide nothing.
            position[i], renamed[i] = (found[0], True) if found.size == 1 else (-2, False)
    place = {key: i for i, key in enumerate(distinct)}
    at = np.fromiter((place[key] for key in keys), np.int64, len(keys))
    return GeneNames(position[at], renamed[at])


def sets_of(annotations: Annotations, n: int) -> GeneSets:
    """Return the terms as sets [n, t], by name and id."""
    coo = sparse.coo_array(annotations.table)
    rows = annotations.gene[coo.coords[0]]
    table = sparse.csr_array((np.ones(len(rows)), (rows, coo.coords[1])), shape=(n, len(annotations.terms)))
    names = tuple(f"{name} ({term})" for name, term in zip(annotations.names, annotations.terms, strict=True))
    return GeneSets(TERM, names, table)
