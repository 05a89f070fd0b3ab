"""Predicting mutants that nobody has built, by name, with a word on how far to trust each prediction."""
