"""Traits: what single deletions look like."""
