"""`prediction_table`: predictions of mutants, beside what is known of them, as a table to read.

From a predicted interaction follows an expected fitness (wild type = 1):

    f_ab  = f_a f_b + ε                                                                  two genes
    f_abc = τ + f_ab f_c + f_ac f_b + f_bc f_a − 2 f_a f_b f_c                           three genes

(Kuzmin et al. 2018, Science 360:eaao1729). Fitness of single and double mutants is the measured one, of the
same kinds of perturbation in the same condition. The sd of a prediction is its root mean squared error on
validation rows; the other errors are propagated to first order.

Legend: m mutants · p phenotypes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.interactions import fitness_from_epsilon, fitness_from_tau
from wildtype.errors import ConfigError
from wildtype.evaluation.conformal import check_level
from wildtype.evidence.reference import GIVEN, ReferenceMeasurements
from wildtype.inference.core import Floats, Ints, PredictionCore
from wildtype.inference.sets import standard_names, written, written_doses
from wildtype.inference.wild_type import wild_type_value
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import class_of
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.grid import ScreenGrid, contains
from wildtype.mutants.identity import SetIndex, mean_of_mutants
from wildtype.mutants.selection import CLASSES
from wildtype.mutants.unlisted import UnlistedMean, unlisted_name

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 3
"""Most phenotypes whose lack of a value is noted one by one."""
NOT_LISTED = "screened, not listed"
SCREENED = ("listed", NOT_LISTED, "unknown", "not crossed")
"""What a screen has of a pair of strains; the result of a linked, failed or reserved cross is unknown."""


def _on_doses(core: PredictionCore, table: MutantTable) -> Iterator[tuple[int, str]]:
    """Yield row and note of perturbations whose dose is beyond those of all training rows of their kind."""
    if table.dose is None:
        return
    for kind, (low, high) in core.trained_doses.items():
        name = kind.name.lower()
        if np.isnan(low):
            strange, note = np.isfinite(table.dose), f"no training row of kind {name} has a dose"
        else:
            strange = (table.dose < np.float32(low)) | (table.dose > np.float32(high))
            span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            note = f"training rows of kind {name} have doses {span}"
        for row in np.unique(table.row[(table.kind == kind) & strange]).tolist():
            yield row, note


def prediction_table(
    core: PredictionCore, table: MutantTable, *, as_: str = "phenotype", interval: float | None = None
) -> pd.DataFrame:
    """Return the columns that ``Predictor.predict`` describes, with the errors it lists."""
    import pandas as pd

    if interval is not None:
        check_level(interval)
    table = core.checkpoint.with_doses(table)
    checkpoint, known = core.checkpoint, core.checkpoint.known
    values, sd = core.predict_with_sd(table)
    around = None if interval is None else core.conformal.intervals(table, values, sd, interval)
    genes, kinds = written(table, core.genes.names)
    columns: dict[str, Any] = {"genes": genes, "names": standard_names(table, core.genes), "kinds": kinds}
    # The same columns in every block of a long table: they depend on the model, not on the mutants.
    if core.dosed:
        columns["doses"] = written_doses(table)
    if len(checkpoint.conditions) > 1:
        columns["condition"] = [checkpoint.conditions[number] for number in table.condition.tolist()]
    notes: list[list[str]] = [[] for _ in range(len(table))]
    lethal, selections = _essential_deletions(core, table, notes), core.selections
    kind = class_of(checkpoint.model)
    unscored = ~kind.scored(table.order)
    for row in np.flatnonzero(unscored).tolist():
        notes[row].append(f"model {checkpoint.model.config.name} scores mutants of {kind.scored_orders()}")
    nobody, unknown = np.flatnonzero(table.order == 0), list[tuple[str, str]]()
    for row, note in core.known_by(table).items():
        notes[row].append(note)
    for unseen in map(Kind, np.flatnonzero(~known.seen_kinds).tolist()):
        for row in np.unique(table.row[table.kind == unseen]).tolist():
            notes[row].append(f"no training row has this kind of perturbation: {unseen.name.lower()}")
    for row, note in _on_doses(core, table):
        notes[row].append(note)
    for p, phenotype in enumerate(checkpoint.phenotypes):
        minimum = phenotype["min_order"]
        defined = wild_type_value(phenotype)
        # An interaction of one gene is not defined; the network would still give it a number.
        too_small = (table.order < minimum) & (table.order > 0)
        empty = (table.order < minimum) | unscored
        values[empty, p] = np.nan
        # Nor is one of a mutant that does not live: fitness 0 is not invented, and no interaction either.
        none = lethal & (minimum > 1)
        values[none, p] = np.nan
        for row in np.flatnonzero(too_small & ~unscored).tolist():
            notes[row].append(f"{phenotype['name']} needs at least {minimum} genes")
        if defined is not None and nobody.size:
            if isinstance(defined, str):
                empty[nobody], values[nobody, p] = True, np.nan
                unknown.append((defined, str(phenotype["name"])))
            else:
                # By definition, hence without an error: intervals and sd are exact, too.
                empty[nobody], values[nobody, p] = False, defined
                for part in () if around is None else (around.low, around.high):
                    part[nobody, p] = defined
                sd[nobody, p] = 0.0
        if phenotype.get("form") == "gene":
            continue  # one value per gene has a table of its own: ``Predictor.predict_profiles``
        # A mutant of too few or too many genes has its note; any other empty cell comes from overflow or from
        # inputs that are not numbers, and must not look like a phenotype that is not defined.
        for row in np.flatnonzero(~np.isfinite(values[:, p]) & ~empty & ~none).tolist():
            notes[row].append(f"{phenotype['name']} is not a number: the model's computation overflowed")
        if phenotype["name"] in selections:
            for row in np.flatnonzero(np.isfinite(values[:, p])).tolist():
                notes[row].append(selections[phenotype["name"]])
        columns[phenotype["name"]] = values[:, p]
        if around is not None:
            bounds = (
                () if phenotype.get("of_cross") in CLASSES else (("low", around.low), ("high", around.high))
            )
            for name, part in (*bounds, ("sd", sd)):
                columns[f"{phenotype['name']}_{name}"] = np.where(empty | none, np.nan, part[:, p])
    unlisted = UnlistedMean.of(checkpoint.phenotypes)
    if unlisted is not None:
        conditional = unlisted_name(str(checkpoint.phenotypes[unlisted.effect]["name"]))
        columns[conditional] = unlisted(values)
    for rows, reason in () if around is None else around.reasons:
        for row in rows[table.order[rows] > 0].tolist():
            notes[row].append(reason)
    for row in nobody.tolist():
        notes[row] += ["no gene is perturbed: the wild type", *_undefined(unknown)]
    near = known.table.take(known.table.inside(table.gene))  # a small part of millions of known rows
    near = near.take(SetIndex(table).find(near) >= 0)
    for output in checkpoint.outputs:
        if output.form != "gene":
            number = known.phenotypes.index(output.name)
            columns[f"{output.name}_measured"], _ = mean_of_mutants(
                near.take(near.phenotype == number), table
            )
    if known.grid is not None:
        columns["screened"] = _screened(known, known.grid, table)
        if unlisted is not None:
            for row in np.flatnonzero(columns["screened"] == NOT_LISTED).tolist():
                notes[row].append(f"screened and not listed: {conditional} is what to expect")
    if as_ == "fitness":
        expected = expected_fitness(checkpoint, table, values)
        columns["fitness_expected"], columns["fitness_expected_sd"] = expected.fitness, expected.sd
        for at, reason in expected.reasons.items():
            if not lethal[at]:  # its note names the reason
                notes[at].append(reason)
    elif as_ != "phenotype":
        raise ConfigError(f"as={as_!r} is not known; known: phenotype, fitness")
    seen = known.seen_genes()
    columns["order"] = table.order
    columns["order_seen"] = np.isin(table.order, core.trained.order)
    columns["genes_seen"] = np.bincount(table.row, weights=seen[table.gene], minlength=len(table)).astype(int)
    names = core.genes.names
    columns["essential"] = [",".join(names[g] for g in s if known.essential[g]) for s in table.sets()]
    columns["note"] = ["; ".join(reasons) for reasons in notes]
    return pd.DataFrame(columns)


def _undefined(unknown: list[tuple[str, str]]) -> list[str]:
    """Return why phenotypes of the wild type are empty: each reason, or a count where there are many."""
    if len(unknown) <= SHOWN:
        return [reason for reason, _ in unknown]
    return [f"{unknown[0][0]}; nor have {len(unknown) - 1} others a value"]


def _essential_deletions(
    core: PredictionCore, table: MutantTable, notes: list[list[str]]
) -> NDArray[np.bool_]:
    """Return which mutants [m] are lethal, and note it; ``ReferenceMeasurements.lethal`` decides.

    Only models of interactions (of two genes or more) have notes: no other phenotype becomes undefined.
    """
    known, names = core.checkpoint.known, core.genes.names
    lethal = np.zeros(len(table), bool)
    interactions = [p for p in core.checkpoint.phenotypes if p["min_order"] > 1 and p.get("form") != "gene"]
    if not interactions:
        return lethal
    # Classes and further effects of a cross are of one interaction, which is named once.
    own = [p["name"] for p in interactions if p.get("of_cross", "") in ("", "effect")]
    undefined = ", ".join(own or [p["name"] for p in interactions])
    for at in np.flatnonzero(known.essential[table.gene] & (table.kind == Kind.ABSENT)).tolist():
        gene, row = int(table.gene[at]), int(table.row[at])
        offer = f"{names[gene]}:reduced gives its knock-down"
        if known.lethal[gene]:
            lethal[row] = True
            notes[row].append(f"{names[gene]} absent is lethal, no {undefined}: {offer}")
        else:
            notes[row].append(
                f"{names[gene]} is listed as essential, yet {known.deleted[gene]:,} measured mutants live "
                f"without it: {offer}"
            )
    return lethal & (table.order > 1)


def _screened(known: ReferenceMeasurements, grid: ScreenGrid, table: MutantTable) -> NDArray[np.object_]:
    """Return what the screen has of each row [m]: one of ``SCREENED``, empty for rows that are no pair.

    It is for readers, who may look up held-out crosses, too; no prediction depends on it.
    """
    out = np.full(len(table), "", object)
    rows = np.flatnonzero(table.order == 2)
    pairs = table.take(rows)
    listed = known.table.phenotype == known.phenotypes.index(known.effect)
    listed &= (known.part != GIVEN) & known.table.inside(table.gene)
    codes = np.unique(grid.cross_codes(known.table.take(listed)))
    measured = grid.measured(pairs)
    crossed = replace(grid, unknown=grid.unknown[:0]).measured(pairs)
    of_list = measured & contains(codes, grid.cross_codes(pairs))
    out[rows] = np.select([of_list, measured, crossed], SCREENED[:3], SCREENED[3])
    return out


@dataclass(frozen=True)
class ExpectedFitness:
    """Fitness and sd [m] (wild type = 1); NaN in the rows that ``reasons`` maps to a sentence."""

    fitness: Floats
    sd: Floats
    reasons: dict[int, str]


def expected_fitness(checkpoint: Checkpoint, table: MutantTable, predicted: Floats) -> ExpectedFitness:
    """Return the fitness implied by predictions [m, p] of ``epsilon`` (order 2) and ``tau`` (order 3).

    A row of order 1 gets its measured single-mutant fitness, and one of order 0 has 1.

    Raises
    ------
    ConfigError
        If the model predicts neither epsilon nor tau.
    """
    names = checkpoint.names
    if not {"epsilon", "tau"} & set(names):
        raise ConfigError(f"as=fitness needs a model of epsilon or tau; this one predicts {', '.join(names)}")
    known = checkpoint.known
    fitness, sd = np.full(len(table), np.nan), np.full(len(table), np.nan)
    reasons: dict[int, str] = {}
    singles, singles_sd = known.single_fitness_of(table)

    def check_singles(row: int) -> bool:
        at = np.arange(table.offsets[row], table.offsets[row + 1])
        lacking = [_perturbed(checkpoint, table, i) for i in at if not np.isfinite(singles[i])]
        if lacking:
            reasons[row] = f"single-mutant fitness of {', '.join(lacking)} is not known"
            if len(checkpoint.conditions) > 1:
                reasons[row] += f" in condition {checkpoint.conditions[table.condition[row]]}"
        return not lacking

    rows = np.flatnonzero(table.order == 0)
    fitness[rows], sd[rows] = 1.0, 0.0  # the unit of fitness is the wild type's

    rows = np.flatnonzero(table.order == 1)
    fitness[rows], sd[rows] = singles[table.offsets[rows]], singles_sd[table.offsets[rows]]
    for row in rows.tolist():
        check_singles(row)

    rows = np.flatnonzero(table.order == 2)
    if "epsilon" in names and rows.size:
        pair = table.offsets[rows, None] + np.arange(2)
        # A measured value without a known sd counts as exact: a lower bound of the sd beats none.
        (f_a, f_b), (s_a, s_b) = singles[pair].T, np.nan_to_num(singles_sd[pair]).T
        error = np.full(len(rows), _error(checkpoint, "epsilon"))
        epsilon = predicted[rows, names.index("epsilon")]
        fitness[rows], sd[rows] = fitness_from_epsilon(epsilon, f_a, f_b, error, s_a, s_b)
        for row in rows.tolist():
            check_singles(row)

    rows = np.flatnonzero(table.order == 3)
    if "tau" in names and rows.size:
        triple = table.offsets[rows, None] + np.arange(3)
        pairs, pairs_sd = _pair_fitness(checkpoint, table, rows)
        error = np.full(len(rows), _error(checkpoint, "tau"))
        tau = predicted[rows, names.index("tau")]
        (f_ab, f_ac, f_bc), (s_ab, s_ac, s_bc) = pairs.T, np.nan_to_num(pairs_sd).T
        (f_a, f_b, f_c), (s_a, s_b, s_c) = singles[triple].T, np.nan_to_num(singles_sd[triple]).T
        fitness[rows], sd[rows] = fitness_from_tau(
            tau, f_ab, f_ac, f_bc, f_a, f_b, f_c, error, s_ab, s_ac, s_bc, s_a, s_b, s_c
        )
        for i, row in enumerate(rows.tolist()):
            if check_singles(row) and not np.isfinite(pairs[i]).all():
                reasons[row] = "fitness of one of its pairs is not known"

    for row in np.flatnonzero(np.isnan(fitness)).tolist():
        reasons.setdefault(
            row, f"no {'tau' if table.order[row] > 2 else 'epsilon'} is predicted for its order"
        )
    sd[np.isnan(fitness)] = np.nan
    return ExpectedFitness(fitness, sd, reasons)


def _perturbed(checkpoint: Checkpoint, table: MutantTable, at: int) -> str:
    """Return the gene of the perturbation at a position, with its kind unless that is a deletion."""
    name, kind = checkpoint.genes.names[table.gene[at]], Kind(table.kind[at])
    return name if kind == Kind.ABSENT else f"{name} {kind.name.lower()}"


def _error(checkpoint: Checkpoint, phenotype: str) -> float:
    """Return the root mean squared error on validation rows, in the phenotype's unit."""
    return float(checkpoint.metrics["validation"][phenotype]["rmse"])


def _pair_fitness(checkpoint: Checkpoint, table: MutantTable, rows: Ints) -> tuple[Floats, Floats]:
    """Return measured fitness [m, 3] of the pairs ab, ac, bc of rows of order 3, and its sd; NaN: unknown."""
    known = checkpoint.known
    out, out_sd = np.full((len(rows), 3), np.nan), np.full((len(rows), 3), np.nan)
    if "fitness" not in known.phenotypes:
        return out, out_sd
    near = known.table.take(known.table.inside(table.gene))
    measured = near.take((near.phenotype == known.phenotypes.index("fitness")) & (near.order == 2))
    for column, pair in enumerate(((0, 1), (0, 2), (1, 2))):
        at = (table.offsets[rows, None] + np.array(pair)).reshape(-1)
        pairs = MutantTable.build(
            table.gene[at],
            2 * np.arange(len(rows) + 1),
            kind=table.kind[at],
            condition=table.condition[rows],
            dose=None if table.dose is None else table.dose[at],
        )
        out[:, column], out_sd[:, column] = mean_of_mutants(
            measured.take(SetIndex(pairs).find(measured) >= 0), pairs
        )
    return out, out_sd
