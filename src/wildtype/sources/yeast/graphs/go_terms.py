"""Terms of the Gene Ontology (biological process) as named sets of genes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from wildtype.organism import GeneIndex
from wildtype.organism.gene_sets import TERM, GeneSets
from wildtype.sources.yeast.graphs import go_annotations, ontology


def read_go_terms(folder: str | Path, genes: GeneIndex) -> GeneSets:
    """Return the terms that genes carry, their own and those above, from the file that features come from.

    Raises
    ------
    SourceError
        If the file is missing or damaged.
    """
    if ontology.FILE.find(folder) is None and go_annotations.present(folder):
        annotations, _ = go_annotations.read_annotations(folder, genes)
        rows, table, names = annotations.gene, annotations.table, annotations.names
        source = f"{annotations.path.name}, without {', '.join(annotations.without)}"
    else:
        found = ontology.read_go_table(folder, genes)
        rows, table, names = found.genes, found.table, found.terms
        source = f"{found.file}; evidence codes are lost"
    coo = sparse.coo_array(table)
    of, terms = rows[coo.coords[0]], coo.coords[1]
    ones = np.ones(len(of))
    whole = sparse.csr_array((ones, (of, terms)), shape=(len(genes), len(names)))
    return GeneSets(TERM, names, whole, source)
