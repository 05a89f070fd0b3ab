"""What was measured: datasets of mutants, how they are split and how their labels are scaled."""

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.splits import Split

__all__ = ["Dataset", "Phenotype", "Split"]
