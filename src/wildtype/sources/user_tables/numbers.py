"""Numbers as laboratories write them: decimal commas, separators of thousands, words for a missing one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from wildtype.errors import ConfigError, shown
from wildtype.sources.text import LARGEST

MISSING = (
    "", "na", "n/a", "nan", "null", "none", "nd", "n.d.", "-", "–", "—", ".", "?",
    "#n/a", "#div/0!", "#value!", "#ref!", "#num!",
)  # fmt: skip
"""Texts for a missing number, in upper or lower case."""
NOT_A_NUMBER, MISSING_NUMBER, COMMAS = "not a number", "missing number", "comma or point in numbers"
_GROUPED = r"[-+]?\d{{1,3}}({mark}\d{{3}})+({decimal}\d*)?([eE][-+]?\d+)?"


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a table are written.

    Attributes
    ----------
    decimal : {".", ","}
        What stands before the digits of a fraction.
    thousands : str
        What stands between thousands. Blanks, apostrophes, and a mark beside the other one, as in 1,234.5,
        can mean nothing else and need not be named.

    Raises
    ------
    ConfigError
        If a mark is none of these, or both are one.
    """

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ConfigError(f"--decimal {self.decimal!r} is no decimal mark: give . or ,")
        if self.thousands not in ("", ".", ",", " ", "'") or self.thousands == self.decimal:
            raise ConfigError(
                f"--thousands {self.thousands!r} cannot stand beside --decimal {self.decimal!r}: "
                f"give a comma, a point, a blank or an apostrophe that is not the decimal mark"
            )

    @property
    def other(self) -> str:
        """The mark, comma or point, that is not the decimal one."""
        return "," if self.decimal == "." else "."

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        mark = "[ \u00a0\u2009\u202f'’" + re.escape(self.thousands) + "]"
        return re.compile(_GROUPED.format(mark=mark, decimal=re.escape(self.decimal)))

    @cached_property
    def _mixed(self) -> re.Pattern[str]:
        """Both marks in one number, in the order that only one style has."""
        mark, decimal = re.escape(self.other), re.escape(self.decimal)
        return re.compile(rf"[-+]?\d{{1,3}}({mark}\d{{3}})+{decimal}\d*([eE][-+]?\d+)?")

    def parse(self, cell: str) -> float | None:
        """Return a cell as a number; None if it is none, or absurdly large."""
        cell = cell.replace("\u2212", "-")  # the minus sign that word processors write
        if self._grouped.fullmatch(cell) or self._mixed.fullmatch(cell):
            cell = re.sub(rf"[^\d{re.escape(self.decimal)}eE+-]", "", cell)
        if self.decimal == ",":
            cell = "x" if "." in cell else cell.replace(",", ".")
        if "_" in cell or not cell.isascii():  # Python reads 1_000 and digits of other scripts
            return None
        try:
            value = float(cell)
        except ValueError:
            return None
        return value if abs(value) < LARGEST else None

    def looks_like(self, cell: str) -> bool:
        """Return whether a cell is a number in any style."""
        return any(style.parse(cell) is not None for style in (self, *_STYLES))

    def fault(self, cell: str) -> tuple[str, str]:
        """Return what is wrong with a cell that is no number here, and the kind of problem that it is.

        All numbers of another style have one sentence, which therefore is said once.
        """
        if re.fullmatch(rf"[-+]?\d*{re.escape(self.other)}\d+([eE][-+]?\d+)?", cell):
            fraction, whole = f"0{self.other}93", f"1{self.other}234"
            name = "comma" if self.other == "," else "point"
            return (
                f"has a {name}: import with --decimal {self.other} if {fraction} means 0.93, or with "
                f"--thousands {self.other} if {whole} means 1234",
                COMMAS,
            )
        return f"received {shown(cell)}, expected a number", NOT_A_NUMBER


_STYLES = (NumberStyle(), NumberStyle(","))


def is_missing(cell: str) -> bool:
    """Return whether a cell stands for a missing number."""
    return cell.lower() in MISSING
