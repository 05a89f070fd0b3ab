"""Results of SQL for display and files: the first rows as plain values, or all of them written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import OutputError
from wildtype.files import writing
from wildtype.tables import FORMULA, harmless

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR = ";"
"""Between the entries of a list in a CSV field."""
SUFFIXES = (".csv", ".parquet")
MOST_SHOWN = 1_000_000
"""Rows that are held in memory to be shown."""


def first_rows(batches: pa.RecordBatchReader, limit: int | None) -> tuple[list[dict[str, Any]], int]:
    """Return the first `limit` rows (None: all) as plain values by column, and how many rows there are.

    Raises
    ------
    OutputError
        If more rows are to be shown than memory is meant for.
    """
    rows: list[dict[str, Any]] = []
    total = 0
    for batch in batches:
        room = batch.num_rows if limit is None else max(0, limit - total)
        if len(rows) + min(room, batch.num_rows) > MOST_SHOWN:
            raise OutputError(
                f"the result has more than {MOST_SHOWN:,} rows to show: write them to a file with -o, or "
                "show fewer with --limit"
            )
        rows += [{name: _plain(value) for name, value in row.items()} for row in batch[:room].to_pylist()]
        total += batch.num_rows
    return rows, total


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def check_output(output: Path) -> None:
    """Raise ``OutputError`` unless the name of an output file ends in a known format."""
    if output.suffix not in SUFFIXES:
        raise OutputError(f"cannot tell the format of {str(output)!r}: end it in {' or '.join(SUFFIXES)}")


def write_result(batches: pa.RecordBatchReader, output: Path) -> int:
    """Write all rows to a ``.csv`` or ``.parquet`` file, completely or not at all, and return their number.

    Lists become one CSV field, their entries separated by semicolons. A text that a spreadsheet would take
    for a formula gets an apostrophe before it; numbers and lone signs stay.

    Raises
    ------
    OutputError
        If the format is another, a column does not fit into CSV, or the file cannot be written.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    check_output(output)
    total = 0
    with writing(output) as path:
        if output.suffix == ".parquet":
            with parquet.ParquetWriter(path, batches.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    total += batch.num_rows
            return total
        schema = pa.schema([(harmless(field.name), _flat_type(field)) for field in batches.schema])
        with csv.CSVWriter(path, schema) as writer:
            for batch in batches:
                columns = [_joined(column) for column in batch.columns]
                writer.write_batch(pa.record_batch(columns, schema=schema))
                total += batch.num_rows
    return total


def _flat_type(field: pa.Field) -> pa.DataType:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_dictionary(kind):  # an ENUM
        return kind.value_type
    if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        return pa.string()
    if pa.types.is_nested(kind):
        raise OutputError(f"the column {field.name} ({kind}) does not fit into CSV: write .parquet")
    return kind


def _joined(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_list(column.type):
        entries = pc.fill_null(pc.cast(column.values, pa.string()), "")
        lists = pa.ListArray.from_arrays(column.offsets, entries, mask=column.is_null())
        column = pc.binary_join(lists, SEPARATOR)
    if not pa.types.is_string(column.type):
        return column
    # Spreadsheets run texts that begin with = + - @; numbers such as -1.5 must stay numbers.
    formula = pc.and_not(
        pc.match_substring_regex(column, f"^{FORMULA.pattern}"),
        pc.match_substring_regex(column, r"^[+-]?[0-9.]*([eE][+-]?[0-9]+)?$"),
    )
    return pc.if_else(formula, pc.binary_join_element_wise("'", column, ""), column)
