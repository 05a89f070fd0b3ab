"""`Predictor`: a trained model that answers by gene name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.inference.expected_fitness import expected_fitness
from wildtype.inference.sets import default_kinds, to_table
from wildtype.models.checkpoint import PARTS, Checkpoint, load_checkpoint
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.index import SetIndex

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.models.interface import WildType
    from wildtype.organism import Organism


class Predictor:
    """Predicts phenotypes of named gene sets, and says how far to trust each prediction.

    Parameters
    ----------
    checkpoint : Checkpoint
        A trained model with what was known when it was trained.

    Attributes
    ----------
    remarks : tuple of str
        What to know of its answers: inputs that an organism which the model was not trained on lacks.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.genes = checkpoint.genes
        self.phenotypes = [p["name"] for p in checkpoint.phenotypes]
        self.remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        origin = self.checkpoint.origin.get("dataset", "unknown data")
        return f"Predictor({', '.join(self.phenotypes)} of {self.genes.organism}, trained on {origin})"

    @cached_property
    def _wild_type(self) -> WildType:
        return self.checkpoint.encode()

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        known = self.checkpoint.known
        return default_kinds(known.table, len(self.genes), known.essential)

    @cached_property
    def _trained(self) -> MutantTable:
        known = self.checkpoint.known
        return known.table.take(known.part == PARTS.index("train"))

    def with_genes(self, organism: Organism) -> Predictor:
        """Return a predictor that also knows the genes appended to an organism.

        Mutants without any of them are answered by this predictor, to the bit. ``organism`` is the one that
        the model was trained on, after ``add_gene``.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene, which a new one lacks (``model.table=false``).
        DatasetError
            If nothing is appended, or the organism lacks genes of the model.
        CheckpointError
            If the checkpoint was written before names of feature columns were kept.
        """
        from wildtype.inference.new_genes import ExtendedPredictor

        return ExtendedPredictor(self, organism)

    def on(self, organism: Organism) -> Predictor:
        """Return the same model on another organism; see ``wildtype.inference.other_organisms``.

        ``remarks`` says which of its inputs the organism does not have.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene (``model.table=false``), or needs a relation that
            the organism lacks.
        CheckpointError
            If the checkpoint was written before names of feature columns were kept.
        """
        from wildtype.inference.other_organisms import on_organism

        checkpoint, remarks = on_organism(self.checkpoint, organism)
        other = Predictor(checkpoint)
        other.remarks = remarks
        return other

    def table(self, sets: Sequence[Sequence[str]], *, condition: str | None = None) -> MutantTable:
        """Turn named sets into a table of this model's genes; see ``predict`` for the errors."""
        table = to_table(sets, self.genes, self._kinds)
        if condition is not None:
            names = self.checkpoint.conditions
            if condition not in names:
                raise ConfigError(f"the model knows no condition {condition!r}; it knows {', '.join(names)}")
            table.condition[:] = names.index(condition)
        return table

    def predict(
        self,
        sets: Sequence[Sequence[str]],
        *,
        as_: Literal["phenotype", "fitness"] = "phenotype",
        condition: str | None = None,
    ) -> pd.DataFrame:
        """Predict every phenotype of every set.

        Parameters
        ----------
        sets : sequence of sequences of str
            Genes by any of their names; ``gene:kind`` says what was done to one (``absent``, ``reduced``,
            ``present``, ``added``, ``overexpressed``; by default what training data did to it).
        as_ : str
            ``fitness`` adds the expected fitness and its sd, from predicted epsilon or tau and known fitness
            of the singles (and pairs).
        condition : str, optional
            One of the dataset's conditions; the reference by default.

        Returns
        -------
        pandas.DataFrame
            One row per set, in order: ``genes`` (systematic names), ``kinds``, one column per phenotype in
            its
            unit (NaN where it is not defined, see ``note``), ``<phenotype>_measured`` (the known value, NaN
            if
            none), ``order``, ``order_seen`` and ``genes_seen`` (in training rows), ``essential`` (essential
            genes of the set), ``note``.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the row.
        ConfigError
            On an unknown kind or condition, or where ``as_="fitness"`` does not apply.
        """
        return self.predict_table(self.table(sets, condition=condition), as_=as_)

    def predict_table(self, table: MutantTable, *, as_: str = "phenotype") -> pd.DataFrame:
        """Predict the rows of a table of this model's genes; columns as in ``predict``."""
        import pandas as pd

        checkpoint, known = self.checkpoint, self.checkpoint.known
        values = self._predicted(table)
        names, kinds = self.genes.names, [kind.name.lower() for kind in Kind]
        spans = list(zip(table.offsets[:-1], table.offsets[1:], strict=True))
        columns: dict[str, Any] = {
            "genes": [",".join(names[g] for g in table.gene[a:b]) for a, b in spans],
            "kinds": [",".join(kinds[k] for k in table.kind[a:b]) for a, b in spans],
        }
        notes: list[list[str]] = [[] for _ in spans]
        for p, phenotype in enumerate(checkpoint.phenotypes):
            minimum = phenotype["min_order"]
            too_small = table.order < minimum
            values[too_small, p] = np.nan
            for row in np.flatnonzero(too_small).tolist():
                notes[row].append(f"{phenotype['name']} needs at least {minimum} genes")
            columns[phenotype["name"]] = values[:, p]
        for phenotype in self.phenotypes:
            columns[f"{phenotype}_measured"] = self._measured(table, phenotype)
        if as_ == "fitness":
            expected = expected_fitness(self.checkpoint, table, values)
            columns["fitness_expected"], columns["fitness_expected_sd"] = expected.fitness, expected.sd
            for at, reason in expected.reasons.items():
                notes[at].append(reason)
        elif as_ != "phenotype":
            raise ConfigError(f"as={as_!r} is not known; known: phenotype, fitness")
        seen = np.zeros(len(self.genes), bool)
        seen[self._trained.gene] = True
        columns["order"] = table.order
        columns["order_seen"] = np.isin(table.order, self._trained.order)
        columns["genes_seen"] = np.bincount(table.row, weights=seen[table.gene], minlength=len(table)).astype(
            int
        )
        columns["essential"] = [
            ",".join(names[g] for g in table.gene[a:b] if known.essential[g]) for a, b in spans
        ]
        columns["note"] = ["; ".join(reasons) for reasons in notes]
        return pd.DataFrame(columns)

    def _predicted(self, table: MutantTable) -> NDArray[np.float64]:
        """Return every phenotype [M, p] of the rows of a table."""
        return self.checkpoint.predict(table, self._wild_type)

    def _measured(self, table: MutantTable, phenotype: str) -> NDArray[np.float64]:
        """Return the known value of each row's gene set (mean over kinds), NaN where there is none."""
        known = self.checkpoint.known
        rows = np.flatnonzero(known.table.phenotype == known.phenotypes.index(phenotype))
        if not rows.size:
            return np.full(len(table), np.nan)
        values = known.table.take(rows)
        _, first, group = np.unique(values.set_id, return_index=True, return_inverse=True)
        mean = np.bincount(group, weights=values.value) / np.bincount(group)
        found = SetIndex(values.take(first)).find(table)
        return np.where(found >= 0, mean[found], np.nan)


def load(path: str | Path) -> Predictor:
    """Load the predictor of a run or checkpoint folder.

    Raises
    ------
    CheckpointError
        If it is missing, damaged, or of an unknown format.
    """
    return Predictor(load_checkpoint(path))
