"""What every reader of a part returns: what was made of the files, and a card that counts every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, Metabolism, Relation
from wildtype.sources.user_organisms.problems import Problems

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 10
"""Names of no gene that a card lists."""


@dataclass(frozen=True)
class FileCard:
    """What became of the rows of one file: ``rows == used + sum(dropped)``.

    Attributes
    ----------
    file : str
        Path as the description has it.
    use : str
        What the rows became, as in ``relation physical``.
    rows, used : int
        Rows (sets, sequences, reactions) of the file, and those that are used.
    dropped : dict of str to int
        The others, by reason.
    note : str
        What was guessed of the file, and what its reader left aside.
    examples : dict of str to tuple of str
        First names of the rows that were dropped, by reason, `SHOWN` at most.
    sha256 : str
        Hash of the file as it was read.
    """

    file: str
    use: str
    rows: int
    used: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sha256: str = ""

    def __post_init__(self) -> None:
        if self.rows != self.used + sum(self.dropped.values()):
            raise ValueError(
                f"{self.file}: {self.rows} rows, {self.used} used, {dict(self.dropped)} dropped do not add up"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the same in plain values."""
        plain = asdict(self)
        return plain | {"examples": {reason: list(names) for reason, names in self.examples.items()}}


@dataclass(frozen=True, eq=False)
class Read:
    """What a reader made of one part of a description.

    Attributes
    ----------
    cards : tuple of FileCard
        One per file.
    relations : tuple of Relation
        Gene graphs.
    features : tuple of FeatureBlock
        Feature blocks.
    metabolism : Metabolism or None
        Reactions and gene rules.
    measurements : dict of str to DataFrame
        Rows that are no part of an organism and are offered as tables for ``wildtype data import``, by the
        name of the file to write.
    """

    cards: tuple[FileCard, ...] = ()
    relations: tuple[Relation, ...] = ()
    features: tuple[FeatureBlock, ...] = ()
    metabolism: Metabolism | None = None
    measurements: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def locate(path: str, folder: Path, problems: Problems) -> Path | None:
    """Return where the file of a description in ``folder`` is; None, and a problem, if there is none."""
    found = folder / path
    if found.is_file():
        return found
    packed = found.with_name(f"{found.name}.gz")
    hint = f"name {packed.name!r}, which is there" if packed.is_file() else "check the path"
    problems.add(path, 0, f"there is no such file in {str(folder)!r}: {hint}")
    return None


def no_gene_known(path: str, names: Sequence[str], organism: str) -> SourceError:
    """Return the error for a file that names no gene of the organism, with its first names."""
    shown = ", ".join(list(names)[:SHOWN]) or "none"
    return SourceError(
        f"{path} names no gene of organism {organism!r} (its first names: {shown}): name another column, or "
        f"give the genes these names as aliases"
    )
