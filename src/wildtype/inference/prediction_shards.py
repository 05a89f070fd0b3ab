"""Shards of a prediction: ranges of the blocks of a table for processes on any machines, and their merge.

A shard is a Parquet file with a row group for every block, so that a merge reads the blocks that one process
predicts, in their order, and writes the same table. Its metadata hold the request, and hashes of the table
and of the model. Every shard reads the whole table first, as one process does: all refuse a row that does not
fit, and all agree on the types of columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError, SourceError, reason_of
from wildtype.evidence.reference import GIVEN
from wildtype.files import content_hash, require_regular, sha256_of_file, writing
from wildtype.inference.core import PredictionCore
from wildtype.inference.prediction_file import RequestedRows, checked, rows_of_block
from wildtype.inference.sets import types_beside
from wildtype.inference.shards import REMEDY, Shard, ShardKind
from wildtype.models.checkpoint import recorded_hash
from wildtype.models.organism_tensors import to_tensors
from wildtype.tables import types_of, writing_frame
from wildtype.unpacking import parquet_groups

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KIND = ShardKind("predict", "a prediction", "predicted", ".parquet")
RECORD, RECORD_HASH = b"wildtype", b"wildtype sha256"
"""Keys of the metadata of a shard: its record as JSON, and a hash of that."""
OTHER_VERSION = "came from another version of wildtype, with other blocks or columns,"
AGAIN = "remove it, and predict this shard again"
DAMAGE = (KeyError, ValueError, TypeError, EOFError, OSError)
"""Errors, beside those of pyarrow, that a damaged shard ends in."""


@dataclass(frozen=True)
class PredictionRequest:
    """What all shards of a prediction have in common.

    Attributes
    ----------
    options : dict
        Options of the prediction, by name, as JSON holds them.
    table : dict
        Size and sha256 of the file of mutants; empty without a file.
    model : str
        As `model_hash`.
    origin : dict
        Where model, evidence and table came from, for readers: a merge needs none of them.
    remarks : tuple of str
        What a reader of the predictions has to know.
    """

    options: Mapping[str, Any]
    table: Mapping[str, Any]
    model: str
    origin: Mapping[str, str]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardRecord:
    """What a shard says of itself.

    Attributes
    ----------
    request : PredictionRequest
    number, of : int
        Which of how many shards it is.
    block : int
        Rows per block.
    rows : int
        Rows of the whole table.
    columns : dict
        Type in pandas of every column, by name; empty in a shard without rows.
    """

    request: PredictionRequest
    number: int
    of: int
    block: int
    rows: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def blocks(self) -> range:
        """Its blocks of the table."""
        return Shard(self.number, self.of).range_of(-(-self.rows // self.block))

    @property
    def sizes(self) -> list[int]:
        """Rows of each of them; the last block of the table may be shorter."""
        return [min(self.block, self.rows - at * self.block) for at in self.blocks]

    @property
    def options(self) -> dict[str, Any]:
        """Options that must be equal in all shards, by name."""
        return {"shards": self.of, **self.request.options}


@dataclass(frozen=True)
class StoredPredictions:
    """All shards of a prediction in a directory, checked to be complete and of one request.

    Attributes
    ----------
    paths : tuple of Path
        The files, in order.
    records : tuple of ShardRecord
        Of each of them.
    """

    paths: tuple[Path, ...]
    records: tuple[ShardRecord, ...]

    def blocks(self) -> Iterator[tuple[pd.DataFrame, pa.Schema]]:
        """Read the predictions of each block of the table, with the types of its columns.

        Raises
        ------
        ConfigError
            If a shard is damaged.
        """
        import pyarrow as pa

        for path, record in zip(self.paths, self.records, strict=True):
            groups = parquet_groups(path)
            # What a caller does with a block is no damage of the file: each block is read by itself, and then
            # that there are no more.
            for size in (*record.sizes, None):
                try:
                    group = next(groups, None)
                    if (None if group is None else group.num_rows) != size:
                        raise ValueError("it has other rows than its record states")
                    block = None if group is None else _typed(group, record.columns)
                except (*DAMAGE, pa.ArrowException) as error:
                    raise _damaged(path, error) from error
                if group is not None and block is not None:
                    yield block, group.schema


def table_of(file: Path | None) -> dict[str, Any]:
    """Return size and sha256 of a file of mutants; nothing without one.

    Raises
    ------
    SourceError
        If it cannot be read.
    """
    if file is None:
        return {}
    try:
        return {"size": require_regular(file).stat().st_size, "sha256": sha256_of_file(file)}
    except OSError as error:
        raise SourceError(f"{str(file)!r} cannot be read ({reason_of(error)}): check the file") from error


def model_hash(run: Path, core: PredictionCore) -> str:
    """Return a hash of all that predictions depend on: a checkpoint, and what was added after it was loaded.

    Raises
    ------
    CheckpointError
        If ``run`` is no run or checkpoint directory.
    """
    checkpoint = core.checkpoint
    given = checkpoint.known.table.take(checkpoint.known.part == GIVEN)
    tensors, shapes = to_tensors(checkpoint.organism)  # of another organism, where it is predicted on one
    return content_hash(
        recorded_hash(run),
        list(core.genes.names),
        shapes,
        sorted(tensors),
        *(tensors[name].numpy() for name in sorted(tensors)),
        checkpoint.known.essential,
        given.gene,
        given.offsets,
        given.kind,
        *(() if given.dose is None else (given.dose,)),
        given.phenotype,
        given.condition,
        given.value,
    )


def predict_shard(
    core: PredictionCore,
    requested: RequestedRows,
    predict: Callable[[pd.DataFrame], pd.DataFrame],
    shard: Shard,
    folder: Path,
    request: PredictionRequest,
    *,
    profiles: bool = False,
) -> int:
    """Predict the rows of one shard, and store them in ``folder``; a shard that is there stays.

    Parameters
    ----------
    core, requested, predict, profiles
        As for `predict_file`.
    shard : Shard
        Which one.
    folder : Path
        Directory of all shards.
    request : PredictionRequest
        What is stored beside the rows.

    Returns
    -------
    int
        How many rows the shard has.

    Raises
    ------
    ConfigError
        If the directory holds this shard of another prediction.
    SourceError
        If the table cannot be read, or changes meanwhile.
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        As `predict_file`.
    OutputError
        If the shard cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, block = folder / KIND.name(shard.number), rows_of_block(core, profiles=profiles)
    if path.exists():
        return _stored_rows(path, ShardRecord(request, shard.number, shard.of, block))
    types, rows = checked(core, requested.blocks(block), request.options["condition"])
    record = ShardRecord(request, shard.number, shard.of, block, rows)
    frames = map(predict, islice(requested.blocks(block), record.blocks.start, record.blocks.stop))
    # The first block is predicted before there is a directory: some options are refused only there.
    first = next(frames, None)
    schema = pa.schema([])
    if first is not None:
        schema = types_of(first, None if profiles else types_beside(types, first))
        record = replace(record, columns={str(name): str(dtype) for name, dtype in first.dtypes.items()})
    text = json.dumps(asdict(record))
    schema = schema.with_metadata({RECORD: text, RECORD_HASH: content_hash(text)})
    with writing(path) as temporary:
        with pq.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
            for frame in frames if first is None else chain([first], frames):
                table = pa.Table.from_pandas(frame, schema, preserve_index=False)
                # A row group holds a block, whatever its size.
                writer.write_table(table.replace_schema_metadata(schema.metadata), max(len(frame), 1))
        if table_of(requested.file) != request.table:
            raise SourceError(
                f"{str(requested.file)!r} changed while it was read: predict all shards of one content again"
            )
    return sum(record.sizes)


def stored_predictions(folder: Path) -> StoredPredictions:
    """Return the shards of a directory.

    Raises
    ------
    ConfigError
        If there are none, some are missing or damaged, or they are of different options, tables or models,
        naming them.
    """
    found = KIND.found(folder)
    records = {number: read_record(path) for number, path in found.items()}
    number, first = next(iter(records.items()))
    for other, record in records.items():
        KIND.check_alike(
            found[other], record.options, KIND.name(number), first.options, "merge shards of one prediction"
        )
    tables = {number: (record.request.table, record.rows) for number, record in records.items()}
    KIND.check_same(folder, tables, first.of, "read a file of another content")
    models = {number: record.request.model for number, record in records.items()}
    KIND.check_same(folder, models, first.of, "came from another model or other evidence")
    columns = {number: list(record.columns) for number, record in records.items() if record.blocks}
    if columns:
        KIND.check_same(folder, columns, first.of, OTHER_VERSION)
    KIND.check_complete(folder, list(found), first.of)
    for number, record in records.items():
        if record.number != number:
            raise KIND.misnamed(found[number])
    return StoredPredictions(tuple(found.values()), tuple(records.values()))


def merge_predictions(shards: StoredPredictions, output: Path) -> None:
    """Write the table that one process writes, block by block; it appears when it is complete.

    Raises
    ------
    ConfigError
        If a shard is damaged.
    OutputError
        If the output cannot be written.
    """
    with writing_frame(output) as writer:
        for block, types in shards.blocks():
            writer.write(block, types)


def read_record(path: Path, remedy: str = AGAIN) -> ShardRecord:
    """Return what a shard says of itself; raises ``ConfigError`` with a remedy if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stored = pq.read_metadata(require_regular(path)).metadata or {}
        if RECORD not in stored:
            raise ValueError("it has no record")
        text = stored[RECORD].decode()
        if stored[RECORD_HASH].decode() != content_hash(text):
            raise ValueError("its record does not match its sha256")
        record = json.loads(text)
        request = PredictionRequest(**record.pop("request"))
        return ShardRecord(replace(request, remarks=tuple(request.remarks)), **record)
    except (*DAMAGE, pa.ArrowException) as error:
        raise _damaged(path, error, remedy) from error


def _stored_rows(path: Path, mine: ShardRecord) -> int:
    """Return the rows of a shard that is there; refuse it if it is not the one that is to be predicted."""
    stored = read_record(path, REMEDY)
    KIND.check_alike(path, stored.options, "this command", mine.options, REMEDY)
    if stored.request.table != mine.request.table:
        raise ConfigError(f"{str(path)!r} was predicted from a file of another content: {REMEDY}")
    if stored.request.model != mine.request.model:
        raise ConfigError(f"{str(path)!r} came from another model or other evidence: {REMEDY}")
    if stored.block != mine.block:
        raise ConfigError(f"{str(path)!r} {OTHER_VERSION} than this one: {REMEDY}")
    if stored.number != mine.number:
        raise KIND.misnamed(path)
    return sum(stored.sizes)


def _typed(group: pa.Table, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a block with the types that it had: pandas chooses some by whether a value is missing."""
    frame: pd.DataFrame = group.to_pandas(ignore_metadata=True)
    if list(frame.columns) != list(columns):
        raise ValueError("it has other columns than its record states")
    return frame.astype({name: kind for name, kind in columns.items() if str(frame.dtypes[name]) != kind})


def _damaged(path: Path, error: Exception, remedy: str = AGAIN) -> ConfigError:
    return ConfigError(f"the shard {str(path)!r} is damaged ({reason_of(error)}): {remedy}")
