"""From a description and its folder to an organism and its card: each part by the reader of its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wildtype.characters import name_fault
from wildtype.datasets.reading import ReadReport
from wildtype.files import sha256_of_file
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex, Organism
from wildtype.organism.graph_features import graph_features
from wildtype.organism.in_units import in_units
from wildtype.sources.user_organisms.card import card_of
from wildtype.sources.user_organisms.description import (
    AnyPart,
    Description,
    GeneFile,
    NamesFrom,
    PublishersPart,
)
from wildtype.sources.user_organisms.genes import GenesRead, names_of_table, read_files, with_names
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import FileCard, Read
from wildtype.sources.user_organisms.units import read_units

if TYPE_CHECKING:
    import pandas as pd

ESSENTIAL = "essential"
"""Feature block of essential genes."""
READERS = {
    "edges": "edges",
    "string": "string",
    "biogrid": "biogrid",
    "gmt": "gene_sets",
    "complexes": "gene_sets",
    "table": "gene_sets",
    "gaf": "annotations",
    "features": "features",
    "sequences": "sequences",
    "metabolism": "metabolism",
}
"""The module of the reader of every format, and of every key whose files have one format."""


class Reader(Protocol):
    """A module that reads the parts of one format."""

    def read(self, part: AnyPart, folder: Path, names: GeneIndex, problems: Problems) -> Read:
        """Return what a part gives the organism of the genes ``names``."""
        ...

    def names_in(self, part: AnyPart, folder: Path, problems: Problems) -> list[str]:
        """Return the names of genes in the file of a part, each once."""
        ...


def reader_of(key: str, part: AnyPart) -> Reader:
    """Return the reader of a part that stands under ``key``."""
    # A format is a name of the description; importing all readers would load cobra for an edge list.
    name = READERS[getattr(part, "format", key)]
    reader: Reader = import_module(f"wildtype.sources.user_organisms.{name}")
    return reader


@dataclass(frozen=True, eq=False)
class Built:
    """What a description made.

    Attributes
    ----------
    organism : Organism
        The organism.
    card : dict
        What it holds, and what became of every row of every file.
    measurements : dict of str to DataFrame
        Rows of its files that are measurements, by the name of a table for ``wildtype data import``.
    """

    organism: Organism
    card: dict[str, Any]
    measurements: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def build_organism(description: Description, folder: Path) -> Built:
    """Build the organism of a description whose paths are relative to ``folder``.

    Raises
    ------
    OrganismProblems
        With the problems of all files.
    """
    problems = Problems()
    organism, cards, remarks = _start(description, folder, problems)
    index = organism.genes
    found = list(_read(description, "genes", index, folder, problems))
    units: dict[str, list[str]] = {}
    if description.units is not None:
        units, card = read_units(description.units, folder, problems, index)
        cards += [] if card is None else [card]
    # Two parts may give one name to what they make, as two channels of STRING and an edge list.
    with problems.of("the description"):
        organism = _with(organism, found, description)
    if description.units is not None and not problems:
        with problems.of(description.units.path):
            organism = in_units(organism, units)
        organism, more = _of_units(organism, description, folder, problems)
        found += more
    problems.raise_any()
    if description.derive_features and description.publishers is None:
        # Last, since degrees of units are those of the relations of units.
        blocks = [*organism.features.values(), *_derived(organism)]
        organism = replace(organism, features=GeneFeatures(blocks))
    cards += [card for one in found for card in one.cards]
    hashes: dict[str, str] = {}
    for path in {card.file for card in cards}:
        # A publisher's reader may say the published name of a file that the folder holds under another one.
        hashes[path] = sha256_of_file(folder / path) if (folder / path).is_file() else ""
    cards = [replace(card, sha256=hashes[card.file]) for card in cards]
    measurements = {name: frame for one in found for name, frame in one.measurements.items()}
    return Built(organism, card_of(organism, cards, remarks), measurements)


def _read(
    description: Description, of: str, index: GeneIndex, folder: Path, problems: Problems
) -> Iterator[Read]:
    """Yield what the parts of genes, or of units, give."""
    for key, part in description.parts():
        if getattr(part, "of", "genes") == of:
            found = reader_of(key, part).read(part, folder, index, problems)
            derived = key == "metabolism" and not description.derive_features
            yield replace(found, features=()) if derived else found


def _with(organism: Organism, found: Sequence[Read], description: Description) -> Organism:
    relations = [relation for one in found for relation in one.relations]
    blocks = [block for one in found for block in one.features]
    metabolism = next((one.metabolism for one in found if one.metabolism is not None), organism.metabolism)
    if description.publishers is not None and description.derive_features:
        # The organism has features of its gene graphs: those of a further one join them.
        for relation in relations:
            organism = organism.with_relation(relation)
        relations = []
    return replace(
        organism,
        graphs=GeneGraphs([*organism.graphs.values(), *relations]),
        features=GeneFeatures([*organism.features.values(), *blocks]),
        metabolism=metabolism,
    )


def _of_units(
    organism: Organism, description: Description, folder: Path, problems: Problems
) -> tuple[Organism, list[Read]]:
    """Return an organism of units with what files say of its units themselves."""
    files = [file for file in description.genes.files if file.of == "units"]
    facts = read_files(files, folder, problems)
    found = [Read(facts.cards)]
    if facts.genes:
        if tuple(facts.genes) != organism.genes.names:
            problems.add(files[0].path, 0, "names other units, or another order, than the table of units")
            return organism, found
        organism = replace(
            organism,
            genes=facts.index(organism.name),
            essential=facts.marked("essential"),
            dubious=facts.marked("dubious"),
            coordinates=facts.coordinates(_sources(files)),
        )
    found += _read(description, "units", organism.genes, folder, problems)
    with problems.of("the description"):
        organism = _with(organism, found, description)
    return organism, found


def _sources(files: Sequence[GeneFile]) -> str:
    return ", ".join(dict.fromkeys(file.source or Path(file.path).name for file in files))


def _derived(organism: Organism) -> list[FeatureBlock]:
    """Return the blocks that follow from other parts: essential genes, degrees and places in gene graphs."""
    blocks = graph_features(organism.graphs)
    if organism.essential is not None:
        values = organism.essential[:, None].astype(np.float32)
        note = "1 where a gene is essential by the table of genes: the extreme of a deletion's growth"
        blocks.insert(0, FeatureBlock(ESSENTIAL, values, (ESSENTIAL,), source="table of genes", note=note))
    return blocks


def _start(
    description: Description, folder: Path, problems: Problems
) -> tuple[Organism, list[FileCard], list[str]]:
    """Return the organism that parts are added to, the cards of its files, and remarks on them."""
    if description.publishers is not None:
        return *_of_publishers(description, description.publishers, folder), []
    genes, remarks = _genes(description, folder, problems)
    if not genes.genes:
        if not problems:
            problems.add("genes", 0, "no file names a gene: say where genes are named")
        # Without genes no part can be read, but what is wrong with its file can be said.
        for key, part in description.parts():
            if key != "metabolism":
                reader_of(key, part).names_in(part, folder, problems)
        problems.raise_any()
    organism = Organism(
        description.name,
        genes.index(description.name),
        essential=genes.marked("essential"),
        dubious=genes.marked("dubious"),
        description=description.description,
        coordinates=genes.coordinates(_sources([f for f in description.genes.files if f.of == "genes"])),
    )
    return organism, list(genes.cards), remarks


def _of_publishers(
    description: Description, part: PublishersPart, folder: Path
) -> tuple[Organism, list[FileCard]]:
    """Return the organism of publishers' files, and a card of each reading of a file."""
    # A part names its readers; those of a publisher load what others do not need.
    readers = import_module(f"wildtype.sources.{part.readers}")
    reports: list[ReadReport] = []
    organism = readers.build_organism(
        folder / part.folder,
        string=part.string or None,
        relations=part.relations,
        metabolism=part.metabolism,
        collect=reports.append,
    )
    about = description.description or organism.description
    cards = [
        FileCard(
            (Path(part.folder) / report.file).as_posix(),
            report.use,
            report.rows,
            report.kept,
            report.dropped,
            f"{report.renamed:,} of the rows name a gene by an older name" if report.renamed else "",
        )
        for report in reports
    ]
    return replace(organism, name=description.name, description=about), cards


def _genes(description: Description, folder: Path, problems: Problems) -> tuple[GenesRead, list[str]]:
    """Return the genes of files, and those of ``names_from`` at their end."""
    files = [file for file in description.genes.files if file.of == "genes"]
    genes = read_files(files, folder, problems)
    if not description.genes.names_from:
        return genes, []
    cards: list[FileCard] = []
    names: set[str] = set()
    for given in description.genes.names_from:
        if isinstance(given, NamesFrom):
            found, card = names_of_table(given, folder, problems)
            cards += [] if card is None else [card]
            names.update(found)
        else:
            names.update(_names_of_key(given, description, folder, problems))
    genes, remark = with_names(genes, names, description.name)
    return GenesRead(genes.genes, (*genes.cards, *cards)), [remark] if remark else []


def _names_of_key(key: str, description: Description, folder: Path, problems: Problems) -> Iterator[str]:
    if key == "units" and description.units is not None:
        for members in read_units(description.units, folder, Problems())[0].values():
            yield from members
    for of, part in description.parts():
        if of == key:
            # The reader reads the file again for its part, and finds the same problems.
            for name in reader_of(key, part).names_in(part, folder, Problems()):
                if fault := name_fault(name):
                    problems.add(part.path, 0, fault)
                else:
                    yield name
