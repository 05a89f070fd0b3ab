"""Measurements to put into stores."""

from __future__ import annotations

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import (
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.seeds import generator

ENVIRONMENTS = (
    Environment(medium="YPD", temperature=26),
    Environment(medium="SC", temperature=30.5, compounds=(Compound(name="NaCl", dose=0.1, unit="M"),)),
    Environment(compounds=(Compound(name="DMSO"), Compound(name="NaCl", dose=0.2, unit="M"))),
)
PHENOTYPES = (
    PhenotypeDefinition(name="fitness"),
    PhenotypeDefinition(name="epsilon", min_order=2),
    PhenotypeDefinition(name="size", level="trait"),
)
READINGS = (
    ReadReport("scores.tsv.gz", "scores", 120, 100, {"unknown gene": 15, "no value": 5}, 3),
    ReadReport("strains.tsv", "strains", 7, 7),
)


def study(name: str = "tiny2024") -> Study:
    """Return a study with everything that a study can have."""
    return Study(
        name=name,
        publication=Publication(citation=f'{name}, "Tiny" et al.; J. Tiny', doi="10.1/tiny"),
        organism="yeast",
        licence="CC-BY 4.0",
        files={"scores.tsv.gz": "ab" * 32, "strains.tsv": "cd" * 32},
        notes=("one; two", 'only "significant" pairs, τ < -0.08'),
    )


def drawn(rows: int, seed: int = 0, name: str = "tiny2024", genes: int = 8) -> Measurements:
    """Return random rows of 0 to 3 perturbations; some say the same, some differ in a number only."""
    draw = generator(seed, name)
    order = draw.integers(0, 4, rows)
    first = draw.integers(0, genes, rows)
    offsets = np.concatenate([[0], np.cumsum(order)])
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], order)
    gene = (np.repeat(first, order) + place) % genes
    kind = draw.choice([0, 0, 0, 1, 2, 5], len(gene)).astype(np.uint8)
    phenotype = draw.integers(0, 3, rows)
    return Measurements.build(
        study(name),
        genes=[f"YAL{i:03d}W" for i in range(genes)],
        gene=gene,
        offsets=offsets,
        kind=kind,
        allele=np.where(kind == int(PerturbationKind.TEMPERATURE_SENSITIVE), "ts-1", ""),
        dose=np.where(kind == int(PerturbationKind.OVEREXPRESSION), 2.5, np.nan),
        environments=ENVIRONMENTS,
        environment=draw.integers(0, 3, rows),
        phenotypes=PHENOTYPES,
        phenotype=phenotype,
        trait=np.where(phenotype == 2, draw.choice(["area", "length"], rows), ""),
        value=draw.choice([0.1, -0.25, 0.0, -0.0, 1 / 3], rows),
        sd=draw.choice([np.nan, 0.02], rows),
        se=draw.choice([np.nan, 0.01], rows),
        p=draw.choice([np.nan, 0.04, 0.2], rows),
        n=draw.integers(0, 3, rows),
        replicate=draw.choice(["", "MATa"], rows).astype(object),
        reference=draw.choice(["", "BY4741"], rows).astype(object),
    )


def assert_same_columns(first: Measurements, second: Measurements) -> None:
    """Compare every column and every list of names, in their order, to the last bit."""
    for name, column in vars(first).items():
        if name not in type(first).__dataclass_fields__:
            continue
        other = getattr(second, name)
        if isinstance(column, np.ndarray):
            assert column.dtype == other.dtype, name
            assert column.tobytes() == other.tobytes(), name
        elif isinstance(column[0] if column else "", str):
            assert column == other, name
        else:
            assert [entry.id for entry in column] == [entry.id for entry in other], name
