"""The two metabolic models that cobra packages, read without a download, and the features of their genes.

Features come from rules, network, subsystems and the flux of the wild type, never from a simulated mutant.

Legend: n genes · g genes in rules · r reactions · f columns.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.files import sha256_of_file
from wildtype.organism import FeatureBlock, GeneGraphs, GeneIndex, Metabolism
from wildtype.organism.graph_features import graph_features
from wildtype.organism.metabolic_features import gene_block, metabolic_features, reactions_lost
from wildtype.sources.insilico.fba import ZERO_FLUX

MODELS = {
    "ecoli-core": (
        "textbook.xml.gz",
        "Escherichia coli core metabolism (e_coli_core), Orth, Fleming & Palsson 2010, EcoSal Plus 4(1)",
    ),
    "ecoli-ijo1366": (
        "iJO1366.xml.gz",
        "Escherichia coli K-12 MG1655 metabolism (iJO1366), Orth et al. 2011, Mol Syst Biol 7:535",
    ),
}
ALIASES = ("uniprot", "ecogene")
NAMED = 3
"""Reactions that the description of a gene names."""


@dataclass(frozen=True, eq=False)
class InSilicoModel:
    """A metabolic model and the names that go with it.

    Attributes
    ----------
    name : str
        ``ecoli-core`` or ``ecoli-ijo1366``.
    genes : GeneIndex
        The genes that stand in rules, by b-number, sorted; described by the reactions that need them.
    metabolism : Metabolism
        Network, bounds of the model's own medium, and biomass as the objective.
    subsystems : tuple of str [R]
        Subsystem of every reaction; empty where the model gives none.
    wild_type_flux : float64 [R]
        Flux of the wild type at optimal growth with the smallest total flux (parsimonious FBA, Lewis et al.
        2010, Mol Syst Biol 6:390).
    citation, version : str
        The publication, and the SHA-256 of the file.
    """

    name: str
    genes: GeneIndex
    metabolism: Metabolism
    subsystems: tuple[str, ...]
    wild_type_flux: NDArray[np.float64]
    citation: str
    version: str


def model_file(name: str) -> Path:
    """Return the packaged file of a model, without importing cobra.

    Raises
    ------
    DatasetError
        If there is no in-silico organism of that name, or cobra is not installed with its data.
    """
    if name not in MODELS:
        known = " and ".join(repr(known) for known in MODELS)
        raise DatasetError(
            f"there is no in-silico organism {name!r}: only {known} are packaged, and none is downloaded"
        )
    found = importlib.util.find_spec("cobra")
    path = Path((found.origin if found else "") or "").parent / "data" / MODELS[name][0]
    if not path.is_file():
        raise DatasetError(f"the model of {name!r} is missing at {str(path)!r}: install cobra again")
    return path


def read_model(name: str) -> InSilicoModel:
    """Read a packaged model; raises as ``model_file`` does.

    The genome-scale model names its genes by b-number only; its standard names are those of the core model,
    for the genes that both have.
    """
    from cobra.flux_analysis import pfba
    from cobra.io import read_sbml_model

    path = model_file(name)
    model = read_sbml_model(str(path))
    metabolism = Metabolism.from_cobra(model)
    named = model.genes if name == "ecoli-core" else read_sbml_model(str(model_file("ecoli-core"))).genes
    standard = {g.id: g.name for g in named if g.name and g.name != f"G_{g.id}"}
    aliases = {g.id: [g.annotation[key] for key in ALIASES if key in g.annotation] for g in model.genes}
    return InSilicoModel(
        name=name,
        genes=GeneIndex(metabolism.genes, standard, aliases, name, _descriptions(model)),
        metabolism=metabolism,
        subsystems=tuple(r.subsystem or "" for r in model.reactions),
        wild_type_flux=pfba(model).fluxes.loc[list(metabolism.reactions)].to_numpy(np.float64),
        citation=MODELS[name][1],
        version=sha256_of_file(path)[:12],
    )


def _descriptions(model: Any) -> dict[str, str]:
    """Return, for every gene of a cobra model, the names of the first reactions whose rules name it."""
    out = {}
    for gene in model.genes:
        names = sorted({(reaction.name or reaction.id).removeprefix("R ") for reaction in gene.reactions})
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        out[gene.id] = "; ".join([*names[:NAMED], *more])
    return out


def gene_features(model: InSilicoModel, graphs: GeneGraphs) -> list[FeatureBlock]:
    """Return the feature blocks of a model's n genes.

    Those of ``metabolic_features``, ``wild-type-flux``, and those of ``graph_features``.
    """
    source = f"in-silico model {model.name} {model.version}"
    read_off = metabolic_features(model.metabolism, model.genes, subsystems=model.subsystems, source=source)
    return [*read_off, _flux(model, source), *graph_features(graphs)]


def _flux(model: InSilicoModel, source: str) -> FeatureBlock:
    """Flux of the wild type through the reactions of each gene, in mmol per gram dry weight and hour."""
    size = np.abs(model.wild_type_flux)
    active = (size > ZERO_FLUX).astype(np.float64)
    listed: Any = model.metabolism.reaction_gene
    lost = reactions_lost(model.metabolism).astype(np.float64)
    weighted = listed.multiply(size[:, None]).tocsc()
    columns = {
        "total": np.log1p(listed.T @ size),
        "largest": np.log1p(np.asarray(weighted.max(axis=0).toarray()).reshape(-1)),
        "active_reactions": np.log1p(listed.T @ active),
        "total_lost": np.log1p(lost @ size),
        "active_lost": np.log1p(lost @ active),
    }
    note = (
        "wild type only: parsimonious FBA; as log(1 + value); lost: by deleting the gene alone, by its rules"
    )
    return gene_block(model.metabolism, model.genes, "wild-type-flux", columns, source=source, note=note)
