"""`Trial`: what one set of settings reached in a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """One set of settings, and what it reached.

    Attributes
    ----------
    number : int
        From 0, in order.
    state : str
        ``finished``, ``cut short`` (after fewer epochs than others, and below their median), ``failed``.
    params : dict
        Values by setting.
    score : float or None
        On the validation rows, as ``training.validation`` defines it: of the finished model, trees included;
        of a trial that was cut short, its best epoch.
    epochs : int
        That were validated.
    seconds : float or None
        Wall time, of one that went through in one piece.
    why : str
        What went wrong.
    """

    number: int
    state: str
    params: dict[str, str | int | float]
    score: float | None
    epochs: int
    seconds: float | None
    why: str
