"""`EpochTable`: ``logs/epochs.csv``, a row per epoch, part of the split and phenotype, in original units."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from wildtype.files import write_text
from wildtype.training.validation import PhenotypeScore

FILE = "epochs.csv"
COLUMNS = ("epoch", "rows", "phenotype", "count", "pearson", "rmse", "mae", "average_precision", "log_loss")


class EpochTable:
    """Appends the scores of every epoch.

    Parameters
    ----------
    folder : Path
        Of the logs.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def begin(self, epochs: int) -> None:
        """Keep the rows of the first epochs, and drop the others and those of the test: they follow."""
        before = ",".join(COLUMNS) + "\n"
        if self.path.is_file():
            rows = pd.read_csv(self.path, dtype=str, keep_default_na=False)
            rows = rows[(rows["epoch"].astype(int) <= epochs) & (rows["rows"] != "test")]
            before = rows.to_csv(index=False, lineterminator="\n")
        write_text(self.path, before)

    def add(self, epoch: int, rows: str, scores: Sequence[PhenotypeScore]) -> None:
        """Append the scores of an epoch (from 1) on the rows ``train``, ``validation`` or ``test``."""
        with open(self.path, "a", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
            for score in scores:
                writer.writerow(
                    {
                        "epoch": epoch,
                        "rows": rows,
                        "phenotype": score.phenotype,
                        "count": score.count,
                        **{name: f"{value:.7g}" for name, value in score.metrics.items()},
                    }
                )
