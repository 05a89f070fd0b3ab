"""Moves of code change no bit of ten small runs; see `deterministic_runs.py`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.inventory.deterministic_runs import RUNS, described, differences, machine, result, written

FILES = {"AVX512": "deterministic_runs.json", "AVX2": "deterministic_runs_avx2.json"}
"""By what a processor can, which decides the order of sums."""
STORED = {
    capability: json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for capability, name in FILES.items()
}
FAST = ("cell transformer, plain", "dango")


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in RUNS])
def test_a_run_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    here = machine()
    if here["capability"] not in STORED:
        pytest.skip(f"no runs are stored of a processor with {here['capability']}; see deterministic_runs.py")
    before = STORED[here["capability"]]
    exact = before["machine"] == here
    if not exact:
        warnings.warn(
            f"values are compared to 1e-4 instead of bits: the stored runs were made on {before['machine']}, "
            f"and this is {here}",
            stacklevel=1,
        )
    found = differences(before[name], result(name, tmp_path), exact=exact)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("capability", FILES)
def test_every_run_is_stored(capability: str) -> None:
    before = STORED[capability]
    assert list(before) == ["machine", *RUNS]
    assert before["machine"]["capability"] == capability
    assert all(before.values())
    # Processors differ in the values of a run, not in its arrays.
    assert all(list(before[name]) == list(STORED["AVX512"][name]) for name in RUNS)


def test_one_bit_is_a_difference() -> None:
    values = np.array([0.5, np.nan, 3.0], np.float32)
    other = values.copy()
    other[0] = np.nextafter(other[0], np.float32(1))
    a, b = {"x": described(values)}, {"x": described(other)}
    assert differences(a, a, exact=True) == []
    assert len(differences(a, b, exact=True)) == 1
    assert differences(a, b, exact=False) == []
    far = {"x": described(values + np.float32(0.01))}
    assert len(differences(a, far, exact=False)) == 1
    assert len(differences(a, {"x": described(values[:2])}, exact=False)) == 1
    assert differences(a, {"y": a["x"]}, exact=True) == [
        "'x' is not there: an array that was renamed is renamed in the JSON too",
        "'y' is new",
    ]


def test_results_are_written_one_array_per_line() -> None:
    text = written({"a": {"x": described(np.ones(3)), "y": described(np.zeros(0))}, "b": {}})
    assert json.loads(text)["a"]["y"] == {
        "sha256": described(np.zeros(0))["sha256"],
        "length": 0,
        "shown": [],
    }
    assert sum(line.startswith("  ") for line in text.splitlines()) == 2
