"""What is known of every gene before any mutant is measured: named blocks of features, missing values
explicit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """One group of features of n genes.

    Attributes
    ----------
    name : str
        Unique within an organism.
    values : float32 [n, f]
        NaN where the gene has no value.
    columns : tuple of str
        The f column names.
    source : str
        Where the values come from.
    measured : tuple of str
        Phenotype sources the block was made from (``"costanzo2016:fitness"``); a block is refused as input
        for targets of any of these.
    note : str
        What may leak, what is approximate.
    """

    name: str
    values: NDArray[np.float32]
    columns: tuple[str, ...]
    source: str = ""
    measured: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise DatasetError(
                f"feature block {self.name!r}: values {self.values.shape} do not fit "
                f"{len(self.columns)} column names"
            )


class GeneFeatures(Mapping[str, FeatureBlock]):
    """The feature blocks of one organism, by name, in a fixed order."""

    def __init__(self, blocks: Iterable[FeatureBlock] = ()) -> None:
        self._blocks: dict[str, FeatureBlock] = {}
        for block in blocks:
            if block.name in self._blocks:
                raise DatasetError(f"feature block {block.name!r} is given twice: rename one of them")
            self._blocks[block.name] = block
        sizes = {len(block.values) for block in self._blocks.values()}
        if len(sizes) > 1:
            raise DatasetError(f"feature blocks are over different numbers of genes {sorted(sizes)}")

    def __getitem__(self, name: str) -> FeatureBlock:
        try:
            return self._blocks[name]
        except KeyError:
            known = ", ".join(self._blocks) or "none"
            raise DatasetError(f"there is no feature block {name!r}; known blocks: {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def restrict(self, positions: NDArray[np.int64]) -> GeneFeatures:
        """Return all blocks for the genes at ``positions`` [M]."""
        return GeneFeatures(replace(block, values=block.values[positions]) for block in self.values())

    def allowed_for(self, targets: Iterable[str]) -> GeneFeatures:
        """Return the blocks that were not made from any of the phenotype sources ``targets``."""
        refused = set(targets)
        return GeneFeatures(block for block in self.values() if not refused & set(block.measured))

    def matrix(self, n: int) -> tuple[NDArray[np.float32], tuple[str, ...]]:
        """Return a model input [n, f] and its column names: standardised, missing values as 0 plus an
        indicator.

        Every column has mean 0 and standard deviation 1 over the genes that have a value; a block with
        missing values gets one further column that is 1 where the gene's row is wholly missing.
        """
        parts: list[NDArray[np.float32]] = []
        names: list[str] = []
        for block in self.values():
            values = block.values.astype(np.float64)
            present: NDArray[np.bool_] = np.asarray(np.isfinite(values))
            count = np.maximum(present.sum(0), 1)
            filled = np.where(present, values, 0.0)
            mean = filled.sum(0) / count
            centred = np.where(present, values - mean, 0.0)
            sd = np.sqrt((centred**2).sum(0) / count)
            keep: NDArray[np.bool_] = np.asarray(sd > 1e-9)
            parts.append((centred[:, keep] / sd[keep]).astype(np.float32))
            names += [f"{block.name}.{c}" for c, k in zip(block.columns, keep, strict=True) if k]
            missing: NDArray[np.bool_] = np.asarray(~present.any(1))
            if missing.any():
                parts.append(missing[:, None].astype(np.float32))
                names.append(f"{block.name}.missing")
        if not parts:
            return np.zeros((n, 0), np.float32), ()
        return np.concatenate(parts, axis=1), tuple(names)
