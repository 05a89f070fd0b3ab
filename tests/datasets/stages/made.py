"""Measurements made up for tests, of the kinds that stages have to deal with."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import (
    Compound,
    Environment,
    Genotype,
    Measurement,
    Perturbation,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.datasets.stages.policies import POLICIES, Policies
from wildtype.organism import GeneIndex, Organism

NAMES = ("G1", "G2", "G3", "G4", "HO")
ORGANISM = Organism(
    "toy",
    GeneIndex(NAMES, {"HO": "HOMO"}, organism="toy"),
    essential=np.array([False, False, True, True, False]),
)
STUDIES = (
    Study(name="first2018", publication=Publication(citation="First et al. 2018"), organism="toy"),
    Study(name="second2020", publication=Publication(citation="Second et al. 2020"), organism="toy"),
)
FITNESS = PhenotypeDefinition(name="fitness", min_order=0)
EPSILON = PhenotypeDefinition(name="epsilon", min_order=2)
SIZE = PhenotypeDefinition(name="size", level="trait", unit="µm²")
YPD = Environment(medium="YPD", temperature=30)
WARM = Environment(medium="YPD", temperature=37)
SALT = Environment(medium="YPD", temperature=30, compounds=(Compound(name="NaCl", dose=1, unit="M"),))
DELETION, SENSITIVE = PerturbationKind.DELETION, PerturbationKind.TEMPERATURE_SENSITIVE

perturbations = st.builds(
    Perturbation,
    gene=st.sampled_from([*NAMES, "X9"]),
    kind=st.sampled_from(
        [
            DELETION,
            DELETION,
            DELETION,
            SENSITIVE,
            PerturbationKind.REDUCED_EXPRESSION,
            PerturbationKind.SUPPRESSOR,
            PerturbationKind.OVEREXPRESSION,
            PerturbationKind.ADDITION,
        ]
    ),
    allele=st.sampled_from(["", "", "a-1", "b-2"]),
    dose=st.sampled_from([math.nan, math.nan, 2.0]),
)
genotypes = st.lists(perturbations, max_size=3, unique_by=lambda p: p.id).map(
    lambda ps: Genotype(perturbations=tuple(ps))
)
# Few numbers, so that some stand twice; tenths, whose sums depend on their order to the last bit.
values = st.sampled_from([-0.0, 0.0, 0.1, 0.2, 0.3, 0.7, -1.1])
errors = st.sampled_from([math.nan, math.nan, 0.0, 0.01, 0.1, 0.3])
p_values = st.sampled_from([math.nan, math.nan, 0.0, 0.01, 0.04])


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    phenotype = draw(st.sampled_from([FITNESS, FITNESS, EPSILON, SIZE]))
    return Measurement(
        study=draw(st.sampled_from(STUDIES)).name,
        genotype=draw(genotypes),
        environment=draw(st.sampled_from([YPD, YPD, WARM, SALT])),
        phenotype=phenotype,
        trait=draw(st.sampled_from(["area", "length"])) if phenotype is SIZE else "",
        value=draw(values),
        sd=draw(errors),
        se=draw(errors),
        n=draw(st.integers(0, 4)),
        p=draw(p_values),
        replicate=draw(st.sampled_from(["", "a"])),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policies:
    chosen = {name.replace(" ", "_"): draw(st.sampled_from(list(known))) for name, known in POLICIES.items()}
    if chosen["replicates"] == "apart":
        chosen["alleles"] = "apart"
    if chosen["environments"] == "one":
        chosen["environment"] = str(YPD)
    return Policies(neutral=draw(st.sampled_from([(), ("HO",)])), **chosen)


def measured(*records: Measurement) -> Measurements:
    return Measurements.from_records(STUDIES, records)


def one(*perturbed: str | Perturbation, value: float = 0.5, **columns: object) -> Measurement:
    """Return one measurement; a gene by its name alone is deleted."""
    given: dict[str, object] = {"study": "first2018", "environment": YPD, "phenotype": FITNESS} | columns
    mutant = tuple(Perturbation(gene=p) if isinstance(p, str) else p for p in perturbed)
    return Measurement(genotype=Genotype(perturbations=mutant), value=value, **given)  # type: ignore[arg-type]


def sensitive(gene: str, allele: str = "") -> Perturbation:
    return Perturbation(gene=gene, kind=SENSITIVE, allele=allele)
