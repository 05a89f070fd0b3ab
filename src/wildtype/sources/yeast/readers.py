"""Every reader of publishers' files by name: studies for the store, and a survey of the files in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wildtype.datasets.measurements import Measurements, parts_of
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.store import Store
from wildtype.errors import MissingFileError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher
from wildtype.sources.publishers import owners
from wildtype.sources.text import Collector
from wildtype.sources.yeast.genes import abundance, coordinates, sequences, sgd, uniprot
from wildtype.sources.yeast.graphs import gene_ontology, pair_lists, regulation, selection, string
from wildtype.sources.yeast.metabolism import MODELS, read_model
from wildtype.sources.yeast.screens import (
    baryshnikova2010,
    celaj2020,
    costanzo2010,
    costanzo2016,
    diazmejia2018,
    emap,
    jonikas2009,
    kuzmin2018,
    kuzmin2020,
    tau_sga,
)
from wildtype.sources.yeast.traits import calmorph, deleteome, messner2023, phenome, single_deletions

Read = Callable[[Path, GeneIndex, Collector], None]
GENES, GRAPHS, FEATURES, METABOLISM = "genes", "gene graphs", "features", "metabolism"
MEASURED = "measured mutants"
READERS: Mapping[str, Callable[..., Measurements | Iterable[Measurements]]] = {
    "kuzmin2018": kuzmin2018.read,
    "kuzmin2018-calls": kuzmin2018.read_calls,
    "kuzmin2020": kuzmin2020.read,
    "tau-sga": tau_sga.read,
    "costanzo2010": costanzo2010.read,
    costanzo2010.STUDY_OF_STRINGENT: costanzo2010.read_stringent,
    costanzo2010.STUDY_OF_RESERVED: costanzo2010.read_reserved,
    "costanzo2016": costanzo2016.read,
    "costanzo2016-dcell": costanzo2016.read_dcell,
    "baryshnikova2010": baryshnikova2010.read,
    "celaj2020": celaj2020.read,
    "jonikas2009": jonikas2009.read,
    "diazmejia2018": diazmejia2018.read,
    "collins2007": emap.read_collins,
    "schuldiner2005": emap.read_schuldiner,
    **phenome.READERS,
    "ohya2005": calmorph.read,
    "kemmeren2014": deleteome.read,
    "messner2023": messner2023.read,
}
"""``read(folder, genes, *, collect)`` by the name of the study: `Measurements`, or an iterable of parts."""


@dataclass(frozen=True, eq=False)
class Ingested:
    """What the store holds of one study now.

    Attributes
    ----------
    name : str
        Name of the study.
    measurements : int
        Rows that the store holds of it now; 0 where it is left out.
    readings : tuple of ReadReport
        The counts of the rows of its files.
    left_out : str
        Why it is not in the store; empty where it is.
    """

    name: str
    measurements: int = 0
    readings: tuple[ReadReport, ...] = ()
    left_out: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        return asdict(self)


def ingest(
    store: Store, folder: str | Path, genes: GeneIndex, names: Sequence[str] = ()
) -> Iterator[Ingested]:
    """Read studies from a folder into a store, one transaction each, and yield the result of each.

    Parameters
    ----------
    store : Store
        Open for writing; a study that it holds already is replaced.
    folder : path
        Publishers' files.
    genes : GeneIndex
        Names are resolved to its systematic names.
    names : sequence of str
        Studies; without any, all those whose files are there, and the others are reported as left out.

    Raises
    ------
    SourceError
        If there is no such study, a file of a study that ``names`` lists is not there, or any file is damaged
        or not in the published layout.
    """
    for name in names:
        if name not in READERS:
            raise SourceError(f"there is no study {name!r}; known studies: {', '.join(READERS)}")
    for name in names or READERS:
        readings: list[ReadReport] = []
        try:
            parts = parts_of(READERS[name](folder, genes, collect=readings.append))
        # A folder seldom has every publisher's files: what is missing is reported, what is damaged is an
        # error.
        except MissingFileError as error:
            if names:
                raise
            yield Ingested(name, left_out=str(error))
            continue
        # One transaction per study: an error in a later one leaves the earlier ones stored.
        store.ingest(parts, readings, replace=True)
        yield Ingested(name, sum(map(len, parts)), tuple(readings))


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What one reader made of one file, or why it was not read.

    Attributes
    ----------
    group : str
        Genes, gene graphs, features, metabolism or measured mutants.
    name : str
        Name of the reader.
    report : ReadReport or None
        The counts of the rows.
    left_out : str
        Why there is none.
    publishers : tuple of Publisher
        Whose file it is.
    """

    group: str
    name: str
    report: ReadReport | None = None
    left_out: str = ""
    publishers: tuple[Publisher, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it in plain values, with the counts that the publishers state."""
        report = self.report
        return {
            "group": self.group,
            "reader": self.name,
            "publishers": [publisher.name for publisher in self.publishers],
            "published": {
                what: n for publisher in self.publishers for what, n in publisher.published.items()
            },
            "file": "" if report is None else report.file,
            "becomes": "" if report is None else report.use,
            "rows": 0 if report is None else report.rows,
            "kept": 0 if report is None else report.kept,
            "dropped": {} if report is None else dict(report.dropped),
            "renamed": 0 if report is None else report.renamed,
            "left_out": self.left_out,
        }


def survey(folder: str | Path) -> Iterator[Surveyed]:
    """Read every file of a folder with every reader, and yield the counts of its rows.

    Raises
    ------
    SourceError
        If the list of genes is not there, or any file is damaged or not in the published layout.
    """
    folder = Path(folder)
    genes, report, _ = sgd.read_genes(folder)
    yield _surveyed(GENES, "genes", report)
    for group, name, read in all_readers():
        readings: list[ReadReport] = []
        try:
            read(folder, genes, readings.append)
        except MissingFileError as error:
            yield Surveyed(group, name, left_out=str(error))
            continue
        for report in readings:
            yield _surveyed(group, name, report)


def _surveyed(group: str, name: str, report: ReadReport) -> Surveyed:
    whose = {publisher.name: publisher for publisher, _ in owners(report.file)}
    return Surveyed(group, name, report, publishers=tuple(whose.values()))


def all_readers() -> Iterator[tuple[str, str, Read]]:
    """Yield group, name and function of every reader but that of the gene list."""

    def one(read: Callable[[Path, GeneIndex], tuple[Any, ReadReport]]) -> Read:
        return lambda folder, genes, collect: collect(read(folder, genes)[1])

    def each(read: Callable[[Path, GeneIndex], list[tuple[Any, ReadReport]]]) -> Read:
        def run(folder: Path, genes: GeneIndex, collect: Collector) -> None:
            for _, report in read(folder, genes):
                collect(report)

        return run

    yield GENES, "essential", one(sgd.read_essential)
    yield GENES, "sgd_ids", one(sgd.read_sgd_ids)
    yield GENES, "standard_names", one(sgd.read_standard_names)
    yield GENES, "accessions", one(uniprot.read_accessions)
    yield GENES, "coordinates", one(coordinates.read_sga_coordinates)
    yield GENES, "coordinates (GFF)", one(coordinates.read_gff_coordinates)
    yield GENES, "coordinates (features)", one(coordinates.read_feature_coordinates)
    yield GRAPHS, "physical", one(pair_lists.read_physical)
    yield GRAPHS, "regulatory", one(regulation.read_regulatory)
    yield GRAPHS, "regulatory_documented", one(regulation.read_documented)
    for version in string.VERSIONS:
        yield GRAPHS, f"string {version}", each(partial(string.read_string, version=version))
    for name in selection.FURTHER:
        yield GRAPHS, name, each(partial(_further, name=name))
    yield FEATURES, "go_process", one(gene_ontology.read_go_process)
    yield FEATURES, "go_annotations", one(gene_ontology.read_annotations)
    yield FEATURES, "sequences", one(sequences.read_sequence_blocks)
    yield FEATURES, "proteins", one(sequences.read_proteins)
    yield FEATURES, "abundance", one(abundance.read_abundance)
    for study in single_deletions.STUDIES:
        yield FEATURES, "phenotypes", partial(_phenotypes, study=study)
    for name in MODELS:
        yield METABOLISM, name, one(partial(read_model, name=name))
    for name, read in READERS.items():
        yield MEASURED, name, partial(_measured, read=read)


def _further(folder: Path, genes: GeneIndex, *, name: str) -> list[tuple[Any, ReadReport]]:
    accessions = uniprot.read_accessions(folder, genes)[0] if uniprot.has_accessions(folder) else {}
    graphs = selection.FURTHER[name](folder, genes, accessions)
    return [(relation, report) for relation, report in graphs if relation.name == name]


def _phenotypes(folder: Path, genes: GeneIndex, collect: Collector, *, study: phenome.Study) -> None:
    collect(single_deletions.read_study(folder, study, genes).report)


def _measured(
    folder: Path,
    genes: GeneIndex,
    collect: Collector,
    *,
    read: Callable[..., Measurements | Iterable[Measurements]],
) -> None:
    parts_of(read(folder, genes, collect=collect))
