"""Masks of every mutant of a table, written ahead of time, and what that would cost on disk.

Masks follow from the removed genes of a mutant in microseconds. They are stored for comparison with pipelines
that do so, and the estimate gives time and space beforehand.
"""

from wildtype.mutants.precomputed.estimate import MaskStorageEstimate, estimate
from wildtype.mutants.precomputed.read import PrecomputedMasks
from wildtype.mutants.precomputed.write import LAYOUTS, StoredArray, stored_arrays, write_masks

__all__ = [
    "LAYOUTS",
    "MaskStorageEstimate",
    "PrecomputedMasks",
    "StoredArray",
    "estimate",
    "stored_arrays",
    "write_masks",
]
