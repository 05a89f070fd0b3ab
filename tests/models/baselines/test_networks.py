from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from wildtype.models.baselines import make_baseline
from wildtype.models.baselines.networks import Tokens
from wildtype.mutants import MutantTable


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embedding_mlp", "low_rank_bilinear"])
def test_beats_the_mean_on_planted_labels(name, world):
    train, validation, test = world.split()
    predicted = make_baseline(name).fit(world.organism, train, validation).predict(test)
    assert np.mean((predicted - test.value) ** 2) < 0.7 * np.var(test.value)


@pytest.mark.slow
def test_low_rank_bilinear_beats_additive_ridge_where_interactions_are_low_rank(module_world):
    train, validation, test = module_world.split()
    error = {}
    for name in ("low_rank_bilinear", "additive_ridge"):
        predicted = make_baseline(name).fit(module_world.organism, train, validation).predict(test)
        error[name] = np.mean((predicted - test.value) ** 2)
    assert error["low_rank_bilinear"] < 0.8 * error["additive_ridge"]


def test_tokens_mark_the_unseen_as_padding():
    train = MutantTable.from_sets([(0, 2), (5,)], kind=[0, 0, 1], condition=[0, 1])
    tokens = Tokens(train)
    assert tokens.size == 1 + 3 + 3 + 2
    found = tokens.matrix(MutantTable.from_sets([(2, 5, 7)], kind=[0, 0, 0], condition=[4]))
    assert found.tolist() == [[2, 3, 0, 5, 0, 0, 0]]


def test_the_package_loads_without_torch_or_sklearn():
    code = (
        "import sys, wildtype.models.baselines as b; b.make_baseline('embedding_mlp');"
        "sys.exit(int('torch' in sys.modules or 'sklearn' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
