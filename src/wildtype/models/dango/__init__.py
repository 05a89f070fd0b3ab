"""DANGO: gene networks embed the genes, and attention within a set of perturbed genes predicts its
phenotype.
"""
