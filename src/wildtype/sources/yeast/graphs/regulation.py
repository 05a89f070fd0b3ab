"""Regulation of transcription (YEASTRACT): regulator → target, by both kinds of evidence or by any.

The portal gives out tables of 0 and 1 (regulators × targets) and lists of two columns, all separated by
semicolons whatever their name says; two exports of them, which others prepared, are read too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, GeneNames, Rows, match_genes, read_rows, read_text
from wildtype.sources.yeast.graphs.releases import find_release
from wildtype.sources.yeast.names import match_pairs

BOTH = "regulatory_yeastract_20190713_both.tsv.gz"
DOCUMENTED = "regulatory_yeastract2020_documented_edges.csv.gz"
RAW_BOTH = "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_"
RAW_MATRIX = "RegulationMatrix_Documented_"
RAW_PAIRS = "RegulationTwoColumnTable_Documented_"
STAND_IN = "documented-regulation stand-in for TFLink: binding or expression evidence, direct or not"
LISTED = 20
"""How many regulators without a gene are named in the note."""
_PORTAL = (
    "make it with the form of the portal (yeastract-plus.org, regulation matrix), which has no fixed link"
)
_EXPORT = f"an export that only some collections hold: {_PORTAL}"

PUBLISHER = Publisher(
    name="yeastract",
    title="YEASTRACT: documented regulations of transcription",
    publication=Publication(
        citation="Monteiro et al. 2020, YEASTRACT+: a portal for cross-species comparative genomics of "
        "transcription regulation in yeasts, Nucleic Acids Res 48:D642",
        doi="10.1093/nar/gkz859",
    ),
    licence="free for academic use with citation; redistribution not confirmed",
    files=(
        RemoteFile(BOTH, gated=_EXPORT),
        RemoteFile(DOCUMENTED, gated=_EXPORT),
        RemoteFile(f"{RAW_BOTH}2020511.csv", gated=_PORTAL),
        RemoteFile(f"{RAW_MATRIX}2013927.csv", gated=_PORTAL),
        RemoteFile(f"{RAW_PAIRS}2013927.tsv", gated=_PORTAL),
    ),
    published={"associations, 2023": 215_398},
    notes=(
        "files of the portal carry the date of their making; any date is read",
        "regulators are proteins (Abf1p), targets standard names, else ORFs; fields are separated by "
        "semicolons even in files named csv or tsv",
        "a stable https address and the terms of redistribution are not confirmed",
    ),
)


def has_regulatory(folder: str | Path) -> bool:
    """Say whether `read_regulatory` finds a file."""
    return (Path(folder) / BOTH).is_file() or find_release(folder, RAW_BOTH, ".csv") is not None


def has_documented(folder: str | Path) -> bool:
    """Say whether `read_documented` finds a file."""
    raw = find_release(folder, RAW_PAIRS, ".tsv") or find_release(folder, RAW_MATRIX, ".csv")
    return (Path(folder) / DOCUMENTED).is_file() or raw is not None


def read_regulatory(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return ``regulatory``: edges with DNA-binding and expression evidence, from a 0/1 table.

    Rows of the reading are the entries that are 1.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    raw = None if (Path(folder) / BOTH).is_file() else find_release(folder, RAW_BOTH, ".csv")
    note = "DNA-binding and expression evidence; a regulator's row holds its targets"
    if raw is not None:
        return read_regulation_matrix(raw[0], genes, "regulatory", version=raw[1], note=note)
    rows = read_rows(PUBLISHER.files[0].require(folder), header=("SystematicName", ...))
    target, regulator = _ones(rows)
    return _relation(
        "regulatory",
        (list(rows.header[1:]), regulator),
        (rows.text(0), target),
        genes,
        version="2019-07-13",
        note=note,
        file=BOTH,
    )


def read_documented(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return ``regulatory_documented``: every regulation, from lines ``target ORF,regulator protein``.

    Without that export, the portal's two-column table (``regulator;target``) or matrix is read.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    name = "regulatory_documented"
    if not (Path(folder) / DOCUMENTED).is_file():
        if raw := find_release(folder, RAW_PAIRS, ".tsv"):
            rows = read_rows(raw[0], separator=";", fields=2)
            return _relation(
                name,
                (rows.text(0), None),
                (rows.text(1), None),
                genes,
                version=raw[1],
                note=STAND_IN,
                file=raw[0].name,
            )
        if raw := find_release(folder, RAW_MATRIX, ".csv"):
            return read_regulation_matrix(raw[0], genes, name, version=raw[1], note=STAND_IN)
    rows = read_rows(PUBLISHER.files[1].require(folder), separator=",", fields=2)
    return _relation(
        name,
        (rows.text(1), None),
        (rows.text(0), None),
        genes,
        version="2020 export",
        note=STAND_IN,
        file=DOCUMENTED,
    )


def read_regulation_matrix(
    path: str | Path, genes: GeneIndex, name: str, *, version: str = "", note: str = ""
) -> tuple[Relation, ReadReport]:
    """Return the directed relation of any matrix of the portal: rows regulators, columns targets.

    Rows of the reading are the entries that are 1.

    Raises
    ------
    SourceError
        If the file is damaged, has an entry other than 0 and 1, or does not list proteins in its rows.
    """
    path = Path(path)
    first = read_text(path).partition("\n")[0]
    rows = read_rows(path, separator=max(";\t", key=first.count), header=(...,))
    regulators = rows.text(0)
    proteins = sum(regulator.endswith("p") for regulator in regulators)
    if 2 * proteins < len(regulators):
        raise SourceError(
            f"{path} has {proteins} proteins such as Abf1p in the first column of {len(regulators)} rows, "
            f"expected regulators there: turn the table round or {REMEDY}"
        )
    regulator, target = _ones(rows)
    return _relation(
        name,
        (regulators, regulator),
        (list(rows.header[1:]), target),
        genes,
        version=version,
        note=note,
        file=path.name,
    )


def gene_of_protein(names: Iterable[str]) -> list[str]:
    """Return gene names for protein names: ``Gcn4p`` is the product of ``GCN4``; other names stay."""
    out = []
    for name in names:
        protein = len(name) > 1 and name.endswith("p") and name[0].isupper()
        out.append(name[:-1].upper() if protein else name)
    return out


def _ones(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column of every entry that is 1."""
    width = len(rows.header)
    for i, cells in enumerate(rows.cells):
        if not {"0", "1"}.issuperset(cells[1:width]):
            wrong = next(cell for cell in cells[1:width] if cell not in ("0", "1"))
            raise rows.error(i, wrong, "entries that are 0 or 1")
    row, column = np.nonzero(np.array([[cell == "1" for cell in cells[1:width]] for cells in rows.cells]))
    if not row.size:
        raise SourceError(f"{rows.path} holds no entry that is 1, expected thousands: {REMEDY}")
    return row, column


Ends = tuple[list[str], NDArray[np.int64] | None]
"""Names, and which of them stands at the end of every edge (None: one name per edge)."""


def _relation(
    name: str, regulators: Ends, targets: Ends, genes: GeneIndex, *, version: str, note: str, file: str
) -> tuple[Relation, ReadReport]:
    proteins = gene_of_protein(regulators[0])
    by_regulator = match_genes(proteins, genes)
    lost = {given for given, at in zip(regulators[0], by_regulator.position, strict=True) if at < 0}
    if lost:
        shown = [*sorted(lost)[:LISTED], *(["…"] if len(lost) > LISTED else [])]
        note += f"; {len(lost)} regulators that are no gene of the index: {', '.join(shown)}"
    regulator, target = _take(by_regulator, regulators[1]), _take(match_genes(targets[0], genes), targets[1])
    kept, dropped, renamed = match_pairs(regulator, target)
    relation = Relation.from_edges(
        name,
        regulator.position[kept],
        target.position[kept],
        len(genes),
        directed=True,
        source="YEASTRACT",
        version=version,
        note=note,
        dropped=dropped,
    )
    return relation, ReadReport(file, name, len(kept), relation.edges, relation.dropped, renamed)


def _take(names: GeneNames, at: NDArray[np.int64] | None) -> GeneNames:
    return names if at is None else GeneNames(names.position[at], names.renamed[at])
