"""Datasets of triple mutants that are enriched for trigenic interactions, with all their pairs and singles.

Legend: n genes · p pairs · t triples.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.datasets.interactions import epsilon
from wildtype.mutants import MutantTable
from wildtype.organism import Organism
from wildtype.sources.insilico.datasets import (
    LETHAL,
    Growth,
    choose,
    clean,
    grow,
    phenotypes,
    simulated,
    solved_note,
    viable_note,
)
from wildtype.sources.insilico.design import enriched_pool, genes_with_flux, pairs_of
from wildtype.sources.insilico.simulate import ROUND_OFF, GrowthSimulator
from wildtype.sources.insilico.triples import (
    STRATA,
    DrawnTriples,
    TripleSizes,
    draw_enriched_triples,
    neighbour_triples,
    rerouted_triples,
    rule_triples,
)

DESIGNS = {
    "ecoli-ijo1366-triples": ("ecoli-ijo1366", TripleSizes()),
    "ecoli-core-triples": ("ecoli-core", TripleSizes(600, 1_500, 1_500, 1_000, 500)),
}
INTERACTS = 0.01
"""Absolute epsilon from which the strata ``neighbours`` and ``query`` take a pair for interacting."""
STRONG = 0.05
"""Absolute tau from which the notes call a triple strong."""


def build_triple_dataset(
    name: str,
    organism: Organism,
    *,
    processes: int | None = None,
    seed: int = 0,
    progress: bool = True,
    **sizes: int,
) -> Dataset:
    """Simulate triple deletion mutants that are enriched for tau other than 0.

    All singles, the pool of pairs that may well interact (``enriched_pool``) and every pair of a triple are
    in the dataset, so that tau, and what follows from pairs alone, can be computed. Which triples are drawn
    depends on gene rules, singles and doubles only.

    Parameters
    ----------
    name : str
        A key of ``DESIGNS``.
    organism : Organism
        From ``build_organism``.
    processes, seed, progress
        As in ``build_growth_dataset``.
    **sizes
        Fields of ``TripleSizes`` to change.

    Raises
    ------
    DatasetError
        If there is no such dataset or size, or the organism is another one.
    """
    metabolism, wanted = choose(name, organism, DESIGNS, sizes)
    genes, n = organism.genes, len(organism.genes)
    simulator = GrowthSimulator(metabolism, genes, processes=processes, keep=True, progress=progress)
    singles = MutantTable.from_matrix(np.arange(n)[:, None])
    f1 = simulator.fitness(singles)
    viable = f1 >= LETHAL
    columns = metabolism.gene_columns(genes)
    with_flux = genes_with_flux(metabolism, columns, simulator.solver.program.wild_type.flux)

    pairs = pairs_of(enriched_pool(organism.graphs, viable, with_flux), n)
    doubles = MutantTable.from_matrix(pairs)
    f2 = simulator.fitness(doubles)
    eps = clean(epsilon(f2, f1[pairs[:, 0]], f1[pairs[:, 1]]))
    hot = np.abs(eps) > INTERACTS
    alone = simulator.active(singles)
    seen = alone[pairs[:, 0]] | alone[pairs[:, 1]] | simulator.active(MutantTable.from_sets([[]]))
    fresh = simulator.active(doubles) & ~seen & (f2 >= LETHAL)[:, None]
    lost = metabolism.dead_reactions(genes, singles).tocsc()
    lost_by = np.split(lost.indices.astype(np.int64), lost.indptr[1:-1])
    listed = {
        "rule": rule_triples(metabolism, columns, viable),
        "neighbours": neighbour_triples(pairs, hot),
        "rerouted": rerouted_triples(pairs, fresh, lost_by, viable),
    }
    drawn = draw_enriched_triples(wanted, listed, pairs[hot], viable, with_flux, seed)
    growth = grow(simulator, f1, pairs, drawn.triples)
    return Dataset(
        name=name,
        organism=organism,
        table=growth.table(),
        phenotypes=(
            *phenotypes(name, "fitness", "epsilon"),
            replace(phenotypes(name, "tau")[0], strong=STRONG),
        ),
        targets=("tau",),
        single_fitness=f1.astype(np.float32),
        notes=(
            "SIMULATED, not measured: growth by flux balance analysis.",
            viable_note(viable),
            f"Doubles: all {len(pairs):,} pairs of viable genes that stand in one reaction's rule or both "
            f"carry flux in one optimum of the wild type; {len(growth.doubles) - len(pairs):,} more because "
            f"a triple needs them. Not 0: {np.mean(growth.epsilon != 0):.1%} of epsilon.",
            *_triple_notes(growth, drawn),
            solved_note(simulator),
        ),
        **simulated(name, organism),
    )


def _triple_notes(growth: Growth, drawn: DrawnTriples) -> tuple[str, ...]:
    def shares(rows: NDArray[np.bool_]) -> str:
        tau = growth.tau[rows]
        below = growth.f3[rows] < growth.least[rows] - ROUND_OFF
        return (
            f"{int(rows.sum()):,} triples: tau is not 0 in {np.mean(tau != 0):.1%}, above {STRONG:g} in "
            f"absolute value in {np.mean(np.abs(tau) > STRONG):.1%}; {np.mean(below):.1%} grow more slowly "
            f"than their slowest pair"
        )

    notes = [
        "Triples: drawn by gene rules, singles and doubles; no triple was simulated before it was drawn.",
        f"All {shares(np.ones(len(growth.tau), bool))}.",
    ]
    for number, (name, meaning) in enumerate(STRATA.items()):
        rows = drawn.stratum == number
        if rows.any():
            of = f" of {drawn.possible[name]:,}" if name in drawn.possible else ""
            notes.append(f"Stratum {name} ({meaning}){of}: {shares(rows)}.")
    return tuple(notes)
