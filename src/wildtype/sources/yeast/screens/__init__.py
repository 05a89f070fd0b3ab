"""Screens: interactions and fitness of measured mutants."""
