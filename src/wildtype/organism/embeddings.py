"""Vectors by gene name, such as the embeddings of a protein language model: CSV, TSV, Parquet, NPZ, .h5ad.

CSV, TSV and Parquet: one row per gene, the names in the first column (in Parquet, else in the index), numbers
in the others. NPZ: one array of names [r] and one of numbers [r, f], under any keys. AnnData (.h5ad): the
columns of numbers of ``var``. Text files may be gzip-compressed.

Legend: n genes · r rows of the file · f columns.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, reason_of, shown
from wildtype.files import sha256_of_file
from wildtype.organism.components import spread
from wildtype.organism.features import FeatureBlock
from wildtype.organism.genes import GeneIndex
from wildtype.tables import with_line_feeds
from wildtype.unpacking import check_hdf5, opened, read_arrays, read_parquet

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
"""Number of names that are listed where many do not fit."""
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz", ".h5ad")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The block read from a file, and the names that were not used.

    Attributes
    ----------
    block : FeatureBlock
        Over the n genes, named after the file; NaN for genes without values. Its note repeats the counts.
    unknown, ambiguous, repeated : tuple of str
        Names of no gene, of more than one, and those of a gene that an earlier row named already; their rows
        are left out.
    without : int
        Genes that the file lacks.
    rows : int
        Names of the file.
    """

    block: FeatureBlock
    unknown: tuple[str, ...]
    ambiguous: tuple[str, ...]
    repeated: tuple[str, ...]
    without: int
    rows: int


def read_embeddings(
    given: str | Path | pd.DataFrame, genes: GeneIndex, *, name: str = "", columns: Sequence[str] = ()
) -> Embeddings:
    """Read vectors by gene name; names are systematic, standard, or any alias.

    Parameters
    ----------
    given : path or DataFrame
        A file, or a table whose index holds the names.
    genes : GeneIndex
        Of the organism.
    name : str
        Of the block; that of the file if not given.
    columns : sequence of str
        The columns to take; all if empty.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, not in one of the layouts, lacks a column, holds an infinite
        number, or names no gene of the organism.
    """
    path = given if isinstance(given, str | Path) else None
    what = repr(str(path)) if path is not None else "the table of features"
    if path is not None and not Path(path).is_file():
        raise SourceError(f"there is no file {what} to read gene features from: check the path")
    names, values, titles = _read_any(given, what, columns)
    if not titles or np.isinf(values).any():
        wrong = "an infinite number" if titles else "no column of numbers"
        raise SourceError(f"{what} holds {wrong}: give names and finite numbers, empty where not known")
    place: dict[int, int] = {}
    lost: dict[str, list[str]] = {"unknown": [], "ambiguous": [], "repeated": []}
    for row, called in enumerate(names):
        # Not `find`: it looks through all names for suggestions, for each of thousands of unknown ones.
        found = genes.find_each(called)
        if len(found) != 1:
            lost["ambiguous" if found else "unknown"].append(called)
        elif found[0] in place:
            lost["repeated"].append(called)
        else:
            place[found[0]] = row
    if not place:
        raise SourceError(
            f"{what} names no gene of organism {genes.organism!r} (its first names: "
            f"{', '.join(names[:SHOWN]) or 'none'}): use the organism's gene names"
        )
    n = len(genes)
    out = spread(values[list(place.values())], np.array(list(place), dtype=np.int64), n)
    without = int((~np.isfinite(out).any(1)).sum())
    facts = [f"{len(place):,} of {len(names):,} rows used", f"{without:,} genes without values"]
    facts += [
        f"{len(found):,} {reason} ({', '.join(found[:SHOWN])}{', …' if len(found) > SHOWN else ''})"
        for reason, found in (
            ("names of no gene", lost["unknown"]),
            ("names of more than one gene", lost["ambiguous"]),
            ("further rows of one gene", lost["repeated"]),
        )
        if found
    ]
    facts.append("made elsewhere: what it was trained on, and may leak, is not known here")
    source = "a table in memory"
    if path is not None:
        source = f"{Path(path).name}, sha256 {sha256_of_file(path)[:12]}"
        name = name or _bare(Path(path)).stem
    block = FeatureBlock(name or "table", out, titles, source=source, note="; ".join(facts))
    return Embeddings(
        block, tuple(lost["unknown"]), tuple(lost["ambiguous"]), tuple(lost["repeated"]), without, len(names)
    )


def _read_any(
    given: str | Path | pd.DataFrame, what: str, columns: Sequence[str]
) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    try:
        if isinstance(given, str | Path):
            return _read(Path(given), columns)
        return _of_frame(given.copy(), what, columns)
    except SourceError:
        raise
    except (ValueError, TypeError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"{what} cannot be read as vectors by gene name ({reason_of(error)}): give names and numbers"
        ) from error


def read_names(path: str | Path, columns: Sequence[str] = ()) -> list[str]:
    """Return the names of a file in their order; raises as ``read_embeddings`` does."""
    return _read_any(path, str(path), columns)[0]


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def _read(path: Path, columns: Sequence[str]) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    """Return names [r], numbers [r, f] and the names of columns."""
    what, suffix = repr(str(path)), _bare(path).suffix
    if suffix == ".npz":
        return _read_npz(path)
    import pandas as pd

    if suffix in (".csv", ".tsv"):
        with opened(path) as stream:
            frame = pd.read_csv(
                with_line_feeds(stream),
                # pandas reads NA as missing, as numbers need it, but not in a column with a converter: genes
                # are called so.
                converters={0: lambda cell: cell or None},
                sep="," if suffix == ".csv" else "\t",
            )
    elif suffix == ".parquet":
        frame = read_parquet(path).to_pandas()
        if all(np.issubdtype(dtype, np.number) for dtype in frame.dtypes):
            frame = frame.reset_index()
    elif suffix == ".h5ad":
        frame = _read_var(path)
        columns = columns or [str(name) for name in frame.select_dtypes("number").columns]
        return _of_frame(frame, what, columns)
    else:
        raise SourceError(f"{what} ends in none of {', '.join(SUFFIXES)}: give one of these")
    # An unnamed gene would become the text 'nan' and be counted as unknown; it is an error instead.
    return _of_frame(frame.set_index(frame.columns[0]), what, columns, lines=suffix != ".parquet")


def _of_frame(
    frame: pd.DataFrame, what: str, columns: Sequence[str], lines: bool = False
) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    """Return names, numbers and titles of a table indexed by names; ``lines``: of a file with a header."""

    def row(at: int) -> str:
        return f"{what}, row {at + 1} (line {at + 2})" if lines else f"{what}, row {at + 1}"

    if frame.index.hasnans:
        at = int(np.flatnonzero(frame.index.isna())[0])
        raise SourceError(f"{row(at)}: the first column has no gene name; give one, or no row")
    frame.columns = frame.columns.map(str)
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        has = ", ".join(map(repr, frame.columns[:20]))
        raise SourceError(f"{what} has no column {absent[0]!r} (it has {has}): name one that it has")
    frame = frame[list(columns)] if columns else frame
    for title in frame.select_dtypes("object").columns:
        wrong = frame[title].map(lambda cell: not _is_number(cell))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise SourceError(
                f"{row(at)}, column {title!r}: received {shown(frame[title].iloc[at])}, expected a number; "
                f"correct it, or name the columns to take"
            )
    return frame.index.astype(str).tolist(), frame.to_numpy(np.float64), tuple(frame.columns)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return cell is None
    return True


def _read_var(path: Path) -> pd.DataFrame:
    try:
        import anndata
    except ImportError:
        raise SourceError(
            f"{str(path)!r} is an AnnData file, and anndata is not installed: pip install 'wildtype[anndata]'"
        ) from None
    check_hdf5(path, within="var")
    # backed: only var is read, not the matrix of cells
    found = anndata.read_h5ad(path, backed="r")
    try:
        frame: pd.DataFrame = found.var.copy()
    finally:
        found.file.close()
    return frame


def _read_npz(path: Path) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    arrays = list(read_arrays(path).values())
    names = [x for x in arrays if x.ndim == 1 and x.dtype.kind in "US"]
    numbers = [x for x in arrays if x.ndim == 2 and x.dtype.kind in "fiu"]
    if len(names) != 1 or len(numbers) != 1 or len(names[0]) != len(numbers[0]):
        held = ", ".join(f"{x.dtype}{list(x.shape)}" for x in arrays) or "nothing"
        raise SourceError(
            f"{str(path)!r} holds {held}, expected one array of names [r] and one of numbers [r, f]"
        )
    columns = tuple(f"d{i}" for i in range(numbers[0].shape[1]))
    text = [x.decode() if isinstance(x, bytes) else str(x) for x in names[0].tolist()]
    return text, numbers[0].astype(np.float64), columns
