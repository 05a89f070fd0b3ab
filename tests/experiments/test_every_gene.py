"""Every named yeast dataset that is built: a model of it answers about all genes of the organism."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wildtype as wt
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.files import cache_dir
from wildtype.sources.catalogue import DATASETS, is_built, load_organism

QUICK = (
    "model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "model.prior.weight=0",
    "model.trees.bags=0", "training.epochs=1", "training.members=1", "training.batch_size=1024",
    "baselines=[mean]", "run.progress=false", "run.replicates=2",
)  # fmt: skip
BUILT = cache_dir()
"""Taken before any fixture gives tests a cache of their own: yeast is not built in a test."""
NAMES = [name for name, organism in DATASETS.items() if organism == "yeast"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_a_named_dataset_answers_about_every_gene(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(BUILT))
    if not is_built(name):
        pytest.skip(f"{name} is not built in {cache_dir()}")
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
    with_it = genes.names[0]
    sets = [[gene] if order < 2 else [gene, with_it if gene != with_it else genes.names[1]] for gene in genes]
    frame = predictor.predict(sets)
    essential = frame["note"].str.contains("is lethal")  # no interaction is defined of such a mutant
    for phenotype in predictor.phenotypes:
        assert np.isfinite(frame[phenotype][~essential]).all(), phenotype
