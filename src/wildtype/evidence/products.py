"""Inner products of chosen rows of two sparse matrices, without the product of the matrices.

Legend: n columns · q queries · c channels · e stored entries of the right matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BLOCK = 256  # rows of the left matrix that are dense at a time
CHUNK = 1 << 21  # entries of the right matrix that are looked at together


def entries(matrix: sparse.csr_array, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return matrix[i, j] [q] as float32; 0 where nothing is stored."""
    if not len(i) or not matrix.nnz:
        return np.zeros(len(i), np.float32)
    return np.asarray(matrix[i, j], dtype=np.float32).reshape(-1)


def row_products(
    left: sparse.csr_array,
    i: NDArray[np.int64],
    right: sparse.csr_array,
    channels: NDArray[np.float32],
    j: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return [q, c] sums over x of left[i, x] · right_c[j, x]; j = −1 stands for an empty row.

    ``channels`` [e, c] are c sets of values on the pattern of ``right``. A block of left rows is made dense
    and looked up at the entries of the right rows, so cost is linear in the entries of the right rows asked
    for: put the denser matrix on the left.
    """
    out = np.zeros((len(i), channels.shape[1]), np.float32)
    if not left.nnz or not right.nnz:
        return out
    size = np.where(j >= 0, np.diff(right.indptr)[j], 0).astype(np.int64)
    size[np.diff(left.indptr)[i] == 0] = 0
    asked = np.flatnonzero(size)
    # Sorted by left row: every block of them is made dense once.
    asked = asked[np.argsort(i[asked], kind="stable")]
    if not asked.size:
        return out
    rows, place = np.unique(i[asked], return_inverse=True)
    total = np.cumsum(size[asked])
    block, chunk = place // BLOCK, total // CHUNK
    cuts = np.flatnonzero(np.diff(block) | np.diff(chunk)) + 1
    dense, at_block = np.zeros((0, 0), np.float32), -1
    for part in np.split(np.arange(len(asked)), cuts):
        if block[part[0]] != at_block:
            at_block = int(block[part[0]])
            dense = left[rows[at_block * BLOCK : (at_block + 1) * BLOCK]].toarray()
        query, length = asked[part], size[asked[part]]
        starts = np.concatenate([[0], np.cumsum(length)[:-1]])
        repeat = np.repeat(np.arange(len(part)), length)
        entry = np.arange(len(repeat)) + (right.indptr[j[query]] - starts)[repeat]
        weight = dense.reshape(-1)[
            (place[part] - at_block * BLOCK)[repeat] * dense.shape[1] + right.indices[entry]
        ]
        # Most entries meet a 0: they are dropped before the sums per channel.
        hit = np.flatnonzero(weight)
        where, weight, entry = repeat[hit], weight[hit], entry[hit]
        for c in range(channels.shape[1]):
            out[query, c] = np.bincount(where, weight * channels[entry, c], minlength=len(part))
    return out
