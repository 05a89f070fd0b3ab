"""What evaluating boosted trees costs: whole numbers and blocks of rows against tree by tree, row by row.

* quantised: `wildtype.nn.quantised_trees`, all outputs of a mutant together;
* plain: the compiled loop over trees and rows that compares values with thresholds.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from benchmarks.measuring import chosen
from wildtype.nn.forest import Forest, ForestSums, Tree
from wildtype.profiling.machine import machine, take_turns
from wildtype.seeds import generator

NAN = 0.1
"""Share of values that are not known."""
THRESHOLDS = 126
"""Of a column, as many as 127 bins have."""


def bench_trees(
    *,
    rows: int = 20_000,
    columns: int = 250,
    outputs: int = 5,
    trees: int = 320,
    leaves: int = 63,
    repeats: int = 3,
    seed: int = 0,
) -> dict[str, Any]:
    """Evaluating boosted trees: whole numbers and blocks of rows against row by row.

    Parameters
    ----------
    rows, columns : int
        Mutants, and columns that describe them.
    outputs, trees, leaves : int
        Forests over the same columns, trees of each, and leaves of a tree.
    repeats : int
        Timed rounds; the median counts.
    seed : int
        Of trees and values.
    """
    problem = chosen(locals())
    draw = generator(seed, "bench trees")
    forests = [Forest.of([_drawn_tree(draw, columns, leaves) for _ in range(trees)]) for _ in range(outputs)]
    values = draw.integers(-1, THRESHOLDS + 1, (rows, columns)).astype(np.float32) + np.float32(0.25)
    values[draw.random(values.shape) < NAN] = np.nan
    together, x = ForestSums(forests), torch.from_numpy(values)
    equal = np.array_equal(together(x).numpy(), _plain(forests, values))
    seconds = take_turns(
        {"quantised": lambda: together(x), "plain": lambda: _plain(forests, values)}, repeats
    )
    return {
        "machine": machine(),
        "problem": problem,
        "mutants_per_second": {name: rows / value for name, value in seconds.items()},
        "ratios": {"quantised_to_plain": seconds["plain"] / seconds["quantised"]},
        "equal": equal,
    }


def _drawn_tree(draw: np.random.Generator, columns: int, leaves: int) -> Tree:
    """Return a tree whose next leaf to be split is drawn: some paths are long, as in boosted trees."""
    nodes = 2 * leaves - 1
    feature, child = np.full(nodes, -1), np.zeros((nodes, 2), np.int64)
    split, ends = draw.normal(size=nodes), [0]
    for place in range(1, nodes, 2):
        node = ends.pop(int(draw.integers(len(ends))))
        feature[node], split[node] = draw.integers(columns), draw.integers(THRESHOLDS)
        child[node] = place, place + 1
        ends += [place, place + 1]
    missing_left = draw.random(nodes) < 0.5
    return (
        torch.from_numpy(feature),
        torch.from_numpy(child),
        torch.from_numpy(split),
        torch.from_numpy(missing_left),
    )


def _plain(forests: list[Forest], x: NDArray[np.float32]) -> NDArray[np.float64]:
    out = np.zeros((len(forests), len(x)))
    for forest, sums in zip(forests, out, strict=True):
        parts = (forest.feature, forest.child, forest.split, forest.missing_left, forest.root)
        _add_trees(x, *(part.numpy() for part in parts), sums)
    return out.T


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _add_trees(x: Any, feature: Any, child: Any, split: Any, missing_left: Any, root: Any, out: Any) -> None:
    for t in range(len(root)):
        for i in range(len(x)):
            node = root[t]
            while feature[node] >= 0:
                value = x[i, feature[node]]
                left = missing_left[node] if isnan(value) else value <= split[node]
                node = child[node, 0] if left else child[node, 1]
            out[i] += split[node]
