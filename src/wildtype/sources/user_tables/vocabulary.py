"""The words of a user's table: names of columns, kinds of perturbation, phenotypes, sets, and an example."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from wildtype.characters import name_fault
from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition
from wildtype.errors import SourceError, shown

MARKS = (";", "+", "|", ",")
"""Separators of the members of a set: a cell is split at the first of these that it holds, else at blanks."""
MOST_SHOWN = 30
"""Names of columns that a message lists at most."""
KINDS = {
    PerturbationKind.DELETION: ("absent", "deleted", "deletion", "knockout", "knocked out", "ko"),
    PerturbationKind.REDUCED_EXPRESSION: (
        "reduced",
        "reduced expression",
        "damp",
        "knockdown",
        "knock down",
        "repressed",
        "interference",
        "crispri",
        "rnai",
    ),
    PerturbationKind.TEMPERATURE_SENSITIVE: ("temperature sensitive", "ts"),
    PerturbationKind.OTHER_ALLELE: ("other allele", "allele"),
    PerturbationKind.SUPPRESSOR: ("suppressor",),
    PerturbationKind.OVEREXPRESSION: (
        "overexpressed",
        "overexpression",
        "activated",
        "activation",
        "crispra",
    ),
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
CENSORED = "_censored"
"""End of the name under which values are kept that are bounds, no numbers."""
FLAGS = {
    True: ("1", "true", "yes", "y", "x", "t", "censored"),
    False: ("0", "false", "no", "n", "f", "observed"),
}
"""Words of a column of flags; empty cells mean no."""
_KIND_OF = {word: kind for kind, words in KINDS.items() for word in words}


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table; genes, value, sd and censored may name several, by commas.

    Columns that are missing under these names are guessed (`guess.settle`) or stay away.
    """

    genes: str = "genes"
    value: str = "value"
    kind: str = "kind"
    dose: str = "dose"
    condition: str = "condition"
    phenotype: str = "phenotype"
    sd: str = "sd"
    replicate: str = "replicate"
    censored: str = "censored"


SYNONYMS = {
    "kind": ("kind of perturbation", "perturbation", "type of mutation"),
    "condition": ("medium", "media", "drug", "treatment", "environment"),
    "sd": ("std", "stdev", "std dev", "s.d.", "standard deviation"),
    "replicate": ("rep", "biological replicate"),
}
"""Names that a column is also known by, in upper or lower case."""
PERTURBATIONS = (
    "perturbation", "perturbations", "guide_target", "target_gene", "gene_target", "target", "gene",
    "perturbation_name", "genotype", "condition",
)  # fmt: skip
"""Usual names of the column of perturbations in tables of cells."""
_UNIT = re.compile(r"(?P<name>.*\S)\s*[(\[](?P<unit>[^()\[\]]+)[)\]]")


def divided(name: str) -> tuple[str, str]:
    """Return the name of a column and its unit, as in ``titre (mg/l)``; the unit is empty without one."""
    found = _UNIT.fullmatch(name)
    return (found["name"], found["unit"].strip()) if found else (name, "")


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


@cache
def define(
    name: str, unit: str = "", level: Literal["cell", "gene"] = "cell", fewest: int = 1
) -> PhenotypeDefinition:
    """Return what a phenotype of that name means.

    Parameters
    ----------
    name : str
        ``fitness``, ``epsilon``, ``tau`` (in any case), or a name of the user's own.
    unit : str
        Of the user's own phenotypes, ``not stated`` if empty; the unit of the known ones is fixed.
    level : {"cell", "gene"}
        Whether it is one number per mutant or one per gene of it, as expression is.
    fewest : int
        Fewest perturbed genes that the user's own phenotypes are about: 2 for scores of interactions.

    Raises
    ------
    SourceError
        If the name or the unit cannot be one.
    """
    if name.casefold() in PHENOTYPES and level == "cell":
        return PHENOTYPES[name.casefold()]
    if fault := name_fault(name):
        raise SourceError(f"a phenotype cannot be called so: {fault}")
    if fault := name_fault(unit):
        raise SourceError(f"{shown(unit)} cannot be a unit: {fault}")
    if not name or name != name.strip() or re.search(r"[:+,]", name):
        raise SourceError(f"{shown(name)} cannot name a phenotype: write it without ':', '+' and ','")
    if unit != unit.strip():
        raise SourceError(f"{shown(unit)} cannot be a unit: write it without surrounding blanks")
    return PhenotypeDefinition(name=name, unit=unit or NOT_STATED, level=level, min_order=fewest)


EXPLANATION = f"""\
One row per measured mutant. Lines that begin with # above the header are comments and may stay.
genes       one or several genes, by systematic name, standard name or alias; several are separated
            by a semicolon (or + | , or a blank); wt where none is perturbed
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
