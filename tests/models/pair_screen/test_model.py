"""The pair screen on a tiny screen: what it learns from, what it answers, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experiments.test_crosses import permuted, side_of, with_a_users_pair
from tests.screened import screened_dataset, strain_crosses, with_cut_offs
from tests.tiny import mixed_dataset, tiny_dataset
from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import grid_of
from wildtype.errors import CheckpointError, ConfigError
from wildtype.evaluation.calibration import measure_coverage
from wildtype.evaluation.conformal import Conformal
from wildtype.evidence.column_families import family_of
from wildtype.evidence.pair_index import Pairs
from wildtype.experiments.ablation_tables import _outcomes
from wildtype.experiments.data import prepare
from wildtype.experiments.estimate import estimate_run
from wildtype.experiments.profile import profile_pipelines, profile_run, profile_step, profile_trace
from wildtype.experiments.report import write_report
from wildtype.experiments.run import train
from wildtype.experiments.settings.ablation import AblationRun
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.inference import predictor
from wildtype.inference.predictor import Predictor, load
from wildtype.models.described_pairs import UNSEEN
from wildtype.models.ensemble import Ensemble
from wildtype.models.pair_screen.model import PairScreen
from wildtype.models.registry import MODELS, model_class
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.grid import TRAIN, VALIDATION
from wildtype.mutants.selection import CLASSES, Selection
from wildtype.mutants.unlisted import UnlistedMean
from wildtype.profiling.synthetic_problem import ProblemSizes
from wildtype.profiling.trace import Window

N = 30
QUICK = [
    "model=pair_screen", "data.name=tiny-screen", "model.folds=2", "model.gene_folds=2", "model.iterations=8",
    "model.bags=1", "model.least_rows=5", "model.leaves=8", "data.unlisted=0.5", "data.crosses=40",
    "split.validation=0.2", "split.test=0.3", "baselines=[]", "run.progress=false", "run.replicates=20",
    "training.threads=1",
]  # fmt: skip


def trained(folder: Path, dataset: Dataset | None = None, *words: str) -> Run:
    dataset = screened_dataset(N) if dataset is None else dataset
    return train(compose([*QUICK, f"run.folder={folder}", *words]), dataset=dataset)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("screen") / "run")


@pytest.fixture(scope="module")
def loaded(done: Run) -> Predictor:
    return load(done.path)


def test_it_predicts_four_numbers_again_after_loading(done: Run, loaded: Predictor) -> None:
    crosses = strain_crosses(grid_of(screened_dataset(N)))
    found = loaded.checkpoint.predict(crosses)
    np.testing.assert_array_equal(found, done.predictor.checkpoint.predict(crosses))
    at = {name: i for i, name in enumerate(loaded.phenotypes)}
    assert list(at) == ["epsilon", "negative", "positive", "epsilon_listed"]
    assert np.isfinite(found).all()
    for name in ("negative", "positive"):
        assert (found[:, at[name]] > 0).all()
        assert (found[:, at[name]] < 1).all()
        assert np.unique(found[:, at[name]]).size > 10
    # E[ε | listed] is further from 0 than E[ε], which unlisted crosses pull to 0.
    listed, effect = (np.abs(found[:, at[name]]).mean() for name in ("epsilon_listed", "epsilon"))
    assert listed > effect


def test_a_cross_that_was_not_listed_is_expected_to_lie_between_the_cut_offs(tmp_path: Path) -> None:
    dataset = with_cut_offs(screened_dataset(N))
    run = trained(tmp_path / "run", dataset)
    names = run.predictor.genes.names
    crosses = strain_crosses(grid_of(dataset))
    crosses = crosses.take(np.flatnonzero(~crosses.holding(crosses.kind > 0)))  # as names without a kind are
    frame = run.predictor.predict([*[[names[g] for g in s] for s in crosses.sets()], [names[0]]])
    predicted = run.predictor.checkpoint.predict(crosses)
    rule = UnlistedMean.of(run.predictor.checkpoint.phenotypes)
    assert rule is not None
    at = frame.columns.get_loc("epsilon_unlisted")
    assert frame.columns[at - 1] == "epsilon_listed"
    np.testing.assert_array_equal(frame["epsilon_unlisted"][:-1], rule(predicted))
    assert frame["epsilon_unlisted"].abs().max() < 0.08
    assert np.isnan(frame["epsilon_unlisted"].iloc[-1])  # one gene
    told = frame["note"].str.contains("screened and not listed: epsilon_unlisted is what to expect")
    assert set(frame["screened"][told]) == {"screened, not listed"}
    assert told.sum() == (frame["screened"] == "screened, not listed").sum() > 20
    # The unlisted crosses of a run, too: they were measured.
    left = run.predictor.screen(2, unmeasured=True, top=500, direction="low", phenotypes=["epsilon"])
    assert set(left["screened"]) <= {"not crossed", "unknown"}
    whole = run.predictor.screen(2, top=500, direction="low", phenotypes=["epsilon"])
    measured = whole["screened"].isin(["listed", "screened, not listed"])
    assert measured.sum() > 100
    assert left["genes"].tolist() == whole["genes"][~measured].tolist()


def test_pairs_of_unseen_genes_have_forests_of_their_own(loaded: Predictor) -> None:
    model = loaded.checkpoint.model
    assert isinstance(model, PairScreen)
    for i in range(len(loaded.phenotypes)):
        for unseen in UNSEEN:
            assert len(model.forests[f"{i}_{unseen}"].split) > model.config.iterations
    wild_type = loaded.checkpoint.encode()
    batch = MutantBatch.from_table(strain_crosses(grid_of(screened_dataset(N))).take(np.arange(9)))
    assert loaded.checkpoint.pairs is not None
    batch.columns, _ = loaded.checkpoint.pairs.described(batch)
    answers = []
    for unseen in UNSEEN:
        batch.unseen = torch.full((9,), unseen)
        answers.append(model(wild_type, batch).mean)
    assert not any(torch.equal(a, b) for a, b in pairwise(answers))


def test_feature_blocks_can_be_left_out(tmp_path: Path, done: Run) -> None:
    found = trained(tmp_path / "run", None, "model.leave_out=[shape]")
    parts = [run.predictor.checkpoint.organism.similarity.parts for run in (done, found)]
    assert "shape" in parts[0]
    assert set(parts[0]) - set(parts[1]) == {"shape"}
    with pytest.raises(ConfigError, match=r"model\.leave_out names 'nothing'"):
        trained(tmp_path / "other", None, "model.leave_out=[nothing]")


def test_singles_and_triples_are_empty_with_one_note_and_no_screen(loaded: Predictor) -> None:
    frame = loaded.predict([["G001"], ["G001", "G009"], ["G001", "G009", "G012"]], interval=0.5)
    for name in loaded.phenotypes:
        assert np.isfinite(frame[name]).tolist() == [False, True, False]
        if name not in CLASSES:
            assert np.isnan(frame[f"{name}_low"].to_numpy()[[0, 2]]).all()
    for row in (0, 2):
        note = frame["note"][row]
        assert note.count("model pair_screen scores mutants of 2 genes") == 1
        assert "overflowed" not in note
        assert "at least" not in note
    assert "scores mutants" not in frame["note"][1]
    with pytest.raises(ConfigError, match="mutants of this screen have 3 genes, and model 'pair_screen'"):
        loaded.screen(3)
    assert len(loaded.screen(2, top=5, direction="low", phenotypes=["epsilon"])) == 5


def test_intervals_hold_for_any_cross_and_a_class_has_none(done: Run, loaded: Predictor) -> None:
    crosses = [list(s) for s in strain_crosses(grid_of(screened_dataset(N))).take(np.arange(40)).sets()]
    names = [[loaded.genes.names[g] for g in s] for s in crosses]
    frame = loaded.predict(names, interval=0.5)
    # The tiny screen does not tell what its unlisted crosses have, which stand as 0.
    assert frame["epsilon_low"].isna().all()
    assert frame["note"].str.contains("values of crosses that are not listed are not known").all()
    assert np.isfinite(frame["epsilon_listed_low"]).all()
    assert not {"negative_low", "negative_high", "positive_low"} & set(frame.columns)
    told = [dict(p) for p in loaded.checkpoint.phenotypes]
    told[3]["selection"] = asdict(Selection(-0.08, 0.08, None, -0.01, 0.05, "elsewhere"))
    conformal = Conformal(replace(loaded.checkpoint, phenotypes=told))
    table = strain_crosses(grid_of(screened_dataset(N))).take(np.arange(40))
    values, sd = loaded.checkpoint.predict_with_sd(table)
    half = [
        (a.high - a.low)[:, 0] / 2 for a in (conformal.intervals(table, values, sd, x) for x in (0.5, 0.8))
    ]
    # Half of the unlisted crosses, most of all, are further than 0.67 sd from their mean.
    assert (half[0] > 0.5 * 0.05).all()
    assert (half[1] > half[0]).all()
    test = done.predictor.checkpoint.known.rows("test")
    rows = conformal.labels(test, "test")
    assert np.isfinite(rows).all()
    assert not (rows[test.phenotype == 0] == 0).any()
    drawn = (test.phenotype == 0) & (test.value == 0)
    assert not np.isin(rows[drawn], conformal.labels(test, "validation")).any()


def test_coverage_of_a_screen_that_does_not_tell_of_unlisted_crosses(
    loaded: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many validation rows it tried to learn errors from labels that are not known."""
    monkeypatch.setattr("wildtype.evaluation.conformal.FEWEST_ROWS", 1)
    monkeypatch.setattr("wildtype.evaluation.conformal.FEWEST_CLUSTERS", 1)
    found = {one.phenotype: one for one in measure_coverage(loaded.checkpoint, [0.5])}
    assert found["epsilon"].without == found["epsilon"].rows > 0
    assert "not known" in found["epsilon"].reason


def test_a_dense_map_needs_no_grid(tmp_path: Path) -> None:
    words = ["data.name=tiny-growth", "data.phenotypes=[epsilon]"]
    done = trained(tmp_path / "run", tiny_dataset(), *words)
    found = load(done.path).predict([["G001", "G002"], ["G003", "G004"]])
    assert np.isfinite(found["epsilon"]).all()
    table = done.comparisons["epsilon"]
    assert np.isfinite(table["pair_screen"].mse.value)


def test_two_measured_phenotypes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    words = ["data.name=tiny-mixed", "data.phenotypes=[fitness,size]"]
    with pytest.raises(ConfigError, match="one measured phenotype of pairs, received fitness, size: name"):
        trained(tmp_path / "run", mixed_dataset(), *words)
    assert not (tmp_path / "run").exists()


def test_the_measured_phenotype_comes_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"describes pairs by epsilon: name it first in data\.phenotypes"):
        trained(tmp_path / "run", None, "data.phenotypes=[negative,epsilon]")
    assert not (tmp_path / "run").exists()


def test_rows_that_are_no_pairs_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    words = ["data.name=tiny-growth", "data.phenotypes=[fitness]"]
    with pytest.raises(ConfigError, match="24 of 300 rows of fitness have 1 perturbed genes, .* of 2 genes"):
        trained(tmp_path / "run", tiny_dataset(), *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("split", ["random", "one-unseen", "unseen"])
def test_values_and_listing_of_hidden_crosses_change_no_prediction(tmp_path: Path, split: str) -> None:
    dataset, words = screened_dataset(36), [f"split.name={split}"]
    crosses = strain_crosses(grid_of(dataset))
    side = side_of(prepare(compose([*QUICK, *words]), dataset), crosses)
    other = permuted(dataset, (side != TRAIN) & (side != VALIDATION))
    assert set(map(tuple, other.table.matrix(2))) != set(map(tuple, dataset.table.matrix(2)))
    first, second = (
        load(trained(tmp_path / name, each, *words).path).checkpoint.predict(crosses)
        for name, each in (("a", dataset), ("b", other))
    )
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(first).all()
    # The test can fail: the same of training crosses changes predictions.
    third = trained(tmp_path / "c", permuted(dataset, side == TRAIN), *words)
    assert not np.array_equal(first, load(third.path).checkpoint.predict(crosses))


def test_a_killed_run_is_finished_with_the_same_result(
    done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = model_class("pair_screen")
    with monkeypatch.context() as patch:

        def die(*_: object) -> str:
            raise InterruptedError

        patch.setattr(kind, "post_fit", die)
        with pytest.raises(InterruptedError):
            trained(tmp_path / "run")
    again = trained(tmp_path / "run", None, "run.resume=true")
    crosses = strain_crosses(grid_of(screened_dataset(N)))
    found = [load(each.path).checkpoint.predict(crosses) for each in (done, again)]
    np.testing.assert_array_equal(*found)
    with pytest.raises(CheckpointError, match="another configuration"):
        trained(tmp_path / "run", None, "run.resume=true", "model.iterations=9")


def test_families_that_are_left_out_are_read_by_no_tree(tmp_path: Path, loaded: Predictor) -> None:
    left_out = ["similar_genes", "low_rank"]

    def asked(predictor: Predictor) -> set[str]:
        checkpoint = predictor.checkpoint
        assert isinstance(checkpoint.model, PairScreen)
        index = checkpoint.pairs
        assert index is not None
        index.columns(Pairs(np.array([[0, 1]]), np.zeros((1, 2), np.uint8)))
        columns = {int(i) for forest in checkpoint.model.forests.values() for i in forest.feature if i >= 0}
        return {family_of(index.names[i]) or "" for i in columns}

    assert asked(loaded) >= {*left_out, "effects"}
    less = load(trained(tmp_path / "run", None, f"model.without=[{','.join(left_out)}]").path)
    assert "effects" in (found := asked(less))
    assert found.isdisjoint(left_out)


def test_members_of_an_ensemble_differ_and_are_averaged(tmp_path: Path) -> None:
    two = load(trained(tmp_path / "run", None, "training.members=2", "model.bags=2").path).checkpoint
    assert isinstance(two.model, Ensemble)
    crosses = strain_crosses(grid_of(screened_dataset(N))).take(np.arange(40))
    mean, sd = two.predict_with_sd(crosses)
    single = [replace(two, model=member).predict(crosses) for member in two.model.members]  # type: ignore[arg-type]
    assert not np.array_equal(*single)
    np.testing.assert_allclose(mean[:, 0], np.mean(single, axis=0)[:, 0], atol=1e-6)
    assert (sd[:, 0] > 0).any()


def test_a_users_pairs_change_predictions_of_others_and_never_of_themselves(loaded: Predictor) -> None:
    dataset = screened_dataset(N)
    itself, low, high = with_a_users_pair(loaded, QUICK, dataset)
    np.testing.assert_array_equal(low[itself], high[itself])
    assert not np.array_equal(low, high)
    assert not np.array_equal(low, loaded.checkpoint.predict(strain_crosses(grid_of(dataset))))


def test_a_page_is_the_same_with_the_model_at_hand_and_reads_none(
    done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report([Run(done.path)], tmp_path / "read.html", screened=100)
    monkeypatch.setattr(predictor, "load", lambda path: pytest.fail(f"{path} was read"))
    write_report([done], tmp_path / "at_hand.html", screened=100)
    assert (tmp_path / "at_hand.html").read_text() == (tmp_path / "read.html").read_text()


def test_card_and_report_have_no_epochs_and_no_empty_number(done: Run, tmp_path: Path) -> None:
    metrics = json.loads((done.path / "checkpoint" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["fit"]["best_score"] is None
    assert metrics["fit"]["epochs"] == 0
    assert np.isfinite(metrics["validation_score"])
    card = (done.path / "checkpoint" / "model_card.md").read_text(encoding="utf-8")
    assert "# pair\\_screen on tiny-screen" in card or "# pair_screen on tiny-screen" in card
    assert "| parameters | – |" in card  # trees have none that are trained by gradients
    assert "Evidence: every visible cross of the screen" in card
    write_report([Run(done.path)], tmp_path / "report.html", screened=0)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "pair_screen" in page
    for text in (card, page):
        assert not [word for word in text.replace("<", " ").replace(">", " ").split() if word == "nan"]
    for file in done.path.rglob("*.json"):
        assert "NaN" not in file.read_text(encoding="utf-8"), file


def test_what_is_about_training_steps_is_refused_by_name(tmp_path: Path) -> None:
    assert not MODELS["pair_screen"].gradients
    for name in MODELS:
        assert MODELS[name].gradients == model_class(name).gradients
    config, dataset = compose(QUICK), screened_dataset(N)
    refused = "model 'pair_screen' is fitted without gradients .* choose model=cell_transformer or dango"
    for ask in (
        lambda: profile_run(config, dataset=dataset),
        lambda: profile_step(config, dataset=dataset),
        lambda: profile_pipelines(config, [], dataset=dataset),
        lambda: profile_trace(config, Window(1, 1, 1), target=tmp_path / "trace.json", dataset=dataset),
        lambda: estimate_run(config, dataset=dataset),
        lambda: ProblemSizes(30, 2, 60, 4, 2).check(config.model),
        lambda: trained(tmp_path / "run", dataset, "execution=forward"),
        lambda: trained(tmp_path / "run", dataset, "run.estimate=true"),
        lambda: trained(tmp_path / "run", dataset, "training.snapshots=2"),
        lambda: trained(tmp_path / "run", dataset, "training.start=another"),
    ):
        with pytest.raises(ConfigError, match=refused):
            ask()
    assert not list(tmp_path.iterdir())


def test_an_ablation_compares_finished_models(done: Run) -> None:
    config = compose([*QUICK, f"run.folder={done.path}"])
    planned = AblationRun("whole", config, "base", "", "random")
    _, found = _outcomes(planned, timed=True)
    metrics = json.loads((done.path / "checkpoint" / "metrics.json").read_text(encoding="utf-8"))
    assert found["epsilon"].validation == metrics["validation_score"]
    assert np.isnan(found["epsilon"].seconds_per_epoch)


def test_another_organism_is_refused_and_a_new_gene_is_described_by_its_features(loaded: Predictor) -> None:
    organism = screened_dataset(N).organism
    with pytest.raises(ConfigError, match="describes pairs by a screen of its 30 genes .* no part of"):
        loaded.on(organism)
    wider = loaded.with_genes(organism.add_gene("NEW1"))
    sets = [["G001", "G002"], ["G001", "NEW1"]]
    found = wider.predict(sets)
    assert found["epsilon"][0] == loaded.predict(sets[:1])["epsilon"][0]
    assert np.isfinite(found["epsilon"][1])


@pytest.mark.slow
def test_of_two_processes_the_first_fits(tmp_path: Path) -> None:
    words = [
        *QUICK, "data.name=tiny-growth", "data.phenotypes=[epsilon]", "training.members=2",
        "training.device=cpu",
    ]  # fmt: skip
    alone = trained(tmp_path / "1", tiny_dataset(), *words)
    said = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m",
         "tests.training.in_processes", *words, f"run.folder={tmp_path / '2'}"],
        capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-2000:]
    sets = [["G001", "G002"], ["G003", "G004"]]
    a, b = (load(folder).predict(sets)["epsilon"] for folder in (alone.path, tmp_path / "2"))
    np.testing.assert_array_equal(a, b)
