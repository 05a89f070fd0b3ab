"""Baker's yeast as the encoder sees it: genes, gene graphs, features and metabolism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex, Organism
from wildtype.organism.graph_features import graph_features
from wildtype.organism.metabolism import read_metabolism
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.genes import abundance, sequences, sgd
from wildtype.sources.yeast.graphs import ontology
from wildtype.sources.yeast.graphs.irefindex import read_physical
from wildtype.sources.yeast.graphs.regulation import read_documented, read_regulatory
from wildtype.sources.yeast.graphs.string import read_string
from wildtype.sources.yeast.screens import single_fitness
from wildtype.sources.yeast.traits import single_deletions

METABOLISM = "yeast-GEM_9.0.2.yml.gz"


def build_organism(
    folder: str | Path, *, string: str = "11.5", metabolism: bool = True, collect: Collector = ignore
) -> Organism:
    """Build the organism ``yeast`` from a folder of publishers' files.

    The gene list, the gene graphs and the list of essential genes must be there; a feature block or the
    metabolism whose file is absent is left out, and the description says so.

    Parameters
    ----------
    folder : path
        Holds the files under their publishers' names.
    string : {"11.5", "9.1"}
        Version of STRING: six channels cut at combined score 900, or four full ones. Versions are never
        mixed.
    metabolism : bool
        Whether to read Yeast-GEM (some 20 s the first time, then cached).
    collect : callable, optional
        Called with what became of the rows of every file.

    Raises
    ------
    SourceError
        If a required file is missing, or any file is damaged or not in the published layout.
    ConfigError
        If the version of STRING is unknown.
    """
    genes, reading, about = sgd.read_genes(folder)
    collect(reading)
    essential, reading = sgd.read_essential(folder, genes)
    collect(reading)
    read = [read_physical(folder, genes), read_regulatory(folder, genes), read_documented(folder, genes)]
    read += read_string(folder, genes, string)
    for _, reading in read:
        collect(reading)
    graphs = GeneGraphs(relation for relation, _ in read)
    blocks, absent = _feature_blocks(Path(folder), genes, essential, collect)
    blocks += graph_features(graphs, components=16)
    model = None
    if metabolism and (Path(folder) / METABOLISM).is_file():
        model = read_metabolism(Path(folder) / METABOLISM)
    elif metabolism:
        absent.append(f"metabolism ({METABOLISM})")
    description = f"Saccharomyces cerevisiae S288C, {about}"
    if absent:
        description += "; left out, since the file is not in the folder: " + ", ".join(absent)
    return Organism("yeast", genes, graphs, GeneFeatures(blocks), model, essential, description)


def _essential_block(essential: NDArray[np.bool_]) -> FeatureBlock:
    return FeatureBlock(
        "essential",
        essential[:, None].astype(np.float32),
        ("essential",),
        source="Saccharomyces Genome Deletion Project, 2002-04-19",
        note="1 where the deletion was not recovered alive, else 0",
    )


def _feature_blocks(
    folder: Path, genes: GeneIndex, essential: NDArray[np.bool_], collect: Collector
) -> tuple[list[FeatureBlock], list[str]]:
    """Return the blocks whose files are there, and the names of the others with their files."""
    blocks: list[FeatureBlock] = []
    absent: list[str] = []

    def there(block: str, file: str) -> bool:
        if (folder / file).is_file():
            return True
        absent.append(f"{block} ({file})")
        return False

    def add(new: Sequence[FeatureBlock], reading: Reading) -> None:
        blocks.extend(new)
        collect(reading)

    if there("go_process", ontology.GO):
        block, reading = ontology.read_go_process(folder, genes)
        add([block], reading)
    studies = [study for study in single_deletions.STUDIES if there("phenotypes", study.file)]
    if studies:
        tables = [single_deletions.read_study(folder, study, genes) for study in studies]
        for table in tables:
            collect(table.reading)
        blocks.append(single_deletions.phenotype_block(tables))
    if there("codon_usage and protein", sequences.CODING):
        add(*sequences.read_sequence_blocks(folder, genes))
    if there("abundance", abundance.PAXDB):
        block, reading = abundance.read_abundance(folder, genes)
        add([block], reading)
    if there("fitness", single_fitness.FITNESS):
        block, reading = single_fitness.fitness_block(single_fitness.read_strains(folder, genes), len(genes))
        add([block], reading)
    blocks.append(_essential_block(essential))
    return blocks, absent
