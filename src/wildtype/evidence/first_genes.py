"""Queries that share their first gene are answered one after the other, and share what that gene takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED


def by_first_gene(gene: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order in which queries with one first gene follow each other."""
    first = np.append(gene, -1)[offsets[:-1]]  # a query without genes may be the last one
    return np.argsort(first, kind="stable")


def _leader_of(query: Any, gene: Any, offsets: Any) -> Any:
    """Return the first gene of a query of two; -1 of any other."""
    return gene[offsets[query]] if offsets[query + 1] - offsets[query] == 2 else -1


leader_of = njit(inline="always", **COMPILED)(_leader_of)
