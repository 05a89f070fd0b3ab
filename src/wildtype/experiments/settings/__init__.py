"""Typed settings of a run, and the files that name good ones."""
