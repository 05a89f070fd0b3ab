"""The settings of `wildtype train`, typed; every part is documented where its dataclass stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wildtype.models.registry import DEFAULT_MODEL, config_class
from wildtype.training.config import TrainingConfig


@dataclass
class DataConfig:
    """Which measurements to learn from.

    Attributes
    ----------
    name : str
        A dataset (`wildtype data list`).
    phenotypes : list of str
        What to predict; empty: the dataset's own targets.
    tokens : str
        ``all`` genes of the organism, or the ``measured`` ones only, which is cheaper.
    rows : int or None
        Use so many rows of these phenotypes alone, the same ones whatever the seed; None: all.
    embeddings : list of str
        Files of vectors by gene name (CSV, Parquet, NPZ), such as the embeddings of a protein language model:
        each a further feature block, called after its file.
    flip : bool
        Train on the labels times -1, as DANGO's published protocol does; predictions are turned back.
    organism : str
        A variant of the organism instead of the one that the dataset was built with (`wildtype data build
        yeast --string 9.1`); empty: that one.
    graphs : list of str
        Only these gene graphs, for every model and baseline, with the features read off them; empty: all.
    without : list of str
        Gene graphs to leave out.
    rewired : bool
        A control: every gene graph is replaced by a random one of the same degrees, drawn by ``seed``.
    """

    name: str = "ecoli-core-growth"
    phenotypes: list[str] = field(default_factory=list)
    tokens: str = "all"
    rows: int | None = None
    embeddings: list[str] = field(default_factory=list)
    flip: bool = False
    organism: str = ""
    graphs: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    rewired: bool = False


@dataclass
class SplitConfig:
    """How rows are split.

    Attributes
    ----------
    name : str
        ``random``, ``one-unseen``, ``unseen``, ``any-unseen``, ``query-pair``, ``screen`` or ``order``.
    validation, test : float or None
        Fractions; None: the split's own defaults.
    fold, folds : int or None
        Test the fold-th (from 0) of so many equal parts instead of a fraction.
    order : int or None
        Number of perturbed genes that is tested, in the split ``order``.
    up_to : int or None
        Train on rows of at most so many perturbed genes, test those of ``order`` and more, and validate on
        all between, in the split ``order``.
    by : str or None
        What a screen is, in the split ``screen``: ``query``, ``condition`` or ``study``.
    genes : int or None
        Number of genes held out for test instead of a fraction, in the splits ``one-unseen``, ``unseen`` and
        ``any-unseen``.
    pinned : str
        A file that ``wildtype data split -o`` wrote: its sides are used again, and nothing is drawn.
    """

    name: str = "random"
    validation: float | None = None
    test: float | None = None
    fold: int | None = None
    folds: int | None = None
    order: int | None = None
    by: str | None = None
    genes: int | None = None
    up_to: int | None = None
    pinned: str = ""


@dataclass
class RunConfig:
    """Where a run goes.

    Attributes
    ----------
    folder : str
        Run folder; empty: ``runs/<dataset>-<split>-seed<seed>``, numbered when it is taken.
    overwrite : bool
        Replace a folder that holds a run.
    resume : bool
        Continue the run in ``folder`` where it stopped.
    requeued : bool
        The same command once more, as a cluster gives it after it took a job off a node: continue what stands
        in ``folder``, or begin where nothing does.
    progress : bool
        Draw progress bars.
    replicates : int
        Bootstrap replicates behind every interval.
    estimate : bool
        Predict time, memory and disk from the first steps before training, stop if they are not there, and
        write afterwards how wrong that was.
    """

    folder: str = ""
    overwrite: bool = False
    resume: bool = False
    requeued: bool = False
    progress: bool = True
    replicates: int = 1000
    estimate: bool = False


@dataclass
class TrainConfig:
    """Everything that `wildtype train` can be told.

    ``model`` holds the settings of one of `models.registry.MODELS`. ``baselines`` names those to compare
    with: ``[all]``, or none with ``[]``. ``execution`` is how much of every step is done: ``training``, or,
    to see what its parts cost, ``forward_backward``, ``forward`` or ``data_only``. ``seed`` draws split,
    initial weights and order.
    """

    data: DataConfig = field(default_factory=DataConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    model: Any = field(default_factory=lambda: config_class(DEFAULT_MODEL)())
    training: TrainingConfig = field(default_factory=TrainingConfig)
    baselines: list[str] = field(default_factory=lambda: ["all"])
    run: RunConfig = field(default_factory=RunConfig)
    execution: str = "training"
    seed: int = 0
