"""Runs of several phenotypes: one table for their mean, and the table of each on request."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run

WORDS = ["model.width=16", "model.heads=4", "model.layers=0", "model.head.heads=2", "training.epochs=1",
         "training.batch_size=128", "baselines=[mean,additive_ridge,feature_ridge]", "run.progress=false",
         "run.replicates=30", "data.name=tiny-growth"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("across") / "run"
    words = [*WORDS, "data.phenotypes=[fitness,epsilon]", f"run.folder={folder}"]
    return train(compose(words), dataset=tiny_dataset())


def test_the_mean_is_that_of_the_written_predictions(run: Run) -> None:
    across = run.across
    assert across is not None
    assert across.phenotype == "mean over 2 phenotypes"
    frame = pd.read_parquet(run.path / "predictions.parquet")
    for name in ("cell_transformer", "feature_ridge"):
        each = [np.corrcoef(part["value"], part[name])[0, 1] for _, part in frame.groupby("phenotype")]
        assert across[name].pearson.value == pytest.approx(np.mean(each), abs=1e-4)
        assert across[name].pearson.low <= across[name].pearson.value <= across[name].pearson.high
    assert across["mean"].undefined["pearson"] == "all predictions are equal"
    assert (run.path / "comparison.md").read_text().startswith("## mean over 2 phenotypes")


def test_evaluate_prints_one_table_and_each_on_request(run: Run) -> None:
    one, each = wildtype("evaluate", str(run.path)), wildtype("evaluate", str(run.path), "--each")
    assert one.stdout.count("95 % intervals from") == 1
    assert "mean over 2 phenotypes" in " ".join(one.stdout.split())
    assert each.stdout.count("95 % intervals from") == 2
    assert list(json.loads(wildtype("evaluate", str(run.path), "--json").stdout)) == [
        "mean over 2 phenotypes"
    ]
    both = json.loads(wildtype("evaluate", str(run.path), "--each", "--json").stdout)
    assert list(both) == ["fitness", "epsilon"]


def test_several_runs_are_summed_up_over_their_means(run: Run, tmp_path: Path) -> None:
    for name in ("comparison.json", "across.json"):
        record = json.loads((run.path / name).read_text())
        for table in [record] if name == "across.json" else record.values():
            table["seed"] = 1
        (tmp_path / name).write_text(json.dumps(record))
    (group,) = json.loads(wildtype("evaluate", str(run.path), str(tmp_path), "--json").stdout)
    assert (group["phenotype"], group["seeds"]) == ("mean over 2 phenotypes", [0, 1])
    words = ("evaluate", str(run.path), str(tmp_path), "--json", "--each")
    assert [group["phenotype"] for group in json.loads(wildtype(*words).stdout)] == ["fitness", "epsilon"]
    (tmp_path / "across.json").write_text("{")
    assert_one_sentence(wildtype("evaluate", str(tmp_path)), "across.json", "damaged")


def test_a_run_of_one_phenotype_has_no_mean_and_older_records_still_load(
    tiny_run: Path, tmp_path: Path
) -> None:
    assert Run(tiny_run).across is None
    assert "mean over" not in wildtype("evaluate", str(tiny_run)).stdout
    record = json.loads((tiny_run / "comparison.json").read_text())
    for score in record["epsilon"]["scores"]:
        del score["average_precision"]
    (tmp_path / "comparison.json").write_text(json.dumps(record))
    assert np.isnan(Run(tmp_path).comparisons["epsilon"].best.average_precision.value)
