"""Plan of a split: its name, fractions and options, checked before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from wildtype.errors import SplitError, did_you_mean

DEFAULT_FRACTIONS: dict[str, tuple[float, float]] = {
    "random": (0.10, 0.10),
    "one-unseen": (0.10, 0.10),
    "unseen": (0.15, 0.20),
    "any-unseen": (0.05, 0.05),
    "query-pair": (0.10, 0.10),
    "screen": (0.10, 0.10),
    "order": (0.10, 1.0),
}
"""Default (validation, test) fractions: of gene sets, of genes (three times), of triples, of rows in screens;
of gene sets of the highest training order and of the tested order.
"""

ALIASES = {"R": "random", "Q": "one-unseen", "G": "unseen"}
BY = ("query", "condition", "study")
AMONG = ("query", "array")
BY_GENES = ("one-unseen", "unseen", "any-unseen")
"""Splits that hold genes out."""


def canonical_name(name: str) -> str:
    """Return the full name of a split; raises ``SplitError`` naming the known ones."""
    full = ALIASES.get(name, name)
    if full not in DEFAULT_FRACTIONS:
        known = f"known splits: {', '.join(DEFAULT_FRACTIONS)} (or R, Q, G)"
        raise SplitError(f"{name!r} is not a split; {did_you_mean(name, DEFAULT_FRACTIONS, known)}")
    return full


@dataclass(frozen=True)
class Plan:
    """Fractions and options of a draw.

    Attributes
    ----------
    validation, test : float
        Fractions of the units; with ``folds``, test is the share of one fold; with ``genes``, it is 0.
    fold, folds : int
        Which of how many folds is tested; 0 folds: a single draw.
    order : int or None
        Tested order; None: the highest there is (order).
    by : str or None
        What a screen is: ``query``, ``condition`` or ``study``; None: as `default_screen` says (screen).
    genes : int or None
        Number of genes held out for test, instead of a fraction (one-unseen, unseen, any-unseen).
    up_to : int or None
        Highest training order; ``order`` and all above it are tested then (order).
    among : str or None
        Hold out genes of query strains only (``query``), or all other genes only (``array``); None: any gene
        (one-unseen, unseen, any-unseen).
    """

    validation: float
    test: float
    fold: int = 0
    folds: int = 0
    order: int | None = None
    by: str | None = None
    genes: int | None = None
    up_to: int | None = None
    among: str | None = None

    def __str__(self) -> str:
        tested = f"test {self.test:g}" if self.genes is None else f"test {self.genes:,} genes"
        return f"validation {self.validation:g}, {tested}"


def make_plan(
    name: str,
    validation: float | None,
    test: float | None,
    fold: int | None,
    folds: int | None,
    order: int | None,
    by: str | None,
    genes: int | None,
    up_to: int | None = None,
    among: str | None = None,
) -> tuple[Plan, dict[str, float | str]]:
    """Return a split's plan and the options to store; raises ``SplitError`` on options that do not fit."""
    belongs = {
        "order": (order, ("order",)),
        "up_to": (up_to, ("order",)),
        "by": (by, ("screen",)),
        "genes": (genes, BY_GENES),
        "among": (among, BY_GENES),
    }
    for option, (value, of) in belongs.items():
        if value is not None and name not in of:
            known = ", ".join(repr(split) for split in of)
            raise SplitError(f"option {option}={value} is for split {known}, not {name!r}: leave it out")
    if among is not None and among not in AMONG:
        raise SplitError(f"genes among {among!r} are not known; known: {', '.join(AMONG)}")
    if up_to is not None and (folds is not None or validation is not None):
        raise SplitError(
            f"up_to={up_to} decides by order which rows are tested and which validate: leave folds and "
            "validation out"
        )
    if folds is not None and genes is not None:
        raise SplitError(f"genes={genes} and folds={folds} both decide how much is tested: leave one out")
    if test is not None and (folds is not None or genes is not None or name == "order"):
        why = "all of an order is tested" if name == "order" else "the number of genes decides the test rows"
        why = why if folds is None else "the folds decide the test rows"
        raise SplitError(f"test={test:g} does not go with this split: {why}; leave it out")
    if (fold is None) != (folds is None):
        raise SplitError(f"fold={fold} and folds={folds} go together: give both or neither")
    fractions = DEFAULT_FRACTIONS[name]
    validation = fractions[0] if validation is None else float(validation)
    test = fractions[1] if test is None else float(test)
    options: dict[str, float | str] = {"validation": validation, "test": test}
    if genes is not None:
        if genes < 1 or genes != int(genes):
            raise SplitError(f"{genes:g} genes cannot be held out: expected an integer of at least 1")
        test, genes = 0.0, int(genes)
        options = {"validation": validation, "genes": genes}
    if fold is not None and folds is not None:
        if not (folds >= 2 and 0 <= fold < folds) or fold != int(fold) or folds != int(folds):
            raise SplitError(
                f"fold {fold:g} of {folds:g} folds: expected at least 2 folds, and a fold from 0"
            )
        test = 1.0 / folds
        options |= {"test": test, "fold": int(fold), "folds": int(folds)}
    limit = 2.0 if name == "order" else 1.0  # where the two are fractions of different things
    if not (0 < validation < 1 and (test > 0 or genes) and validation + test < limit):
        raise SplitError(
            f"fractions validation {validation:g} and test {test:g} must be positive and sum to less than 1"
        )
    if among is not None:
        options["among"] = among
    return Plan(validation, test, int(fold or 0), int(folds or 0), order, by, genes, up_to, among), options
