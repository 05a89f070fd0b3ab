"""The record of a run: versions, machine, command and data, enough to repeat it."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from wildtype.experiments.data import RunData
from wildtype.files import content_hash
from wildtype.profiling.machine import machine

PACKAGES = (
    "wildtype",
    "torch",
    "lightning",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "cobra",
    "hydra-core",
)


def environment() -> dict[str, Any]:
    """Return versions, machine, command line, git state and time."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git": _git_state(),
        "machine": machine(),
    }


def of_data(data: RunData) -> dict[str, Any]:
    """Return the identity of a run's data: hashes of dataset, organism, graphs and split, and the seed."""
    dataset, whole = data.dataset, data.whole
    return {
        "seed": data.split.seed,
        "dataset": {"name": dataset.name, "sha256": dataset.sha256, "with_other_phenotypes": whole.sha256},
        "organism": {
            "name": whole.organism.name,
            "genes_sha256": whole.organism.genes.sha256,
            "graphs_sha256": whole.organism.graphs.sha256,
        },
        "split_sha256": content_hash(data.split.to_json()),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _git_state() -> str:
    try:
        result = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "not a git checkout"
    return result.stdout.strip()
