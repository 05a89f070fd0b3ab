"""The number of threads is a function of model, cores and processes, and threads wait asleep."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.profiling.synthetic_problem import ProblemSizes, synthetic_step
from wildtype.training.config import TrainingConfig
from wildtype.training.thread_count import WORK_PER_THREAD, threads_for, threads_of_training, usable_cores
from wildtype.training.waiting import spinning, wait_passively


@pytest.mark.parametrize(
    ("share", "threads"), [(0.0, 1), (0.99, 1), (1.0, 1), (2.5, 2), (7.0, 7), (900.0, 8)]
)
def test_a_thread_for_every_share_of_the_work(share: float, threads: int) -> None:
    assert threads_for(share * WORK_PER_THREAD, 8) == threads


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.usefixtures("no_limit")
def test_small_models_take_one_thread_and_large_ones_share_the_cores() -> None:
    model = synthetic_step(
        CellTransformerConfig(width=64, layers=2, heads=4, features=False), ProblemSizes(50, 2, 200, 4, 2)
    ).model
    config = TrainingConfig(batch_size=2048)
    assert threads_of_training(config, model, 50, cores=16) == 1
    large = threads_of_training(config, model, 40_000, cores=16)
    assert large > 4
    # Tables with a row per gene multiply nothing: one of 50 rows is no weight that all genes share.
    assert threads_of_training(config, model, 40_000, cores=2) == 2
    assert threads_of_training(config, model, 40_000, cores=2, processes=4) == 1
    assert threads_of_training(TrainingConfig(threads=3), model, 50, cores=2) == 3
    assert threads_of_training(TrainingConfig(threads=3, deterministic=True), model, 50, cores=2) == 1
    assert threads_of_training(config, model, 50, cores=16, processes=4, accelerated=True) == 4


@pytest.mark.usefixtures("no_limit")
def test_a_graph_per_mutant_is_more_work() -> None:
    made = synthetic_step(DifferenceGNNConfig(width=32, layers=2), ProblemSizes(400, 2, 2000, 4, 2))
    config = TrainingConfig(batch_size=2048)
    many = threads_of_training(config, made.model, 400, cores=16)
    made.model.graph_per_mutant = False
    assert many > threads_of_training(config, made.model, 400, cores=16)


def test_the_users_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    model = synthetic_step(CellTransformerConfig(features=False), ProblemSizes(50, 2, 200, 4, 2)).model
    assert threads_of_training(TrainingConfig(), model, 10**6, cores=16) == 1


def test_cores_of_a_control_group(tmp_path: Path) -> None:
    all_of_them = usable_cores(tmp_path / "none")
    quota = tmp_path / "cpu.max"
    for text, cores in [
        ("max 100000", all_of_them),
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("", all_of_them),
    ]:
        quota.write_text(text)
        assert usable_cores(quota) == cores


def test_threads_sleep_unless_the_user_chose() -> None:
    for given in ({}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "5"}, {"KMP_BLOCKTIME": "0"}):
        environment = dict(given)
        wait_passively(environment)
        assert environment == (given or {"OMP_WAIT_POLICY": "passive"})


def test_spinning_threads_are_advised_against(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert (spinning(1), spinning(2)) == (False, True)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert not spinning(2)


LOADS = """
import sys
from wildtype.cli import main
try:
    sys.argv = ["wildtype", "--version"]
    main.main()
except SystemExit:
    pass
assert "torch" not in sys.modules
import torch, sklearn.ensemble, sklearn.utils._openmp_helpers
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="GNU's OpenMP of the wheels for Linux")
@pytest.mark.parametrize(
    ("given", "said"), [("", "'PASSIVE'"), pytest.param("active", "'ACTIVE'", marks=pytest.mark.slow)]
)
def test_the_command_line_lets_openmp_of_torch_and_of_sklearn_sleep(given: str, said: str) -> None:
    # Each library prints what it has read when it is loaded: one of torch, one of scikit-learn.
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | {
        "OMP_DISPLAY_ENV": "true"
    }
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    found = subprocess.run(
        [sys.executable, "-c", LOADS], env=environment, capture_output=True, text=True, check=True
    )
    policies = [line.split("=")[1].strip() for line in found.stderr.splitlines() if "OMP_WAIT_POLICY" in line]
    assert policies == [said] * 2
