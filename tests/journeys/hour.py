"""The first hour of three new users: what they type, and what they should see.

A yeast biologist has a table of pairs, a CRISPR screener the files of a published screen, and somebody
curious has no data and takes the simulated organism. Every step is one command, right or wrong, in the folder
that `desk` sets up.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

LITTLE = "training.epochs=1 model.trees.bags=0 baselines=[mean] run.replicates=20 run.progress=false"
TRAIN = f"train data=ecoli-core-growth data.rows=400 {LITTLE} run.folder=runs/first"
IMPORT = "data import pairs.csv --organism yeast --name my --yes"
TRAIN_OWN = f"train data=my {LITTLE} run.folder=runs/my"
SCREENER = (
    "data import human/horlbeck2018_pairs.tsv.gz --organism human --kind reduced --controls negative "
    "--phenotype gi --unit z --fewest-genes 2 --name horlbeck --yes"
)
ONCE = (TRAIN, "organism import human/organism.yaml", IMPORT, TRAIN_OWN, SCREENER)
"""Commands that the others build upon; they run once, in this order."""


@dataclass(frozen=True)
class Step:
    """One command of the hour.

    Attributes
    ----------
    command : str
        As typed behind ``wildtype``.
    out, err : tuple of str
        Texts that standard output, and standard error, hold.
    code : int
        Exit status. A step with 1 fails with one sentence, and prints nothing else.
    columns : tuple of str
        Columns that the table on standard output, or in the file ``-o`` names, has, in this order.
    rows : int
        Rows of that table; 0: any number.
    lines : int
        Most lines on standard output; 0: any number.
    stdin : str
        Standard input.
    often : bool
        Whether `make test-slow` runs it, too.
    """

    command: str
    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    code: int = 0
    columns: tuple[str, ...] = ()
    rows: int = 0
    lines: int = 0
    stdin: str = ""
    often: bool = False

    @property
    def words(self) -> list[str]:
        """The command, as a shell splits it."""
        return shlex.split(self.command)


def wrong(command: str, *err: str, code: int = 1, often: bool = False) -> Step:
    """Return a step that fails with a sentence."""
    return Step(command, err=err, code=code, often=often)


PREDICTED = ("genes", "names", "kinds", "epsilon", "epsilon_measured", "order", "order_seen", "genes_seen")
SCREENED = ("phenotype", "direction", "rank", "genes", "names", "kinds", "epsilon")

LOOKING_ROUND = (
    Step("--help", out=("train", "predict", "screen", "data", "organism"), lines=60),
    Step("--version", out=(".",), lines=1),
    Step("data list", out=("ecoli-core-growth", "horlbeck", "my")),
    Step("data list --json", out=('"dataset": "my"',)),
    Step("data show ecoli-core-growth", out=("rows", "fitness", "epsilon")),
    Step("organism list", out=("ecoli-core", "human")),
    Step("organism show human", out=("huri",)),
    Step("train --settings", out=("layers:", "seed: 0", "random, one-unseen")),
    Step("doctor --json", out=('"problems": []',)),
    wrong("trian", "No such command 'trian'", "train", code=2, often=True),
    wrong("data shwo my", "No such command 'shwo'", "show", code=2),
    wrong("train --settigns", "No such option: --settigns", "--settings", code=2),
)

TRAINING = (
    Step(
        TRAIN,
        err=(
            "epsilon of 400 mutants of ecoli-core-growth",
            "320 training, 40 validation, 40 test rows",
            "run: runs/first",
            "page:",
        ),
        out=("Pearson",),
    ),
    Step(TRAIN_OWN, err=("run: runs/my",), out=("Pearson",), often=True),
    wrong("train data=ecoli-core-growth modle.layers=2", "'modle.layers' is not a setting", "model.layers"),
    wrong("train split.name=unsen", "split.name='unsen'", "did you mean unseen"),
    wrong("train training.epochs=many", "training.epochs=many"),
    wrong("train training.epochs=-1", "training.epochs=-1"),
    wrong("train data=ecoli-core-grwth", "did you mean ecoli-core-growth", often=True),
    wrong("train --settings data=ecoli-core-grwth", "did you mean ecoli-core-growth"),
    wrong("train model=dnago", "did you mean dango?", often=True),
    wrong("train experiment=yeast-digenic-bst", "did you mean yeast-digenic-best", often=True),
    wrong("train --settings data.tokens=foo", "data.tokens='foo'", "all, measured"),
    wrong("train --only 2 data=my", "--only 2", "--multirun"),
    wrong("train 'baselines=[boostng]'", "did you mean boosting"),
    wrong("train data=my baselines=mean", "baselines=mean", "write baselines=[mean]"),
    wrong("train data=my split=random", "split=random", "write split.name=random"),
    wrong("train seed=1,2", "--multirun"),
    wrong(TRAIN, "runs/first", "run.overwrite=true"),
    Step("evaluate runs/first", out=("Pearson", "mean")),
    Step("report runs/first -o page.html", err=("page.html",)),
)

ASKING = (
    Step("predict runs/first --set b0902,b1761 --set b0116,b0726", columns=PREDICTED, rows=2, often=True),
    Step("predict runs/my --set SGS1,SRS2 --set CDC28:reduced,CLN2 --json", out=('"epsilon"',)),
    Step(
        "predict runs/my --file plan.csv --interval 0.9 -o out.csv",
        columns=("plate", "genes", "plasmid", "epsilon_low"),
        rows=3,
    ),
    Step("predict runs/my --file -", stdin="SGS1 PDR5\nCLN2,CDC28\n", columns=PREDICTED[:3], rows=2),
    Step(
        "predict runs/my --file - -o piped.csv",
        stdin='genes,kind\n"SGS1,PDR5",absent\nCLN2;CDC28,absent;reduced\n',
        columns=PREDICTED[:3],
        rows=2,
    ),
    Step("predict runs/my --set SGS1,SRS2 --evidence pairs.csv", columns=PREDICTED[:3], rows=1),
    wrong("predict runs/my --set SGS1,SRS22", "'SRS22' is not in organism 'yeast'", "SRS2", often=True),
    wrong("predict runs/my --set SGS1,SGS1", "more than once"),
    wrong(
        "predict runs/my --set SGS1,X --set CLN2,Y --set SGS1,SRS2",
        "2 rows do not fit",
        "row 2: 'Y'",
        often=True,
    ),
    wrong("predict runs/none --set SGS1,SRS2", "no run at 'runs/none'"),
    wrong("predict runs/my", "nothing to predict", "--set"),
    wrong("predict runs/my --file missing.csv", "missing.csv"),
    wrong("predict runs/my --file unquoted.csv", "'SGS1,SRS2'", "in quotes, or semicolons"),
    Step("screen runs/my --exclude out.csv --top 2 --direction low", columns=SCREENED, rows=2),
    wrong("predict runs/my --file plan.csv -o out.xlsx", ".parquet"),
    Step(
        "screen runs/first --order 2 --top 5 -o next.csv",
        err=("9,316 mutants in the design",),
        columns=SCREENED,
        rows=10,
        often=True,
    ),
    Step("screen runs/my --unmeasured --max-per-gene 2 --top 3 --direction low", columns=SCREENED, rows=3),
    wrong("screen runs/my --order 1", "at least 2 genes", often=True),
    wrong("screen runs/my --among SGS1,SRS22", "SRS22"),
    wrong("screen runs/my --phenotype epsilom", "did you mean epsilon?"),
    wrong("plot calibraton runs/my -o plot.svg", "did you mean calibration?"),
    wrong("screen runs/my --direction down", "direction='down'", "low, high, both"),
    Step("embed runs/my --set SGS1,SRS2", columns=("genes", "kinds", "z_S.0"), rows=1),
    Step("explain runs/my", out=("trained on my", "Whole-cell latents")),
)

OWN_DATA = (
    Step(IMPORT, often=True),
    Step(SCREENER, often=True),
    Step("data template -o empty.csv"),
    wrong("data import broken.csv --organism yeast --name broken --yes", "NOGENE", "high", often=True),
    wrong("data import unquoted-values.csv --organism yeast --name u --yes", "one cell more than the header"),
    wrong("data import pairs.csv --organism yeats --yes", "no organism 'yeats'", "did you mean yeast?"),
    wrong("data build yeast", "--from FOLDER"),
)

HOUR = (*LOOKING_ROUND, *TRAINING, *ASKING, *OWN_DATA)
