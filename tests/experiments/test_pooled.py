"""Several run directories in one call: folds pooled, seeds averaged, external tests by group."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import wildtype
from tests.experiments.test_crosses import settings
from tests.experiments.test_external import outside
from tests.screened import screened_dataset
from wildtype.errors import ConfigError
from wildtype.evaluation.summary import Summary
from wildtype.experiments import data as module
from wildtype.experiments import external
from wildtype.experiments.pooled import summaries_of
from wildtype.experiments.run import train
from wildtype.experiments.stored import Run

N, SEEDS, FOLDS = 36, (0, 1), 2
MODEL = "cell_transformer"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Return two gene folds of each of two seeds, tested on hidden crosses and on another dataset."""
    folder = tmp_path_factory.mktemp("folds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load_dataset", lambda name, **options: outside())
        patch.setattr(external, "LEAST_ROWS", 20)
        for seed in SEEDS:
            for fold in range(FOLDS):
                config = settings(
                    f"run.folder={folder / f'{seed}-{fold}'}",
                    f"seed={seed}",
                    "split.name=unseen",
                    f"split.fold={fold}",
                    f"split.folds={FOLDS}",
                    "data.also_test=[outside]",
                    "data.phenotypes=[epsilon,negative]",
                    "baselines=[mean,additive_ridge]",
                    "model.trees.bags=0",
                )
                config.split.test = None
                train(config, dataset=screened_dataset(N))
    return [Run(folder / f"{seed}-{fold}") for seed in SEEDS for fold in range(FOLDS)]


def by_question(found: list[Summary]) -> dict[str, Summary]:
    return {one.phenotype: one for one in found}


def test_rows_of_folds_are_one_set_and_seeds_a_mean(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "LEAST_ROWS", 20)
    found = by_question(summaries_of(runs, each=True))
    frames = {
        seed: pd.concat([run.predictions for run in runs if run.path.name.startswith(f"{seed}-")])
        for seed in SEEDS
    }
    for phenotype in ("epsilon", "negative"):
        summary = found[phenotype]
        own = {seed: frame[frame["phenotype"] == phenotype] for seed, frame in frames.items()}
        assert summary.pooled is not None
        assert summary.seeds == SEEDS
        assert summary.pooled.rows == sum(map(len, own.values()))
        plain = [np.corrcoef(frame["value"], frame[MODEL])[0, 1] for frame in own.values()]
        spread = summary.models[MODEL]["pearson"]
        assert spread.mean == pytest.approx(np.mean(plain))
        assert spread.sd == pytest.approx(np.std(plain, ddof=1))
        estimate = summary.pooled[MODEL].pearson
        assert estimate.value == pytest.approx(np.mean(plain))
        assert estimate.low < estimate.value < estimate.high
        assert set(summary.pooled[MODEL].differences) == {"mean", "additive_ridge"}
        assert "folds 0, 1 of a seed are pooled" in summary.pooled.notes
    # Every gene of the screen that has pairs within a fold is unseen once per seed.
    held = [set(run.split["held_out_genes"]["test"]) for run in runs]
    for start in (0, FOLDS):
        one, two = held[start : start + FOLDS]
        assert one.isdisjoint(two)
        assert len(one | two) == N
    assert "log_loss" in found["negative"].pooled[MODEL].differences["mean"]  # type: ignore[index]


def test_external_tests_have_a_table_for_each_group(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "LEAST_ROWS", 20)
    found = by_question(summaries_of(runs))
    frames = {
        seed: pd.concat([run.external for run in runs if run.path.name.startswith(f"{seed}-")])
        for seed in SEEDS
    }
    base = "epsilon on outside"
    for group, column, value in (
        ("", "order", 2),
        (", one gene unseen", "unseen", 1),
        (", both unseen", "unseen", 2),
        (", screened, not listed", "screen", "screened, not listed"),
        (", listed", "screen", "listed"),
        (", not crossed", "screen", "not crossed"),
    ):
        summary = found[f"{base}{group}"]
        own = [frame[frame[column] == value] for frame in frames.values()]
        expected = [float(np.sqrt(np.mean((f["value"] - f[MODEL]) ** 2))) for f in own]
        assert summary.models[MODEL]["rmse"].mean == pytest.approx(np.mean(expected))
        assert summary.pooled is not None
        assert summary.pooled.rows == sum(map(len, own))
        for other in ("mean", external.ZERO):
            assert "rmse" in summary.pooled[MODEL].differences[other]
    assert found[base].pooled is not None
    assert "negative/average_precision" in found[base].models[MODEL]
    # Means over phenotypes have no rows: each fold by itself.
    across = [name for name in found if name.startswith("mean over")]
    assert len(across) == 1
    splits = {one.split for one in summaries_of(runs) if one.phenotype == across[0]}
    assert splits == {f"unseen, fold {fold}" for fold in range(FOLDS)}


def test_pairs_have_a_table_by_number_of_unseen_genes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "LEAST_ROWS", 5)
    config = settings(
        f"run.folder={tmp_path / 'run'}",
        "split.name=any-unseen",
        "split.fold=0",
        "split.folds=3",
        "data.phenotypes=[epsilon]",
        "model.trees.bags=0",
    )
    config.split.test = None
    run = train(config, dataset=screened_dataset(N))
    frame, held = run.predictions, set().union(*run.split["held_out_genes"].values())
    assert frame is not None
    count = [sum(name.partition(":")[0] in held for name in genes.split(",")) for genes in frame["genes"]]
    np.testing.assert_array_equal(frame["unseen"], count)
    found = by_question(summaries_of([run], each=True))
    for value, group in ((1, "one gene unseen"), (2, "both unseen")):
        own = frame[frame["unseen"] == value]
        summary = found[f"epsilon, {group}"]
        assert summary.pooled is not None
        assert summary.pooled.rows == len(own)
        expected = np.corrcoef(own["value"], own[MODEL])[0, 1]
        assert summary.models[MODEL]["pearson"].mean == pytest.approx(expected)


def test_the_command_prints_one_table_per_question(runs: list[Run]) -> None:
    folders = [str(run.path) for run in runs]
    printed = json.loads(wildtype("evaluate", *folders, "--each", "--json").stdout)
    assert {one["phenotype"] for one in printed} >= {"epsilon", "negative", "epsilon on outside"}
    assert all(one["pooled"]["scores"] for one in printed)
    markdown = wildtype("evaluate", *folders, "--each", "--markdown").stdout
    assert markdown.count(f"{MODEL} minus each baseline, paired by resample") == len(printed)
    plain = wildtype("evaluate", *folders, "--each").stdout
    assert "folds 0, 1 of a seed are pooled" in " ".join(plain.split())


def test_the_same_fold_twice_is_refused(runs: list[Run]) -> None:
    with pytest.raises(ConfigError, match=f"both trained {MODEL}"):
        summaries_of([runs[0], runs[0]], each=True)
