"""Production phenotypes without a parser, and how a user imports them as a table.

The layout of these publishers' files is not confirmed, so that a parser would be a guess. Each recipe names
what to download by hand and which of its columns `wildtype data import` is told about; the import checks
every row and shows what it will write before it does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from wildtype.datasets.records import PhenotypeDefinition, Publication


@dataclass(frozen=True)
class Recipe:
    """How to import one study by hand.

    Attributes
    ----------
    name : str
        Key of the study.
    publication : Publication
        What to cite.
    take : str
        Which table to download, and what to make of it before the import.
    columns : mapping of str to str
        Column of the import (``genes``, ``value``, ``sd``, ``phenotype`` …) to what the publisher's column
        must hold; its heading is read off the downloaded file.
    phenotype : PhenotypeDefinition
        What the imported numbers mean.
    why : str
        Why there is no parser.
    """

    name: str
    publication: Publication
    take: str
    columns: Mapping[str, str]
    phenotype: PhenotypeDefinition
    why: str

    def command(self, file: str, headings: Mapping[str, str]) -> str:
        """Return the import's command line for a downloaded file, given the heading of every column.

        Raises
        ------
        KeyError
            If the heading of one of `columns` is not given.
        """
        arguments = ["wildtype", "data", "import", file, "--organism", "yeast"]
        for column in self.columns:
            arguments += [f"--{column}-column", headings[column]]
        return shlex.join(arguments)


_WHY = "no copy of the file was seen: its names, columns and address are not confirmed"
RECIPES = (
    Recipe(
        "cachera2023",
        Publication(citation="Cachera et al. 2023 (betaxanthin in a deletion collection)"),
        "the supplementary table of betaxanthin per deletion strain; export the sheet as CSV, one line per "
        "strain and replicate",
        {
            "genes": "systematic name of the deleted gene",
            "value": "fluorescence of the colony",
            "replicate": "which colony or plate",
        },
        PhenotypeDefinition(
            name="betaxanthin", unit="as published", description="yellow fluorescence of colonies"
        ),
        _WHY,
    ),
    Recipe(
        "zelezniak2018",
        Publication(citation="Zelezniak et al. 2018 (proteomes of kinase deletions)"),
        "the table of protein amounts per kinase deletion; melt it to one line per strain and protein",
        {
            "genes": "systematic name of the deleted kinase",
            "phenotype": "systematic name of the protein's gene",
            "value": "amount or log2 ratio, whichever the table holds: note which",
        },
        PhenotypeDefinition(
            name="protein", unit="as published", level="gene", description="amount of one protein"
        ),
        _WHY,
    ),
    Recipe(
        "tryptophan",
        Publication(
            citation="tryptophan production screens (publication to be named by whoever imports one)"
        ),
        "a table of strains and their tryptophan titre or biosensor signal; write all changed genes of a "
        "strain into one cell, and what was done to them into another",
        {
            "genes": "all changed genes of the strain",
            "kind": "deletion, overexpression, addition … of each, in the same order",
            "dose": "copies or promoter strength, where stated",
            "value": "titre or signal",
            "sd": "its standard deviation, where stated",
        },
        PhenotypeDefinition(name="tryptophan", unit="as published", description="titre or biosensor signal"),
        "several studies with different designs and units; " + _WHY,
    ),
    Recipe(
        "robustness",
        Publication(citation="robustness screens (publication to be named by whoever imports one)"),
        "a table of strains and how much a phenotype varies between environments or cells; keep the raw "
        "values by environment if they are given, since robustness can be computed from them",
        {
            "genes": "systematic name of the deleted gene",
            "condition": "environment, where values are given by environment",
            "value": "the value, or the robustness",
        },
        PhenotypeDefinition(
            name="robustness", unit="as published", description="variation between environments or cells"
        ),
        "robustness is defined differently in every study; " + _WHY,
    ),
)
