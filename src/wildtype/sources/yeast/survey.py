"""What becomes of every row of every file in a folder, beside the counts that its publisher states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.datasets.reading import ReadReport
from wildtype.errors import MissingFileError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher
from wildtype.sources.publishers import owners
from wildtype.sources.text import Collector
from wildtype.sources.yeast import measured
from wildtype.sources.yeast.genes import (
    abundance,
    coordinates,
    identifiers,
    proteins,
    sequences,
    sgd,
    uniprot,
)
from wildtype.sources.yeast.graphs import go_annotations, irefindex, ontology, regulation, selection, string
from wildtype.sources.yeast.metabolism import MODELS, read_model
from wildtype.sources.yeast.traits import single_deletions

Read = Callable[[Path, GeneIndex, Collector], None]
GENES, GRAPHS, FEATURES, METABOLISM = "genes", "gene graphs", "features", "metabolism"
MEASURED = "measured mutants"


@dataclass(frozen=True, eq=False)
class Surveyed:
    """One reading of one file, or why there is none.

    Attributes
    ----------
    group : str
        Genes, gene graphs, features, metabolism or measured mutants.
    name : str
        Name of the reader.
    reading : ReadReport or None
        What became of the rows.
    left_out : str
        Why there is no reading.
    publishers : tuple of Publisher
        Whose file it is.
    """

    group: str
    name: str
    reading: ReadReport | None = None
    left_out: str = ""
    publishers: tuple[Publisher, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it in plain values, with the counts that the publishers state."""
        reading = self.reading
        return {
            "group": self.group,
            "reader": self.name,
            "publishers": [publisher.name for publisher in self.publishers],
            "published": {
                what: n for publisher in self.publishers for what, n in publisher.published.items()
            },
            "file": "" if reading is None else reading.file,
            "becomes": "" if reading is None else reading.use,
            "rows": 0 if reading is None else reading.rows,
            "kept": 0 if reading is None else reading.kept,
            "dropped": {} if reading is None else dict(reading.dropped),
            "renamed": 0 if reading is None else reading.renamed,
            "left_out": self.left_out,
        }


def survey(folder: str | Path) -> Iterator[Surveyed]:
    """Read every file of a folder with every reader, and yield what became of its rows.

    Raises
    ------
    SourceError
        If the list of genes is not there, or any file is damaged or not in the published layout.
    """
    folder = Path(folder)
    genes, reading, _ = sgd.read_genes(folder)
    yield _surveyed(GENES, "genes", reading)
    for group, name, read in _readers():
        readings: list[ReadReport] = []
        try:
            read(folder, genes, readings.append)
        except MissingFileError as error:
            yield Surveyed(group, name, left_out=str(error))
            continue
        for reading in readings:
            yield _surveyed(group, name, reading)


def _surveyed(group: str, name: str, reading: ReadReport) -> Surveyed:
    whose = {publisher.name: publisher for publisher, _ in owners(reading.file)}
    return Surveyed(group, name, reading, publishers=tuple(whose.values()))


def _readers() -> Iterator[tuple[str, str, Read]]:
    """Yield group, name and function of every reader but that of the gene list."""

    def second(read: Callable[[Path, GeneIndex], tuple[Any, ReadReport]]) -> Read:
        return lambda folder, genes, collect: collect(read(folder, genes)[1])

    def each(read: Callable[[Path, GeneIndex], list[tuple[Any, ReadReport]]]) -> Read:
        def run(folder: Path, genes: GeneIndex, collect: Collector) -> None:
            for _, reading in read(folder, genes):
                collect(reading)

        return run

    yield GENES, "essential", second(sgd.read_essential)
    yield GENES, "sgd_ids", second(identifiers.read_sgd_ids)
    yield GENES, "standard_names", second(identifiers.read_standard_names)
    yield GENES, "accessions", second(uniprot.read_accessions)
    yield GENES, "coordinates", second(coordinates.read_sga_coordinates)
    yield GENES, "coordinates (GFF)", second(coordinates.read_gff_coordinates)
    yield GENES, "coordinates (features)", second(coordinates.read_feature_coordinates)
    yield GRAPHS, "physical", second(irefindex.read_physical)
    yield GRAPHS, "regulatory", second(regulation.read_regulatory)
    yield GRAPHS, "regulatory_documented", second(regulation.read_documented)
    for version in string.VERSIONS:
        yield GRAPHS, f"string {version}", each(_string(version))
    for name, reader in selection.FURTHER.items():
        yield GRAPHS, name, each(_further(name, reader))
    yield FEATURES, "go_process", second(ontology.read_go_process)
    yield FEATURES, "go_annotations", second(go_annotations.read_annotations)
    yield FEATURES, "sequences", second(sequences.read_sequence_blocks)
    yield FEATURES, "proteins", second(proteins.read_proteins)
    yield FEATURES, "abundance", second(abundance.read_abundance)
    for study in single_deletions.STUDIES:
        yield FEATURES, "phenotypes", _phenotypes(study)
    for name in MODELS:
        yield METABOLISM, name, second(_model(name))
    for name, read in measured.READERS.items():
        yield MEASURED, name, _measured(read)


def _string(version: str) -> Callable[[Path, GeneIndex], list[tuple[Any, ReadReport]]]:
    return lambda folder, genes: list(string.read_string(folder, genes, version))


def _further(
    name: str, reader: selection.Reader
) -> Callable[[Path, GeneIndex], list[tuple[Any, ReadReport]]]:
    def read(folder: Path, genes: GeneIndex) -> list[tuple[Any, ReadReport]]:
        accessions = uniprot.read_accessions(folder, genes)[0] if uniprot.has_accessions(folder) else {}
        return [one for one in reader(folder, genes, accessions) if one[0].name == name]

    return read


def _phenotypes(study: Any) -> Read:
    return lambda folder, genes, collect: collect(single_deletions.read_study(folder, study, genes).reading)


def _model(name: str) -> Callable[[Path, GeneIndex], tuple[Any, ReadReport]]:
    return lambda folder, genes: read_model(folder, genes, name)


def _measured(read: Callable[..., Any]) -> Read:
    def run(folder: Path, genes: GeneIndex, collect: Collector) -> None:
        read(folder, genes, collect=collect)

    return run
