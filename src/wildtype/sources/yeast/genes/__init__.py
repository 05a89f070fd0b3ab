"""Genes, sequences and abundance: who the genes are."""
