"""Evidence tokens: the measured mutants that a prediction attends to, with their weights.

Legend: t, u tokens one and two edits away · h heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wildtype.evidence.edits import EDITS
from wildtype.evidence.reference import zero_of_evidence
from wildtype.inference.explaining.contributions import batch_of, in_double
from wildtype.inference.explaining.members import EnsembleMember, OverModels
from wildtype.mutants import MutantTable

Key = tuple[int, str, tuple[str, ...], bool, float | None]


@dataclass(frozen=True)
class Token:
    """A measured mutant that the model looks up.

    Attributes
    ----------
    away : int
        Edits from the explained mutant: 1 or 2.
    edit : str
        Difference of the measured mutant: genes replaced, removed or added, by name.
    genes : tuple of str
        The measured mutant, by systematic names.
    same_condition : bool
        Whether it was measured in the condition of the explained mutant.
    value : float or None
        Measured value of the explained phenotype; None if another phenotype was measured.
    weight : OverModels
        Attention, mean over heads. Weights of tokens at one distance and of its null key sum to 1.
    found_in : int
        Number of models with this token; runs of other seeds have other training rows.
    """

    away: int
    edit: str
    genes: tuple[str, ...]
    same_condition: bool
    value: float | None
    weight: OverModels
    found_in: int


def evidence_tokens(
    members: Sequence[EnsembleMember], table: MutantTable, phenotype: int, top: int
) -> tuple[list[Token], OverModels, OverModels]:
    """Return the tokens with the largest weights of a table of one row, and the weights of both null keys.

    A null key absorbs attention when nothing retrieved is informative.
    """
    found: list[dict[Key, float]] = []
    null: list[tuple[float, float]] = []
    for member in members:
        weights, left = _weights(member, table, phenotype)
        found.append(weights)
        null.append(left)
    tokens = []
    # A model without a token gives it weight 0, so that means over models compare tokens fairly.
    for key in dict.fromkeys(key for one in found for key in one):
        each = [one.get(key, 0.0) for one in found]
        tokens.append(Token(*key, OverModels.of(each), sum(key in one for one in found)))
    tokens.sort(key=lambda token: -token.weight.mean)
    null_one, null_two = (OverModels.of(list(weights)) for weights in zip(*null, strict=True))
    return tokens[:top], null_one, null_two


@torch.no_grad()
def _weights(
    member: EnsembleMember, table: MutantTable, phenotype: int
) -> tuple[dict[Key, float], tuple[float, float]]:
    """Return the weight of every token of one member, and those of its null tokens."""
    head, wild, batch = in_double(member, batch_of(member, table))
    tokens = batch.evidence
    assert tokens is not None
    weights = head.token_weights(wild.genes, tokens)
    assert weights is not None
    one, two = (x[0].mean(-1) for x in weights)
    checkpoint = member.checkpoint
    centre, scale = float(checkpoint.mean[phenotype]), float(checkpoint.sd[phenotype])
    zero = zero_of_evidence(centre, scale)
    own = set(table.gene.tolist())
    out: dict[Key, float] = {}

    def note(
        away: int,
        edit: str,
        old: list[int],
        new: list[int],
        same: Tensor,
        value: Tensor,
        known: Tensor,
        weight: Tensor,
    ) -> None:
        genes = tuple(checkpoint.genes.names[g] for g in sorted((own - set(old)) | set(new)))
        measured = round(zero + scale * float(value[phenotype]), 6) if bool(known[phenotype]) else None
        label = checkpoint.genes.label
        out_of, into = (" and ".join(label(g) for g in side) for side in (old, new))
        said = f"{out_of} replaced by {into}" if old and new else f"{out_of or into} {edit}"
        key = (away, said, genes, bool(same > 0), measured)
        out[key] = out.get(key, 0.0) + float(weight)

    for t in tokens.one.mask[0].nonzero()[:, 0].tolist():
        old, new = ([g] if g >= 0 else [] for g in (int(tokens.one.old[0, t]), int(tokens.one.new[0, t])))
        note(
            1,
            EDITS[int(tokens.one.edit[0, t])],
            old,
            new,
            tokens.one.same_condition[0, t],
            tokens.one.value[0, t],
            tokens.one.known[0, t],
            one[t],
        )
    for t in tokens.two.mask[0].nonzero()[:, 0].tolist():
        note(
            2,
            "replaced",
            tokens.two.old[0, t].tolist(),
            tokens.two.new[0, t].tolist(),
            tokens.two.same_condition[0, t],
            tokens.two.value[0, t],
            tokens.two.known[0, t],
            two[t],
        )
    return out, (1.0 - float(one.sum()), 1.0 - float(two.sum()))
