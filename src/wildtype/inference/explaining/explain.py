"""`explain`: everything that is said of some models of one kind, with how far they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wildtype.errors import ConfigError
from wildtype.inference.explaining.free_heads import FreeHead, LayerClaim, free_heads, free_places
from wildtype.inference.explaining.heads import RegularisedHead, regularised_heads
from wildtype.inference.explaining.latents import Latents, latents
from wildtype.inference.explaining.members import Member, Opened, members_of
from wildtype.inference.explaining.mutant import MutantExplained, explain_mutant
from wildtype.organism.gene_sets import GeneSets, sets_of_metabolism

FORMAT = 1
SECTIONS = ("heads", "free", "latents", "mutants")
ONE_MODEL = "one model: no agreement known"


@dataclass(frozen=True)
class Asked:
    """What to explain, and how thoroughly; raises ``ConfigError`` where it cannot be done.

    Attributes
    ----------
    sets : sequence of sequences of str
        Mutants, genes by name as for ``predict``.
    phenotype : str
        Of which mutants are explained; empty: the first that is one number.
    condition : str or None
        Of the mutants; None is the reference.
    sections : sequence of str
        Any of ``heads``, ``free``, ``latents`` and ``mutants``.
    mutants : int
        Mutants whose latents are looked at.
    attended : int
        Genes per row that count as attended to.
    graphs : int
        Random graphs per relation.
    exchanges : int
        Random exchanges of lists between genes, for what free heads attend to.
    rows : int
        Rows that are asked per relation, at most.
    top : int
        Genes, sets and tokens to keep in a list.
    seed : int
        Of all draws.
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
                raise ConfigError(f"there is no section {name!r}; known: {', '.join(SECTIONS)}")
        least = {"mutants": 1, "attended": 1, "graphs": 2, "exchanges": 10, "rows": 1, "top": 1}
        for name, smallest in least.items():
            if (value := getattr(self, name)) < smallest:
                raise ConfigError(f"{name}={value} is too few: give at least {smallest}")


@dataclass(frozen=True)
class Explanation:
    """What was found; a section that does not apply is empty, and a remark says why.

    Attributes
    ----------
    organism, dataset, model : str
        What the models are.
    runs : tuple of str
        Folders.
    models : tuple of str
        Label of every model, in the order of every ``each``.
    experts : tuple of str
        What each is an expert of; empty where they are alike.
    heads : tuple of RegularisedHead
        Heads that follow a relation.
    free : tuple of FreeHead
        Heads that follow none.
    layers : tuple of LayerClaim
        What free heads of each layer attend to.
    latents : Latents or None
        Latents of mutants.
    mutants : tuple of MutantExplained
        Those asked for.
    asked : Asked
        How.
    remarks : dict of str to tuple of str
        By section, and ``general``: what does not apply, and what to know.
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
    asked: Asked
    remarks: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as docs/explain.md lays them out."""
        agreement = "over models" if len(self.models) > 1 else ONE_MODEL
        return {"format": FORMAT, "agreement": agreement, **asdict(self)}


def explain(
    runs: Sequence[Opened],
    asked: Asked,
    sets: Callable[[Opened], Sequence[GeneSets]] = lambda run: (),
    report_progress: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Explain the models of some runs, which may differ in their seeds alone.

    Parameters
    ----------
    runs : sequence of Opened
        Opened runs.
    asked : Asked
        What to explain.
    sets : callable
        Returns gene sets over the genes of a run, beyond those of its organism's metabolism.
    report_progress : callable
        Told which section is begun.

    Raises
    ------
    ConfigError
        If runs are not of one cell transformer, or a setting, phenotype or condition is not known.
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        Naming the mutant that does not fit.
    """
    members = members_of(runs)
    predictor = runs[0].predictor
    checkpoint = predictor.checkpoint
    wanted = [name for name in SECTIONS if name in asked.sections]
    phenotype = _phenotype(members, asked.phenotype) if asked.sets else 0
    table = predictor.table(asked.sets, condition=asked.condition) if asked.sets else None
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

    heads: list[RegularisedHead] = []
    if "heads" in wanted:
        report_progress("regularised heads")
        if not members[0].model.attention_heads:
            remarks["heads"].append("the model has no encoder layers (model.layers=0): there is no attention")
        elif not members[0].model.prior_heads:
            remarks["heads"].append("no head follows a relation (model.prior.weight=0, or no relations)")
        elif missing:
            remarks["heads"].append("the gene graphs are not at hand")
        else:
            heads, said = regularised_heads(
                members, graphs=asked.graphs, most_rows=asked.rows, seed=asked.seed
            )
            remarks["heads"] += said
    free: list[FreeHead] = []
    layers: list[LayerClaim] = []
    if "free" in wanted:
        report_progress("free heads")
        if not free_places(members[0].model):
            remarks["free"].append("the model has no free heads")
        elif missing:
            remarks["free"].append("the gene graphs are not at hand")
        else:
            free, layers = free_heads(
                members, known, attended=asked.attended, count=asked.exchanges, seed=asked.seed, top=asked.top
            )
    found: Latents | str | None = None
    if "latents" in wanted:
        report_progress("latents")
        if not members[0].model.head.heads:
            found = "the model has no whole-cell latent z_S (model.head.heads=0)"
        else:
            found = latents(members, known, mutants=asked.mutants, seed=asked.seed, top=asked.top)
        if isinstance(found, str):
            remarks["latents"].append(found)
    mutants: list[MutantExplained] = []
    if "mutants" in wanted and table is not None:
        for row in range(len(table)):
            report_progress(f"mutant {row + 1} of {len(table)}")
            mutants.append(explain_mutant(members, table.take([row]), phenotype, asked.top))
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


def _phenotype(members: Sequence[Member], name: str) -> int:
    """Return the position of the phenotype to explain mutants by; raises ``ConfigError``."""
    outputs = members[0].checkpoint.outputs
    able = [p for p, output in enumerate(outputs) if output.form != "gene"]
    chosen = [p for p in able if name in ("", outputs[p].name)]
    if not chosen:
        known = ", ".join(outputs[p].name for p in able) or "none"
        raise ConfigError(
            f"phenotype {name!r} is none that is one number per mutant; those of this model: {known}"
        )
    return chosen[0]


def _metabolic_sets(run: Opened) -> list[GeneSets]:
    organism = run.organism
    if organism is None or organism.metabolism is None:
        return []
    return sets_of_metabolism(organism.metabolism, organism.genes)
