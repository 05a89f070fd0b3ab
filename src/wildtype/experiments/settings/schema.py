"""The settings of `wildtype train`, typed; those of models are declared in ``models/*/config.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from wildtype.models.registry import DEFAULT_MODEL, config_class
from wildtype.settings import setting
from wildtype.training.config import Execution, TrainingConfig

SplitName = Literal[
    "random", "one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order", "R", "Q", "G"
]


@dataclass
class DataConfig:
    """Which measurements to learn from."""

    name: str = setting("ecoli-core-growth", "A dataset (`wildtype data list`).")
    phenotypes: list[str] = setting([], "Phenotypes to predict; empty: the targets of the dataset.")
    tokens: Literal["all", "measured"] = setting(
        "all",
        "Genes that encoders are given: all of the organism, or only measured ones, which is faster. "
        "Predictions are for all genes either way.",
    )
    rows: int | None = setting(
        None, "Use only this many rows of the phenotypes, the same for every seed; null: all.", minimum=1
    )
    unlisted: float = setting(
        3.0,
        "Datasets with a grid of crosses: unlisted training crosses per listed one, weighted to their true "
        "number.",
        above=0,
    )
    listed: int | None = setting(
        None,
        "Datasets with a grid of crosses: listed training crosses at most that are rows, drawn at random and "
        "weighted to their true number; null: all.",
        minimum=1,
    )
    crosses: int = setting(
        60_000,
        "Datasets with a grid of crosses: crosses at most that validate, and that are tested; drawn at "
        "random from all, listed or not.",
        minimum=1,
    )
    also_test: list[str] = setting(
        [],
        "Other datasets of the organism, whose rows of the first target phenotype are predicted, too, as the "
        "run's first phenotype; rows that the run may see are left out.",
    )
    screens: list[str] = setting(
        [],
        "Other screens of pairs of the organism, by dataset, in whatever unit: what they measured is evidence"
        " of models that describe pairs by a screen, also of a held-out pair, unless both are one.",
    )
    unseen_in_screens: bool = setting(
        False,
        "Whether data.screens may show genes that the split holds out: such a gene is then unseen in this "
        "screen, and not in all.",
    )
    embeddings: list[str] = setting(
        [],
        "Files of vectors by gene name (CSV, TSV, Parquet, NPZ, .h5ad), such as embeddings of a protein "
        "language model; each becomes a feature block named after its file, or as NAME=FILE says.",
    )
    relations: list[str] = setting(
        [],
        "Edge lists (CSV, TSV, Parquet, .xlsx) of the organism's genes; each becomes an undirected, "
        "unweighted gene graph named after its file, or as NAME=FILE says.",
    )
    flip: bool = setting(
        False,
        "Train on the labels times -1, as DANGO's published protocol does; predictions are turned back.",
    )
    organism: str = setting(
        "",
        "Variant of the organism instead of the one that the dataset was built with, as built by "
        "`wildtype data build yeast --string 9.1`; empty: that one.",
    )
    merge: dict[str, list[str]] = setting(
        {},
        "Gene graphs to replace by their union, by its name: {string: [string12_database, "
        "string12_experimental]}; an edge of several has the largest weight.",
    )
    graphs: list[str] = setting(
        [], "Gene graphs that all models see, with the features computed from them; empty: all."
    )
    without: list[str] = setting([], "Gene graphs to leave out.")
    rewired: bool = setting(
        False, "Control: replace every gene graph by a random one of the same degrees, drawn by `seed`."
    )


@dataclass
class SplitConfig:
    """How rows are split into training, validation and test."""

    name: SplitName = setting(
        "random", "Kind of split (docs/phenotypes.md); R, Q and G stand for random, one-unseen and unseen."
    )
    validation: float | None = setting(
        None, "Fraction of the rows that validate; null: default of the split.", above=0, below=1
    )
    test: float | None = setting(
        None, "Fraction of the rows that are tested; null: default of the split.", above=0, below=1
    )
    fold: int | None = setting(None, "Test this one of `split.folds` equal parts, from 0.", minimum=0)
    folds: int | None = setting(
        None, "Number of equal parts, one of which is tested instead of a fraction.", minimum=2
    )
    order: int | None = setting(None, "Split order: number of perturbed genes of a tested mutant.", minimum=1)
    by: Literal["query", "condition", "study"] | None = setting(
        None, "Split screen: what one screen is; null: default of the dataset."
    )
    genes: int | None = setting(
        None,
        "Splits one-unseen, unseen, any-unseen: number of genes held out for test instead of a fraction.",
        minimum=1,
    )
    up_to: int | None = setting(
        None,
        "Split order: train on at most this many perturbed genes, test `split.order` and more, validate on "
        "those between.",
        minimum=1,
    )
    among: Literal["query", "array"] | None = setting(
        None, "Splits one-unseen, unseen, any-unseen: hold out genes of query strains only, or of none only."
    )
    seed: int | None = setting(None, "Seed of the split; null: `seed`.", minimum=0)
    hide: dict[str, float] = setting(
        {},
        "Datasets with a grid of crosses: hide this fraction of the gene pairs that another dataset "
        "measured, by its name; they are on no side, and neither a row, a zero nor evidence.",
    )
    pinned: str = setting(
        "", "File that `wildtype data split -o` wrote; the run uses its split instead of drawing one."
    )


@dataclass
class RunConfig:
    """Where a run is written, and how."""

    folder: str = setting(
        "", "Run directory; empty: runs/<dataset>-<split>-<model>-seed<seed>, numbered if that exists."
    )
    overwrite: bool = setting(False, "Replace a directory that holds a run.")
    resume: bool = setting(False, "Continue the run in `run.folder` where it stopped.")
    requeued: bool = setting(
        False,
        "For jobs that a cluster may start again: continue the run in `run.folder` if there is one, or start "
        "it.",
    )
    progress: bool = setting(True, "Show progress bars.")
    replicates: int = setting(1000, "Bootstrap replicates behind every confidence interval.", minimum=1)
    estimate: bool = setting(
        False,
        "Predict time, memory and disk from the first steps before training, stop if they do not suffice, "
        "and report the error of the prediction afterwards.",
    )


@dataclass
class TrainConfig:
    """All settings of `wildtype train`; ``model`` holds those of the chosen model."""

    data: DataConfig = field(default_factory=DataConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    model: Any = field(default_factory=lambda: config_class(DEFAULT_MODEL)())
    training: TrainingConfig = field(default_factory=TrainingConfig)
    baselines: list[str] = setting(
        ["all"], "Baselines to compare with, by name; [all] for every one that applies, [] for none."
    )
    run: RunConfig = field(default_factory=RunConfig)
    execution: Execution = setting(
        "training",
        "How much of every step runs: training, or less of it to measure what the parts cost "
        "(`wildtype profile`).",
    )
    seed: int = setting(0, "Random seed of the split, the initial weights and the order of rows.", minimum=0)
