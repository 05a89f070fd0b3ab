"""A small yeast-like gene index with everything that makes names difficult, and tables written to disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.organism import GeneIndex, Organism

GENES = {
    "YMR190C": ("SGS1", ()), "YJL092W": ("SRS2", ("HPR5", "RADH")), "YBR160W": ("CDC28", ("CDK1",)),
    "YPL256C": ("CLN2", ()), "YOR153W": ("PDR5", ("STS1",)), "YER069W": ("ARG5,6", ("ARG5",)),
    "YIR026C": ("YVH1", ("STS1",)), "YDL227C": ("HO", ()),
}  # fmt: skip


def yeast() -> Organism:
    names = tuple(GENES)
    index = GeneIndex(
        names,
        {name: standard for name, (standard, _) in GENES.items()},
        {name: aliases for name, (_, aliases) in GENES.items()},
        organism="yeast",
    )
    return Organism("yeast", index, essential=np.array([name == "YBR160W" for name in names]))


def write(folder: Path, text: str, name: str = "my.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
