"""In-silico organisms: growth of any mutant by flux balance analysis, offline, and datasets made of it."""

from __future__ import annotations

from collections.abc import Callable

from wildtype.datasets import Dataset
from wildtype.errors import DatasetError
from wildtype.organism import Organism
from wildtype.sources.insilico import conditions, datasets, dose_datasets, triple_datasets
from wildtype.sources.insilico.conditions import build_media_dataset
from wildtype.sources.insilico.datasets import build_growth_dataset, build_organism
from wildtype.sources.insilico.dose_datasets import build_dose_dataset
from wildtype.sources.insilico.perturb import PerturbationSimulator
from wildtype.sources.insilico.simulate import GrowthSimulator, simulate_growth
from wildtype.sources.insilico.triple_datasets import build_triple_dataset

BUILDERS: dict[str, Callable[..., Dataset]] = (
    dict.fromkeys(datasets.DESIGNS, build_growth_dataset)
    | dict.fromkeys(triple_datasets.DESIGNS, build_triple_dataset)
    | dict.fromkeys(dose_datasets.DESIGNS, build_dose_dataset)
    | dict.fromkeys(conditions.DESIGNS, build_media_dataset)
)
"""What simulates each dataset, by name."""


def build_dataset(name: str, organism: Organism, *, progress: bool = True) -> Dataset:
    """Simulate a dataset in the sizes of its design.

    Raises
    ------
    DatasetError
        If there is no such dataset, or the organism is another one.
    """
    if name not in BUILDERS:
        raise DatasetError(f"there is no in-silico dataset {name!r}; known: {', '.join(BUILDERS)}")
    return BUILDERS[name](name, organism, progress=progress)


__all__ = [
    "BUILDERS",
    "GrowthSimulator",
    "PerturbationSimulator",
    "build_dataset",
    "build_dose_dataset",
    "build_growth_dataset",
    "build_media_dataset",
    "build_organism",
    "build_triple_dataset",
    "simulate_growth",
]
