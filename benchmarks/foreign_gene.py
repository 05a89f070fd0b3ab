"""How well models predict strains with a foreign gene that no training strain carries, in silico."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.datasets import Dataset, Split
from wildtype.datasets.pinned import write_pinned
from wildtype.datasets.splits import rows_sha256
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.sources.catalogue import load_dataset

BASELINES = ("mean", "additive_ridge", "feature_ridge", "boosting")


def without_gene(dataset: Dataset, name: str, validation: str) -> Split:
    """Return a split whose test rows have one gene, and whose validation rows another."""
    table, genes = dataset.table, dataset.organism.genes
    test, held = (table.holding(table.gene == genes.find(gene)) for gene in (name, validation))
    return Split(
        name="any-unseen",
        seed=0,
        dataset_sha256=dataset.sha256,
        rows_sha256=rows_sha256(dataset),
        total=len(table),
        train=np.flatnonzero(~test & ~held),
        validation=np.flatnonzero(held & ~test),
        test=np.flatnonzero(test & ~held),
        dropped={"with both held-out genes": int((test & held).sum())},
        held_out_genes={"validation": (validation,), "test": (name,)},
    )


def bench_foreign_gene(
    genes: str = "pdc,pyc,xfp", phenotype: str = "fitness", epochs: int = 5, bags: int = 1, seed: int = 0
) -> dict[str, Any]:
    """Leave one foreign gene of ``ecoli-core-doses`` out after the other; the next one validates.

    Each gene has a seed of its own: ``seed`` plus its place among ``genes``. Rows are mutants with the
    gene; the score is Pearson's r, and the root mean squared error in units of the phenotype.
    """
    dataset = load_dataset("ecoli-core-doses").select([phenotype])
    names = genes.split(",")
    found: dict[str, Any] = {"phenotype": phenotype, "epochs": epochs}
    for place, name in enumerate(names):
        with tempfile.TemporaryDirectory() as folder:
            pinned = Path(folder) / "split.json"
            write_pinned(without_gene(dataset, name, names[(place + 1) % len(names)]), dataset, pinned)
            words = [
                "data.name=ecoli-core-doses", f"data.phenotypes=[{phenotype}]", f"split.pinned={pinned}",
                f"seed={seed + place}", f"training.epochs={epochs}", f"run.folder={folder}/run",
                "run.progress=false", "run.replicates=50", "model.table=false", "model.width=32",
                "model.heads=4",
                "model.head.heads=2", f"model.trees.bags={bags}", "training.batch_size=256",
                f"baselines=[{','.join(BASELINES)}]",
            ]  # fmt: skip
            (table,) = train(compose(words), dataset=dataset).tables().values()
            found[name] = {"rows": table.rows} | {
                score.model: {"pearson": score.pearson.value, "rmse": score.mse.value**0.5}
                for score in table.scores
            }
    return found
