"""Pairs of strains to rows of a dataset: orientation, repeated listings and alleles are merged, and counted.

Legend: m rows of the file · 2 perturbed genes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.mutants import MutantTable

ALLELES = {
    "averaged": "one row per unordered gene pair and kinds of perturbation: the mean over allele "
    "pairs; sd is the root "
    "of the mean squared sd plus the variance between alleles",
    "apart": "one row per unordered pair of alleles: a gene pair can stand several times",
}
"""How several alleles of one gene are treated, by name."""
AGAIN = "merged: the same strain pair listed again"
RECIPROCAL = "merged: reciprocal orientation"
AVERAGED = "merged: alleles averaged"
SAME_GENE = "both strains of one gene"
DUPLICATES = "A–B and B–A, and repeated listings, are one row: the mean of their numbers"


def check_policy(alleles: str) -> None:
    """Raise ``ConfigError`` unless ``alleles`` is a known policy."""
    if alleles not in ALLELES:
        raise ConfigError(f"allele policy {alleles!r} is not known: choose one of {', '.join(ALLELES)}")


def average(
    group: NDArray[np.int64], value: NDArray[np.float64], sd: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and sd per group 0 … G-1: sd² = mean of the known sd² + variance between members.

    The sd of a group without any known sd is NaN.
    """
    size = np.bincount(group)
    mean = np.bincount(group, value) / size
    between = np.bincount(group, (value - mean[group]) ** 2) / size
    known = np.isfinite(sd)
    count = np.bincount(group, known)
    within = np.bincount(group, np.where(known, sd, 0.0) ** 2) / np.maximum(count, 1)
    return mean, np.where(count > 0, np.sqrt(within + between), np.nan)


def distinct(
    keys: NDArray[np.int64], value: NDArray[np.float64], sd: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the first row of every distinct combination of keys [m, c], value and sd, ordered by keys."""
    columns = [keys, value.view(np.int64), np.nan_to_num(sd, nan=-1.0).view(np.int64)]
    return np.unique(np.column_stack(columns), axis=0, return_index=True)[1]


@dataclass(frozen=True, eq=False)
class StrainPairs:
    """Measured pairs of strains.

    Attributes
    ----------
    gene : int64 [m, 2]
        Positions in the gene index; the two differ.
    kind : uint8 [m, 2]
        ``Kind`` of each perturbation.
    strain : int64 [m, 2]
        Number of each strain: equal numbers mean the same mutation.
    value, sd : float64 [m]
        The interaction score and its standard deviation (NaN: not known).
    """

    gene: NDArray[np.int64]
    kind: NDArray[np.uint8]
    strain: NDArray[np.int64]
    value: NDArray[np.float64]
    sd: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)

    def merged(self) -> tuple[StrainPairs, dict[str, int]]:
        """Return one row per unordered strain pair, genes ascending, and the rows merged away."""
        turned = self.gene[:, 0] > self.gene[:, 1]

        def turn(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.where(turned[:, None], pairs[:, ::-1], pairs)

        keys = np.concatenate([turn(self.gene), turn(self.kind.astype(np.int64)), turn(self.strain)], axis=1)
        oriented = len(np.unique(np.column_stack([keys, turned]), axis=0))
        unique, group = np.unique(keys, axis=0, return_inverse=True)
        value, sd = average(group.reshape(-1), self.value, self.sd)
        counts = {AGAIN: len(self) - oriented, RECIPROCAL: oriented - len(unique)}
        out = StrainPairs(unique[:, :2], unique[:, 2:4].astype(np.uint8), unique[:, 4:], value, sd)
        return out, {reason: count for reason, count in counts.items() if count}

    def table(self, alleles: str) -> tuple[MutantTable, dict[str, int]]:
        """Return a dataset's rows under an allele policy, and the rows merged away; call on merged pairs."""
        check_policy(alleles)
        gene, kind, value, sd = self.gene, self.kind, self.value, self.sd
        counts = {}
        if alleles == "averaged":
            keys = np.concatenate([self.gene, self.kind.astype(np.int64)], axis=1)
            unique, group = np.unique(keys, axis=0, return_inverse=True)
            value, sd = average(group.reshape(-1), self.value, self.sd)
            gene, kind = unique[:, :2], unique[:, 2:].astype(np.uint8)
            counts = {AVERAGED: len(self) - len(unique)} if len(unique) < len(self) else {}
        return MutantTable.from_matrix(gene, kind=kind.reshape(-1), value=value, sd=sd), counts

    def allele_agreement(self) -> tuple[float, int]:
        """Return Pearson r between allele pairs of the same gene pair and kinds, and their number.

        Every two allele pairs are compared in both orders, so that their numbering does not matter; call on
        merged pairs. r is NaN for fewer than 3 comparisons.
        """
        keys = np.concatenate([self.gene, self.kind.astype(np.int64)], axis=1)
        _, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        group, value = group.reshape(-1)[order], self.value[order]
        left, right = [], []
        for apart in range(1, int(np.bincount(group).max())):
            same = group[apart:] == group[:-apart]
            left.append(value[apart:][same])
            right.append(value[:-apart][same])
        count = sum(len(part) for part in left)
        if count < 3:
            return float("nan"), count
        x, y = np.concatenate(left), np.concatenate(right)
        return float(np.corrcoef(np.concatenate([x, y]), np.concatenate([y, x]))[0, 1]), count

    def agreement(self, other: StrainPairs, n: int) -> tuple[float, int]:
        """Return Pearson r of two studies on shared gene pairs (means over alleles), and their number."""
        first, second = self._means(n), other._means(n)
        shared, here, there = np.intersect1d(first[0], second[0], return_indices=True)
        if shared.size < 3:
            return float("nan"), int(shared.size)
        return float(np.corrcoef(first[1][here], second[1][there])[0, 1]), int(shared.size)

    def _means(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        low, high = self.gene.min(1), self.gene.max(1)
        pair, group = np.unique(low * n + high, return_inverse=True)
        return pair, average(group, self.value, self.sd)[0]


@dataclass(frozen=True, eq=False)
class Screen:
    """The usable rows of a publisher's files, before anything is merged.

    Attributes
    ----------
    pairs : StrainPairs
        The usable rows.
    excluded : dict of str to int
        The other rows, by reason.
    rows : int
        All rows: ``len(pairs) + sum(excluded)``.
    renamed : int
        Usable rows that name a gene by an older name.
    files : tuple of str
        The files.
    """

    pairs: StrainPairs
    excluded: Mapping[str, int]
    rows: int
    renamed: int
    files: tuple[str, ...]
