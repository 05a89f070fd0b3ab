from __future__ import annotations

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.summary import summarise
from wildtype.report.comparison_tables import summary_to_markdown


def comparison(
    seed: int, split: str = "random", model: str = "cell_transformer", size: int = 100
) -> Comparison:
    dataset = tiny_dataset().select(["epsilon"])
    rows = np.arange(size)
    noise = np.random.default_rng(seed).normal(size=size) * 0.1
    truth = dataset.table.value[rows].astype(float)
    predictions = {model: truth + noise, "boosting": truth + 3 * noise, "mean": np.zeros(size)}
    return evaluate_predictions(
        dataset,
        rows,
        predictions,
        phenotype="epsilon",
        split=split,
        replicates=20,
        seed=seed,
        seconds={"boosting": 1.0 + seed},
    )


def test_mean_and_sample_sd_over_runs() -> None:
    runs = [comparison(seed) for seed in range(3)]
    (summary,) = summarise(runs)
    values = [run["boosting"].pearson.value for run in runs]
    assert summary.models["boosting"]["pearson"].mean == pytest.approx(np.mean(values))
    assert summary.models["boosting"]["pearson"].sd == pytest.approx(np.std(values, ddof=1))
    assert summary.seconds["boosting"] == 2.0
    assert list(summary.models) == ["cell_transformer", "boosting", "mean"]
    assert summary.wins == {"cell_transformer": 3, "boosting": 0, "mean": 0}
    assert np.isnan(summary.models["mean"]["pearson"].mean)


def test_questions_are_kept_apart() -> None:
    summaries = summarise([comparison(0), comparison(0, "unseen"), comparison(1)])
    assert [(s.split, len(s.seeds)) for s in summaries] == [("random", 2), ("unseen", 1)]
    assert np.isnan(summaries[1].models["boosting"]["pearson"].sd)


def test_models_of_one_seed_stand_in_one_table() -> None:
    runs = [comparison(seed, model=name) for seed in (0, 1) for name in ("dango", "difference_gnn")]
    (summary,) = summarise(runs)
    assert summary.seeds == (0, 1)
    assert set(summary.models) == {"dango", "difference_gnn", "boosting", "mean"}
    assert all(spread["pearson"].runs == 2 for name, spread in summary.models.items() if name != "mean")
    assert sum(summary.wins.values()) == 2


def test_runs_that_cannot_stand_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="both trained cell_transformer"):
        summarise([comparison(0), comparison(0)])
    with pytest.raises(ConfigError, match="different rows"):
        summarise([comparison(0), comparison(0, model="dango", size=90)])


def test_markdown_has_one_row_per_model() -> None:
    text = summary_to_markdown(summarise([comparison(0), comparison(1)])[0])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert len({row.count("|") for row in rows}) == 1
