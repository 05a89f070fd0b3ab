"""Ablation: the effect of a change of settings, as differences to the base on the same seeds and rows.

Settings are chosen by validation rows, so their score comes first, with its spread over seeds. Differences on
test rows are for reporting; they are means over seeds, with an interval from a bootstrap over genes. Genes
are drawn once for the test rows of all seeds, because a gene is the same gene in every split.

Legend: m test rows of all seeds · r replicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.evaluation.bootstrap import Clusters, IntervalEstimate, bootstrap, find_clusters, interval
from wildtype.evaluation.metrics import Statistic, bind
from wildtype.evaluation.predicted_rows import gene_sets
from wildtype.evaluation.summary import Spread, spread
from wildtype.files import finite
from wildtype.mutants import MutantTable

if TYPE_CHECKING:
    import pandas as pd

PREDICTED = "predicted"
IDENTITY = ("genes", "kinds", "doses", "condition", "value")
"""Columns that are equal in equal test rows."""


@dataclass(frozen=True, eq=False)
class AblationOutcome:
    """Scores and predictions of one run of an ablation.

    Attributes
    ----------
    validation : float
        Best validation Pearson, mean over phenotypes (and over the members of an ensemble).
    test : DataFrame
        Test rows of one phenotype, as `Dataset.to_pandas` gives them, with a column ``predicted``.
    seconds_per_epoch : float
        NaN where the run was interrupted and resumed.
    peak_mib : float
        Highest resident memory of the process, MiB.
    """

    validation: float
    test: pd.DataFrame
    seconds_per_epoch: float
    peak_mib: float


@dataclass(frozen=True)
class LevelResult:
    """One row of the table.

    Attributes
    ----------
    factor, level : str
        The changed setting, and its value.
    seeds : tuple of int
        Seeds of the finished runs.
    validation, test : Spread
        Headline metric over seeds.
    validation_difference : Spread
        Difference to the base on the same seeds; no runs for the base itself.
    test_difference : IntervalEstimate
        The same on test rows, with the 95 % interval of the bootstrap; NaN for the base itself.
    seconds_per_epoch, peak_mib : float
        Means over seeds; NaN where not known.
    remarks : tuple of str
        Runs that are missing or failed, and the reason.
    """

    factor: str
    level: str
    seeds: tuple[int, ...]
    validation: Spread
    validation_difference: Spread
    test: Spread
    test_difference: IntervalEstimate
    seconds_per_epoch: float
    peak_mib: float
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class AblationTable:
    """All levels in one split and phenotype.

    Attributes
    ----------
    dataset, phenotype, split : str
        What was predicted, and the split as the ablation calls it.
    headline : str
        Metric of the test columns; validation is always the mean Pearson over phenotypes.
    clusters, replicates
        Options of the bootstrap.
    rows : tuple of LevelResult
        The base first, then in the order of the plan.
    """

    dataset: str
    phenotype: str
    split: str
    headline: str
    clusters: str
    replicates: int
    rows: tuple[LevelResult, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; NaN becomes None."""
        record: dict[str, Any] = finite(asdict(self))
        return record


def level_results(
    base: Mapping[int, AblationOutcome],
    levels: Mapping[tuple[str, str], Mapping[int, AblationOutcome]],
    *,
    headline: str = "pearson",
    clusters: str = "genes",
    replicates: int = 1000,
    remarks: Mapping[tuple[str, str], Sequence[str]] | None = None,
) -> list[LevelResult]:
    """Return one row per level, compared with the base on the seeds that both have.

    Parameters
    ----------
    base : mapping of int to AblationOutcome
        By seed.
    levels : mapping of (factor, level) to mapping of int to AblationOutcome
        Includes the base; a level without any run gives a row of dashes. A run whose test rows differ from
        those of the base on its seed has a remark, and is in no difference on test rows.
    headline : str
        ``pearson`` or ``pearson_by_condition``.
    clusters, replicates
        Of the bootstrap.
    remarks : mapping, optional
        Of the levels.
    """
    notes = {key: list((remarks or {}).get(key, ())) for key in levels}
    both = {key: [s for s in runs if s in base and runs[s] is not base[s]] for key, runs in levels.items()}
    paired: dict[tuple[str, str], list[int]] = {}
    for key, seeds_of in both.items():
        paired[key] = [s for s in seeds_of if _same_rows(levels[key][s].test, base[s].test)]
        others = [s for s in seeds_of if s not in paired[key]]
        notes[key] += [f"seed {s}: other test rows than the base, so no difference on them" for s in others]
    seeds = sorted(base)
    statistics: dict[str, Statistic] = {}
    drawn: dict[str, Any] = {}
    if any(paired.values()):
        table = _joined([base[seed].test for seed in seeds])
        edges = np.cumsum([0, *(len(base[seed].test) for seed in seeds)])
        part = {seed: slice(edges[i], edges[i + 1]) for i, seed in enumerate(seeds)}
        used = {seed for chosen in paired.values() for seed in chosen}
        for seed in used:
            _add(statistics, f"base/{seed}", base[seed].test, headline, part[seed])
        for (factor, level), chosen in paired.items():
            for seed in chosen:
                run = levels[factor, level][seed]
                _add(statistics, f"{factor}/{level}/{seed}", run.test, headline, part[seed])
        found: Clusters = find_clusters(table, clusters)
        drawn = bootstrap(statistics, found, replicates=replicates)

    def difference(factor: str, level: str) -> IntervalEstimate:
        pairs = [(f"{factor}/{level}/{s}", f"base/{s}") for s in paired[factor, level]]
        if not pairs or not all(name in drawn for pair in pairs for name in pair):
            return IntervalEstimate()
        # Base and level are paired by seed and resample before averaging, so that both effects cancel.
        replicate = np.mean([drawn[ours] - drawn[theirs] for ours, theirs in pairs], axis=0)
        value = np.mean(
            [
                score(levels[factor, level][s].test, headline) - score(base[s].test, headline)
                for s in paired[factor, level]
            ]
        )
        return IntervalEstimate(float(value), *interval(replicate))

    out = []
    for (factor, level), runs in levels.items():
        out.append(
            LevelResult(
                factor=factor,
                level=level,
                seeds=tuple(sorted(runs)),
                validation=spread([run.validation for run in runs.values()]),
                validation_difference=spread(
                    [runs[s].validation - base[s].validation for s in both[factor, level]]
                ),
                test=spread([score(run.test, headline) for run in runs.values()]),
                test_difference=difference(factor, level),
                seconds_per_epoch=spread([run.seconds_per_epoch for run in runs.values()]).mean,
                peak_mib=spread([run.peak_mib for run in runs.values()]).mean,
                remarks=tuple(notes[factor, level]),
            )
        )
    return out


def score(test: pd.DataFrame, headline: str) -> float:
    """Return the headline metric of test rows with predictions; NaN where it is undefined."""
    bound = bind(test["value"], test[PREDICTED], condition=_codes(test["condition"]))
    return bound.values(len(test))[headline]


def _add(statistics: dict[str, Statistic], name: str, test: pd.DataFrame, headline: str, part: slice) -> None:
    """Add the metric of one run to those of the bootstrap; an undefined one is left out."""
    bound = bind(test["value"], test[PREDICTED], condition=_codes(test["condition"]))
    if (statistic := bound.statistics.get(headline)) is not None:
        # Rows of all seeds are stacked; this run's rows are one slice of them.
        statistics[name] = lambda weights: statistic(weights[part])


def _codes(names: pd.Series[str]) -> Any:
    return np.unique(names.to_numpy(str), return_inverse=True)[1].reshape(-1)


def _same_rows(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    columns = [name for name in IDENTITY if name in one or name in two]
    return all(name in one and name in two for name in columns) and one[columns].reset_index(
        drop=True
    ).equals(two[columns].reset_index(drop=True))


def _joined(parts: Sequence[pd.DataFrame]) -> MutantTable:
    """Return the gene sets of all seeds as one table over the genes that they name."""
    import pandas as pd

    return gene_sets(pd.concat([part["genes"] for part in parts]))[0]
