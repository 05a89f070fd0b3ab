"""Row accounting: which rows of a publisher's file, and of every step to a dataset, were kept or dropped.

No row is dropped without a count and a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wildtype.errors import DatasetError


@dataclass(frozen=True)
class ReadReport:
    """Rows of one file, kept and dropped: ``rows == kept + sum(dropped)``.

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


def add_counts(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return several counts by reason added up."""
    out: dict[str, int] = {}
    for part in counts:
        for reason, count in part.items():
            out[reason] = out.get(reason, 0) + count
    return out


@dataclass(frozen=True)
class StageReport:
    """One step: ``rows_in == rows_out + sum(dropped) + sum(merged) - sum(added)``.

    Attributes
    ----------
    stage : str
        Files, raw, convert, deduplicate or aggregate.
    step : str
        What was decided here.
    policy : str
        How, by name.
    rows_in, rows_out : int
        Rows before and after.
    dropped, merged, added : dict of str to int
        Rows left out, rows merged into another one, and rows added without a measurement, by reason.
    noted : dict of str to int
        Rows that stayed but were changed, by what was done to them.

    Raises
    ------
    DatasetError
        If the rows do not add up.
    """

    stage: str
    step: str
    policy: str
    rows_in: int
    rows_out: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    merged: Mapping[str, int] = field(default_factory=dict)
    added: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("dropped", "merged", "added", "noted"):
            kept = {reason: int(count) for reason, count in getattr(self, name).items() if count}
            object.__setattr__(self, name, kept)
        lost = sum(self.dropped.values()) + sum(self.merged.values()) - sum(self.added.values())
        if self.rows_in != self.rows_out + lost:
            raise DatasetError(
                f"{self.stage}, {self.step}: {self.rows_in:,} rows came in and {self.rows_out:,} went out, "
                f"but {lost:,} are accounted for: this is a fault of wildtype, please report it"
            )

    @classmethod
    def together(cls, reports: Sequence[StageReport]) -> StageReport:
        """Return one report on a step that was done to parts of the rows."""
        first, counts = reports[0], ("dropped", "merged", "added", "noted")
        return cls(
            first.stage,
            first.step,
            first.policy,
            sum(report.rows_in for report in reports),
            sum(report.rows_out for report in reports),
            **{name: add_counts(*(getattr(report, name) for report in reports)) for name in counts},
        )

    @property
    def excluded(self) -> dict[str, int]:
        """Rows that are not separate rows of the result, by reason."""
        return dict(self.dropped) | {f"merged: {reason}": count for reason, count in self.merged.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Everything that was counted, by name."""
        added = {f"added: {reason}": count for reason, count in self.added.items()}
        return self.excluded | added | dict(self.noted)

    def to_json(self) -> dict[str, Any]:
        """Return the report in plain values."""
        return asdict(self)
