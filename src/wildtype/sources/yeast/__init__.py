"""Baker's yeast: the organism and its measured mutants, built from a folder of publishers' files."""

from wildtype.sources.yeast.datasets import DATASETS, build_dataset
from wildtype.sources.yeast.organism import build_organism

__all__ = ["DATASETS", "build_dataset", "build_organism"]
