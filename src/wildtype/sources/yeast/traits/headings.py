"""Column headings of the Yeast Phenome tables: strain, phenotype and environment, read only as far as stated.

A heading reads ``hom | growth (colony size) | benomyl [30 ug/ml] | YPD | Someone A~Other B, 2002``: strain,
phenotype, condition, sometimes the medium, and the study; anything behind the study is a remark. A condition
that cannot be divided without guessing is kept as text in place of the medium.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from wildtype.datasets.records import Compound, Environment, PerturbationKind
from wildtype.errors import SourceError, shown

STANDARD = "standard"
_STUDY = re.compile(r".+, \d{4}")
_LABELLED = re.compile(r"(?P<label>[^()\[\]]+?) \((?P<items>.+)\)")
_ITEM = re.compile(r"(?P<name>[^\[\],]+?)(?: \[(?P<dose>[^\[\]]+)\])?")
_DOSE = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>%|[a-zA-Z][a-zA-Z/]*)")
_MEDIUM = re.compile(r"YP\w*|S[CD]\b.*")
_CIRCUMSTANCES = ("time", "pH")


@dataclass(frozen=True)
class Strain:
    """The perturbation and the background that a heading's first part names.

    A heterozygous deletion leaves one of two copies, and is viable for essential genes too: it is recorded
    as reduced expression at half the dose, never as a deletion.
    """

    reference: str
    kind: PerturbationKind = PerturbationKind.DELETION
    allele: str = ""
    dose: float = math.nan


STRAINS = {
    "hap a": Strain("haploid MATa"),
    "hap a (post-SGA)": Strain("haploid MATa, after SGA"),
    "hap ?": Strain("haploid, mating type not stated"),
    "hom": Strain("diploid"),
    "het": Strain("diploid", PerturbationKind.REDUCED_EXPRESSION, "heterozygous deletion", 0.5),
}


@dataclass(frozen=True)
class Heading:
    """One column: the strain's genotype and background, the phenotype's name and the environment."""

    strain: Strain
    phenotype: str
    environment: Environment


def parse_heading(text: str, place: str) -> Heading:
    """Return the parts of a heading.

    Parameters
    ----------
    text : str
        The heading.
    place : str
        File and line, for messages.

    Raises
    ------
    SourceError
        If it has not the parts strain, phenotype, condition and study, or an unknown strain.
    """
    parts = [part.strip() for part in text.split("|")]
    study = next((i for i, part in enumerate(parts) if _STUDY.fullmatch(part)), None)
    if study not in (3, 4) or not parts[1] or not parts[2]:
        raise SourceError(
            f"{place}: received the heading {shown(text)}, expected strain | phenotype | "
            "condition | study, year; fetch the publisher's file again"
        )
    if parts[0] not in STRAINS:
        raise SourceError(
            f"{place}: received the strain {shown(parts[0])} in a heading, expected one of "
            f"{', '.join(STRAINS)}; fetch the publisher's file again"
        )
    medium = parts[3] if study == 4 and parts[3] != "None" else ""
    try:
        return Heading(STRAINS[parts[0]], parts[1], parse_environment(parts[2], medium))
    except ValueError:  # of the records
        raise SourceError(
            f"{place}: received the condition {shown(parts[2])} in a heading, expected plain text; "
            "fetch the publisher's file again"
        ) from None


def parse_environment(condition: str, medium: str = "") -> Environment:
    """Return the environment of a condition and a medium (empty: not given) as a heading writes them.

    ``name [number unit]`` is a compound; ``time`` and ``pH`` are added to the medium; a medium named in the
    condition counts if no other is given. Everything else is kept as text.
    """
    as_written = Environment(medium=f"{condition} | {medium}" if medium else condition)
    found = _LABELLED.fullmatch(condition)
    label, items = (found["label"], found["items"]) if found else ("", condition)
    media, compounds, circumstances = [], [], []
    for item in items.split(", "):
        matched = _ITEM.fullmatch(item)
        name, dose = (matched["name"], matched["dose"] or "") if matched else (item, "")
        amount = _DOSE.fullmatch(dose)
        if name == STANDARD:
            continue
        if name in _CIRCUMSTANCES and dose:
            circumstances.append(f"{name} {dose}")
        elif dose == STANDARD:
            media.append(name)
        elif _MEDIUM.fullmatch(name):
            # A medium with a dose is another medium, no compound in one.
            media.append(f"{name} [{dose}]" if dose else name)
        elif amount:
            compounds.append(Compound(name=name, dose=float(amount["number"]), unit=amount["unit"]))
        else:
            return as_written
    # "YPD + drug (drug [3 uM])": the medium is named before the brackets.
    if not media and label:
        media = [label.split("+")[0].strip()]
    if (
        # Contradictory or repeated parts: the text is kept as written and nothing is guessed.
        len(media) > 1
        or (media and medium and media != [medium])
        or len({c.name for c in compounds}) < len(compounds)
    ):
        return as_written
    base = (media or [medium or STANDARD])[0]
    return Environment(medium=", ".join([base, *circumstances]), compounds=tuple(compounds))
