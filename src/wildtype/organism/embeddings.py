"""Files of vectors by gene name, such as the embeddings of a protein language model: CSV, Parquet or NPZ.

CSV and Parquet: one row per gene, the names in the first column (in Parquet, else in the index), numbers in
the others. NPZ: one array of names [r] and one of numbers [r, f], under any keys.

Legend: n genes · r rows of the file · f columns.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import AmbiguousGeneError, SourceError, UnknownGeneError, reason_of
from wildtype.files import sha256_of_file
from wildtype.organism.components import spread
from wildtype.organism.features import FeatureBlock
from wildtype.organism.genes import GeneIndex

SHOWN = 5
"""Number of names that are listed where many do not fit."""
SUFFIXES = (".csv", ".parquet", ".npz")


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
    """

    block: FeatureBlock
    unknown: tuple[str, ...]
    ambiguous: tuple[str, ...]
    repeated: tuple[str, ...]
    without: int


def read_embeddings(path: str | Path, genes: GeneIndex) -> Embeddings:
    """Read vectors by gene name; names are systematic, standard, or any alias.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, not in one of the layouts, holds an infinite number, or names no
        gene of the organism.
    """
    path = Path(path)
    if not path.is_file():
        raise SourceError(f"there is no file {str(path)!r} to read gene features from: check the path")
    try:
        names, values, columns = _read(path)
    except SourceError:
        raise
    except (ValueError, TypeError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"{str(path)!r} cannot be read as vectors by gene name ({reason_of(error)}): "
            f"give names and numbers"
        ) from error
    if not columns or np.isinf(values).any():
        wrong = "an infinite number" if columns else "no column of numbers"
        raise SourceError(
            f"{str(path)!r} holds {wrong}: give names and finite numbers, empty where not known"
        )
    place: dict[int, int] = {}
    lost: dict[str, list[str]] = {"unknown": [], "ambiguous": [], "repeated": []}
    for row, name in enumerate(names):
        try:
            position = genes.find(name)
        except AmbiguousGeneError:
            lost["ambiguous"].append(name)
        except UnknownGeneError:
            lost["unknown"].append(name)
        else:
            if position in place:
                lost["repeated"].append(name)
            else:
                place[position] = row
    if not place:
        raise SourceError(
            f"{str(path)!r} names no gene of organism {genes.organism!r} (its first names: "
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
    block = FeatureBlock(
        path.stem,
        out,
        columns,
        source=f"{path.name}, sha256 {sha256_of_file(path)[:12]}",
        note="; ".join(facts),
    )
    return Embeddings(
        block, tuple(lost["unknown"]), tuple(lost["ambiguous"]), tuple(lost["repeated"]), without
    )


def _read(path: Path) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    """Return names [r], numbers [r, f] and the names of columns."""
    if path.suffix == ".npz":
        return _read_npz(path)
    import pandas as pd

    if path.suffix == ".csv":
        frame = pd.read_csv(path, dtype={0: str})
    elif path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        if all(np.issubdtype(dtype, np.number) for dtype in frame.dtypes):
            frame = frame.reset_index()
    else:
        raise SourceError(f"{str(path)!r} ends in none of {', '.join(SUFFIXES)}: give one of these")
    # An unnamed gene would become the text 'nan' and be counted as unknown; it is an error instead.
    names = frame.iloc[:, 0]
    if names.isna().any():
        at = int(np.flatnonzero(names.isna())[0]) + 1
        raise SourceError(f"{str(path)!r}, row {at}: the first column has no gene name; give one, or no row")
    values = frame.iloc[:, 1:]
    return names.astype(str).tolist(), values.to_numpy(np.float64), tuple(map(str, values.columns))


def _read_npz(path: Path) -> tuple[list[str], NDArray[np.float64], tuple[str, ...]]:
    with np.load(path, allow_pickle=False) as stored:
        arrays = [stored[key] for key in stored.files]
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
