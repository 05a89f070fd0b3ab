"""Regulation of transcription, regulator → target: YEASTRACT, TFLink and tables prepared by other studies.

YEASTRACT gives out tables of 0 and 1 (regulators × targets) and lists of two columns, all separated by
semicolons whatever their name says. Two exports of them, prepared by others, are read too. Two further files
are matrices (rows targets, columns regulators) whose header has no cell above the names of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import TextColumn, read_columns
from wildtype.sources.row_filter import Ints, RowFilter, take
from wildtype.sources.text import REMEDY, GeneNames, Rows, match_genes, read_rows, read_text
from wildtype.sources.yeast.files import find_release, publisher
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession
from wildtype.sources.yeast.graphs.pair_lists import Graph, edges

YEASTRACT = publisher("yeastract")
BOTH = "regulatory_yeastract_20190713_both.tsv.gz"
DOCUMENTED = "regulatory_yeastract2020_documented_edges.csv.gz"
RAW_BOTH = "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_"
RAW_MATRIX = "RegulationMatrix_Documented_"
RAW_PAIRS = "RegulationTwoColumnTable_Documented_"
STAND_IN = "documented-regulation stand-in for TFLink: binding or expression evidence, direct or not"
LISTED = 20
"""How many regulators without a gene are named in the note."""
PRIORS, RESPONSE_STUDIES, TFLINK = (
    publisher(name) for name in ("inferelator-yeast", "tf-responses", "tflink")
)
GOLD, MOTIFS = PRIORS.files
(RESPONSES,), (TFLINK_FILE,) = RESPONSE_STUDIES.files, TFLINK.files
_WHOLE = re.compile(r"-?[0-9]{1,6}")
TFLINK_HEADER = (
    "UniprotID.TF", "UniprotID.Target", "NCBI.GeneID.TF", "NCBI.GeneID.Target", "Name.TF", "Name.Target",
    "Detection.method", "PubmedID", "Organism", "Source.database", "Small-scale.evidence", "TF.TFLink.ortho",
    "TF.nonTFLink.ortho", "Target.TFLink.ortho", "Target.nonTFLink.ortho",
)  # fmt: skip
ACCESSION, NAME, SPECIES = (0, 1), (4, 5), 8
ORGANISM = "Saccharomyces cerevisiae"
FOREIGN = "another organism"


def has_regulatory(folder: str | Path) -> bool:
    """Return whether `read_regulatory` finds a file."""
    return (Path(folder) / BOTH).is_file() or find_release(folder, RAW_BOTH, ".csv") is not None


def has_documented(folder: str | Path) -> bool:
    """Return whether `read_documented` finds a file."""
    raw = find_release(folder, RAW_PAIRS, ".tsv") or find_release(folder, RAW_MATRIX, ".csv")
    return (Path(folder) / DOCUMENTED).is_file() or raw is not None


def read_regulatory(folder: str | Path, genes: GeneIndex) -> Graph:
    """Return ``regulatory``: edges with DNA-binding and expression evidence, from a 0/1 table.

    Rows of the report are the entries that are 1.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    raw = None if (Path(folder) / BOTH).is_file() else find_release(folder, RAW_BOTH, ".csv")
    note = "DNA-binding and expression evidence; a regulator's row holds its targets"
    if raw is not None:
        return read_regulation_matrix(raw[0], genes, "regulatory", version=raw[1], note=note)
    rows = read_rows(YEASTRACT.files[0].require(folder), header=("SystematicName", ...))
    target, regulator = _ones(rows)
    ends = (list(rows.header[1:]), regulator), (rows.text(0), target)
    return _yeastract("regulatory", *ends, genes, version="2019-07-13", note=note, file=BOTH)


def read_documented(folder: str | Path, genes: GeneIndex) -> Graph:
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
            ends = (rows.text(0), None), (rows.text(1), None)
            return _yeastract(name, *ends, genes, version=raw[1], note=STAND_IN, file=raw[0].name)
        if raw := find_release(folder, RAW_MATRIX, ".csv"):
            return read_regulation_matrix(raw[0], genes, name, version=raw[1], note=STAND_IN)
    rows = read_rows(YEASTRACT.files[1].require(folder), separator=",", fields=2)
    ends = (rows.text(1), None), (rows.text(0), None)
    return _yeastract(name, *ends, genes, version="2020 export", note=STAND_IN, file=DOCUMENTED)


def read_regulation_matrix(
    path: str | Path, genes: GeneIndex, name: str, *, version: str = "", note: str = ""
) -> Graph:
    """Return the directed relation of any matrix of the portal: rows regulators, columns targets.

    Rows of the report are the entries that are 1.

    Raises
    ------
    SourceError
        If the file is damaged, has an entry other than 0 and 1, or does not list proteins in its rows.
    """
    path = Path(path)
    first = read_text(path).partition("\n")[0]
    rows = read_rows(path, separator=max(";\t", key=first.count), header=(...,))
    regulators = rows.text(0)
    # Regulators are proteins (Abf1p) and targets genes: a matrix turned round would reverse every edge
    # unseen.
    proteins = sum(regulator.endswith("p") for regulator in regulators)
    if 2 * proteins < len(regulators):
        raise SourceError(
            f"{path} has {proteins} proteins such as Abf1p in the first column of {len(regulators)} rows, "
            f"expected regulators there: turn the table round or {REMEDY}"
        )
    regulator, target = _ones(rows)
    ends = (regulators, regulator), (list(rows.header[1:]), target)
    return _yeastract(name, *ends, genes, version=version, note=note, file=path.name)


def gene_of_protein(names: Iterable[str]) -> list[str]:
    """Return gene names for protein names: ``Gcn4p`` is the product of ``GCN4``; other names stay."""
    return [
        name[:-1].upper() if len(name) > 1 and name.endswith("p") and name[0].isupper() else name
        for name in names
    ]


def _ones(rows: Rows) -> tuple[Ints, Ints]:
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


Ends = tuple[list[str], Ints | None]
"""Names, and which of them is at the end of every edge (None: one name per edge)."""


def _yeastract(
    name: str, regulators: Ends, targets: Ends, genes: GeneIndex, *, version: str, note: str, file: str
) -> Graph:
    regulator, target = match_genes(gene_of_protein(regulators[0]), genes), match_genes(targets[0], genes)
    lost = {given for given, at in zip(regulators[0], regulator.position, strict=True) if at < 0}
    if lost:
        shown = [*sorted(lost)[:LISTED], *(["…"] if len(lost) > LISTED else [])]
        note += f"; {len(lost)} regulators that are no gene of the index: {', '.join(shown)}"
    if regulators[1] is not None:
        regulator = take(regulator, regulators[1])
    if targets[1] is not None:
        target = take(target, targets[1])
    return edges(
        name,
        regulator,
        target,
        genes,
        file=file,
        directed=True,
        source="YEASTRACT",
        version=version,
        note=note,
    )


def read_gold_standard(folder: str | Path, genes: GeneIndex) -> Graph:
    """Return ``regulatory_gold_standard``: directed, without sign. Rows of the report are non-zero entries.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than -1, 0 and 1.
    """
    rows, regulators, values = _matrix(GOLD.require(folder))
    wrong = ~np.isin(values, (-1, 0, 1))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise rows.error(row + 1, rows.cells[row + 1][column + 1], "entries that are -1, 0 or 1")
    note = f"{int((values < 0).sum()):,} of the edges repress; the sign is not kept"
    return _prior("regulatory_gold_standard", rows, regulators, values, genes, weighted=False, note=note)


def read_motifs(folder: str | Path, genes: GeneIndex) -> Graph:
    """Return ``regulatory_motifs``: directed, weighted by the regulator's motifs in the target's promoter.

    The file gives repressors a negative number, whose sign is not kept. Rows of the report are non-zero
    entries.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry that is no whole number.
    """
    rows, regulators, values = _matrix(MOTIFS.require(folder))
    negative = int((values < 0).sum())
    note = (
        f"weight: motifs in the promoter, most of which are not bound; {negative:,} counts are negative "
        "in the file (repressors); the sign is not kept"
    )
    return _prior("regulatory_motifs", rows, regulators, values, genes, weighted=True, note=note)


def _matrix(path: Path) -> tuple[Rows, list[str], NDArray[np.float64]]:
    """Return the rows (the first is the header), the regulators, and the entries [targets, regulators]."""
    rows = read_rows(path, least=2, quoted=True)
    regulators = [name.strip() for name in rows.cells[0]]
    values = np.zeros((len(rows) - 1, len(regulators)))
    for row, cells in enumerate(rows.cells[1:], 1):
        if len(cells) != len(regulators) + 1:
            raise rows.error(row, len(cells), f"{len(regulators) + 1} fields")
        for column, cell in enumerate(cells[1:]):
            if cell != "0":
                if not _WHOLE.fullmatch(cell):
                    raise rows.error(row, cell, "whole numbers")
                values[row - 1, column] = int(cell)
    return rows, regulators, values


def _prior(
    name: str,
    rows: Rows,
    regulators: Sequence[str],
    values: NDArray[np.float64],
    genes: GeneIndex,
    *,
    weighted: bool,
    note: str,
) -> Graph:
    at, column = np.nonzero(values)
    return edges(
        name,
        take(match_genes(regulators, genes), column),
        take(match_genes(rows.text(0)[1:], genes), at),
        genes,
        file=rows.path.name,
        directed=True,
        # A relation says who regulates whom: attention has no use for the sign, and weights must be positive.
        weights=np.abs(values[at, column]) if weighted else None,
        source="inferelator",
        note=note,
    )


def read_responses(folder: str | Path, genes: GeneIndex) -> Graph:
    """Return ``regulatory_responses``: directed, from a deleted factor to a target that it binds.

    The weight is the absolute z-score of the target's expression, the largest over the studies.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(RESPONSES.require(folder), header=("tf", "target", "value", "pvalue", "study"))
    score = np.abs(rows.numbers(2)).astype(np.float32)
    used = RowFilter(len(rows))
    used.drop("score 0", score == 0)
    regulator, target = (match_genes(rows.text(i), genes) for i in (0, 1))
    return edges(
        "regulatory_responses",
        regulator,
        target,
        genes,
        file=rows.path.name,
        directed=True,
        weights=score,
        used=used,
        source="saezlab/yeast_phospho",
        note="weight: absolute z-score of expression in the deletion; a measurement of deletions",
        measured=("kemmeren2014:mRNA",),
    )


def read_tflink(folder: str | Path, genes: GeneIndex, uniprot: Accessions | None = None) -> Graph:
    """Return the directed, unweighted relation ``tflink``, merged from several databases of regulation.

    Parameters
    ----------
    folder : path
        Holds the file under its publisher's name.
    genes : GeneIndex
        What the relation is over.
    uniprot : mapping of str to tuple of int, optional
        UniProt accession to genes (`read_accessions`); where an accession is not in it, the name decides. A
        field may list several, which must all mean one gene.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    path = TFLINK_FILE.require(folder)
    needed = {*ACCESSION, *NAME, SPECIES}
    types = [str if i in needed else None for i in range(len(TFLINK_HEADER))]
    table = read_columns(path, types=types, header=TFLINK_HEADER)
    used = RowFilter(len(table))
    used.drop(FOREIGN, table.text(SPECIES).map(lambda name: name != ORGANISM, bool))
    regulator, target = (
        _genes_listed(table.text(accession), table.text(name), genes, uniprot or {})
        for accession, name in zip(ACCESSION, NAME, strict=True)
    )
    how = "UniProt accession, else name" if uniprot else "name"
    return edges(
        "tflink",
        regulator,
        target,
        genes,
        file=path.name,
        directed=True,
        used=used,
        source="TFLink",
        version="1.0",
        note=f"binding or expression evidence; genes found by {how}",
    )


def _genes_listed(
    accession: TextColumn, name: TextColumn, genes: GeneIndex, uniprot: Accessions
) -> GeneNames:
    listed = sorted({part for text in name.names for part in _parts(text)})
    matched = match_genes(listed, genes)
    position = dict(zip(listed, matched.position.tolist(), strict=True))
    older = dict(zip(listed, matched.renamed.tolist(), strict=True))
    # Accessions are the safer of the two: the names are standard names, which change, and are no ORF names.
    first = accession.map(
        lambda text: _agreed(gene for part in _parts(text) for gene in uniprot.get(base_accession(part), ())),
        np.int64,
    )
    second = name.map(lambda text: _agreed(position[part] for part in _parts(text)), np.int64)
    renamed = name.map(lambda text: any(older[part] for part in _parts(text)), bool)
    return GeneNames(np.where(first == -1, second, first), (first == -1) & renamed)


def _agreed(found: Iterable[int]) -> int:
    """Return the one gene that all known members of a list mean; -1 if none is known, -2 if they differ."""
    known = set(found) - {-1}
    return -1 if not known else known.pop() if len(known) == 1 else -2


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip() not in ("", "-")]
