"""Perturbations of the cell: tables of mutants, and batches cut from them."""

from wildtype.mutants.table import Kind, MutantTable

__all__ = ["Kind", "MutantTable"]
