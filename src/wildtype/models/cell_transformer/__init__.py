"""The cell transformer: a graph-regularised encoder of the wild type, and a head that answers for every
mutant.
"""
