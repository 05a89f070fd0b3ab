"""GFF3 of SGD: which bases of the genome code for which ORF.

Coordinates are those of the CDS rows: a gene row spans introns, and in recent releases the untranslated ends
of all its transcripts too. Everything from the line ``##FASTA`` on is sequence and not looked at.

Legend: s ORFs with a coding row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, shown
from wildtype.sources.text import REMEDY, read_text

CODING = "CDS"
FIELDS = 9
MAX_DEPTH = 8
"""Parents above a coding row (a transcript, a gene); more goes in a circle."""
SIGN = {"+": 1, "-": -1, ".": 0, "?": 0}
UNIPROT = "UniProtKB:"
_BASE = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, eq=False)
class CodingSpans:
    """The spans of the coding rows of s ORFs, in the order of the file.

    Attributes
    ----------
    names : tuple of s str
        Systematic names.
    sequence : tuple of s str
        Chromosomes as the file names them (``chrIV``, ``chrmt``).
    start, end : float64 [s]
        First and last base, from 1.
    strand : int8 [s]
        1 forward, -1 reverse, 0 where neither is given.
    accession : tuple of s str
        UniProt accession of the product; empty where none is given.
    rows : int
        Coding rows in the file.
    """

    names: tuple[str, ...]
    sequence: tuple[str, ...]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    strand: NDArray[np.int8]
    accession: tuple[str, ...]
    rows: int


class _Coding(NamedTuple):
    line: int
    sequence: str
    start: int
    end: int
    strand: str
    attributes: dict[str, str]


def coding_spans(path: str | Path) -> CodingSpans:
    """Return the span of the coding rows of every ORF.

    A coding row belongs to the uppermost feature above it (its transcript's gene); without one, its own name
    says whose it is (``YAL001C_CDS``).

    Raises
    ------
    SourceError
        If the file is damaged, has no coding row, or one that belongs to no ORF or to two chromosomes.
    """
    path = Path(path)
    coding, above = _read(path)
    if not coding:
        raise SourceError(f"{path} holds no row of type {CODING}, expected thousands: {REMEDY}")
    spans: dict[str, tuple[str, int, int, str, str]] = {}
    for row in coding:
        name = _owner(row, above, path)
        product = row.attributes.get("protein_id", "")
        product = product.removeprefix(UNIPROT) if product.startswith(UNIPROT) else ""
        sequence, start, end, strand, earlier = spans.get(
            name, (row.sequence, row.start, row.end, row.strand, "")
        )
        if sequence != row.sequence:
            raise _wrong(
                path, row.line, f"{shown(name)} on {shown(row.sequence)}", f"it on {shown(sequence)}"
            )
        spans[name] = (sequence, min(start, row.start), max(end, row.end), strand, earlier or product)
    values = list(spans.values())
    return CodingSpans(
        tuple(spans),
        tuple(value[0] for value in values),
        np.array([value[1] for value in values], dtype=np.float64),
        np.array([value[2] for value in values], dtype=np.float64),
        np.array([SIGN[value[3]] for value in values], dtype=np.int8),
        tuple(value[4] for value in values),
        len(coding),
    )


def _read(path: Path) -> tuple[list[_Coding], dict[str, tuple[str, str]]]:
    """Return the coding rows, and name and first parent of every feature with an id."""
    coding: list[_Coding] = []
    above: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.startswith(("##FASTA", ">")):
            break
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != FIELDS:
            raise _wrong(path, number, f"{len(cells)} fields", f"{FIELDS}")
        attributes = _attributes(cells[8])
        if feature := attributes.get("ID"):
            above[feature] = attributes.get("Name", feature), _first(attributes.get("Parent", ""))
        if cells[2] != CODING:
            continue
        first, last = (int(cell) if _BASE.fullmatch(cell) else 0 for cell in cells[3:5])
        if not 1 <= first <= last:
            raise _wrong(
                path, number, f"bases {shown(cells[3])} to {shown(cells[4])}", "a first and a later last base"
            )
        if cells[6] not in SIGN:
            raise _wrong(path, number, f"strand {shown(cells[6])}", "+, - or .")
        coding.append(_Coding(number, unquote(cells[0]), first, last, cells[6], attributes))
    return coding, above


def _attributes(text: str) -> dict[str, str]:
    """Take ``key=value;key=value`` apart; values are percent-encoded."""
    pairs = (part.partition("=") for part in text.strip().split(";"))
    return {unquote(key.strip()): value for key, equals, value in pairs if equals}


def _first(parents: str) -> str:
    return unquote(parents.partition(",")[0])


def _owner(row: _Coding, above: dict[str, tuple[str, str]], path: Path) -> str:
    name, parent = "", _first(row.attributes.get("Parent", ""))
    for _ in range(MAX_DEPTH):
        if parent not in above:
            break
        name, parent = above[parent]
    else:
        raise _wrong(path, row.line, "a coding row whose parents go in a circle", "a gene above it")
    own = row.attributes.get("Name", "")
    name = unquote(name) or unquote(own).removesuffix(f"_{CODING}")
    if not name:
        raise _wrong(path, row.line, "a coding row without parent or name", "either")
    return name


def _wrong(path: Path, line: int, received: str, expected: str) -> SourceError:
    return SourceError(f"{path}, line {line}: received {received}, expected {expected}; {REMEDY}")
