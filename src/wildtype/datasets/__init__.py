"""What was measured: datasets of mutants, how they are split and how their labels are scaled."""

from wildtype.datasets.dataset import Dataset, Phenotype
from wildtype.datasets.splits import Split

__all__ = ["Dataset", "Phenotype", "Split"]
