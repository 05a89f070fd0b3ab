"""Features from annotations of genes with the terms of an ontology, weighted by information and condensed.

Legend: n genes · m annotated genes · t terms · f components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism.components import components, spread
from wildtype.organism.features import FeatureBlock

LEAST_GENES = 3
"""Terms with fewer genes say nothing about other genes."""


def annotation_block(
    table: sparse.csr_array,
    genes: NDArray[np.int64],
    n: int,
    name: str,
    *,
    source: str = "",
    note: str = "",
    count: int = 64,
    what: str = "the table of annotations",
) -> FeatureBlock:
    """Return a block [n, f] of the leading components of annotations that reach up to the ontology's root.

    A term with g of m genes weighs ln(m / g) (Resnik 1995, Using information content to evaluate semantic
    similarity in a taxonomy); terms of all genes or of fewer than three say nothing and are left out. Genes
    that the table lacks are NaN.

    Parameters
    ----------
    table : csr [m, t]
        1 where a gene carries a term, its own or one above its own.
    genes : int64 [m]
        Positions of the table's rows.
    n : int
        Number of genes of the organism.
    name, source, note : str
        Of the block; how many terms it rests on goes before the note.
    count : int
        Components f (fewer where the table is smaller).
    what : str
        Names the table in messages.

    Raises
    ------
    SourceError
        If no term tells genes apart.
    """
    m, width = table.shape
    size = np.bincount(table.indices, minlength=width)
    informative = np.flatnonzero((size >= LEAST_GENES) & (size < m))
    weighted = sparse.csr_array(table[:, informative] * np.log(m / size[informative])[None, :])
    scores = components(weighted, count, what)
    about = f"{informative.size:,} of {width:,} terms (at least {LEAST_GENES} genes)"
    return FeatureBlock(
        name,
        spread(scores, genes, n),
        tuple(f"component{i + 1}" for i in range(scores.shape[1])),
        source=source,
        note=f"{about}; {note}" if note else about,
        comparable=False,
    )
