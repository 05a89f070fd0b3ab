"""What is known of every gene before any mutant is measured: named blocks of features, missing values
explicit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError

MISSING = "missing"
"""Column of a model's input that is 1 where a block has no value of the gene."""


@dataclass(frozen=True, eq=False)
class Basis:
    """How columns of a block follow from measured ones, so that a further gene can be given the same columns.

    Attributes
    ----------
    inputs : tuple of str
        Names of the r measured columns.
    mean : float64 [r]
        Of the genes that the loadings were found on.
    loadings : float64 [r, f]
        Columns are ``(x - mean) @ loadings``.
    """

    inputs: tuple[str, ...]
    mean: NDArray[np.float64]
    loadings: NDArray[np.float64]

    def project(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the columns [f] of one gene; raises ``KeyError`` if a measured column is not given."""
        x = np.array([values[name] for name in self.inputs], dtype=np.float64)
        return np.asarray((x - self.mean) @ self.loadings)


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
    comparable : bool
        Whether a column means the same in every organism. The axes of a decomposition do not: component 1 of
        another organism is another direction.
    basis : Basis or None
        How the columns follow from measured ones, where they are components.
    """

    name: str
    values: NDArray[np.float32]
    columns: tuple[str, ...]
    source: str = ""
    measured: tuple[str, ...] = ()
    note: str = ""
    comparable: bool = True
    basis: Basis | None = None

    def __post_init__(self) -> None:
        if MISSING in self.columns:
            raise DatasetError(
                f"feature block {self.name!r} has a column {MISSING!r}, which stands for rows that "
                f"have no value: rename it"
            )
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise DatasetError(
                f"feature block {self.name!r}: values {self.values.shape} do not fit "
                f"{len(self.columns)} column names"
            )


def feature_cards(features: GeneFeatures, targets: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the card of every block: what it is, where from, and what may leak.

    Parameters
    ----------
    features : GeneFeatures
        The blocks.
    targets : iterable of str
        Phenotype sources to be predicted; a block made from any of them is refused.

    Returns
    -------
    list of dict
        ``block``, ``columns``, ``genes`` with any value, ``source``, ``measured`` (phenotype sources it was
        made from), ``comparable`` (between organisms), ``note``, ``refused`` (the targets in the way).
    """
    wanted = set(targets)
    return [
        {
            "block": block.name,
            "columns": len(block.columns),
            "genes": int(np.isfinite(block.values).any(1).sum()),
            "source": block.source,
            "measured": list(block.measured),
            "comparable": block.comparable,
            "note": block.note,
            "refused": sorted(wanted & set(block.measured)),
        }
        for block in features.values()
    ]


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
        from wildtype.organism.feature_scaling import FeatureScaling

        scaling = FeatureScaling.fit(self)
        return scaling.transform(self, n), scaling.columns
