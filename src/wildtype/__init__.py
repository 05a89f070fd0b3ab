"""wildtype: encode the wild type once, then score every mutant.

Heavy modules are imported at their first use: ``import wildtype`` loads neither torch nor cobra.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.models.registry import DEFAULT_MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wildtype.datasets import Dataset
    from wildtype.experiments.finished import FinishedRun
    from wildtype.inference.predictor import Predictor
    from wildtype.organism import Organism, Relation

    __version__: str

__all__ = ["fit", "load", "load_dataset", "load_organism", "load_run", "read_relation"]


def __getattr__(name: str) -> str:
    # Read when asked for: it takes as long as the rest of this module.
    if name == "__version__":
        from importlib import metadata

        return metadata.version("wildtype")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_organism(name: str) -> Organism:
    """Return an organism by name, with ``.genes``, ``.graphs``, ``.metabolism`` and ``.features``.

    Raises
    ------
    DatasetError
        If there is no such organism, or it must first be built from publishers' files.
    """
    from wildtype.sources.catalogue import load_organism

    return load_organism(name)


def load_dataset(name: str) -> Dataset:
    """Return a dataset by name, with ``.table``, ``.phenotypes``, ``.split(name, seed)`` and
    ``.to_pandas()``.

    Raises
    ------
    DatasetError
        If there is no such dataset, or it must first be built from publishers' files.
    """
    from wildtype.sources.catalogue import load_dataset

    return load_dataset(name)


def read_relation(path: str | Path, organism: Organism, **options: Any) -> Relation:
    """Return a gene graph of an organism, read from an edge list, for ``organism.with_relation``.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or a workbook, with or without a header.
    organism : Organism
        Whose genes it names.
    **options
        ``name``, ``columns``, ``weight``, ``directed``, ``header``, ``separator``, ``source``: what is not
        given is found in the file (``wildtype.sources.user_organisms.edges.read_relation``).

    Raises
    ------
    SourceError
        With every row that cannot be read.
    """
    from wildtype.sources.user_organisms.edges import read_relation

    return read_relation(path, organism, **options)


def fit(
    model: str = DEFAULT_MODEL,
    dataset: Dataset | str = "ecoli-core-growth",
    seed: int = 0,
    plugin: str | Path | Sequence[str | Path] = (),
    **settings: Any,
) -> FinishedRun:
    """Train a model, compare it with every baseline on the same split, and save the run.

    Parameters
    ----------
    model : str
        ``cell_transformer``, ``pair_screen``, ``gaussian_process``, ``dango``, ``difference_gnn``, or a model
        that ``plugin`` registers.
    dataset : Dataset or str
        A dataset, or the name of one.
    seed : int
        Random seed of the split, the initial weights and the order of mutants.
    plugin : path or sequence of path
        Python files that register models or baselines.
    **settings
        Further settings as on the command line, dots written as two underscores: ``split__name="unseen"``,
        ``training__epochs=5``, ``baselines=[]``. The run is written to ``run__folder``, or to a directory
        below ``runs`` that is named after dataset, split, model and seed.

    Raises
    ------
    ConfigError, DatasetError, SplitError, SourceError, OutputError
        If a setting, the dataset, the split or a file that settings name is not usable, or the run directory
        cannot be written.
    CheckpointError
        If the run to start from cannot be loaded.
    DivergedError
        If the loss is not finite.
    """
    from wildtype.experiments.finished import FinishedRun
    from wildtype.experiments.run import train
    from wildtype.experiments.settings.compose import compose
    from wildtype.plugins import load_plugins

    load_plugins(plugin)
    name = dataset if isinstance(dataset, str) else dataset.name
    overrides = [f"data={name}", f"model={model}", f"seed={seed}"]
    overrides += [f"{key.replace('__', '.')}={_written(value)}" for key, value in settings.items()]
    run = train(compose(overrides), dataset=None if isinstance(dataset, str) else dataset)
    return FinishedRun(run.path, fitted=run.fitted)


def load_run(path: str | Path, *, plugin: str | Path | Sequence[str | Path] = ()) -> FinishedRun:
    """Return a finished run, with ``.evaluate()``, ``.explain()``, ``.plot()`` and ``.write_report()``.

    Parameters
    ----------
    path : path
        The run directory.
    plugin : path or sequence of path
        The plug-in files that the run was trained with.

    Raises
    ------
    CheckpointError
        If it holds no finished run, or is damaged.
    ConfigError
        If a plug-in file cannot be read.
    """
    from wildtype.experiments.finished import FinishedRun
    from wildtype.plugins import load_plugins

    load_plugins(plugin)
    run = FinishedRun(Path(path))
    _ = run.comparisons  # a run that is not finished is refused here
    return run


def load(path: str | Path, *, plugin: str | Path | Sequence[str | Path] = ()) -> Predictor:
    """Return the predictor of a run or checkpoint directory.

    Parameters
    ----------
    path : path
        The directory.
    plugin : path or sequence of path
        The plug-in files that the run was trained with. A checkpoint never loads them by itself.

    Raises
    ------
    CheckpointError
        If it is missing, damaged or of an unknown format, or its plug-in is not given.
    """
    from wildtype.inference.predictor import load
    from wildtype.plugins import load_plugins

    load_plugins(plugin)
    return load(path)


def _written(value: Any) -> str:
    """Write a Python value as a setting on the command line."""
    from wildtype.experiments.settings.overrides import quoted

    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ",".join(_written(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_written(item)}" for key, item in value.items()) + "}"
    text = "null" if value is None else str(value)
    # Hydra's grammar gives a meaning to commas, brackets and outer spaces, except between quotes.
    return text if re.fullmatch(r"[\w./+-]+", text, re.ASCII) else quoted(text)
