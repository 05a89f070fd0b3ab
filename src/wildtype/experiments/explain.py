"""Runs opened to be explained: their models, and the organism that these were trained on.

A checkpoint holds no gene graphs, since prediction needs none. The organism is therefore loaded by the name
in the run's record, restricted to the run's genes and graphs, and checked against the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from wildtype.datasets.storage import with_added_of
from wildtype.errors import ConfigError, DatasetError, WildtypeError
from wildtype.experiments.data import with_chosen_graphs
from wildtype.experiments.folder import MARK
from wildtype.experiments.settings.stored import read_settings
from wildtype.inference.explaining.explain import Explanation, ExplanationRequest, explain
from wildtype.inference.explaining.members import Opened
from wildtype.inference.predictor import load
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.gene_sets import GeneSets, read_gene_sets
from wildtype.sources.catalogue import dataset_folder, known_datasets, load_organism, load_variant


def explain_runs(
    runs: Sequence[str | Path],
    asked: ExplanationRequest | None = None,
    *,
    organism: Organism | None = None,
    annotations: str | Path | None = None,
    report_progress: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Explain runs that differ in their seeds only.

    Parameters
    ----------
    runs : sequence of path
        Run directories or checkpoints.
    asked : ExplanationRequest, optional
        What to explain; everything, of no mutant, by default.
    organism : Organism, optional
        That of the runs' dataset; by default it is loaded by name.
    annotations : path, optional
        Gene sets to look for: a CSV or Parquet file with columns ``gene`` and ``term``, or, for yeast, a
        folder of publishers' files with the Gene Ontology.
    report_progress : callable
        Receives the name of each section as it begins.

    Raises
    ------
    CheckpointError
        If a directory holds no trained model.
    SourceError
        If annotations cannot be read.
    ConfigError, GeneSetError, UnknownGeneError, AmbiguousGeneError
        As ``explain`` says.
    """
    opened = [open_run(run, organism) for run in runs]
    read = [] if annotations is None or not opened else [read_annotations(annotations, opened[0])]
    return explain(opened, asked or ExplanationRequest(), lambda run: read, report_progress)


def open_run(path: str | Path, organism: Organism | None = None) -> Opened:
    """Open a run with the organism it was trained on; where that is not available, a remark tells why."""
    predictor = load(path)
    try:
        return Opened(str(path), predictor, *_organism_of(Path(path), predictor.encoded.genes, organism))
    except WildtypeError as error:
        return Opened(str(path), predictor, None, (f"{path}: {error}",))


def _organism_of(
    path: Path, genes: GeneIndex, organism: Organism | None
) -> tuple[Organism | None, tuple[str, ...]]:
    """Return the organism of a run on its genes, with the graphs that its model saw, and remarks."""
    directory = next((place for place in (path, path.parent) if (place / MARK).is_file()), None)
    if directory is None:
        raise DatasetError(
            "this is a checkpoint without its run, so that its organism is not known: give the run directory"
        )
    config = read_settings(directory / MARK)
    if organism is None:
        datasets = known_datasets()
        if config.data.name not in datasets:
            raise DatasetError(f"its dataset {config.data.name!r} is not in the catalogue")
        name = datasets[config.data.name]
        organism = load_variant(name, config.data.organism) if config.data.organism else load_organism(name)
        organism = with_added_of(organism, dataset_folder(config.data.name))
    places = genes.mapping_to(organism.genes)
    if (places < 0).any():
        lost = genes.names[int(np.flatnonzero(places < 0)[0])]
        raise DatasetError(
            f"organism {organism.name!r} has changed since: it lacks {int((places < 0).sum())} of the run's "
            f"genes, such as {lost}"
        )
    if genes != organism.genes:
        organism = organism.restrict(places)
    organism = with_chosen_graphs(config, organism)
    try:
        record = json.loads((directory / "record.json").read_text(encoding="utf-8"))
        then = record["organism"]["graphs_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return organism, (f"{path}: no record of the gene graphs that it saw; the present ones are used",)
    if then != organism.graphs.sha256:
        raise DatasetError(
            f"the gene graphs of organism {organism.name!r} are not those that the run was trained on: build "
            f"it from the same files"
        )
    return organism, ()


def read_annotations(path: str | Path, run: Opened) -> GeneSets:
    """Return annotations of a run's genes, from a table or, for yeast, a folder of publishers' files.

    Raises
    ------
    SourceError
        If they cannot be read.
    ConfigError
        If a folder is given for another organism than yeast.
    """
    genes = run.predictor.encoded.genes
    if not Path(path).is_dir():
        return read_gene_sets(path, genes)
    if run.organism is None or not run.organism.name.startswith("yeast"):
        raise ConfigError(
            f"{str(path)!r} is a folder, from which only annotations of yeast are read: give a table with "
            f"columns gene and term"
        )
    from wildtype.sources.yeast.graphs.gene_ontology import read_go_terms

    return read_go_terms(path, genes)
