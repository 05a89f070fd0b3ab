"""`--evidence`: a user's measurements for a model to look up, in any table that `data import` reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import notes

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.datasets.measurements import Measurements
    from wildtype.datasets.records import PerturbationKind
    from wildtype.inference.predictor import Predictor

Evidence = Annotated[
    Path | None,
    typer.Option(help="Table of your measurements to look up as well, in any layout that data import reads."),
]
EvidenceMapping = Annotated[
    Path | None, typer.Option(help="How to read that table: a file of `data import --save-mapping`.")
]


def with_evidence(predictor: Predictor, path: Path | None, mapping: Path | None = None) -> Predictor:
    """Return a predictor that also looks up the measurements of a table; without one, as it is.

    It is read as `data import` reads a table, and what was guessed is shown. What a model knows is not asked
    for: columns that are called as its phenotypes hold their values, and genes that a table names without a
    kind of perturbation are perturbed as `predict` assumes.

    Raises
    ------
    ConfigError
        If there is a mapping without a table.
    SourceError
        If the table cannot be read, or does not fit the model.
    """
    from wildtype.errors import ConfigError, SourceError
    from wildtype.organism import Organism
    from wildtype.sources.user_tables.layout import Layout, read_layout
    from wildtype.sources.user_tables.table import read_table
    from wildtype.sources.user_tables.vocabulary import KINDS

    if path is None:
        if mapping is not None:
            raise ConfigError(f"--evidence-mapping {str(mapping)!r} is of no table: give --evidence as well")
        return predictor
    told: list[Any] = []
    counts: list[Any] = []
    layout = Layout() if mapping is None else read_layout(mapping)
    assumed = _assumed(predictor)
    try:
        measurements = read_table(
            path,
            Organism(predictor.genes.organism, predictor.genes),
            layout,
            assumed=assumed,
            phenotypes=[one["name"] for one in predictor.checkpoint.phenotypes],
            collect=counts.append,
            tell=told.append,
        )
    except SourceError as error:
        # Its remedies are options of `data import`.
        if "--" in str(error):
            notes().print(
                "evidence: options named below are those of `wildtype data import`, which writes them down "
                "with --save-mapping MAP; give --evidence-mapping MAP here",
                soft_wrap=True,
            )
        raise
    usual = Counter(KINDS[kind][0] for kind in assumed)
    if not layout.kind and len(usual) > 1:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in usual.most_common())
        notes().print(
            f"evidence: genes without a stated kind are those of the model: {kinds}", soft_wrap=True
        )
    left_out = [f"left out: {count:,} {reason}" for reason, count in counts[0].dropped.items()]
    for line in (*told[0].remarks, *left_out):
        notes().print(f"evidence: {line}", soft_wrap=True)
    frame = as_evidence(measurements)
    if frame.empty:
        raise SourceError(f"{path} has no mutant to look up, only wild types: give at least one")
    return predictor.with_evidence(frame)


def _assumed(predictor: Predictor) -> list[PerturbationKind]:
    """Return the kind of every gene [n] that is named without one, as a table records it."""
    from wildtype.datasets.records import PerturbationKind
    from wildtype.datasets.stages.convert import EFFECT

    # Several records have one effect; the first is the plain one.
    recorded = {effect: kind for kind, effect in reversed(EFFECT.items())}
    return [recorded.get(effect, PerturbationKind.DELETION) for effect in predictor.kinds.tolist()]


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
            f"{m.genes[m.gene[at]]}:{EFFECT[PerturbationKind(m.kind[at])].name.lower()}{_dosed(m.dose[at])}"
            for at in range(m.offsets[row], m.offsets[row + 1])
        ]
        for row in rows
    ]
    columns: dict[str, Any] = {"genes": sets, "value": [float(m.value[row]) for row in rows]}
    if [phenotype.name for phenotype in m.phenotypes] != ["value"]:
        columns["phenotype"] = [m.phenotypes[m.phenotype[row]].name for row in rows]
    if list(m.environments) != [Environment()]:
        stated = ["" if one == Environment() else str(one) for one in m.environments]
        columns["condition"] = [stated[m.environment[row]] for row in rows]
    return pd.DataFrame(columns)


def _dosed(dose: float) -> str:
    """Return what follows the kind of a gene with a dose (NaN: none)."""
    return f"@{float(dose)!r}" if dose == dose else ""
