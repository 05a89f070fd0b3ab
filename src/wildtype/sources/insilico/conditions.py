"""Media as conditions: growth of the same deletion mutants on other carbon sources or without oxygen.

Legend: n genes · p pairs · m media.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.interactions import epsilon
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import MutantTable
from wildtype.organism import Metabolism, Organism
from wildtype.sources.insilico.datasets import LETHAL, choose, clean, phenotypes, simulated
from wildtype.sources.insilico.design import Sizes, draw_doubles, genes_with_flux
from wildtype.sources.insilico.simulate import GrowthSimulator

CARBON = 60.0
"""Uptake of carbon atoms that every medium allows (mmol per gram dry weight and hour): that of 10 glucose."""


@dataclass(frozen=True)
class Medium:
    """A growth medium, as changes of the model's default medium.

    Attributes
    ----------
    name : str
        Name of the condition.
    uptake : mapping of str to float
        Largest uptake by exchange reaction, in mmol per gram dry weight and hour; 0 removes the nutrient.
    """

    name: str
    uptake: Mapping[str, float] = field(default_factory=dict)


def _instead(name: str, exchange: str, carbons: int) -> Medium:
    """Return a medium with as much carbon from another source as the model's own has from glucose."""
    return Medium(name, {"EX_glc__D_e": 0.0, exchange: CARBON / carbons})


MEDIA = (
    Medium("glucose aerobic"),
    Medium("glucose anaerobic", {"EX_o2_e": 0.0}),
    _instead("pyruvate aerobic", "EX_pyr_e", 3),
    _instead("lactate aerobic", "EX_lac__D_e", 3),
    _instead("acetate aerobic", "EX_ac_e", 2),
    _instead("ethanol aerobic", "EX_etoh_e", 2),
    _instead("succinate aerobic", "EX_succ_e", 4),
    _instead("glutamate aerobic", "EX_glu__L_e", 5),
)
"""The media of ``ecoli-core-media``; the first is the reference, the model's own."""
DESIGNS = {"ecoli-core-media": ("ecoli-core", Sizes(doubles=3_000, triples=0))}


def in_medium(metabolism: Metabolism, medium: Medium) -> Metabolism:
    """Return a metabolism with the bounds of a medium.

    Raises
    ------
    ConfigError
        If the medium names an exchange reaction that there is not, or an uptake below 0.
    """
    lower = metabolism.lower.copy()
    for exchange, rate in medium.uptake.items():
        if exchange not in metabolism.reactions:
            raise ConfigError(
                f"medium {medium.name!r} names {exchange!r}, which is no reaction of the metabolism"
            )
        if not 0.0 <= rate < np.inf:
            raise ConfigError(f"medium {medium.name!r}: uptake {rate:g} by {exchange} must be 0 or more")
        # Exchange reactions run out of the cell, so that uptake is a negative flux.
        lower[metabolism.reactions.index(exchange)] = -rate
    return replace(metabolism, lower=lower)


def simulator_in(
    metabolism: Metabolism,
    organism: Organism,
    medium: Medium,
    *,
    processes: int | None = None,
    progress: bool = False,
) -> GrowthSimulator:
    """Return the simulator of deletion mutants in a medium; fitness is relative to the wild type in it.

    Raises
    ------
    DatasetError
        If the wild type does not grow in the medium: nothing can be relative to it.
    ConfigError
        As ``in_medium``.
    """
    there = in_medium(metabolism, medium)
    try:
        return GrowthSimulator(there, organism.genes, processes=processes, keep=True, progress=progress)
    except DatasetError:
        raise DatasetError(
            f"medium {medium.name!r} is refused: the wild type of {organism.name!r} does not grow in it, so "
            f"that no mutant has a relative growth; leave it out or allow other uptake"
        ) from None


def build_media_dataset(
    name: str,
    organism: Organism,
    *,
    media: Sequence[Medium] = MEDIA,
    processes: int | None = None,
    seed: int = 0,
    progress: bool = True,
    **sizes: float | None,
) -> Dataset:
    """Simulate the growth of the same single and double deletion mutants in several media.

    Fitness is relative to the wild type in the same medium, epsilon to the singles in it.

    Parameters
    ----------
    name : str
        A key of ``DESIGNS``.
    organism : Organism
        From ``build_organism``.
    media : sequence of Medium
        Conditions; the first is the reference.
    processes, seed, progress
        As in ``build_growth_dataset``.
    **sizes
        ``doubles`` and ``random_share`` of ``Sizes``.

    Raises
    ------
    DatasetError
        If there is no such dataset or size, the organism is another one, or the wild type does not grow in a
        medium.
    ConfigError
        If a medium names an exchange reaction that there is not, two have one name, or there is none.
    """
    metabolism, wanted = choose(name, organism, DESIGNS, sizes)
    names = [medium.name for medium in media]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"media {', '.join(names) or 'none'}: give at least one, and every name once")
    n = len(organism.genes)
    singles = np.arange(n)[:, None]
    simulators = [
        simulator_in(metabolism, organism, medium, processes=processes, progress=progress) for medium in media
    ]
    f1 = [simulator.fitness(MutantTable.from_matrix(singles)) for simulator in simulators]
    # Viability in the reference medium decides for all, so that every medium has the same pairs.
    viable = f1[0] >= LETHAL
    columns = metabolism.gene_columns(organism.genes)
    with_flux = np.any(
        [genes_with_flux(metabolism, columns, s.solver.program.wild_type.flux) for s in simulators], axis=0
    )
    doubles = draw_doubles(wanted, organism.graphs, viable, with_flux, seed)
    parts, shares = [], []
    for c, (simulator, alone) in enumerate(zip(simulators, f1, strict=True)):
        f2 = simulator.fitness(MutantTable.from_matrix(doubles))
        eps = clean(epsilon(f2, alone[doubles[:, 0]], alone[doubles[:, 1]]))
        shares.append(float(np.mean(eps != 0)))
        for genes, phenotype, value in ((singles, 0, alone), (doubles, 0, f2), (doubles, 1, eps)):
            parts.append(
                MutantTable.from_matrix(
                    genes,
                    condition=np.full(len(genes), c),
                    phenotype=np.full(len(genes), phenotype),
                    value=value,
                )
            )
    growth = "; ".join(
        f"{medium} {s.wild_type_growth:.3f}/h ({int((alone < LETHAL).sum())} genes essential, epsilon not 0 "
        f"in {share:.1%})"
        for medium, s, alone, share in zip(names, simulators, f1, shares, strict=True)
    )
    return Dataset(
        name=name,
        organism=organism,
        table=MutantTable.concatenate(parts),
        phenotypes=phenotypes(name, "fitness", "epsilon"),
        conditions=tuple(names),
        targets=("fitness",),
        single_fitness=f1[0].astype(np.float32),
        notes=(
            "SIMULATED, not measured: growth by flux balance analysis.",
            "Conditions are media; fitness is relative to the wild type in the same medium. The "
            f"single-mutant fitness beside the table is that in {names[0]}.",
            f"Growth of the wild type: {growth}.",
            f"Doubles: the same {len(doubles):,} in every medium, {1 - wanted.random_share:.0%} of them "
            f"enriched (pairs in one reaction's rule, or both with flux in the wild type in any of the "
            f"media), the others uniform; of genes that are viable singly in {names[0]}.",
        ),
        **simulated(name, organism),
    )
