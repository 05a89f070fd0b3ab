"""Any options trained together by several processes are what one process trains, and nothing crashes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from tests.pairwise import Row, covering_rows
from tests.training.combinations import FACTORS, Combination, all_combinations, written
from wildtype.training.step_log import OF_MACHINE

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-6
"""Largest difference of a weight, and relative one of a loss; weights are of size one, and in float64."""
DOZEN = 12


def trained(rows: list[Combination], folder: Path) -> dict[int, str]:
    """Train the rows in groups of equally many processes; return what went wrong, by number of the row."""
    wrong: dict[int, str] = {}
    all_of_them = written(rows)
    for count in ["1", *(option.name for option in FACTORS["processes"])]:
        left = [one for one in all_of_them if count in ("1", one[1]["processes"])]
        while left:
            at = folder / count
            at.mkdir(exist_ok=True, parents=True)
            (at / "combinations.pickle").write_bytes(pickle.dumps(left))
            said = _started(int(count), at)
            done = {i for i, *_ in left if (at / str(i) / "weights.safetensors").is_file()}
            if "Traceback" not in said.stderr and said.returncode == 0 and len(done) == len(left):
                break
            # The first without weights ended its group; those behind it are trained in a new one.
            failed = next((i for i, *_ in left if i not in done), left[-1][0])
            wrong[failed] = f"{count} processes, code {said.returncode}: {_reason(said.stderr)}"
            left = [one for one in left if one[0] > failed]
    return wrong


def _started(processes: int, folder: Path) -> subprocess.CompletedProcess[str]:
    group = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command = [sys.executable, *(group if processes > 1 else []), "-m", "tests.training.combinations", folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _reason(said: str) -> str:
    """Return the last line of the first traceback, or the end of what was said."""
    lines = [line for line in said.splitlines() if "Error" in line and "File" not in line]
    return lines[0] if lines else said[-500:]


def difference(row: Combination, one: Path, other: Path) -> str:
    """Return how what two groups of processes trained differs by more than rounding; empty if it does not."""
    a, b = load_file(one / "weights.safetensors"), load_file(other / "weights.safetensors")
    if a.keys() != b.keys():
        return f"other weights: {sorted(a.keys() ^ b.keys())}"
    for name, value in a.items():
        if (most := float(np.abs(value - b[name]).max(initial=0.0))) > TOLERANCE:
            return f"{name} differs by {most:.1e}"
    for log in sorted(path.relative_to(one) for path in one.rglob("metrics.csv")):
        first, second = pd.read_csv(one / log), pd.read_csv(other / log)
        if list(first) != list(second) or len(first) != len(second):
            return f"{log}: {list(first)}, {len(first)} rows; {list(second)}, {len(second)} rows"
        for column in first.columns.difference(OF_MACHINE):
            if not np.allclose(second[column], first[column], rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                return f"{log}: {column} is {second[column].tolist()}, not {first[column].tolist()}"
    return ""


def compare(rows: list[Combination], folder: Path) -> dict[int, str]:
    """Train the rows by one process and by several; return what went wrong, by number of the row."""
    wrong = trained(rows, folder)
    for i, row in enumerate(rows):
        if i not in wrong and (
            found := difference(row, folder / "1" / str(i), folder / row["processes"] / str(i))
        ):
            wrong[i] = found
    return wrong


def told(rows: list[Combination], wrong: dict[int, str]) -> str:
    lines = [f"{i}: {', '.join(row.values())}: {wrong[i]}" for i, row in enumerate(rows) if i in wrong]
    return "\n".join([f"{len(rows)} combinations, {len(wrong)} of them wrong", *lines])


@pytest.mark.slow
def test_a_dozen_combinations_train_what_one_process_trains(tmp_path: Path) -> None:
    rows = all_combinations()[:DOZEN]
    wrong = compare(rows, tmp_path)
    assert not wrong, told(rows, wrong)


@pytest.mark.slow
@pytest.mark.processes
def test_all_combinations_train_what_one_process_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = all_combinations()
    wrong = compare(rows, tmp_path)
    with capsys.disabled():
        print(f"\n{told(rows, wrong)}")
    assert not wrong


def test_every_pair_of_options_that_a_model_has_meets() -> None:
    """Held to all possible combinations of all models, written out."""
    names = list(FACTORS)
    possible = set()
    for model in FACTORS["model"]:
        own = [[o.name for o in FACTORS[name] if model.name in o.models] for name in names]
        for (f, options), (g, others) in combinations(zip(names, own, strict=True), 2):
            possible |= {(f, a, g, b) for a in options for b in others}
    rows = all_combinations()
    met = {(f, row[f], g, row[g]) for row in rows for f, g in combinations(names, 2)}
    assert met == possible
    assert len(rows) < 80


@pytest.mark.parametrize("sizes", [(2, 2), (3, 4, 2), (2, 2, 2, 2, 2, 2)])
def test_rows_cover_all_pairs_in_fewer_rows_than_there_are(sizes: tuple[int, ...]) -> None:
    rows = covering_rows(sizes, lambda partial: True)
    for f, g in combinations(range(len(sizes)), 2):
        assert {(row[f], row[g]) for row in rows} == set(product(range(sizes[f]), range(sizes[g])))
    assert len(rows) <= np.prod(sizes)
    if len(sizes) > 5:
        assert len(rows) <= 10
    assert rows == covering_rows(sizes, lambda partial: True)


def test_rows_hold_no_pair_that_is_not_possible() -> None:
    def possible(partial: Row | list[int | None]) -> bool:
        return partial[0] in (None, 0) or partial[1] in (None, 1)

    rows = covering_rows((2, 2, 3), possible)
    assert {row[:2] for row in rows} == {(0, 0), (0, 1), (1, 1)}
