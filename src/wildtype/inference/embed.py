"""Latents of mutants: as a table, and as a measure of which interventions look alike.

A latent is a vector that a model reads the phenotypes of a mutant off (`Model.latents`): z_S, what the mutant
makes of the whole cell, and h_CLS, the encoded wild type, which is the same for all. Two mutants are alike
whose z_S point to the same direction, seen from the mean of the measured mutants.

Legend: m mutants · c measured mutants · d width.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import ConfigError, did_you_mean
from wildtype.evidence.reference import PARTS
from wildtype.inference.core import PredictionCore
from wildtype.inference.explaining.mutant_latents import latents_of
from wildtype.inference.sets import GeneSets, written
from wildtype.models.ensemble import member_of
from wildtype.models.interface import Model, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import mutant_id
from wildtype.seeds import generator

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Embedding:
    """The latents of one trained model.

    Parameters
    ----------
    core : PredictionCore
        Of its predictor.
    member : int
        Which model of an ensemble, from 1.
    condition : str, optional
        One of the dataset's conditions; the reference by default.
    seed : int
        Random seed of the measured mutants that are drawn.

    Raises
    ------
    ConfigError
        If the model has no latents, or there is no such member or condition.
    """

    def __init__(
        self, core: PredictionCore, *, member: int = 1, condition: str | None = None, seed: int = 0
    ) -> None:
        self.core, self.seed = core.encoded, seed
        self.condition = condition
        self.checkpoint = self.core.checkpoint
        self.model = member_of(self.checkpoint.model, member)
        if type(self.model).latents is Model.latents:
            raise ConfigError(f"a {self.model.config.name} has no latents to embed mutants by")
        self.core.condition(condition)  # an unknown one is refused before anything is computed

    def table(self, sets: GeneSets, measured: int = 0) -> MutantTable:
        """Return named sets, then up to ``measured`` different measured mutants; errors as in ``predict``."""
        parts = [self.core.table(sets, condition=self.condition)] if len(sets) else []
        if measured:
            parts.append(self.checkpoint.known.table.take(self._drawn(measured)))
        return MutantTable.concatenate(parts)

    def latents(self, table: MutantTable) -> dict[str, Floats]:
        """Return every latent [m, ·] of the mutants of a table, by name."""
        return latents_of(self.model, self._wild_type, table)

    def frame(self, table: MutantTable, *, latent: str = "") -> pd.DataFrame:
        """Return one row per mutant: ``genes``, ``kinds``, and columns ``z_S.0``, … of each latent.

        ``latent`` chooses one of them; raises ``ConfigError`` if there is none of that name.
        """
        import pandas as pd

        found = self.latents(table)
        names = [self._named(found, latent)] if latent else list(found)
        columns = {f"{name}.{i}": column for name in names for i, column in enumerate(found[name].T)}
        genes, kinds = written(table, self.checkpoint.genes.names)
        return pd.DataFrame({"genes": genes, "kinds": kinds, **columns})

    def genes(self) -> pd.DataFrame:
        """Return the encoded wild type: one row per gene, by systematic name, and a column per dimension."""
        import pandas as pd

        index = pd.Index(self.checkpoint.genes.names, name="gene")
        return pd.DataFrame(self._wild_type.genes.double().numpy(), index=index)

    def nearest(self, table: MutantTable, count: int, *, among: int = 2000, latent: str = "") -> pd.DataFrame:
        """Return the measured mutants whose latents are most like those of each mutant.

        Parameters
        ----------
        table
            m mutants.
        count
            Measured mutants per mutant; never the mutant itself.
        among
            Search so many measured mutants at most, drawn at random.
        latent
            By which; the first, z_S, by default.

        Returns
        -------
        pandas.DataFrame
            ``genes``, ``rank`` from 1, ``nearest`` and ``nearest_kinds`` (a measured mutant), ``cosine`` of
            their latents less the mean of all searched ones, ``shared`` (perturbed genes that both have),
            ``part`` of the split, and a column ``<phenotype>_measured`` (mean over its rows) each.
        """
        import pandas as pd

        if count < 1 or among < 2:
            raise ConfigError(f"nearest={count}, among={among}: give at least 1 and 2")
        known = self.checkpoint.known
        rows = self._drawn(among)
        others = known.table.take(rows)
        found, theirs = self.latents(table), self.latents(others)
        name = self._named(found, latent)
        centre = theirs[name].mean(0)
        cosine = _units(found[name] - centre) @ _units(theirs[name] - centre).T
        number = mutant_id(MutantTable.concatenate([table, others]))
        cosine[number[: len(table), None] == number[len(table) :]] = -np.inf
        order = np.argsort(-cosine, axis=1, kind="stable")[:, :count]
        names = self.checkpoint.genes.names
        (asked, _), (genes, kinds) = written(table, names), written(others, names)
        own, sets, out = table.sets(), others.sets(), []
        values = self._values(rows)
        for i, nearby in enumerate(order):
            for rank, j in enumerate((j for j in nearby.tolist() if cosine[i, j] > -np.inf), 1):
                out.append(
                    {
                        "genes": asked[i],
                        "rank": rank,
                        "nearest": genes[j],
                        "nearest_kinds": kinds[j],
                        "cosine": float(cosine[i, j]),
                        "shared": len(set(own[i]) & set(sets[j])),
                        "part": PARTS[known.part[rows[j]]],
                    }
                    | {f"{name}_measured": float(value[j]) for name, value in values.items()}
                )
        return pd.DataFrame(out)

    @cached_property
    def _wild_type(self) -> WildType:
        with torch.no_grad():
            return self.model.encode(self.checkpoint.organism)

    @cached_property
    def _known(self) -> Ints:
        """Number of the mutant of every known row."""
        return mutant_id(self.checkpoint.known.table)

    def _drawn(self, count: int) -> Ints:
        """Return a row of each of up to ``count`` different mutants, in the order of rows.

        They were measured for a phenotype that the model predicts.
        """
        known = self.checkpoint.known
        predicted = [known.phenotypes.index(name) for name in self.checkpoint.names]
        table = known.table
        there = (table.order > 0) & np.isfinite(table.value) & np.isin(table.phenotype, predicted)
        measured = np.flatnonzero(there)
        rows = measured[np.unique(self._known[measured], return_index=True)[1]]
        if len(rows) > count:
            rows = generator(self.seed, "embed").choice(rows, count, replace=False)
        return np.sort(rows)

    def _values(self, rows: Ints) -> dict[str, Floats]:
        """Return the mean measured value [c] of the mutants at some rows, of every phenotype of the model."""
        known = self.checkpoint.known
        table, number, out = known.table, self._known, {}
        for name in self.checkpoint.names:
            of = (table.phenotype == known.phenotypes.index(name)) & np.isfinite(table.value)
            of &= table.condition == self.core.condition(self.condition)
            size = int(number.max(initial=0)) + 1
            count = np.bincount(number[of], minlength=size)
            total = np.bincount(number[of], table.value[of].astype(np.float64), minlength=size)
            mean = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
            out[name] = mean[number[rows]]
        return out

    def _named(self, found: dict[str, Floats], latent: str) -> str:
        name = latent or next(iter(found))
        if name not in found:
            hint = did_you_mean(name, found, f"it has {', '.join(found)}")
            raise ConfigError(f"the model has no latent {name!r}; {hint}")
        return name


def _units(x: Floats) -> Floats:
    """Return rows of length 1; a row of zeros stays."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1.0))
