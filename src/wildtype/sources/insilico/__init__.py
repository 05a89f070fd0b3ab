"""In-silico organisms: growth of any mutant by flux balance analysis, offline, and datasets made of it."""

from wildtype.sources.insilico.datasets import build_growth_dataset, build_organism
from wildtype.sources.insilico.simulate import GrowthSimulator, simulate_growth

__all__ = ["GrowthSimulator", "build_growth_dataset", "build_organism", "simulate_growth"]
