"""Screens: the mutants of a design with the highest and lowest predicted phenotypes."""
