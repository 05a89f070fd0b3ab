"""`--evidence`: a user's measurements for a model to look up, in any table that `data import` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import notes

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.datasets.measurements import Measurements
    from wildtype.inference.predictor import Predictor
    from wildtype.organism import GeneIndex

Evidence = Annotated[
    Path | None,
    typer.Option(
        help="Table of your measurements to look up as well: genes and value, or as for data import."
    ),
]
EvidenceMapping = Annotated[
    Path | None, typer.Option(help="How to read that table: a file of `data import --save-mapping`.")
]


def with_evidence(predictor: Predictor, path: Path | None, mapping: Path | None = None) -> Predictor:
    """Return a predictor that also looks up the measurements of a table; without one, as it is.

    A CSV or Parquet file with a column ``genes`` is read as `own_evidence.with_evidence` describes. Any other
    table, and each with a mapping, is read as `data import` reads it; what was guessed is shown.

    Raises
    ------
    ConfigError
        If there is a mapping without a table.
    SourceError
        If the table cannot be read, or does not fit the model.
    """
    from wildtype.errors import ConfigError, SourceError
    from wildtype.inference.own_evidence import read_evidence
    from wildtype.inference.sets import COLUMN

    if path is None:
        if mapping is not None:
            raise ConfigError(f"--evidence-mapping {str(mapping)!r} is of no table: give --evidence as well")
        return predictor
    frame = None
    try:
        frame = read_evidence(path)
    except SourceError:
        if not path.is_file():
            raise
    if mapping is not None or frame is None or COLUMN not in frame.columns:
        frame = _as_imported(path, predictor.genes, mapping)
    return predictor.with_evidence(frame)


def _as_imported(path: Path, genes: GeneIndex, mapping: Path | None) -> pd.DataFrame:
    from wildtype.errors import SourceError
    from wildtype.organism import Organism
    from wildtype.sources.user_tables.layout import Layout, read_layout
    from wildtype.sources.user_tables.table import read_table

    told: list[Any] = []
    counts: list[Any] = []
    layout = Layout() if mapping is None else read_layout(mapping)
    organism = Organism(genes.organism, genes)
    measurements = read_table(path, organism, layout, collect=counts.append, tell=told.append)
    left_out = [f"left out: {count:,} {reason}" for reason, count in counts[0].dropped.items()]
    for line in (*told[0].remarks, *left_out):
        notes().print(f"evidence: {line}", markup=False, soft_wrap=True)
    frame = as_evidence(measurements)
    if frame.empty:
        raise SourceError(f"{path} has no mutant to look up, only wild types: give at least one")
    return frame


def as_evidence(m: Measurements) -> pd.DataFrame:
    """Return measurements as a table of evidence, without those of the wild type.

    A phenotype that has no name of its own, and conditions of which none is stated, are those of the model.
    """
    import pandas as pd

    from wildtype.datasets.records import Environment, PerturbationKind
    from wildtype.datasets.stages.convert import EFFECT

    rows = [row for row in range(len(m)) if m.offsets[row] < m.offsets[row + 1]]
    sets = [
        [
            f"{m.genes[m.gene[at]]}:{EFFECT[PerturbationKind(m.kind[at])].name.lower()}"
            for at in range(m.offsets[row], m.offsets[row + 1])
        ]
        for row in rows
    ]
    columns: dict[str, Any] = {"genes": sets, "value": [float(m.value[row]) for row in rows]}
    if [phenotype.name for phenotype in m.phenotypes] != ["value"]:
        columns["phenotype"] = [m.phenotypes[m.phenotype[row]].name for row in rows]
    if list(m.environments) != [Environment()]:
        columns["condition"] = [str(m.environments[m.environment[row]]) for row in rows]
    return pd.DataFrame(columns)
