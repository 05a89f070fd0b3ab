"""The split of a run on a dataset with a grid: the side of every cross, and crosses that are hidden."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import grid_of, hidden_crosses
from wildtype.datasets.crosses import CrossSplit, split_crosses
from wildtype.errors import ConfigError
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.mutants.grid import contains, pair_codes
from wildtype.sources.catalogue import load_dataset


def split_options(config: TrainConfig) -> dict[str, Any]:
    """Return the options of the split that are set, as `datasets.splits.make_split` takes them."""
    options = {f.name: getattr(config.split, f.name) for f in fields(config.split)}
    return {k: v for k, v in options.items() if k not in ("name", "seed", "pinned", "hide") and v is not None}


def split_seed(config: TrainConfig) -> int:
    """Return the seed of the split: that of the run where the split has none."""
    return config.seed if config.split.seed is None else config.split.seed


def cross_split(config: TrainConfig, dataset: Dataset) -> tuple[Dataset, CrossSplit, int]:
    """Return the dataset without its hidden crosses, the sides of the others, and how many are hidden.

    Raises
    ------
    ConfigError
        If the split is pinned, or a fraction of ``split.hide`` is not between 0 and 1.
    DatasetError, SplitError
        If a dataset of ``split.hide`` does not exist or fit, or the split cannot be drawn.
    """
    if config.split.pinned:
        raise ConfigError(
            f"split.pinned={config.split.pinned} names the side of listed rows, and a split of dataset "
            f"{dataset.name!r} is of all its crosses, listed or not: leave it out and set split.name"
        )
    grid, n = grid_of(dataset), len(dataset.organism.genes)
    hidden = np.zeros(0, np.int64)
    for name, fraction in config.split.hide.items():
        if not 0 < fraction <= 1:
            raise ConfigError(f"split.hide.{name}={fraction:g}: expected a fraction above 0 and at most 1")
        other = load_dataset(name, progress=config.run.progress)
        hidden = np.union1d(hidden, hidden_crosses(dataset, other, fraction))
    drawn = split_crosses(
        dataset, config.split.name, split_seed(config), hidden=hidden, **split_options(config)
    )
    if not hidden.size:
        return dataset, drawn, 0
    gene = dataset.table.matrix(2)
    kept = ~contains(hidden, pair_codes(gene[:, 0], gene[:, 1], n))
    # Taken out before anything else sees them: a hidden cross is unknown, neither 0 nor listed.
    rest = replace(dataset, table=dataset.table.take(kept), grid=grid.without(hidden))
    options = drawn.options | {f"hide {name}": fraction for name, fraction in config.split.hide.items()}
    return rest, replace(drawn, options=options), grid.counts()[0] - grid_of(rest).counts()[0]
