"""What is written down about one experiment: who measured what on which mutant in which environment.

Records are the checked, human-sized form, one object per fact. Millions of measurements travel as columns
instead (`wildtype.datasets.measurements`), which are built from these records and turn back into them.

Identities are contents, not row numbers: two records of equal content have the same id, on every machine,
whatever the order in which perturbations or compounds are listed.
"""

from __future__ import annotations

import hashlib
import json
import math
from enum import IntEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from wildtype.characters import name_fault

RECORD_VERSION = 1
"""Version of the layout below; a store written with a later one is refused."""


class PerturbationKind(IntEnum):
    """How a gene was changed, as the publisher records it; `Kind` is what a model sees of it."""

    DELETION = 0
    REDUCED_EXPRESSION = 1  # DAmP, knock-down
    TEMPERATURE_SENSITIVE = 2
    OTHER_ALLELE = 3  # point mutations, tags, truncations
    SUPPRESSOR = 4  # an unmapped or mapped second mutation that masks the first
    OVEREXPRESSION = 5
    ADDITION = 6  # a gene the wild type does not have


def _single_line(text: str) -> str:
    if fault := name_fault(text):
        raise ValueError(fault)
    if text != text.strip():
        raise ValueError("expected text without surrounding blanks")
    return text


def _finite(value: float) -> float:
    if math.isinf(value):
        raise ValueError("expected a finite number, or NaN where it is not known")
    return value


Text = Annotated[str, AfterValidator(_single_line)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_single_line)]
Known = Annotated[float, Field(allow_inf_nan=False)]
Maybe = Annotated[float, AfterValidator(_finite)]
"""A number, NaN where it is not known."""


class Record(BaseModel):
    """Base of all records: unknown fields are errors, and a record never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True)

    @property
    def id(self) -> str:
        """Content hash, 32 hexadecimal digits."""
        payload = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(payload.encode(), digest_size=16).hexdigest()


class Publication(Record):
    """Where measurements were published."""

    citation: Name
    doi: Text = ""
    pubmed: Text = ""


class Study(Record):
    """One body of measurements as its publisher gives it out.

    `name` is its key in a store (``kuzmin2018``, ``my-screen``); `files` maps the names
    of the files that were read to their SHA-256.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    publication: Publication
    organism: Name
    licence: Text = ""
    files: dict[str, str] = Field(default_factory=dict)
    notes: tuple[Text, ...] = ()


class Compound(Record):
    """A substance in the medium and its dose."""

    name: Name
    dose: Maybe = math.nan
    unit: Text = ""


class Environment(Record):
    """What the cells grew in. Compounds are a set: their order does not matter."""

    medium: Name = "not stated"
    temperature: Maybe = math.nan
    """Degrees Celsius."""
    compounds: tuple[Compound, ...] = ()

    @model_validator(mode="after")
    def _sort(self) -> Self:
        ordered = tuple(sorted(self.compounds, key=lambda c: (c.name, c.unit, str(c.dose))))
        if len({c.name for c in ordered}) < len(ordered):
            raise ValueError("expected every compound once")
        object.__setattr__(self, "compounds", ordered)
        return self

    def __str__(self) -> str:
        parts = [self.medium]
        if not math.isnan(self.temperature):
            parts.append(f"{self.temperature:g} °C")
        for compound in self.compounds:
            dose = "" if math.isnan(compound.dose) else f" {compound.dose:g} {compound.unit}".rstrip()
            parts.append(compound.name + dose)
        return ", ".join(parts)


class Perturbation(Record):
    """What was done to one gene: `gene` is its systematic name, or the name of a foreign gene."""

    gene: Name
    kind: PerturbationKind = PerturbationKind.DELETION
    allele: Text = ""
    dose: Maybe = math.nan
    """Copies, or expression relative to wild type."""


class Genotype(Record):
    """A mutant: a set of perturbations. One gene may occur in several of them (two alleles, a suppressor)."""

    perturbations: tuple[Perturbation, ...]

    @model_validator(mode="after")
    def _sort(self) -> Self:
        ordered = tuple(sorted(self.perturbations, key=lambda p: (p.gene, p.kind, p.allele, str(p.dose))))
        if len({p.id for p in ordered}) < len(ordered):
            raise ValueError("expected every perturbation once")
        object.__setattr__(self, "perturbations", ordered)
        return self

    @property
    def id(self) -> str:
        """Content hash, 32 hexadecimal digits: the sum of its perturbations' ids, half by half, modulo 2⁶⁴.

        A sum does not depend on the order, and is computed for millions of genotypes at once
        (`Measurements.genotype_key`).
        """
        # Adding ids commutes, so a genotype's id needs no sorting and sums over columns of millions.
        halves = [0, 0]
        for perturbation in self.perturbations:
            digest = perturbation.id
            halves[0] += int(digest[:16], 16)
            halves[1] += int(digest[16:], 16)
        return "".join(f"{half % 2**64:016x}" for half in halves)


class PhenotypeDefinition(Record):
    """What a number means.

    `level`: whether it describes the whole cell, one gene of it (expression, protein), or one of several
    named traits (morphology, metabolites); for the latter two every measurement names its gene or trait.
    """

    name: Name
    unit: Text = "relative to wild type = 1"
    direction: Literal["higher is fitter", "lower is fitter", "neither"] = "neither"
    level: Literal["cell", "gene", "trait"] = "cell"
    min_order: Annotated[int, Field(ge=0)] = 1
    """Fewest perturbed genes for which it is defined (2 for epsilon, 3 for tau)."""
    strong: Annotated[float, Field(gt=0)] = 0.08
    """Absolute value from which an interaction counts as strong."""
    description: Text = ""


class Measurement(Record):
    """One published number."""

    study: Name
    genotype: Genotype
    environment: Environment
    phenotype: PhenotypeDefinition
    trait: Text = ""
    value: Known
    sd: Maybe = math.nan
    """Standard deviation over replicates."""
    se: Maybe = math.nan
    """Standard error of `value`."""
    p: Maybe = math.nan
    n: Annotated[int, Field(ge=0)] = 0
    """Replicates behind `value`; 0 where it is not stated."""
    replicate: Text = ""
    """Which of several independent measurements (mating type, screen, batch)."""
    reference: Text = ""
    """Strain that the value is relative to."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.sd < 0 or self.se < 0:
            raise ValueError("expected sd and se of at least 0")
        if not (math.isnan(self.p) or 0 <= self.p <= 1):
            raise ValueError("expected p between 0 and 1")
        if (self.phenotype.level == "cell") == bool(self.trait):
            raise ValueError(
                "expected a trait for phenotypes of genes and traits, and none for the whole cell"
            )
        return self
