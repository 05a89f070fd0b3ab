"""Explanation of one mutant over all models: contributions to its prediction, and their agreement.

Legend: n genes · k perturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from wildtype.inference.explaining.contributions import Carried, carried
from wildtype.inference.explaining.members import EnsembleMember, OverModels, rank_agreement
from wildtype.inference.explaining.subsets import by_subsets
from wildtype.inference.explaining.tokens import Token, evidence_tokens
from wildtype.models.explainable import ExplainableModel
from wildtype.mutants import Kind, MutantTable

BEYOND = "trees and equivalents"
GRADIENTS, SUBSETS = "integrated gradients", "Shapley values of subsets"
"""Ways in which a prediction is divided among genes and parts."""
FIGURES = ("predicted", "baseline")
LOGIT = "logit"
"""Unit of contributions to a binary phenotype."""


@dataclass(frozen=True)
class Part:
    """Contribution of a part of the head's input: integrated from the wild type, linear at the mutant."""

    name: str
    integrated: OverModels
    linear: OverModels


@dataclass(frozen=True)
class PerturbedGene:
    """Contribution of a perturbed gene through the parts that are sums over the set."""

    gene: str
    kind: str
    integrated: OverModels


@dataclass(frozen=True)
class CellGene:
    """Contribution of a gene of the cell through the whole-cell latent.

    Attributes
    ----------
    gene : str
        Label of the gene.
    perturbed : bool
        Whether the mutant perturbs it.
    weight, weight_before : OverModels
        Attention β_i in the mutant and in the wild type.
    linear : OverModels
        ∇f·β_i φ_i.
    linear_change, integrated : OverModels
        Contribution of its change from the wild type, with the gradient at the mutant and the mean one.
    """

    gene: str
    perturbed: bool
    weight: OverModels
    weight_before: OverModels
    linear: OverModels
    linear_change: OverModels
    integrated: OverModels


@dataclass(frozen=True)
class MutantExplained:
    """Contributions to the prediction of one phenotype of one mutant, in its unit.

    Attributes
    ----------
    genes, kinds : tuple of str
        Perturbed genes and perturbations.
    condition, phenotype, unit : str
        What is explained; the unit of a binary phenotype is the logit.
    method : str
        One of ``GRADIENTS`` and ``SUBSETS``; with the latter there are no parts, and the contributions of the
        perturbed genes sum to network minus baseline.
    measured : float
        The known value; NaN if there is none.
    predicted, network, baseline : OverModels
        Prediction of the model, and output of its network for the mutant and for the wild type.
    beyond : OverModels
        Predicted minus network: the effect of trees and equivalent mutants, which is not explained.
    parts : tuple of Part
        They sum to network minus baseline.
    to_genes : tuple of str
        Parts that are sums over the perturbed genes.
    perturbed : tuple of PerturbedGene
        They sum to the integrated contributions of these parts.
    cell : tuple of CellGene
        Genes with the largest contributions; empty if there is no whole-cell latent.
    cell_rest : OverModels
        Integrated contribution of all other genes together.
    check : OverModels
        Spearman correlation over all genes of linear changes and integrated contributions.
    cell_agrees : float
        Spearman correlation over all genes of the integrated contributions, mean over pairs of models.
    tokens : tuple of Token
        Evidence; empty if the model reads none.
    null_one, null_two : OverModels or None
        Attention of the null keys, one and two edits away.
    error : float
        Largest difference between the sum of contributions and network minus baseline.
    steps : int
        Most points on the path; or number of subsets.
    notes : tuple of str
        What does not apply to this model or mutant.
    """

    genes: tuple[str, ...]
    kinds: tuple[str, ...]
    condition: str
    phenotype: str
    unit: str
    method: str
    measured: float
    predicted: OverModels
    network: OverModels
    baseline: OverModels
    beyond: OverModels
    parts: tuple[Part, ...]
    to_genes: tuple[str, ...]
    perturbed: tuple[PerturbedGene, ...]
    cell: tuple[CellGene, ...]
    cell_rest: OverModels
    check: OverModels
    cell_agrees: float
    tokens: tuple[Token, ...]
    null_one: OverModels | None
    null_two: OverModels | None
    error: float
    steps: int
    notes: tuple[str, ...]


def explain_mutant(
    members: Sequence[EnsembleMember], table: MutantTable, phenotype: int, top: int
) -> MutantExplained:
    """Return the explanation of a table of one row, for an output by position.

    It keeps ``top`` genes of the cell and evidence tokens. A model whose head cannot be taken apart is
    explained by its predictions of the mutant's subsets.
    """
    if not isinstance(members[0].model, ExplainableModel):
        return _by_subsets(members, table, phenotype)
    first = members[0].checkpoint
    record = first.phenotypes[phenotype]
    found = [carried(member, table, phenotype) for member in members]
    notes: list[str] = []
    cell, rest, check, agrees = _cell(members, found, set(table.gene.tolist()), top)
    if not cell:
        notes.append("the model has no whole-cell latent z_S (model.head.heads=0): nothing goes through it")
    notes += _beyond(members, phenotype)
    tokens, null_one, null_two = _evidence(members, table, phenotype, top, notes)
    measured, note = _known(members[0], table, record["name"])
    notes += [note] if note else []
    is_class = record.get("form") == "class"
    return MutantExplained(
        genes=tuple(first.genes.names[g] for g in table.gene),
        kinds=tuple(Kind(int(kind)).name.lower() for kind in table.kind),
        condition=first.conditions[int(table.condition[0])],
        phenotype=record["name"],
        unit=LOGIT if is_class else str(record.get("unit", "")),
        method=GRADIENTS,
        measured=measured,
        predicted=OverModels.of([one.predicted for one in found]),
        network=OverModels.of([one.network for one in found]),
        baseline=OverModels.of([one.baseline for one in found]),
        beyond=OverModels.of([one.predicted - one.network for one in found]),
        parts=tuple(
            Part(
                name,
                OverModels.of([one.integrated[name] for one in found]),
                OverModels.of([one.linear[name] for one in found]),
            )
            for name in found[0].integrated
            if any(one.integrated[name] or one.linear[name] for one in found)
        ),
        to_genes=found[0].to_genes,
        perturbed=tuple(
            PerturbedGene(
                first.genes.label(int(g)),
                Kind(int(kind)).name.lower(),
                OverModels.of([float(one.perturbed[i]) for one in found]),
            )
            for i, (g, kind) in enumerate(zip(table.gene, table.kind, strict=True))
        )
        if found[0].to_genes
        else (),
        cell=cell,
        cell_rest=rest,
        check=check,
        cell_agrees=agrees,
        tokens=tokens,
        null_one=null_one,
        null_two=null_two,
        error=max((one.error for one in found), key=abs),
        steps=max(one.steps for one in found),
        notes=tuple(notes),
    )


def _by_subsets(members: Sequence[EnsembleMember], table: MutantTable, phenotype: int) -> MutantExplained:
    """Return the explanation of a mutant by the Shapley values of its genes."""
    first, model = members[0].checkpoint, members[0].model
    record = first.phenotypes[phenotype]
    found = [by_subsets(member, table, phenotype) for member in members]
    predicted, baseline = (OverModels.of([getattr(one, name) for one in found]) for name in FIGURES)
    measured, note = _known(members[0], table, record["name"])
    notes = [note] if note else []
    if model.least_perturbed > 1 and len(table.gene) >= model.least_perturbed:
        notes.append(
            f"contributions also use outputs for fewer than {model.least_perturbed} genes, which the model "
            f"was not trained on and does not report"
        )
    nothing = OverModels.of([np.nan] * len(found))
    return MutantExplained(
        genes=tuple(first.genes.names[g] for g in table.gene),
        kinds=tuple(Kind(int(kind)).name.lower() for kind in table.kind),
        condition=first.conditions[int(table.condition[0])],
        phenotype=record["name"],
        unit=LOGIT if record.get("form") == "class" else str(record.get("unit", "")),
        method=SUBSETS,
        measured=measured,
        predicted=predicted,
        network=predicted,
        baseline=baseline,
        beyond=OverModels.of([0.0] * len(found)),
        parts=(),
        to_genes=(),
        perturbed=tuple(
            PerturbedGene(
                first.genes.label(int(g)),
                Kind(int(kind)).name.lower(),
                OverModels.of([float(one.values[i]) for one in found]),
            )
            for i, (g, kind) in enumerate(zip(table.gene, table.kind, strict=True))
        ),
        cell=(),
        cell_rest=nothing,
        check=nothing,
        cell_agrees=np.nan,
        tokens=(),
        null_one=None,
        null_two=None,
        error=max((one.values.sum() - (one.predicted - one.baseline) for one in found), key=abs),
        steps=found[0].subsets,
        notes=tuple(notes),
    )


def _beyond(members: Sequence[EnsembleMember], phenotype: int) -> list[str]:
    """Return how much what was fitted after training counts in the prediction of an output."""
    each = [member.attentive.beside_network(phenotype) for member in members]
    out = []
    for text in dict.fromkeys(text for one in each for text in one):
        counts = OverModels.of([one.get(text, 0.0) for one in each])
        if counts.mean > 0:
            out.append(text.format(counts.mean))
    return out


def _known(member: EnsembleMember, table: MutantTable, phenotype: str) -> tuple[float, str]:
    """Return the measured value (NaN if there is none), and the note of ``predict`` on the mutant."""
    row = member.run.predictor.predict_table(table).iloc[0]
    return float(row.get(f"{phenotype}_measured", np.nan)), str(row["note"])


def _cell(
    members: Sequence[EnsembleMember], found: Sequence[Carried], perturbed: set[int], top: int
) -> tuple[tuple[CellGene, ...], OverModels, OverModels, float]:
    cells = [one.cell for one in found if one.cell is not None]
    if not cells:
        nothing = OverModels.of([np.nan] * len(found))
        return (), nothing, nothing, np.nan
    genes = members[0].checkpoint.genes
    integrated = np.array([cell.integrated for cell in cells])
    # Ranked by the mean over models: a gene that is large in one seed only is not worth a row.
    order = np.argsort(-np.abs(integrated.mean(0)), kind="stable")[:top]

    def over(field: str, gene: int) -> OverModels:
        return OverModels.of([float(getattr(cell, field)[gene]) for cell in cells])

    rows = tuple(
        CellGene(
            genes.label(g),
            g in perturbed,
            *(
                over(field, g)
                for field in ("weight", "weight_before", "linear", "linear_change", "integrated")
            ),
        )
        for g in order.tolist()
    )
    others = integrated.sum(1) - integrated[:, order].sum(1)
    check = [
        float(stats.spearmanr(cell.linear_change, cell.integrated).statistic)
        if np.ptp(cell.linear_change) > 0 and np.ptp(cell.integrated) > 0
        else np.nan
        for cell in cells
    ]
    return rows, OverModels.of(others.tolist()), OverModels.of(check), rank_agreement(list(integrated))


def _evidence(
    members: Sequence[EnsembleMember], table: MutantTable, phenotype: int, top: int, notes: list[str]
) -> tuple[tuple[Token, ...], OverModels | None, OverModels | None]:
    if members[0].attentive.head.evidence is None:
        notes.append("the model reads no measurements of similar mutants (model.evidence.tokens=0)")
        return (), None, None
    tokens, null_one, null_two = evidence_tokens(members, table, phenotype, top)
    if not tokens:
        notes.append("no measured mutant is one or two edits away from this one")
    return tuple(tokens), null_one, null_two
