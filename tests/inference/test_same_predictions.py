"""The same mutant has the same prediction, in whatever batch, with whatever threads, in a forked process."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import wildtype as wt
from tests.experiments.test_models import run
from wildtype.inference.predictor import Predictor

PROMISED = 1e-6
"""Greatest difference between two predictions of one mutant, relative to the standard deviation of the
phenotype's training labels; docs/uncertainty.md promises it."""


@pytest.fixture(scope="module", params=["cell_transformer", "pair_screen"])
def predictor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    if request.param == "cell_transformer":
        found = wt.load(request.getfixturevalue("tiny_run"))
        assert found.checkpoint.known is not None
        return found
    return wt.load(run(request.param, tmp_path_factory.mktemp("same") / "run").path)


def sets_of(predictor: Predictor) -> list[list[str]]:
    names = predictor.checkpoint.genes.names[:12]
    return [list(pair) for pair in combinations(names, 2)]


def scaled(predictor: Predictor, sets: list[list[str]]) -> NDArray[np.float64]:
    frame = predictor.predict(sets)
    return np.asarray(frame["epsilon"], np.float64) / float(predictor.checkpoint.sd[0])


def test_one_by_one_and_in_a_batch(predictor: Predictor) -> None:
    sets = sets_of(predictor)
    alone = np.concatenate([scaled(predictor, [genes]) for genes in sets])
    assert np.abs(alone - scaled(predictor, sets)).max() <= PROMISED
    assert np.abs(alone - scaled(predictor, sets[::-1])[::-1]).max() <= PROMISED


def test_one_thread_and_two(predictor: Predictor) -> None:
    sets, before = sets_of(predictor) * 40, torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(scaled(predictor, sets))
    finally:
        torch.set_num_threads(before)
    assert np.abs(found[0] - found[1]).max() <= PROMISED


FORKED = """
import os, signal, sys
import torch
import wildtype as wt
model = wt.load(sys.argv[1])
torch.set_num_threads(2)
torch.randn(2_000_000).exp().sum()  # starts OpenMP's threads
expected = model.predict([["G001", "G002"]])
child = os.fork()
if not child:
    signal.alarm(60)
    torch.randn(2_000_000).exp().sum()
    same = abs(model.predict([["G001", "G002"]])["epsilon"] - expected["epsilon"]).max() < 1e-6
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_predicts(tiny_run: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(tiny_run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
