"""`Selection`: by which cut-offs labels were chosen for a list, and what is known of those left out.

A published list of interactions holds the significant ones. A model trained on it predicts E[y | listed],
which for most mutants of the screen, those that were not listed, is far from E[y].

Legend: m labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

FEWEST_BESIDE = 20
"""Labels beside a gap that make it one: were the density in it the same, all lay beside it with probability
2^-20."""


@dataclass(frozen=True)
class Selection:
    """The rule by which a label was listed.

    Attributes
    ----------
    negative, positive : float or None
        A label is listed at or below the first and at or above the second; None: none is on that side.
    p : float or None
        Limit of the p-value of listed labels; None: no limit.
    unlisted_mean, unlisted_sd : float or None
        Of mutants that the screen measured and did not list; None: not known.
    unlisted_source : str
        Where the two numbers come from, as in ``in the 2016 screen of the same laboratory``.
    """

    negative: float | None = None
    positive: float | None = None
    p: float | None = None
    unlisted_mean: float | None = None
    unlisted_sd: float | None = None
    unlisted_source: str = ""

    @classmethod
    def from_json(cls, record: Mapping[str, Any] | None) -> Self | None:
        """Return the selection that ``dataclasses.asdict`` gave, None for None."""
        return None if record is None else cls(**record)

    @property
    def rule(self) -> str:
        """The cut-offs, as in ``listed at <= -0.12 or >= 0.16, p < 0.05``."""
        sides = [f"<= {self.negative:g}"] if self.negative is not None else []
        sides += [f">= {self.positive:g}"] if self.positive is not None else []
        limit = "" if self.p is None else f"p < {self.p:g}"
        return "listed at " + ", ".join(part for part in (" or ".join(sides), limit) if part)

    def sentence(self, phenotype: str) -> str:
        """Return what a prediction of this phenotype means, and what unlisted mutants of the screen have."""
        if self.unlisted_mean is None or self.unlisted_sd is None:
            unlisted = "unlisted mutants of this screen were measured too, with values that are not known"
        else:
            unlisted = (
                f"unlisted pairs of this screen have mean {self.unlisted_mean:g}, sd {self.unlisted_sd:g}"
            )
            unlisted += f" {self.unlisted_source}" if self.unlisted_source else ""
        return f"E[{phenotype} given {self.rule}]; {unlisted}"

    def between(self, value: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
        """Return which labels [m] lie between the cut-offs, where the list holds none."""
        low = -np.inf if self.negative is None else np.float32(self.negative)
        high = np.inf if self.positive is None else np.float32(self.positive)
        # In single precision, as labels are stored: a label on the cut-off is listed.
        single = value.astype(np.float32)
        return np.asarray((single > low) & (single < high))

    def met(
        self, value: NDArray[np.floating[Any]], p: NDArray[np.floating[Any]] | None = None
    ) -> NDArray[np.bool_]:
        """Return which labels [m] are beyond the cut-offs, with no p-value [m] above the limit.

        Without cut-offs every value is beyond them. Of a label without a p-value the value decides alone.
        """
        bounded = self.negative is not None or self.positive is not None
        beyond = ~self.between(value) if bounded else np.ones(len(value), bool)
        # Rows of one cross that were averaged keep no p-value, and each of a list met the limit.
        unlikely = False if p is None or self.p is None else p.astype(np.float32) > np.float32(self.p)
        return np.asarray(beyond & ~np.asarray(unlikely, bool))


CLASSES = ("negative", "positive")
"""What a class says of a cross (`datasets.Phenotype.of_cross`): its cut-offs define it, and select no row."""


def sentence_of(record: Mapping[str, Any]) -> str:
    """Return what predictions of a phenotype mean whose rows were selected; empty where none were.

    ``record`` is the phenotype in plain values. A column of a whole screen that is of listed crosses is
    named, since the other columns beside it are of any cross.
    """
    chosen, of_cross = Selection.from_json(record.get("selection")), record.get("of_cross", "")
    if chosen is None or of_cross in CLASSES:
        return ""
    named = f"column {record['name']} only: " if of_cross else ""
    return named + chosen.sentence(record["name"])


def selection_sentences(phenotypes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the sentence of every phenotype whose labels were selected, by its name.

    ``phenotypes`` are records as a checkpoint holds them; records of earlier versions name no selection.
    """
    found = {p["name"]: sentence_of(p) for p in phenotypes}
    return {name: sentence for name, sentence in found.items() if sentence}


def empty_gap(value: NDArray[np.floating[Any]], *, one_sided: bool = False) -> tuple[float, float] | None:
    """Return the interval around 0 that labels [m] avoid, as those of a thresholded list do; None if none.

    The interval (a, b) ends at the labels nearest to 0. A density that does not fall towards 0 expects as
    many labels in it as lie within half its width on both sides; ``FEWEST_BESIDE`` of them make it a gap.

    Parameters
    ----------
    value : float [m]
        Labels; those that are not finite are passed over.
    one_sided : bool
        Whether labels of one sign may have a gap, too: those of interactions, which scatter around 0.
    """
    known = np.asarray(value, np.float64)
    known = known[np.isfinite(known)]
    below, above = known[known < 0], known[known > 0]
    if not known.size or below.size + above.size < known.size:
        return None  # no label, or a label of 0
    if not (below.size and above.size) and not one_sided:
        return None
    # Without labels of one sign the gap ends at 0: nothing is said of the other side.
    low = float(below.max()) if below.size else 0.0
    high = float(above.min()) if above.size else 0.0
    half = (high - low) / 2
    beside = int((below >= low - half).sum()) + int((above <= high + half).sum())
    return (low, high) if beside >= FEWEST_BESIDE else None


def gap_warning(phenotype: str, gap: tuple[float, float]) -> str:
    """Return the warning that labels avoid an interval, and what follows for predictions."""
    return (
        f"no {phenotype} lies between {gap[0]:g} and {gap[1]:g}, as in a list that holds significant values "
        f"only: a model of it predicts E[{phenotype} given listed], not that of any mutant"
    )
