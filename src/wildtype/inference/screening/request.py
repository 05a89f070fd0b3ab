"""From the names that a person gives to the screen that is asked: `make_screen`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, GeneSetError
from wildtype.inference.screening.best import DIRECTIONS
from wildtype.inference.screening.constraints import Constraints, lethal_pairs
from wildtype.inference.screening.designs import Combinations, Crossed, Design
from wildtype.inference.screening.stream import PIECE, Screen
from wildtype.inference.sets import to_table
from wildtype.mutants import MutantTable

if TYPE_CHECKING:
    from wildtype.inference.predictor import Predictor

METABOLIC = "metabolic"
"""Stands for all genes of the organism's metabolism where genes are required."""
RESERVE = 50
"""How many times as many mutants are kept where some are passed over for others."""


@dataclass(frozen=True)
class ScreenRequest:
    """What a person wants of a screen; see ``Predictor.screen``."""

    order: int | None = None
    among: Sequence[str] | None = None
    queries: Sequence[Sequence[str]] | None = None
    top: int = 100
    direction: str = "both"
    phenotypes: Sequence[str] | None = None
    condition: str | None = None
    exclude: Sequence[str] = ()
    exclude_essential: bool = False
    require: Sequence[str] = ()
    unmeasured: bool = False
    exclude_synthetic_lethal: bool = False
    min_linkage_kb: float = 0.0
    max_per_gene: int | None = None


def make_screen(predictor: Predictor, wish: ScreenRequest) -> tuple[Screen, frozenset[int]]:
    """Return the screen, and the genes of its queries, which may stand in any number of rows.

    Raises
    ------
    ConfigError, GeneSetError, UnknownGeneError, AmbiguousGeneError
        See ``Predictor.screen``.
    """
    outputs = _outputs(predictor, wish)
    queries = None
    if wish.queries is not None:
        queries = to_table(wish.queries, predictor.genes, predictor.kinds, what="query")
    gene, kind = _candidates(predictor, wish)
    design: Design
    if queries is None:
        order = 2 if wish.order is None else wish.order
        design, exempt = Combinations(len(gene), order), frozenset[int]()
    else:
        design, gene, kind = _crossed(queries, gene, kind, wish.order)
        exempt = frozenset(queries.gene.tolist())
    for output in outputs:
        least = predictor.checkpoint.phenotypes[output]["min_order"]
        if design.order < least:
            raise ConfigError(
                f"{predictor.phenotypes[output]} needs at least {least} genes, and mutants of this screen "
                f"have {design.order}: take a higher order, or other phenotypes"
            )
    if wish.max_per_gene is not None and wish.max_per_gene < 1:
        raise ConfigError(f"max_per_gene={wish.max_per_gene}: let every gene stand in at least one row")
    if wish.direction != "both" and wish.direction not in DIRECTIONS:
        raise ConfigError(f"direction={wish.direction!r} is not known; known: {', '.join(DIRECTIONS)}, both")
    if wish.top < 1:
        raise ConfigError(f"top={wish.top}: ask for at least one mutant")
    directions = DIRECTIONS if wish.direction == "both" else (wish.direction,)
    keep = wish.top if wish.max_per_gene is None else wish.top * RESERVE
    condition = predictor.condition(wish.condition)
    return Screen(
        design, gene, kind, _constraints(predictor, wish), outputs, directions, keep, condition, PIECE
    ), exempt


def _outputs(predictor: Predictor, wish: ScreenRequest) -> tuple[int, ...]:
    columns = [p for p, output in enumerate(predictor.checkpoint.outputs) if output.form != "gene"]
    names = [predictor.phenotypes[p] for p in columns]
    if wish.phenotypes is None:
        if not columns:
            raise ConfigError("the model has a number per gene only, by which mutants cannot be ranked")
        return tuple(columns)
    for name in wish.phenotypes:
        if name not in names:
            raise ConfigError(
                f"the model ranks by no phenotype {name!r}; it predicts {', '.join(names) or 'none'}"
            )
    return tuple(columns[names.index(name)] for name in dict.fromkeys(wish.phenotypes))


def _candidates(predictor: Predictor, wish: ScreenRequest) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the genes to choose from, and what is done to them; each once."""
    genes, essential = predictor.genes, predictor.checkpoint.known.essential
    if wish.among is None:
        gene, kind = np.arange(len(genes)), predictor.kinds
    else:
        if isinstance(wish.among, str) or not len(wish.among):
            raise GeneSetError("among names no genes: give a list of them, or leave it out for all")
        table = to_table([[name] for name in wish.among], genes, predictor.kinds, what="candidate")
        _, first = np.unique(np.stack([table.gene, table.kind]), axis=1, return_index=True)
        gene, kind = table.gene[np.sort(first)], table.kind[np.sort(first)]
    out = np.zeros(len(genes), bool)
    for name in wish.exclude:
        out[genes.find(name)] = True
    if wish.exclude_essential:
        out |= essential
    gene, kind = gene[~out[gene]], kind[~out[gene]]
    if not len(gene):
        raise GeneSetError("no candidate is left: exclude fewer genes")
    return gene, kind


def _crossed(
    queries: MutantTable, gene: NDArray[np.int64], kind: NDArray[np.uint8], order: int | None
) -> tuple[Crossed, NDArray[np.int64], NDArray[np.uint8]]:
    """Return a design over the candidates and the members of the queries, each once."""
    sizes = np.unique(queries.order)
    if len(sizes) != 1:
        raise GeneSetError(f"queries have {sizes.min()} to {sizes.max()} genes: screen one size at a time")
    size = int(sizes[0])
    if order is not None and order != size + 1:
        raise ConfigError(f"order={order}, but queries of {size} crossed with one gene each make {size + 1}")
    both = np.stack([np.append(gene, queries.gene), np.append(kind, queries.kind)])
    members, of = np.unique(both, axis=1, return_inverse=True)
    of = of.reshape(-1)
    found = np.sort(of[len(gene) :].reshape(-1, size), axis=1)
    _, first = np.unique(found, axis=0, return_index=True)
    design = Crossed(found[np.sort(first)], of[: len(gene)])
    return design, members[0].astype(np.int64), members[1].astype(np.uint8)


def _constraints(predictor: Predictor, wish: ScreenRequest) -> Constraints:
    known, genes = predictor.checkpoint.known, predictor.genes
    required = None
    if wish.require:
        required = np.zeros(len(genes), bool)
        for name in wish.require:
            if name == METABOLIC:
                required |= predictor.metabolic
            else:
                required[genes.find(name)] = True
    if wish.min_linkage_kb < 0:
        raise ConfigError(f"min_linkage_kb={wish.min_linkage_kb:g}: a distance is not negative")
    if wish.min_linkage_kb and known.coordinates is None:
        raise ConfigError(
            "it is not known where the genes of this model lie: build its organism and train again with this "
            "version, or leave out min_linkage_kb"
        )
    measured = None
    if wish.unmeasured:
        chosen = [known.phenotypes.index(predictor.phenotypes[p]) for p in _outputs(predictor, wish)]
        measured = known.table.take(np.flatnonzero(np.isin(known.table.phenotype, chosen)))
    lethal = lethal_pairs(known) if wish.exclude_synthetic_lethal else None
    return Constraints(required, wish.min_linkage_kb, known.coordinates, lethal, measured)
