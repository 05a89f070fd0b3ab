"""What all boosted trees share: LightGBM, how it reads a table, and its trees as arrays.

LightGBM: Ke et al., NeurIPS 30, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.nn.forest import Tree


def table_settings(bins: int) -> dict[str, Any]:
    """Return how a table is read and learned from: so many bins per column, the same trees every time."""
    return {
        "max_bin": bins,
        "num_threads": torch.get_num_threads(),
        # LightGBM 4.7.0 counts the values in bundles of a subset by those of the whole table, in 16 bits
        # where these suffice: a subset of the fuller rows is read out of bounds.
        "enable_bundle": False,
        "deterministic": True,
        "force_col_wise": True,
        "verbose": -1,
    }


def trees_of(model: dict[str, Any], columns: NDArray[np.int64], share: float) -> Iterator[Tree]:
    """Yield the trees of a dumped model on ``columns``, their values times ``share``."""
    for tree in model["tree_info"]:
        nodes, child = [tree["tree_structure"]], []
        for node in nodes:  # which grows: children stand behind their parents
            if "leaf_value" in node:
                child.append((0, 0))
            else:
                child.append((len(nodes), len(nodes) + 1))
                nodes += [node["left_child"], node["right_child"]]
        leaf = ["leaf_value" in node for node in nodes]
        feature = [
            -1 if end else int(columns[node["split_feature"]]) for node, end in zip(nodes, leaf, strict=True)
        ]
        split = [
            node["leaf_value"] * share if end else node["threshold"]
            for node, end in zip(nodes, leaf, strict=True)
        ]
        missing_left = [not end and _missing_left(node) for node, end in zip(nodes, leaf, strict=True)]
        yield (
            torch.tensor(feature, dtype=torch.int64),
            torch.tensor(child, dtype=torch.int64),
            torch.tensor(split, dtype=torch.float64),
            torch.tensor(missing_left, dtype=torch.bool),
        )


def _missing_left(node: dict[str, Any]) -> bool:
    # A column without NaN in training has a NaN read as 0.
    return bool(node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0)


def lightgbm() -> Any:
    """Return the library; raises ``ConfigError`` if its compiled part cannot be loaded."""
    # Slow to import, and torch, imported above, brings the OpenMP library that it needs.
    try:
        import lightgbm as library
    except OSError as error:
        raise ConfigError(
            f"LightGBM's compiled library cannot be loaded ({error}): install the OpenMP library "
            f"(Linux: libgomp1, macOS: libomp)"
        ) from error
    return library
