"""The grids of the screens of 2010 and 2016: all pairs of their strains, and which crosses are unknown.

The strains are those of the screen's table in the store, where names of genes are resolved already: an old
ORF name would else become a strain of its own whose crosses seem never to be listed.

Legend: M measurements · m crosses · q query strains · a array strains · n genes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

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
from wildtype.mutants.selection import Selection
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.publishers import owners
from wildtype.sources.row_filter import Flags, Ints, RowFilter
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.screens.costanzo2010 import (
    INTERMEDIATE_CUT,
    STRINGENT_CUT,
    STRINGENT_TABLE,
    CutOff,
)
from wildtype.sources.yeast.screens.parts import EPSILON

LINKED_KB = 200.0
"""Largest gap between linked genes: below it the screen lists almost no cross, since recombinants are few."""
LARGEST_P = 0.05
"""As printed: the lists round p-values below 0.05 up to it."""
UNLISTED_MEAN, UNLISTED_SD = -0.007, 0.046
"""Epsilon of 2016 of crosses that 2010 measured and did not list (pairs of the DCell files); 5 % < -0.08."""
LINKED = "cross of linked genes"
INCOMPLETE = "cross of genes of which another pair of strains has no score"
SUPPRESSED = "cross of a strain with a suppressor mutation"
RESERVED_CROSS = "cross set aside for a blind test"
RESERVED_GENE = "gene set aside for a blind test"
NEGATIVE, POSITIVE = "negative", "positive"
LISTED, STRINGENT = f"{EPSILON.name}_listed", f"{EPSILON.name}_stringent"
"""Phenotypes that follow from the grid and the listed crosses."""
_QUERY = "query "


@dataclass(frozen=True, eq=False)
class Crosses:
    """The two strains of each of M measurements of a screen, on a gene index.

    Attributes
    ----------
    gene : int32 [M, 2]
        Query and array gene; -1 where the index has no such gene.
    kind : uint8 [M, 2]
        ``Kind`` of both strains.
    """

    gene: NDArray[np.int32]
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
        position = match_genes(m.genes, genes).position.astype(np.int32)
        gene, kind = position[m.gene].reshape(-1, 2), m.kind.reshape(-1, 2)
        # ORF, ORF_tsq1 (2010) or ORF_sn1 (2016): what follows the ORF is of the strain.
        orfs = [name.removeprefix(_QUERY).partition("_")[0] for name in m.replicates]
        query = match_genes(orfs, genes).position.astype(np.int32)[m.replicate]
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

    @property
    def known(self) -> Flags:
        """Measurements [M] of two genes of the index."""
        return np.asarray((self.gene >= 0).all(1))

    def among(self, genes: Ints) -> Flags:
        """Return the measurements [M] of which a strain is of any of some genes."""
        return np.asarray(np.isin(self.gene, genes).any(1))

    def strains(self, side: int, rows: Flags) -> tuple[Ints, NDArray[np.uint8]]:
        """Return gene and kind of the distinct strains of a side (0 query, 1 array) in some rows [M]."""
        kinds = len(Kind)
        code = np.unique(self.gene[rows, side].astype(np.int64) * kinds + self.kind[rows, side])
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
    incomplete : int64
        Ascending pair codes of genes of which some, but not all pairs of strains have a score.
    """

    grid: ScreenGrid
    linked: Ints
    reserved: Ints
    gone: Ints
    incomplete: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


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
    dense: bool = False,
) -> Screened:
    """Return which crosses the screen of 2010 measured, or one whose table has every score.

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
    dense : bool
        Whether rows of all scores are kept, as of the screen of 2016: a pair of strains without one is then
        unknown, and never a cross that counts as not listed.

    Raises
    ------
    DatasetError
        If the organism has no coordinates, or ``measured`` is not of pairs of strains.
    """
    genes, n = organism.genes, len(organism.genes)
    crosses = Crosses.of(measured, genes)
    apart, gone = (np.zeros(0, np.int64),) * 2 if reserved is None else set_aside(reserved, genes)
    left = crosses.known & ~crosses.among(gone)
    query, array = crosses.strains(0, left), crosses.strains(1, left)
    grid = ScreenGrid(n, *query, *array)
    linked = linked_crosses(grid, organism, linked_kb)
    of_query, of_array = (np.isin(np.arange(n), side[0]) for side in (query, array))
    left_out = np.union1d(linked, apart)
    a, b = left_out // n, left_out % n
    # Only crosses of the grid: the others are not known in any case, and need no code.
    unknown = left_out[(of_query[a] & of_array[b]) | (of_array[a] & of_query[b])]
    incomplete = np.zeros(0, np.int64)
    if dense:
        silent_pairs, incomplete = _without_score(grid, crosses, left)
        unknown = np.union1d(unknown, silent_pairs)
    elif not significant(measured).all():
        # The raw table has a row for every cross that gave a score; n² flags of pairs are 44 MB.
        silent = of_query[:, None] & of_array[None, :]
        silent |= silent.T
        silent[crosses.gene[left, 0], crosses.gene[left, 1]] = False
        a, b = np.nonzero(np.triu(silent & silent.T, 1))
        unknown = np.union1d(unknown, pair_codes(a, b, n))
    return Screened(grid.without(unknown), linked, apart, gone, incomplete)


def _without_score(grid: ScreenGrid, crosses: Crosses, rows: Flags) -> tuple[Ints, Ints]:
    """Return pair codes of genes with a pair of strains without a score, and of those with one beside it.

    A grid knows of pairs of genes only: where one of several pairs of strains has no score, none is known.
    """
    number, gene = grid.strain_numbers, grid.strains[0]
    at = number[crosses.gene[rows], crosses.kind[rows]]
    scored = np.zeros((len(gene), len(gene)), bool)
    scored[at[:, 0], at[:, 1]] = scored[at[:, 1], at[:, 0]] = True

    def codes(flags: Flags) -> Ints:
        a, b = np.nonzero(np.triu(flags))
        return np.unique(pair_codes(gene[a], gene[b], grid.genes))

    silent = codes(grid.crosses() & ~scored)
    return silent, np.intersect1d(silent, codes(scored))


def set_aside(reserved: Measurements, genes: GeneIndex) -> tuple[Ints, Ints]:
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
    here, (left, right) = crosses.known, crosses.gene.T.astype(np.int64)
    code = pair_codes(left, right, len(genes))
    used = RowFilter(len(measured))
    used.drop(RESERVED_GENE, crosses.among(screened.gone) & here)
    used.drop(RESERVED_CROSS, contains(screened.reserved, code) & here)
    used.drop(LINKED, contains(screened.linked, code) & here)
    used.drop(INCOMPLETE, contains(screened.incomplete, code) & here)
    return _kept(measured, used, "crosses whose result is known")


def without_suppressors(measured: Measurements) -> tuple[Measurements, StageReport]:
    """Return the measurements of two mutations: a strain with a suppressor is no strain of a grid."""
    used = RowFilter(len(measured))
    used.drop(SUPPRESSED, np.diff(measured.offsets) != 2)
    return _kept(measured, used, "pairs of strains")


def unreserved(
    measured: Measurements, reserved: Measurements, genes: GeneIndex, neutral: Sequence[str] = ()
) -> tuple[Measurements, StageReport]:
    """Return the measurements of mutants that are not set aside, and the counts of the others by reason.

    Parameters
    ----------
    measured : Measurements
        Of any mutants, under the names of genes of today: older names are resolved before.
    reserved : Measurements
        As `costanzo2010.read_reserved` gives them.
    genes : GeneIndex
        Mutants of a gene that it does not have are left for the stages to drop.
    neutral : sequence of str
        Loci that are no gene of a mutant: a control query and an array are a pair.
    """
    m, (pairs, gone) = measured, set_aside(reserved, genes)
    gene, row = match_genes(m.genes, genes).position[m.gene], m.row
    # Strains are not asked for, nor which was the query: a pair of genes is set aside in every study.
    real = ~np.isin(gene, genes.find_all(neutral)) if neutral else np.ones(len(gene), bool)
    known = np.bincount(row, gene < 0, minlength=len(m)) == 0
    two = np.bincount(row, real, minlength=len(m)) == 2
    ends = gene[real & two[row]].reshape(-1, 2).astype(np.int64)
    of_pair = np.zeros(len(m), bool)
    of_pair[two] = contains(pairs, pair_codes(ends[:, 0], ends[:, 1], len(genes)))
    used = RowFilter(len(m))
    used.drop(RESERVED_GENE, (np.bincount(row, np.isin(gene, gone) & real, minlength=len(m)) > 0) & known)
    used.drop(RESERVED_CROSS, of_pair & known)
    return _kept(m, used, "crosses that are not set aside")


def _kept(measured: Measurements, used: RowFilter, policy: str) -> tuple[Measurements, StageReport]:
    kept = measured if used.left.all() else measured.take(used.left)
    return kept, StageReport("raw", "grid", policy, used.rows, len(kept), dropped=used.dropped)


def cut_of(files: Iterable[str]) -> CutOff:
    """Return the cut-offs of the listed crosses that were read from some files, by their names.

    The raw table is cut as the intermediate list is.
    """
    stringent = any(remote == STRINGENT_TABLE for file in files for _, remote in owners(file))
    return STRINGENT_CUT if stringent else INTERMEDIATE_CUT


def selection_of(cut: CutOff) -> Selection:
    """Return the rule of a list of the screen, and what is known of crosses that it leaves out."""
    return Selection(
        negative=cut.negative,
        positive=cut.positive,
        p=LARGEST_P,
        unlisted_mean=UNLISTED_MEAN,
        unlisted_sd=UNLISTED_SD,
        unlisted_source="in the 2016 screen of the same laboratory",
    )


def with_grid(
    dataset: Dataset, grid: ScreenGrid, cut: CutOff = INTERMEDIATE_CUT, *, dense: bool = False
) -> Dataset:
    """Return a dataset of listed epsilon as that of a whole screen: with its grid and five phenotypes.

    Epsilon has the rows; of a cross that is not listed it is taken to be 0. The classes and the effect of
    listed crosses, at ``cut`` (the cut-offs of the list) and at the stringent cut-offs, follow from rows and
    grid, and have no rows. With ``dense`` every cross has a row: its class needs a value beyond ``cut``, and
    nothing is given that the cross is listed.
    """
    at = dataset.phenotype_index(EPSILON.name)
    effect = replace(dataset.phenotypes[at], of_cross="effect")
    signed = {
        NEGATIVE: (f"<= {cut.negative:g}", Selection(negative=cut.negative, p=LARGEST_P)),
        POSITIVE: (f">= {cut.positive:g}", Selection(positive=cut.positive, p=LARGEST_P)),
    }
    classes = tuple(
        Phenotype(
            name=name,
            unit="1 beyond the cut-off, 0 not" if dense else "1 listed, 0 not",
            source=effect.source,
            min_order=effect.min_order,
            strong=0.5,
            description=f"whether the cross {'has' if dense else 'is listed with'} epsilon {rule}",
            form="class",
            of_cross=name,
            selection=selection,
        )
        for name, (rule, selection) in signed.items()
    )
    given = {LISTED: (cut, "listed"), STRINGENT: (STRINGENT_CUT, "listed at the stringent cut-off")}
    listed = tuple(
        replace(
            effect,
            name=name,
            description=f"epsilon of a cross, given that it is {what}",
            of_cross="listed",
            selection=selection_of(beyond),
        )
        for name, (beyond, what) in given.items()
        if not dense
    )
    phenotypes = (*dataset.phenotypes[:at], effect, *dataset.phenotypes[at + 1 :], *classes, *listed)
    targets = (EPSILON.name, NEGATIVE, POSITIVE, *(phenotype.name for phenotype in listed))
    return replace(dataset, phenotypes=phenotypes, targets=targets, grid=grid)
