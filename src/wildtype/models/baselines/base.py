"""`Baseline`: one interface for the simple predictors with which every model is compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, DatasetError, ShapeError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.models.baselines.groundwork import BaselineFeatures
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import VisibleCrosses
from wildtype.organism import Organism
from wildtype.plugins import Registry

B = TypeVar("B", bound="Baseline")


class Baseline(ABC):
    """A predictor of one phenotype, fitted on training rows; validation rows only choose its settings.

    Parameters
    ----------
    fixed : mapping of str to float, optional
        Settings (keys of ``chosen``) that are given in advance instead of chosen on the validation rows. With
        every setting fixed, the validation labels change no prediction.

    Attributes
    ----------
    name, description : str
        Registry name; one line for tables.
    order : int or None
        Number of genes that every row must have; None: any.
    reads_screens : bool
        Whether it is for runs that look at other screens (``data.screens``).
    chosen : dict of str to float
        The settings in use after ``fit``: all that the validation labels may have decided.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    order: ClassVar[int | None] = None
    reads_screens: ClassVar[bool] = False

    def __init__(self, fixed: Mapping[str, float] | None = None) -> None:
        self.fixed: dict[str, float] = dict(fixed or {})
        self.chosen: dict[str, float] = {}
        self._n = -1
        self._crosses: VisibleCrosses | None = None
        self._screens: tuple[OtherScreen, ...] = ()

    def fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        *,
        single_fitness: NDArray[np.float32] | None = None,
        seed: int = 0,
        groundwork: BaselineFeatures | None = None,
        crosses: VisibleCrosses | None = None,
        screens: Sequence[OtherScreen] = (),
    ) -> Self:
        """Fit on the rows of one phenotype (the tables' ``phenotype`` column is not read).

        Parameters
        ----------
        organism : Organism
            The n genes; hand over only features that may be seen for this target
            (``GeneFeatures.allowed_for``).
        train, validation : MutantTable
            Rows with measured values; ``validation`` may be empty, default settings are used then.
        single_fitness : float32 [n] or None
            Fitness of the single mutants where known (NaN: not).
        seed : int
            Equal seeds and inputs give equal predictions.
        groundwork : BaselineFeatures, optional
            Made from the same organism and fitness, and from training rows that include these: shared by fits
            to several phenotypes, so that features are computed once.
        crosses : VisibleCrosses, optional
            All training crosses of the screen that the rows are from, listed or not. The training rows are a
            sample of them, and their ``weight`` is the number of crosses that each stands for.
        screens : sequence of OtherScreen
            What the run may see of other screens of pairs.

        Raises
        ------
        DatasetError
            If there is no training row, or a label is not a finite number.
        ShapeError
            If ``single_fitness`` does not have one value per gene.
        ConfigError
            If a fixed setting is not one this baseline has, or a row has not ``order`` genes.
        """
        if not len(train):
            raise DatasetError(f"baseline {self.name!r} was given no training row: check the split")
        for what, table in (("training", train), ("validation", validation)):
            if not np.isfinite(table.value).all():
                at = int(np.flatnonzero(~np.isfinite(table.value))[0])
                raise DatasetError(
                    f"baseline {self.name!r}: {what} row {at} has no finite label; drop it first"
                )
        n = len(organism.genes)
        if single_fitness is not None and np.shape(single_fitness) != (n,):
            raise ShapeError(f"single_fitness has shape {np.shape(single_fitness)}, expected ({n},)")
        self._n = n
        for what, table in (("training", train), ("validation", validation)):
            self._check_genes(table)
            self._check_order(what, table)
        self.chosen = {}
        self._crosses, self._screens = crosses, tuple(screens)
        self._groundwork = groundwork or BaselineFeatures(organism, train, single_fitness)
        self._fit(organism, train, validation, single_fitness, seed)
        # Checked after the fit: only `chosen` lists the settings that a baseline has.
        if unknown := sorted(set(self.fixed) - set(self.chosen)):
            known = ", ".join(self.chosen) or "none"
            raise ConfigError(f"baseline {self.name!r} has no setting {unknown[0]!r}; it has {known}")
        return self

    def predict(self, table: MutantTable) -> NDArray[np.float64]:
        """Return predictions [M]; the labels in ``table`` are hidden from the baseline.

        Raises
        ------
        ConfigError
            If the baseline has not been fitted, or a row has not ``order`` genes.
        ShapeError
            If a row perturbs a gene that the organism does not have.
        """
        if self._n < 0:
            raise ConfigError(f"baseline {self.name!r} has not been fitted: call fit first")
        self._check_genes(table)
        self._check_order("queried", table)
        if not len(table):
            return np.zeros(0)
        # No baseline can read the labels that it is scored on.
        hidden = np.full(len(table), np.nan, np.float32)
        return self._predict(replace(table, value=hidden, sd=hidden)).astype(np.float64)

    def _check_genes(self, table: MutantTable) -> None:
        if table.gene.size and (table.gene.max() >= self._n or table.gene.min() < 0):
            raise ShapeError(f"a row perturbs gene {int(table.gene.max())}, the organism has {self._n} genes")

    @classmethod
    def applies(cls, *tables: MutantTable) -> bool:
        """Return whether all rows of tables have the number of genes that this baseline is for."""
        return cls.order is None or all(bool((table.order == cls.order).all()) for table in tables)

    def _check_order(self, what: str, table: MutantTable) -> None:
        if not self.applies(table):
            at = int(np.flatnonzero(table.order != self.order)[0])
            raise ConfigError(
                f"baseline {self.name!r} is for rows of {self.order} genes, {what} row {at} has "
                f"{int(table.order[at])}: leave the baseline out, or choose rows of {self.order} genes"
            )

    @abstractmethod
    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        """Fit to checked tables and fill ``chosen``."""

    @abstractmethod
    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        """Return predictions [M] of a table with hidden labels and at least one row."""


BASELINES: Registry[type[Baseline]] = Registry("baseline", "wildtype.baselines")
"""Every baseline by its name, from the simplest to the strongest, then those of plug-ins."""


def register_baseline(baseline: type[B]) -> type[B]:
    """Register the class below as the baseline of its ``name``; raises ``ConfigError`` if that is taken."""
    name = getattr(baseline, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise ConfigError(
            f"{baseline.__name__} has no name: give the class an attribute as in name = 'my_baseline'"
        )
    BASELINES.register(name, baseline, baseline.__module__)
    return baseline


def weighted_mean(values: NDArray[Any], weights: NDArray[np.float64] | None) -> float:
    """Return the mean of values [m] in double precision, each counted ``weights`` [m] times; None: once."""
    wide = values.astype(np.float64)
    # Two paths: Σ w y / Σ w with w = 1 rounds otherwise than NumPy's pairwise mean.
    return float(wide.mean()) if weights is None else float(np.average(wide, weights=weights))


def squared_error(predicted: NDArray[np.float64], table: MutantTable) -> float:
    """Return the mean squared error on a table's rows; 0 where it has none: the first choice then stands."""
    return float(np.mean((predicted - table.value) ** 2)) if len(table) else 0.0
