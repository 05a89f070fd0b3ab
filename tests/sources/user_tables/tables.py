"""A small yeast-like gene index with everything that makes names difficult, and tables written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from wildtype.organism import GeneIndex, Organism

GENES = {
    "YMR190C": ("SGS1", ()), "YJL092W": ("SRS2", ("HPR5", "RADH")), "YBR160W": ("CDC28", ("CDK1",)),
    "YPL256C": ("CLN2", ()), "YOR153W": ("PDR5", ("STS1",)), "YER069W": ("ARG5,6", ("ARG5",)),
    "YIR026C": ("YVH1", ("STS1",)), "YDL227C": ("HO", ()),
}  # fmt: skip

MORE = {
    "YDL126C": ("CDC48", ()), "YBL015W": ("ACH1", ()), "YML032C": ("RAD52", ()), "YKL134C": ("OCT1", ()),
    "YGR146C": ("ECL1", ()), "YCR002C": ("CDC10", ("MARCH7",)), "YHR107C": ("CDC12", ("MARC7", "SEP4")),
    "R0020C": ("REP1", ()), "R0040C": ("REP2", ()),
}  # fmt: skip
"""Genes with names that are spelled in several ways, become dates, or look like those of replicates."""


def yeast(more: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType({})) -> Organism:
    genes = GENES | dict(more)
    names = tuple(genes)
    index = GeneIndex(
        names,
        {name: standard for name, (standard, _) in genes.items()},
        {name: aliases for name, (_, aliases) in genes.items()},
        organism="yeast",
    )
    return Organism("yeast", index, essential=np.array([name == "YBR160W" for name in names]))


def write(folder: Path, text: str, name: str = "my.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
