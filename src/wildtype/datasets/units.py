"""Which query pair or screen was held out as a whole for a row: rows of one are not independent.

Legend: m rows of one part of a split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.draws import screens
from wildtype.datasets.query_pairs import contains_pair

if TYPE_CHECKING:
    from wildtype.datasets.dataset import Dataset
    from wildtype.datasets.splits import Split


def held_out_units(dataset: Dataset, split: Split, part: str) -> NDArray[np.int64]:
    """Return [m] the held-out query pair or screen of each row of ``validation`` or ``test``.

    Positions in ``split.held_out_pairs[part]`` or among the screens; -1 in all rows of splits that hold out
    genes, gene sets or orders, which a row tells by itself. A triple with two held-out query pairs counts
    for the first.
    """
    rows = getattr(split, part)
    unit = np.full(rows.size, -1, np.int64)
    if split.name == "query-pair":
        genes, table = dataset.organism.genes, dataset.table.take(rows)
        for i, pair in enumerate(split.held_out_pairs[part]):
            ends = np.sort(genes.find_all(pair))[None]
            unit[contains_pair(table, ends, len(genes)) & (unit < 0)] = i
    elif split.name == "screen":
        unit = screens(dataset, str(split.options["by"]), split.strains)[1][rows]
    return unit
