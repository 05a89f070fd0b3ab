"""The yeast datasets by name: what they need of a folder, and how they are built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wildtype.datasets import Dataset
from wildtype.datasets.store import Store
from wildtype.errors import DatasetError, MissingFileError
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast.pair_datasets import PAIRS
from wildtype.sources.yeast.readers import ingest
from wildtype.sources.yeast.recipe import Recipe
from wildtype.sources.yeast.screens import costanzo2010
from wildtype.sources.yeast.strain_datasets import STRAINS

RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in (*PAIRS, *STRAINS)}
"""Every dataset by name."""
OPTIONAL = (costanzo2010.STUDY_OF_RESERVED,)
"""Studies that a dataset takes into account where the folder has them."""


def ingest_needed(store: Store, folder: str | Path, genes: GeneIndex) -> dict[str, str]:
    """Read every study that a dataset needs, or compares with, from a folder into a store.

    Parameters
    ----------
    store : Store
        Open for writing; a study that it holds already is replaced.
    folder : path
        Publishers' files.
    genes : GeneIndex
        Names are resolved to its systematic names.

    Returns
    -------
    dict of str to str
        The studies whose files are not there, and which file that is.

    Raises
    ------
    SourceError
        If a file is damaged or not in the published layout.
    """
    absent = {}
    needed = dict.fromkeys(study for recipe in RECIPES.values() for study in recipe.needed)
    for study in (*needed, *OPTIONAL):
        try:
            for _ in ingest(store, folder, genes, [study]):
                pass
        except MissingFileError as error:
            if study in needed:
                absent[study] = str(error)
    return absent


def build_dataset(name: str, store: Store, organism: Organism, *, alleles: str = "averaged") -> Dataset:
    """Build a yeast dataset from stored measurements, or take it from the cache.

    Parameters
    ----------
    name : str
        One of ``RECIPES``.
    store : Store
        Holds the studies that the recipe needs.
    organism : Organism
        The result of ``build_organism``; positions refer to its genes.
    alleles : {"averaged", "apart"}
        How several alleles of one gene are treated.

    Raises
    ------
    DatasetError
        If there is no such dataset, the store lacks a study, or no row is left.
    ConfigError
        If the allele policy is unknown.
    OutputError
        If the cache cannot be written.
    """
    if name not in RECIPES:
        raise DatasetError(f"there is no yeast dataset {name!r}; known datasets: {', '.join(RECIPES)}")
    return RECIPES[name].build(store, organism, alleles=alleles)
