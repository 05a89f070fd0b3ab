"""`explain`: all explanations of some models of one kind, with their agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wildtype.errors import ConfigError, GeneSetError, did_you_mean
from wildtype.inference.explaining.free_heads import FreeHead, LayerClaim, free_heads, free_places
from wildtype.inference.explaining.heads import RegularisedHead, regularised_heads
from wildtype.inference.explaining.latents import Latents, latents
from wildtype.inference.explaining.members import EnsembleMember, Opened, members_of
from wildtype.inference.explaining.mutant import MutantExplained, explain_mutant
from wildtype.models.explainable import ExplainableModel
from wildtype.organism.gene_sets import GeneSets, sets_of_metabolism

FORMAT = 1
SECTIONS = ("heads", "free", "latents", "mutants")
ONE_MODEL = "one model: no agreement known"
NO_ATTENTION = "the model has no attention over the genes of the cell"


@dataclass(frozen=True)
class ExplanationRequest:
    """What to explain, and with how many samples; raises ``ConfigError`` for values out of range.

    Attributes
    ----------
    sets : sequence of sequences of str
        Mutants to explain, written as for ``predict``.
    phenotype : str
        Phenotype to explain; empty: the first that is not per-gene.
    condition : str or None
        Condition of the mutants; None is the reference.
    sections : sequence of str
        Any of ``heads``, ``free``, ``latents`` and ``mutants``.
    mutants : int
        Most mutants to cluster by their latents.
    attended : int
        Genes per row that count as attended to.
    graphs : int
        Random graphs per relation.
    exchanges : int
        Random exchanges of lists between genes, for the null model of free heads.
    rows : int
        Most genes per relation, to measure regularised heads on.
    top : int
        Genes, sets and tokens to keep in a list.
    seed : int
        Random seed.
    """

    sets: Sequence[Sequence[str]] = ()
    phenotype: str = ""
    condition: str | None = None
    sections: Sequence[str] = SECTIONS
    mutants: int = 400
    attended: int = 10
    graphs: int = 5
    exchanges: int = 100
    rows: int = 2000
    top: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.sections:
            if name not in SECTIONS:
                hint = did_you_mean(name, SECTIONS, f"known: {', '.join(SECTIONS)}")
                raise ConfigError(f"there is no section {name!r}; {hint}")
        least = {"mutants": 1, "attended": 1, "graphs": 2, "exchanges": 10, "rows": 1, "top": 1}
        for name, smallest in least.items():
            if (value := getattr(self, name)) < smallest:
                raise ConfigError(f"{name}={value} is too few: give at least {smallest}")


@dataclass(frozen=True)
class Explanation:
    """All explanations; a section that does not apply is empty, and a remark has the reason.

    Attributes
    ----------
    organism, dataset, model : str
        Organism, dataset and kind of the models.
    runs : tuple of str
        Directories of the runs.
    models : tuple of str
        Label of every model, in the order of every ``each``.
    experts : tuple of str
        Mutants that each is an expert for; empty if they are not experts.
    heads : tuple of RegularisedHead
        Heads with a graph prior.
    free : tuple of FreeHead
        Heads without one.
    layers : tuple of LayerClaim
        What free heads of each layer attend to.
    latents : Latents or None
        Latents of mutants.
    mutants : tuple of MutantExplained
        The requested mutants.
    asked : ExplanationRequest
        The request.
    remarks : dict of str to tuple of str
        Remarks by section, and ``general``.
    """

    organism: str
    dataset: str
    model: str
    runs: tuple[str, ...]
    models: tuple[str, ...]
    experts: tuple[str, ...]
    heads: tuple[RegularisedHead, ...]
    free: tuple[FreeHead, ...]
    layers: tuple[LayerClaim, ...]
    latents: Latents | None
    mutants: tuple[MutantExplained, ...]
    asked: ExplanationRequest
    remarks: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as docs/explain.md lays them out."""
        agreement = "over models" if len(self.models) > 1 else ONE_MODEL
        return {"format": FORMAT, "agreement": agreement, **asdict(self)}


def explain(
    runs: Sequence[Opened],
    asked: ExplanationRequest,
    sets: Callable[[Opened], Sequence[GeneSets]] = lambda run: (),
    report_progress: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Explain the models of some runs, which differ in nothing but their seeds.

    Parameters
    ----------
    runs : sequence of Opened
        Opened runs.
    asked : ExplanationRequest
        What to explain.
    sets : callable
        Returns gene sets over the genes of a run, beyond those of its organism's metabolism.
    report_progress : callable
        Called with the name of each section before it starts.

    Raises
    ------
    ConfigError
        If runs are not of one model with latents, or a setting, phenotype or condition is not known.
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        Naming the mutant that does not fit.
    """
    # Encoders are explained on the genes that they were trained on; only a mutant may have others.
    whole, runs = runs, [replace(run, predictor=run.predictor.encoded) for run in runs]
    members = members_of(runs)
    predictor = runs[0].predictor
    checkpoint = predictor.checkpoint
    wanted = [name for name in SECTIONS if name in asked.sections]
    phenotype = _phenotype(members, asked.phenotype) if asked.sets else 0
    if not all(asked.sets):
        raise GeneSetError("the wild type is nothing to explain: name at least one gene of each mutant")
    table = whole[0].predictor.table(asked.sets, condition=asked.condition) if asked.sets else None
    remarks: dict[str, list[str]] = {"general": [], **{name: [] for name in SECTIONS}}
    remarks["general"] += dict.fromkeys(text for run in runs for text in run.remarks)
    if len(members) == 1:
        remarks["general"].append(ONE_MODEL)
    experts = tuple(member.expert for member in members if member.expert is not None)
    if experts:
        remarks["general"].append("members are experts of different mutants: they need not agree")
    with_organism = [member for member in members if member.run.organism is not None]
    missing = len(with_organism) < len(members)
    known = [*_metabolic_sets(runs[0]), *sets(runs[0])]

    attentive = isinstance(members[0].model, ExplainableModel)
    heads: list[RegularisedHead] = []
    if "heads" in wanted:
        report_progress("regularised heads")
        if not attentive:
            remarks["heads"].append(NO_ATTENTION)
        elif not members[0].attentive.attention_heads:
            remarks["heads"].append("the model has no encoder layers (model.layers=0): there is no attention")
        elif not members[0].attentive.prior_heads:
            remarks["heads"].append("no head follows a relation (model.prior.weight=0, or no relations)")
        elif missing:
            remarks["heads"].append("the gene graphs are not available")
        else:
            heads, said = regularised_heads(
                members, graphs=asked.graphs, most_rows=asked.rows, seed=asked.seed
            )
            remarks["heads"] += said
    free: list[FreeHead] = []
    layers: list[LayerClaim] = []
    if "free" in wanted:
        report_progress("free heads")
        if not attentive:
            remarks["free"].append(NO_ATTENTION)
        elif not free_places(members[0].attentive):
            remarks["free"].append("the model has no free heads")
        elif missing:
            remarks["free"].append("the gene graphs are not available")
        else:
            free, layers = free_heads(
                members, known, attended=asked.attended, count=asked.exchanges, seed=asked.seed, top=asked.top
            )
    found: Latents | str | None = None
    if "latents" in wanted:
        report_progress("latents")
        if attentive and not members[0].attentive.head.heads:
            found = "the model has no whole-cell latent z_S (model.head.heads=0)"
        else:
            found = latents(members, known, mutants=asked.mutants, seed=asked.seed, top=asked.top)
        if isinstance(found, str):
            remarks["latents"].append(found)
    mutants: list[MutantExplained] = []
    if "mutants" in wanted and table is not None:
        beside = table.holding(table.gene >= len(predictor.genes))
        wider = members_of(whole) if beside.any() else members
        for row in range(len(table)):
            report_progress(f"mutant {row + 1} of {len(table)}")
            able = wider if beside[row] else members
            mutants.append(explain_mutant(able, table.take([row]), phenotype, asked.top))
    return Explanation(
        organism=checkpoint.genes.organism,
        dataset=str(checkpoint.origin.get("dataset", "unknown")),
        model=checkpoint.model.config.name,
        runs=tuple(run.path for run in runs),
        models=tuple(member.label for member in members),
        experts=experts,
        heads=tuple(heads),
        free=tuple(free),
        layers=tuple(layers),
        latents=found if isinstance(found, Latents) else None,
        mutants=tuple(mutants),
        asked=asked,
        remarks={name: tuple(texts) for name, texts in remarks.items() if texts},
    )


def _phenotype(members: Sequence[EnsembleMember], name: str) -> int:
    """Return the position of the phenotype to explain; raises ``ConfigError``."""
    outputs = members[0].checkpoint.outputs
    able = [p for p, output in enumerate(outputs) if output.form != "gene"]
    chosen = [p for p in able if name in ("", outputs[p].name)]
    if not chosen:
        names = [outputs[p].name for p in able]
        known = f"known, with one value per mutant: {', '.join(names) or 'none'}"
        raise ConfigError(f"phenotype {name!r} cannot be explained; {did_you_mean(name, names, known)}")
    return chosen[0]


def _metabolic_sets(run: Opened) -> list[GeneSets]:
    organism = run.organism
    if organism is None or organism.metabolism is None:
        return []
    return sets_of_metabolism(organism.metabolism, organism.genes)
