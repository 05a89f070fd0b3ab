"""Prediction, screening and explanation of mutants by name, with the reliability of each prediction."""
