"""Screens: which of all mutants of a design are predicted to be the highest and the lowest."""
