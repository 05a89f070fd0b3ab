"""Genes that are new to one screen and were measured in another: what the other screen adds.

Runs are pairs of equal seed and fold of a split that hides genes: one that looks at other screens
(``data.screens`` with ``data.unseen_in_screens=true``), and one that does not. Test rows are grouped by what
the other screens measured of them. A pair that one of them measured is *replication*; of one that none did,
but whose new genes they have, it is *transfer*. Genes are new that the split hides; of a split that hides
none, pairs of known genes are compared. Predictions are stored: no run is trained again. A list of
significant pairs is predicted anew, since a run tests a sample of crosses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import wildtype
from wildtype.errors import ConfigError
from wildtype.evaluation.bootstrap import bootstrap, find_clusters, interval
from wildtype.evaluation.metrics import (
    Statistic,
    Undefined,
    among,
    average_precision_statistic,
    mean_of,
    pearson_statistic,
)
from wildtype.evaluation.predicted_rows import gene_sets
from wildtype.experiments.folder import EXTERNAL
from wildtype.experiments.settings.stored import read_settings
from wildtype.files import read_json
from wildtype.sources.catalogue import load_dataset

Mask = NDArray[np.bool_]
NEGATIVE = -0.08
"""Below it, ε is a negative interaction."""
LEAST = 200
"""Fewest rows of a group that has a row of its own, over all seeds and folds."""
METRICS = ("r", "average precision")
SAME = ["genes", "kinds", "value"]
"""Columns by which the rows of two runs are the same."""
MODEL = "pair_screen"
SPLIT = "split.json"


def bench_transfer(
    runs: Annotated[list[Path], typer.Argument(help="Run directories: with and without data.screens.")],
    *,
    phenotype: Annotated[str, typer.Option(help="Which phenotype of the test rows.")] = "epsilon",
    listed: Annotated[
        str, typer.Option(help="Predict the phenotype of all rows of this dataset with a new gene instead.")
    ] = "",
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates behind the intervals.", min=1)] = 300,
    seed: Annotated[int, typer.Option(help="Of the resamples.")] = 0,
) -> dict[str, Any]:
    """Compare runs that look at other screens with runs that do not, by what those measured of the rows."""
    with_screens, alone = _by_seed_and_fold(runs)
    screens = Measured.of(with_screens)
    rows = []
    for source, frame in _joined(with_screens, alone, phenotype, listed):
        for group, mask in screens.groups(frame):
            if (n := int(mask.sum())) >= LEAST:
                row = {"labels": source, "rows": group, "n": n}
                rows.append(row | _scores(frame[mask], replicates, seed))
    return {"screens": list(screens.names), "seeds": sorted({key[0] for key in alone}), "rows": rows}


@dataclass(frozen=True, eq=False)
class Measured:
    """What some screens measured: their names, pairs of genes and genes."""

    names: tuple[str, ...]
    pairs: frozenset[tuple[str, ...]]
    genes: frozenset[str]

    @classmethod
    def of(cls, runs: Mapping[tuple[int, int | None], Path]) -> Measured:
        """Return what the screens of some runs measured; raises ``ConfigError`` where they differ."""
        names = {tuple(read_settings(run / "settings.json").data.screens) for run in runs.values()}
        if len(names) != 1:
            raise ConfigError("the runs look at different screens: give runs of the same data.screens")
        (chosen,) = names
        sets = {
            tuple(sorted(text.split(","))) for name in chosen for text in load_dataset(name).to_pandas().genes
        }
        pairs = frozenset(pair for pair in sets if len(pair) == 2)
        return cls(chosen, pairs, frozenset(gene for pair in pairs for gene in pair))

    def groups(self, frame: pd.DataFrame) -> Iterator[tuple[str, Mask]]:
        """Yield a name and the rows of every group, by how many new genes they have and who has them.

        The first group of a number of new genes is all of its rows.
        """
        genes = [tuple(sorted(text.split(","))) for text in frame["genes"]]
        measured = np.array([pair in self.pairs for pair in genes], bool)
        elsewhere = np.array([len(self.genes.intersection(new)) for new in frame["new"]], int)
        for count, text in enumerate(("no new gene", "new gene", "two new genes")):
            rows = frame["new"].map(len).to_numpy() == count
            yield f"{text}, all rows", rows
            yield f"{text}, pair measured elsewhere (replication)", rows & measured
            if not count:
                yield f"{text}, pair not measured elsewhere", rows & ~measured
                continue
            yield f"{text} elsewhere, pair not measured (transfer)", rows & (elsewhere == count) & ~measured
            if count == 2:
                yield f"{text}, one of them elsewhere", rows & (elsewhere == 1)
            yield f"{text}, {'not' if count == 1 else 'neither'} elsewhere", rows & (elsewhere == 0)


def _by_seed_and_fold(
    runs: Sequence[Path],
) -> tuple[dict[tuple[int, int | None], Path], dict[tuple[int, int | None], Path]]:
    """Return the runs with other screens and those without, by seed and fold."""
    with_screens: dict[tuple[int, int | None], Path] = {}
    alone: dict[tuple[int, int | None], Path] = {}
    for run in runs:
        config = read_settings(run / "settings.json")
        side, key = with_screens if config.data.screens else alone, (config.seed, config.split.fold)
        if key in side:
            raise ConfigError(f"{side[key]} and {run} are of one seed and fold: leave one of them out")
        side[key] = run
    if not alone or with_screens.keys() != alone.keys():
        raise ConfigError(
            f"seeds and folds of runs with data.screens are {sorted(with_screens)}, and of those without "
            f"{sorted(alone)}: give both for each"
        )
    return with_screens, alone


def _joined(
    with_screens: Mapping[tuple[int, int | None], Path],
    alone: Mapping[tuple[int, int | None], Path],
    phenotype: str,
    listed: str,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the source of labels and the rows of all seeds and folds with both predictions."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for key, run in with_screens.items():
        ours, theirs = (
            {listed: _listed_rows(folder, phenotype, listed)} if listed else _rows(folder, phenotype)
            for folder in (run, alone[key])
        )
        held = {gene for part in _held_out(run).values() for gene in part}
        for source in [name for name in ours if name in theirs]:
            both = ours[source].merge(theirs[source], on=SAME, suffixes=("", "_alone"))
            if not len(both) == len(ours[source]) == len(theirs[source]):
                raise ConfigError(
                    f"{run} and {alone[key]} were tested on different {source}: train both on one split"
                )
            new = both["genes"].map(lambda text, held=held: tuple(held.intersection(text.split(","))))
            parts.setdefault(source, []).append(both.assign(seed=key[0], new=new))
    for source, found in parts.items():
        yield source, pd.concat(found, ignore_index=True)


def _rows(run: Path, phenotype: str) -> dict[str, pd.DataFrame]:
    """Return the rows of a phenotype that a run was tested on, by the source of their labels."""
    frames = {"test rows": pd.read_parquet(run / "predictions.parquet")}
    if (run / EXTERNAL).exists():
        frames |= {str(name): part for name, part in pd.read_parquet(run / EXTERNAL).groupby("dataset")}
    # Of a split that hides genes, what was tested of known genes has no part in the question.
    hides = bool(_held_out(run))

    def asked(frame: pd.DataFrame) -> pd.DataFrame:
        of_genes = (frame["unseen"] > 0) == hides
        chosen: pd.DataFrame = frame[
            (frame["phenotype"] == phenotype) & of_genes & np.isfinite(frame["value"])
        ]
        return chosen

    return {name: asked(frame) for name, frame in frames.items()}


def _listed_rows(run: Path, phenotype: str, name: str) -> pd.DataFrame:
    """Return the rows of a dataset with a gene that the run tested as new, and what the run says of them."""
    frame, tested = load_dataset(name).to_pandas(), set(_held_out(run)["test"])
    new = frame["genes"].map(lambda text: not tested.isdisjoint(text.split(",")))
    # A value that a table has twice would be joined with itself.
    frame = frame[new].drop_duplicates(SAME)
    predictor = wildtype.load(run)
    if phenotype not in predictor.phenotypes:
        raise ConfigError(
            f"phenotype={phenotype!r} is none of {run}; known: {', '.join(predictor.phenotypes)}"
        )
    mutants = [
        [f"{gene}:{kind}" for gene, kind in zip(genes.split(","), kinds.split(","), strict=True)]
        for genes, kinds in zip(frame["genes"], frame["kinds"], strict=True)
    ]
    # The model's numbers, as of its test rows: `predict` says nothing of an essential gene named as deleted.
    said = predictor.checkpoint.predict(predictor.table(mutants))
    return frame[SAME].assign(**{MODEL: said[:, predictor.phenotypes.index(phenotype)]})


def _held_out(run: Path) -> dict[str, list[str]]:
    """Return the genes that the split of a run hides, by side."""
    held: dict[str, list[str]] = read_json(run / SPLIT)["held_out_genes"]
    return held


def _scores(frame: pd.DataFrame, replicates: int, seed: int) -> dict[str, Any]:
    """Return both models' metrics and their differences: means over seeds, intervals over genes."""
    columns = {"with screens": MODEL, "alone": f"{MODEL}_alone"}
    clusters = find_clusters(gene_sets(frame["genes"])[0], "genes")
    equal = np.ones((len(frame), 1))
    out: dict[str, Any] = {}
    for metric in METRICS:
        try:
            statistics = {
                name: mean_of(
                    [
                        among((frame["seed"] == seed).to_numpy(), _statistic(metric, part, column))
                        for seed, part in frame.groupby("seed")
                    ]
                )
                for name, column in columns.items()
            }
        except Undefined:  # a group without negative interactions, say
            continue
        drawn = bootstrap(statistics, clusters, replicates=replicates, seed=seed)
        value = {name: float(of(equal)[0]) for name, of in statistics.items()}
        low, high = interval(drawn["with screens"] - drawn["alone"])
        out |= {f"{name} {metric}": x for name, x in value.items()}
        out |= {f"{metric} difference": value["with screens"] - value["alone"]}
        out |= {f"{metric} low": low, f"{metric} high": high}
    return out


def _statistic(metric: str, part: pd.DataFrame, column: str) -> Statistic:
    truth, predicted = part["value"].to_numpy(), part[column].to_numpy(np.float64)
    if metric == "r":
        return pearson_statistic(truth, predicted)
    return average_precision_statistic(truth < NEGATIVE, -predicted)


def shown(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the bench for a table: differences with their intervals in brackets."""

    def difference(row: Mapping[str, Any], metric: str) -> str:
        if f"{metric} difference" not in row:
            return "–"
        value, low, high = (row[f"{metric} {what}"] for what in ("difference", "low", "high"))
        return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"

    figures = [f"{name} {metric}" for metric in METRICS for name in ("with screens", "alone")]
    return [
        {name: row[name] for name in ("labels", "rows", "n")}
        | {name: row.get(name, "–") for name in figures}
        | {f"{metric} difference": difference(row, metric) for metric in METRICS}
        for row in rows
    ]
