"""Whole models behind one interface: ``encode`` the wild type once, then answer for every mutant."""
