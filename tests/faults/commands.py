"""Real commands in processes of their own, which may be killed, starved or signalled."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from wildtype.files import sha256_of_file

PROGRAM = "from wildtype.cli.main import main; main()"
QUICK = (
    "data=ecoli-core-growth", "data.rows=600", "model.layers=1", "model.width=16", "model.heads=8",
    "model.evidence.tokens=4", "model.trees.bags=0", "training.epochs=4", "training.batch_size=16",
    "training.patience=0", "training.deterministic=true", "baselines=[mean,additive_ridge]",
    "run.replicates=10", "run.progress=false",
)  # fmt: skip
"""A training of a few seconds, whose result is the same to the bit."""


@dataclass
class Done:
    """How a command ended: exit code (negative: the signal), and what it printed."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line of its complaint."""
        lines = [line for line in self.err.splitlines() if line.startswith("wildtype: ")]
        return lines[-1] if lines else ""


class Running:
    """`wildtype WORDS` in another process."""

    def __init__(self, *words: str, before: Callable[[], None] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ended(self, within: float | None = None) -> Done | None:
        """Wait until the command ends, or for so many seconds; None: it still runs."""
        try:
            out, err = self.process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            return None
        return Done(self.process.returncode, out, err)

    def signalled(self, number: int) -> Done:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        done = self.ended()
        assert done is not None
        return done


def wildtype(*words: str, before: Callable[[], None] | None = None) -> Done:
    """Run a command to its end."""
    done = Running(*words, before=before).ended()
    assert done is not None
    return done


def train(folder: Path, *more: str, before: Callable[[], None] | None = None) -> Done:
    """Train quickly into a folder."""
    return wildtype("train", *QUICK, f"run.folder={folder}", *more, before=before)


def small_files(size: int) -> Callable[[], None]:
    """Return what lets a process write no file beyond a size, as a disk that is full does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def finished(run: Path) -> bool:
    """Whether a run says of itself that it is finished."""
    return (run / "comparison.json").exists()


def result(run: Path) -> dict[str, Any]:
    """Return all that must be equal between two runs of the same settings."""
    frame = pd.read_parquet(run / "predictions.parquet")
    comparison = json.loads((run / "comparison.json").read_text())
    for table in comparison.values():
        for score in table["scores"]:
            score.pop("seconds")
            score.pop("peak_mib")
    return {
        "weights": sha256_of_file(run / "checkpoint" / "model.safetensors"),
        "predictions": {
            name: frame[name].tolist() for name in ("cell_transformer", "additive_ridge") if name in frame
        },
        "comparison": comparison,
    }
