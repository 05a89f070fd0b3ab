"""`Run`: the files of a finished run, read at first use.

Files of an older run may be missing; attributes that need them are then None, with a reason in ``missing``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wildtype.errors import CheckpointError, WildtypeError, reason_of
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.predicted_rows import PredictedRows
from wildtype.evaluation.training_record import LearningCurves, learning_curves
from wildtype.experiments.closure import IMPLIED_TAU
from wildtype.experiments.folder import ACROSS, DONE, EXPLANATION, EXTERNAL
from wildtype.files import read_json
from wildtype.models.registry import DEFAULT_MODEL
from wildtype.organism import GeneIndex
from wildtype.tables import facts_html

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.evaluation.calibration import Coverage
    from wildtype.evaluation.reliability import ReliabilityBin
    from wildtype.inference.predictor import Predictor

T = TypeVar("T")
REMEDY = "train again with this version to have it"
NAMED = 4
"""Most phenotypes that the text of a run names."""
COPY = "restore it from a copy, or train again"


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    path : Path
        The run directory.
    missing : dict of str to str
        Parts that could not be read so far, with the reason.
    fitted : Predictor, optional
        The trained model, where this process has just trained it.

    Raises
    ------
    CheckpointError
        When a required part is read and is missing or damaged.
    """

    path: Path
    missing: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    fitted: Predictor | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        if not (self.path / DONE).is_file():
            return f"{type(self).__name__}({str(self.path)!r}, not finished)"
        results = "; ".join(": ".join(result) for result in self._results())
        return f"{type(self).__name__}({str(self.path)!r}, {results})"

    def _repr_html_(self) -> str:
        if not (self.path / DONE).is_file():
            return facts_html(str(self.path), [("state", "not finished")])
        return facts_html(str(self.path), [("model", self.model), *self._results()])

    def _results(self) -> list[tuple[str, str]]:
        return [(name, table.winner_sentence) for name, table in self.tables().items()][:NAMED]

    def _json(self, name: str) -> Any:
        path = self.path / name
        try:
            return read_json(path)
        except FileNotFoundError as error:
            raise CheckpointError(
                f"{str(self.path)!r} holds no finished run ({name} is missing): check the path, or resume it"
            ) from error
        except NotADirectoryError as error:
            raise CheckpointError(
                f"{str(self.path)!r} is a file, and not the directory of a run: name the directory, "
                "as in runs/NAME"
            ) from error
        except (ValueError, OSError) as error:
            raise CheckpointError(f"{str(path)!r} is damaged ({reason_of(error)}): {COPY}") from error

    def _json_if_there(self, name: str) -> dict[str, Any]:
        if not (self.path / name).is_file():
            self.missing[name] = f"the run folder holds no {name}: {REMEDY}"
            return {}
        found: dict[str, Any] = self._json(name)
        return found

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings."""
        found: dict[str, Any] = self._json("settings.json").get("settings") or {}
        return found

    @property
    def model(self) -> str:
        """Name of the run's model in tables."""
        return str((self.settings.get("model") or {}).get("name", DEFAULT_MODEL))

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The comparison table of every phenotype or group, by name."""
        return self._compared(DONE, lambda found: {k: Comparison.from_json(x) for k, x in found.items()})

    @cached_property
    def across(self) -> Comparison | None:
        """The mean over phenotypes; None where a run tested a single one."""
        return self._compared(ACROSS, Comparison.from_json) if (self.path / ACROSS).is_file() else None

    def _compared(self, name: str, read: Callable[[Any], T]) -> T:
        found = self._json(name)
        try:
            return read(found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{str(self.path / name)!r} is damaged ({reason_of(error)}): {COPY}"
            ) from error

    def tables(self) -> dict[str, Comparison]:
        """Return the tables to show first: the mean over phenotypes where there are several, what follows
        from them, and external tests; else every table.
        """
        if self.across is None:
            return self.comparisons
        # External tests are of other datasets than the run; a copied table may have no settings beside it.
        return {self.across.phenotype: self.across} | {
            name: table
            for name, table in self.comparisons.items()
            if name == IMPLIED_TAU or table.dataset != self.across.dataset
        }

    @cached_property
    def card(self) -> dict[str, Any]:
        """The card of the dataset."""
        return self._json_if_there("card.json")

    @cached_property
    def record(self) -> dict[str, Any]:
        """Command, versions, machine."""
        return self._json_if_there("record.json")

    @cached_property
    def split(self) -> dict[str, Any]:
        """The split."""
        return self._json_if_there("split.json")

    @cached_property
    def profile(self) -> dict[str, Any]:
        """Where the time of steps went."""
        return self._json_if_there("profile.json")

    @cached_property
    def explained(self) -> dict[str, Any] | None:
        """The stored explanation; None where there is none."""
        return self._json(EXPLANATION) if (self.path / EXPLANATION).is_file() else None

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """How training went (epochs, seconds, parameters), and metrics by part and phenotype."""
        return self._json_if_there("checkpoint/metrics.json")

    @cached_property
    def phenotypes(self) -> dict[str, dict[str, Any]]:
        """What the model predicts, by name: unit, form, group, …"""
        return {entry["name"]: entry for entry in self._json("checkpoint/config.json")["phenotypes"]}

    @cached_property
    def genes(self) -> GeneIndex:
        """The genes of the model."""
        return GeneIndex.from_json(self._json("checkpoint/genes.json"))

    @cached_property
    def predictor(self) -> Predictor:
        """The trained model: the one that this process has just trained, or read from the directory."""
        if self.fitted is not None:
            return self.fitted
        from wildtype.inference.predictor import load

        return load(self.path)

    @cached_property
    def predictions(self) -> pd.DataFrame | None:
        """Test rows: measured, and predicted by every model."""
        found = self._rows("predictions.parquet")
        if found is None:
            self.missing["predictions"] = f"the run folder holds no predictions of test rows: {REMEDY}"
        return found

    @cached_property
    def external(self) -> pd.DataFrame | None:
        """Rows of external tests, of all datasets; None where a run has none."""
        return self._rows(EXTERNAL)

    def _rows(self, name: str) -> pd.DataFrame | None:
        import pandas as pd

        path = self.path / name
        if not path.is_file():
            return None
        try:
            return pd.read_parquet(path)
        except (ValueError, OSError) as error:
            raise CheckpointError(f"{str(path)!r} is damaged ({reason_of(error)}): {COPY}") from error

    @cached_property
    def tested(self) -> list[PredictedRows]:
        """Test rows by phenotype, most rows first, with what the model and the best baseline predicted.

        Phenotypes of which a row has a number per gene have none here.
        """
        frame = self.predictions
        if frame is None:
            return []
        counts = frame.loc[frame["value"].notna(), "phenotype"].value_counts()
        found = []
        for name in counts.index:
            entry = self.phenotypes.get(name, {})
            models, best = [self.model], self._best_baseline(name, entry.get("group") or "")
            if best in frame and best != self.model:
                models.append(best)
            calls = entry.get("form") == "class"
            found.append(
                PredictedRows.of(
                    frame,
                    name,
                    models,
                    unit=entry.get("unit") or "",
                    calls=calls,
                    standard=self.genes.standard,
                )
            )
        if not found:
            self.missing["predictions"] = "no phenotype of this run is one number per mutant"
        return found

    def _best_baseline(self, phenotype: str, group: str) -> str:
        table = self.comparisons.get(phenotype) or self.comparisons.get(group)
        if table is None or not table.reference or not table[table.reference].baseline:
            return ""
        return table.reference

    @cached_property
    def reliability(self) -> list[ReliabilityBin]:
        """How often what the model predicted with a probability happened, of phenotypes that are calls."""
        from wildtype.evaluation.reliability import reliability

        found: list[ReliabilityBin] = []
        if not any(rows.calls for rows in self.tested):
            return found
        try:
            # All tested genes are tokens: what is indexed of these is not indexed again for all genes.
            encoded = self.predictor.encoded
            seen, genes = encoded.checkpoint.known.seen_genes(), encoded.genes
        except WildtypeError as error:
            self.missing["reliability"] = str(error)
            return found
        for rows in (rows for rows in self.tested if rows.calls):
            # Predictions name a kind behind the gene, as in CDC28:reduced.
            at = np.array([genes.find(name.partition(":")[0]) for name in rows.genes])
            unseen = np.bincount(rows.table.row, ~seen[at[rows.table.gene]], len(rows))
            probability = rows.predicted[self.model]
            found += reliability(rows.phenotype, rows.measured, probability, unseen.astype(np.int64))
        return found

    @cached_property
    def learning(self) -> LearningCurves | None:
        """How the model (the first member of an ensemble) learned."""
        import pandas as pd

        path = self.path / "logs" / "metrics.csv"
        try:
            found = learning_curves(pd.read_csv(path))
        except FileNotFoundError:
            found = None
        except (ValueError, TypeError, OSError) as error:
            raise CheckpointError(
                f"{str(path)!r} is damaged ({reason_of(error)}): remove it, everything else is kept"
            ) from error
        if found is None:
            self.missing["learning"] = "the run folder holds no log of its steps (logs/metrics.csv)"
        return found

    @cached_property
    def coverage(self) -> list[Coverage]:
        """Coverage of intervals on test rows, at the levels of a calibration plot."""
        from wildtype.evaluation.calibration import LEVELS, measure_coverage

        try:
            return measure_coverage(self.predictor.encoded.checkpoint, LEVELS)
        except WildtypeError as error:
            self.missing["calibration"] = str(error)
            return []
