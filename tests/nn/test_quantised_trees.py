"""Trees on whole numbers give what the plain loop over trees and rows gives, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from math import isnan
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.nn.forest import Forest, ForestSums, Tree


def plain(forest: Forest, x: np.ndarray) -> np.ndarray:
    """The definition: every row goes down every tree."""
    feature, child, split = forest.feature.tolist(), forest.child.tolist(), forest.split.tolist()
    missing_left = forest.missing_left.tolist()
    out = np.full(len(x), forest.start.item())
    for root in forest.root.tolist():
        for i, row in enumerate(x.tolist()):
            node = root
            while feature[node] >= 0:
                value = row[feature[node]]
                left = missing_left[node] if isnan(value) else value <= split[node]
                node = child[node][0 if left else 1]
            out[i] += split[node]
    return out


def drawn_tree(draw: np.random.Generator, columns: int, leaves: int, thresholds: np.ndarray) -> Tree:
    """A random tree: any leaf is split until there are so many."""
    feature, child, split, missing = [-1], [[0, 0]], [draw.normal()], [False]
    for _ in range(leaves - 1):
        ends = [node for node, f in enumerate(feature) if f < 0]
        node, place = int(draw.choice(ends)), len(feature)
        feature[node], split[node] = int(draw.integers(columns)), float(draw.choice(thresholds))
        child[node], missing[node] = [place, place + 1], bool(draw.integers(2))
        for _ in range(2):
            feature.append(-1)
            child.append([0, 0])
            split.append(draw.normal())
            missing.append(False)
    return (
        torch.tensor(feature),
        torch.tensor(child),
        torch.tensor(split, dtype=torch.float64),
        torch.tensor(missing),
    )


def drawn_rows(draw: np.random.Generator, rows: int, columns: int, thresholds: np.ndarray) -> np.ndarray:
    """Values at, below and above thresholds, infinite ones and NaN."""
    x = draw.choice(np.concatenate([thresholds, draw.normal(size=8)]), size=(rows, columns))
    x[draw.random(x.shape) < 0.2] = np.nan
    x[draw.random(x.shape) < 0.05] = np.inf
    x[draw.random(x.shape) < 0.05] = -np.inf
    return x.astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    rows=st.sampled_from([0, 1, 2, 63, 64, 65, 200]),
    columns=st.integers(1, 6),
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    leaves=st.lists(st.sampled_from([1, 2, 7, 8, 9, 40, 64, 65, 90]), min_size=1, max_size=3),
)
def test_forests_are_the_plain_loop(
    seed: int, rows: int, columns: int, counts: list[int], leaves: list[int]
) -> None:
    draw = np.random.default_rng(seed)
    # Thresholds of float64 between values of float32, as boosting makes them, and some that are equal.
    thresholds = np.append(draw.normal(size=5).astype(np.float32), draw.normal(size=3))
    forests = [
        Forest.of(
            [drawn_tree(draw, columns, int(draw.choice(leaves)), thresholds) for _ in range(count)],
            draw.normal(),
        )
        for count in counts
    ]
    x = drawn_rows(draw, rows, columns, thresholds)
    found = ForestSums(forests)(torch.from_numpy(x)).numpy()
    assert found.shape == (rows, len(forests))
    for i, forest in enumerate(forests):
        np.testing.assert_array_equal(found[:, i], plain(forest, x))
        np.testing.assert_array_equal(forest(torch.from_numpy(x)).numpy(), found[:, i])


@pytest.mark.parametrize("count", [253, 254, 255, 256, 300, 70_000])
def test_columns_of_many_thresholds(count: int) -> None:
    """Codes of one byte, of two and of four."""
    thresholds = np.linspace(-1, 1, count)
    stump = [
        (
            torch.tensor([0, -1, -1]),
            torch.tensor([[1, 2], [0, 0], [0, 0]]),
            torch.tensor([threshold, 1.0, 0.0], dtype=torch.float64),
            torch.tensor([number % 2 == 0, False, False]),
        )
        for number, threshold in enumerate(thresholds.tolist())
    ]
    x = np.array([[-2], [-1], [0.1234], [1], [2], [np.nan]], np.float32)
    said = [(row <= thresholds).sum() for row in x[:-1, 0].astype(np.float64)]
    assert Forest.of(stump)(torch.from_numpy(x)).tolist() == [*said, (count + 1) // 2]


def test_a_forest_that_changes_is_read_again() -> None:
    draw = np.random.default_rng(0)
    first, second = (Forest.of([drawn_tree(draw, 2, 5, np.arange(3.0))], start) for start in (0.0, 1.0))
    x = torch.from_numpy(drawn_rows(draw, 10, 2, np.arange(3.0)))
    both = ForestSums([first, second])
    before = both(x)
    assert not torch.equal(before[:, 0], before[:, 1])
    first.load_state_dict(second.state_dict())
    assert torch.equal(both(x)[:, 0], before[:, 1])
    assert torch.equal(first(x), before[:, 1])
    with torch.no_grad():
        second.start += 1
    assert torch.equal(both(x)[:, 1], before[:, 1] + 1)


@pytest.mark.parametrize("side", [0, 1])
def test_a_tree_of_one_long_path(side: int) -> None:
    """More leaves than a byte can number, all left or all right of the path."""
    leaves = 300
    thresholds = np.arange(leaves - 1.0)
    # Right children go on: values rise along the path. Left ones go on: they fall.
    asked = thresholds if side else thresholds[::-1]
    inner, ends = np.arange(leaves - 1), np.arange(leaves - 1, 2 * leaves - 1)
    child = np.empty((leaves - 1, 2), np.int64)
    child[:, 1 - side] = ends[:-1]
    child[:, side] = np.append(inner[1:], ends[-1])
    feature = np.append(np.zeros(leaves - 1, np.int64), np.full(leaves, -1))
    split = np.append(asked, np.random.default_rng(0).normal(size=leaves))
    tree = (
        torch.from_numpy(feature),
        torch.from_numpy(np.concatenate([child, np.zeros((leaves, 2), np.int64)])),
        torch.from_numpy(split),
        torch.zeros(2 * leaves - 1, dtype=torch.bool),
    )
    forest, x = Forest.of([tree]), np.append(np.arange(-1, leaves + 1, 0.5), np.nan).astype(np.float32)
    found = forest(torch.from_numpy(x[:, None])).numpy()
    np.testing.assert_array_equal(found, plain(forest, x[:, None]))
    assert len(set(found.tolist())) == leaves


EVALUATED = """
import torch
from wildtype.nn.forest import Forest, ForestSums

children, split = torch.tensor([[1, 2], [0, 0], [0, 0]]), torch.tensor([0.5, 1.0, 2.0]).double()
forest = Forest.of([(torch.tensor([0, -1, -1]), children, split, torch.zeros(3).bool())])
assert ForestSums([forest])(torch.tensor([[0.0], [1.0]])).tolist() == [[1.0], [2.0]]
"""


@pytest.mark.slow
def test_what_one_process_compiled_the_next_one_reads(tmp_path: Path) -> None:
    kept: list[list[str]] = []
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", EVALUATED],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            check=True,
        )
        kept.append(sorted(path.name for path in tmp_path.rglob("*.nbc")))
    assert any("add_trees" in name for name in kept[0])
    assert kept[1] == kept[0]
