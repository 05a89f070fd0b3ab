"""What the sides of a split have in common, counted on the rows themselves.

A split may keep its rule and still share information: the genes of its test rows, or mutants in other
conditions. `leakage_report` counts it, whatever the rule allows.

Legend: m rows · k perturbed genes of one mutant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.draws import PARTS, RULES, count_genes, studies_of
from wildtype.datasets.provenance import one_measurement, sources_of_group
from wildtype.datasets.query_pairs import is_contained, query_pairs
from wildtype.datasets.splits import Split
from wildtype.errors import SplitError
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import mutant_id
from wildtype.mutants.ragged import joint

Ints = NDArray[np.int64]
Sources = dict[str, tuple[str, ...]]
"""Feature block: phenotype sources that it was made from."""


@dataclass(frozen=True)
class Shared:
    """What the rows of one side share with the training rows; all but the last four count rows of the side.

    Attributes
    ----------
    rows : int
        Rows of the side.
    gene_set : int
        The same unordered gene set is in training.
    gene_set_and_condition : int
        The same in the same condition.
    mutant : int
        The same genes, kinds and doses are in training, in any condition.
    replicate : int
        The same mutant, condition and phenotype are in training, of any study of the provenance group.
    value : int
        The same gene set with the very same number is in training.
    all_genes, some_genes, no_gene : int
        All, some or none of its genes have a training row.
    genes, genes_in_training : int
        Different genes, and those of them that have a training row.
    query_pairs, query_pairs_in_training : int
        Query pairs of the side's triples (inferred), and those that occur together in a training row.
    """

    rows: int
    gene_set: int
    gene_set_and_condition: int
    mutant: int
    replicate: int
    value: int
    all_genes: int
    some_genes: int
    no_gene: int
    genes: int
    genes_in_training: int
    query_pairs: int
    query_pairs_in_training: int


@dataclass(frozen=True)
class LeakageReport:
    """What the sides of one split share.

    Attributes
    ----------
    split, dataset : str
        Names.
    seed : int
        Seed of the split.
    options : dict
        Of the split.
    rule : str
        What this kind of split promises.
    broken : str
        How the rule is broken; empty if it is kept.
    rows : dict of str to int
        Rows per side.
    dropped : dict of str to int
        Rows on no side, by reason.
    shared : dict of str to Shared
        ``validation`` and ``test``, against training.
    refused_features : dict of str to tuple of str
        Feature blocks made from the target itself, which models are not given, and their sources.
    same_study_features : dict of str to tuple of str
        Further blocks measured in a target's study, which models are given, and their sources.
    """

    split: str
    dataset: str
    seed: int
    options: Mapping[str, float | str]
    rule: str
    broken: str
    rows: Mapping[str, int]
    dropped: Mapping[str, int]
    shared: Mapping[str, Shared]
    refused_features: Mapping[str, tuple[str, ...]]
    same_study_features: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-like record of everything."""
        return asdict(self)

    def lines(self, *, features: bool = True) -> list[str]:
        """Return the report in sentences, for people; with or without those on ``features``, which are the
        same for all splits of a dataset.
        """
        out = [f"RULE BROKEN: {self.broken}" if self.broken else f"rule kept: {self.rule}"]
        for part, shared in self.shared.items():
            out.append(f"{part}, {shared.rows:,} rows, against training: " + _sentence(shared))
        dropped = "; ".join(f"{count:,} {reason}" for reason, count in self.dropped.items())
        out.append(f"on no side: {dropped or 'no rows'}")
        if not features:
            return out
        for blocks, what in (
            (self.refused_features, "measured with the target, which models are not given"),
            (self.same_study_features, "from the target's study, which models are given"),
        ):
            named = "; ".join(f"{name} ({', '.join(sources)})" for name, sources in blocks.items())
            out.append(f"features {what}: {named or 'none'}")
        return out


def _sentence(shared: Shared) -> str:
    def of_rows(count: int) -> str:
        share = f" ({count / shared.rows:.1%})" if shared.rows and count else ""
        return f"{count:,}{share}"

    parts = [
        f"gene set shared by {of_rows(shared.gene_set)}, in the same condition by "
        f"{of_rows(shared.gene_set_and_condition)}",
        f"mutant shared by {of_rows(shared.mutant)}, replicates of one another {of_rows(shared.replicate)}",
        f"same gene set and same number {of_rows(shared.value)}",
        f"all genes seen {of_rows(shared.all_genes)}, some {of_rows(shared.some_genes)}, none "
        f"{of_rows(shared.no_gene)}",
        f"{shared.genes_in_training:,} of {shared.genes:,} genes seen",
    ]
    if shared.query_pairs:
        parts.append(f"{shared.query_pairs_in_training:,} of {shared.query_pairs:,} query pairs seen")
    return "; ".join(parts)


def leakage_report(split: Split, dataset: DatasetRecord) -> LeakageReport:
    """Count what the sides of a split share; a split that breaks its rule is reported, not refused.

    Raises
    ------
    SplitError
        If the split belongs to another dataset, or to another order of its rows.
    """
    split.belongs_to(dataset)
    broken = ""
    try:
        split.check(dataset)
    except SplitError as error:
        broken = str(error)
    table, train = dataset.table, np.zeros(len(dataset), bool)
    train[split.train] = True
    values = np.unique(table.value, return_inverse=True)[1].reshape(-1)
    mutant, sets = mutant_id(table), table.set_id
    phenotype = one_measurement(dataset.phenotypes, dataset.provenance)[table.phenotype]
    circumstances = [(table.condition, len(dataset.conditions)), (phenotype, len(dataset.phenotypes))]

    def known(*columns: tuple[Ints, int]) -> NDArray[np.bool_]:
        """Return [M] whether a training row has the same codes."""
        # Dense ranks make membership a table lookup instead of a search per row.
        code = np.unique(joint(columns), return_inverse=True)[1].reshape(-1)
        seen = np.zeros(int(code.max()) + 1, bool)
        seen[code[train]] = True
        return seen[code]

    by_set, by_mutant = (sets, int(sets.max()) + 1), (mutant, int(mutant.max()) + 1)
    marks = {
        "gene_set": known(by_set),
        "gene_set_and_condition": known(by_set, circumstances[0]),
        "mutant": known(by_mutant),
        "replicate": known(by_mutant, *circumstances),
        "value": known(by_set, (values, int(values.max()) + 1)),
    }
    seen = np.zeros(len(dataset.organism.genes), bool)
    seen[table.take(split.train).gene] = True
    # A wild type has no genes: it counts as all seen, since none of its genes is unseen.
    unseen = count_genes(table, ~seen)
    marks["no_gene"] = (unseen == table.order) & (unseen > 0)
    marks["all_genes"] = unseen == 0
    marks["some_genes"] = ~(marks["no_gene"] | marks["all_genes"])
    queries = _query_pairs(table)
    shared = {}
    for part in PARTS[1:]:
        rows = getattr(split, part)
        genes = np.unique(table.take(rows).gene)
        pairs = np.unique(queries[rows[table.order[rows] == 3]], axis=0)
        together = is_contained(pairs, table.take(split.train), len(seen))
        shared[part] = Shared(
            rows=rows.size,
            genes=genes.size,
            genes_in_training=int(seen[genes].sum()),
            query_pairs=len(pairs),
            query_pairs_in_training=int(together.sum()),
            **{name: int(mark[rows].sum()) for name, mark in marks.items()},
        )
    refused, related = _measured_features(dataset)
    return LeakageReport(
        split=split.name,
        dataset=dataset.name,
        seed=split.seed,
        options=dict(split.options),
        rule=RULES[split.name],
        broken=broken,
        rows={part: int(getattr(split, part).size) for part in PARTS},
        dropped=dict(split.dropped),
        shared=shared,
        refused_features=refused,
        same_study_features=related,
    )


def _query_pairs(table: MutantTable) -> Ints:
    """Return [M, 2] the query pair of every triple; -1 for rows of another order."""
    out = np.full((len(table), 2), -1, np.int64)
    rows = np.flatnonzero(table.order == 3)
    triples, triple = np.unique(table.take(rows).matrix(3), axis=0, return_inverse=True)
    out[rows] = query_pairs(triples)[triple.reshape(-1)]
    return out


def _measured_features(
    dataset: DatasetRecord,
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the blocks that models of these phenotypes are not given, and those they are given that were
    made from the same studies; each with its sources in them.
    """
    sources = [source for phenotype in dataset.phenotypes for source in phenotype.sources]
    targets = sources_of_group(sources, dataset.provenance)
    studies = {study for source in targets for study in studies_of(source)}
    features = dataset.organism.features
    allowed = set(features.allowed_for(targets))
    measured = {name: block.measured for name, block in features.items()}
    if dataset.single_fitness is not None and dataset.single_fitness_source:
        measured["single_fitness"] = tuple(dataset.single_fitness_source.split(" + "))
        if not targets & set(measured["single_fitness"]):
            allowed.add("single_fitness")
    related = {
        name: tuple(source for source in sources if studies & set(studies_of(source)))
        for name, sources in measured.items()
    }
    return (
        {name: sources for name, sources in related.items() if name not in allowed},
        {name: sources for name, sources in related.items() if name in allowed and sources},
    )
