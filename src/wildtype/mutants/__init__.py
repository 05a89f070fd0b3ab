"""What was done to the cell: tables of mutants, and batches of them cut from arrays."""

from wildtype.mutants.kinds import Kind
from wildtype.mutants.table import MutantTable

__all__ = ["Kind", "MutantTable"]
