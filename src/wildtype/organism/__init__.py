"""The wild type: genes, gene graphs, metabolism and gene features."""

from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.genes import Coordinates, GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.organism import Organism
from wildtype.organism.relations import GeneGraphs, Relation

__all__ = [
    "Coordinates",
    "FeatureBlock",
    "GeneFeatures",
    "GeneGraphs",
    "GeneIndex",
    "Metabolism",
    "Organism",
    "Relation",
]
