"""Node and relation tables in a folder, exported from a store or a graph database, into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import (
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.datasets.store.graph_files import GraphFiles
from wildtype.datasets.store.store import Store
from wildtype.errors import DatasetError, SourceError, reason_of
from wildtype.mutants.ragged import entries_of


def import_graph(folder: str | Path, path: str | Path) -> dict[str, int]:
    """Add all studies of a folder of node and relation tables to the store at `path`, made if there is none.

    Keys only join the tables: ids are made anew from what the records say. Each study is one transaction.

    Returns
    -------
    dict of str to int
        Measurements of every study that was added.

    Raises
    ------
    SourceError
        If a file is missing, damaged, of a later version, or names a node that there is not; nothing is
        written then.
    DatasetError
        If the store holds one of the studies already, nothing is written then either; or as `Store.open`.
    """
    measurements, readings = read_graph(folder)
    path = Path(path)
    with Store.open(path) if path.exists() else Store.create(path) as store:
        present = {stored.name for stored in store.studies()}
        names = [study.name for study in measurements.studies]
        known = next((name for name in names if name in present), None)
        if known is not None:
            raise DatasetError(f"the store {path} holds the study {known!r} already: drop it first")
        rows = {}
        for code, name in enumerate(names):
            part = measurements.take(measurements.study == code)
            store.ingest(part, readings[name])
            rows[name] = len(part)
    return rows


def read_graph(folder: str | Path) -> tuple[Measurements, dict[str, tuple[ReadReport, ...]]]:
    """Return all measurements of a folder of node and relation tables, and the readings of every study.

    Raises
    ------
    SourceError
        If a file is missing, damaged, of a later version, or names a node that there is not.
    """
    graph = GraphFiles.read(Path(folder))
    genotype, perturbation = graph.links("genotype_perturbation")
    counts = np.bincount(genotype, minlength=graph.size("genotype"))
    mutant = graph.one("measurement_genotype")
    at, offsets = entries_of((np.cumsum(counts) - counts)[mutant], counts[mutant])
    flat = perturbation[np.argsort(genotype, kind="stable")][at]
    kinds = graph.make("perturbation", lambda row, _: PerturbationKind[row["kind"].upper()])
    alleles, allele = coded(graph.texts("perturbation", "allele"))
    texts = {name: coded(graph.texts("measurement", name)) for name in ("trait", "replicate", "reference")}
    studies = _studies(graph)
    columns: dict[str, Any] = dict(
        studies=studies,
        study=graph.one("measurement_study"),
        environments=_environments(graph),
        environment=graph.one("measurement_environment"),
        phenotypes=graph.make("phenotype", lambda row, _: PhenotypeDefinition(**row)),
        phenotype=graph.one("measurement_phenotype"),
        genes=tuple(graph.texts("gene", "name:ID(Gene)")),
        gene=graph.one("perturbation_gene")[flat],
        alleles=alleles,
        allele=allele[flat],
        kind=np.array(kinds, np.uint8)[flat],
        dose=graph.numbers("perturbation", "dose")[flat],
        offsets=offsets,
        traits=texts["trait"][0],
        trait=texts["trait"][1],
        replicates=texts["replicate"][0],
        replicate=texts["replicate"][1],
        references=texts["reference"][0],
        reference=texts["reference"][1],
        n=graph.counts("measurement", "n"),
        **{name: graph.numbers("measurement", name) for name in ("value", "sd", "se", "p")},
    )
    try:
        measurements = Measurements(**columns)
    except DatasetError as error:
        raise SourceError(f"the tables in {str(folder)!r} hold what cannot be: {reason_of(error)}") from error
    return measurements, _readings(graph, studies)


def _studies(graph: GraphFiles) -> tuple[Study, ...]:
    publications = graph.make("publication", lambda row, _: Publication(**row))
    notes, note = graph.grouped("study_note"), graph.texts("note", "text")
    files, file = graph.grouped("study_file"), graph.make("file", lambda row, _: (row["name"], row["sha256"]))
    names, publication = graph.texts("study", "name:ID(Study)"), graph.one("study_publication")

    def study(row: dict[str, str], i: int) -> Study:
        return Study(
            name=names[i],
            publication=publications[publication[i]],
            organism=row["organism"],
            licence=row["licence"],
            notes=tuple(note[n] for n in notes[i]),
            files=dict(file[f] for f in files[i]),
        )

    return graph.make("study", study)


def _environments(graph: GraphFiles) -> tuple[Environment, ...]:
    compounds = graph.make("compound", lambda row, _: Compound(**row))
    contained = graph.grouped("environment_compound")
    return graph.make(
        "environment",
        lambda row, i: Environment(
            medium=row["medium"],
            temperature=row["temperature"],
            compounds=tuple(compounds[c] for c in contained[i]),
        ),
    )


def _readings(graph: GraphFiles, studies: tuple[Study, ...]) -> dict[str, tuple[ReadReport, ...]]:
    start, end = graph.links("reading_reason")
    reasons = graph.texts("reason", "text:ID(Reason)")
    dropped: list[dict[str, int]] = [{} for _ in range(graph.size("reading"))]
    rows = graph.counts("reading_reason", "rows")
    for i in np.lexsort((graph.counts("reading_reason", "position"), start)).tolist():
        dropped[start[i]][reasons[end[i]]] = int(rows[i])
    readings = graph.make("reading", lambda row, i: ReadReport(**row, dropped=dropped[i]))
    return {
        study.name: tuple(readings[i] for i in group)
        for study, group in zip(studies, graph.grouped("study_reading"), strict=True)
    }
