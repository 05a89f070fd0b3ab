"""Inputs that a fuzzer finds by the code that they reach: every one is answered, or refused in one sentence.

`make test-slow` tries few of two targets, `make test-faults` a million in all. Beyond that, for one target:

    python -m tests.faults.guided readers FOLDER -max_total_time=3600
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is made for Linux"),
]
ROOT = Path(__file__).parents[2]
# Of ten thousand inputs; the quick targets take most.
SHARES = {
    "sets": 4_000,
    "tables": 1_500,
    "readers": 1_500,
    "plans": 1_900,
    "settings": 1_000,
    "checkpoints": 100,
}
RUNS = int(os.environ.get("WILDTYPE_GUIDED_RUNS", "3000"))


QUICK = ("readers", "checkpoints")
"""Targets that are tried in `make test-slow`; a run begins with half a minute of instrumentation."""


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.faults) for name in SHARES]
)
def test_what_reaches_new_code_is_answered_or_refused(
    target: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    runs = RUNS * SHARES[target] // 10_000
    words = [sys.executable, "-m", "tests.faults.guided", target, str(tmp_path), f"-runs={runs}", "-seed=1"]
    # Linux counts the memory of the process that starts another to its peak: a small one is put between.
    between = ["sh", "-c", '"$0" "$@"; exit $?']
    done = subprocess.run([*between, *words], cwd=ROOT, capture_output=True, text=True, errors="replace")
    counted = re.search(r"^stat::number_of_executed_units: (\d+)", done.stderr, re.MULTILINE)
    assert done.returncode == 0, done.stderr[-5_000:]
    assert counted is not None
    peak = re.search(r"^stat::peak_rss_mb: +(\d+)", done.stderr, re.MULTILINE)
    assert int(counted[1]) >= runs
    tell(f"{target}: {int(counted[1]):,} inputs, at most {peak[1] if peak else '?'} MiB")
