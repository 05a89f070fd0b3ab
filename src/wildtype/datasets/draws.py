"""How each kind of split is drawn: from a dataset, a random stream and a plan to a side for every row.

Legend: m rows · n genes · u units (gene sets, genes, query pairs, screens) that are held out completely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.plans import BY, Plan
from wildtype.datasets.provenance import group_of
from wildtype.datasets.query_pairs import contains_pair, query_pairs, query_strains, strain_of_rows
from wildtype.errors import SplitError
from wildtype.mutants import MutantTable

PARTS = ("train", "validation", "test")
DROPPED = len(PARTS)

RULES = {
    "random": "no gene set of a test or validation row is in training",
    "one-unseen": "exactly one gene of every test and validation row is in no training row",
    "unseen": "no gene of any test or validation row is in a training row",
    "any-unseen": "every test and validation row has a gene that is in no training row",
    "query-pair": "the query pair of every test and validation triple is in no training row of any order",
    "screen": "the screen of every test and validation row has no training row",
    "order": "every training and validation row perturbs fewer genes than every test row",
}
"""What ``Split.check`` verifies, by name of the split."""


def count_genes(table: MutantTable, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return [M] how many genes of each row are flagged in ``flags`` [n]."""
    return np.bincount(table.row, weights=flags[table.gene], minlength=len(table)).astype(np.int64)


def seen_tokens(dataset: DatasetRecord, rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which genes [n] some rows (positions or mask) have seen.

    Where the tokens are units of several genes, a unit is also seen if a unit that shares a gene with it is.
    """
    seen = np.zeros(len(dataset.organism.genes), bool)
    seen[dataset.table.take(rows).gene] = True
    units = dataset.organism.units
    return seen if units is None else seen | (units.sharing @ seen.astype(np.float32) > 0)


def drawn_as_one(dataset: DatasetRecord) -> NDArray[np.int64]:
    """Return a number [n] for each gene; those with the same one are on one side of a split.

    Units that share a gene are drawn as one: each would tell what the other does.
    """
    units = dataset.organism.units
    return np.arange(len(dataset.organism.genes)) if units is None else units.groups


@dataclass
class Draft:
    """A split in the making: ``side`` [M] (index into PARTS, or DROPPED) with reasons."""

    side: NDArray[np.int8]
    dropped: dict[str, int] = field(default_factory=dict)
    held_out_genes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held_out_pairs: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    held_out_screens: dict[str, tuple[str, ...]] = field(default_factory=dict)
    strains: tuple[tuple[str, ...], ...] = ()
    options: dict[str, float | str] = field(default_factory=dict)

    def drop(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Take rows off all sides and count those that were on one."""
        count = int((rows & (self.side != DROPPED)).sum())
        if count:
            self.side[rows] = DROPPED
            self.dropped[reason] = self.dropped.get(reason, 0) + count


def _sides(
    strata: NDArray[np.int64], rng: np.random.Generator, plan: Plan, *, least: int = 0
) -> NDArray[np.int8]:
    """Return the side [U] of units, drawn within each stratum [U] (and at least ``least`` on each side)."""
    # Units arrive sorted by content, so the draw does not depend on the order of rows in the dataset.
    shuffled = rng.permutation(strata.size)
    ranked = shuffled[np.argsort(strata[shuffled], kind="stable")]
    side = np.zeros(strata.size, np.int8)
    low = 0
    for size in np.unique(strata, return_counts=True)[1]:
        high = low + int(size)
        at = ranked[low:high]
        # Quotas are differences of rounded cumulative ones: each stratum, and the total, is within one unit.
        tests, validations = (round(f * high) - round(f * low) for f in (plan.test, plan.validation))
        if plan.folds:
            turn = (np.arange(low, high) - plan.fold) % plan.folds
            at, tests = at[np.argsort(turn, kind="stable")], int((turn == 0).sum())
        else:  # a fold stays empty where there are fewer units than folds: no unit is tested twice
            tests = max(tests, least)
        validations = max(validations, least)
        side[at[:tests]] = 2
        side[at[tests : tests + validations]] = 1
        low = high
    return side


def _sides_by_weight(weight: NDArray[np.int64], rng: np.random.Generator, plan: Plan) -> NDArray[np.int8]:
    """Return the side [U] of units with as many rows as ``weight`` [U] says, rounded up to whole units."""
    # Whole units go to one side; cutting a screen or query pair in two would leak it.
    shuffled = rng.permutation(weight.size)
    side = np.zeros(weight.size, np.int8)
    tests = 0
    if plan.folds:
        # A unit goes to the fold in which its middle row falls, so that folds have about equally many rows.
        middle = (np.cumsum(weight[shuffled]) - weight[shuffled] / 2) / weight.sum()
        turn = ((middle * plan.folds).astype(np.int64) - plan.fold) % plan.folds
        shuffled, tests = shuffled[np.argsort(turn, kind="stable")], int((turn == 0).sum())
    share = np.cumsum(weight[shuffled]) / weight.sum()
    if not plan.folds:
        # The tolerance keeps a share that equals the fraction but for rounding from drawing one more unit.
        tests = int(np.searchsorted(share, plan.test - 1e-12)) + 1
    reached = share[min(tests, weight.size) - 1] if tests else 0.0
    stop = int(np.searchsorted(share, reached + plan.validation - 1e-12)) + 1
    side[shuffled[tests:stop]] = 1
    side[shuffled[:tests]] = 2
    return side


def _first_of_sets(table: MutantTable) -> NDArray[np.int64]:
    return np.unique(table.set_id, return_index=True)[1]


def _random(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    table = dataset.table
    # Gene sets are drawn, not rows: the same set in another condition or with other kinds would leak.
    side = _sides(table.order[_first_of_sets(table)], rng, plan)
    return Draft(side[table.set_id])


def _hold_out_genes(
    dataset: DatasetRecord, rng: np.random.Generator, plan: Plan
) -> tuple[Draft, NDArray[np.int8]]:
    """Return rows on the side of their genes, and the side [n] of every gene (0 kept, 1 validation, 2 test).

    A row with a gene held out for test is on the side of test, whatever its other genes. Of an organism whose
    tokens are units of several genes, units that share a gene are on one side.
    """
    every = drawn_as_one(dataset)
    measured = dataset.measured_genes()
    if plan.among is not None:
        measured = measured[_may_be_held_out(dataset, every, plan.among)[measured]]
    genes, place = np.unique(every[measured], return_inverse=True)
    if plan.genes is not None:
        if plan.genes + max(round(plan.validation * genes.size), 1) >= genes.size:
            of = "genes" if plan.among is None else f"genes among which it holds out ({plan.among})"
            raise SplitError(
                f"dataset {dataset.name!r} has rows of {genes.size:,} {of}: {plan} leave none for training, "
                "lower either"
            )
        plan = replace(plan, test=plan.genes / genes.size)
    group = np.zeros(len(dataset.organism.genes), np.int8)
    group[measured] = _sides(np.zeros(genes.size, np.int64), rng, plan, least=1)[place]
    names = dataset.organism.genes.names
    draft = Draft(np.zeros(len(dataset), np.int8))
    for side, part in ((1, "validation"), (2, "test")):
        # Test comes last and overwrites validation: no row with a test gene may choose settings.
        draft.side[count_genes(dataset.table, group == side) > 0] = side
        draft.held_out_genes[part] = tuple(names[i] for i in np.flatnonzero(group == side))
    return draft, group


def _may_be_held_out(dataset: DatasetRecord, group: NDArray[Any], among: str) -> NDArray[np.bool_]:
    """Return which genes [n] are of query strains, or of none, as ``among`` says.

    Genes of one ``group`` [n] are of a query strain if any of them is.
    """
    of_queries = np.zeros(len(group), bool)
    of_queries[[gene for strain in query_strains(dataset.table) for gene in strain]] = True
    if not of_queries.any():
        raise SplitError(
            f"dataset {dataset.name!r} has no rows of two or three genes, so no query strains: leave "
            f"among={among} out"
        )
    of_queries = np.isin(group, group[of_queries])
    return of_queries if among == "query" else ~of_queries


def _one_unseen(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    table = dataset.table
    if not (table.order > 1).any():
        raise SplitError(f"dataset {dataset.name!r} has single mutants only: use split random or unseen")
    draft, group = _hold_out_genes(dataset, rng, plan)
    held = count_genes(table, group > 0)
    # A single mutant of a held-out gene has no seen gene, so it is not a one-unseen row on any side.
    draft.drop((held == 1) & (table.order == 1), "single mutant of a held-out gene")
    draft.drop(held > 1, "two or more held-out genes")
    # Dropped rows may have been the only training rows of a gene, which is then unseen too.
    seen = seen_tokens(dataset, draft.side == 0)
    draft.drop(count_genes(table, ~seen & (group == 0)) > 0, "another gene has no training row")
    return draft


def _unseen(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    table = dataset.table
    draft, group = _hold_out_genes(dataset, rng, plan)
    for_validation, for_test = (count_genes(table, group == side) for side in (1, 2))
    held = for_validation + for_test
    # Mixed rows would show held-out genes in training, or seen genes in test.
    draft.drop((held > 0) & (held < table.order), "held-out and other genes mixed")
    draft.drop((for_validation > 0) & (for_test > 0), "genes held out for validation and for test mixed")
    return draft


def _any_unseen(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    return _hold_out_genes(dataset, rng, plan)[0]


def _query_pair(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    table, n = dataset.table, len(dataset.organism.genes)
    in_triples = np.flatnonzero(table.order == 3)
    triples, triple = np.unique(table.take(in_triples).matrix(3), axis=0, return_inverse=True)
    if not len(triples):
        raise SplitError(
            f"dataset {dataset.name!r} has no rows of three genes: use split random, one-unseen or unseen"
        )
    pairs, query, counts = np.unique(query_pairs(triples), axis=0, return_inverse=True, return_counts=True)
    side = _sides_by_weight(counts, rng, plan)
    chosen = {"validation": np.flatnonzero(side == 1), "test": np.flatnonzero(side == 2)}
    # Rows of every order are searched: a held-out pair must not be learnt from its double mutant either.
    in_validation, in_test = (contains_pair(table, pairs[at], n) for at in chosen.values())
    draft = Draft(np.where(in_test, 2, np.where(in_validation, 1, 0)).astype(np.int8))
    names = dataset.organism.genes.names
    draft.held_out_pairs = {
        part: tuple((names[a], names[b]) for a, b in pairs[at]) for part, at in chosen.items()
    }
    draft.drop((draft.side > 0) & (table.order == 2), "double mutant of a held-out query pair")
    draft.drop((draft.side > 0) & (table.order > 3), "held-out query pair within four or more genes")
    if plan.folds:  # a triple of two query pairs is tested only with the one that it is assigned to
        foreign = np.zeros(len(table), bool)
        foreign[in_triples] = side[query.reshape(-1)[triple.reshape(-1)]] != 2
        draft.drop((draft.side == 2) & foreign, "held-out query pair within a triple of another fold")
    return draft


def default_screen(dataset: DatasetRecord) -> str:
    """Return what a screen is by default: ``query`` or ``condition``.

    Query strains where most rows of two or more genes are doubles or triples, as crosses of a query with an
    array are; conditions otherwise.
    """
    order = dataset.table.order
    crosses, multiple = int(((order == 2) | (order == 3)).sum()), int((order >= 2).sum())
    return "query" if 2 * crosses > multiple else "condition"


def studies_of(source: str) -> tuple[str, ...]:
    """Return the studies of a phenotype's source (``"study:phenotype"``, several joined by ``" + "``)."""
    return tuple(sorted({part.split(":")[0] for part in source.split(" + ")}))


def screens(
    dataset: DatasetRecord, by: str, strains: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the names of a dataset's screens, and the screen [M] of every row (-1: in none).

    A study is in the screen of its provenance group. With ``query`` the strains decide
    (`query_pairs.strain_of_rows`), so that a stored list of them gives the same screens again; strains of
    genes that the dataset does not have are in no row.
    """
    table = dataset.table
    if by == "condition":
        return dataset.conditions, table.condition
    if by == "study":
        studies = [
            "+".join(sorted({group_of(study, dataset.provenance) for study in studies_of(phenotype.source)}))
            for phenotype in dataset.phenotypes
        ]
        names = tuple(sorted(set(studies)))
        return names, np.array([names.index(study) for study in studies])[table.phenotype]
    genes = dataset.organism.genes
    known = {name: position for position, name in enumerate(genes.names)}
    rank = [i for i, strain in enumerate(strains) if all(gene in known for gene in strain)]
    found = strain_of_rows(table, [[known[g] for g in strains[i]] for i in rank], len(genes))
    back = np.array([*rank, -1], dtype=np.int64)
    return tuple("+".join(strain) for strain in strains), back[found]


def _screen(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    by = default_screen(dataset) if plan.by is None else plan.by
    if by not in BY:
        raise SplitError(f"a screen by {by!r} is not known; known: {', '.join(BY)}")
    strains: tuple[tuple[str, ...], ...] = ()
    if by == "query":
        names = dataset.organism.genes.names
        strains = tuple(tuple(names[g] for g in strain) for strain in query_strains(dataset.table))
    screen, of_row = screens(dataset, by, strains)
    # Rows in no screen have code -1; they carry no weight and train.
    weight = np.bincount(of_row[of_row >= 0], minlength=len(screen))
    used = np.flatnonzero(weight)
    if used.size < 3:
        raise SplitError(
            f"dataset {dataset.name!r} has {used.size} screens by {by}, expected at least 3, one for each "
            f"side: choose another by ({', '.join(BY)}) or another split"
        )
    side = np.zeros(len(screen) + 1, np.int8)  # the last one is for rows in no screen: training
    side[used] = _sides_by_weight(weight[used], rng, plan)
    draft = Draft(side[of_row], strains=strains, options={"by": by})
    draft.held_out_screens = {
        part: tuple(screen[i] for i in np.flatnonzero(side == s))
        for s, part in ((1, "validation"), (2, "test"))
    }
    return draft


def _order(dataset: DatasetRecord, rng: np.random.Generator, plan: Plan) -> Draft:
    table = dataset.table
    orders = np.unique(table.order)
    tested = int(orders[-1]) if plan.order is None else int(plan.order)
    if plan.up_to is not None:
        return _apart(table, plan.up_to, tested)
    if tested not in orders[1:]:
        raise SplitError(
            f"order {tested} of dataset {dataset.name!r} cannot be tested: it has rows of order "
            f"{', '.join(str(o) for o in orders)}, of which all but the lowest can"
        )
    first = _first_of_sets(table)
    of_set = table.order[first]
    side = np.zeros(first.size, np.int8)
    # The tested order never trains, in no fold: a row outside its fold is dropped, not moved to training.
    side[of_set >= tested] = DROPPED
    for order, drawn in (
        (tested, Plan(0.0, plan.test, plan.fold, plan.folds)),
        (int(orders[orders < tested][-1]), Plan(plan.validation, 0.0)),
    ):
        at = np.flatnonzero(of_set == order)
        part = _sides(np.zeros(at.size, np.int64), rng, drawn)
        side[at[part > 0]] = part[part > 0]
    draft = Draft(np.where(table.order < tested, 0, 2).astype(np.int8), options={"order": tested})
    draft.drop(table.order > tested, "more genes than the tested order")
    draft.drop((table.order == tested) & (side[table.set_id] == DROPPED), "tested in another fold")
    draft.side[side[table.set_id] == 1] = 1
    return draft


def _apart(table: MutantTable, up_to: int, tested: int) -> Draft:
    """Return rows of few genes as training, of many as test, and of those in between as validation."""
    if up_to >= tested - 1:
        raise SplitError(
            f"orders up to {up_to} for training and from {tested} for test leave none in between to "
            f"validate: choose up_to of at most {tested - 2}, or leave it out"
        )
    side = np.where(table.order <= up_to, 0, np.where(table.order < tested, 1, 2))
    return Draft(side.astype(np.int8), options={"order": tested, "up_to": up_to})


MAKERS: dict[str, Callable[[DatasetRecord, np.random.Generator, Plan], Draft]] = {
    "random": _random,
    "one-unseen": _one_unseen,
    "unseen": _unseen,
    "any-unseen": _any_unseen,
    "query-pair": _query_pair,
    "screen": _screen,
    "order": _order,
}
