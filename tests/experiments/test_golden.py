"""Every model reaches on the tiny organism what it reached when `golden.json` was written.

A figure that moves here moves for users too: write it anew only with a reason for the change log,

    WILDTYPE_GOLDEN=write pytest tests/experiments/test_golden.py -m slow
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.test_models import SMALL
from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.models.baselines import BASELINES
from wildtype.models.ensemble import class_of
from wildtype.models.registry import MODELS

GOLDEN = Path(__file__).with_name("golden.json")
TOLERANCE = {"pearson": 0.02, "rmse": 0.003, "prediction": 0.005}
"""Between machines, orders of sums differ, and training makes more of that. Labels have an sd of 0.066."""
STEPS = 3
"""Times as much is let pass of trees, where a sum that differs a little may fall on a cut's other side."""
ALONE = [name for name, baseline in BASELINES.items() if not baseline.reads_screens]
"""Baselines that need no other screen."""
CASES = {
    **{name: [f"model={name}", *SMALL[name], "baselines=[]"] for name in MODELS},
    "cell_transformer, everything on": [
        *SMALL["cell_transformer"], "model.trees.bags=1", "model.evidence.two=4", "training.members=2",
        "model.head.direct=[sum,product,partners]", "model.head.additive=true", "baselines=[]",
    ],
    "baselines": [*SMALL["cell_transformer"], f"baselines=[{','.join(ALONE)}]"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", list(CASES))
def test_golden(case: str, tmp_path: Path) -> None:
    words = [
        *CASES[case], "training.epochs=4", "training.batch_size=64", "training.deterministic=true",
        "data.name=tiny-growth", f"run.folder={tmp_path / 'run'}", "run.progress=false", "run.replicates=20",
    ]  # fmt: skip
    done = train(compose(words), dataset=tiny_dataset())
    found = {}
    for score in done.comparisons["epsilon"].scores:
        pearson = score.pearson.value
        found[score.model] = {
            "pearson": None if np.isnan(pearson) else round(pearson, 6),
            "rmse": round(score.mse.value**0.5, 6),
        }
    sets = [["G001", "G002"], ["G003", "G004", "G005"], ["G001", "G023:reduced"]]
    model = done.predictor.checkpoint.model
    sets = [genes for genes in sets if class_of(model).scored(np.array([len(genes)]))[0]]
    predicted = done.predictor.predict(sets)["epsilon"].round(6).tolist()
    found[model.config.name]["prediction"] = predicted
    if os.environ.get("WILDTYPE_GOLDEN") == "write":
        golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        GOLDEN.write_text(json.dumps(golden | {case: found}, indent=1, sort_keys=True) + "\n")
    golden = json.loads(GOLDEN.read_text())[case]
    of_trees = case == "pair_screen" or any(word.startswith("model.trees") for word in words)
    times = STEPS if of_trees else 1
    assert golden.keys() == found.keys()
    for model, figures in golden.items():
        assert figures.keys() == found[model].keys()
        for name, value in figures.items():
            if value is None:
                assert found[model][name] is None
            else:
                np.testing.assert_allclose(
                    found[model][name],
                    value,
                    rtol=0,
                    atol=times * TOLERANCE[name],
                    err_msg=f"{model}, {name}",
                )


@pytest.mark.slow
def test_every_model_has_its_golden_figures() -> None:
    golden = json.loads(GOLDEN.read_text())
    assert set(golden) == set(CASES)
    assert set(golden["baselines"]) == {*ALONE, "cell_transformer"}
