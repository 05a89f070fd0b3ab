"""Gene graphs that come as lists of pairs of ORFs: protein interactions and co-expression.

Legend: m rows of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.errors import DatasetError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import GeneNames, match_genes, read_rows
from wildtype.sources.yeast.files import publisher

Graph = tuple[Relation, ReadReport]
"""A relation, and the counts of the rows that it was read from."""
IREFINDEX = "ppi_irefindex_pubmed.csv.gz"
IREFINDEX_PUBLISHER = publisher("irefindex")
(IREFINDEX_FILE,) = IREFINDEX_PUBLISHER.files
REPORTED = "a pair that several publications report is one edge"


def edges(
    name: str,
    first: GeneNames,
    second: GeneNames,
    genes: GeneIndex,
    *,
    file: str,
    directed: bool = False,
    weights: NDArray[np.floating] | None = None,
    used: RowFilter | None = None,
    source: str,
    version: str = "",
    note: str = "",
    measured: Sequence[str] = (),
) -> Graph:
    """Return the relation over the rows whose two names are genes, and the counts of all rows.

    Parameters
    ----------
    first, second : GeneNames
        The ends of the edge of every row [m]; in a directed relation from the first to the second.
    file : str
        Name of the file, for the report.
    weights : float [m], optional
        Positive where the row is left; of equal edges the largest counts.
    used : RowFilter, optional
        The m rows, some of them dropped for other reasons.
    """
    used = RowFilter(len(first.position)) if used is None else used
    used.drop_names(first, second)
    relation = Relation.from_edges(
        name,
        first.position[used.left],
        second.position[used.left],
        len(genes),
        None if weights is None else weights[used.left],
        directed=directed,
        source=source,
        version=version,
        note=note,
        dropped=used.dropped,
        measured=measured,
    )
    # Rows are counted once more by the relation, which drops self-loops and merges equal edges.
    report = used.report(file, name, first.renamed | second.renamed)
    return relation, replace(report, kept=relation.edges, dropped=relation.dropped)


def read_physical(folder: str | Path, genes: GeneIndex) -> Graph:
    """Return the undirected, unweighted relation ``physical`` of iRefIndex, one row per pair and publication.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    header = ("PROTEIN_U", "PROTEIN_V", "PUBMED")
    rows = read_rows(IREFINDEX_FILE.require(folder), separator=",", header=header)
    first, second = (match_genes(rows.text(position), genes) for position in (0, 1))
    return edges(
        "physical",
        first,
        second,
        genes,
        file=rows.path.name,
        source="iRefIndex",
        version="with PubMed ids",
        note=f"{REPORTED}; complexes are listed as pairs",
    )


@dataclass(frozen=True)
class PairList:
    """A file of one pair per line, without header; others prepared it from the publication.

    Attributes
    ----------
    relation : str
        Name of the relation it becomes; its publisher has the same name, with hyphens.
    separator : str
        Between the fields.
    weighted : bool
        Whether a third field is the weight.
    """

    relation: str
    separator: str
    weighted: bool

    @property
    def publisher(self) -> Publisher:
        """Where it comes from."""
        return publisher(self.relation.replace("_", "-"))

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.publisher.files[0].name

    @property
    def note(self) -> str:
        """What the weight means."""
        return next((note for note in self.publisher.notes if note.startswith("weight: ")), "")


LISTS = (
    PairList("coexpression_hu2007", " ", weighted=True),
    PairList("ppi_dip", ",", weighted=False),
    PairList("ppi_bim", " ", weighted=True),
    PairList("ppi_collins2007", "\t", weighted=True),
    PairList("ppi_gavin2006", " ", weighted=True),
    PairList("ppi_krogan2006_core", "\t", weighted=True),
    PairList("ppi_krogan2006_extended", "\t", weighted=True),
    PairList("ppi_krogan2006_bionic", " ", weighted=False),
)
PUBLISHERS = tuple(item.publisher for item in LISTS)


def read_pair_list(folder: str | Path, genes: GeneIndex, relation: str) -> Graph:
    """Return one undirected relation of ``LISTS``; a pair in both orders is one edge, with its larger weight.

    Raises
    ------
    DatasetError
        If there is no such list.
    SourceError
        If the file is missing, damaged, or has a weight that is not positive.
    """
    known = {item.relation: item for item in LISTS}
    if relation not in known:
        raise DatasetError(f"there is no list of pairs {relation!r}; known lists: {', '.join(known)}")
    item = known[relation]
    path = item.publisher.files[0].require(folder)
    rows = read_rows(path, separator=item.separator, fields=3 if item.weighted else 2)
    weights = None
    if item.weighted:
        # In single precision, as the relation holds it: a weight that rounds to 0 there is refused too.
        weights = rows.numbers(2).astype(np.float32)
        rows.refuse(2, weights <= 0, "a weight above 0")
    first, second = (match_genes(rows.text(position), genes) for position in (0, 1))
    return edges(
        relation,
        first,
        second,
        genes,
        file=path.name,
        weights=weights,
        source=item.publisher.title,
        note=item.note,
    )
