"""BioGRID's tables of interactions, of all organisms: tab3 and the older tab2.

Legend: m rows of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.sources.columns import Columns, TextColumn, first_lines, read_columns
from wildtype.sources.row_filter import Flags

PHYSICAL, GENETIC = "physical", "genetic"
FOREIGN = "partner of another organism"


def _both(*names: str) -> list[str]:
    return [f"{name} Interactor {side}" for name in names for side in "AB"]


_NAMES = _both("Entrez Gene", "BioGRID ID", "Systematic Name", "Official Symbol", "Synonyms")
HEADER = (
    "#BioGRID Interaction ID",
    *_NAMES,
    "Experimental System", "Experimental System Type", "Author", "Publication Source",
    *_both("Organism ID"),
    "Throughput", "Score", "Modification", "Qualifications", "Tags", "Source Database",
    *(f"{bank} Accessions Interactor {side}" for side in "AB" for bank in ("SWISS-PROT", "TREMBL", "REFSEQ")),
    "Ontology Term IDs", "Ontology Term Names", "Ontology Term Categories", "Ontology Term Qualifier IDs",
    "Ontology Term Qualifier Names", "Ontology Term Types",
    *_both("Organism Name"),
)  # fmt: skip
"""The 37 columns of tab3."""
TAB2 = (
    "#BioGRID Interaction ID",
    *_NAMES,
    "Experimental System", "Experimental System Type", "Author", "Pubmed ID",
    *_both("Organism"),
    "Throughput", "Score", "Modification", "Phenotypes", "Qualifications", "Tags", "Source Database",
)  # fmt: skip
"""The 24 columns of tab2."""
_PAIRED = {
    "entrez": ("Entrez Gene",),
    "systematic": ("Systematic Name",),
    "symbol": ("Official Symbol",),
    "synonyms": ("Synonyms",),
    "organism": ("Organism ID", "Organism"),
}
_SINGLE = {
    "system": ("Experimental System",),
    "type": ("Experimental System Type",),
    "author": ("Author",),
    "publication": ("Publication Source", "Pubmed ID"),
    "score": ("Score",),
}
"""What is read by what, with the column's name in tab3 and in tab2."""
NAMES = ("systematic", "symbol")


@dataclass(frozen=True, eq=False)
class Interactions:
    """Rows of a table of interactions.

    Attributes
    ----------
    table : Columns
        The columns that were asked for.
    kind : str [m]
        ``physical`` or ``genetic``.
    """

    table: Columns
    kind: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.kind)

    def text(self, what: str) -> TextColumn:
        """Return a column of interactions."""
        return self.table.text(_at(self.table.header, _SINGLE[what]))

    def ends(self, what: str) -> tuple[TextColumn, TextColumn]:
        """Return a column of both interactors."""
        header, names = self.table.header, _PAIRED[what]
        one, other = (_at(header, [f"{name} Interactor {side}" for name in names]) for side in "AB")
        return self.table.text(one), self.table.text(other)

    def foreign(self, taxon: str) -> Flags:
        """Return the rows [m] of which an interactor is not of a taxon."""
        one, other = (column.map(lambda of: of != taxon, bool) for column in self.ends("organism"))
        return np.asarray(one | other)

    def taxa(self) -> Counter[str]:
        """Return how many rows are within each taxon."""
        one, other = self.ends("organism")
        place = {name: i for i, name in enumerate(one.names)}
        same = np.array([place.get(name, -1) for name in other.names], dtype=np.int64)[other.code] == one.code
        counts = np.bincount(one.code[same], minlength=len(one.names))
        return Counter({name: int(n) for name, n in zip(one.names, counts, strict=True) if n})


def _at(header: Sequence[str], names: Sequence[str]) -> int:
    return next(header.index(name) for name in names if name in header)


def read_interactions(path: str | Path, further: Sequence[str] = ()) -> Interactions:
    """Read a table of interactions: names, organisms, kind, and what else is asked for by name.

    Raises
    ------
    SourceError
        If the file is missing, damaged, neither tab3 nor tab2, or has an interaction of another kind.
    """
    found = tuple(cell.strip() for cell in next(iter(first_lines(path, 1)), "").split("\t"))
    header = TAB2 if found == TAB2 else HEADER
    paired = [what for what in (*NAMES, "organism", *further) if what in _PAIRED]
    wanted = {f"{name} Interactor {side}" for what in paired for name in _PAIRED[what] for side in "AB"}
    wanted |= {name for what in ("type", *further) if what in _SINGLE for name in _SINGLE[what]}
    table = read_columns(path, types=[str if name in wanted else None for name in header], header=header)
    at = _at(header, _SINGLE["type"])
    kind = table.text(at).map(lambda text: text if text in (PHYSICAL, GENETIC) else "", "U8")
    table.refuse(at, kind == "", f"{PHYSICAL} or {GENETIC}")
    return Interactions(table, kind)
