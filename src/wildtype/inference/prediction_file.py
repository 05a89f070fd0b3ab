"""Predictions of a table of any length, written to a file block by block.

The table is read twice: first every name is looked up, so that all rows that do not fit are refused before
anything is predicted; then blocks of rows are read, predicted and written. Nothing is kept per row: memory is
that of one block, however many rows there are.

Blocks hold a multiple of the mutants that pass a model together, so that predictions have the bits of one
table in memory. The exception is a long table in which some mutants name genes that are no tokens of the
model: these pass it by themselves, in batches of another size, and results agree within rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wildtype.errors import GeneSetError
from wildtype.inference.core import PredictionCore
from wildtype.inference.sets import COLUMN, WrongRows, check_plan, types_beside
from wildtype.models.trained import BATCH, PROFILE_NUMBERS
from wildtype.tables import FrameBlocks, writing_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BLOCK = 2 * BATCH
"""Rows that are predicted and written together."""


class RequestedRows:
    """Named sets, then the rows of a file, as tables of a few rows each; they can be read again and again.

    Parameters
    ----------
    sets : DataFrame
        Sets in a column ``genes``; they come first.
    file : Path, optional
        CSV or Parquet file with such a column, whose other columns are kept.

    Raises
    ------
    SourceError
        As `read_plan`, while blocks are read.
    """

    def __init__(self, sets: pd.DataFrame, file: Path | None) -> None:
        self._sets, self.file = sets, file
        self._blocks = None if file is None else FrameBlocks(file, "gene sets", BLOCK)

    def all(self) -> pd.DataFrame:
        """Return all rows as one table."""
        import pandas as pd

        parts = list(self._parts())
        return pd.concat(parts, ignore_index=True) if parts else self._sets

    def blocks(self, rows: int) -> Iterator[pd.DataFrame]:
        """Read tables of exactly ``rows`` rows each; the last may be shorter."""
        import pandas as pd

        waiting: list[pd.DataFrame] = []
        for part in self._parts():
            waiting.append(part)
            if sum(map(len, waiting)) < rows:
                continue
            held = waiting[0] if len(waiting) == 1 else pd.concat(waiting, ignore_index=True)
            stop = len(held) - len(held) % rows
            for at in range(0, stop, rows):
                yield held[at : at + rows].reset_index(drop=True)
            waiting = [held[stop:]] if stop < len(held) else []
        if waiting:
            yield pd.concat(waiting, ignore_index=True)

    def _parts(self) -> Iterator[pd.DataFrame]:
        import pandas as pd

        if self._blocks is None or self.file is None:
            yield from () if self._sets.empty else (self._sets,)
            return
        skip = 0
        for number, part in enumerate(self._blocks):
            if not number:
                check_plan(self.file, part)
            if len(self._sets):
                # The sets lack the other columns, which may change their type, and does so in every block.
                part = pd.concat([self._sets, part], ignore_index=True)[list(part.columns)][skip:]
                skip = len(self._sets)
            yield part


def predict_file(
    core: PredictionCore,
    requested: RequestedRows,
    predict: Callable[[pd.DataFrame], pd.DataFrame],
    output: Path,
    *,
    profiles: bool = False,
    condition: str | None = None,
) -> None:
    """Predict the rows of a table, and write the table of predictions, which appears when it is complete.

    Parameters
    ----------
    core : PredictionCore
        Of the predictor.
    requested : RequestedRows
        The mutants.
    predict : callable
        Returns the predictions of some of them.
    output : Path
        A .csv, .parquet or .json file.
    profiles : bool
        Whether a prediction has a number per gene, so that blocks have fewer rows.
    condition : str, optional
        The condition that ``predict`` takes for rows that state none.

    Raises
    ------
    UnknownGeneError, AmbiguousGeneError, GeneSetError, ConfigError
        As ``Predictor.predict``, before anything is predicted: one message lists the rows that do not fit.
    SourceError
        If the table cannot be read.
    OutputError
        If the output cannot be written.
    """
    rows = rows_of_block(core, profiles=profiles)
    schema, _ = checked(core, requested.blocks(rows), condition)
    with writing_frame(output) as writer:
        for block in requested.blocks(rows):
            frame = predict(block)
            # Profiles stand without the other columns of the table.
            writer.write(frame, None if profiles else types_beside(schema, frame))


def rows_of_block(core: PredictionCore, *, profiles: bool) -> int:
    """Return how many rows are predicted together; profiles have a number per gene."""
    return max(PROFILE_NUMBERS // len(core.genes), 1) if profiles else BLOCK


def checked(
    core: PredictionCore, blocks: Iterable[pd.DataFrame], condition: str | None
) -> tuple[pa.Schema, int]:
    """Return the types of the columns of a table, all rows considered, and the number of rows.

    Raises
    ------
    UnknownGeneError, AmbiguousGeneError, GeneSetError, ConfigError
        One message about all rows that do not fit, or if there is none.
    SourceError
        If the table cannot be read.
    """
    import pyarrow as pa

    wrong, schema = WrongRows(), pa.schema([])
    for block in blocks:
        core.check_named(block, wrong, condition=condition)
        if wrong.enough:
            break
        given = block.drop(columns=COLUMN)
        # A column may be empty in one block and hold texts in another.
        found = pa.Schema.from_pandas(given, preserve_index=False).remove_metadata()
        schema = pa.unify_schemas([schema, found], promote_options="permissive")
    wrong.refuse()
    if not wrong.rows:
        raise GeneSetError("there is nothing to predict: name genes with --set A,B or give --file")
    return schema, wrong.rows
