"""The local page: type genes, see what a model predicts of the mutant and what is known around it."""
