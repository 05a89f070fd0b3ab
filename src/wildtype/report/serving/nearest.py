"""The measured mutants nearest to a mutant, with their measurements.

For a model with evidence they are the mutants that it retrieves: one edit away, or two edits where two genes
are replaced. For other models they are the mutants that share all genes but one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.edits import EDITS
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
    """How a measured mutant differs from the queried one.

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
    """Measured value of a mutant: the mean of ``count`` rows, and the parts of the split that hold them."""

    value: float
    count: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """A measured mutant: its difference, the similarity of exchanged genes, and its values by phenotype.

    ``likeness`` is the cosine similarity of the genes that replace each other, the smallest of two; NaN where
    it is unknown or nothing was replaced.
    """

    edit: Edit
    kinds: tuple[str, ...]
    condition: int
    likeness: float
    values: dict[str, Value]


def nearest(checkpoint: Checkpoint, mutant: MutantTable, shown: int = SHOWN) -> list[Measured]:
    """Return the measured mutants nearest to the first row of a table, and itself if it was measured.

    There are up to ``shown`` of each kind of difference. Measurements of the mutant itself are given for
    every condition, the queried one first. Those of another mutant are given for one condition: the queried
    one if it was measured there.
    """
    genes = tuple(mutant.gene[: mutant.offsets[1]].tolist())
    condition = int(mutant.condition[0])
    index = checkpoint.evidence
    reads = index is not None and index.looks_up and len(index.table) > 0
    # The page shows the evidence of the model itself where it has any, so that users see what a prediction
    # rests on, and not a second notion of similarity.
    edits = _looked_up(checkpoint, mutant, genes) if reads else _sharing(checkpoint, genes)
    chosen: dict[Genes, Edit] = {genes: Edit(SAME, genes)}
    left = dict.fromkeys(ORDER, shown)
    for edit in edits:
        # Edits come best first, and one mutant may come twice: the first edit that leads to it counts.
        if edit.genes not in chosen and left[edit.how]:
            left[edit.how] -= 1
            chosen[edit.genes] = edit
    ranked = sorted(chosen.values(), key=lambda edit: ORDER.index(edit.how))
    return list(_with_values(checkpoint, ranked, condition))


def _looked_up(checkpoint: Checkpoint, mutant: MutantTable, asked: Genes) -> Iterator[Edit]:
    """Yield the edits that the model itself reads, the most informative first."""
    assert checkpoint.evidence is not None
    tokens = checkpoint.evidence.tokens_of(mutant.take([0]))
    one = (x[0].tolist() for x in (tokens.one.mask, tokens.one.edit, tokens.one.old, tokens.one.new))
    for there, edit, old, new in zip(*one, strict=True):
        if there:
            # -1 marks that no gene was removed, or none was added.
            yield _edited(EDITS[edit], asked, [old] if old >= 0 else [], [new] if new >= 0 else [])
    two = (x[0].tolist() for x in (tokens.two.mask, tokens.two.old, tokens.two.new))
    for there, old, new in zip(*two, strict=True):
        if there:
            yield _edited(TWICE, asked, old, new)


def _edited(how: str, asked: Genes, old: list[int], new: list[int]) -> Edit:
    return Edit(how, tuple(sorted((set(asked) - set(old)) | set(new))), tuple(old), tuple(new))


def _sharing(checkpoint: Checkpoint, asked: Genes) -> Iterator[Edit]:
    """Yield the measured sets that share all genes but one, those with the most extreme values first."""
    table = checkpoint.known.table
    among = np.zeros(len(checkpoint.genes), bool)
    among[list(asked)] = True
    # Differences of a running sum count the shared genes of all rows in one pass, without a loop over rows.
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
    # Phenotypes have different units; phenotypes that are not predicted keep an infinite sd and rank last.
    mean[at], sd[at] = checkpoint.mean, np.maximum(np.abs(checkpoint.sd), 1e-9)
    of = known.table.phenotype[rows]
    return np.asarray(np.nan_to_num(np.abs(known.table.value[rows] - mean[of]) / sd[of]))


def _with_values(checkpoint: Checkpoint, edits: Iterable[Edit], condition: int) -> Iterator[Measured]:
    """Yield the measurements of the sets, by kinds and condition; sets without a value are left out."""
    edits = list(edits)
    known = checkpoint.known
    rows = np.flatnonzero(known.table.inside([gene for edit in edits for gene in edit.genes]))
    table, part = known.table.take(rows), known.part[rows]
    found: dict[Genes, dict[tuple[int, Genes], dict[str, list[int]]]] = {edit.genes: {} for edit in edits}
    for row, genes in enumerate(table.sets()):
        if genes in found and np.isfinite(table.value[row]):
            kinds = tuple(table.kind[table.offsets[row] : table.offsets[row + 1]].tolist())
            # A deletion and a hypomorph of one gene are different mutants: kinds and conditions are not
            # averaged.
            cell = found[genes].setdefault((int(table.condition[row]), kinds), {})
            cell.setdefault(known.phenotypes[table.phenotype[row]], []).append(row)
    for edit in edits:
        apart = found[edit.genes]
        order = sorted(apart, key=lambda key: (key[0] != condition, key))
        # The condition key sorts the queried condition first; another mutant is shown in one condition only.
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
