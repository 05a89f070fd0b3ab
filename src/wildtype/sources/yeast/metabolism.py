"""Metabolic models of yeast: Yeast-GEM, iMM904 or any other file, their genes found in the gene index."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex
from wildtype.organism.metabolism import Metabolism, read_metabolism
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import match_genes

METABOLISM = "yeast-GEM_9.0.2.yml.gz"
_GITHUB = "SysBioChalmers/yeast-GEM"
YEAST_GEM = Publisher(
    name="yeast-gem",
    title="Yeast-GEM 9: the consensus metabolic model of yeast",
    publication=Publication(
        citation="Zhang et al. 2024, Yeast9: a consensus genome-scale metabolic model for S. cerevisiae "
        "curated by the community, Mol Syst Biol 20:1134",
        doi="10.1038/s44320-024-00060-7",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(
        RemoteFile(
            "yeast-GEM_9.0.2.yml",
            (f"https://github.com/{_GITHUB}/archive/refs/tags/v9.0.2.zip",),
            aliases=("yeast-GEM.yml",),
            member="yeast-GEM-9.0.2/model/yeast-GEM.yml",
        ),
        RemoteFile(
            "yeast-GEM.xml",
            (f"https://raw.githubusercontent.com/{_GITHUB}/v9.1.0/model/yeast-GEM.xml",),
            sha256="05d33f3e82c2e2d072e229e7588f06d33b7df9daa806288db548c140149fc8bb",
        ),
    ),
    published={
        "9.0.2 reactions": 4_131,
        "9.0.2 metabolites": 2_806,
        "9.0.2 genes": 1_161,
        "9.1.0 reactions": 4_102,
        "9.1.0 metabolites": 2_748,
        "9.1.0 genes": 1_143,
    },
    notes=(
        "stored with a minimal glucose medium, aerobic",
        "the checksum is that of yeast-GEM.xml of v9.1.0; the file has the same name in every release",
    ),
)
BIGG = Publisher(
    name="bigg-imm904",
    title="iMM904: a metabolic model of yeast, as BiGG gives it out",
    publication=Publication(
        citation="Mo, Palsson and Herrgard 2009, Connecting extracellular metabolomic measurements to "
        "intracellular flux states in yeast, BMC Syst Biol 3:37",
        doi="10.1186/1752-0509-3-37",
    ),
    licence="academic and non-commercial use, not confirmed",
    files=(
        RemoteFile(
            "iMM904.json",
            ("https://bigg.ucsd.edu/static/models/iMM904.json",),
            sha256="1f7c573c2cf3da104fe48c49d6ae8e5a4a3472e7dc03c173c660e8bd9bb2557f",
        ),
        RemoteFile("iMM904.xml", ("https://bigg.ucsd.edu/static/models/iMM904.xml",)),
    ),
)
PUBLISHERS = (YEAST_GEM, BIGG)
MODELS = {"yeast-gem": YEAST_GEM, "imm904": BIGG}
"""Models by name; of several files of one model the first that is there is read."""
UNKNOWN = "gene of the model that is not in the index"
_NAME = re.compile(r"[^\s()&|]+")


def find_model(folder: str | Path, name: str = "yeast-gem") -> Path | None:
    """Return the file of a model in a folder, or None; raises ``ConfigError`` if there is no such model."""
    if name not in MODELS:
        raise ConfigError(f"there is no metabolic model {name!r}; known models: {', '.join(MODELS)}")
    found = (file.find(folder) for file in MODELS[name].files)
    return next((path for path in found if path is not None), None)


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


def read_model_file(
    path: str | Path, genes: GeneIndex, *, cache: bool = True
) -> tuple[Metabolism, ReadReport]:
    """Return any metabolic model (SBML, YAML or JSON, plain or gzipped) with genes by systematic name.

    A gene that the model calls by another name, or with ``_`` for the hyphen, gets its systematic name in
    every rule. A gene that the index lacks stays in the rules, where nothing can take it away; it is counted.
    Rows of the reading are the genes of the model.

    Raises
    ------
    SourceError
        If the file is missing, of another kind, or cannot be parsed, or has a damaged gene rule.
    """
    path = Path(path)
    metabolism = read_metabolism(path, cache=cache)
    names = list(metabolism.genes)
    matched = match_genes(names, genes)
    hyphened = match_genes([name.replace("__45__", "-").replace("_", "-") for name in names], genes)
    position = np.where(matched.position == -1, hyphened.position, matched.position)
    spelled = {
        name: genes.names[at]
        for name, at in zip(names, position, strict=True)
        if at >= 0 and genes.names[at] != name
    }
    kept = int((position >= 0).sum())
    dropped = {UNKNOWN: int((position == -1).sum()), "ambiguous gene name": int((position == -2).sum())}
    reading = ReadReport(
        path.name, "metabolism", len(names), kept, {r: c for r, c in dropped.items() if c}, len(spelled)
    )
    return (_spelled(metabolism, spelled) if spelled else metabolism), reading


def _spelled(metabolism: Metabolism, names: dict[str, str]) -> Metabolism:
    """Return the model with other gene names in its rules."""
    return Metabolism.build(
        metabolism.reactions,
        metabolism.metabolites,
        metabolism.stoichiometry,
        metabolism.lower,
        metabolism.upper,
        metabolism.objective,
        [_NAME.sub(lambda m: names.get(m.group(), m.group()), rule) for rule in metabolism.rules],
    )
