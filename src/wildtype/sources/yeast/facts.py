"""What the card of a dataset tells about its rows, and about the noise of its labels.

Alleles and studies differ in truth too, so that the correlations here are rough guides to the noise, no
bounds.

Legend: m rows · g groups of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.provenance import agreement, correlation
from wildtype.mutants import Kind
from wildtype.mutants.ragged import joint, ragged_ranks
from wildtype.sources.row_filter import Ints
from wildtype.sources.yeast.screens.screen_grid import LINKED_KB

OWN_SINGLES = (
    "the study's own fitness of single mutants (arrays and control queries): of a deletion where there is "
    "one, else of the reduced alleles"
)
NO_REPLICATES = "no replicate measurements: no noise guide"


def row_counts(dataset: Dataset) -> str:
    """Return how many rows the files have, as the first stage counted them."""
    first = dataset.stages[0]
    if first.stage != "files":
        return "the store does not say how many rows the files have"
    renamed = sum(first.noted.values())
    return f"{first.rows_in:,} rows read; {renamed:,} of the kept ones name an ORF by an older name of SGD"


def whole_screen(dataset: Dataset) -> str:
    """Return how the rows of a whole screen were listed, and how many crosses were measured besides."""
    # The first of the columns of listed crosses has the cut-offs of the list itself.
    rules = [p.selection.rule for p in dataset.phenotypes if p.selection and p.of_cross == "listed"][:1]
    counts = dataset.cross_counts()
    return (
        f"the whole screen: rows are the crosses {' and '.join(rules)}; the grid holds "
        f"{counts['unlisted']:,} more that were measured and not listed, and {counts['unknown']:,} that are "
        "unknown"
    )


def every_cross(dataset: Dataset) -> str:
    """Return how many crosses a screen has of which every score is a row."""
    counts, p = dataset.cross_counts(), dataset.table.p
    averaged = len(dataset) if p is None else int(np.isnan(p).sum())
    return (
        f"the whole screen: each of {counts['listed']:,} crosses with a score is a row, and "
        f"{counts['unknown']:,} are unknown; {averaged:,} rows are means over orders, alleles or "
        "temperatures and have no p-value: their classes follow from the value alone"
    )


def linked_rows(dataset: Dataset) -> str:
    """Return how many rows are of linked genes, whose scores are of few recombinants."""
    pairs, places = dataset.table.matrix(2), dataset.organism.coordinates
    if places is None:
        return "the organism has no coordinates, so rows of linked genes are not counted"
    linked = int((places.distance(pairs[:, 0], pairs[:, 1]) <= LINKED_KB).sum())
    return (
        f"{linked:,} rows are of genes within {LINKED_KB:g} kb on one chromosome, whose scores are of few "
        "recombinants; the whole screen takes them for unknown"
    )


def sign_share(dataset: Dataset) -> str:
    """Return the share of positive scores, and what it means for a correlation."""
    return (
        f"{100 * float((dataset.table.value > 0).mean()):.1f} % of the rows are positive: part of any "
        "correlation is telling the signs apart, so read AUROC of the sign and the correlation within "
        "negatives beside it"
    )


def allele_kinds(dataset: Dataset) -> str:
    """Return how many rows have reduced alleles, and how many delete an essential gene."""
    table, genes = dataset.table, dataset.organism.genes
    reduced = table.kind == Kind.REDUCED
    essential = dataset.organism.essential
    surprising = ~reduced & (np.zeros(len(genes), bool) if essential is None else essential)[table.gene]
    return (
        f"{int(table.holding(reduced).sum()):,} rows have a temperature-sensitive or DAmP allele "
        f"(kind reduced); {int(table.holding(surprising).sum()):,} rows delete, by the strain's name, a "
        "gene that the deletion project listed as essential (kind absent)"
    )


def go_genes(dataset: Dataset) -> str:
    """Return how many genes of the two GO terms are measured."""
    return (
        f"{len(dataset.measured_genes())} genes, all of GO:0006281 (DNA repair) or GO:0000790 (nuclear "
        "chromatin)"
    )


def kinds_without_strains(dataset: Dataset) -> str:
    """Return how kinds of perturbation were assigned where the files name genes, not strains."""
    reduced = np.unique(dataset.table.gene[dataset.table.kind == Kind.REDUCED]).size
    return (
        "the files give no strains: a gene is reduced if it is essential and the study has no deletion "
        f"strain of it ({reduced} genes), else absent; no standard deviations"
    )


def _agreement(dataset: Dataset, other: Dataset | None, year: str) -> str:
    r, count = (math.nan, 0) if other is None else agreement(dataset.table, other.table)
    if math.isnan(r):
        return ""
    return (
        f"against the {year} release r = {r:.2f} on {count:,} shared pairs (the 2016 release probably "
        "re-scores part of the 2010 screens, and 2010 lists significant scores only)"
    )


def noise_2010(apart: Dataset, other: Dataset | None) -> str:
    """Return the agreement between strains of one gene pair, and with the release of 2016."""
    r, count = between_rows(apart)
    parts = [_agreement(apart, other, "2016")]
    if not math.isnan(r):
        parts.insert(
            0,
            f"two different alleles or strains of the same gene pair correlate with r = {r:.2f} ({count:,} "
            "comparisons; alleles differ in truth too, and only significant scores are listed: a rough "
            "guide, no bound)",
        )
    return "; ".join(part for part in parts if part)


def noise_2016(apart: Dataset, other: Dataset | None) -> str:
    """Return the agreement with the release of 2010."""
    return _agreement(apart, other, "2010")


def between_rows(dataset: Dataset) -> tuple[float, int]:
    """Return Pearson r between rows of one gene set, kinds, condition and phenotype, and their number.

    Every two such rows are compared in both orders, so that their numbering does not matter.

    Parameters
    ----------
    dataset : Dataset
        With alleles and replicates apart: what is averaged cannot be compared.

    Returns
    -------
    tuple of float and int
        r (NaN for fewer than 3 comparisons) and the number of comparisons.
    """
    t = dataset.table
    seen = ragged_ranks([t.gene, t.kind.astype(np.int64)], t.offsets)
    code = _joined([seen, t.condition, t.phenotype])
    order = np.argsort(code, kind="stable")
    group, value = code[order], t.value[order].astype(np.float64)
    left, right = [], []
    # Rows of a group are neighbours in this order: all pairs at distance 1, then at 2, up to the largest
    # group.
    for apart in range(1, int(np.unique(group, return_counts=True)[1].max())):
        same = group[apart:] == group[:-apart]
        left.append(value[apart:][same])
        right.append(value[:-apart][same])
    first, second = (np.concatenate([*side, np.zeros(0)]) for side in (left, right))
    # Each pair in both orders: the correlation must not depend on which row of the table came first.
    r = correlation(np.concatenate([first, second]), np.concatenate([second, first]), len(first))
    return r, len(first)


def _joined(columns: Sequence[Ints]) -> Ints:
    return joint([(column, int(column.max()) + 1) for column in columns])
