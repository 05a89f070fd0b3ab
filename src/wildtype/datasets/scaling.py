"""`LabelScaler`: labels to zero mean and unit sd per phenotype, fitted on training rows only.

Legend: m rows · p phenotypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.datasets.dataset_record import Phenotype
from wildtype.errors import CheckpointError, DatasetError, ShapeError
from wildtype.mutants import MutantTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelScaler:
    """Mean and sd of every phenotype.

    Attributes
    ----------
    mean, sd : float64 [p]
        In the phenotype's unit. A phenotype whose labels are all equal, or that no training row has, has
        sd 1, so that scaling stays finite and invertible. Where labels are flipped, sd is negative: then
        scaled labels are -(y - mean)/|sd|, and mean + sd · output is a prediction either way.
    count : int64 [p]
        Training rows each pair was fitted on (0: mean 0, sd 1).
    """

    mean: Floats
    sd: Floats
    count: NDArray[np.int64]

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Whether [p] the scaled labels of a phenotype rise where its labels fall."""
        return np.asarray(self.sd < 0)

    @classmethod
    def of_table(
        cls, table: MutantTable, phenotypes: Sequence[Phenotype], *, flip: bool = False
    ) -> LabelScaler:
        """Fit on a table of training rows.

        Classes stay 0 and 1. A phenotype with a number per gene has one mean and sd over all genes, so that
        genes that vary little are not blown up; its count is that of numbers.
        """
        # Rows of profiles have no scalar value (NaN); they are fitted on their numbers below.
        single = ~np.isin(table.phenotype, [i for i, p in enumerate(phenotypes) if p.form == "gene"])
        scaler = cls.fit(
            table.value[single],
            table.phenotype[single],
            len(phenotypes),
            flip=flip,
            weight=None if table.weights is None else table.weights[single],
        )
        mean, sd, count = scaler.mean.copy(), scaler.sd.copy(), scaler.count.copy()
        for i, phenotype in enumerate(phenotypes):
            if phenotype.form == "class":
                mean[i], sd[i] = 0.0, 1.0
            elif phenotype.form == "gene" and table.profile is not None and table.profiles is not None:
                numbers = table.profiles[table.profile[table.phenotype == i]].astype(np.float64)
                numbers = numbers[np.isfinite(numbers)]
                one = cls.fit(numbers, np.zeros(len(numbers), np.int64), 1, flip=flip)
                mean[i], sd[i], count[i] = one.mean[0], one.sd[0], one.count[0]
        return cls(mean, sd, count)

    def scaled(self, table: MutantTable) -> MutantTable:
        """Return a table with scaled labels, and scaled copies of its profiles."""
        table = table.with_own_profiles()
        value = self.transform(table.value, table.phenotype).astype(np.float32)
        if table.profile is None or table.profiles is None:
            return replace(table, value=value)
        of = table.phenotype[table.profile >= 0]
        mean, sd = (np.asarray(column[of, None], dtype=np.float32) for column in (self.mean, self.sd))
        profiles = np.asarray((table.profiles - mean) / sd, dtype=np.float32)
        return replace(table, value=value, profiles=profiles)

    @classmethod
    def fit(
        cls,
        values: ArrayLike,
        phenotype: ArrayLike,
        count: int,
        *,
        flip: bool = False,
        weight: ArrayLike | None = None,
    ) -> LabelScaler:
        """Fit on the labels [M] of training rows, whose phenotypes [M] are positions below ``count`` (= p).

        With ``flip``, scaled labels are turned round: -(y - mean)/sd, as where models learn from -tau. With
        ``weight`` [M], mean and sd are those of the mutants that the rows stand for: Σ w y / Σ w.

        Raises
        ------
        DatasetError
            If a label is not finite.
        ShapeError
            If the lengths differ or a phenotype is outside 0 … p-1.
        """
        v, p = np.asarray(values, dtype=np.float64), np.asarray(phenotype, dtype=np.int64)
        if v.shape != p.shape or v.ndim != 1:
            raise ShapeError(f"values have shape {v.shape} and phenotype {p.shape}, expected the same [M]")
        if p.size and (p.min() < 0 or p.max() >= count):
            raise ShapeError(f"phenotype {int(p.max())} is outside 0 … {count - 1}")
        if not np.isfinite(v).all():
            at = int(np.flatnonzero(~np.isfinite(v))[0])
            raise DatasetError(f"training label {at} is {v[at]}: labels must be finite; drop the row")
        rows = np.bincount(p, minlength=count)
        w = None if weight is None else np.asarray(weight, dtype=np.float64)
        # Without weights the sums are those of the labels themselves, to the bit.
        total = np.maximum(rows, 1) if w is None else np.bincount(p, weights=w, minlength=count)
        total = np.where(rows > 0, total, 1)
        mean = np.bincount(p, weights=v if w is None else w * v, minlength=count) / total
        deviation = (v - mean[p]) ** 2
        squares = np.bincount(p, weights=deviation if w is None else w * deviation, minlength=count)
        sd = np.sqrt(squares / total)
        # Rounding alone leaves an sd of some 1e-17 on equal labels; dividing by it would blow that up.
        flat = sd <= 1e-12 * np.maximum(np.abs(mean), 1.0)
        # sd 1 keeps the inverse defined: a prediction is then the constant label plus the output.
        sd = np.where(flat, 1.0, sd)
        return cls(mean, -sd if flip else sd, rows.astype(np.int64))

    def transform(self, values: ArrayLike, phenotype: ArrayLike) -> Floats:
        """Return scaled labels [M] (no unit)."""
        p = np.asarray(phenotype, dtype=np.int64)
        return np.asarray((np.asarray(values, dtype=np.float64) - self.mean[p]) / self.sd[p])

    def inverse(self, scaled: ArrayLike, phenotype: ArrayLike) -> Floats:
        """Return labels [M] in the phenotype's unit."""
        p = np.asarray(phenotype, dtype=np.int64)
        return np.asarray(np.asarray(scaled, dtype=np.float64) * self.sd[p] + self.mean[p])

    def inverse_sd(self, scaled_sd: ArrayLike, phenotype: ArrayLike) -> Floats:
        """Return standard deviations [M] in the phenotype's unit: scaled, neither shifted nor flipped."""
        p = np.asarray(phenotype, dtype=np.int64)
        return np.asarray(np.asarray(scaled_sd, dtype=np.float64) * np.abs(self.sd[p]))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-like record that restores the scaler to the last bit."""
        return {"mean": self.mean.tolist(), "sd": self.sd.tolist(), "count": self.count.tolist()}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> LabelScaler:
        """Rebuild a scaler from ``to_json``; raises ``CheckpointError`` on a record that is not one."""
        try:
            mean, sd = (np.array(record[key], dtype=np.float64) for key in ("mean", "sd"))
            count = np.array(record["count"], dtype=np.int64)
            sound = mean.ndim == 1 and mean.shape == sd.shape == count.shape
            if not (sound and np.isfinite(mean).all() and np.isfinite(sd).all() and (sd != 0).all()):
                raise ValueError("mean, sd and count must be equally long, finite, and sd not 0")
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"this is not a stored label scaling ({error!r}): restore the file"
            ) from error
        return cls(mean, sd, count)
