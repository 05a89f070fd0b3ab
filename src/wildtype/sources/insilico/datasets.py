"""The in-silico organisms and the growth of their deletion mutants: fitness, epsilon and tau by flux balance.

Legend: n genes · m mutants · p double mutants · t triple mutants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.interactions import epsilon, tau
from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable
from wildtype.organism import GeneFeatures, Metabolism, Organism
from wildtype.organism.metabolic_graphs import metabolic_graphs
from wildtype.sources.insilico.design import (
    Sizes,
    TripleDesign,
    draw_doubles,
    draw_triples,
    genes_with_flux,
    pair_codes,
    pairs_of,
)
from wildtype.sources.insilico.heterologous import FOREIGN, extend, with_foreign_genes
from wildtype.sources.insilico.models import MODELS, gene_features, read_model
from wildtype.sources.insilico.simulate import ROUND_OFF, GrowthSimulator

LETHAL = 1e-3
"""Growth below this share of the wild type's counts as none: the gene is essential."""
ORGANISMS = {"ecoli-core-foreign": "ecoli-core"}
"""Organisms that are a packaged model with foreign genes, and that model."""
DESIGNS = {
    "ecoli-core-growth": ("ecoli-core", Sizes(doubles=None, triples=4_000, array=50)),
    "ecoli-ijo1366-growth": ("ecoli-ijo1366", Sizes(doubles=40_000, triples=10_000, array=100)),
}

Floats = NDArray[np.float64]


def build_organism(name: str) -> Organism:
    """Build an in-silico organism from a model that cobra packages.

    ``ecoli-core``, ``ecoli-ijo1366``, or ``ecoli-core-foreign``: the core model whose gene index ends with
    foreign genes, absent from the wild type, that can be added. Graphs and features see the foreign reactions
    open, as if their genes were there; in the metabolism they are closed.

    Raises
    ------
    DatasetError
        If there is no in-silico organism of that name; nothing is ever downloaded.
    """
    model = read_model(ORGANISMS.get(name, name))
    metabolism, foreign = model.metabolism, ""
    if name in ORGANISMS:
        metabolism, model = extend(metabolism, closed=True), with_foreign_genes(model, name)
        foreign = f" {len({r.gene for r in FOREIGN})} foreign genes, absent from the wild type, can be added."
    graphs = metabolic_graphs(
        model.metabolism, model.genes, source=f"in-silico model {model.name}", version=model.version
    )
    singles = MutantTable.from_matrix(np.arange(len(model.genes))[:, None])
    growth = GrowthSimulator(metabolism, model.genes, processes=1).fitness(singles)
    return Organism(
        name=name,
        genes=model.genes,
        graphs=graphs,
        features=GeneFeatures(gene_features(model, graphs)),
        metabolism=metabolism,
        essential=growth < LETHAL,
        foreign=np.isin(model.genes.names, [r.gene for r in FOREIGN]) if name in ORGANISMS else None,
        description=(
            f"SIMULATED organism: {model.citation}; file sha256 {model.version}. Growth by flux balance "
            f"analysis in the model's own medium; s0001 stands for spontaneous reactions: no real gene."
            f"{foreign}"
        ),
    )


def build_growth_dataset(
    name: str,
    organism: Organism,
    *,
    processes: int | None = None,
    seed: int = 0,
    progress: bool = True,
    **sizes: float | None,
) -> Dataset:
    """Simulate the growth of single, double and triple deletion mutants.

    What is solved is kept in the cache folder in chunks, so that an interrupted build resumes; the dataset
    depends on neither the number of processes nor the state of the cache.

    Parameters
    ----------
    name : str
        ``ecoli-core-growth`` or ``ecoli-ijo1366-growth``.
    organism : Organism
        From ``build_organism``.
    processes : int or None
        Processes that solve; None: all cores, once the work is worth it.
    seed : int
        Seed of the design: which pairs, query pairs and array genes.
    progress : bool
        Whether to show a progress bar.
    **sizes
        Fields of ``Sizes`` to change: ``doubles``, ``random_share``, ``triples``, ``array``.

    Raises
    ------
    DatasetError
        If there is no such dataset or size, or the organism is another one.
    """
    metabolism, wanted = choose(name, organism, DESIGNS, sizes)
    genes, n = organism.genes, len(organism.genes)
    simulator = GrowthSimulator(metabolism, genes, processes=processes, keep=True, progress=progress)

    singles = np.arange(n)[:, None]
    f1 = simulator.fitness(MutantTable.from_matrix(singles))
    viable = f1 >= LETHAL
    flux = simulator.solver.program.wild_type.flux
    with_flux = genes_with_flux(metabolism, metabolism.gene_columns(genes), flux)

    drawn = draw_doubles(wanted, organism.graphs, viable, with_flux, seed)
    f2 = simulator.fitness(MutantTable.from_matrix(drawn))
    eps = clean(epsilon(f2, f1[drawn[:, 0]], f1[drawn[:, 1]]))
    design = draw_triples(wanted, drawn, f2 >= LETHAL, eps != 0, viable, with_flux, seed)

    growth = grow(simulator, f1, drawn, design.triples)
    return Dataset(
        name=name,
        organism=organism,
        table=growth.table(),
        phenotypes=phenotypes(name, "fitness", "epsilon", "tau"),
        targets=("epsilon",),
        excluded=design.skipped,
        single_fitness=f1.astype(np.float32),
        notes=_notes(wanted, simulator, viable, len(drawn), growth, design),
        **simulated(name, organism),
    )


@dataclass(frozen=True, eq=False)
class Growth:
    """Fitness and interactions of single, double and triple deletion mutants.

    ``doubles`` int64 [P, 2] and ``triples`` int64 [T, 3] are ascending; ``f1`` [n], ``f2`` [P], ``f3`` [T]
    fitness; ``least`` [T] the lowest fitness of a triple's three pairs; ``epsilon`` [P], ``tau`` [T]. All
    float64; every pair of a triple is among the doubles.
    """

    doubles: NDArray[np.int64]
    triples: NDArray[np.int64]
    f1: Floats
    f2: Floats
    f3: Floats
    least: Floats
    epsilon: Floats
    tau: Floats

    def table(self) -> MutantTable:
        """Return the rows of the phenotypes fitness, epsilon and tau, in this order."""
        singles = np.arange(len(self.f1))[:, None]
        parts = [
            (singles, 0, self.f1),
            (self.doubles, 0, self.f2),
            (self.triples, 0, self.f3),
            (self.doubles, 1, self.epsilon),
            (self.triples, 2, self.tau),
        ]
        return MutantTable.concatenate(
            [MutantTable.from_matrix(s, phenotype=np.full(len(s), p), value=v) for s, p, v in parts if len(s)]
        )


def grow(
    simulator: GrowthSimulator, f1: Floats, doubles: NDArray[np.int64], triples: NDArray[np.int64]
) -> Growth:
    """Simulate doubles [P, 2], triples [T, 3] and the doubles that triples need; ``f1`` [n] is known."""
    n = len(f1)
    needed = np.concatenate([triples[:, [0, 1]], triples[:, [0, 2]], triples[:, [1, 2]]])
    doubles = pairs_of(np.union1d(pair_codes(doubles, n), pair_codes(needed, n)), n)
    f2 = simulator.fitness(MutantTable.from_matrix(doubles))
    eps = clean(epsilon(f2, f1[doubles[:, 0]], f1[doubles[:, 1]]))
    f3 = simulator.fitness(MutantTable.from_matrix(triples)) if len(triples) else np.zeros(0)
    at = np.searchsorted(pair_codes(doubles, n), pair_codes(needed, n))
    pairs = f2[at].reshape(3, -1)
    taus = clean(tau(f3, *pairs, *f1[triples].T))
    return Growth(doubles, triples, f1, f2, f3, pairs.min(axis=0), eps, taus)


Wanted = TypeVar("Wanted")


def choose(
    name: str, organism: Organism, designs: Mapping[str, tuple[str, Wanted]], sizes: Mapping[str, Any]
) -> tuple[Metabolism, Wanted]:
    """Return the metabolism and the sizes of a dataset's design, with ``sizes`` changed.

    Raises
    ------
    DatasetError
        If there is no such dataset or size, or the organism is another one.
    """
    if name not in designs:
        raise DatasetError(f"there is no in-silico dataset {name!r}; known: {', '.join(designs)}")
    wanted_organism, wanted = designs[name]
    if organism.name != wanted_organism or organism.metabolism is None:
        raise DatasetError(
            f"dataset {name!r} is made of organism {wanted_organism!r}, not of {organism.name!r}"
        )
    try:
        return organism.metabolism, replace(wanted, **sizes)  # type: ignore[type-var]
    except TypeError:
        known = ", ".join(wanted.__dataclass_fields__)  # type: ignore[attr-defined]
        raise DatasetError(
            f"{', '.join(sizes)}: not all of these are sizes of {name!r}; known: {known}"
        ) from None


def simulated(name: str, organism: Organism, kinds: str = "every perturbed gene is absent") -> dict[str, Any]:
    """Return the fields that every simulated dataset has in common."""
    return {
        "policies": {
            "kinds": kinds,
            "round-off": f"fitness within {ROUND_OFF:g} of 0 or 1, and interactions within "
            f"{ROUND_OFF:g} of 0, are set to these values",
            "infeasible": "a mutant that cannot pay its maintenance has fitness 0",
        },
        "single_fitness_sd": np.zeros(len(organism.genes), np.float32),
        "single_fitness_source": f"{name}:single-fitness",
        "noise": "simulated, no measurement noise: everything is learnable in principle",
        "citation": "Simulated here by flux balance analysis of "
        + MODELS[ORGANISMS.get(organism.name, organism.name)][1],
    }


def clean(interaction: Floats) -> Floats:
    """Set interactions that are nothing but round-off to 0."""
    return np.where(np.abs(interaction) < ROUND_OFF, 0.0, interaction)


def phenotypes(name: str, *chosen: str) -> tuple[Phenotype, ...]:
    """Return the phenotypes of a simulated dataset: any of fitness, epsilon and tau."""
    simulated = "simulated by flux balance analysis"
    known = {
        "fitness": Phenotype(
            "fitness",
            source=f"{name}:fitness",
            description=f"growth rate relative to the wild type, {simulated}",
        ),
        "epsilon": Phenotype(
            "epsilon",
            unit="fitness, wild type = 1",
            source=f"{name}:epsilon",
            min_order=2,
            description=f"digenic interaction f_ab - f_a f_b, {simulated}",
        ),
        "tau": Phenotype(
            "tau",
            unit="fitness, wild type = 1",
            source=f"{name}:tau",
            min_order=3,
            description=f"trigenic interaction f_abc - f_ab f_c - f_ac f_b - f_bc f_a + 2 f_a f_b f_c, "
            f"{simulated}",
        ),
    }
    return tuple(known[phenotype] for phenotype in chosen)


def _notes(
    sizes: Sizes,
    simulator: GrowthSimulator,
    viable: NDArray[np.bool_],
    drawn: int,
    growth: Growth,
    design: TripleDesign,
) -> tuple[str, ...]:
    eps, taus = growth.epsilon, growth.tau
    if sizes.doubles is None:
        doubles = f"Doubles: all {len(eps):,} pairs of genes."
    else:
        doubles = (
            f"Doubles: {drawn:,} drawn among viable genes, {1 - sizes.random_share:.0%} of them enriched "
            f"(pairs in one reaction's rule, or both with flux in one optimum of the wild type), the other "
            f"{sizes.random_share:.0%} uniform; {len(eps) - drawn:,} more because a triple needs them."
        )
    triples = (
        f"Triples: {len(taus):,} from {len(design.queries):,} query pairs × an array of "
        f"{len(design.array):,} genes; every other query pair interacts (epsilon is not 0), the others do "
        f"not; half of the array is drawn from genes with flux in the wild type, half from all viable genes."
    )
    return (
        "SIMULATED, not measured: growth by flux balance analysis.",
        viable_note(viable),
        doubles,
        triples,
        f"Not 0: {np.mean(eps != 0):.1%} of epsilon"
        + (f" and {np.mean(taus != 0):.1%} of tau." if len(taus) else "."),
        solved_note(simulator),
    )


def viable_note(viable: NDArray[np.bool_]) -> str:
    """Return how many genes are viable singly."""
    return (
        f"{int(viable.sum()):,} of {len(viable):,} genes are viable singly, "
        f"{int((~viable).sum()):,} essential (growth below {LETHAL:g} of the wild type)."
    )


def solved_note(simulator: GrowthSimulator) -> str:
    """Return how many linear programs were solved, and how they ended."""
    counts = simulator.counts
    return (
        f"Of {counts['distinct']:,} distinct sets of dead reactions, {counts['inferred']:,} followed from a "
        f"parent and {counts['solved']:,} were solved: {counts['infeasible']:,} infeasible and "
        f"{counts['failed']:,} numerical failures, all with growth 0."
    )
