"""The cost of evidence on a random organism of any size: its index, and lookups in it.

Legend: n genes · e edges of all relations · m measured mutants · q mutants asked about · k perturbed genes of
each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np

from wildtype.errors import ConfigError
from wildtype.profiling.evidence_problem import EvidenceProblem
from wildtype.profiling.machine import PeakMemory, peak_in_fresh_process
from wildtype.profiling.scaling import FACTORS, ScalingReport, scaling_of
from wildtype.profiling.synthetic_problem import Measure, Trial, check_edges, check_positive

DENSEST = 0.5
"""Largest share of all gene sets that may be drawn: sets that repeat are dropped, and drawn anew."""
WARM_UP = 100
LOOKUPS = ("lookup", "whole tokens")
"""Names of `EvidenceProblem.lookups`."""


@dataclass(frozen=True)
class EvidenceProblemSizes:
    """Sizes of an organism, of what was measured of it, and of a lookup.

    Attributes
    ----------
    genes, relations, edges : int
        n, gene graphs, and directed edges e of all of them together, about as many as are drawn.
    measured : int
        Measured mutants m, each another gene set.
    batch_size, perturbed : int
        Mutants q that are looked up at once, none of them measured, and perturbed genes k of each mutant.
    """

    AXES: ClassVar[tuple[str, ...]] = ("measured", "genes", "perturbed")

    genes: int = 1000
    relations: int = 4
    edges: int = 40_000
    measured: int = 50_000
    batch_size: int = 64
    perturbed: int = 3

    def check(self) -> None:
        """Refuse sizes that cannot be drawn: raises ``ConfigError``, naming the size and the remedy."""
        check_positive(self)
        check_edges(self.genes, self.relations, self.edges)
        if self.edges < self.genes * self.relations:
            raise ConfigError(
                f"edges={self.edges} leave genes={self.genes} without a neighbour in each of "
                f"relations={self.relations}: take at least {self.genes * self.relations} edges"
            )
        if self.perturbed > self.genes:
            raise ConfigError(f"perturbed={self.perturbed}: it must be at most genes={self.genes}")
        # As floats: the number of sets of many genes is beyond every integer of an array.
        sets = np.prod([(self.genes - i) / (i + 1) for i in range(self.perturbed)])
        if self.measured + self.batch_size > DENSEST * sets:
            raise ConfigError(
                f"measured={self.measured} and batch_size={self.batch_size} are too many: of {sets:.3g} sets "
                f"of perturbed={self.perturbed} of genes={self.genes} a half may be drawn; take fewer, or "
                f"more genes"
            )

    def draw(self, seed: int) -> EvidenceProblem:
        """Return a problem of these sizes, in which every gene has as many neighbours in each relation."""
        return EvidenceProblem.draw(
            self.genes,
            self.measured,
            self.batch_size,
            relations=self.relations,
            neighbours=self.edges // (self.genes * self.relations),
            perturbed=self.perturbed,
            seed=seed,
        )


def evidence_costs(
    *, seed: int = 0, memory: bool = False, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Measure[EvidenceProblemSizes]]:
    """Return what measures the cost of evidence, by name.

    ``index``: an index of the measured mutants is made, with what a first lookup makes of it. The others are
    `EvidenceProblem.lookups`.

    Parameters
    ----------
    seed : int
        Of all that is drawn.
    memory : bool
        Also measure the peak memory of an index and a lookup at every point, in a new process.
    clock : callable
        Gives the time, seconds.
    """

    @cache
    def drawn(sizes: EvidenceProblemSizes) -> EvidenceProblem:
        return sizes.draw(seed)

    @cache
    def lookups(sizes: EvidenceProblemSizes) -> dict[str, Callable[[], object]]:
        return drawn(sizes).lookups()

    def lookup(name: str, sizes: EvidenceProblemSizes) -> Callable[[], object]:
        return lookups(sizes)[name]

    @cache
    def peak(sizes: EvidenceProblemSizes) -> float:
        return peak_in_fresh_process("wildtype.profiling.evidence_scaling", asdict(sizes), seed)

    def measure(
        work: Callable[[EvidenceProblemSizes], Callable[[], object]],
    ) -> Measure[EvidenceProblemSizes]:
        def trial(sizes: EvidenceProblemSizes) -> Trial:
            run = work(sizes)
            run()  # compiles loops

            def seconds() -> float:
                start = clock()
                run()
                return clock() - start

            edges = sum(relation.nnz for relation in drawn(sizes).relations)
            return Trial(seconds, edges, 0, peak(sizes) if memory else None)

        return trial

    return {
        "index": measure(lambda sizes: partial(_ready, drawn(sizes))),
        **{name: measure(partial(lookup, name)) for name in LOOKUPS},
    }


def _ready(problem: EvidenceProblem) -> None:
    """Make an index, and ask it about one mutant: some of it is made only then."""
    one = problem.queries.take([0])
    problem.index().part().tokens_of(one.gene, one.offsets, one.condition)


def evidence_scaling(
    base: EvidenceProblemSizes,
    *,
    axes: Sequence[str] = (),
    factors: Sequence[float] = FACTORS,
    repeats: int = 3,
    seed: int = 0,
    memory: bool = False,
) -> list[ScalingReport]:
    """Measure each of `evidence_costs` along axes of size; errors as in `scaling_of`."""
    return [
        scaling_of(
            f"evidence: {name}",
            base,
            measure,
            EvidenceProblemSizes.check,
            axes=axes,
            factors=factors,
            repeats=repeats,
        )
        for name, measure in evidence_costs(seed=seed, memory=memory).items()
    ]


def peak_above_import(sizes: dict[str, int], seed: int) -> float:
    """Return the MiB that an index and a lookup in it add to this process, which has made a small one before.

    What was measured is not counted: it is there before.
    """
    wanted = EvidenceProblemSizes(**sizes)
    small = {
        "genes": max(WARM_UP, wanted.perturbed),
        "edges": wanted.relations,
        "measured": 1,
        "batch_size": 1,
    }
    _ready(EvidenceProblemSizes(**{**sizes, **small}).draw(seed))
    problem = wanted.draw(seed)
    with PeakMemory() as found:
        problem.lookups()["whole tokens"]()
    return found.peak - found.before
