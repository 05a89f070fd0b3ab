"""Features of genes: named blocks with explicit missing values, and how they become a model's input.

`FeatureScaling` is fitted on the genes of one organism and kept with the model. It gives the genes of another
organism, or an appended gene, the columns that the model was trained on. It reads no label: blocks made from
measurements of mutants are left out before (``GeneFeatures.allowed_for``).

Legend: n genes · c kept columns of a block · f columns of the input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import first_fault
from wildtype.errors import DatasetError, ShapeError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

MISSING = "missing"
"""Column of a model's input that is 1 where a block has no value of the gene."""
BASIS = ("mean", "loadings")
"""Arrays of a basis."""
LEAST_SD = 1e-9
"""A column with a smaller standard deviation carries no information and is left out."""


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
        # Centred as the loadings were, or a new gene would lie off their plane.
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

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the numbers, in plain values, for storage."""
        return {
            "name": self.name,
            "columns": list(self.columns),
            "source": self.source,
            "measured": list(self.measured),
            "note": self.note,
            "comparable": self.comparable,
            "basis": [] if self.basis is None else list(self.basis.inputs),
        }

    @classmethod
    def from_facts(
        cls, facts: Mapping[str, Any], values: NDArray[np.float32], basis: Mapping[str, NDArray[np.float64]]
    ) -> FeatureBlock:
        """Rebuild a block from its facts and numbers; ``basis`` holds its ``BASIS`` arrays, if any."""
        inputs = tuple(facts["basis"])
        return cls(
            name=facts["name"],
            values=values,
            columns=tuple(facts["columns"]),
            source=facts["source"],
            measured=tuple(facts["measured"]),
            note=facts["note"],
            comparable=facts["comparable"],
            basis=Basis(inputs, basis["mean"], basis["loadings"]) if inputs else None,
        )

    def __post_init__(self) -> None:
        if fault := first_fault((self.name, *self.columns)):
            raise DatasetError(f"feature block {self.name!r}: {fault}")
        if MISSING in self.columns:
            raise DatasetError(
                f"feature block {self.name!r} has a column {MISSING!r}, which marks rows that "
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
    """The feature blocks of one organism, by name, in a fixed order.

    ``genes`` are its names, in the order of the rows of every block; those of an organism have them.
    """

    def __init__(self, blocks: Iterable[FeatureBlock] = (), genes: Sequence[str] | None = None) -> None:
        self.genes = None if genes is None else tuple(genes)
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
            known = f"known blocks: {', '.join(self._blocks) or 'none'}"
            hint = did_you_mean(name, self._blocks, known)
            raise DatasetError(f"there is no feature block {name!r}; {hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def __repr__(self) -> str:
        return f"GeneFeatures({', '.join(f'{b.name} [{len(b.columns)}]' for b in self.values()) or 'none'})"

    def of(self, genes: Iterable[str]) -> GeneFeatures:
        """Return the same blocks with the names of their genes."""
        return GeneFeatures(self._blocks.values(), tuple(genes))

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per gene, by systematic name, and a column ``block.column`` each; NaN is missing."""
        import pandas as pd

        columns = {f"{b.name}.{c}": b.values[:, i] for b in self.values() for i, c in enumerate(b.columns)}
        return pd.DataFrame(columns, index=None if self.genes is None else pd.Index(self.genes, name="gene"))

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
        scaling = FeatureScaling.fit(self)
        return scaling.transform(self, n), scaling.columns


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
        # Missing values count neither in mean nor in sd; after scaling they are 0, the mean.
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
            # A block that the organism lacks is missing for every gene.
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
