"""The model for few rows, on small tables cut from real screens: against baselines, and its intervals.

Of every table, the best baseline of a split is that of the least squared error on its validation rows, which
is what a user could choose. Test rows are scored once. Needs the yeast datasets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.errors import ConfigError, did_you_mean
from wildtype.evaluation.conformal import Conformal
from wildtype.evaluation.metrics import pearson
from wildtype.experiments.baselines import baselines_of_run, predict_baseline
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.fitting import make_checkpoint, post_fit
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build
from wildtype.models.baselines import BASELINES
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.registry import model_for_rows
from wildtype.seeds import generator
from wildtype.sources.catalogue import load_dataset
from wildtype.training.fit import FitReport

Floats = NDArray[np.float64]
LEVEL = 0.9
"""What intervals promise."""


@dataclass(frozen=True)
class SmallTable:
    """So many rows of one phenotype of a dataset; with ``genes``, of mutants of so many genes alone."""

    dataset: str
    phenotype: str
    rows: int
    genes: int = 0

    def draw(self, seed: int) -> Dataset:
        """Return the table."""
        whole = load_dataset(self.dataset).select([self.phenotype])
        table, rng = whole.table, generator(seed, f"few rows of {self.dataset}")
        kept = np.ones(len(table), bool)
        if self.genes:
            inside = np.isin(table.gene, rng.choice(np.unique(table.gene), self.genes, replace=False))
            kept = np.bincount(table.row, weights=~inside, minlength=len(table)) == 0
        found = np.flatnonzero(kept)
        found = np.sort(rng.choice(found, min(self.rows, len(found)), replace=False))
        return replace(whole, table=table.take(found))


TABLES = {
    "fitness": SmallTable("yeast-fitness-costanzo2016", "fitness", 60),
    "epsilon": SmallTable("yeast-digenic-costanzo2010-stringent", "epsilon", 292),
    "resistance": SmallTable("yeast-xga-celaj2020", "drug resistance:cisplatin", 500),
    "metabolite": SmallTable("yeast-metabolome-mulleder2016", "amino acid:alanine", 800),
    "e-map": SmallTable("yeast-emap-schuldiner2005", "s_score", 2000, genes=75),
}


def bench_few_rows(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which tables; all by default.")
    ] = None,
    *,
    splits: Annotated[int, typer.Option(help="Random splits of every table.", min=2)] = 20,
    seed: Annotated[int, typer.Option(help="Of the rows of a table.")] = 1,
    draw: Annotated[int, typer.Option("--rows", help="Rows of every table; its own by default.", min=0)] = 0,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals",
            help="Coverage of intervals for 0.9 instead, each split of other rows of the screen.",
        ),
    ] = False,
) -> dict[str, Any]:
    """Compare the model for few rows with the best simple baseline, on small tables cut from real screens."""
    rows = []
    for name in names or list(TABLES):
        if name not in TABLES:
            raise ConfigError(f"there is no table {name!r}; {did_you_mean(name, TABLES, ', '.join(TABLES))}")
        table = replace(TABLES[name], rows=draw or TABLES[name].rows)
        if intervals:
            rows.append({"table": name, "rows": table.rows} | _intervals(table, splits, seed))
            continue
        dataset = table.draw(seed)
        found = list(_scores(dataset, splits))
        model, best = (np.array([each[i] for each in found]) for i in (0, 1))
        difference = model - best
        chosen, times = np.unique([each[2] for each in found], return_counts=True)
        rows.append(
            {
                "table": name,
                "rows": len(dataset),
                "r": float(model.mean()),
                "best_baseline_r": float(best.mean()),
                "difference": float(difference.mean()),
                "standard_error": float(difference.std(ddof=1) / np.sqrt(splits)),
                "mostly": str(chosen[times.argmax()]),
            }
        )
    return {"rows": rows}


def _scores(dataset: Dataset, splits: int) -> Iterator[tuple[float, float, str]]:
    """Yield the test correlations of the model and of the best baseline of every split, and its name."""
    for split in range(splits):
        config = _config(dataset, split)
        data = prepare(config, dataset)
        validation, test = data.part("validation"), data.part("test")
        best, error, r = "", np.inf, 0.0
        for name in baselines_of_run(list(BASELINES), data, every=True):
            if name not in BASELINES:
                continue  # closed forms choose nothing
            tested, held = predict_baseline(name, data, split, [validation])
            found = float(np.mean((held - validation.value) ** 2))
            if found < error:
                best, error, r = name, found, _correlation(tested, test.value)
        predicted = _fitted(config, data, split).predict_measured(test)
        yield _correlation(predicted, test.value), r, best


def _fitted(config: TrainConfig, data: RunData, seed: int) -> Checkpoint:
    model, tensors = build(config, data, seed)
    post_fit(config, data, tensors, [model], log=lambda text: None)
    return make_checkpoint(config, data, model, tensors, [FitReport.without_gradients()])


def _intervals(table: SmallTable, splits: int, seed: int) -> dict[str, float]:
    """Return the share of test rows that get an interval, and the coverage of theirs."""
    given, rows, covered = 0, 0, []
    for split in range(splits):
        dataset = table.draw(seed + split)
        config = _config(dataset, split)
        data = prepare(config, dataset)
        checkpoint, test = _fitted(config, data, split), data.part("test")
        around = Conformal(checkpoint).intervals(test, *checkpoint.predict_with_sd(test), LEVEL)
        low, high = around.low[:, 0], around.high[:, 0]  # a table has one phenotype
        known = np.isfinite(high)
        inside = (low <= test.value) & (test.value <= high)
        given, rows = given + int(known.sum()), rows + len(test)
        if known.any():
            covered.append(float(inside[known].mean()))
    error = float(np.std(covered, ddof=1) / len(covered) ** 0.5) if len(covered) > 1 else np.nan
    return {
        "with_interval": given / rows,
        "coverage": float(np.mean(covered)) if covered else np.nan,
        "standard_error": error,
    }


def _config(dataset: Dataset, seed: int) -> TrainConfig:
    return compose([f"data.name={dataset.name}", f"model={model_for_rows(len(dataset))}", f"seed={seed}"])


def _correlation(predicted: Floats, measured: NDArray[np.float32]) -> float:
    """Return Pearson's correlation; one number for all mutants has none, which counts as 0."""
    return pearson(measured.astype(np.float64), predicted) if np.ptp(predicted) > 1e-9 else 0.0
