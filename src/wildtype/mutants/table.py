"""`MutantTable`: M mutants as ragged NumPy arrays, one row per measured (or asked-for) mutant.

Legend: m rows · k perturbed genes per row · Σk their sum · r profiles · n genes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import GeneSetError, ShapeError
from wildtype.mutants.kinds import Kind


@dataclass(frozen=True, eq=False)
class MutantTable:
    """Perturbed genes and measurements of M mutants.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the gene index, ascending within a row, never repeated within a row.
    offsets : int64 [M+1]
        Row i owns ``gene[offsets[i]:offsets[i+1]]``.
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

    Raises
    ------
    ShapeError
        If the arrays do not fit each other.
    """

    gene: NDArray[np.int64]
    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    condition: NDArray[np.int64]
    phenotype: NDArray[np.int64]
    value: NDArray[np.float32]
    sd: NDArray[np.float32]
    dose: NDArray[np.float32] | None = None
    p: NDArray[np.float32] | None = None
    profile: NDArray[np.int64] | None = None
    profiles: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        rows, total = len(self.offsets) - 1, len(self.gene)
        if rows < 0 or self.offsets[0] != 0 or self.offsets[-1] != total or (np.diff(self.offsets) < 0).any():
            raise ShapeError(f"offsets must rise from 0 to {total} (the number of perturbed genes)")
        for name, length in (
            ("kind", total),
            ("condition", rows),
            ("phenotype", rows),
            ("value", rows),
            ("sd", rows),
        ):
            if len(getattr(self, name)) != length:
                raise ShapeError(f"{name} has length {len(getattr(self, name))}, expected {length}")
        if self.dose is not None and len(self.dose) != total:
            raise ShapeError(f"dose has length {len(self.dose)}, expected {total}")
        if self.p is not None and len(self.p) != rows:
            raise ShapeError(f"p has length {len(self.p)}, expected {rows}")
        if (self.profile is None) != (self.profiles is None):
            raise ShapeError("profile and profiles belong together: give both or none")
        if self.profile is not None and self.profiles is not None:
            if len(self.profile) != rows:
                raise ShapeError(f"profile has length {len(self.profile)}, expected {rows}")
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
    ) -> MutantTable:
        """Build a table from ragged arrays; sorts genes within rows and refuses a gene that stands twice in
        a row.

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
        row_of = np.repeat(np.arange(rows), np.diff(o))
        order = np.lexsort((g, row_of))
        g = g[order]
        twice = (g[1:] == g[:-1]) & (row_of[1:] == row_of[:-1]) if g.size else np.zeros(0, bool)
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
            kind=kinds[order],
            condition=column(condition, 0, np.int64),  # type: ignore[arg-type]
            phenotype=column(phenotype, 0, np.int64),  # type: ignore[arg-type]
            value=column(value, np.nan, np.float32),  # type: ignore[arg-type]
            sd=column(sd, np.nan, np.float32),  # type: ignore[arg-type]
            dose=None if doses is None else doses[order],
            p=None if p is None else np.asarray(p, dtype=np.float32),
            profile=None if profile is None else np.asarray(profile, dtype=np.int64),
            profiles=None if profiles is None else np.asarray(profiles, dtype=np.float32),
        )

    @classmethod
    def from_sets(cls, sets: Iterable[Sequence[int]], **columns: ArrayLike | Kind | None) -> MutantTable:
        """Build a table from a list of gene positions per row; further columns as in ``build``."""
        rows = [np.asarray(s, dtype=np.int64) for s in sets]
        offsets = np.concatenate([[0], np.cumsum([r.size for r in rows])]).astype(np.int64)
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
        starts = np.cumsum([0] + [len(t.gene) for t in tables])
        offsets = [np.zeros(1, np.int64)] + [t.offsets[1:] + s for t, s in zip(tables, starts, strict=False)]
        profile, profiles = _joined_profiles(tables)
        return cls(
            gene=np.concatenate([t.gene for t in tables]),
            offsets=np.concatenate(offsets),
            kind=np.concatenate([t.kind for t in tables]),
            condition=np.concatenate([t.condition for t in tables]),
            phenotype=np.concatenate([t.phenotype for t in tables]),
            value=np.concatenate([t.value for t in tables]),
            sd=np.concatenate([t.sd for t in tables]),
            dose=_joined([(t.dose, len(t.gene)) for t in tables]),
            p=_joined([(t.p, len(t)) for t in tables]),
            profile=profile,
            profiles=profiles,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Number of perturbed genes per row [M]."""
        return np.diff(self.offsets)

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """Row of every perturbation [Σk]."""
        return np.repeat(np.arange(len(self)), self.order)

    def take(self, rows: ArrayLike) -> MutantTable:
        """Return the given rows (positions or boolean mask), in that order; O(selected genes)."""
        index = np.asarray(rows)
        if not index.size:
            index = index.astype(np.int64)  # an empty list is an array of floats
        if index.dtype == bool:
            index = np.flatnonzero(index)
        counts = self.order[index]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], counts)
        return MutantTable(
            gene=self.gene[at],
            offsets=offsets,
            kind=self.kind[at],
            condition=self.condition[index],
            phenotype=self.phenotype[index],
            value=self.value[index],
            sd=self.sd[index],
            dose=None if self.dose is None else self.dose[at],
            p=None if self.p is None else self.p[index],
            profile=None if self.profile is None else self.profile[index],
            profiles=self.profiles,
        )

    def inside(self, genes: ArrayLike) -> NDArray[np.bool_]:
        """Say of every row [M] whether all its genes are among ``genes`` [k]; O(Σk), without sorting rows."""
        among = np.zeros(max(int(self.gene.max(initial=-1)), int(np.max(genes, initial=-1))) + 1, bool)
        among[np.asarray(genes, dtype=np.int64)] = True
        until = np.concatenate([[0], np.cumsum(among[self.gene])])
        return np.asarray(np.diff(until[self.offsets]) == self.order)

    def with_own_profiles(self) -> MutantTable:
        """Return the table with a copy of those profiles only that its rows have, numbered as they come."""
        if self.profile is None or self.profiles is None:
            return self
        own = self.profile >= 0
        return replace(
            self, profile=np.where(own, np.cumsum(own) - 1, -1), profiles=self.profiles[self.profile[own]]
        )

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
        )

    def matrix(self, order: int) -> NDArray[np.int64]:
        """Return genes as [M, order]; raises ``ShapeError`` unless every row has that order."""
        if not (self.order == order).all():
            raise ShapeError(
                f"rows of order {sorted(set(self.order.tolist()))} cannot be a matrix of order {order}"
            )
        return self.gene.reshape(-1, order)

    @cached_property
    def set_id(self) -> NDArray[np.int64]:
        """Number [M] of each row's unordered gene set, the same for equal sets whatever was done to the
        genes.
        """
        out = np.zeros(len(self), np.int64)
        used = 0
        for k in np.unique(self.order):
            rows = np.flatnonzero(self.order == k)
            if k == 0:
                out[rows] = used
                used += 1
                continue
            genes = self.gene[self.offsets[rows][:, None] + np.arange(k)]
            _, inverse = np.unique(genes, axis=0, return_inverse=True)
            out[rows] = used + inverse.reshape(-1)
            used += int(inverse.max()) + 1
        return out

    def sets(self) -> list[tuple[int, ...]]:
        """Return the gene positions of every row as tuples; for people and small tables."""
        return [
            tuple(self.gene[a:b].tolist()) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]


def _joined(parts: Sequence[tuple[NDArray[np.float32] | None, int]]) -> NDArray[np.float32] | None:
    """Return an optional column of several tables, NaN where one of that length lacks it; None if all do."""
    if all(column is None for column, _ in parts):
        return None
    return np.concatenate(
        [np.full(length, np.nan, np.float32) if column is None else column for column, length in parts]
    )


def _joined_profiles(
    tables: Sequence[MutantTable],
) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
    """Return the profiles of several tables and where every row's are; None if none has any."""
    having = [t.profiles for t in tables if t.profiles is not None]
    if not having:
        return None, None
    shared = all(profiles is having[0] for profiles in having)
    start, parts = 0, []
    for t in tables:
        if t.profile is None or t.profiles is None:
            parts.append(np.full(len(t), -1, np.int64))
            continue
        parts.append(np.where(t.profile >= 0, t.profile + start, -1))
        start += 0 if shared else len(t.profiles)
    return np.concatenate(parts), having[0] if shared else np.concatenate(having)
