"""Annotations of genes with terms of the Gene Ontology (GAF 1.0 and 2.x), propagated to the terms above.

Legend: n genes · m annotated genes · t terms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import ConfigError, SourceError
from wildtype.sources.obo import Ontology
from wildtype.sources.row_filter import Flags, Ints, RowFilter
from wildtype.sources.text import REMEDY, GeneNames, Rows, read_rows

GENETIC_INTERACTION, NO_DATA = "IGI", "ND"
WITHOUT = (GENETIC_INTERACTION, NO_DATA)
"""Evidence codes that are left out unless the caller names others."""
PROCESS = "biological_process"
NAMESPACES = (PROCESS, "molecular_function", "cellular_component")
OBJECT, SYMBOL, QUALIFIER, TERM_ID, EVIDENCE, SYNONYMS, TAXON = 1, 2, 3, 4, 6, 10, 12
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
        1 where a gene is annotated with the term or with one below it.
    version : str
        Release of the ontology.
    without : tuple of str
        Evidence codes left out.
    """

    path: Path
    gene: Ints
    terms: tuple[str, ...]
    names: tuple[str, ...]
    table: sparse.csr_array
    version: str
    without: tuple[str, ...]

    @property
    def note(self) -> str:
        """What was left out, and what may leak."""
        note = f"evidence codes left out: {', '.join(self.without) or 'none'}"
        if GENETIC_INTERACTION not in self.without:
            note += "; annotations inferred from genetic interactions may leak"
        return note


def read_gaf(path: str | Path) -> Rows:
    """Return the rows of a file of annotations.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or a row has neither 15 nor 17 fields.
    """
    rows = read_rows(path, comment="!", least=FIELDS[0])
    for row, cells in enumerate(rows.cells):
        if len(cells) not in FIELDS:
            raise rows.error(row, len(cells), f"{FIELDS[0]} or {FIELDS[1]} fields")
    return rows


def annotate(
    rows: Rows,
    matched: GeneNames,
    ontology: Ontology,
    *,
    namespace: str | None = PROCESS,
    without: Collection[str] = WITHOUT,
    unused: Mapping[str, Flags] | None = None,
) -> tuple[Annotations, RowFilter, Flags]:
    """Return the propagated annotations, which rows they come from, and which of these were renamed.

    Rows with the qualifier NOT are always left out. Alternative and replaced terms count as their
    successors, and count as renamed.

    Parameters
    ----------
    rows : Rows
        Of `read_gaf`.
    matched : GeneNames
        The gene of every row.
    ontology : Ontology
        The terms.
    namespace : str or None
        One of ``NAMESPACES``; None: all of them.
    without : collection of str
        Evidence codes to leave out.
    unused : dict of str to bool [m], optional
        Further rows to leave out, by reason.

    Raises
    ------
    ConfigError
        If there is no such namespace.
    SourceError
        If the ontology has no term of the namespace, or no annotation is left.
    """
    if namespace is not None and namespace not in NAMESPACES:
        raise ConfigError(f"there is no namespace {namespace!r}: choose one of {', '.join(NAMESPACES)}")
    inside: NDArray[np.bool_] = np.array([namespace in (None, name) for name in ontology.namespaces])
    if not inside.any():
        raise SourceError(f"{ontology.path} has no term in {namespace}, expected thousands: {REMEDY}")
    resolved = {term: ontology.resolve(term) for term in set(rows.text(TERM_ID))}
    term = np.array([resolved[text][0] for text in rows.text(TERM_ID)])
    how = np.array([resolved[text][1] for text in rows.text(TERM_ID)])
    evidence = np.array(rows.text(EVIDENCE))
    # NOT annotations say that a gene was shown to lack the function.
    negated = np.array(["NOT" in text.upper().split("|") for text in rows.text(QUALIFIER)])
    used = RowFilter(len(rows))
    used.drop_all(unused or {})
    used.drop("negated (NOT)", negated)
    for code in sorted(without):
        used.drop(f"evidence {code} left out", evidence == code)
    for text in sorted(set(how[term < 0].tolist())):
        used.drop(text, (term < 0) & (how == text))
    used.drop("term of another namespace", (term >= 0) & ~inside[term])
    used.drop_names(matched)
    kept = used.left
    if not kept.any():
        raise SourceError(
            f"{rows.path} has no usable annotation in {namespace or 'any namespace'}, expected thousands: "
            f"{REMEDY}"
        )
    annotations = _propagated(rows.path, ontology, matched.position[kept], term[kept], tuple(sorted(without)))
    return annotations, used, (how != "") | matched.renamed


def _propagated(
    path: Path, ontology: Ontology, gene: Ints, term: Ints, without: tuple[str, ...]
) -> Annotations:
    found, row = np.unique(gene, return_inverse=True)
    # A gene carries every ancestor of its terms (the true-path rule of the ontology): one sparse product.
    direct = sparse.csr_array(
        (np.ones(len(term)), (row.reshape(-1), term)), shape=(len(found), len(ontology.ids))
    )
    table = sparse.csr_array(direct @ ontology.ancestors)
    # Terms that no gene carries would be empty columns.
    carried = np.unique(table.indices)
    table = sparse.csr_array(table[:, carried])
    table.sort_indices()
    # A product counts the paths between two terms; an annotation holds or does not.
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
