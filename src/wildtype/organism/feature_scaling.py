"""`FeatureScaling`: from feature blocks to a model's input, by the names of blocks and columns.

Fitted on the genes of one organism and kept with the model, it gives the genes of another organism, or a
gene that was appended, the columns that the model was trained on. It looks at no label: what was measured
of mutants is taken out of the blocks, or hidden in them, before (``GeneFeatures.allowed_for``).

Legend: n genes · c kept columns of a block · f columns of the input.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ShapeError
from wildtype.organism.features import MISSING, FeatureBlock, GeneFeatures

LEAST_SD = 1e-9
"""A column that varies less says nothing and is left out."""


@dataclass(frozen=True, eq=False)
class BlockScaling:
    """How one block enters a model.

    Attributes
    ----------
    name : str
        Of the block.
    columns : tuple of str
        Its c columns that vary.
    mean, sd : float64 [c]
        Over the genes that had a value.
    missing : bool
        Whether a further column is 1 where a gene's row of the block is missing.
    comparable : bool
        Whether columns mean the same in every organism.
    """

    name: str
    columns: tuple[str, ...]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    missing: bool
    comparable: bool

    def __post_init__(self) -> None:
        if not len(self.columns) == len(self.mean) == len(self.sd):
            raise ShapeError(
                f"scaling of feature block {self.name!r}: {len(self.columns)} columns, {len(self.mean)} "
                f"means and {len(self.sd)} sds differ"
            )

    @classmethod
    def fit(cls, block: FeatureBlock) -> BlockScaling:
        """Return what gives every column mean 0 and sd 1 over the genes that have a value."""
        values = block.values.astype(np.float64)
        present: NDArray[np.bool_] = np.asarray(np.isfinite(values))
        count = np.maximum(present.sum(0), 1)
        mean = np.where(present, values, 0.0).sum(0) / count
        sd = np.sqrt((np.where(present, values - mean, 0.0) ** 2).sum(0) / count)
        keep: NDArray[np.bool_] = np.asarray(sd > LEAST_SD)
        columns = tuple(c for c, k in zip(block.columns, keep, strict=True) if k)
        missing = not bool(present.any(1).all())
        return cls(block.name, columns, mean[keep], sd[keep], missing, block.comparable)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of its columns of the input."""
        return (*(f"{self.name}.{c}" for c in self.columns), *([f"{self.name}.{MISSING}"] * self.missing))

    def transform(self, block: FeatureBlock | None, n: int) -> NDArray[np.float32]:
        """Return the columns of n genes; what is missing is 0, and marked where that was learned."""
        out = np.zeros((n, len(self.inputs)), np.float32)
        if block is None:
            out[:, len(self.columns) :] = 1.0
            return out
        place = {column: i for i, column in enumerate(block.columns)}
        there = [i for i, column in enumerate(self.columns) if column in place]
        values = block.values[:, [place[self.columns[i]] for i in there]].astype(np.float64)
        centred = np.where(np.isfinite(values), values - self.mean[there], 0.0)
        out[:, there] = centred / self.sd[there]
        if self.missing:
            out[:, -1] = ~np.isfinite(block.values).any(1)
        return out


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """All blocks of a model's input, in order."""

    blocks: tuple[BlockScaling, ...]

    @classmethod
    def fit(cls, features: GeneFeatures) -> FeatureScaling:
        """Return the scaling of every block over its genes."""
        return cls(tuple(BlockScaling.fit(block) for block in features.values()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the f columns of the input."""
        return tuple(name for block in self.blocks for name in block.inputs)

    def transform(
        self, features: GeneFeatures, n: int, *, among: Collection[str] | None = None
    ) -> NDArray[np.float32]:
        """Return the input [n, f] of n genes.

        Parameters
        ----------
        features : GeneFeatures
            Blocks of any organism; those that the model does not know count nowhere, those that it misses
            are 0, and marked as missing where the model has a column for that.
        n : int
            Number of genes.
        among : collection of str, optional
            Blocks to look at; all of them by default.
        """
        parts = [
            block.transform(
                features[block.name]
                if block.name in features and (among is None or block.name in among)
                else None,
                n,
            )
            for block in self.blocks
        ]
        return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0), np.float32)

    def absent(self, features: GeneFeatures, *, among: Collection[str] | None = None) -> dict[str, int]:
        """Return how many columns of each block ``transform`` does not find, for blocks that lack any."""
        found = {}
        for block in self.blocks:
            seen = block.name in features and (among is None or block.name in among)
            known = set(features[block.name].columns) if seen else set()
            if lacking := sum(column not in known for column in block.columns):
                found[block.name] = lacking
        return found

    def to_json(self) -> list[dict[str, Any]]:
        """Return it in plain values."""
        return [
            {
                "name": block.name,
                "columns": list(block.columns),
                "mean": block.mean.tolist(),
                "sd": block.sd.tolist(),
                "missing": block.missing,
                "comparable": block.comparable,
            }
            for block in self.blocks
        ]

    @classmethod
    def from_json(cls, record: Sequence[Mapping[str, Any]]) -> FeatureScaling:
        """Rebuild it; raises ``KeyError``, ``TypeError`` or ``ShapeError`` if the record does not fit."""
        return cls(
            tuple(
                BlockScaling(
                    name=block["name"],
                    columns=tuple(block["columns"]),
                    mean=np.array(block["mean"], np.float64),
                    sd=np.array(block["sd"], np.float64),
                    missing=block["missing"],
                    comparable=block["comparable"],
                )
                for block in record
            )
        )
