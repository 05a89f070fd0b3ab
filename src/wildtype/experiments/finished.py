"""`FinishedRun`: a run, and the commands about it as methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.evaluation.metrics import METRICS
from wildtype.experiments.explain import explain_runs
from wildtype.experiments.folder import REPORT
from wildtype.experiments.report import SCREENED, panels_of_plot, write_report
from wildtype.experiments.stored import Run
from wildtype.inference.explaining.explain import Explanation, ExplanationRequest
from wildtype.report.figures.panel import drawn_together
from wildtype.report.figures.style import FONT_PRINT, drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class FinishedRun(Run):
    """A finished run, as ``wildtype.fit`` returns it and ``wildtype.load_run`` reads it."""

    def evaluate(self) -> pd.DataFrame:
        """Return the scores of all models on the test rows, as ``wildtype evaluate`` prints them.

        Returns
        -------
        pandas.DataFrame
            One row per phenotype and model, best first: ``phenotype``, ``model``, ``baseline``, ``rows``,
            and every metric with the ends of its 95 % interval, ``<metric>_low`` and ``<metric>_high``.
        """
        import pandas as pd

        rows = []
        for name, comparison in self.comparisons.items():
            for score in comparison.scores:
                row: dict[str, Any] = {"phenotype": name, "model": score.model, "baseline": score.baseline}
                row["rows"] = score.n
                for metric in METRICS:
                    found = score.estimate(metric)
                    row |= {metric: found.value, f"{metric}_low": found.low, f"{metric}_high": found.high}
                rows.append(row)
        return pd.DataFrame(rows)

    def explain(self, sets: Sequence[Sequence[str]] = (), **options: Any) -> Explanation:
        """Explain the model, and its predictions of sets, as ``wildtype explain`` does.

        ``options`` are those of ``wildtype.inference.explaining.explain.ExplanationRequest``.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the set.
        ConfigError
            If an option is out of range, or the model has nothing that can be explained.
        """
        return explain_runs([self.path], ExplanationRequest(sets=sets, **options))

    def write_report(self, target: str | Path | None = None, *, screened: int = SCREENED) -> Path:
        """Write the page of the run, and return where: ``report.html`` in its directory by default.

        ``screened`` unmeasured mutants are predicted and ranked on it.

        Raises
        ------
        OutputError
            If the page cannot be written there.
        """
        path = self.path / REPORT if target is None else Path(target)
        write_report([self], path, screened=screened)
        return path

    def plot(self, kind: str = "comparison") -> list[Axes]:
        """Draw a figure, of a kind that ``wildtype plot`` knows, and return its axes, to be changed or saved.

        Raises
        ------
        ConfigError
            If the kind is not known, or the run holds no data for it.
        """
        with drawing(FONT_PRINT):
            return drawn_together(panels_of_plot(kind, [self])).axes
