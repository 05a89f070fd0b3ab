"""`ValidationRows`: predictions for the validation rows, from which intervals of any level are calibrated.

Legend: v validation rows, in the order in which ``ReferenceMeasurements.table`` holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ShapeError
from wildtype.unpacking import read_arrays

FILE = "calibration.npz"
COLUMNS = ("predicted", "sd", "unit")


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Predictions for the validation rows.

    Attributes
    ----------
    predicted : float64 [v]
        Of the phenotype that the row measured, in its unit.
    sd : float64 [v]
        Standard deviation over an ensemble's members; NaN for a single model.
    unit : int64 [v]
        Query pair or screen that was held out with this row; -1 where the split holds out genes or gene sets,
        which follow from the row itself.

    Raises
    ------
    ShapeError
        If the columns differ in length.
    """

    predicted: NDArray[np.float64]
    sd: NDArray[np.float64]
    unit: NDArray[np.int64]

    def __post_init__(self) -> None:
        shapes = {name: getattr(self, name).shape for name in COLUMNS}
        if len(set(shapes.values())) > 1 or self.predicted.ndim != 1:
            raise ShapeError(f"validation rows have columns of shapes {shapes}, expected the same [v]")

    def __len__(self) -> int:
        return len(self.predicted)

    def save(self, folder: Path) -> None:
        """Write the rows into the folder of a checkpoint, which is renamed into place when it is complete."""
        with open(folder / FILE, "wb") as handle:
            np.savez(handle, **{name: getattr(self, name) for name in COLUMNS})

    @classmethod
    def read(cls, folder: Path) -> ValidationRows:
        """Read what ``save`` wrote.

        Raises ``OSError``, ``ValueError``, ``KeyError`` or ``zipfile.BadZipFile`` when the file is damaged.
        """
        # A pickle could run code from a checkpoint that somebody else made.
        stored = read_arrays(folder / FILE)
        return cls(**{name: stored[name] for name in COLUMNS})
