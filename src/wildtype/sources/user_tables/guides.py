"""Guides: names of what was made against a gene, of which there are several for each.

Guides of one gene are replicates of its perturbation. Which gene is meant, a table says, or the name of the
guide, as in ``CDC48_g1`` and ``sgRAD51-2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from wildtype.errors import SourceError, shown
from wildtype.sources.user_tables.grid import Grid, read_grid

SUFFIX = "suffix"
"""Setting of ``--guides`` for guides that are named after their genes."""
CONTROL = "control"
"""Target of guides whose gene is left empty."""
_GUIDE_COLUMNS = ("guide", "sgrna", "grna", "guide_id", "sgrna_id", "guide name", "name", "id")
_GENE_COLUMNS = ("gene", "target", "target_gene", "gene_symbol", "symbol", "genes", "unit")
_MARKED = r"(?:sg|g|gRNA|sgRNA|guide|cr|crRNA|i|kd)"
# The end of a name: CDC48_g1, RAD51-2, TP53.3, and AARS2_+_44280922.23-P1P2 of published libraries.
_END = re.compile(rf"(?:[-_. ]{_MARKED}?[-_]?\d+|_[-+]_\d+(?:\.\d+)?(?:-P\d(?:P\d)?)?)", re.IGNORECASE)
_SURE_END = re.compile(rf"[-_. ]{_MARKED}[-_]?\d+|_[-+]_.*", re.IGNORECASE)
_START = re.compile(r"(?:sgRNA|gRNA|crRNA|sg)[-_. ]?", re.IGNORECASE)


@dataclass(frozen=True)
class Guides:
    """Which gene a guide is against.

    Attributes
    ----------
    target : mapping of str to str
        Guide to gene, or to the name of a control.
    by_name : bool
        Whether other guides are named after their genes.
    """

    target: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    by_name: bool = False

    def __bool__(self) -> bool:
        return bool(self.target) or self.by_name


NO_GUIDES = Guides()


def guide_stems(name: str) -> Iterator[tuple[str, bool]]:
    """Yield what may be the gene in a guide's name, and whether the rest can mean nothing but a guide."""
    started = _START.match(name)
    for start in (0, *([started.end()] if started else ())):
        rest = name[start:]
        if start:
            yield rest, True
        for at in (i for i in range(1, len(rest)) if rest[i] in "-_. "):
            if _END.fullmatch(rest[at:]):
                yield rest[:at], bool(start) or _SURE_END.fullmatch(rest[at:]) is not None


def read_guides(setting: str) -> Guides:
    """Return the guides that a setting of ``--guides`` means: none, `SUFFIX`, or a table with two columns.

    The columns are found by their names (guide and gene), else they are the first two.

    Raises
    ------
    SourceError
        If the table cannot be read, has a single column, or gives one guide two genes.
    """
    if setting in ("", SUFFIX):
        return Guides(by_name=setting == SUFFIX)
    if not Path(setting).is_file():
        raise SourceError(
            f"--guides {shown(setting)} is no file: give a table with the columns guide and gene, or "
            f"{SUFFIX!r} if guides are named after their genes, as CDC48_g1"
        )
    grid = read_grid(setting)
    if len(grid.header) < 2 or grid.problems:
        why = str(grid.problems[0]) if grid.problems else "it has one column"
        raise SourceError(f"{setting} is no table of guides ({why}): give the columns guide and gene")
    guide = _column(grid, _GUIDE_COLUMNS, 0)
    gene = _column(grid, _GENE_COLUMNS, 1 if guide == 0 else 0)
    target: dict[str, str] = {}
    for cells, row in zip(grid.cells, grid.row, strict=True):
        against = cells[gene] or CONTROL
        if target.setdefault(cells[guide], against) != against:
            raise SourceError(
                f"{setting}, row {row}: guide {shown(cells[guide])} is against {shown(against)} and "
                f"{shown(target[cells[guide]])}: name one gene, or a unit of both"
            )
    return Guides(target)


def _column(grid: Grid, names: tuple[str, ...], otherwise: int) -> int:
    low = [name.casefold() for name in grid.header]
    return next((low.index(name) for name in names if name in low), otherwise)
