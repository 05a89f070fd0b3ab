"""The in-silico organisms and their growth datasets: fitness, epsilon and tau by flux balance.

Legend: n genes · m mutants · p double mutants · t triple mutants.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable
from wildtype.organism import GeneFeatures, Organism
from wildtype.organism.metabolic_graphs import metabolic_graphs
from wildtype.phenotypes import Dataset, Phenotype
from wildtype.phenotypes.interactions import epsilon, tau
from wildtype.sources.insilico.design import (
    Sizes,
    TripleDesign,
    draw_doubles,
    draw_triples,
    genes_with_flux,
    pair_codes,
    pairs_of,
)
from wildtype.sources.insilico.features import gene_features
from wildtype.sources.insilico.models import MODELS, read_model
from wildtype.sources.insilico.simulate import ROUND_OFF, GrowthSimulator

LETHAL = 1e-3
"""Growth below this share of the wild type's counts as none: the gene is essential."""
DESIGNS = {
    "ecoli-core-growth": ("ecoli-core", Sizes(doubles=None, triples=4_000, array=50)),
    "ecoli-ijo1366-growth": ("ecoli-ijo1366", Sizes(doubles=40_000, triples=10_000, array=100)),
}

Floats = NDArray[np.float64]


def build_organism(name: str) -> Organism:
    """Build the in-silico organism ``ecoli-core`` or ``ecoli-ijo1366`` from the model that cobra packages.

    Raises
    ------
    DatasetError
        If there is no in-silico organism of that name; nothing is ever downloaded.
    """
    model = read_model(name)
    graphs = metabolic_graphs(
        model.metabolism, model.genes, source=f"in-silico model {model.name}", version=model.version
    )
    singles = MutantTable.from_matrix(np.arange(len(model.genes))[:, None])
    growth = GrowthSimulator(model.metabolism, model.genes, processes=1).fitness(singles)
    return Organism(
        name=name,
        genes=model.genes,
        graphs=graphs,
        features=GeneFeatures(gene_features(model, graphs)),
        metabolism=model.metabolism,
        essential=growth < LETHAL,
        description=(
            f"SIMULATED organism: {model.citation}; file sha256 {model.version}. Growth by flux balance "
            f"analysis in the model's own medium; s0001 stands for spontaneous reactions: no real gene."
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
    if name not in DESIGNS:
        raise DatasetError(f"there is no in-silico dataset {name!r}; known: {', '.join(DESIGNS)}")
    if organism.name != DESIGNS[name][0] or organism.metabolism is None:
        raise DatasetError(
            f"dataset {name!r} is made of organism {DESIGNS[name][0]!r}, not of {organism.name!r}"
        )
    try:
        wanted = replace(DESIGNS[name][1], **sizes)  # type: ignore[arg-type]
    except TypeError:
        known = ", ".join(Sizes.__dataclass_fields__)
        raise DatasetError(
            f"{', '.join(sizes)}: not all of these are sizes of {name!r}; known: {known}"
        ) from None
    metabolism, genes, n = organism.metabolism, organism.genes, len(organism.genes)
    simulator = GrowthSimulator(metabolism, genes, processes=processes, keep=True, progress=progress)

    singles = np.arange(n)[:, None]
    f1 = simulator.fitness(MutantTable.from_matrix(singles))
    viable = f1 >= LETHAL
    flux = simulator.solver.program.wild_type.flux
    with_flux = genes_with_flux(metabolism, metabolism.gene_columns(genes), flux)

    drawn = draw_doubles(wanted, organism.graphs, viable, with_flux, seed)
    f2 = simulator.fitness(MutantTable.from_matrix(drawn))
    eps = _clean(epsilon(f2, f1[drawn[:, 0]], f1[drawn[:, 1]]))
    design = draw_triples(wanted, drawn, f2 >= LETHAL, eps != 0, viable, with_flux, seed)

    t = design.triples
    needed = np.concatenate([t[:, [0, 1]], t[:, [0, 2]], t[:, [1, 2]]])
    doubles = pairs_of(np.union1d(pair_codes(drawn, n), pair_codes(needed, n)), n)
    f2 = simulator.fitness(MutantTable.from_matrix(doubles))
    eps = _clean(epsilon(f2, f1[doubles[:, 0]], f1[doubles[:, 1]]))
    f3 = simulator.fitness(MutantTable.from_matrix(t)) if len(t) else np.zeros(0)
    at = np.searchsorted(pair_codes(doubles, n), pair_codes(needed, n))
    f_ab, f_ac, f_bc = f2[at].reshape(3, -1)
    taus = _clean(tau(f3, f_ab, f_ac, f_bc, *f1[t].T))

    parts = [(singles, 0, f1), (doubles, 0, f2), (t, 0, f3), (doubles, 1, eps), (t, 2, taus)]
    table = MutantTable.concatenate(
        [MutantTable.from_matrix(s, phenotype=np.full(len(s), p), value=v) for s, p, v in parts if len(s)]
    )
    return Dataset(
        name=name,
        organism=organism,
        table=table,
        phenotypes=_phenotypes(name),
        targets=("epsilon",),
        excluded=design.skipped,
        policies={
            "kinds": "every perturbed gene is absent",
            "round-off": f"fitness within {ROUND_OFF:g} of 0 or 1, and interactions within "
            f"{ROUND_OFF:g} of 0, are set to these values",
            "infeasible": "a mutant that cannot pay its maintenance has fitness 0",
        },
        single_fitness=f1.astype(np.float32),
        single_fitness_sd=np.zeros(n, np.float32),
        single_fitness_source=f"{name}:single-fitness",
        noise="simulated, no measurement noise: everything is learnable in principle",
        notes=_notes(wanted, simulator, viable, len(drawn), eps, taus, design),
        citation=f"Simulated here by flux balance analysis of {MODELS[organism.name][1]}",
    )


def _clean(interaction: Floats) -> Floats:
    """Set interactions that are nothing but round-off to 0."""
    return np.where(np.abs(interaction) < ROUND_OFF, 0.0, interaction)


def _phenotypes(name: str) -> tuple[Phenotype, ...]:
    simulated = "simulated by flux balance analysis"
    return (
        Phenotype(
            "fitness",
            source=f"{name}:fitness",
            description=f"growth rate relative to the wild type, {simulated}",
        ),
        Phenotype(
            "epsilon",
            unit="fitness, wild type = 1",
            source=f"{name}:epsilon",
            min_order=2,
            description=f"digenic interaction f_ab - f_a f_b, {simulated}",
        ),
        Phenotype(
            "tau",
            unit="fitness, wild type = 1",
            source=f"{name}:tau",
            min_order=3,
            description=f"trigenic interaction f_abc - f_ab f_c - f_ac f_b - f_bc f_a + 2 f_a f_b f_c, "
            f"{simulated}",
        ),
    )


def _notes(
    sizes: Sizes,
    simulator: GrowthSimulator,
    viable: NDArray[np.bool_],
    drawn: int,
    eps: Floats,
    taus: Floats,
    design: TripleDesign,
) -> tuple[str, ...]:
    counts = simulator.counts
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
        f"{int(viable.sum()):,} of {len(viable):,} genes are viable singly, "
        f"{int((~viable).sum()):,} essential (growth below {LETHAL:g} of the wild type).",
        doubles,
        triples,
        f"Not 0: {np.mean(eps != 0):.1%} of epsilon"
        + (f" and {np.mean(taus != 0):.1%} of tau." if len(taus) else "."),
        f"Of {counts['distinct']:,} distinct sets of dead reactions, {counts['inferred']:,} followed from a "
        f"parent and {counts['solved']:,} were solved: {counts['infeasible']:,} infeasible and "
        f"{counts['failed']:,} numerical failures, all with growth 0.",
    )
