"""Masks of every mutant of a table, written ahead of time, and what that would cost on disk.

A mutant is its removed genes; everything here can be had again from them in microseconds. It is kept for
comparison with pipelines that store masks, and to say beforehand what storing them takes.
"""

from wildtype.mutants.precomputed.estimate import Estimate, estimate
from wildtype.mutants.precomputed.layouts import LAYOUTS, StoredArray, stored_arrays
from wildtype.mutants.precomputed.read import PrecomputedMasks
from wildtype.mutants.precomputed.write import write_masks

__all__ = [
    "LAYOUTS",
    "Estimate",
    "PrecomputedMasks",
    "StoredArray",
    "estimate",
    "stored_arrays",
    "write_masks",
]
