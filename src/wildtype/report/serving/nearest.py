"""Which measured mutants are nearest to a mutant, and what was measured of them.

Where a model reads evidence they are what it looks up: mutants one edit away, or two where a gene is replaced
twice. Of a model that reads none they are found by the genes they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.kernels import EDITS
from wildtype.evidence.reference import PARTS
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import Kind, MutantTable

SAME, TWICE = "the same genes", "two replaced"
ORDER = (SAME, "removed", "replaced", "added", TWICE)
"""How a measured mutant differs, nearest first."""
SHOWN = 4
"""Mutants that are shown of each kind of difference."""

Genes = tuple[int, ...]


@dataclass(frozen=True)
class Edit:
    """How a measured mutant differs from the one asked about.

    Attributes
    ----------
    how : str
        One of ``ORDER``.
    genes : tuple of int
        Of the measured mutant, ascending.
    old, new : tuple of int
        Genes that it lacks, and that it has instead or besides.
    """

    how: str
    genes: Genes
    old: Genes = ()
    new: Genes = ()


@dataclass(frozen=True)
class Value:
    """What was measured of a mutant: the mean of ``count`` rows, and the parts of the split they were in."""

    value: float
    count: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """A measured mutant: how it differs, how alike the genes exchanged are, and its values by phenotype.

    ``likeness`` is the cosine of the genes that replace each other, the least where two do; NaN where it is
    not known or nothing was replaced.
    """

    edit: Edit
    kinds: tuple[str, ...]
    condition: int
    likeness: float
    values: dict[str, Value]


def nearest(checkpoint: Checkpoint, mutant: MutantTable, shown: int = SHOWN) -> list[Measured]:
    """Return the measured mutants nearest to the first row of a table, and itself if it was measured.

    Of each kind of difference there are up to ``shown``. What was measured of the mutant itself stands there
    for every condition, that asked about first; of another mutant only for that one, where there is any.
    """
    asked = tuple(mutant.gene[: mutant.offsets[1]].tolist())
    condition = int(mutant.condition[0])
    index = checkpoint.evidence
    reads = index is not None and index.looks_up and len(index.table) > 0
    edits = _looked_up(checkpoint, mutant, asked) if reads else _sharing(checkpoint, asked)
    chosen: dict[Genes, Edit] = {asked: Edit(SAME, asked)}
    room = dict.fromkeys(ORDER, shown)
    for edit in edits:
        if edit.genes not in chosen and room[edit.how]:
            room[edit.how] -= 1
            chosen[edit.genes] = edit
    ranked = sorted(chosen.values(), key=lambda edit: ORDER.index(edit.how))
    return list(_with_values(checkpoint, ranked, condition))


def _looked_up(checkpoint: Checkpoint, mutant: MutantTable, asked: Genes) -> Iterator[Edit]:
    """Give the edits that the model itself reads, the most telling first."""
    assert checkpoint.evidence is not None
    tokens = checkpoint.evidence.tokens_of(mutant.take([0]))
    one = (x[0].tolist() for x in (tokens.one.mask, tokens.one.edit, tokens.one.old, tokens.one.new))
    for there, edit, old, new in zip(*one, strict=True):
        if there:
            yield _edited(EDITS[edit], asked, [old] if old >= 0 else [], [new] if new >= 0 else [])
    two = (x[0].tolist() for x in (tokens.two.mask, tokens.two.old, tokens.two.new))
    for there, old, new in zip(*two, strict=True):
        if there:
            yield _edited(TWICE, asked, old, new)


def _edited(how: str, asked: Genes, old: list[int], new: list[int]) -> Edit:
    return Edit(how, tuple(sorted((set(asked) - set(old)) | set(new))), tuple(old), tuple(new))


def _sharing(checkpoint: Checkpoint, asked: Genes) -> Iterator[Edit]:
    """Give the measured sets that share all genes but one, those with the most extreme values first."""
    table = checkpoint.known.table
    among = np.zeros(len(checkpoint.genes), bool)
    among[list(asked)] = True
    until = np.concatenate([[0], np.cumsum(among[table.gene])])
    shared = np.diff(until[table.offsets])
    k, order = len(asked), table.order
    hits = {
        "removed": (shared == k - 1) & (order == k - 1) & (k > 1),
        "replaced": (shared == k - 1) & (order == k) & (k > 1),
        "added": (shared == k) & (order == k + 1),
    }
    for how, hit in hits.items():
        rows = np.flatnonzero(hit)
        for row in rows[np.argsort(-_extremeness(checkpoint, rows), kind="stable")].tolist():
            genes = table.gene[table.offsets[row] : table.offsets[row + 1]].tolist()
            yield Edit(how, tuple(genes), tuple(set(asked) - set(genes)), tuple(set(genes) - set(asked)))


def _extremeness(checkpoint: Checkpoint, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many sd of the training labels known values are from their mean; 0 if not predicted."""
    known = checkpoint.known
    mean, sd = np.zeros(len(known.phenotypes)), np.full(len(known.phenotypes), np.inf)
    at = [known.phenotypes.index(name) for name in checkpoint.names]
    mean[at], sd[at] = checkpoint.mean, np.maximum(np.abs(checkpoint.sd), 1e-9)
    of = known.table.phenotype[rows]
    return np.asarray(np.nan_to_num(np.abs(known.table.value[rows] - mean[of]) / sd[of]))


def _with_values(checkpoint: Checkpoint, edits: Iterable[Edit], condition: int) -> Iterator[Measured]:
    """Give what was measured of the sets, kinds and conditions apart; sets without a value are left out."""
    edits = list(edits)
    known = checkpoint.known
    rows = np.flatnonzero(known.table.inside([gene for edit in edits for gene in edit.genes]))
    table, part = known.table.take(rows), known.part[rows]
    found: dict[Genes, dict[tuple[int, Genes], dict[str, list[int]]]] = {edit.genes: {} for edit in edits}
    for row, genes in enumerate(table.sets()):
        if genes in found and np.isfinite(table.value[row]):
            kinds = tuple(table.kind[table.offsets[row] : table.offsets[row + 1]].tolist())
            cell = found[genes].setdefault((int(table.condition[row]), kinds), {})
            cell.setdefault(known.phenotypes[table.phenotype[row]], []).append(row)
    for edit in edits:
        apart = found[edit.genes]
        order = sorted(apart, key=lambda key: (key[0] != condition, key))
        if edit.how != SAME:
            order = [key for key in order if key[0] == order[0][0]]
        for at, kinds in order:
            values = {
                name: Value(
                    float(table.value[own].mean(dtype=np.float64)),
                    len(own),
                    tuple(PARTS[i] for i in np.unique(part[own])),
                )
                for name, own in apart[at, kinds].items()
            }
            done = tuple(Kind(kind).name.lower() for kind in kinds)
            yield Measured(edit, done, at, _likeness(checkpoint, edit), values)


def _likeness(checkpoint: Checkpoint, edit: Edit) -> float:
    similarity = checkpoint.organism.similarity
    if similarity is None or not edit.old or not edit.new:
        return float("nan")
    pairs = zip(edit.old, edit.new, strict=True)
    return min(float(similarity.unit[old] @ similarity.unit[new]) for old, new in pairs)
