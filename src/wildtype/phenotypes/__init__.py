"""What was measured: datasets of mutants, how they are split and how their labels are scaled."""

from wildtype.phenotypes.dataset import Dataset, Phenotype
from wildtype.phenotypes.splits import Split

__all__ = ["Dataset", "Phenotype", "Split"]
