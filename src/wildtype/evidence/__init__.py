"""Evidence: measurements of mutants similar to the one predicted, and of its genes.

`lookup` finds them for networks, as tokens, and `tree_features` turns tokens into columns for trees. The
boosting baselines read `label_features` and `pair_features`. `holdout` and `out_of_fold` decide which
measurements a training mutant may see.
"""
