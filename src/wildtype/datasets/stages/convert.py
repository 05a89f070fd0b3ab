"""Convert: what a publisher recorded becomes mutants of an organism, row by row; no two rows are merged here.

Phenotypes and conditions of the dataset are named from the studies, traits and environments of its rows.

Legend: m measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.measurements import Measurements, recoded
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import Environment, PerturbationKind, PhenotypeDefinition
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.stages.rows import StagedRows
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import Kind
from wildtype.mutants.ragged import BLOCK, compact, distinct, first_of_each, is_repeated, ranks, repeated
from wildtype.organism import GeneIndex, Organism

Ints = NDArray[np.int64]
Definition = tuple[str, PhenotypeDefinition]
_SHARED = ("unit", "direction", "level", "min_order")
"""What studies must agree on before their numbers are one phenotype."""


def name_phenotypes(measurements: Measurements, studies: str) -> tuple[tuple[Phenotype, ...], Ints]:
    """Return the phenotypes, those of fewest genes first, then by name, and the position [m] of every row's.

    A trait is a separate phenotype, ``phenotype:trait``, in the group ``phenotype``; with
    ``studies="apart"`` a study is too, ``study:phenotype``. The source of a phenotype is that of all its
    traits, since features made from one trait of a screen leak the others.

    Raises
    ------
    DatasetError
        If studies mean different things by one name, or two phenotypes come out with one name.
    """
    m = measurements
    rank = ranks(m.study, m.phenotype, m.trait)
    found: dict[tuple[str, ...], list[Definition]] = {}
    keys = []
    for row in first_of_each(rank):
        study, definition = m.studies[m.study[row]].name, m.phenotypes[m.phenotype[row]]
        key = (study if studies == "apart" else "", definition.name, m.traits[m.trait[row]])
        found.setdefault(key, []).append((study, definition))
        keys.append(key)
    built = {key: _phenotype(key, definitions) for key, definitions in found.items()}
    ordered = sorted(built, key=lambda key: (built[key].min_order, key))
    names = [built[key].name for key in ordered]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DatasetError(f"two phenotypes are both called {twice[0]!r}: rename one, or select one of them")
    position = {key: place for place, key in enumerate(ordered)}
    places = np.array([position[key] for key in keys], dtype=np.int64)
    return tuple(built[key] for key in ordered), places[rank]


def _phenotype(key: tuple[str, ...], definitions: Sequence[Definition]) -> Phenotype:
    definitions = sorted(definitions, key=lambda pair: (pair[0], pair[1].id))
    (study, first), *others = definitions
    for other_study, other in others:
        for name in _SHARED:
            if getattr(first, name) != getattr(other, name):
                raise DatasetError(
                    f"{first.name!r} has {name} {getattr(first, name)!r} in {study} and "
                    f"{getattr(other, name)!r} in {other_study}: keep the studies apart, or select one"
                )
    descriptions = dict.fromkeys(d.description for _, d in definitions if d.description)
    return Phenotype(
        name=":".join(part for part in key if part),
        unit=first.unit,
        source=" + ".join(dict.fromkeys(f"{study}:{d.name}" for study, d in definitions)),
        min_order=first.min_order,
        strong=max(d.strong for _, d in definitions),
        description="; ".join(descriptions),
        group=":".join(part for part in key[:2] if part) if key[2] else "",
    )


def name_conditions(environments: Sequence[Environment], environment: Ints) -> tuple[tuple[str, ...], Ints]:
    """Return the conditions, the reference first, and the position [m] of every row's.

    The reference is the environment with the fewest compounds, then the one with most rows, then the first by
    name. Environments without rows are left out.
    """
    first: dict[str, int] = {}
    same = np.array([first.setdefault(e.id, place) for place, e in enumerate(environments)], np.int64)
    environment = same[environment]
    rows = np.bincount(environment, minlength=len(environments))
    used = [e for e in range(len(environments)) if rows[e]]
    spelled = [str(environments[e]) for e in used]
    names = {
        e: name if spelled.count(name) == 1 else f"{name} [{environments[e].id[:8]}]"
        for e, name in zip(used, spelled, strict=True)
    }
    # Ties are broken by number of rows and name, never by the order in which environments were read.
    order = sorted(used, key=lambda e: (len(environments[e].compounds), -rows[e], names[e]))
    place = np.full(max(len(environments), 1), -1, np.int64)
    place[order] = np.arange(len(order))
    return tuple(names[e] for e in order), place[environment]


def chosen_condition(conditions: Sequence[str], name: str) -> int:
    """Return the position of a condition; raises ``ConfigError`` naming those there are."""
    if name not in conditions:
        known = "; ".join(conditions) or "none"
        raise ConfigError(f"no measurement was made in environment {name!r}; there are: {known}")
    return list(conditions).index(name)


EFFECT = {
    PerturbationKind.DELETION: Kind.ABSENT,
    PerturbationKind.REDUCED_EXPRESSION: Kind.REDUCED,
    PerturbationKind.TEMPERATURE_SENSITIVE: Kind.REDUCED,
    PerturbationKind.OTHER_ALLELE: Kind.REDUCED,
    PerturbationKind.SUPPRESSOR: Kind.REDUCED,  # no remaining row has one: see _suppressors
    PerturbationKind.OVEREXPRESSION: Kind.OVEREXPRESSED,
    PerturbationKind.ADDITION: Kind.ADDED,
}
"""What a model sees of a recorded perturbation, with ``kinds="by effect"``."""
SUPPRESSOR = "strain with a suppressor mutation"
IGNORED = "suppressor mutation not represented"
NEUTRAL = "perturbation of a neutral locus taken out"
UNKNOWN_GENE = "gene that the organism does not have"
FOREIGN_GENE = "foreign gene added"
TWICE = "one gene perturbed twice"
TOO_FEW = "fewer genes perturbed than the phenotype is defined for"
ELSEWHERE = "measured in another environment"
DERIVED = "sd derived from standard error and number of replicates"
POOLED = "environments pooled"


class Conversion:
    """The rows of one dataset while they are converted: the result, and a report of every step.

    Parameters
    ----------
    measurements : Measurements
        As selected from a store.
    organism : Organism
        The wild type that mutants refer to.
    policies : Policies
        How.

    Attributes
    ----------
    rows : StagedRows
        The rows that are left.
    phenotypes, conditions : tuples
        What ``rows.phenotype`` and ``rows.condition`` refer to.
    doses : float64 [d]
        What ``rows.dose`` refers to, ascending; the last is NaN: not stated.
    reports : list of StageReport
        What every step did.

    Raises
    ------
    ConfigError
        If the policies name a gene or an environment that is not there.
    DatasetError
        If studies mean different things by one phenotype.
    """

    phenotypes: tuple[Phenotype, ...]
    conditions: tuple[str, ...]

    def __init__(self, measurements: Measurements, organism: Organism, policies: Policies) -> None:
        self.reports: list[StageReport] = []
        self.phenotypes, phenotype = name_phenotypes(measurements, policies.studies)
        self.conditions, condition = name_conditions(measurements.environments, measurements.environment)
        # -0.0 becomes 0.0; the dose that is not stated is one of them, and the last.
        doses, dose = distinct(measurements.dose)
        self.doses, place = np.unique(np.append(doses + 0.0, np.nan), return_inverse=True)
        self.rows = _rows(
            measurements,
            organism.genes,
            phenotype,
            condition,
            recoded(place.reshape(-1), dose),
            labelled=policies.listed_again == "once per replicate",
        )
        self._sd(measurements, policies)
        self._environments(policies)
        self._suppressors(policies)
        self._neutral(organism.genes, policies)
        self._genes(policies)
        self._repeated(policies)
        self._fewest(policies)

    def _close(self, step: str, policy: str, before: int, **counts: dict[str, int]) -> None:
        self.reports.append(StageReport("convert", step, policy, before, len(self.rows), **counts))

    def _drop(self, step: str, policy: str, *reasons: tuple[str, NDArray[np.bool_]]) -> None:
        """Leave rows [m] out, each for the first reason that holds."""
        before, left = len(self.rows), np.ones(len(self.rows), bool)
        dropped = {}
        for reason, wrong in reasons:
            dropped[reason] = int((left & wrong).sum())
            left &= ~wrong
        if not left.all():
            self.rows = self.rows.take(left)
        self._close(step, policy, before, dropped=dropped)

    def _take_out(self, step: str, policy: str, reason: str, marked: NDArray[np.bool_]) -> None:
        """Take marked perturbations [Σk] out of their rows."""
        changed = int(self.rows.holding(marked).sum())
        if changed:
            self.rows = self.rows.without(marked)
        self._close(step, policy, len(self.rows), noted={reason: changed})

    def _sd(self, measurements: Measurements, policies: Policies) -> None:
        noted = {}
        if policies.sd == "derived":
            # se = sd / √n, so sd = se √n.
            derived = measurements.se * np.sqrt(measurements.n)
            usable = np.isnan(measurements.sd) & np.isfinite(derived) & (measurements.n > 0)
            self.rows = replace(self.rows, sd=np.where(usable, derived, self.rows.sd))
            noted = {DERIVED: int(usable.sum())}
        self._close("sd", policies.sd, len(self.rows), noted=noted)

    def _environments(self, policies: Policies) -> None:
        if policies.environments == "one":
            place = chosen_condition(self.conditions, policies.environment)
            self._drop("environments", policies.environment, (ELSEWHERE, self.rows.condition != place))
            self._one_condition(policies.environment)
            return
        noted = {}
        if policies.environments == "pooled" and len(self.conditions) > 1:
            self._one_condition("pooled")
            noted = {POOLED: len(self.rows)}
        self._close("environments", policies.environments, len(self.rows), noted=noted)

    def _one_condition(self, name: str) -> None:
        self.conditions = (name,)
        self.rows = replace(self.rows, condition=repeated(np.zeros(1, np.int32), len(self.rows)))

    def _suppressors(self, policies: Policies) -> None:
        marked = self.rows.recorded == PerturbationKind.SUPPRESSOR
        if policies.suppressors == "ignore":
            self._take_out("suppressors", "ignore", IGNORED, marked)
        else:
            self._drop("suppressors", "drop", (SUPPRESSOR, self.rows.holding(marked)))

    def _neutral(self, genes: GeneIndex, policies: Policies) -> None:
        for name in policies.neutral:
            if name not in genes:
                near = genes.nearest(name)
                raise ConfigError(
                    f"the neutral locus {name!r} is not in organism {genes.organism!r}; "
                    + (f"did you mean {' or '.join(near)}?" if near else "leave it out of the policies")
                )
        marked = np.isin(self.rows.gene, genes.find_all(policies.neutral))
        self._take_out("neutral loci", ", ".join(policies.neutral) or "none", NEUTRAL, marked)

    def _genes(self, policies: Policies) -> None:
        lacking = self.rows.gene < 0
        foreign = lacking & (self.rows.recorded == PerturbationKind.ADDITION)
        self._drop(
            "genes",
            policies.genes,
            (UNKNOWN_GENE, self.rows.holding(lacking & ~foreign)),
            (FOREIGN_GENE, self.rows.holding(foreign)),
        )

    def _repeated(self, policies: Policies) -> None:
        gene, starts = self.rows.gene, self.rows.offsets[:-1]
        again = np.zeros(len(gene), bool)
        again[1:] = gene[1:] == gene[:-1]
        again[starts[starts < len(gene)]] = False  # the first of a row repeats none of it
        self._drop("repeated genes", policies.repeated_genes, (TWICE, self.rows.holding(again)))

    def _fewest(self, policies: Policies) -> None:
        fewest = np.array([p.min_order for p in self.phenotypes], np.int64)
        self._drop(
            "fewest genes", policies.fewest_genes, (TOO_FEW, self.rows.order < fewest[self.rows.phenotype])
        )


def _rows(
    m: Measurements,
    genes: GeneIndex,
    phenotype: NDArray[np.int64],
    condition: NDArray[np.int64],
    dose: NDArray[np.int64],
    *,
    labelled: bool,
) -> StagedRows:
    """Return all measurements as rows, every code replaced by a position or a rank of its content.

    Labels of replicates are kept where rows are ``labelled``.
    """
    places = {name: place for place, name in enumerate(genes.names)}
    gene = np.array([places.get(name, -1) for name in m.genes], np.int32)[m.gene]
    effect = np.array([EFFECT[kind] for kind in PerturbationKind], np.int8)
    recorded = m.kind.astype(np.int8)
    by_name = np.unique(np.array(m.alleles, dtype=str), return_inverse=True)[1].reshape(-1)
    # Ranks by content: codes depend on the order in which names were met, ranks do not.
    allele = ranks(recorded, recoded(by_name, m.allele)).astype(np.int32)
    within = _ascending(gene, m, len(genes))
    rows = StagedRows(
        gene=gene[within],
        recorded=recorded[within],
        kind=effect[recorded[within]],
        allele=allele[within],
        dose=dose if is_repeated(dose) else dose[within].astype(np.int32),
        offsets=m.offsets,
        phenotype=phenotype.astype(np.int32),
        condition=condition.astype(np.int32),
        replicate=_labels(m) if labelled else repeated(np.zeros(1, np.int32), len(m)),
        value=m.value + 0.0,  # -0.0 becomes 0.0
        sd=_unsigned(m.sd),
        p=_unsigned(m.p),
    )
    columns = rows.columns((*rows.ENTRIES, *rows.ROWS))
    return replace(rows, **{name: compact(column) for name, column in columns.items() if column is not None})


def _labels(m: Measurements) -> NDArray[np.int32]:
    """Return the ranks [m] of the labels of replicates."""
    by_name = np.unique(np.array(m.replicates, dtype=str), return_inverse=True)[1].reshape(-1)
    return recoded(by_name, m.replicate).astype(np.int32)


def _unsigned(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers in which -0 is 0 and every NaN is spelled alike."""
    if is_repeated(numbers):
        return repeated(_unsigned(numbers[:1]), len(numbers))
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0)


def _ascending(gene: NDArray[np.int32], m: Measurements, genes: int) -> Ints | slice:
    """Return the order of entries [Σk] in which genes ascend within every row by their positions.

    A gene that the organism lacks (-1) comes first.
    """
    out: Ints | slice = slice(None)
    for block in m.blocks(BLOCK):
        offsets = m.offsets[block.start : block.stop + 1]
        row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        key = row * (genes + 1) + gene[offsets[0] : offsets[-1]] + 1
        if (np.diff(key) < 0).any():
            if isinstance(out, slice):
                out = np.arange(len(gene))
            out[offsets[0] : offsets[-1]] = offsets[0] + np.argsort(key, kind="stable")
    return out
