"""The loops over the edges at removed nodes, compiled by numba and kept on disk.

Legend: b mutants · n nodes · e edges of a relation · r removed nodes of a mutant.

In all of them mutant i lost ``node[offsets[i]:offsets[i+1]]``, and node v has the edges
``position[starts[v]:starts[v+1]]``, each of which stands at both its ends.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def write_edges(out: Any, node: Any, offsets: Any, starts: Any, position: Any, value: bool) -> None:
    """Write ``value`` into out [b, e] at every edge of every removed node."""
    for mutant in range(len(offsets) - 1):
        for at in range(offsets[mutant], offsets[mutant + 1]):
            for edge in range(starts[node[at]], starts[node[at] + 1]):
                out[mutant, position[edge]] = value


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_edges(
    node: Any, offsets: Any, starts: Any, position: Any, source: Any, target: Any, gone: Any, out: Any
) -> None:
    """Write to out [b] how many edges every mutant lost: all at its nodes, those between two of them once.

    ``gone`` [n] is all False, before and after.
    """
    for mutant in range(len(offsets) - 1):
        mine = node[offsets[mutant] : offsets[mutant + 1]]
        gone[mine] = True
        lost = 0
        for v in mine:
            lost += starts[v + 1] - starts[v]
            for edge in range(starts[v], starts[v + 1]):
                at = position[edge]
                if gone[source[at]] and target[at] == v:
                    lost -= 1
        gone[mine] = False
        out[mutant] = lost


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def list_edges(
    node: Any,
    offsets: Any,
    starts: Any,
    position: Any,
    source: Any,
    target: Any,
    gone: Any,
    ends: Any,
    out: Any,
) -> None:
    """Write the edges that mutant i lost, ascending, to ``out[ends[i]:ends[i+1]]``; ``gone`` as above."""
    for mutant in range(len(offsets) - 1):
        mine = node[offsets[mutant] : offsets[mutant + 1]]
        gone[mine] = True
        to = ends[mutant]
        for v in mine:
            for edge in range(starts[v], starts[v + 1]):
                at = position[edge]
                if not (gone[source[at]] and target[at] == v):
                    out[to] = at
                    to += 1
        gone[mine] = False
        out[ends[mutant] : ends[mutant + 1]].sort()
