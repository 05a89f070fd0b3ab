from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.reading import StageReport
from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.comparison import Comparison, Difference, Score
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
from wildtype.report.comparison_tables import comparison_to_markdown, facts_of, print_comparison
from wildtype.report.data_tables import print_card, print_relations


def printed(width: int = 100, encoding: str = "utf-8") -> tuple[Console, io.BytesIO]:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    return Console(file=stream, width=width, color_system=None), raw


@pytest.fixture
def comparison() -> Comparison:
    scores = (
        Score(
            "boosting_propagation",
            True,
            6068,
            pearson=IntervalEstimate(0.524, 0.5, 0.55),
            spearman=IntervalEstimate(0.411, 0.4, 0.42),
            mse=IntervalEstimate(0.01234, 0.01, 0.02),
            bias=IntervalEstimate(-0.0213, -0.03, -0.01),
            r2=IntervalEstimate(-0.25, -0.3, -0.2),
            auroc_sign=IntervalEstimate(0.831, 0.8, 0.9),
            seconds=75.2,
            peak_mib=1234.5,
            undefined={"auroc_strong": "there are 6068 positive and 0 negative rows"},
        ),
        Score(
            "cell_transformer",
            False,
            6068,
            pearson=IntervalEstimate(0.4, 0.38, 0.42),
            mse=IntervalEstimate(0.0000123, 0.0, 0.1),
            delta=Difference("boosting_propagation", -0.124, -0.14, -0.1, 0.002),
            seconds=1234.0,
            undefined={"auroc_strong": "there are 6068 positive and 0 negative rows"},
        ),
        Score("odd [red]|`name`[/]", True, 6068, undefined={"pearson": "all predictions are equal"}),
    )
    return Comparison(
        dataset="costanzo2010",
        dataset_sha256="0" * 64,
        phenotype="epsilon",
        split="random",
        rows=6068,
        headline="pearson",
        reference="boosting_propagation",
        clusters="genes",
        cluster_count=3210,
        replicates=1000,
        seed=0,
        scores=scores,
        noise="no noise ceiling",
        notes=("a note [of] care",),
    )


def test_comparison_fits_a_terminal(comparison: Comparison) -> None:
    console, raw = printed(100)
    print_comparison(comparison, console)
    text = raw.getvalue().decode()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    row = next(line for line in lines if line.startswith("boosting_propagation "))
    for cell in ("0.52 [0.50, 0.55]", "reference", "0.41", "0.1111", "0.83", "75", "1,234"):
        assert cell in row
    row = next(line for line in lines if line.startswith("cell_transformer "))
    for cell in ("0.40 [0.38, 0.42]", "−0.12 [−0.14, −0.10]", "0.0035", "1,234", "–"):
        assert cell in row
    assert "odd [red]|`name`[/]" in text
    flat = " ".join(text.split())
    assert "bias, mean prediction minus mean label: boosting_propagation −0.0213" in flat
    assert "boosting_propagation (baseline) wins: Pearson 0.52 against 0.40 of cell_transformer" in flat
    assert "6,068 rows of costanzo2010, epsilon, split random" in flat
    assert "a note [of] care" in flat
    assert "odd [red]|`name`[/]: pearson is undefined: all predictions are equal" in flat
    assert "boosting_propagation, cell_transformer: auroc_strong is undefined: there are 6068" in flat


def test_comparison_in_a_terminal_that_knows_no_unicode(comparison: Comparison) -> None:
    console, raw = printed(100, "ascii")
    print_comparison(comparison, console)
    text = raw.getvalue().decode("ascii")
    assert "-0.12 [-0.14, -0.10]" in text
    assert "d to reference" in text


def test_markdown_has_every_metric(comparison: Comparison) -> None:
    text = comparison_to_markdown(comparison)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    columns = {line.replace("\\|", "").count("|") for line in table}
    assert columns == {15}
    assert "| RMSE | bias |" in text
    assert "| 1.2e-05 | 0.0035 |" in text
    assert "`boosting_propagation` (baseline)" in table[2]
    assert "−0.25" in table[2]
    assert "0.002" in table[3]
    assert "Pearson within negatives" in table[0]
    assert "Δ to boosting_propagation [95 %]" in table[0]
    assert f"**{comparison.winner_sentence}**" in text
    assert "* a note [of] care" in text


def test_undefined_estimates_are_dashes(comparison: Comparison) -> None:
    only = replace(comparison, reference="", scores=comparison.scores[2:])
    console, raw = printed()
    print_comparison(only, console)
    assert "nan" not in raw.getvalue().decode()
    assert "No model has a defined Pearson" in raw.getvalue().decode()
    assert "nan" not in comparison_to_markdown(only)


def organism() -> Organism:
    graphs = GeneGraphs(
        [
            Relation.from_edges(
                "physical [high]", [0, 1, 1], [1, 0, 2], 4, directed=False, source="publisher", version="9.1"
            ),
            Relation.from_edges(
                "regulatory", [3], [1], 4, [0.5], directed=True, note="a stand-in", dropped={"unknown": 7}
            ),
        ]
    )
    return Organism("toy", GeneIndex(["A", "B", "C", "D"]), graphs, description="made up")


def test_relations() -> None:
    console, raw = printed(120)
    print_relations(organism(), console)
    text = raw.getvalue().decode()
    assert max(map(len, text.splitlines())) <= 120
    row = next(line for line in text.splitlines() if line.startswith("physical [high]"))
    for cell in ("3", "2", "undirected", "duplicate 1", "publisher 9.1"):
        assert cell in row
    row = next(line for line in text.splitlines() if line.startswith("regulatory"))
    for cell in ("directed, weighted", "unknown 7"):
        assert cell in row
    assert "regulatory: a stand-in" in text
    bare, raw = printed()
    print_relations(Organism("bare", GeneIndex(["A"])), bare)
    assert "bare (1 genes) has no gene graphs" in raw.getvalue().decode()


def test_card() -> None:
    table = MutantTable.from_sets(
        [[0], [0, 1], [1, 2]], kind=np.array([0, 0, 1, 1, 1]), phenotype=[1, 0, 0], value=[0.9, -0.1, 0.2]
    )
    dataset = Dataset(
        "toy [set]",
        organism(),
        table,
        (Phenotype("epsilon", min_order=2), Phenotype("fitness")),
        targets=("epsilon",),
        excluded={"no label": 1234},
        policies={"alleles": "kept [apart]"},
        notes=("simulated",),
        noise="two screens agree with r = 0.8",
        citation="nobody et al.",
        stages=(
            StageReport("raw", "selected", "as stored", 2000, 2000),
            StageReport("convert", "genes", "known", 2000, 1990, dropped={"unknown [gene]": 10}),
            StageReport("convert", "suppressors", "drop", 1990, 1990),
            StageReport(
                "aggregate", "replicates", "mean", 1990, 3, merged={"replicates of one mutant": 1987}
            ),
        ),
    )
    console, raw = printed(100)
    print_card(dataset.card(), console)
    text = raw.getvalue().decode()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "toy [set]"
    for part in ("toy: made up", "4, of which perturbed in some row: 3", "no label 1,234", "kept [apart]"):
        assert part in text
    for part in ("policy: alleles", "simulated", "nobody et al.", dataset.sha256):
        assert part in text
    assert f"{Kind.ABSENT.name.lower()} 2; {Kind.REDUCED.name.lower()} 3" in text
    assert next(line for line in lines if line.startswith("epsilon")).split() == ["epsilon", "0", "2"]
    assert next(line for line in lines if line.startswith("fitness")).split() == ["fitness", "1", "0"]
    noise = next(line for line in lines if line.startswith("noise ceiling"))
    assert noise.rstrip().endswith("two screens agree with r = 0.8")
    header = next(i for i, line in enumerate(lines) if line.startswith("stage"))
    stages = [line.split() for line in lines[header:]]
    assert stages[2] == ["raw", "selected", "as", "stored", "2,000", "2,000", "–"]
    assert stages[3] == ["convert", "genes", "known", "2,000", "1,990", "unknown", "[gene]", "10"]
    assert stages[4][0] == "suppressors"  # a stage is named once
    assert stages[5][:5] == ["aggregate", "replicates", "mean", "1,990", "3"]
    assert stages[5][5:] == ["merged:", "replicates", "of", "one", "mutant", "1,987"]
    bare, raw = printed(100)
    print_card(replace(dataset, stages=()).card(), bare)
    assert "rows in" not in raw.getvalue().decode()
    assert "conditions" not in raw.getvalue().decode()
    console, raw = printed(100)
    print_card(replace(dataset, conditions=("YPD", "Gal", "NaCl")).card(), console)
    line = next(line for line in raw.getvalue().decode().splitlines() if line.startswith("conditions"))
    assert line.rstrip().endswith("YPD (the reference), Gal, NaCl")
    console, raw = printed(100)
    print_card(replace(dataset, conditions=tuple(f"c{i}" for i in range(25))).card(), console)
    assert "c19 and 5 more" in " ".join(raw.getvalue().decode().split())


def test_calls_have_log_loss_and_brier_where_others_have_errors_in_a_unit(comparison: Comparison) -> None:
    score = replace(
        comparison.scores[0],
        average_precision=IntervalEstimate(0.3, 0.2, 0.4),
        log_loss=IntervalEstimate(0.1395, 0.13, 0.15),
        brier=IntervalEstimate(0.0172, 0.016, 0.018),
    )
    calls = replace(comparison, headline="average_precision", scores=(score,))
    console, raw = printed(100)
    print_comparison(calls, console)
    head, row = (raw.getvalue().decode().splitlines()[i] for i in (0, 2))
    assert "log loss" in head
    assert "Brier" in head
    assert "0.1395" in row
    assert "0.0172" in row
    assert "RMSE" not in head
    assert "| 0.14 [0.13, 0.15] | 0.0172 |" in comparison_to_markdown(calls)
    # Where labels are no calls, that these errors are undefined is no fact worth a line.
    plain = replace(comparison.scores[0], undefined={"log_loss": "labels are no calls (0 and 1)"})
    assert not any("log_loss" in fact for fact in facts_of(replace(comparison, scores=(plain,))))
