"""Complex Portal: genes whose products are part of one complex.

Legend: k places of a complex, each taken by one protein or one of several alternatives.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np

from wildtype.organism import GeneIndex, Relation
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import Rows, read_rows, read_text
from wildtype.sources.yeast.files import publisher
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession
from wildtype.sources.yeast.graphs.pair_lists import Graph

TAXON = "559292"
MISSING = "-"
FOREIGN = "complex of another organism"
SMALL = "fewer than two places with a gene"
HEADER = (
    "Complex ac", "Recommended name", "Aliases for complex", "Taxonomy identifier",
    "Identifiers (and stoichiometry) of molecules in complex", "Evidence Code", "Experimental evidence",
    "Go Annotations", "Cross references", "Description", "Complex properties", "Complex assembly", "Ligand",
    "Disease", "Agonist", "Antagonist", "Comment", "Source", "Expanded participant list",
)  # fmt: skip
NAME, SPECIES, DIRECT, EXPANDED = 0, 3, 4, 18
PUBLISHER = publisher("complex-portal")
(FILE,) = PUBLISHER.files
_MEMBER = re.compile(r"(\[[^\[\]]+\]|[^\[\]()|]+)\((\d+)\)")
NO_GENE = {
    "CHEBI:": "small molecule",
    "URS": "RNA",
    "EBI-": "other molecule",
    "CPX-": "complex that is not in the file",
}
"""Molecules that are no proteins, by the beginning of their identifiers."""


def read_complexes(folder: str | Path, genes: GeneIndex, uniprot: Accessions) -> Graph:
    """Return the undirected, weighted relation ``same_complex``.

    Two genes are joined if they take different places of one complex, members of nested complexes included;
    alternatives for one place are not joined. The weight is 1 / (k - 1), k the places that a gene takes: a
    large complex is weak evidence for any one of its pairs. Of several complexes the smallest counts.

    Parameters
    ----------
    folder : path
        Holds the file under its publisher's name.
    genes : GeneIndex
        What the relation is over.
    uniprot : mapping of str to tuple of int
        UniProt accession to genes (`read_accessions`).

    Raises
    ------
    SourceError
        If the file is missing, damaged, not in the published layout, or a complex contains itself.
    """
    path = FILE.require(folder)
    # Releases differ in whether the header line begins with a hash.
    mark = "#" if read_text(path).startswith("#") else ""
    rows = read_rows(path, header=(mark + HEADER[0], *HEADER[1:]))
    used = RowFilter(len(rows))
    used.drop(FOREIGN, np.array([taxon != TAXON for taxon in rows.text(SPECIES)]))
    members: Counter[str] = Counter()
    first: list[int] = []
    second: list[int] = []
    weights: list[float] = []
    complexes, small = _Complexes(rows), np.zeros(len(rows), bool)
    for row in np.flatnonzero(used.left).tolist():
        places = []
        for names in complexes.places(row):
            members.update(filter(None, (_reason(name, uniprot) for name in names)))
            place = {gene for name in names for gene in uniprot.get(base_accession(name), ())}
            # Several copies of one protein are several places in the file, but no edges between genes.
            if place and place not in places:
                places.append(place)
        small[row] = len(places) < 2
        for one, other in combinations(places, 2):
            pairs = [(a, b) for a in one for b in other if a != b]
            first += [a for a, _ in pairs]
            second += [b for _, b in pairs]
            # Each gene spreads a weight of 1 over the other places, so a ribosome says little of any one
            # pair.
            weights += [1 / (len(places) - 1)] * len(pairs)
    used.drop(SMALL, small)
    lost = ", ".join(f"{count:,} {reason}" for reason, count in sorted(members.items())) or "none"
    relation = Relation.from_edges(
        "same_complex",
        first,
        second,
        len(genes),
        weights,
        directed=False,
        source="Complex Portal",
        note=f"weight 1 / (places - 1) of the smallest common complex; members without a gene: {lost}",
        dropped=used.dropped,
    )
    return relation, used.report(path.name, relation.name)


class _Complexes:
    """The places of every complex, with those of complexes inside it."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.row = {accession: i for i, accession in enumerate(rows.text(NAME))}

    def places(self, row: int, inside: tuple[int, ...] = ()) -> list[list[str]]:
        """Return the molecules that may take each place of the complex in one row."""
        if row in inside:
            raise self.rows.error(row, self.rows.cells[row][NAME], "a complex that does not contain itself")
        listed = self.rows.cells[row][EXPANDED].strip()
        # The expanded list goes first; the direct one can name further complexes, resolved below.
        listed = self.rows.cells[row][DIRECT].strip() if listed == MISSING else listed
        out: list[list[str]] = []
        for text in listed.split("|"):
            found = _MEMBER.fullmatch(text.strip())
            if found is None:
                raise self.rows.error(row, text, "a member with its number of copies, such as P32797(1)")
            name = found.group(1)
            if name in self.row:
                out += self.places(self.row[name], (*inside, row))
            else:
                out.append([part.strip() for part in name.strip("[]").split(",")])
        return out


def _reason(name: str, uniprot: Accessions) -> str:
    """Return why a molecule brings no gene; empty if it brings one."""
    if uniprot.get(base_accession(name)):
        return ""
    for prefix, reason in NO_GENE.items():
        if name.startswith(prefix):
            return reason
    return "accession without a gene of the index"
