"""Settings of the pair-screen model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wildtype.evidence.column_families import Family
from wildtype.settings import setting


@dataclass
class PairScreenConfig:
    """Boosted trees over what a whole screen of pairs says about a pair of genes."""

    name: Literal["pair_screen"] = setting("pair_screen", "The model.")
    folds: int = setting(
        5,
        "Folds of crosses: a training pair is described by the crosses of the other folds.",
        minimum=2,
        maximum=100,
    )
    gene_folds: int = setting(
        8, "Folds of genes: pairs of one fold at a time are described as if its genes were unseen.", minimum=2
    )
    both_folds: int = setting(
        5,
        "Folds of genes of a second draw, of which only pairs with both genes in one fold are described: one "
        "draw has few of them.",
        minimum=0,
    )
    one_unseen: float = setting(
        0.4,
        "Share of pairs with one gene in a fold of genes that trees learn from; of listed pairs, all.",
        above=0,
        maximum=1,
    )
    iterations: int = setting(200, "Trees per output, bag and set of columns.", minimum=1)
    learning_rate: float = setting(0.06, "Weight of each tree.", above=0, maximum=1)
    leaves: int = setting(63, "Most leaves of a tree.", minimum=2)
    least_rows: int = setting(100, "Fewest training rows in a leaf.", minimum=1)
    bags: int = setting(
        1, "Forests that are averaged; they differ by the columns that splits may use.", minimum=1
    )
    leave_out: list[str] = setting([], "Feature blocks not to use.")
    without: list[Family] = setting(
        [], "Families of columns that neither trees nor sums read, to see what each is worth."
    )
