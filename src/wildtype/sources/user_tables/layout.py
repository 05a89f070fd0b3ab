"""How a table is laid out: named on the command line, guessed, or kept in a mapping file for next time."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from wildtype.errors import ConfigError, reason_of, shown
from wildtype.files import write_text
from wildtype.sources.user_tables.growth import check_expectation
from wildtype.sources.user_tables.numbers import NumberStyle
from wildtype.sources.user_tables.vocabulary import Columns, kind_words, parse_kind

LONG, CROSSES, PROFILES, RESPONSES = "long", "crosses", "profiles", "responses"
SHAPES = {
    LONG: "one mutant per row",
    CROSSES: "a matrix: every number is of the mutant of the genes of its row and its column",
    PROFILES: "a matrix: every number is measured for the gene of its column in the mutant of its row",
    RESPONSES: "a matrix: every number is measured for the gene of its row in the mutant of its column",
}
"""What a number stands for."""
SINGLE = "single"
CONTROL_PAIRS = ("", SINGLE, "drop")
"""What becomes of a gene beside a control; left open, it is left out with a remark."""


@dataclass(frozen=True)
class Layout:
    """Everything that must be known to read a table.

    Attributes
    ----------
    columns : Columns
        Names of the columns.
    separator, gene_separator, sheet : str
        Between columns, between genes of a cell, and of a workbook; found out where empty.
    decimal, thousands : str
        See `NumberStyle`.
    controls : tuple of str
        Names, or patterns such as ``safe*``, of what perturbs nothing.
    shape : str
        A key of `SHAPES`; found out where empty.
    phenotype, unit : str
        What is measured, where no column says it.
    fewest_genes : int
        Fewest perturbed genes that the user's own phenotypes are about: 2 for scores of interactions.
    expectation : str
        How mutants of several genes are expected to grow, by which fitness and interactions are made from
        growth (`growth`); values are taken as they are if empty.
    censored_at : str
        Number at or below which a value, or a cell of the columns ``censored``, is a bound.
    kind : str
        What is done to genes where no column and no spelling says it; a deletion if empty.
    control_pairs : {"", "single", "drop"}
        What a gene beside a control is: a mutant of one gene, or nothing to be kept. Left open it is left out
        as well, with a remark.
    guides : str
        Table of guides and their genes, or ``suffix`` if guides are named after their genes.
    layer : str
        Of an .h5ad file; its ``X`` if empty.
    skip_bad : bool
        Whether rows with a problem are left out and counted, instead of refusing the table.

    Raises
    ------
    ConfigError
        If the shape, the kind, what becomes of pairs with controls, or a mark in numbers is not known.
    """

    columns: Columns = field(default_factory=Columns)
    separator: str = ""
    gene_separator: str = ""
    sheet: str = ""
    decimal: str = "."
    thousands: str = ""
    controls: tuple[str, ...] = ()
    shape: str = ""
    phenotype: str = ""
    unit: str = ""
    fewest_genes: int = 1
    expectation: str = ""
    censored_at: str = ""
    kind: str = ""
    control_pairs: str = ""
    guides: str = ""
    layer: str = ""
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if self.shape and self.shape not in SHAPES:
            raise ConfigError(f"--shape {self.shape!r} is not known: choose one of {', '.join(SHAPES)}")
        if parse_kind(self.kind) is None:
            raise ConfigError(
                f"--kind {shown(self.kind)} is no kind of perturbation: choose one of {kind_words()}"
            )
        if self.expectation:
            check_expectation(self.expectation)
        if self.control_pairs not in CONTROL_PAIRS:
            known = " or ".join(CONTROL_PAIRS[1:])
            raise ConfigError(f"--control-pairs {shown(self.control_pairs)} is not known: choose {known}")
        if self.censored_at and NumberStyle().parse(self.censored_at) is None:
            raise ConfigError(f"--censored-at {shown(self.censored_at)} is no number: give one, as in -9.5")
        _ = self.numbers

    @property
    def numbers(self) -> NumberStyle:
        """How numbers are written."""
        return NumberStyle(self.decimal, self.thousands)

    def to_plain(self) -> dict[str, Any]:
        """Return what differs from the default, in plain values; columns are ``genes_column`` and so on."""
        plain = asdict(self)
        flat = {f"{name}_column": text for name, text in plain.pop("columns").items()}
        default = {f"{f.name}_column": f.default for f in fields(Columns)} | asdict(Layout())
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in (flat | plain).items()
            if value != default[name]
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any], where: str = "a mapping") -> Layout:
        """Rebuild a layout from plain values.

        Raises
        ------
        ConfigError
            If a name is not known, or a value is of another type.
        """
        columns = {f"{f.name}_column": f.name for f in fields(Columns)}
        kinds = {f.name: type(getattr(cls(), f.name)) for f in fields(cls) if f.name != "columns"}
        named: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for key, value in plain.items():
            given = tuple(value) if isinstance(value, list) and kinds.get(key) is tuple else value
            expected = str if key in columns else kinds.get(key)
            if expected is None:
                known = ", ".join([*columns, *kinds])
                raise ConfigError(f"{where} has no setting {shown(str(key))}: known are {known}")
            if not isinstance(given, expected) or (expected is tuple and not all(map(_is_text, given))):
                words = {tuple: "a list of names", bool: "true or false", int: "a whole number"}
                what = words.get(expected, "a text in quotes")
                raise ConfigError(f"{where}: {key} is {shown(value)}, expected {what}")
            (named if key in columns else others)[columns.get(key, key)] = given
        return cls(Columns(**named), **others)


def changed(layout: Layout, by: Layout) -> Layout:
    """Return a layout in which everything that another one says is as there."""
    return Layout.from_plain(layout.to_plain() | by.to_plain())


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def read_layout(path: str | Path) -> Layout:
    """Read a mapping file.

    Raises
    ------
    ConfigError
        If it is missing, no YAML, or names what is not known.
    """
    import yaml

    from wildtype.yaml_files import read_yaml

    try:
        plain = read_yaml(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read as a mapping ({reason_of(error)})") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{str(path)!r} is no mapping of names to values: write it with --save-mapping")
    return Layout.from_plain(plain, repr(str(path)))


def save_layout(path: str | Path, layout: Layout) -> None:
    """Write a mapping file.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    import yaml

    write_text(path, yaml.safe_dump(layout.to_plain(), allow_unicode=True, sort_keys=False))
