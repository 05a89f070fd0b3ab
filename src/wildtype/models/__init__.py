"""Models behind one interface: ``encode`` the wild type once, then predict any number of mutants."""
