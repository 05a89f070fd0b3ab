"""Metabolic models of yeast: Yeast-GEM, iMM904 or any other file, their genes found in the gene index."""

from __future__ import annotations

from pathlib import Path

from wildtype.datasets.reading import ReadReport
from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.sources.metabolic_model import read_model_file
from wildtype.sources.yeast.files import find_copy, publisher

METABOLISM = "yeast-GEM_9.0.2.yml.gz"
YEAST_GEM, BIGG = publisher("yeast-gem"), publisher("bigg-imm904")
MODELS = {"yeast-gem": YEAST_GEM, "imm904": BIGG}
"""Models by name; of several files of one model the first that is there is read."""


def find_model(folder: str | Path, name: str = "yeast-gem") -> Path | None:
    """Return the file of a model in a folder, or None; raises ``ConfigError`` if there is no such model."""
    if name not in MODELS:
        raise ConfigError(f"there is no metabolic model {name!r}; known models: {', '.join(MODELS)}")
    return find_copy(folder, MODELS[name].files)


def read_model(
    folder: str | Path, genes: GeneIndex, name: str = "yeast-gem", *, cache: bool = True
) -> tuple[Metabolism, ReadReport]:
    """Return a model by name; see `read_model_file`.

    Raises
    ------
    ConfigError
        If there is no such model.
    SourceError
        If no file of it is in the folder, or it cannot be read.
    """
    path = find_model(folder, name)
    return read_model_file(
        MODELS[name].files[0].require(folder) if path is None else path, genes, cache=cache
    )
