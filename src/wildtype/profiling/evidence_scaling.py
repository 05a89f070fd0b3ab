"""The cost of evidence on a random organism of any size: its index, and lookups in it.

Legend: n genes · e edges of all relations · m measured mutants · q mutants asked about · k perturbed genes of
each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import gene_words, keys_of
from wildtype.nn.threads import loops
from wildtype.profiling.machine import PeakMemory, peak_in_fresh_process
from wildtype.profiling.scaling import FACTORS, ScalingReport, scaling_of
from wildtype.profiling.speed import random_organism
from wildtype.profiling.synthetic_problem import Measure, Trial, check_edges, check_positive
from wildtype.seeds import generator

DENSEST = 0.5
"""Largest share of all gene sets that may be drawn: sets that repeat are dropped, and drawn anew."""
WARM_UP = 100


@dataclass(frozen=True)
class EvidenceProblemSizes:
    """Sizes of an organism, of what was measured of it, and of a lookup.

    Attributes
    ----------
    genes, relations, edges : int
        n, gene graphs, and directed edges e of all of them together.
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


@dataclass(frozen=True)
class EvidenceProblem:
    """Genes, what was measured of them, and mutants that are asked about."""

    similarity: GeneSimilarity
    measured: MutantTable
    asked: MutantTable
    edges: int

    @classmethod
    def draw(cls, sizes: EvidenceProblemSizes, seed: int) -> EvidenceProblem:
        """Draw relations with random edges, and gene sets with random values."""
        draw = generator(seed, "evidence scaling")
        organism = random_organism(sizes.genes, sizes.relations, sizes.edges, draw)
        table = _distinct_sets(draw, sizes)
        similarity = GeneSimilarity.of(organism)
        first = np.arange(sizes.measured)
        rest = np.arange(sizes.measured, len(table))
        edges = sum(relation.nnz for relation in organism.graphs.values())
        return cls(similarity, table.take(first), table.take(rest), edges)

    def index(self) -> EvidenceIndex:
        """Return a new index of what was measured, ready for lookups."""
        index = EvidenceIndex(self.similarity, self.measured, 1, run=loops)
        index.part().tokens_of(*_arrays(self.asked.take([0])))  # makes what is made when it is first asked
        return index


def _distinct_sets(draw: np.random.Generator, sizes: EvidenceProblemSizes) -> MutantTable:
    count, k = sizes.measured + sizes.batch_size, sizes.perturbed
    words, found = gene_words(sizes.genes), np.zeros((0, k), np.int64)
    while len(found) < count:
        more = draw.integers(sizes.genes, size=(count + count // 4 + 16, k))
        ordered = np.sort(more, axis=1)
        found = np.concatenate([found, more[(np.diff(ordered, axis=1) > 0).all(axis=1)]])
        offsets = np.arange(0, found.size + 1, k)
        _, first = np.unique(keys_of(found.reshape(-1), offsets, words), return_index=True)
        found = found[np.sort(first)]
    return MutantTable.from_matrix(found[:count], value=draw.standard_normal(count))


def _arrays(asked: MutantTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return asked.gene, asked.offsets, asked.condition


def evidence_costs(
    *, seed: int = 0, memory: bool = False, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Measure[EvidenceProblemSizes]]:
    """Return what measures the cost of evidence, by name.

    ``index``: an index of the measured mutants is made. ``one edit``: the measured mutants one edit away from
    all mutants asked about. ``tokens``: all their evidence, similarities included.

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
        return EvidenceProblem.draw(sizes, seed)

    @cache
    def made(sizes: EvidenceProblemSizes) -> EvidenceIndex:
        return drawn(sizes).index()

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

            return Trial(seconds, drawn(sizes).edges, 0, peak(sizes) if memory else None)

        return trial

    def index(sizes: EvidenceProblemSizes) -> Callable[[], object]:
        return drawn(sizes).index

    def one_edit(sizes: EvidenceProblemSizes) -> Callable[[], object]:
        part, asked = made(sizes).part(), _arrays(drawn(sizes).asked)
        return lambda: part.one_edit(*asked)

    def tokens(sizes: EvidenceProblemSizes) -> Callable[[], object]:
        part, asked = made(sizes).part(), _arrays(drawn(sizes).asked)
        return lambda: part.tokens_of(*asked)

    return {"index": measure(index), "one edit": measure(one_edit), "tokens": measure(tokens)}


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
    EvidenceProblem.draw(EvidenceProblemSizes(**{**sizes, **small}), seed).index()
    problem = EvidenceProblem.draw(wanted, seed)
    with PeakMemory() as found:
        part = problem.index().part()
        part.tokens_of(*_arrays(problem.asked))
    return found.peak - found.before
