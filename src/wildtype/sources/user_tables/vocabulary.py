"""The words of a user's table: names of columns, kinds of perturbation, phenotypes, sets, and an example."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition
from wildtype.errors import SourceError, shown
from wildtype.sources.text import LARGEST

MARKS = (";", "+", "|", ",")
"""Separators of the members of a set: a cell is split at the first of these that it holds, else at blanks."""
MISSING = ("", "na", "n/a", "nan", "null", "none")
"""Texts for a missing number, in upper or lower case."""
MOST_SHOWN = 30
"""Names of columns that a message lists at most."""
KINDS = {
    PerturbationKind.DELETION: ("absent", "deleted", "deletion", "knockout"),
    PerturbationKind.REDUCED_EXPRESSION: ("reduced", "reduced expression", "damp", "knockdown"),
    PerturbationKind.TEMPERATURE_SENSITIVE: ("temperature sensitive", "ts"),
    PerturbationKind.OTHER_ALLELE: ("other allele", "allele"),
    PerturbationKind.SUPPRESSOR: ("suppressor",),
    PerturbationKind.OVEREXPRESSION: ("overexpressed", "overexpression"),
    PerturbationKind.ADDITION: ("added", "addition"),
}
"""What is done to a gene, and the words for it."""
PHENOTYPES = {
    "fitness": PhenotypeDefinition(name="fitness", direction="higher is fitter"),
    "epsilon": PhenotypeDefinition(
        name="epsilon", unit="fitness units: double-mutant fitness minus the product of the single ones",
        min_order=2,
    ),
    "tau": PhenotypeDefinition(
        name="tau",
        unit="fitness units: triple-mutant fitness beyond what single mutants and digenic interactions "
        "expect",
        min_order=3,
    ),
}  # fmt: skip
"""Phenotypes whose meaning is known; any other name is the user's own."""
NOT_STATED = "not stated"
_KIND_OF = {word: kind for kind, words in KINDS.items() for word in words}


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table; all but the first two may be missing under these names."""

    genes: str = "genes"
    value: str = "value"
    kind: str = "kind"
    dose: str = "dose"
    condition: str = "condition"
    phenotype: str = "phenotype"
    sd: str = "sd"
    replicate: str = "replicate"

    def positions(self, header: tuple[str, ...], path: object) -> dict[str, int]:
        """Return where the columns stand, without those that are missing; case matters only if it must.

        Raises
        ------
        SourceError
            If a column that is needed, or was given a name of its own, is missing or named twice.
        """
        found: dict[str, int] = {}
        for field in fields(self):
            name = getattr(self, field.name)
            # Case matters only in a table that has both Value and value.
            exact = [i for i, known in enumerate(header) if known == name]
            alike = exact or [i for i, known in enumerate(header) if known.casefold() == name.casefold()]
            if len(alike) > 1:
                raise SourceError(f"{path} has several columns {name!r}: rename all but one")
            if alike:
                found[field.name] = alike[0]
            elif field.name in ("genes", "value") or name != field.default:
                known = ", ".join(shown(column) for column in header[:MOST_SHOWN])
                known += f" and {len(header) - MOST_SHOWN:,} more" if len(header) > MOST_SHOWN else ""
                raise SourceError(
                    f"{path} has no column {name!r} (it has {known}): name the one to use with "
                    f"--{field.name}-column, or another --separator"
                )
        twice = next((i for i in found.values() if list(found.values()).count(i) > 1), None)
        if twice is not None:
            raise SourceError(
                f"{path}: the column {shown(header[twice])} is to be two things at once: name one"
            )
        return found


def members(cell: str, separator: str, known: Callable[[str], bool]) -> list[str]:
    """Return the members of a set as a cell spells it; an empty cell gives none.

    A cell that is itself a name is not split (``ARG5,6`` is a gene). Otherwise `separator` decides, else the
    first of `MARKS` that the cell holds, else blanks.
    """
    if not cell:
        return []
    if known(cell):
        return [cell]
    # The rarest characters in gene names come first: a comma occurs in names such as ARG5,6.
    mark = separator or next((mark for mark in MARKS if mark in cell), " ")
    parts = cell.split() if mark.isspace() else cell.split(mark)
    return [part.strip() for part in parts]


def parse_kind(word: str) -> PerturbationKind | None:
    """Return the kind that a word stands for (a deletion if it says nothing); None if it is not known."""
    if not word:
        return PerturbationKind.DELETION
    return _KIND_OF.get(re.sub(r"[\s_-]+", " ", word.strip().lower()))


def kind_words() -> str:
    """Return the first word for every kind, for messages."""
    return ", ".join(words[0] for words in KINDS.values())


def parse_number(cell: str) -> float | None:
    """Return a cell as a number; None if it is none, or absurdly large."""
    if "_" in cell or not cell.isascii():  # Python reads 1_000 and digits of other scripts
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) < LARGEST else None


def is_missing(cell: str) -> bool:
    """Return whether a cell stands for a missing number."""
    return cell.lower() in MISSING


@cache
def define(name: str, unit: str = "") -> PhenotypeDefinition:
    """Return what a phenotype of that name means.

    Parameters
    ----------
    name : str
        ``fitness``, ``epsilon``, ``tau`` (in any case), or a name of the user's own.
    unit : str
        Of the user's own phenotypes, ``not stated`` if empty; the unit of the known ones is fixed.

    Raises
    ------
    SourceError
        If the name or the unit cannot be one.
    """
    if name.casefold() in PHENOTYPES:
        return PHENOTYPES[name.casefold()]
    if not name or name != name.strip() or re.search(r"[:+,\x00-\x1f]", name):
        raise SourceError(f"{shown(name)} cannot name a phenotype: write it without ':', '+' and ','")
    if unit != unit.strip() or re.search(r"[\x00-\x1f]", unit):
        raise SourceError(f"{shown(unit)} cannot be a unit: write it on one line, without surrounding blanks")
    return PhenotypeDefinition(name=name, unit=unit or NOT_STATED)


EXPLANATION = f"""\
One row per measured mutant. Lines that begin with # above the header are comments and may stay.
genes       one or several genes, by systematic name, standard name or alias; several are separated
            by a semicolon (or + | , or a blank)
value       the measured number
All other columns may be left out:
kind        what was done to the genes, one word for all or one each (absent where it says nothing):
            {kind_words()}
dose        copies, or expression relative to wild type, one number for each gene
condition   name of the medium, drug or temperature
phenotype   fitness (wild type = 1), epsilon (2 genes or more), tau (3 or more), or a name of your own
sd          standard deviation of the value
replicate   which of several independent measurements
Import with: wildtype data import my.csv --organism yeast
"""
ROWS = (
    "genes,value,kind,dose,condition,phenotype,sd,replicate",
    "SGS1,0.93,,,YPD 30 C,fitness,0.02,plate 1",
    "SGS1,0.95,,,YPD 30 C,fitness,0.02,plate 2",
    "SGS1;SRS2,0.41,absent;absent,,YPD 30 C,fitness,0.05,plate 1",
    "CDC28;CLN2,0.77,temperature sensitive;absent,,YPD 30 C,fitness,0.04,plate 1",
    "PDR5,1.08,overexpressed,3,YPD 30 C fluconazole,fitness,0.03,plate 1",
    "SGS1;SRS2,-0.31,,,YPD 30 C,epsilon,,plate 1",
)


def template() -> str:
    """Return the example as CSV text."""
    comments = [f"# {line}".rstrip() for line in EXPLANATION.splitlines()]
    return "\n".join([*comments, *ROWS]) + "\n"
