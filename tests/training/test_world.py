from __future__ import annotations

import pytest

from wildtype.errors import ConfigError
from wildtype.training.world import World, require_single_process, world

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
SRUN = {
    "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_NUM_NODES": "3",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, World()),
        (TORCHRUN, World(3, 4, 2, "torchrun")),
        (SRUN, World(5, 6, 2, "srun")),
        ({"SLURM_NTASKS": "6", "SLURM_STEP_NUM_TASKS": "1"}, World()),
        ({**SRUN, **TORCHRUN}, World(3, 4, 2, "torchrun")),
    ],
)
def test_who_started_how_many(said: dict[str, str], found: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert world() == found


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"WORLD_SIZE": "2"}, "RANK=None, WORLD_SIZE='2'.*torchrun, which sets all three"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "SLURM_PROCID=None.*srun, which sets all three"),
        ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "3,2,1"}, "srun started 3,2,1 processes.*equally many"),
    ],
)
def test_half_of_it_is_an_error(said: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=says):
        world()


def test_what_takes_one_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    require_single_process("a search")
    for name, value in SRUN.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="srun started 6 processes, and a search runs in one"):
        require_single_process("a search")
