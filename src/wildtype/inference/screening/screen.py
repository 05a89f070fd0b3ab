"""`screen_mutants`: from the names of a request to a screen, and from its result to a table.

Legend: n genes · m mutants · k genes per mutant · a candidates · q queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wildtype.errors import ConfigError, GeneSetError, did_you_mean
from wildtype.evaluation.conformal import check_level
from wildtype.inference.core import Floats, Ints, Kinds, PredictionCore
from wildtype.inference.prediction_table import prediction_table
from wildtype.inference.screening.choosing import CHOICES, LEVEL, RESERVE, choose
from wildtype.inference.screening.constraints import LEFT_OUT, LINKED_KB, Constraints, lethal_pairs
from wildtype.inference.screening.designs import Combinations, Crossed, Design
from wildtype.inference.screening.stream import DIRECTIONS, PIECE, Screen, ScreenResult, run
from wildtype.inference.sets import named_sets
from wildtype.inference.wild_type import has_singles
from wildtype.models.ensemble import class_of
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.identity import MutantIndex

if TYPE_CHECKING:
    import pandas as pd

METABOLIC = "metabolic"
"""In a list of required genes: all genes of the organism's metabolism."""
RANKS = ("prediction", "interaction")
"""What mutants are ranked by."""


@dataclass(frozen=True)
class ScreenRequest:
    """What to screen, by name; see ``Predictor.screen``."""

    order: int | None = None
    among: Sequence[str] | None = None
    queries: Sequence[Sequence[str]] | None = None
    top: int = 100
    direction: str = "both"
    phenotypes: Sequence[str] | None = None
    condition: str | None = None
    exclude: Sequence[str] = ()
    exclude_essential: bool = False
    require: Sequence[str] = ()
    unmeasured: bool = False
    exclude_synthetic_lethal: bool = False
    include: Sequence[str] = ()
    min_linkage_kb: float | None = None
    max_per_gene: int | None = None
    interval: float | None = None
    rank: str = "prediction"
    choose: str = "best"
    device: str = "cpu"


def screen_mutants(
    core: PredictionCore,
    request: ScreenRequest,
    *,
    processes: int = 1,
    state: Path | None = None,
    report_progress: Callable[[int, int], None] = lambda done, count: None,
) -> pd.DataFrame:
    """Predict every mutant of a request and return the best; ``Predictor.screen`` has columns and errors."""
    screen, exempt = make_screen(core, request)
    count = screen.design.count
    report_progress(0, count)
    found = run(
        core,
        screen,
        processes=processes,
        state=state,
        # The last piece may be shorter than the others.
        report_progress=lambda result: report_progress(min(result.done * screen.piece, count), count),
    )
    return shortlist(core, screen, found, request, exempt)


def named_members(
    core: PredictionCore, text: str, what: str, *, condition: str | None = None, empty: bool = False
) -> list[list[str]]:
    """Return the sets that a text or a file names, each gene of a table with the kind that it states.

    ``what`` is a row, for messages. A row without genes is refused unless ``empty``.

    Raises
    ------
    SourceError
        As `named_sets`.
    ConfigError, GeneSetError, UnknownGeneError, AmbiguousGeneError
        Naming the rows of a table that do not fit, also those of another condition.
    """
    sets = named_sets(text)
    if isinstance(sets, list):
        return sets
    # Only the organism tells the genes of a row from one another: `ARG5,6` is one.
    table = core.named(sets, what, condition=condition, empty=empty)
    names = [
        f"{core.genes.names[g]}:{Kind(k).name.lower()}" for g, k in zip(table.gene, table.kind, strict=True)
    ]
    return [names[a:b] for a, b in pairwise(table.offsets.tolist())]


def make_screen(core: PredictionCore, request: ScreenRequest) -> tuple[Screen, frozenset[int]]:
    """Return the screen, and the genes of its queries, which ``max_per_gene`` does not limit.

    Raises
    ------
    ConfigError, GeneSetError, UnknownGeneError, AmbiguousGeneError
        See ``Predictor.screen``.
    """
    _check_types(request)
    if request.interval is not None:
        check_level(request.interval)
    if request.rank not in RANKS:
        hint = did_you_mean(request.rank, RANKS, f"known: {', '.join(RANKS)}")
        raise ConfigError(f"rank={request.rank!r} is not known; {hint}")
    if request.choose not in CHOICES:
        hint = did_you_mean(request.choose, CHOICES, f"known: {', '.join(CHOICES)}")
        raise ConfigError(f"choose={request.choose!r} is not known; {hint}")
    outputs = _outputs(core, request)
    queries = None
    if request.queries is not None:
        queries = core.named(request.queries, "query", condition=request.condition)
    gene, kind = _candidates(core, request)
    design: Design
    if queries is None:
        order = 2 if request.order is None else request.order
        design, exempt = Combinations(len(gene), order), frozenset[int]()
    else:
        design, gene, kind = _crossed(queries, gene, kind, request.order)
        exempt = frozenset(queries.gene.tolist())
    model = class_of(core.checkpoint.model)
    if not model.scored(np.array([design.order]))[0]:
        raise ConfigError(
            f"mutants of this screen have {design.order} genes, and model "
            f"{core.checkpoint.model.config.name!r} scores mutants of {model.scored_orders()}: screen "
            f"another order, or with another model"
        )
    for output in outputs:
        least = core.checkpoint.phenotypes[output]["min_order"]
        if design.order < least:
            raise ConfigError(
                f"{core.phenotypes[output]} needs at least {least} genes, and mutants of this screen "
                f"have {design.order}: take a higher order, or other phenotypes"
            )
    if request.max_per_gene is not None and request.max_per_gene < 1:
        raise ConfigError(f"max_per_gene={request.max_per_gene}: allow at least one row per gene")
    if request.direction != "both" and request.direction not in DIRECTIONS:
        raise ConfigError(
            f"direction={request.direction!r} is not known; known: {', '.join(DIRECTIONS)}, both"
        )
    if request.top < 1:
        raise ConfigError(f"top={request.top}: ask for at least one mutant")
    directions = DIRECTIONS if request.direction == "both" else (request.direction,)
    passes_over = request.max_per_gene is not None or request.choose != "best"
    keep = request.top * RESERVE if passes_over else request.top
    condition = core.condition(request.condition)
    alone = None
    if request.rank == "interaction":
        single = MutantTable.from_matrix(gene[:, None], kind=kind, condition=np.full(len(gene), condition))
        alone = core.predict_with_sd(single)[0][:, list(outputs)]
    constraints = _constraints(core, request)
    found = Screen(
        design,
        gene,
        kind,
        core.checkpoint.assumed_doses,
        constraints,
        outputs,
        directions,
        keep,
        condition,
        PIECE,
        alone,
        # Whether it is there is asked where it is used: shards may be submitted and merged on other machines.
        request.device,
    )
    return found, exempt


def _outputs(core: PredictionCore, request: ScreenRequest) -> tuple[int, ...]:
    columns = [p for p, output in enumerate(core.checkpoint.outputs) if output.form != "gene"]
    if request.rank == "interaction":
        columns = [p for p in columns if has_singles(core.checkpoint.phenotypes[p])]
        if not columns or not class_of(core.checkpoint.model).scored(np.array([1]))[0]:
            raise ConfigError(
                f"rank='interaction' compares a mutant with its single mutants, and this model predicts no "
                f"phenotype of these relative to the wild type, only {', '.join(core.phenotypes)}: rank by "
                f"the prediction"
            )
    names = [core.phenotypes[p] for p in columns]
    if request.phenotypes is None:
        if not columns:
            raise ConfigError("the model predicts per-gene values only, by which mutants cannot be ranked")
        return tuple(columns)
    for name in request.phenotypes:
        if name not in names:
            hint = did_you_mean(name, names, f"it predicts {', '.join(names) or 'none'}")
            raise ConfigError(f"the model ranks by no phenotype {name!r}; {hint}")
    return tuple(columns[names.index(name)] for name in dict.fromkeys(request.phenotypes))


def _check_types(request: ScreenRequest) -> None:
    """Refuse a text for a list, which would be taken apart letter by letter, and counts that are none."""
    for name in ("among", "exclude", "require", "include", "phenotypes"):
        if isinstance(given := getattr(request, name), str):
            raise ConfigError(f"{name}={given!r} is one text: give a list of names, such as [{given!r}]")
    for name in ("order", "top", "max_per_gene"):
        given = getattr(request, name)
        if given is not None and (isinstance(given, bool) or not isinstance(given, int | np.integer)):
            raise ConfigError(f"{name}={given!r} is no whole number: give one, such as {name}=2")


def _candidates(core: PredictionCore, request: ScreenRequest) -> tuple[Ints, Kinds]:
    """Return the candidates [a], genes and perturbations, each pair once and in the given order."""
    genes, essential = core.genes, core.checkpoint.known.essential
    if request.among is None:
        gene, kind = np.arange(len(genes)), core.kinds
    else:
        if not len(request.among):
            raise GeneSetError("among names no genes: give a list of them, or leave it out for all")
        table = core.named([[name] for name in request.among], "candidate")
        # `np.unique` sorts; the first positions, sorted, restore the order in which candidates were named.
        _, first = np.unique(np.stack([table.gene, table.kind]), axis=1, return_index=True)
        gene, kind = table.gene[np.sort(first)], table.kind[np.sort(first)]
    out = np.zeros(len(genes), bool)
    for name in request.exclude:
        out[core.find(name)] = True
    if request.exclude_essential:
        out |= essential
    gene, kind = gene[~out[gene]], kind[~out[gene]]
    if not len(gene):
        raise GeneSetError("no candidate is left: exclude fewer genes")
    return gene, kind


def _crossed(queries: MutantTable, gene: Ints, kind: Kinds, order: int | None) -> tuple[Crossed, Ints, Kinds]:
    """Return a design over members, which are candidates and genes of queries, and the members."""
    sizes = np.unique(queries.order)
    if len(sizes) != 1:
        raise GeneSetError(f"queries have {sizes.min()} to {sizes.max()} genes: screen one size at a time")
    size = int(sizes[0])
    if order is not None and order != size + 1:
        raise ConfigError(f"order={order}, but queries of {size} crossed with one gene each make {size + 1}")
    # A gene that is candidate and part of a query is one member, so that sets met twice have equal members.
    both = np.stack([np.append(gene, queries.gene), np.append(kind, queries.kind)])
    members, of = np.unique(both, axis=1, return_inverse=True)
    of = of.reshape(-1)
    found = np.sort(of[len(gene) :].reshape(-1, size), axis=1)
    _, first = np.unique(found, axis=0, return_index=True)
    design = Crossed(found[np.sort(first)], of[: len(gene)])
    return design, members[0].astype(np.int64), members[1].astype(np.uint8)


def _constraints(core: PredictionCore, request: ScreenRequest) -> Constraints:
    known, genes = core.checkpoint.known, core.genes
    required = None
    if request.require:
        required = np.zeros(len(genes), bool)
        for name in request.require:
            if name == METABOLIC:
                required |= core.metabolic
            else:
                required[core.find(name)] = True
    left_out = _left_out(request)
    if request.min_linkage_kb is not None and known.coordinates is None:
        raise ConfigError(
            "places of this model's genes are not known: build its organism and train again with this "
            "version, or leave out min_linkage_kb"
        )
    places, overlapping = known.coordinates, None
    linked_kb = LINKED_KB if request.min_linkage_kb is None else request.min_linkage_kb
    if "overlapping" in left_out and places is not None:
        # An overlap with a dubious ORF does no harm: there is probably no second gene.
        overlapping = places.overlapping(None if known.dubious is None else ~known.dubious)
    measured, screened, condition = None, None, core.condition(request.condition)
    if request.unmeasured:
        asked = _outputs(core, request)
        chosen = [known.phenotypes.index(core.phenotypes[p]) for p in asked]
        rows = np.isin(known.table.phenotype, chosen) & (known.table.condition == condition)
        measured = MutantIndex(known.table if rows.all() else known.table.take(rows), len(genes))
        if any(core.checkpoint.phenotypes[p].get("of_cross") for p in asked):
            screened = known.grid
    lethal = lethal_pairs(known, condition) if request.exclude_synthetic_lethal else None
    return Constraints(
        required,
        linked_kb if "linked" in left_out else 0.0,
        places,
        lethal,
        measured,
        screened,
        known.lethal if "lethal" in left_out else None,
        known.dubious if "dubious" in left_out else None,
        overlapping,
    )


def _left_out(request: ScreenRequest) -> list[str]:
    """Return what the screen leaves out; raises ``ConfigError`` where the request contradicts itself."""
    for name in request.include:
        if name not in LEFT_OUT:
            hint = did_you_mean(name, LEFT_OUT, f"known: {', '.join(LEFT_OUT)}")
            raise ConfigError(f"include={name!r} is not known; {hint}")
    if request.min_linkage_kb is not None and "linked" in request.include:
        raise ConfigError(
            f"min_linkage_kb={request.min_linkage_kb:g} leaves linked genes out, and include names them: "
            f"give one of the two"
        )
    if request.min_linkage_kb is not None and not request.min_linkage_kb > 0:
        raise ConfigError(
            f"min_linkage_kb={request.min_linkage_kb:g}: give a distance above 0, or include linked genes"
        )
    return [name for name in LEFT_OUT if name not in request.include]


def _unchecked(core: PredictionCore, request: ScreenRequest) -> list[str]:
    """Return what the screen would leave out if the model knew which genes are meant."""
    known = core.checkpoint.known
    lacking = {
        "linked": known.coordinates is None,
        "overlapping": known.coordinates is None,
        "dubious": known.dubious is None,
    }
    return [name for name in _left_out(request) if lacking.get(name)]


def shortlist(
    core: PredictionCore, screen: Screen, found: ScreenResult, request: ScreenRequest, exempt: frozenset[int]
) -> pd.DataFrame:
    """Return the first ``top`` mutants per output and direction as a table.

    ``single_fitness`` lists the fitness of the single mutants, of the same kinds and condition, in the order
    of the genes; empty where it is not known. ``linkage_kb`` is the shortest distance between two of the
    genes on one chromosome: infinite if all are on different ones, NaN if a place is not known. With
    ``max_per_gene``, mutants are taken from the best on, and one is passed over if a gene, ``exempt`` ones
    aside, is in as many rows already; `choosing` has other choices. By interaction, ``expected`` is the
    product of the predictions of the single mutants.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    short: list[str] = []
    hits: dict[str, float] = {}
    top, max_per_gene = request.top, request.max_per_gene
    lists = iter(found.best)
    for output in screen.outputs:
        for direction in screen.directions:
            best = next(lists)
            mutants = screen.mutants(best.number)
            assert mutants.rows.all()  # only numbers of new mutants were predicted
            genes = mutants.genes
            score = np.abs(best.value - best.value[-1:])
            ranked = np.arange(len(genes))
            if request.choose == "explore" and len(genes):
                ranked = _by_hope(core, mutants.table, best.value, output, direction, request.interval)
            chosen = ranked[choose(request.choose, score, genes[ranked], top, max_per_gene, exempt)]
            # Fewer than ``keep`` mutants would mean that the design itself is smaller than the list.
            if len(chosen) < top and len(genes) == screen.keep:
                short.append(f"{core.phenotypes[output]}, {direction}: {len(chosen)} of {top}")
            table = mutants.table.take(chosen)
            frame = prediction_table(core, table, interval=request.interval)
            if screen.alone is not None:
                _put_interaction(frame, core.phenotypes[output], screen, output, mutants.members[chosen])
            record = core.checkpoint.phenotypes[output]
            if direction == "high" and record.get("of_cross") in ("negative", "positive"):
                # The expected number of hits of independent or dependent mutants alike: a sum of means.
                hits[core.phenotypes[output]] = float(frame[core.phenotypes[output]].sum())
            frame.insert(0, "rank", np.arange(1, len(chosen) + 1))
            frame.insert(0, "direction", direction)
            frame.insert(0, "phenotype", core.phenotypes[output])
            at = frame.columns.tolist().index("note")
            frame.insert(at, "linkage_kb", _linkage(core, genes[chosen]))
            frame.insert(at, "single_fitness", _single_fitness(core, table))
            frames.append(frame)
    out = pd.concat(frames, ignore_index=True)
    out.attrs |= {"count": screen.design.count, "asked": found.asked, "left_out": dict(found.left_out)}
    out.attrs |= {"short": short, "expected_hits": hits, "unchecked": _unchecked(core, request)}
    return out


def _put_interaction(frame: pd.DataFrame, phenotype: str, screen: Screen, output: int, members: Ints) -> None:
    """Put what the single mutants [m, k] would multiply to, and the difference, beside the prediction."""
    assert screen.alone is not None
    expected = screen.alone[members, screen.outputs.index(output)].prod(1)
    at = frame.columns.tolist().index(phenotype) + 1
    frame.insert(at, "expected", expected)
    frame.insert(at + 1, "interaction", frame[phenotype] - expected)


def _by_hope(
    core: PredictionCore, table: MutantTable, score: Floats, output: int, direction: str, level: float | None
) -> Ints:
    """Return the order of ranked mutants [m] by the value that their interval allows, or of calls by doubt.

    Raises
    ------
    ConfigError
        If no mutant has an interval.
    """
    values, sd = core.predict_with_sd(table)
    if core.checkpoint.outputs[output].form == "class":
        return np.argsort(np.abs(values[:, output] - 0.5), kind="stable")
    around = core.conformal.intervals(table, values, sd, LEVEL if level is None else level)
    half = (around.high - around.low)[:, output] / 2
    if np.isnan(half).all():
        why = around.reasons[0][1] if around.reasons else "no mutant has an interval"
        raise ConfigError(f"choose='explore' ranks by the ends of intervals: {why}; choose best or diverse")
    hope = score - half if direction == "low" else -score - half
    return np.argsort(hope, kind="stable")  # mutants without an interval are last


def _linkage(core: PredictionCore, genes: Ints) -> Floats:
    """Return the shortest distance [m] in kb between two genes [m, k] of a mutant."""
    places = core.checkpoint.known.coordinates
    pairs = list(combinations(range(genes.shape[1]), 2))
    if places is None or not pairs:
        return np.full(len(genes), np.nan)
    apart = np.stack([places.distance(genes[:, i], genes[:, j]) for i, j in pairs])
    return np.asarray(apart.min(0))  # NaN if one of the distances is


def _single_fitness(core: PredictionCore, table: MutantTable) -> list[str]:
    """Return the fitness of each mutant's single mutants, as text."""
    values = core.checkpoint.known.single_fitness_of(table)[0]
    texts = ["" if np.isnan(x) else f"{x:.3g}" for x in values.tolist()]
    return [",".join(texts[a:b]) for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]
