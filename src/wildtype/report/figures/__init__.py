"""Figures of runs: each is drawn once, for pages and for publications."""
