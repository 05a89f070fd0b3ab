"""AnnData files (.h5ad): cells or samples with their perturbation in ``obs``, measured genes in ``var``.

Cells of one perturbation, condition and replicate become one row: their mean, their standard deviation, and
how many they are. Nothing but the ``obs`` columns of names, the names of ``var`` and one matrix is read.

Legend: o observations · m groups of them · v measured genes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import first_fault
from wildtype.errors import ConfigError, SourceError, reason_of, shown
from wildtype.sources.user_tables.grid import Grid, Numbers
from wildtype.sources.user_tables.vocabulary import Columns
from wildtype.unpacking import check_hdf5

if TYPE_CHECKING:
    import pandas as pd

ENDING = ".h5ad"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NAMES = (
    "gene_symbols",
    "gene_symbol",
    "gene_name",
    "gene_names",
    "symbol",
    "feature_name",
    "gene_id",
    "gene_ids",
)
"""Usual columns of ``var`` with other names of the measured genes."""


def is_annotated(path: str | Path) -> bool:
    """Return whether a file is an AnnData file, by its name or its first bytes."""
    path = Path(path)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == ENDING or file.read(len(_HDF5)) == _HDF5


@dataclass(frozen=True, eq=False)
class Annotated:
    """Cells with names and numbers.

    Attributes
    ----------
    grid : Grid
        One row per observation; header and cells are the columns of ``obs`` that hold names. Its numbers are
        empty.
    names : mapping of str to tuple of v str
        Names of the measured genes: those of ``var`` and the usual further ones, by column.
    matrix : array or sparse matrix [o, v]
        The numbers.
    """

    grid: Grid
    names: Mapping[str, tuple[str, ...]]
    matrix: Any


def read_annotated(path: str | Path, columns: Columns, layer: str = "") -> Annotated:
    """Read an AnnData file.

    Parameters
    ----------
    path : path
        The file.
    columns : Columns
        Columns of ``obs`` that were named; these are read also if they hold numbers.
    layer : str
        Which of its layers; ``X`` if empty.

    Raises
    ------
    ConfigError
        If anndata is not installed.
    SourceError
        If the file cannot be read, has no such layer, no cells or no genes, or a column of ``obs`` whose name
        holds a hidden character.
    """
    try:
        import anndata  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ConfigError(
            "an .h5ad file needs anndata, which is not installed: pip install 'wildtype[anndata]'"
        ) from error
    path = Path(path)
    try:
        check_hdf5(path)
        data = anndata.read_h5ad(path)
    except SourceError:
        raise
    except Exception as error:
        # A damaged file fails in whichever library reads that part of it.
        raise SourceError(f"{path} is no whole .h5ad file ({reason_of(error)}): export it again") from error
    if layer and layer not in data.layers:
        known = ", ".join(map(shown, data.layers)) or "none"
        raise SourceError(f"{path} has no layer {shown(layer)} (it has {known}): name one with --layer")
    matrix = data.layers[layer] if layer else data.X
    if matrix is None or 0 in matrix.shape:
        raise SourceError(f"{path} has no numbers in {shown(layer or 'X')}: name a layer with --layer")
    named = {part.strip() for f in fields(columns) for part in getattr(columns, f.name).split(",")}
    obs = data.obs[[c for c in data.obs.columns if str(c) in named or not _is_number(data.obs[c])]]
    header = tuple(str(column) for column in obs.columns)
    if not header:
        raise SourceError(
            f"{path} has no column of names in obs: one must hold the perturbation of every cell"
        )
    if fault := first_fault(header):
        raise SourceError(f"{path} has a column of obs whose name {fault}")
    texts = [_texts(obs[column]) for column in obs.columns]
    cells = [list(row) for row in zip(*texts, strict=True)]
    rows = len(cells)
    names = {"var names": tuple(map(str, data.var_names))}
    names |= {str(c): tuple(_texts(data.var[c])) for c in data.var.columns if str(c).casefold() in _NAMES}
    nothing = np.zeros((rows, 0))
    numbers = Numbers((), nothing, nothing, np.zeros(rows, np.int64))
    grid = Grid(path, header, cells, list(range(1, rows + 1)), [0] * rows, rows, (), numbers=numbers)
    return Annotated(grid, names, matrix)


def _is_number(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "fc" or (column.dtype.kind in "iu" and column.nunique() > 100)


def _texts(column: pd.Series[Any]) -> list[str]:
    return ["" if value is None or value != value else str(value).strip() for value in column.tolist()]


def averaged(cells: Annotated, names: Sequence[str], key: Callable[[Sequence[str]], Hashable]) -> Grid:
    """Return one row per group of cells that are alike, in order of first appearance.

    Parameters
    ----------
    cells : Annotated
        The cells.
    names : sequence of v str
        Names of the measured genes.
    key : callable
        Of the texts of a cell: what is equal for cells that are averaged.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, row in enumerate(cells.grid.cells):
        groups.setdefault(key(row), []).append(at)
    matrix = cells.matrix.tocsr() if hasattr(cells.matrix, "tocsr") else cells.matrix
    value = np.empty((len(groups), len(names)))
    sd = np.full((len(groups), len(names)), np.nan)
    for place, members in enumerate(groups.values()):
        block = _dense(matrix[members])
        # Numbers that are missing in some cells are averaged over the others.
        there = ~np.isnan(block)
        count = there.sum(axis=0)
        mean = np.where(there, block, 0.0).sum(axis=0) / np.maximum(count, 1)
        value[place] = np.where(count > 0, mean, np.nan)
        # Two passes: a difference of sums of squares loses what a small sd beside a large mean has.
        squares = np.where(there, block - mean, 0.0) ** 2
        spread = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1))
        sd[place] = np.where(count > 1, spread, np.nan)
    first = [members[0] for members in groups.values()]
    sizes = np.array([len(members) for members in groups.values()], np.int64)
    grid = cells.grid
    return replace(
        grid,
        cells=[grid.cells[at] for at in first],
        row=[grid.row[at] for at in first],
        line=[0] * len(first),
        rows=len(first),
        notes=(
            *grid.notes,
            f"{grid.rows:,} cells or samples are averaged to {len(first):,} rows of {sizes.min():,} to "
            f"{sizes.max():,}",
        ),
        numbers=Numbers(tuple(names), value, sd, sizes),
    )


def _dense(block: Any) -> NDArray[np.float64]:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block, np.float64)
