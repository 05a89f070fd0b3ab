"""External test sets of a run: rows of other datasets of the same organism, which it may not have seen.

Rows are put on the run's gene index by name. A row whose cross or gene set the run may see (in training or
validation, listed or not) is no test row, least of all where both are of one provenance group. Every dropped
row is counted.

Legend: m rows of one external dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.crosses import effect_phenotype
from wildtype.datasets.provenance import ALARM, agreement, groups_of
from wildtype.errors import ConfigError
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.experiments.data import RunData
from wildtype.experiments.seen_rows import seen_rows
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.files import writing
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import NOT_LISTED, SCREENED
from wildtype.mutants.unlisted import UnlistedMean, unlisted_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from wildtype.models.checkpoint import Checkpoint

Flags = NDArray[np.bool_]
LEAST_ROWS = 200
"""Fewest rows of a group that get a table of their own."""
LEAST_SHARED = 50
"""Fewest gene sets of both datasets on which an agreement of their labels is an alarm."""
ZERO = "zero"
"""The prediction that no genes interact, scored beside all models of an interaction."""
UNSEEN = {0: "both genes seen", 1: "one gene unseen", 2: "both unseen"}
"""Pairs by number of genes without a visible training cross."""


@dataclass(frozen=True, eq=False)
class ExternalRows:
    """Rows of another dataset that a run may be tested on.

    Attributes
    ----------
    dataset : Dataset
        The m rows on the run's genes and conditions, of one phenotype, with labels in their own unit.
    sha256 : str
        Of the dataset as it was loaded.
    unseen : int64 [m]
        Number of genes of each row without a visible training cross; without a grid: without a training row.
    screen : int8 [m] or None
        What the run's screen says of each pair, hidden crosses included: a position in ``grid.SCREENED``. It
        groups scored rows and enters no prediction. None without a grid.
    dropped : dict of str to int
        Rows that are left out, by reason.
    other_quantity : str
        Why labels and predictions are no common quantity; empty where they are one.
    alarm : str
        That labels of both datasets may be one measurement under two names; empty where they do not seem so.
    """

    dataset: Dataset
    sha256: str
    unseen: NDArray[np.int64]
    screen: NDArray[np.int8] | None
    dropped: Mapping[str, int]
    other_quantity: str
    alarm: str = ""

    @property
    def table(self) -> MutantTable:
        """The rows, as rows of the run's first phenotype."""
        return self.dataset.table

    @property
    def key(self) -> str:
        """Name of the comparison table."""
        return f"{self.dataset.phenotypes[0].name} on {self.dataset.name}"

    def line(self) -> str:
        """Return how many rows are tested, and how many were left out for which reasons."""
        left = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count) or "none"
        return f"{len(self.table):,} rows of {self.dataset.name} are an external test; left out: {left}"


def external_rows(data: RunData, log: Callable[[str], None]) -> list[ExternalRows]:
    """Return the rows of every external dataset of a run; one without any is named in the log."""
    found = []
    for other in data.external:
        rows = _rows_of(data, other, log)
        if isinstance(rows, ExternalRows):
            log(rows.line())
            found.append(rows)
        else:
            left = ", ".join(f"{count:,} {reason}" for reason, count in rows.items() if count)
            log(f"no row of {other.name} is left for an external test: {left}")
    return found


def _rows_of(data: RunData, other: Dataset, log: Callable[[str], None]) -> ExternalRows | dict[str, int]:
    (phenotype, kind), own = other.first_target(), data.dataset.phenotypes[0]
    if "gene" in (kind.form, own.form):
        profiled = kind.name if kind.form == "gene" else own.name
        raise ConfigError(
            f"data.also_test names {other.name!r}, and {profiled!r} has one number per gene: leave it out; "
            f"an external test is of one number per mutant"
        )
    table = other.table.take(other.table.phenotype == phenotype)
    dropped: dict[str, int] = {}

    def drop(marked: Flags, reason: str) -> None:
        nonlocal table
        dropped[reason] = int(marked.sum())
        table = table.take(~marked)

    mapping = other.organism.genes.mapping_to(data.dataset.organism.genes)
    drop(table.holding(mapping[table.gene] < 0), "with genes outside the run's gene index")
    table = replace(table, profile=None, profiles=None).remap(mapping)
    # Reference conditions may differ in name; another condition has to be one that the run knows.
    names = data.dataset.conditions
    condition = np.array([names.index(c) if c in names else -1 for c in other.conditions])
    condition[0] = max(int(condition[0]), 0)
    drop(condition[table.condition] < 0, "of conditions that the run does not know")
    table = replace(table, condition=condition[table.condition])
    orders = np.unique(data.part("train").order)
    drop(~np.isin(table.order, orders), "of as many genes as no training row has")
    common, seen = _common_groups(data.dataset, other, kind), _seen(data, table)
    # Of one group they are one measurement in any case: how well their numbers agree is no question.
    alarm = "" if common else _alarm(data, table.take(seen), other.name)
    if alarm:
        log(alarm)
    one = f" (provenance group {', '.join(common)}: one measurement, whatever the numbers)" if common else ""
    drop(seen, f"that the run may see in training or validation{one}")
    if not len(table):
        return dropped
    table = replace(table, phenotype=np.zeros(len(table), np.int64), weight=None)
    there = replace(
        other,
        organism=data.dataset.organism,
        table=table,
        phenotypes=(kind,),
        conditions=names,
        targets=(kind.name,),
        single_fitness=None,
        single_fitness_sd=None,
        single_fitness_kind=None,
        grid=None,
    )
    unseen = data.known().unseen(table)
    screen = None if data.screen is None else data.screen.state(table)
    return ExternalRows(there, other.sha256, unseen, screen, dropped, _other_quantity(own, kind), alarm)


def _seen(data: RunData, table: MutantTable) -> Flags:
    return seen_rows(data.whole.table, data.known().part, data.grid, data.sides, table)


def _common_groups(own: Dataset, other: Dataset, kind: Phenotype) -> list[str]:
    """Return the provenance groups that the run's labels and those of another dataset are both of."""
    groups = {**own.provenance, **other.provenance}
    return sorted(groups_of(own.phenotypes, groups) & groups_of([kind], groups) & groups.keys())


def _alarm(data: RunData, table: MutantTable, name: str) -> str:
    """Return a sentence where labels of rows that the run may see nearly equal its own; else nothing."""
    whole = data.whole
    own = whole.phenotype_index(data.dataset.phenotypes[0].name)
    if data.grid is not None:
        own = effect_phenotype(whole)
    labels = whole.table.take(whole.table.phenotype == own)
    if not len(table) or not len(labels):
        return ""
    r, shared = agreement(table, labels)
    if shared < LEAST_SHARED or not r > ALARM:
        return ""
    return (
        f"labels of {name} and of {whole.name} correlate by r = {r:.3f} on {shared:,} gene sets: they may be "
        f"one measurement under two names (an alarm only; it changes no row)"
    )


def _other_quantity(own: Phenotype, other: Phenotype) -> str:
    """Return why two phenotypes are not one quantity: other unit or form, or measured as something else."""
    measured = {source.partition(":")[2] for source in own.sources} | {own.name}
    same = other.name in measured and other.unit == own.unit and other.form == own.form
    return "" if same else f"{own.name} is predicted, and {other.name} is another quantity"


def row_groups(
    order: NDArray[np.int64], unseen: NDArray[np.int64], screen: NDArray[np.str_] | None
) -> dict[str, NDArray[np.int64]]:
    """Return the groups of rows [m] that have a table, by ending of its name.

    All rows; and of pairs, by number of unseen genes and by what the screen says of them (``grid.SCREENED``),
    those groups with at least ``LEAST_ROWS`` rows that are not all.
    """
    pairs = order == 2
    marked = {f", {text}": pairs & (unseen == count) for count, text in UNSEEN.items()}
    if screen is not None:
        marked |= {f", {text}": pairs & (screen == text) for text in reversed(SCREENED)}
    found = {group: np.flatnonzero(rows) for group, rows in marked.items()}
    return {"": np.arange(len(order))} | {
        group: at for group, at in found.items() if LEAST_ROWS <= len(at) < len(order)
    }


def with_zero(
    rows: ExternalRows, predicted: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """Return predictions with those of ``ZERO``, which says that no genes interact; of interactions alone."""
    kind = rows.dataset.phenotypes[0]
    if kind.form != "scalar" or kind.min_order < 2 or rows.other_quantity or ZERO in predicted:
        return dict(predicted)
    return dict(predicted) | {ZERO: np.zeros(len(rows.table))}


def not_listed(
    rows: ExternalRows, checkpoint: Checkpoint, predicted: Mapping[str, NDArray[np.float64]]
) -> tuple[ExternalRows, dict[str, NDArray[np.float64]]] | None:
    """Return the pairs that the run's screen measured and did not list, and what is said once this is told.

    The model of the run says what such a pair is expected to have (`mutants.unlisted`). Others have no such
    answer and keep their own. None where the model has none either, or pairs are fewer than ``LEAST_ROWS``.
    """
    rule = UnlistedMean.of(checkpoint.phenotypes)
    if rule is None or rows.screen is None or rows.other_quantity:
        return None
    at = np.flatnonzero(rows.screen == NOT_LISTED)
    if len(at) < LEAST_ROWS:
        return None
    kind = replace(rows.dataset.phenotypes[0], name=unlisted_name(rows.dataset.phenotypes[0].name))
    dataset = replace(rows.dataset, table=rows.table.take(at), phenotypes=(kind,), targets=(kind.name,))
    values = {name: said[at] for name, said in predicted.items()}
    values[checkpoint.model.config.name] = rule(checkpoint.predict(dataset.table))
    return replace(rows, dataset=dataset, unseen=rows.unseen[at], screen=None), values


def compare_external(
    config: TrainConfig,
    data: RunData,
    rows: ExternalRows,
    predicted: Mapping[str, NDArray[np.float64]],
    seconds: Mapping[str, float],
    peak: Mapping[str, float],
) -> dict[str, Comparison]:
    """Return the table of all rows of an external dataset, and those of its groups (`row_groups`).

    A model without a prediction for any row (a closed form of triples) is not in the table.
    """
    models = {name: values for name, values in predicted.items() if np.isfinite(values).any()}
    screen = None if rows.screen is None else np.array(SCREENED)[rows.screen]
    groups = row_groups(rows.table.order, rows.unseen, screen)
    chosen = {f"{rows.key}{group}": at for group, at in groups.items()}
    found = {}
    for key, at in chosen.items():
        comparison = evaluate_predictions(
            rows.dataset,
            at,
            {name: values[at] for name, values in models.items()},
            phenotype=rows.dataset.phenotypes[0].name,
            other_quantity=rows.other_quantity,
            baselines=[name for name in models if name != config.model.name],
            split=data.split.name,
            seconds={name: value for name, value in seconds.items() if name in models},
            peak_mib={name: value for name, value in peak.items() if name in models},
            replicates=config.run.replicates,
            seed=config.seed,
        )
        found[key] = replace(
            comparison,
            dataset_sha256=rows.sha256,
            phenotype=key,
            notes=(
                f"labels: {rows.dataset.name}; {rows.line()}",
                *([rows.alarm] if rows.alarm else []),
                *comparison.notes,
            ),
        )
    return found


def write_external(
    rows: Sequence[tuple[ExternalRows, Mapping[str, NDArray[np.float64]]]], target: Path
) -> None:
    """Write measured and predicted values of all external rows as Parquet."""
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for one, models in rows:
        frame = one.dataset.to_pandas()
        frame.insert(0, "dataset", one.dataset.name)
        frame["unseen"] = one.unseen
        if one.screen is not None:
            frame["screen"] = np.array(SCREENED)[one.screen]
        for name, values in models.items():
            frame[name] = values
        frames.append(frame)
    with writing(target) as path:
        pd.concat(frames, ignore_index=True).to_parquet(path, index=False)
