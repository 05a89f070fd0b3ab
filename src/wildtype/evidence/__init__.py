"""What was measured of mutants like the one asked about: an index of measured sets and lookups by edits."""
