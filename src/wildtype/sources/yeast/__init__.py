"""Baker's yeast: the organism, built from a folder of publishers' files, and datasets of its mutants."""

from wildtype.sources.yeast.datasets import RECIPES, build_dataset, ingest_needed
from wildtype.sources.yeast.organism import build_organism

__all__ = ["RECIPES", "build_dataset", "build_organism", "ingest_needed"]
