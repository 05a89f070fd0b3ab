"""How well models predict strains with a foreign gene that no training strain carries, in silico."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Split
from wildtype.datasets.pinned import write_pinned
from wildtype.datasets.splits import rows_sha256
from wildtype.evaluation.pooled import pool
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.seeds import generator
from wildtype.sources.catalogue import load_dataset

BASELINES = ("mean", "additive_ridge", "feature_ridge", "boosting")


def foreign_groups(dataset: Dataset, groups: int, seed: int) -> list[tuple[str, ...]]:
    """Return the foreign genes that a dataset has rows of, in equal groups drawn by the seed."""
    foreign = dataset.organism.foreign
    assert foreign is not None, f"organism {dataset.organism.name!r} has no foreign genes"
    measured = dataset.measured_genes()
    names = [dataset.organism.genes.names[gene] for gene in measured[foreign[measured]]]
    drawn = generator(seed, "foreign genes").permutation(len(names))
    return [tuple(names[i] for i in sorted(part)) for part in np.array_split(drawn, groups)]


def without_genes(dataset: Dataset, test: Sequence[str], validation: Sequence[str]) -> Split:
    """Return a split whose test rows have one of some genes, and whose validation rows one of others."""
    table, genes = dataset.table, dataset.organism.genes
    tests, held = (
        table.holding(np.isin(table.gene, [genes.find(gene) for gene in group]))
        for group in (test, validation)
    )
    return Split(
        name="any-unseen",
        seed=0,
        dataset_sha256=dataset.sha256,
        rows_sha256=rows_sha256(dataset),
        total=len(table),
        train=np.flatnonzero(~tests & ~held),
        validation=np.flatnonzero(held & ~tests),
        test=np.flatnonzero(tests & ~held),
        dropped={"with held-out genes of test and of validation": int((tests & held).sum())},
        held_out_genes={"validation": tuple(validation), "test": tuple(test)},
    )


def bench_foreign_gene(
    phenotype: str = "fitness",
    groups: int = 4,
    seed: int = 0,
    seeds: int = 3,
    epochs: int = 5,
    rows: int = 0,
    replicates: int = 1000,
    dataset: str = "ecoli-core-doses",
) -> dict[str, Any]:
    """Hold every foreign gene out once per seed, a group of them at a time; the next group validates.

    ``seeds`` seeds from ``seed`` on. Scores are of the test rows of all groups together, means over seeds;
    intervals and differences are a bootstrap of genes, paired. ``rows`` thins the rows without a foreign gene
    to about so many (0: all).
    """
    whole = load_dataset(dataset).select([phenotype])
    frames: dict[int, pd.DataFrame] = {}
    for one in range(seed, seed + seeds):
        data = _thinned(whole, rows, one) if rows else whole
        parts = foreign_groups(data, groups, one)
        tested = []
        for place, test in enumerate(parts):
            with tempfile.TemporaryDirectory() as folder:
                run = _train(data, test, parts[(place + 1) % groups], one, epochs, Path(folder))
                tested.append(run.predictions)
                (table,) = run.tables().values()
        frames[one] = pd.concat(tested, ignore_index=True)
    summary = pool(frames, replace(table, replicates=replicates))
    comparison = summary.pooled
    assert comparison is not None
    found = {
        score.model: {
            "pearson": _number(score.pearson.value),
            "low": _number(score.pearson.low),
            "high": _number(score.pearson.high),
            "rmse": math.sqrt(score.mse.value),
        }
        for score in comparison.scores
    }
    best = next(score.model for score in comparison.scores if score.model in BASELINES)
    difference = comparison["cell_transformer"].differences[best]["pearson"]
    return {
        "phenotype": phenotype,
        "rows": len(frames[seed]),
        "other_rows": int((~_carrying(data)).sum()),
        "models": found,
        f"cell_transformer minus {best}": {
            "pearson": difference.value,
            "low": difference.low,
            "high": difference.high,
        },
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN


def _carrying(dataset: Dataset) -> NDArray[np.bool_]:
    """Return which rows [m] have a foreign gene."""
    foreign = dataset.organism.foreign
    assert foreign is not None
    return dataset.table.holding(foreign[dataset.table.gene])


def _thinned(dataset: Dataset, rows: int, seed: int) -> Dataset:
    table, carries = dataset.table, _carrying(dataset)
    native = np.flatnonzero(~carries)
    drawn = generator(seed, "thinned").choice(native, min(rows, native.size), replace=False)
    return replace(dataset, table=table.take(np.sort(np.concatenate([np.flatnonzero(carries), drawn]))))


def _train(
    data: Dataset, test: Sequence[str], validation: Sequence[str], seed: int, epochs: int, folder: Path
) -> Run:
    pinned = folder / "split.json"
    write_pinned(without_genes(data, test, validation), data, pinned)
    words = [
        f"data.name={data.name}", f"data.phenotypes=[{data.phenotypes[0].name}]", f"split.pinned={pinned}",
        f"seed={seed}", f"training.epochs={epochs}", f"run.folder={folder}/run", "run.progress=false",
        "run.replicates=20", "model.table=false", "model.width=32", "model.heads=4", "model.head.heads=2",
        "model.trees.bags=1", "training.batch_size=256", f"baselines=[{','.join(BASELINES)}]",
    ]  # fmt: skip
    return train(compose(words), dataset=data)
