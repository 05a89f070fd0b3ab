"""The grid of the screen of 2010: every query strain with every array strain, and which crosses are unknown.

The strains are those of the screen's table in the store, where names of genes are resolved already: an old
ORF name would else become a strain of its own whose crosses seem never to be listed.

Legend: M measurements · m crosses · q query strains · a array strains · n genes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import StageReport
from wildtype.datasets.stages.convert import EFFECT
from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.mutants.grid import ScreenGrid, contains, pair_codes
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.rows import Flags, Ints, RowFilter
from wildtype.sources.yeast.screens.costanzo2010 import INTERMEDIATE_CUT, parse_strain
from wildtype.sources.yeast.screens.parts import EPSILON

LINKED_KB = 200.0
"""Largest gap between linked genes: below it the screen lists almost no cross, since recombinants are few."""
LARGEST_P = 0.05
"""As printed: the lists round p-values below 0.05 up to it."""
LINKED = "cross of linked genes"
RESERVED_CROSS = "cross set aside for a blind test"
RESERVED_GENE = "gene set aside for a blind test"
NEGATIVE, POSITIVE, LISTED = "negative", "positive", f"{EPSILON.name}_listed"
"""Phenotypes that follow from the grid and the listed crosses."""
_QUERY = "query "


@dataclass(frozen=True, eq=False)
class Crosses:
    """The two strains of each of M measurements of a screen, on a gene index.

    Attributes
    ----------
    gene : int64 [M, 2]
        Query and array gene; -1 where the index has no such gene.
    kind : uint8 [M, 2]
        ``Kind`` of both strains.
    """

    gene: Ints
    kind: NDArray[np.uint8]

    @classmethod
    def of(cls, measured: Measurements, genes: GeneIndex) -> Crosses:
        """Return the strains of measurements of pairs whose replicate names the query strain.

        Raises
        ------
        DatasetError
            If a measurement is not of two genes, or its replicate names no strain of either.
        """
        m = measured
        if (np.diff(m.offsets) != 2).any():
            raise DatasetError(
                "a grid is made from pairs of strains, received a measurement of other mutants"
            )
        position = match_genes(m.genes, genes).position
        gene, kind = position[m.gene].reshape(-1, 2), m.kind.reshape(-1, 2)
        strains = [parse_strain(name.removeprefix(_QUERY)) for name in m.replicates]
        orfs = [found[0].orfs[0] if found else "" for found in strains]
        query = match_genes(orfs, genes).position[m.replicate]
        # The perturbations of a mutant have no order: the strain that the replicate names is the query.
        second = gene[:, 1] == query
        wrong = ~second & (gene[:, 0] != query)
        if wrong.any():
            name = m.replicates[m.replicate[int(wrong.argmax())]]
            raise DatasetError(
                f"the replicate {name!r} names no gene of its pair, expected its query strain: read the "
                "study again"
            )
        gene[second], kind = gene[second][:, ::-1], kind.copy()
        kind[second] = kind[second][:, ::-1]
        seen = np.zeros(max(EFFECT) + 1, np.uint8)
        for recorded, effect in EFFECT.items():
            seen[recorded] = effect
        return cls(gene, seen[kind])

    def strains(self, side: int, rows: Flags) -> tuple[Ints, NDArray[np.uint8]]:
        """Return gene and kind of the distinct strains of a side (0 query, 1 array) in some rows [M]."""
        kinds = len(Kind)
        code = np.unique(self.gene[rows, side] * kinds + self.kind[rows, side])
        return code // kinds, (code % kinds).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Screened:
    """The grid of a screen, and why crosses are unknown.

    Attributes
    ----------
    grid : ScreenGrid
        Every query strain with every array strain; unknown are all crosses below, and those without a score.
    linked, reserved : int64
        Ascending pair codes of crosses of linked genes, and of those set aside.
    gone : int64
        Genes set aside with all their crosses: none of their strains is in the grid.
    """

    grid: ScreenGrid
    linked: Ints
    reserved: Ints
    gone: Ints


def significant(measured: Measurements) -> Flags:
    """Return which scores [M] the intermediate list of the screen has."""
    value = measured.value
    beyond = (value <= INTERMEDIATE_CUT.negative) | (value >= INTERMEDIATE_CUT.positive)
    return np.asarray(beyond & (measured.p <= LARGEST_P))


def grid_2010(
    measured: Measurements,
    organism: Organism,
    reserved: Measurements | None = None,
    *,
    linked_kb: float = LINKED_KB,
) -> Screened:
    """Return which crosses the screen of 2010 measured.

    Parameters
    ----------
    measured : Measurements
        Epsilon of the screen as `costanzo2010.read` gives it: a list, whose strains span the grid, or the raw
        table, in which a cross without a score is one whose result is not known.
    organism : Organism
        Its gene index is the grid's; coordinates say which genes are linked.
    reserved : Measurements, optional
        As `costanzo2010.read_reserved` gives them; without them nothing is set aside.
    linked_kb : float
        Largest gap between linked genes.

    Raises
    ------
    DatasetError
        If the organism has no coordinates, or ``measured`` is not of pairs of strains.
    """
    genes, n = organism.genes, len(organism.genes)
    crosses = Crosses.of(measured, genes)
    set_aside, gone = (np.zeros(0, np.int64),) * 2 if reserved is None else _set_aside(reserved, genes)
    left = np.asarray((crosses.gene >= 0).all(1) & ~np.isin(crosses.gene, gone).any(1))
    query, array = crosses.strains(0, left), crosses.strains(1, left)
    grid = ScreenGrid(n, *query, *array)
    linked = linked_crosses(grid, organism, linked_kb)
    of_query, of_array = (np.isin(np.arange(n), side[0]) for side in (query, array))
    left_out = np.union1d(linked, set_aside)
    a, b = left_out // n, left_out % n
    # Only crosses of the grid: the others are not known in any case, and need no code.
    unknown = left_out[(of_query[a] & of_array[b]) | (of_array[a] & of_query[b])]
    if not significant(measured).all():
        # The raw table has a row for every cross that gave a score; n² flags of pairs are 44 MB.
        silent = of_query[:, None] & of_array[None, :]
        silent |= silent.T
        silent[crosses.gene[left, 0], crosses.gene[left, 1]] = False
        a, b = np.nonzero(np.triu(silent & silent.T, 1))
        unknown = np.union1d(unknown, pair_codes(a, b, n))
    return Screened(grid.without(unknown), linked, set_aside, gone)


def _set_aside(reserved: Measurements, genes: GeneIndex) -> tuple[Ints, Ints]:
    """Return the pair codes of crosses, and the genes, that are set aside; each ascending."""
    position, size = match_genes(reserved.genes, genes).position, np.diff(reserved.offsets)
    gene = position[reserved.gene]
    of_gene = np.unique(gene[np.repeat(size, size) == 1])
    pair = gene[np.repeat(size, size) == 2].reshape(-1, 2)
    pair = pair[(pair >= 0).all(1)]
    return np.unique(pair_codes(pair[:, 0], pair[:, 1], len(genes))), of_gene[of_gene >= 0]


def linked_crosses(grid: ScreenGrid, organism: Organism, linked_kb: float = LINKED_KB) -> Ints:
    """Return the ascending pair codes of genes of the grid that are at most ``linked_kb`` apart.

    A gene whose place is not known is linked to none. Raises ``DatasetError`` if the organism has no
    coordinates.
    """
    if organism.coordinates is None:
        raise DatasetError(
            f"organism {organism.name!r} has no coordinates, by which linked genes are found: build it again "
            "with this version"
        )
    gene = np.union1d(grid.query_gene, grid.array_gene)
    place = organism.coordinates
    found = []
    for chromosome in np.unique(place.chromosome[gene][place.known[gene]]).tolist():
        on = gene[place.chromosome[gene] == chromosome]
        i, j = np.triu_indices(len(on), 1)
        near = place.distance(on[i], on[j]) <= linked_kb
        found.append(pair_codes(on[i][near], on[j][near], grid.genes))
    return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


def within(measured: Measurements, screened: Screened, genes: GeneIndex) -> tuple[Measurements, StageReport]:
    """Return the measurements whose cross is known, and the counts of the others by reason.

    Pairs of a gene that the index does not have are left for the stages to drop.
    """
    crosses = Crosses.of(measured, genes)
    here = np.asarray((crosses.gene >= 0).all(1))
    code = pair_codes(crosses.gene[:, 0], crosses.gene[:, 1], len(genes))
    used = RowFilter(len(measured))
    used.drop(RESERVED_GENE, np.asarray(np.isin(crosses.gene, screened.gone).any(1) & here))
    used.drop(RESERVED_CROSS, contains(screened.reserved, code) & here)
    used.drop(LINKED, contains(screened.linked, code) & here)
    kept = measured.take(used.left)
    report = StageReport(
        "raw", "grid", "crosses whose result is known", used.rows, len(kept), dropped=used.dropped
    )
    return kept, report


def with_grid(dataset: Dataset, grid: ScreenGrid) -> Dataset:
    """Return a dataset of listed epsilon as that of a whole screen: with its grid and four phenotypes.

    Epsilon has the rows; of a cross that is not listed it is taken to be 0. The classes and the effect of
    listed crosses follow from rows and grid, and have no rows.
    """
    at = dataset.phenotype_index(EPSILON.name)
    effect = replace(dataset.phenotypes[at], of_cross="effect")
    of_list = {
        NEGATIVE: f"whether the cross is listed with epsilon <= {INTERMEDIATE_CUT.negative:g}",
        POSITIVE: f"whether the cross is listed with epsilon >= {INTERMEDIATE_CUT.positive:g}",
    }
    classes = tuple(
        Phenotype(
            name=name,
            unit="1 listed, 0 not",
            source=effect.source,
            min_order=effect.min_order,
            strong=0.5,
            description=description,
            form="class",
            of_cross=name,
        )
        for name, description in of_list.items()
    )
    listed = replace(
        effect, name=LISTED, description="epsilon of a cross, given that it is listed", of_cross="listed"
    )
    phenotypes = (*dataset.phenotypes[:at], effect, *dataset.phenotypes[at + 1 :], *classes, listed)
    targets = (EPSILON.name, NEGATIVE, POSITIVE, LISTED)
    return replace(dataset, phenotypes=phenotypes, targets=targets, grid=grid)
