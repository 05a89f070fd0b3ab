"""`MutantTable`: mutants as ragged NumPy arrays, one row per measurement or query, in memory and on disk.

Legend: m rows · k perturbed genes per row · Σk their sum · r profiles · n genes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import ConfigError, GeneSetError, ShapeError, did_you_mean
from wildtype.files import writing
from wildtype.mutants.ragged import Ragged, offsets_of, ragged_ranks
from wildtype.unpacking import read_arrays

COLUMNS = ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd")
OPTIONAL = ("dose", "p", "profile", "profiles", "weight")
"""Columns that every stored table has, and columns that it has where its table has them."""


class Kind(IntEnum):
    """What was done to a gene.

    ``REDUCED`` is partial loss of function: a temperature-sensitive or DAmP allele, a knock-down. An
    essential gene's hypomorph is therefore never recorded as a deletion.
    """

    ABSENT = 0
    REDUCED = 1
    PRESENT = 2
    ADDED = 3
    OVEREXPRESSED = 4

    @classmethod
    def parse(cls, name: str) -> Kind:
        """Return the kind called ``name`` (any case); raises ``ConfigError`` naming the known kinds."""
        try:
            return cls[name.strip().upper()]
        except KeyError:
            known = [kind.name.lower() for kind in cls]
            hint = did_you_mean(name, known, f"known kinds: {', '.join(known)}")
            raise ConfigError(f"{name!r} is not a kind of perturbation; {hint}") from None


@dataclass(frozen=True, eq=False)
class MutantTable(Ragged):
    """Perturbed genes and measurements of M mutants.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the gene index, ascending within a row, never repeated within a row.
    offsets : int64 [M+1]
        Row i owns ``gene[offsets[i]:offsets[i+1]]`` (see ``Ragged``).
    kind : uint8 [Σk]
        ``Kind`` of each perturbation.
    condition : int64 [M]
        Position in the dataset's list of conditions (0: the reference).
    phenotype : int64 [M]
        Position in the dataset's list of phenotypes.
    value, sd : float32 [M]
        Measured value and its standard deviation (NaN: not known), in the phenotype's unit.
    dose : float32 [Σk] or None
        Dose of each perturbation where it has one.
    p : float32 [M] or None
        Two-sided p-value of the measured effect as its study reports it (NaN: not known); below 1e-45 it is
        0.
    profile : int64 [M] or None
        Where a row measured a number for every gene (expression): its row in ``profiles``, and ``value`` is
        NaN; -1 for a row whose ``value`` is the measurement. None: no row has a profile.
    profiles : float32 [r, n] or None
        One number per gene of the gene index (NaN: not measured). Tables cut from one another share it: 1,484
        mutants by 6,607 genes take 37 MiB once, against some 450 MiB as one row per number.
    weight : float32 [M] or None
        How many mutants a row stands for, where rows are a sample; None: every row for itself alone.

    Raises
    ------
    ShapeError
        If the arrays do not fit each other.
    """

    ENTRIES: ClassVar[tuple[str, ...]] = ("gene", "kind", "dose")
    ROWS: ClassVar[tuple[str, ...]] = ("condition", "phenotype", "value", "sd", "p", "profile", "weight")

    gene: NDArray[np.int64]
    kind: NDArray[np.uint8]
    condition: NDArray[np.int64]
    phenotype: NDArray[np.int64]
    value: NDArray[np.float32]
    sd: NDArray[np.float32]
    dose: NDArray[np.float32] | None = None
    p: NDArray[np.float32] | None = None
    profile: NDArray[np.int64] | None = None
    profiles: NDArray[np.float32] | None = None
    weight: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        self.check_lengths(ShapeError)
        if (self.profile is None) != (self.profiles is None):
            raise ShapeError("profile and profiles belong together: give both or none")
        if self.profile is None or self.profiles is None:
            return
        if self.profiles.ndim != 2 or self.profile.max(initial=-1) >= len(self.profiles):
            raise ShapeError(
                f"profiles has shape {self.profiles.shape}, expected [r, n] with r over "
                f"{self.profile.max(initial=-1)}"
            )

    @classmethod
    def build(
        cls,
        gene: ArrayLike,
        offsets: ArrayLike,
        *,
        kind: ArrayLike | Kind = Kind.ABSENT,
        condition: ArrayLike | None = None,
        phenotype: ArrayLike | None = None,
        value: ArrayLike | None = None,
        sd: ArrayLike | None = None,
        dose: ArrayLike | None = None,
        p: ArrayLike | None = None,
        profile: ArrayLike | None = None,
        profiles: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> MutantTable:
        """Build a table from ragged arrays; sorts genes within rows and refuses a repeated gene.

        Raises
        ------
        GeneSetError
            Naming the first row with a repeated gene.
        ShapeError
            If lengths do not fit.
        """
        g, o = np.asarray(gene, dtype=np.int64), np.asarray(offsets, dtype=np.int64)
        rows = len(o) - 1
        if rows < 0 or o[0] != 0 or o[-1] != g.size or (np.diff(o) < 0).any():
            raise ShapeError(f"offsets must rise from 0 to {g.size} (the number of perturbed genes)")
        kinds = (
            np.full(g.size, kind, dtype=np.uint8)
            if isinstance(kind, Kind)
            else np.asarray(kind, dtype=np.uint8)
        )
        doses = None if dose is None else np.asarray(dose, dtype=np.float32)
        # Tables of millions of rows come sorted: sorting them again would take several copies of them.
        if not _ascend(g, o):
            row_of = np.repeat(np.arange(rows), np.diff(o))
            order = np.lexsort((g, row_of))
            g, kinds = g[order], kinds[order]
            doses = None if doses is None else doses[order]
            twice = (g[1:] == g[:-1]) & (row_of[1:] == row_of[:-1])
            if twice.any():
                at = int(np.flatnonzero(twice)[0])
                raise GeneSetError(
                    f"row {row_of[at]} perturbs gene {g[at]} twice: a gene counts once in a mutant"
                )

        def column(values: ArrayLike | None, default: float, dtype: type) -> NDArray[np.generic]:
            return np.full(rows, default, dtype) if values is None else np.asarray(values, dtype=dtype)

        return cls(
            gene=g,
            offsets=o,
            kind=kinds,
            condition=column(condition, 0, np.int64),  # type: ignore[arg-type]
            phenotype=column(phenotype, 0, np.int64),  # type: ignore[arg-type]
            value=column(value, np.nan, np.float32),  # type: ignore[arg-type]
            sd=column(sd, np.nan, np.float32),  # type: ignore[arg-type]
            dose=doses,
            p=None if p is None else np.asarray(p, dtype=np.float32),
            profile=None if profile is None else np.asarray(profile, dtype=np.int64),
            profiles=None if profiles is None else np.asarray(profiles, dtype=np.float32),
            weight=None if weight is None else np.asarray(weight, dtype=np.float32),
        )

    @classmethod
    def from_sets(cls, sets: Iterable[Sequence[int]], **columns: ArrayLike | Kind | None) -> MutantTable:
        """Build a table from a list of gene positions per row; further columns as in ``build``."""
        rows = [np.asarray(s, dtype=np.int64) for s in sets]
        offsets = offsets_of(np.array([r.size for r in rows], np.int64))
        gene = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        return cls.build(gene, offsets, **columns)  # type: ignore[arg-type]

    @classmethod
    def from_matrix(cls, sets: ArrayLike, **columns: ArrayLike | Kind | None) -> MutantTable:
        """Build a table from [M, k] gene positions, all rows of one order; further columns as in
        ``build``.
        """
        matrix = np.atleast_2d(np.asarray(sets, dtype=np.int64))
        offsets = np.arange(len(matrix) + 1, dtype=np.int64) * matrix.shape[1]
        return cls.build(matrix.reshape(-1), offsets, **columns)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, tables: Sequence[MutantTable]) -> MutantTable:
        """Return the rows of several tables, one after the other."""
        profile, profiles = _joined_profiles(tables)
        names = [name for name in (*cls.ENTRIES, *cls.ROWS) if name != "profile"]
        columns = cls.joined(tables, names)
        if columns["weight"] is not None:
            # Rows of a table without weights stand for themselves; `joined` marks what is absent by NaN.
            columns["weight"] = np.nan_to_num(columns["weight"], nan=1.0)
        return cls(**columns, profile=profile, profiles=profiles)

    def inside(self, genes: ArrayLike) -> NDArray[np.bool_]:
        """Return whether all genes of every row [M] are among ``genes`` [k]; O(Σk), without sorting rows."""
        # A running count of hits gives every row's number as a difference, whatever the lengths of rows.
        among = np.zeros(max(int(self.gene.max(initial=-1)), int(np.max(genes, initial=-1))) + 1, bool)
        among[np.asarray(genes, dtype=np.int64)] = True
        until = np.concatenate([[0], np.cumsum(among[self.gene])])
        return np.asarray(np.diff(until[self.offsets]) == self.order)

    def with_own_profiles(self) -> MutantTable:
        """Return the table with a copy of only the profiles that its rows have, numbered as they come."""
        if self.profile is None or self.profiles is None:
            return self
        has = self.profile >= 0
        return replace(
            self, profile=np.where(has, np.cumsum(has) - 1, -1), profiles=self.profiles[self.profile[has]]
        )

    def __repr__(self) -> str:
        orders, counts = np.unique(self.order, return_counts=True)
        by_order = ", ".join(f"{c:,} of {o} genes" for o, c in zip(orders, counts, strict=True))
        return f"MutantTable({len(self):,} rows{': ' if by_order else ''}{by_order})"

    def remap(self, mapping: NDArray[np.int64], genes: int | None = None) -> MutantTable:
        """Return the table on another gene index; ``mapping`` [n] gives new positions, -1 where there is
        none.

        Profiles keep the genes that the other index has; they need its number of ``genes``, and are NaN
        where it has others.

        Raises
        ------
        GeneSetError
            If a perturbed gene has no new position: a mutant never loses a gene.
        """
        gene = mapping[self.gene]
        if (gene < 0).any():
            lost = int((gene < 0).sum())
            raise GeneSetError(
                f"{lost} perturbed genes are not in the other gene index; drop those rows first"
            )
        profiles = None
        if self.profiles is not None:
            if genes is None:
                raise ShapeError("profiles need the number of genes of the other gene index: give genes")
            profiles = np.full((len(self.profiles), genes), np.nan, np.float32)
            profiles[:, mapping[mapping >= 0]] = self.profiles[:, mapping >= 0]
        return MutantTable.build(
            gene,
            self.offsets,
            kind=self.kind,
            condition=self.condition,
            phenotype=self.phenotype,
            value=self.value,
            sd=self.sd,
            dose=self.dose,
            p=self.p,
            profile=self.profile,
            profiles=profiles,
            weight=self.weight,
        )

    def matrix(self, order: int) -> NDArray[np.int64]:
        """Return genes as [M, order]; raises ``ShapeError`` unless every row has that order."""
        if not (self.order == order).all():
            raise ShapeError(
                f"rows of order {sorted(set(self.order.tolist()))} cannot be a matrix of order {order}"
            )
        return self.gene.reshape(-1, order)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights [M] in double precision; None where every row counts alike."""
        return None if self.weight is None else self.weight.astype(np.float64)

    @cached_property
    def set_id(self) -> NDArray[np.int64]:
        """Number [M] of each row's unordered gene set: equal for equal sets, whatever the kinds of
        perturbation.
        """
        return ragged_ranks([self.gene], self.offsets)

    def sets(self) -> list[tuple[int, ...]]:
        """Return the gene positions of every row as tuples; for people and small tables."""
        return [
            tuple(self.gene[a:b].tolist()) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]


def _ascend(gene: NDArray[np.int64], offsets: NDArray[np.int64]) -> bool:
    """Return whether the genes [Σk] of every row ascend."""
    rises = np.diff(gene) > 0
    starts = offsets[1:-1]
    # The first gene of a row may be smaller than the last of the row before.
    rises[starts[(starts > 0) & (starts < len(gene))] - 1] = True
    return bool(rises.all())


def _joined_profiles(
    tables: Sequence[MutantTable],
) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
    """Return the profiles of several tables and where every row's are; None if none has any."""
    having = [t.profiles for t in tables if t.profiles is not None]
    if not having:
        return None, None
    # Tables cut from one another share their profiles, which then are not copied.
    shared = all(profiles is having[0] for profiles in having)
    start, parts = 0, []
    for t in tables:
        if t.profile is None or t.profiles is None:
            parts.append(np.full(len(t), -1, np.int64))
            continue
        parts.append(np.where(t.profile >= 0, t.profile + start, -1))
        start += 0 if shared else len(t.profiles)
    return np.concatenate(parts), having[0] if shared else np.concatenate(having)


def save_table(
    table: MutantTable, path: str | Path, beside: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write a table, and further arrays ``beside`` it under other names, as one npz file without pickle.

    The file is written completely or not at all; raises ``OutputError``.
    """
    table = table.with_own_profiles()
    arrays: dict[str, Any] = {
        name: column for name, column in table.columns((*COLUMNS, *OPTIONAL)).items() if column is not None
    }
    arrays |= beside or {}
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, **arrays)


def read_table(path: str | Path) -> tuple[MutantTable, dict[str, NDArray[Any]]]:
    """Return a table that ``save_table`` wrote, and the arrays beside it.

    Raises ``OSError``, ``ValueError``, ``KeyError`` or ``zipfile.BadZipFile`` when the file is damaged.
    """
    arrays: dict[str, NDArray[Any]] = read_arrays(Path(path))
    columns = {name: arrays.pop(name) for name in COLUMNS}
    optional: dict[str, Any] = {name: arrays.pop(name, None) for name in OPTIONAL}
    return MutantTable(**columns, **optional), arrays
