"""Complex Portal: genes whose products are part of one complex.

Legend: k places of a complex, each taken by one protein or one of several alternatives.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import Rows, read_rows, read_text
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession

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
FILE = RemoteFile(
    "559292.tsv",
    ("https://ftp.ebi.ac.uk/pub/databases/intact/complex/current/complextab/559292.tsv",),
    aliases=("complex_portal_559292.tsv",),
)
PUBLISHER = Publisher(
    name="complex-portal",
    title="Complex Portal: manually curated complexes of S. cerevisiae",
    publication=Publication(
        citation="Meldal et al. 2022, Complex Portal 2022: new curation frontiers, Nucleic Acids Res 50:D578",
        doi="10.1093/nar/gkab991",
    ),
    licence="CC0",
    files=(FILE,),
    notes=(
        "members are UniProt accessions with their number of copies, (0) where it is not known",
        "small molecules (CHEBI), RNA (RNAcentral URS) and nucleic acids (EBI) are members too: no genes",
        "changes with every release; the number of rows of a release is not confirmed",
    ),
)
_MEMBER = re.compile(r"(\[[^\[\]]+\]|[^\[\]()|]+)\((\d+)\)")
NO_GENE = {
    "CHEBI:": "small molecule",
    "URS": "RNA",
    "EBI-": "other molecule",
    "CPX-": "complex that is not in the file",
}
"""What other identifiers than accessions stand for, by their beginning."""


def read_complexes(folder: str | Path, genes: GeneIndex, uniprot: Accessions) -> tuple[Relation, ReadReport]:
    """Return the undirected, weighted relation ``same_complex``.

    Two genes are joined if they take different places of one complex, members of nested complexes included;
    alternatives for one place are not joined. The weight is 1 / (k - 1), k the places that a gene takes: a
    large complex says little of any one of its pairs. Of several complexes the smallest counts.

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
    mark = "#" if read_text(path).startswith("#") else ""
    rows = read_rows(path, header=(mark + HEADER[0], *HEADER[1:]))
    members: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    first: list[int] = []
    second: list[int] = []
    weights: list[float] = []
    complexes = _Complexes(rows)
    for row, taxon in enumerate(rows.text(SPECIES)):
        if taxon != TAXON:
            dropped[FOREIGN] += 1
            continue
        places = []
        for names in complexes.places(row):
            members.update(filter(None, (_reason(name, uniprot) for name in names)))
            place = {gene for name in names for gene in uniprot.get(base_accession(name), ())}
            if place and place not in places:
                places.append(place)
        dropped[SMALL] += len(places) < 2
        for one, other in combinations(places, 2):
            pairs = [(a, b) for a in one for b in other if a != b]
            first += [a for a, _ in pairs]
            second += [b for _, b in pairs]
            weights += [1 / (len(places) - 1)] * len(pairs)
    counts = {reason: count for reason, count in sorted(dropped.items()) if count}
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
        dropped=counts,
    )
    kept = len(rows) - sum(counts.values())
    return relation, ReadReport(path.name, relation.name, len(rows), kept, counts)


class _Complexes:
    """The places of every complex, nested complexes taken apart."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.row = {accession: i for i, accession in enumerate(rows.text(NAME))}

    def places(self, row: int, inside: tuple[int, ...] = ()) -> list[list[str]]:
        """Return the molecules that may take each place of the complex in one row."""
        if row in inside:
            raise self.rows.error(row, self.rows.cells[row][NAME], "a complex that does not contain itself")
        listed = self.rows.cells[row][EXPANDED].strip()
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
    """Say why a molecule brings no gene; empty if it brings one."""
    if uniprot.get(base_accession(name)):
        return ""
    for prefix, reason in NO_GENE.items():
        if name.startswith(prefix):
            return reason
    return "accession without a gene of the index"
