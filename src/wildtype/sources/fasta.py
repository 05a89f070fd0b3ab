"""FASTA files: headers and sequences, each with its line for messages."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wildtype.errors import SourceError
from wildtype.sources.text import REMEDY, read_text


class FastaRecord(NamedTuple):
    """One record: the line of its header (from 1), the header without ``>``, the sequence in capitals."""

    line: int
    header: str
    sequence: str

    @property
    def name(self) -> str:
        """The header up to the first blank."""
        return self.header.split()[0]


def read_fasta(path: str | Path) -> list[FastaRecord]:
    """Return the records of a plain or gzip-compressed FASTA file.

    Raises
    ------
    SourceError
        If the file cannot be read, does not begin with a header, or has an empty header.
    """
    text = read_text(path)
    if not text.startswith(">"):
        raise SourceError(
            f"{path}, line 1: received {text[:20]!r}, expected a FASTA header line with >; {REMEDY}"
        )
    records = []
    at = 1
    for record in text[1:].split("\n>"):
        header, _, body = record.partition("\n")
        if not header.split():
            raise SourceError(
                f"{path}, line {at}: received an empty header, expected a name after >; {REMEDY}"
            )
        # Lower case marks masked sequence and means the same letters.
        records.append(FastaRecord(at, header.strip(), body.replace("\n", "").upper()))
        at += record.count("\n") + 1
    return records
