"""What became of the rows of a publisher's file: kept, or dropped for a stated reason, never in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReadReport:
    """What became of the rows of one file: ``rows == kept + sum(dropped)``.

    Attributes
    ----------
    file : str
        File name.
    use : str
        What the rows became: a relation, a feature block, a dataset.
    rows, kept : int
        Rows in the file (or entries, for a matrix) and rows that are used.
    dropped : dict of str to int
        The others, by reason.
    renamed : int
        Kept rows that name a gene by an older name or alias.
    """

    file: str
    use: str
    rows: int
    kept: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    renamed: int = 0

    def __str__(self) -> str:
        parts = [f"{self.rows:,} rows read", f"{self.kept:,} kept"]
        parts += [f"{count:,} {reason}" for reason, count in self.dropped.items()]
        if self.renamed:
            parts.append(f"{self.renamed:,} of the kept name a gene by an older name")
        return f"{self.file}: " + ", ".join(parts)
