"""Baker's yeast as the encoder sees it: genes, gene graphs, features and metabolism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.organism import FeatureBlock, GeneFeatures, GeneIndex, Organism
from wildtype.organism.graph_features import graph_features
from wildtype.organism.metabolic_features import metabolic_features
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.genes import abundance, sequences, sgd
from wildtype.sources.yeast.genes.coordinates import read_feature_coordinates
from wildtype.sources.yeast.graphs import gene_ontology
from wildtype.sources.yeast.graphs.selection import read_graphs
from wildtype.sources.yeast.metabolism import METABOLISM, find_model, read_model
from wildtype.sources.yeast.screens import single_fitness
from wildtype.sources.yeast.traits import single_deletions


def build_organism(
    folder: str | Path,
    *,
    string: str | None = None,
    relations: Sequence[str] = (),
    metabolism: bool = True,
    collect: Collector = ignore,
) -> Organism:
    """Build the organism ``yeast`` from a folder of publishers' files.

    The gene list, physical interactions, regulation, STRING and the list of essential genes must be there,
    each in any of its forms; a feature block or the metabolism whose file is absent is left out, and the
    description names it.

    Parameters
    ----------
    folder : path
        Holds the files under their publishers' names.
    string : str, optional
        Version of STRING (11.5, 12.0, 11.0 or 9.1); by default the first of these that is there. Versions are
        never mixed.
    relations : sequence of str
        Gene graphs beyond the usual ones, by name (`wildtype.sources.yeast.graphs.selection.FURTHER`). Those
        of genetic interactions leak the labels of interaction datasets, also into the features of graphs.
    metabolism : bool
        Whether to read Yeast-GEM (some 20 s the first time, then cached).
    collect : callable, optional
        Called with the report on the rows of every file.

    Raises
    ------
    SourceError
        If a required file is missing, or any file is damaged or not in the published layout.
    ConfigError
        If the version of STRING or a relation is unknown.
    """
    genes, report, about = sgd.read_genes(folder)
    collect(report)
    essential, report = sgd.read_essential(folder, genes)
    collect(report)
    coordinates, report = read_feature_coordinates(folder, genes)
    collect(report)
    graphs, absent = read_graphs(folder, genes, string=string, further=relations, collect=collect)
    blocks, missing = _feature_blocks(Path(folder), genes, essential, collect)
    absent += missing
    # Features of graphs include relations that a user added: those of genetic interactions leak here too.
    blocks += graph_features(graphs, components=16)
    model = None
    if metabolism and find_model(folder) is not None:
        model, report = read_model(folder, genes)
        collect(report)
        blocks += metabolic_features(model, genes, source=f"metabolic model {report.file}")
    elif metabolism:
        absent.append(f"metabolism ({METABOLISM})")
    description = f"Saccharomyces cerevisiae S288C, {about}"
    if absent:
        description += "; left out, since the file is not in the folder: " + ", ".join(absent)
    return Organism(
        "yeast",
        genes,
        graphs,
        GeneFeatures(blocks),
        model,
        essential,
        description,
        coordinates=coordinates,
        dubious=sgd.read_dubious(folder, genes),
    )


def _essential_block(essential: NDArray[np.bool_]) -> FeatureBlock:
    return FeatureBlock(
        "essential",
        essential[:, None].astype(np.float32),
        ("essential",),
        source="Saccharomyces Genome Deletion Project, 2002-04-19",
        note="1 where the deletion was not recovered alive, else 0: the extreme of a deletion's growth",
    )


def _feature_blocks(
    folder: Path, genes: GeneIndex, essential: NDArray[np.bool_], collect: Collector
) -> tuple[list[FeatureBlock], list[str]]:
    """Return the blocks whose files are there, and the names of the others with their files."""
    blocks: list[FeatureBlock] = []
    absent: list[str] = []

    def there(block: str, path: Path | None, file: str) -> bool:
        if path is not None:
            return True
        absent.append(f"{block} ({file})")
        return False

    def add(new: Sequence[FeatureBlock], report: ReadReport) -> None:
        blocks.extend(new)
        collect(report)

    # The table of 2014 goes first: organisms built from it stay the same when newer files are added.
    if gene_ontology.TABLE.find(folder) is None and gene_ontology.present(folder):
        found, report = gene_ontology.read_annotations(folder, genes)
        add([gene_ontology.annotation_block(found, len(genes), "go_process")], report)
    elif there("go_process", gene_ontology.TABLE.find(folder), gene_ontology.GO):
        block, report = gene_ontology.read_go_process(folder, genes)
        add([block], report)
    studies = [
        study
        for study in single_deletions.STUDIES
        if there("phenotypes", study.remote.find(folder), study.file)
    ]
    if studies:
        tables = [single_deletions.read_study(folder, study, genes) for study in studies]
        for table in tables:
            collect(table.report)
        blocks.append(single_deletions.phenotype_block(tables))
    if sgd.CODING_SEQUENCES.find(folder) is None and sequences.has_proteins(folder):
        absent.append(f"codon_usage ({sequences.CODING})")
        translated, report = sequences.read_proteins(folder, genes)
        add(translated.blocks(), report)
    elif there("codon_usage and protein", sgd.CODING_SEQUENCES.find(folder), sequences.CODING):
        add(*sequences.read_sequence_blocks(folder, genes))
    if there("abundance", abundance.FILE.find(folder), abundance.PAXDB):
        block, report = abundance.read_abundance(folder, genes)
        add([block], report)
    if there("fitness", single_fitness.STRAIN_TABLE.find(folder), single_fitness.FITNESS):
        block, report = single_fitness.fitness_block(single_fitness.read_strains(folder, genes), len(genes))
        add([block], report)
    # Essentiality is an input of models, not a label: the block says that it is an extreme of growth.
    blocks.append(_essential_block(essential))
    return blocks, absent
