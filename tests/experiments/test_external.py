"""External tests of a run: rows of other datasets, without those that the run may see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.experiments.test_crosses import COMPARED, settings
from tests.screened import screened_dataset, strain_crosses, with_cut_offs
from tests.tiny import tiny_dataset, tiny_organism
from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.cross_draws import grid_of
from wildtype.errors import ConfigError
from wildtype.evaluation.metrics import IN_UNIT
from wildtype.evaluation.summary import Summary
from wildtype.experiments import crosses, external
from wildtype.experiments import data as module
from wildtype.experiments.data import prepare
from wildtype.experiments.external import ZERO, ExternalRows, external_rows
from wildtype.experiments.pooled import summaries_of
from wildtype.experiments.report import write_plot, write_report
from wildtype.experiments.run import train
from wildtype.experiments.stored import Run
from wildtype.models.baselines.linear import MeanBaseline
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import SCREENED, TRAIN, VALIDATION
from wildtype.organism import GeneIndex

pytestmark = pytest.mark.usefixtures("few_trees")

N = 36
MODEL = "cell_transformer"


def outside(name: str = "outside", *, score: bool = False) -> Dataset:
    """Return all pairs of the tiny genes, in falling order of their names, and of two further genes."""
    organism = tiny_organism(N + 2)
    names = [*organism.genes.names[:N][::-1], "X001", "X002"]
    pairs = np.stack(np.triu_indices(N + 2, 1), 1)
    effect = np.random.default_rng(7).normal(0, 0.1, len(pairs))
    phenotype = (
        Phenotype("s_score", "S", "other:s_score", 2, strong=2.5, strong_positive=2.0)
        if score
        else Phenotype("epsilon", "fitness", "other:epsilon", 2)
    )
    return Dataset(
        name=name,
        organism=replace(organism, genes=GeneIndex(names, organism="tiny")),
        table=MutantTable.from_matrix(pairs, value=30 * effect if score else effect),
        phenotypes=(phenotype,),
        targets=(phenotype.name,),
        conditions=("another name of the reference",),
    )


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Dataset]:
    found = {"outside": outside(), "scores": outside("scores", score=True)}
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: found[name])
    return found["outside"], found["scores"]


def rows(*words: str, dataset: Dataset | None = None) -> tuple[module.RunData, ExternalRows, list[str]]:
    said: list[str] = []
    data = prepare(settings("data.also_test=[outside]", *words), dataset or screened_dataset(N))
    (found,) = external_rows(data, said.append)
    return data, found, said


@pytest.mark.parametrize("split", ["random", "one-unseen", "unseen", "any-unseen"])
def test_no_row_is_a_cross_that_the_run_may_see(two: tuple[Dataset, Dataset], split: str) -> None:
    data, found, said = rows(f"split.name={split}")
    assert data.grid is not None
    assert data.sides is not None
    every = strain_crosses(data.grid)
    seen = every.take(np.isin(data.sides.of_table(every), (TRAIN, VALIDATION)))
    pairs = set(map(tuple, found.table.matrix(2).tolist()))
    of_run = set(map(tuple, seen.matrix(2).tolist()))
    assert pairs.isdisjoint(of_run)
    # All other pairs of the run's genes are there: crosses of the test, linked ones, those never made.
    assert len(pairs) == N * (N - 1) // 2 - len(of_run)
    assert found.dropped["with genes outside the run's gene index"] == 2 * N + 1
    assert found.dropped["that the run may see in training or validation"] == len(of_run)
    assert f"{len(of_run):,} that the run may see" in said[0]
    # By name: each pair keeps its label, whatever the order of genes in the other index.
    names, other = data.dataset.organism.genes.names, two[0].organism.genes.names
    labels = {
        frozenset((other[a], other[b])): value
        for (a, b), value in zip(two[0].table.matrix(2).tolist(), two[0].table.value, strict=True)
    }
    for (a, b), value in zip(found.table.matrix(2).tolist(), found.table.value, strict=True):
        assert labels[frozenset((names[a], names[b]))] == value
    trained = np.unique(every.take(data.sides.of_table(every) == TRAIN).gene)
    assert np.array_equal(found.unseen, (~np.isin(found.table.matrix(2), trained)).sum(1))


GROUPS = {"lab": ("other", "tiny", "study")}


def test_rows_of_the_provenance_group_are_the_same_measurement(
    two: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plain, said = rows()
    count = plain.dropped["that the run may see in training or validation"]
    assert "provenance group" not in said[0]
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: replace(two[0], provenance=GROUPS))
    _, found, said = rows()
    one = "(provenance group lab: one measurement, whatever the numbers)"
    assert f"{count:,} that the run may see in training or validation {one}" in said[0]
    assert len(said) == 1
    assert np.array_equal(found.table.gene, plain.table.gene)
    assert np.array_equal(found.table.value, plain.table.value)


@pytest.mark.parametrize("noise", [0.001, 0.05])
def test_nearly_equal_labels_are_an_alarm_and_no_more(
    two: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch, noise: float
) -> None:
    # The labels of the run under another name, with some noise; all other pairs have labels at random.
    dataset, plain = screened_dataset(N), rows()[1]
    names = two[0].organism.genes.names
    own = dataset.organism.genes.names
    sets = [frozenset(own[g] for g in one) for one in dataset.table.sets()]
    label = dict(zip(sets, dataset.table.value.tolist(), strict=True))
    draw = np.random.default_rng(0)
    pairs = [frozenset(names[g] for g in one) for one in two[0].table.sets()]
    value = [label.get(pair, draw.normal()) + draw.normal(0, noise) for pair in pairs]
    copy = replace(two[0], table=replace(two[0].table, value=np.array(value, np.float32)))
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: copy)
    _, found, said = rows()
    alarmed = noise < 0.01
    assert bool(found.alarm) == alarmed
    assert any("may be one measurement under two names" in line for line in said) == alarmed
    assert np.array_equal(found.table.gene, plain.table.gene)
    assert found.dropped == plain.dropped
    # Of one declared group there is nothing to ask.
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: replace(copy, provenance=GROUPS))
    assert rows()[1].alarm == ""


def test_hidden_crosses_are_tested(two: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crosses, "load_dataset", lambda name, **options: two[0])
    data, found, _ = rows("split.hide={outside: 0.5}")
    assert data.sides is not None
    hidden = {divmod(code, N) for code in data.sides.hidden.tolist()}
    assert len(hidden) > 200
    assert hidden <= set(map(tuple, found.table.matrix(2).tolist()))


@pytest.mark.parametrize("words", [(), ("split.hide={outside: 0.5}",), ("split.name=unseen",)])
def test_what_the_screen_says_of_a_row_is_as_published(
    two: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Hidden crosses are said to be listed or not, too: the rows were scored before they are grouped."""
    monkeypatch.setattr(crosses, "load_dataset", lambda name, **options: two[0])
    dataset = screened_dataset(N)
    _, found, _ = rows(*words, dataset=dataset)
    grid = grid_of(dataset)
    strains = {
        side: set(
            zip(getattr(grid, f"{side}_gene").tolist(), getattr(grid, f"{side}_kind").tolist(), strict=True)
        )
        for side in ("query", "array")
    }
    listed = {
        frozenset(zip(genes, kinds, strict=True))
        for genes, kinds in zip(dataset.table.sets(), dataset.table.kind.reshape(-1, 2).tolist(), strict=True)
    }
    assert found.screen is not None
    counts = dict.fromkeys(SCREENED, 0)
    for (a, b), state in zip(found.table.matrix(2).tolist(), found.screen.tolist(), strict=True):
        one, other = (a, 0), (b, 0)
        crossed = any(
            x in strains["query"] and y in strains["array"] for x, y in ((one, other), (other, one))
        )
        if frozenset((one, other)) in listed:
            expected = "listed"
        elif crossed:
            unknown = min(a, b) * N + max(a, b) in grid.unknown
            expected = "crossed, result not known" if unknown else "screened, not listed"
        else:
            expected = "not crossed"
        assert SCREENED[state] == expected
        counts[expected] += 1
    assert min(counts.values()) > 0


def test_without_a_grid_no_row_has_the_gene_set_of_a_row_that_the_run_may_see(
    two: tuple[Dataset, Dataset],
) -> None:
    dataset = tiny_dataset(N)
    config = settings("data.also_test=[outside]", "data.name=tiny", "data.phenotypes=[epsilon]")
    data = prepare(config, dataset)
    (found,) = external_rows(data, lambda text: None)
    parts = (data.part("train"), data.part("validation"))
    seen = {one for part in parts for one in part.sets()}
    assert seen.isdisjoint(found.table.sets())
    assert found.dropped["that the run may see in training or validation"] >= len(
        {one for one in seen if len(one) == 2}
    )
    assert set(data.part("test").sets()) <= set(found.table.sets())


def test_tables_of_model_and_baselines_each_fitted_once(
    two: tuple[Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "LEAST_ROWS", 5)
    fits = []
    fit = MeanBaseline.fit

    def counted(self: MeanBaseline, *parts: object, **options: object) -> MeanBaseline:
        fits.append(1)
        return fit(self, *parts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(MeanBaseline, "fit", counted)
    words = (f"run.folder={tmp_path / 'a'}", f"baselines=[{','.join(COMPARED)}]", "split.name=unseen")
    said: list[str] = []
    dataset = screened_dataset(N)
    train(settings(*words, "data.also_test=[outside,scores]"), dataset=dataset, log=said.append)
    assert len(fits) == len(dataset.targets)
    tables = json.loads((tmp_path / "a" / "comparison.json").read_text())
    named = (*external.UNSEEN.values(), *reversed(SCREENED))
    groups = ("", *(f", {text}" for text in named))
    keys = [f"{one}{group}" for one in ("epsilon on outside", "s_score on scores") for group in groups]
    assert list(tables)[-len(keys) :] == keys
    text = (tmp_path / "a" / "comparison.md").read_text()
    assert all(f"## {key}\n" in text for key in keys)
    frame = pd.read_parquet(tmp_path / "a" / "external.parquet")
    assert any("rows of outside are an external test" in line for line in said)
    run = Run(tmp_path / "a")
    for key in keys:
        name, _, part = key.partition(", ")  # a group's name may hold a comma, too
        of = frame[frame["dataset"] == name.rpartition(" ")[2]]
        if part in SCREENED:
            of = of[of["screen"] == part]
        elif part:
            of = of[of["unseen"] == list(external.UNSEEN.values()).index(part)]
        table = run.comparisons[key]
        assert table.rows == len(of)
        assert any("that the run may see in training or validation" in note for note in table.notes)
        assert (ZERO in {score.model for score in table.scores}) == name.startswith("epsilon")
        for model in (*COMPARED, MODEL):
            score = table[model]
            assert score.baseline == (model != MODEL)
            assert of[model].notna().all()
            if np.ptp(of[model]) > 1e-9:
                assert score.pearson.value == pytest.approx(np.corrcoef(of["value"], of[model])[0, 1])
                assert np.isfinite([score.pearson.low, score.pearson.high]).all()
            assert "negative/average_precision" in score.retrieval
            if name.startswith("epsilon") and score.baseline is False:
                delta = score.differences[ZERO]["rmse"]
                squares = [np.mean((of["value"].astype(float) - p) ** 2) for p in (of[model], 0.0)]
                assert delta.value == pytest.approx(np.sqrt(squares[0]) - np.sqrt(squares[1]), abs=1e-9)
            if name.startswith("epsilon"):
                assert score.bias.value == pytest.approx(of[model].mean() - of["value"].mean(), abs=1e-6)
            else:
                reasons = {score.undefined[metric] for metric in IN_UNIT}
                assert reasons == {"epsilon is predicted, and s_score is another quantity"}
    # Tables of test rows and predictions are those of a run without external tests.
    train(settings(*words[1:], f"run.folder={tmp_path / 'b'}"), dataset=dataset)
    assert not (tmp_path / "b" / "external.parquet").exists()
    first, second = (pd.read_parquet(tmp_path / name / "predictions.parquet") for name in "ab")
    pd.testing.assert_frame_equal(first, second)
    plain = Run(tmp_path / "b").comparisons
    assert list(plain) == [key for key in tables if key not in keys]


def test_pairs_that_were_not_listed_are_a_question_of_their_own(
    two: tuple[Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "LEAST_ROWS", 5)
    dataset = with_cut_offs(screened_dataset(N))
    words = ("baselines=[mean]", "split.name=unseen", "data.also_test=[outside,scores]")
    train(settings(*words, f"run.folder={tmp_path}"), dataset=dataset)
    run = Run(tmp_path)
    named = [key for key in run.comparisons if "unlisted" in key]
    # Where a score is another quantity, no cut-off of epsilon tells anything of it.
    assert named[0] == "epsilon_unlisted on outside"
    assert all(key.startswith(named[0]) for key in named)
    stored = run.external
    assert stored is not None
    told = stored.query("phenotype == 'epsilon_unlisted'").reset_index(drop=True)
    every = stored.query("dataset == 'outside' and phenotype == 'epsilon'")
    same = every[every["screen"] == "screened, not listed"].reset_index(drop=True)
    pd.testing.assert_frame_equal(told[["genes", "value", "mean"]], same[["genes", "value", "mean"]])
    sets = [pair.split(",") for pair in told["genes"]]
    found = run.predictor.predict(sets)["epsilon_unlisted"]  # empty where a deletion is lethal
    assert found.notna().sum() >= 5
    np.testing.assert_allclose(told[MODEL][found.notna()], found.dropna(), rtol=0, atol=1e-9)
    assert not np.allclose(told[MODEL], same[MODEL])
    for table in (run.comparisons[named[0]], *summaries_of([run])):
        if isinstance(table, Summary):
            if table.phenotype != named[0] or table.pooled is None:
                continue
            table = table.pooled
        assert table.rows == len(told)
        assert {score.model for score in table.scores} == {MODEL, "mean", ZERO}
        assert table[MODEL].pearson.value == pytest.approx(np.corrcoef(told["value"], told[MODEL])[0, 1])


def test_positive_s_scores_have_their_own_threshold(two: tuple[Dataset, Dataset]) -> None:
    data = prepare(settings("data.also_test=[scores]"), screened_dataset(N))
    (found,) = external_rows(data, lambda text: None)
    kind = found.dataset.phenotypes[0]
    assert (kind.strong, kind.strong_positive) == (2.5, 2.0)
    assert kind == Phenotype.from_json(kind.to_json())


def test_a_feature_made_from_the_external_labels_is_hidden(two: tuple[Dataset, Dataset]) -> None:
    dataset = screened_dataset(N)
    block = replace(dataset.organism.features["shape"], measured=("other:epsilon",))
    features = type(dataset.organism.features)([block])
    dataset = replace(dataset, organism=replace(dataset.organism, features=features))
    assert "shape" in prepare(settings(), dataset).dataset.organism.features
    data = prepare(settings("data.also_test=[outside]"), dataset)
    assert "shape" not in data.dataset.organism.features


def test_another_organism_and_nothing_left(
    monkeypatch: pytest.MonkeyPatch, two: tuple[Dataset, Dataset]
) -> None:
    other = replace(two[0], organism=replace(two[0].organism, name="fly"))
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: other)
    with pytest.raises(ConfigError, match="a dataset of fly, and the run is on tiny"):
        prepare(settings("data.also_test=[outside]"), screened_dataset(N))
    dataset = screened_dataset(N)
    seen = replace(two[0], table=two[0].table.take(two[0].table.gene.reshape(-1, 2).max(1) >= N))
    monkeypatch.setattr(module, "load_dataset", lambda name, **options: seen)
    said: list[str] = []
    assert external_rows(prepare(settings("data.also_test=[outside]"), dataset), said.append) == []
    assert said[0].startswith("no row of outside is left for an external test: 73 with genes outside")
    assert grid_of(dataset).genes == N


@pytest.mark.slow
def test_a_run_on_a_grid_replays_campaigns(two: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    said: list[str] = []
    words = (f"run.folder={tmp_path}", "baselines=[mean,additive_ridge]", "data.also_test=[scores]")
    train(settings(*words), dataset=screened_dataset(N), log=said.append)
    found = {one["name"]: one for one in json.loads((tmp_path / "campaign.json").read_text())}
    assert list(found) == ["epsilon", "negative", "positive", "s_score on scores"]
    frame = pd.read_parquet(tmp_path / "predictions.parquet")
    for name, campaign in found.items():
        outcomes = {one["policy"]: one for one in campaign["outcomes"]}
        assert set(outcomes) == {MODEL, "mean", "additive_ridge", "random"}
        assert sum(campaign["outcomes"][0]["found"]) >= sum(campaign["outcomes"][1]["found"])
        if name in ("negative", "epsilon"):
            test = frame[frame["phenotype"] == name]
            hits = (test["value"] == 1) if name == "negative" else (test["value"] <= -0.08)
            assert campaign["hits"] == hits.sum() > 0
            assert len(outcomes[MODEL]["expected"]) == len(outcomes[MODEL]["found"])
        if name == "s_score on scores":
            assert outcomes[MODEL]["expected"] == []
    assert any(line.startswith("campaign negative: ") for line in said)
    # Of the two calls, the page of the run shows how often what was predicted happened.
    run = Run(tmp_path)
    assert {one.phenotype for one in run.reliability} == {"negative", "positive"}
    for name in ("negative", "positive"):
        bins = [one for one in run.reliability if one.phenotype == name]
        assert sum(one.rows for one in bins) == (frame["phenotype"] == name).sum()
    write_report([Run(tmp_path)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "reliability of negative" in page
    assert "reliability of positive" in page
    assert "s_score on scores: every model on the same" in page
    write_plot("reliability", [tmp_path], tmp_path / "reliability.svg")
    assert "predicted probability" in (tmp_path / "reliability.svg").read_text()
