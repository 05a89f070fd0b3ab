"""Runs opened to be explained: their models, and the organism that these were trained on.

A checkpoint holds no relation that attention followed, since prediction needs none; the organism is loaded
again by the name in the run's record, cut to the run's genes and graphs, and checked against the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from wildtype.errors import ConfigError, DatasetError, WildtypeError
from wildtype.experiments.data import with_chosen_graphs
from wildtype.experiments.folder import MARK
from wildtype.experiments.settings.stored import read_settings
from wildtype.inference.explaining.explain import Explanation, ExplanationRequest, explain
from wildtype.inference.explaining.members import Opened
from wildtype.inference.predictor import load
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.gene_sets import GeneSets, read_gene_sets
from wildtype.sources.catalogue import known_datasets, load_organism, load_variant


def explain_runs(
    runs: Sequence[str | Path],
    asked: ExplanationRequest | None = None,
    *,
    organism: Organism | None = None,
    annotations: str | Path | None = None,
    report_progress: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Explain runs of one model that differ in their seeds alone.

    Parameters
    ----------
    runs : sequence of path
        Run or checkpoint folders.
    asked : ExplanationRequest, optional
        What to explain; everything, of no mutant, by default.
    organism : Organism, optional
        The one that the runs' dataset is of; by default it is loaded by name.
    annotations : path, optional
        Gene sets to look for: a CSV or Parquet file with columns ``gene`` and ``term``, or, of yeast, a
        folder of publishers' files with the Gene Ontology.
    report_progress : callable
        Told which section is begun.

    Raises
    ------
    CheckpointError
        If a folder holds no trained model.
    SourceError
        If annotations cannot be read.
    ConfigError, GeneSetError, UnknownGeneError, AmbiguousGeneError
        As ``explain`` says.
    """
    opened = [open_run(run, organism) for run in runs]
    read = [] if annotations is None or not opened else [read_annotations(annotations, opened[0])]
    return explain(opened, asked or ExplanationRequest(), lambda run: read, report_progress)


def open_run(path: str | Path, organism: Organism | None = None) -> Opened:
    """Open a run with the organism it was trained on; where that is not at hand, a remark says why."""
    predictor = load(path)
    try:
        return Opened(str(path), predictor, *_organism_of(Path(path), predictor.genes, organism))
    except WildtypeError as error:
        return Opened(str(path), predictor, None, (f"{path}: {error}",))


def _organism_of(
    path: Path, genes: GeneIndex, organism: Organism | None
) -> tuple[Organism | None, tuple[str, ...]]:
    """Return the organism of a run on its genes, with the graphs that its model saw, and what to know."""
    folder = next((room for room in (path, path.parent) if (room / MARK).is_file()), None)
    if folder is None:
        raise DatasetError(
            "this is a checkpoint without its run, so that its organism is not known: give the run folder"
        )
    config = read_settings(folder / MARK)
    if organism is None:
        datasets = known_datasets()
        if config.data.name not in datasets:
            raise DatasetError(f"its dataset {config.data.name!r} is not in the catalogue")
        name = datasets[config.data.name]
        organism = load_variant(name, config.data.organism) if config.data.organism else load_organism(name)
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
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        then = record["organism"]["graphs_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return organism, (f"{path}: no record says which gene graphs it saw; those of today are taken",)
    if then != organism.graphs.sha256:
        raise DatasetError(
            f"the gene graphs of organism {organism.name!r} are not those that the run was trained on: build "
            f"it from the same files"
        )
    return organism, ()


def read_annotations(path: str | Path, run: Opened) -> GeneSets:
    """Return annotations of a run's genes: of a table, or of yeast from a folder of publishers' files.

    Raises
    ------
    SourceError
        If they cannot be read.
    ConfigError
        If a folder is given for another organism than yeast.
    """
    genes = run.predictor.genes
    if not Path(path).is_dir():
        return read_gene_sets(path, genes)
    if run.organism is None or not run.organism.name.startswith("yeast"):
        raise ConfigError(
            f"{str(path)!r} is a folder, from which annotations of yeast alone are read: give a table with "
            f"columns gene and term"
        )
    from wildtype.sources.yeast.graphs.go_terms import read_go_terms

    return read_go_terms(path, genes)
