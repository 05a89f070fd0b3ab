"""What was done to the cell: tables of mutants, and batches of them cut from arrays."""

from wildtype.mutants.table import Kind, MutantTable

__all__ = ["Kind", "MutantTable"]
