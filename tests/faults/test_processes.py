"""A process of several that train one model is killed: the others end in a sentence, at any phase."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.in_processes import INSTANTS
from tests.training.test_micro_batches import words

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHORT = {("step", "1"), ("rendezvous", "0")}
CASES = [
    pytest.param(instant, rank, marks=[] if (instant, rank) in SHORT else pytest.mark.faults)
    for instant in INSTANTS
    for rank in ("0", "1")
    if (instant, rank) != ("after", "1")  # rank zero alone does what comes after
]


@pytest.mark.parametrize(("instant", "rank"), CASES)
def test_a_killed_process_ends_the_others_in_a_sentence(instant: str, rank: str, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-r", "3",
        "--log-dir", str(tmp_path / "logs"), "-m", "tests.faults.in_processes", instant, rank,
        *words("dango", f"run.folder={tmp_path / 'run'}"),
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    (log,) = (tmp_path / "logs").rglob(f"{1 - int(rank)}/stderr.log")
    said = log.read_text()
    print(said)
    assert "Traceback" not in said, said
    if instant != "after":  # the other one had done its part, and ended
        assert said.strip().splitlines()[-1].startswith("wildtype: "), said
    assert not (tmp_path / "run" / "comparison.json").exists()
