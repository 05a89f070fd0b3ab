"""Datasets of every kind of perturbation at several doses: deletion, reduction, overexpression, addition.

A *state* is what was done to one gene: a kind and, where it has one, a dose.

Legend: n genes · s states of all genes · p pairs of states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.datasets.interactions import epsilon
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import Organism
from wildtype.seeds import generator
from wildtype.sources.insilico.datasets import choose, clean, phenotypes, simulated
from wildtype.sources.insilico.design import enriched_pool, genes_with_flux, pairs_of
from wildtype.sources.insilico.heterologous import FOREIGN
from wildtype.sources.insilico.perturb import PerturbationSimulator

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DoseSizes:
    """Doses, and how many double mutants.

    Attributes
    ----------
    reduced, overexpressed : tuple of float
        Doses of every native gene: below 1, above 1.
    doubles : int
        Pairs of states of different genes.
    random_share : float
        Share of the pairs that is uniform over all pairs of states; the others are enriched.

    Raises
    ------
    ConfigError
        If a dose, a number or a share is out of range.
    """

    reduced: tuple[float, ...] = (0.2, 0.5, 0.8)
    overexpressed: tuple[float, ...] = (1.2, 1.5, 2.0)
    doubles: int = 12_000
    random_share: float = 0.25

    def __post_init__(self) -> None:
        for dose in self.reduced:
            if not 0.0 < dose < 1.0:
                raise ConfigError(f"reduced dose {dose:g} must be between 0 and 1")
        for dose in self.overexpressed:
            if not 1.0 < dose < np.inf:
                raise ConfigError(f"overexpressed dose {dose:g} must be above 1")
        if self.doubles != int(self.doubles) or self.doubles < 1:
            raise ConfigError(f"doubles is {self.doubles}: give a whole number of mutants")
        if not 0.0 <= self.random_share <= 1.0:
            raise ConfigError(f"random_share is {self.random_share}: give a share between 0 and 1")


DESIGNS = {"ecoli-core-doses": ("ecoli-core-foreign", DoseSizes())}


@dataclass(frozen=True, eq=False)
class States:
    """All states: ``gene`` int64 [S] ascending, ``kind`` uint8 [S], ``dose`` float32 [S] (NaN: none)."""

    gene: Ints
    kind: NDArray[np.uint8]
    dose: NDArray[np.float32]

    @classmethod
    def of(cls, organism: Organism, sizes: DoseSizes) -> States:
        """Return every state of every gene: foreign genes are added, native ones all else."""
        foreign = {reaction.gene for reaction in FOREIGN}
        native = [
            (Kind.ABSENT, np.nan),
            *((Kind.REDUCED, dose) for dose in sizes.reduced),
            *((Kind.OVEREXPRESSED, dose) for dose in sizes.overexpressed),
        ]
        listed = [
            (gene, kind, dose)
            for gene, name in enumerate(organism.genes.names)
            for kind, dose in ([(Kind.ADDED, np.nan)] if name in foreign else native)
        ]
        gene, kind, dose = zip(*listed, strict=True)
        return cls(np.array(gene, np.int64), np.array(kind, np.uint8), np.array(dose, np.float32))

    def table(self, sets: Ints, phenotype: int, value: NDArray[np.float64] | None = None) -> MutantTable:
        """Return mutants of states [M, k]."""
        return MutantTable.from_matrix(
            self.gene[sets],
            kind=self.kind[sets].reshape(-1),
            dose=self.dose[sets].reshape(-1),
            phenotype=np.full(len(sets), phenotype),
            value=value,
        )


def draw_state_pairs(
    sizes: DoseSizes,
    states: States,
    organism: Organism,
    viable: NDArray[np.bool_],
    with_flux: NDArray[np.bool_],
    seed: int,
) -> Ints:
    """Return the pairs of states to simulate, int64 [P, 2], ascending.

    Enriched ones are of genes in ``enriched_pool``, or of a foreign gene and one with flux in the wild type
    or an essential one.

    Raises
    ------
    DatasetError
        If there are fewer pairs than asked for.
    """
    n, s = len(organism.genes), len(states.gene)
    pool = np.zeros((n, n), bool)
    a, b = pairs_of(enriched_pool(organism.graphs, np.ones(n, bool), with_flux), n).T
    pool[a, b] = True
    foreign = np.bincount(states.gene[states.kind == Kind.ADDED], minlength=n) > 0
    pool |= np.outer(with_flux | ~viable, foreign)
    left, right = np.triu_indices(s, 1)
    differ = states.gene[left] != states.gene[right]
    left, right = left[differ], right[differ]
    hot = np.flatnonzero(pool[states.gene[left], states.gene[right]])
    rng = generator(seed, "in-silico doses")
    enriched = rng.permutation(hot)[: round(sizes.doubles * (1.0 - sizes.random_share))]
    rest = np.setdiff1d(np.arange(left.size), enriched)
    chosen = np.concatenate([enriched, rng.permutation(rest)[: sizes.doubles - enriched.size]])
    if chosen.size < sizes.doubles:
        raise DatasetError(
            f"{sizes.doubles:,} doubles cannot be drawn from {left.size:,} pairs of states: ask for fewer"
        )
    chosen.sort()
    return np.stack([left[chosen], right[chosen]], axis=1)


def build_dose_dataset(
    name: str,
    organism: Organism,
    *,
    processes: int | None = None,
    seed: int = 0,
    progress: bool = True,
    **sizes: float | tuple[float, ...],
) -> Dataset:
    """Simulate single and double mutants of every kind at several doses.

    Epsilon is relative to the product of the singles of the same kinds and doses, all of which are in the
    dataset. What kinds and doses do to the fluxes is defined in ``dosage``.

    Parameters
    ----------
    name : str
        A key of ``DESIGNS``.
    organism : Organism
        From ``build_organism``.
    processes, seed, progress
        As in ``build_growth_dataset``.
    **sizes
        Fields of ``DoseSizes`` to change.

    Raises
    ------
    DatasetError
        If there is no such dataset or size, or the organism is another one.
    """
    metabolism, wanted = choose(name, organism, DESIGNS, sizes)
    simulator = PerturbationSimulator(
        metabolism, organism.genes, processes=processes, keep=True, progress=progress
    )
    states = States.of(organism, wanted)
    singles = np.arange(len(states.gene))[:, None]
    f1 = simulator.fitness(states.table(singles, 0))
    deleted = np.full(len(organism.genes), np.nan)
    absent = states.kind == Kind.ABSENT
    deleted[states.gene[absent]] = f1[absent]
    columns = metabolism.gene_columns(organism.genes)
    with_flux = genes_with_flux(metabolism, columns, simulator.wild_type_flux)
    doubles = draw_state_pairs(wanted, states, organism, deleted > 0, with_flux, seed)
    f2 = simulator.fitness(states.table(doubles, 0))
    eps = clean(epsilon(f2, f1[doubles[:, 0]], f1[doubles[:, 1]]))
    return Dataset(
        name=name,
        organism=organism,
        table=MutantTable.concatenate(
            [states.table(singles, 0, f1), states.table(doubles, 0, f2), states.table(doubles, 1, eps)]
        ),
        phenotypes=phenotypes(name, "fitness", "epsilon"),
        targets=("fitness",),
        single_fitness=deleted.astype(np.float32),
        notes=_notes(wanted, states, simulator, f1, doubles, eps),
        **simulated(
            name,
            organism,
            "relative to the wild type's flux of parsimonious flux balance: reduced caps it, overexpressed "
            "forces it, by the dose; absent closes reactions by their rules; added opens foreign reactions",
        ),
    )


def _notes(
    sizes: DoseSizes,
    states: States,
    simulator: PerturbationSimulator,
    f1: NDArray[np.float64],
    doubles: Ints,
    eps: NDArray[np.float64],
) -> tuple[str, ...]:
    def effect(kind: Kind, dose: float) -> str:
        rows = (states.kind == kind) & (np.isnan(states.dose) if np.isnan(dose) else states.dose == dose)
        named = kind.name.lower() + ("" if np.isnan(dose) else f" {dose:g}")
        fell, rose = int((f1[rows] < 1).sum()), int((f1[rows] > 1).sum())
        return f"{named}: {fell} of {int(rows.sum())} below the wild type, {rose} above it"

    pairs = zip(states.kind.tolist(), states.dose.tolist(), strict=True)
    kinds = {(kind, str(dose)): effect(Kind(kind), dose) for kind, dose in pairs}
    counts = simulator.counts
    return (
        "SIMULATED, not measured: growth by flux balance analysis.",
        "Amounts: a complex has that of its scarcest subunit. A reaction is capped at the sum over its "
        "complexes (from 1 on nothing limits it) and forced to their mean if it is above 1, both times the "
        "wild type's flux; reactions without flux in the wild type are closed with their last complex and "
        "otherwise left alone. A forced flux that is impossible gives fitness 0.",
        f"Singles: {'; '.join(kinds.values())}.",
        f"Doubles: {len(doubles):,} pairs of states of different genes, {1 - sizes.random_share:.0%} of them "
        f"enriched (genes in one reaction's rule, both with flux in the wild type, or a foreign gene and one "
        f"with flux or essential), the others uniform. Not 0: {np.mean(eps != 0):.1%} of epsilon.",
        f"Of {counts['mutants']:,} mutants {counts['solved']:,} changes of bounds differ and were "
        f"solved: {counts['infeasible']:,} infeasible and {counts['failed']:,} numerical failures, all with "
        f"growth 0.",
    )
