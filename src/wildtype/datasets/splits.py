"""Splits of a dataset into training, validation and test rows: named, seeded, counted and checked for leaks.

All rows of one unordered gene set (whatever the kinds, conditions and phenotypes) always stay on one side,
unless whole conditions or studies are held out. Where the tokens of an organism are units of several genes, a
unit is in no training row only if no unit that shares a gene with it is; such units are held out together.

=============  ====  ===================================================================
name           also  what a test row is
=============  ====  ===================================================================
random         R     a gene set that is in no training row; drawn at random within each order
one-unseen     Q     exactly one of its genes is in no training row; all others are
unseen         G     none of its genes is in any training row
any-unseen           at least one of its genes is in no training row
query-pair           three genes whose query pair is together in no training row
screen               a row of a screen (query strain, condition or study) with no training row
order                a mutant of more genes than any training row has
=============  ====  ===================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.cross_draws import cross_sides, draft_of_crosses
from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.draws import DROPPED, MAKERS, PARTS, RULES, Draft, count_genes, screens, seen_tokens
from wildtype.datasets.plans import Plan, canonical_name, make_plan
from wildtype.datasets.query_pairs import contains_pair
from wildtype.errors import SplitError
from wildtype.files import content_hash
from wildtype.seeds import generator

Rows = NDArray[np.int64]
MARKS = "tve."  # one character per row in a stored split: train, validation, test, dropped


def rows_sha256(dataset: DatasetRecord) -> str:
    """Return a hash of what each row is, in row order, which the dataset's hash leaves out."""
    t = dataset.table
    return content_hash(t.gene, t.offsets, t.kind, t.condition, t.phenotype)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one dataset on three sides.

    Attributes
    ----------
    name : str
        Which kind of split; see the module's table.
    seed : int
        Seed it was drawn with.
    dataset_sha256, rows_sha256 : str
        Content of the dataset, and order of its rows; ``check`` compares both.
    total : int
        Rows of the dataset: train + validation + test + dropped.
    train, validation, test : int64, ascending
        Row numbers.
    dropped : dict of str to int
        Rows on no side, by reason.
    held_out_genes : dict of str to tuple of str
        Systematic names, under ``validation`` and ``test`` (one-unseen, unseen, any-unseen).
    held_out_pairs : dict of str to tuple of (str, str)
        Query pairs, under ``validation`` and ``test`` (query-pair).
    held_out_screens : dict of str to tuple of str
        Query strains, conditions or studies, under ``validation`` and ``test`` (screen).
    strains : tuple of tuple of str
        Genes of all query strains; a row is in the screen of the first that it contains (screen by query).
    options : dict of str to float or str
        The requested fractions, and the other options that were used.
    """

    name: str
    seed: int
    dataset_sha256: str
    rows_sha256: str
    total: int
    train: Rows
    validation: Rows
    test: Rows
    dropped: Mapping[str, int] = field(default_factory=dict)
    held_out_genes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held_out_pairs: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    held_out_screens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strains: tuple[tuple[str, ...], ...] = ()
    options: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in PARTS:
            rows = np.asarray(getattr(self, part), dtype=np.int64)
            if rows.size and (rows[0] < 0 or rows[-1] >= self.total or (np.diff(rows) <= 0).any()):
                raise SplitError(f"split {self.name!r}: {part} rows must ascend within 0 … {self.total - 1}")
            object.__setattr__(self, part, rows)
        needed = {"screen": "by", "order": "order"}.get(self.name)
        if needed and needed not in self.options:
            raise SplitError(f"split {self.name!r} lacks its option {needed!r}: make it again")

    def __repr__(self) -> str:
        sides = ", ".join(f"{len(getattr(self, part)):,} {part}" for part in PARTS)
        return f"Split({self.name!r}, seed {self.seed}: {sides} of {self.total:,} rows)"

    def _side(self) -> NDArray[np.int8]:
        side = np.full(self.total, DROPPED, np.int8)
        # A row listed on two sides is overwritten in `side`, so counts reveal the overlap.
        placed = 0
        for s, part in enumerate(PARTS):
            side[getattr(self, part)] = s
            placed += getattr(self, part).size
        if placed + int((side == DROPPED).sum()) != self.total:
            raise SplitError(f"split {self.name!r} leaks: a row is on two sides; make the split again")
        return side

    @property
    def cuts_gene_sets(self) -> bool:
        """Whether rows of one gene set may be on two sides: where conditions or studies are held out."""
        return self.name == "screen" and self.options.get("by") != "query"

    def belongs_to(self, dataset: DatasetRecord) -> None:
        """Raise ``SplitError`` unless the split was made for this dataset, in this order of its rows."""
        if self.dataset_sha256 != dataset.sha256 or self.rows_sha256 != rows_sha256(dataset):
            raise SplitError(
                f"split {self.name!r} (seed {self.seed}) was made for another version of dataset "
                f"{dataset.name!r}: its row numbers mean other mutants; make the split again"
            )

    def check(self, dataset: DatasetRecord) -> dict[str, Any]:
        """Verify on the rows themselves that nothing leaks, and return what was found.

        Returns
        -------
        dict
            ``rows`` and ``gene_sets`` per side, ``gene_sets_on_two_sides`` (0 unless whole conditions or
            studies are held out), ``genes_in_training``, ``unseen_genes_per_row`` (side → number of genes
            that no training row has → rows), and the ``rule`` that was verified.

        Raises
        ------
        SplitError
            If the split belongs to another dataset (or another order of its rows), or if anything leaks.
        """
        self.belongs_to(dataset)
        table, side = dataset.table, self._side()
        if sum(self.dropped.values()) != int((side == DROPPED).sum()):
            raise SplitError(
                f"split {self.name!r}: the counted dropped rows are not the rows that are missing"
            )
        sets = {part: np.unique(table.set_id[side == s]) for s, part in enumerate(PARTS)}
        shared = sum(s.size for s in sets.values()) - np.unique(np.concatenate(list(sets.values()))).size
        if shared and not self.cuts_gene_sets:
            raise SplitError(f"split {self.name!r} leaks: {shared} gene sets are on two sides; make it again")
        # Recomputed from the rows, not taken from the draw: the check must not trust what it checks.
        seen = seen_tokens(dataset, self.train)
        unseen = count_genes(table, ~seen)
        for part, other in (("validation", "test"), ("test", "validation")):
            self._check_side(dataset, part, other, unseen, seen)
        return {
            "rows": {part: int((side == s).sum()) for s, part in enumerate((*PARTS, "dropped"))},
            "gene_sets": {part: int(s.size) for part, s in sets.items()},
            "gene_sets_on_two_sides": int(shared),
            "genes_in_training": int(seen.sum()),
            "unseen_genes_per_row": {
                part: {
                    str(k): int(c)
                    for k, c in zip(*np.unique(unseen[getattr(self, part)], return_counts=True), strict=True)
                }
                for part in PARTS[1:]
            },
            "rule": RULES[self.name],
        }

    def _check_side(
        self, dataset: DatasetRecord, part: str, other: str, unseen: Rows, seen: NDArray[np.bool_]
    ) -> None:
        table, genes, rows = dataset.table, dataset.organism.genes, getattr(self, part)
        held = np.zeros(len(genes), bool)
        held[[genes.find(name) for name in self.held_out_genes.get(part, ())]] = True
        bad = 0
        if self.name == "one-unseen":
            bad = int((unseen[rows] != 1).sum() + (table.order[rows] < 2).sum())
        elif self.name == "unseen":
            bad = int((unseen[rows] != table.order[rows]).sum())
        elif self.name == "any-unseen":
            bad = int((count_genes(table, held)[rows] == 0).sum())
        # A test row of any-unseen may have genes held out for validation too: none of them was learnt from.
        apart = self.name != "any-unseen" or part == "test"
        if (held & seen).any() or (apart and (count_genes(table, held)[getattr(self, other)] > 0).any()):
            bad += 1
        if self.name == "query-pair":
            pairs = [np.sort(genes.find_all(pair)) for pair in self.held_out_pairs[part]]
            # Pairs are stored by name; sorted positions match the ascending genes of rows.
            hit = contains_pair(table, np.array(pairs, dtype=np.int64).reshape(-1, 2), len(genes))
            elsewhere = hit[self.train].sum() + (hit[self.validation].sum() if part == "test" else 0)
            bad += int(elsewhere + (~hit[rows]).sum() + (table.order[rows] != 3).sum())
        elif self.name == "screen":
            names, screen = screens(dataset, str(self.options["by"]), self.strains)
            # The last entry is that of screen -1, rows in no screen, which are never held out.
            held_out = np.array([*(name in self.held_out_screens.get(part, ()) for name in names), False])
            elsewhere = held_out[screen[np.append(self.train, getattr(self, other))]]
            bad = int(elsewhere.sum() + (~held_out[screen[rows]]).sum())
        elif self.name == "order":
            tested = float(self.options["order"])
            learnt, order = float(self.options.get("up_to", tested - 1)), table.order[rows]
            above = order >= tested if "up_to" in self.options else order == tested
            fits = above if part == "test" else order < tested
            bad = int((~fits).sum() + (table.order[self.train] > learnt).sum())
        if bad:
            raise SplitError(
                f"split {self.name!r} leaks: {part} rows break its rule ({RULES[self.name]}); make it again"
            )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-like record; the rows are one string with one mark per dataset row."""
        marks = np.frombuffer(MARKS.encode(), np.uint8)[self._side()]
        return {
            "name": self.name,
            "seed": self.seed,
            "dataset_sha256": self.dataset_sha256,
            "rows_sha256": self.rows_sha256,
            "marks": {"t": "train", "v": "validation", "e": "test", ".": "dropped"},
            "rows": marks.tobytes().decode(),
            "dropped": dict(self.dropped),
            "held_out_genes": {part: list(names) for part, names in self.held_out_genes.items()},
            "held_out_pairs": {part: [list(p) for p in pairs] for part, pairs in self.held_out_pairs.items()},
            "held_out_screens": {part: list(names) for part, names in self.held_out_screens.items()},
            "strains": [list(strain) for strain in self.strains],
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Split:
        """Rebuild a split from ``to_json``; raises ``SplitError`` on a record that is not one."""
        try:
            marks = np.frombuffer(record["rows"].encode("ascii"), np.uint8)
            known = [marks == ord(mark) for mark in MARKS]
            if not np.logical_or.reduce(known).all():
                raise ValueError("a row mark is not one of t, v, e and .")
            train, validation, test = (np.flatnonzero(rows) for rows in known[:DROPPED])
            return cls(
                name=canonical_name(record["name"]),
                seed=int(record["seed"]),
                dataset_sha256=record["dataset_sha256"],
                rows_sha256=record["rows_sha256"],
                total=marks.size,
                train=train,
                validation=validation,
                test=test,
                dropped={reason: int(count) for reason, count in record["dropped"].items()},
                held_out_genes={part: tuple(names) for part, names in record["held_out_genes"].items()},
                held_out_pairs={
                    part: tuple((str(a), str(b)) for a, b in pairs)
                    for part, pairs in record["held_out_pairs"].items()
                },
                held_out_screens={
                    part: tuple(names) for part, names in record.get("held_out_screens", {}).items()
                },
                strains=tuple(tuple(strain) for strain in record.get("strains", ())),
                options={
                    key: value if isinstance(value, str | int) else float(value)
                    for key, value in record["options"].items()
                },
            )
        except SplitError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SplitError(
                f"this is not a stored split ({error!r}): restore the file or make it again"
            ) from error


def held_out_units(dataset: DatasetRecord, split: Split, part: str) -> NDArray[np.int64]:
    """Return [m] the held-out query pair or screen of each row of ``validation`` or ``test``.

    Positions in ``split.held_out_pairs[part]`` or among the screens; -1 in all rows of splits that hold out
    genes, gene sets or orders, where rows are independent units. A triple with two held-out query pairs
    counts for the first.
    """
    rows = getattr(split, part)
    unit = np.full(rows.size, -1, np.int64)
    if split.name == "query-pair":
        genes, table = dataset.organism.genes, dataset.table.take(rows)
        for i, pair in enumerate(split.held_out_pairs[part]):
            ends = np.sort(genes.find_all(pair))[None]
            unit[contains_pair(table, ends, len(genes)) & (unit < 0)] = i
    elif split.name == "screen":
        unit = screens(dataset, str(split.options["by"]), split.strains)[1][rows]
    return unit


def make_split(
    dataset: DatasetRecord,
    name: str = "random",
    seed: int = 0,
    *,
    validation: float | None = None,
    test: float | None = None,
    fold: int | None = None,
    folds: int | None = None,
    order: int | None = None,
    by: str | None = None,
    genes: int | None = None,
    up_to: int | None = None,
    among: str | None = None,
) -> Split:
    """Draw a split and verify that it does not leak.

    * ``random`` (R): gene sets, drawn within each order. Fractions are of gene sets.
    * ``one-unseen`` (Q): some genes are held out for test, others for validation. Rows with exactly one of
      them are tested, as long as all their other genes have training rows; single mutants of held-out genes
      and mixed rows are dropped and counted. Fractions are of the genes that any row perturbs.
    * ``unseen`` (G): rows whose genes are all held out for test (validation); rows that mix are dropped and
      counted. Single mutants of held-out genes are test rows here. Fractions are of genes.
    * ``any-unseen``: rows with at least one gene held out for test are tested, those with none of these but
      one held out for validation validate, and all others train; none is dropped. Fractions are of genes.
    * ``query-pair``: for screens that cross double-mutant queries with many arrays. Tables of unordered sets
      do not record which pair was the query: see ``query_pairs.query_pairs``. All triples with a query pair
      held out for test are tested, so that none can stay in training. Rows of another order that contain
      a held-out pair, its double mutant included, are dropped and counted. Fractions are of triples, rounded
      up to whole query pairs.
    * ``screen``: a test row is one of a screen that is held out completely. By ``query``, a screen is
      everything measured on the doubles or triples of one query strain, in all conditions; strains are found
      as for ``query-pair``, and those of doubles are a guess (``query_pairs.query_genes``). The strain's
      genes and mutants may be in training, as arrays or in other strains' screens. By ``condition`` or
      ``study`` (that of the phenotype's source), a screen is all rows of one of them, and the same gene sets
      are in training, measured in other conditions or studies. Rows in no screen are training rows. Fractions
      are of rows in screens, rounded up to whole screens.
    * ``order``: a test row is a mutant of the highest order, or of ``order``; training rows have fewer genes.
      Validation rows are drawn from the highest training order, of which ``validation`` is a fraction of the
      gene sets. Rows of a higher order are dropped and counted. With ``up_to``, training rows have at most
      so many genes, test rows ``order`` or more, and all rows in between validate: settings are chosen by how
      well they reach beyond the orders of training.

    Drawing depends on (dataset, name, seed, options) alone, not on the order of rows.

    Of a dataset with a grid, ``random``, ``one-unseen``, ``unseen`` and ``any-unseen`` are drawn over all
    crosses of the grid: the side of a row follows from the names of its genes, the seed and the options,
    never from what is listed (`cross_draws`). Other splits are refused.

    Parameters
    ----------
    dataset : DatasetRecord
        What to split.
    name : str
        ``random``, ``one-unseen``, ``unseen``, ``any-unseen``, ``query-pair``, ``screen``, ``order``, or
        R, Q, G.
    seed : int
        Seed of the draw.
    validation, test : float, optional
        Fractions; see ``draws.DEFAULT_FRACTIONS``.
    fold, folds : int, optional
        Test the ``fold``-th (from 0) of ``folds`` equal parts instead of a fraction (``folds.make_folds``).
    order : int, optional
        Which order is tested (split ``order``).
    up_to : int, optional
        Highest training order; ``order`` and every higher one are tested then (split ``order``).
    by : str, optional
        What a screen is: ``query``, ``condition``, ``study`` (split ``screen``; see ``default_screen``).
    genes : int, optional
        Hold out so many genes for test instead of a fraction (splits ``one-unseen``, ``unseen``,
        ``any-unseen``).
    among : str, optional
        Hold out only genes of query strains (``query``), or only genes of no query strain (``array``), of a
        screen that crossed few queries with many arrays; which those are is a guess for pairs
        (``query_pairs.query_strains``; the same three splits).

    Raises
    ------
    SplitError
        If the name or an option is not valid, if a side stays empty, or if the result leaks.
    """
    name = canonical_name(name)
    plan, options = make_plan(name, validation, test, fold, folds, order, by, genes, up_to, among)
    if dataset.grid is not None:
        draft = draft_of_crosses(dataset, cross_sides(dataset, name, seed, plan))
    else:
        # The stream depends on seed and kind alone, so one kind's draw never shifts another's.
        draft = MAKERS[name](dataset, generator(seed, f"split/{name}"), plan)
    return split_of(dataset, name, seed, plan, options, draft)


def split_of(
    dataset: DatasetRecord, name: str, seed: int, plan: Plan, options: Mapping[str, float | str], draft: Draft
) -> Split:
    """Return the split of a draft, verified not to leak.

    Raises
    ------
    SplitError
        If a side is empty, or if the result leaks.
    """
    rows = {part: np.flatnonzero(draft.side == s) for s, part in enumerate(PARTS)}
    for part in PARTS:
        if not rows[part].size:
            grow = "lower the fractions" if part == "train" else f"raise {part}"
            grow = "choose fewer folds" if plan.folds and part == "test" else f"{grow} ({plan})"
            instead = "" if name == "random" else ", or split 'random'"
            raise SplitError(
                f"split {name!r} (seed {seed}) of dataset {dataset.name!r} leaves no {part} rows "
                f"of {len(dataset):,}: {grow}, or take another seed{instead}"
            )
    split = Split(
        name=name,
        seed=seed,
        dataset_sha256=dataset.sha256,
        rows_sha256=rows_sha256(dataset),
        total=len(dataset),
        train=rows["train"],
        validation=rows["validation"],
        test=rows["test"],
        dropped=draft.dropped,
        held_out_genes=draft.held_out_genes,
        held_out_pairs=draft.held_out_pairs,
        held_out_screens=draft.held_out_screens,
        strains=draft.strains,
        options={**options, **draft.options},
    )
    split.check(dataset)
    return split
