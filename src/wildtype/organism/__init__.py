"""The wild type: its genes, its gene graphs, its metabolism and what is known of every gene."""

from wildtype.organism.coordinates import Coordinates
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.genes import GeneIndex
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
