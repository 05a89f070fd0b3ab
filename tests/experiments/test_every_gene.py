"""Every named yeast dataset: a model of it answers about all genes of the organism.

Datasets whose files are not there are built of generated files in their publishers' layouts, on the same
genes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wildtype as wt
from benchmarks.screen_build import write_archive
from tests.sources.yeast import trigenic_files
from tests.sources.yeast.stored import build
from wildtype.datasets.storage import save_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.files import cache_dir
from wildtype.organism.storage import is_current, save_organism
from wildtype.sources.catalogue import DATASETS, dataset_folder, is_built, load_organism, organism_folder

QUICK = (
    "model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "model.prior.weight=0",
    "model.trees.bags=0", "training.epochs=1", "training.members=1", "training.batch_size=1024",
    "baselines=[mean]", "run.progress=false", "run.replicates=2",
)  # fmt: skip
BUILT = cache_dir()
"""Taken before any fixture gives tests a cache of their own: yeast is not built in a test."""
NAMES = [name for name, organism in DATASETS.items() if organism == "yeast"]
GENERATED = ("yeast-digenic-costanzo2016-full", "yeast-trigenic-kuzmin2018", "yeast-trigenic-kuzmin")
"""Datasets of large archives; their layouts are generated."""


def _generate(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build a dataset of generated files in a cache of its own, on the built organism."""
    organism = load_organism("yeast")
    files = folder / "files"
    files.mkdir()
    if name == "yeast-digenic-costanzo2016-full":
        write_archive(files, organism.genes, rows=20_000)
    else:
        trigenic_files.write_2018(files)
        trigenic_files.write_2020(files)
    dataset = build(name, files, organism)
    monkeypatch.setenv("WILDTYPE_CACHE", str(folder / "cache"))
    save_organism(organism, organism_folder(organism.name))
    save_dataset(dataset, dataset_folder(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_a_named_dataset_answers_about_every_gene(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(BUILT))
    if not is_current(organism_folder("yeast")):
        pytest.skip(f"the organism yeast is not built in {cache_dir()}")
    if not is_built(name):
        if name not in GENERATED:
            pytest.skip(f"{name} is not built in {cache_dir()}")
        _generate(name, tmp_path, monkeypatch)
    rows = (
        [] if name in ("yeast-digenic-costanzo2010", "yeast-digenic-costanzo2016-full") else ["data.rows=300"]
    )
    if name == "yeast-morphology-vizeacoumar2010":
        rows = ["data.rows=6000"]  # of 90 traits, each of which needs a few test rows
    few = rows or ["data.listed=300", "data.crosses=200"]
    train(compose([f"data={name}", *QUICK, *few, f"run.folder={tmp_path / 'run'}"]))
    predictor = wt.load(tmp_path / "run")
    genes = load_organism("yeast").genes
    assert len(predictor.genes) == len(genes)
    order = max(int(p["min_order"]) for p in predictor.checkpoint.phenotypes)
    # As few genes as the phenotype is defined for: epsilon has two, tau three.
    first = genes.names[:order]
    sets = [[gene, *[other for other in first if other != gene][: order - 1]] for gene in genes]
    frame = predictor.predict(sets)
    essential = frame["note"].str.contains("is lethal")  # no interaction is defined of such a mutant
    for phenotype in predictor.phenotypes:
        assert np.isfinite(frame[phenotype][~essential]).all(), phenotype
