"""A head that reads a whole screen: where it starts, what it may see, and what is stored of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experiments.test_crosses import permuted, side_of, with_a_users_pair
from tests.screened import screened_dataset, strain_crosses
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import grid_of
from wildtype.errors import ConfigError
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.setup import build, loaders, rows_of
from wildtype.experiments.stored import Run
from wildtype.inference.explaining.contributions import carried
from wildtype.inference.explaining.members import Opened, members_of
from wildtype.inference.predictor import Predictor, load
from wildtype.models.cell_transformer.head import SCREEN
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.cell_transformer.screen import COMPONENTS, Components, ScreenReadout
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.grid import TRAIN, VALIDATION
from wildtype.mutants.loader import Batches

N = 36
WORDS = [
    "model=cell_transformer", "model.head.screen=true", "model.evidence.tokens=0", "model.trees.bags=0",
    "model.table=false", "model.width=8", "model.layers=1", "model.heads=2", "model.head.heads=2",
    "model.prior.weight=0", "data.name=tiny-screen", "data.unlisted=0.5", "data.crosses=40",
    "split.validation=0.2", "split.test=0.3", "training.epochs=3", "training.threads=1", "baselines=[]",
    "run.progress=false", "run.replicates=20",
]  # fmt: skip


def trained(folder: Path, dataset: Dataset | None = None, *words: str) -> Run:
    dataset = screened_dataset(N) if dataset is None else dataset
    return train(compose([*WORDS, f"run.folder={folder}", *words]), dataset=dataset)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return load(trained(tmp_path_factory.mktemp("screen") / "run").path)


def head_of(predictor: Predictor) -> tuple[CellTransformer, ScreenReadout]:
    model = predictor.checkpoint.model
    assert isinstance(model, CellTransformer)
    assert model.head.screen is not None
    return model, model.head.screen


@pytest.fixture(scope="module")
def begun() -> tuple[CellTransformer, ScreenReadout, RunData, Batches, Batches]:
    """Return a model that is about to be trained, and its batches."""
    config = compose(WORDS)
    data = prepare(config, screened_dataset(N))
    model, tensors = build(config, data, 0)
    assert isinstance(model, CellTransformer)
    assert model.head.screen is not None
    batches = loaders(config, data, tensors, 0)
    served = model.pre_fit(batches.train, batches.validation, rows_of(data, tensors, 0))
    return model, model.head.screen, data, *served


def test_training_starts_at_the_weighted_sums(
    begun: tuple[CellTransformer, ScreenReadout, RunData, Batches, Batches],
) -> None:
    model, screen, data, train_batches, validation = begun
    model.eval()
    wild_type = model.encode(build(compose(WORDS), data, 0)[1])
    met = set()
    for batch in (*train_batches, *validation):
        found = model(wild_type, batch).mean
        assert batch.unseen is not None
        assert batch.columns is not None
        for i, output in enumerate(screen.outputs):
            expected = torch.zeros(len(batch))
            if output.form == "scalar":
                for unseen in (0, 1, 2):
                    rows = batch.unseen == unseen
                    met |= {unseen} if bool(rows.any()) else set()
                    expected[rows] = screen.start[f"{i}_{unseen}"](batch.columns[rows]).float()
            torch.testing.assert_close(found[:, i], expected)
    assert met == {0, 1, 2}


def test_starts_fit_training_rows_better_than_their_mean(
    begun: tuple[CellTransformer, ScreenReadout, RunData, Batches, Batches],
) -> None:
    _, screen, _, train_batches, _ = begun
    left, before = 0.0, 0.0
    for batch in train_batches:
        rows = torch.nonzero(batch.phenotype == 0).reshape(-1)
        mutant = rows if batch.mutant is None else batch.mutant[rows]
        weight = torch.ones(len(rows)) if batch.weight is None else batch.weight[rows]
        apart = batch.value[rows] - screen.starts(batch)[mutant, 0]
        left += float((weight * apart**2).sum())
        before += float((weight * batch.value[rows] ** 2).sum())
    assert left < 0.9 * before


def test_it_predicts_the_same_after_loading(tmp_path: Path, loaded: Predictor) -> None:
    crosses = strain_crosses(grid_of(screened_dataset(N)))
    found = trained(tmp_path / "run").predictor.checkpoint.predict(crosses)
    np.testing.assert_array_equal(found, loaded.checkpoint.predict(crosses))
    assert np.isfinite(found).all()


def test_it_leaves_its_start_as_far_as_validation_rows_say(tmp_path: Path) -> None:
    """Of the weights in a fine grid, none has less squared error on validation rows than the fitted one."""
    run = trained(tmp_path / "run", None, "training.epochs=12", "training.learning_rate=0.01")
    model, _ = head_of(load(run.path))
    config = compose(WORDS)
    rows = prepare(config, screened_dataset(N)).part("validation")
    rows = rows.take(np.flatnonzero(rows.phenotype == 0))
    fitted = float(model.head.beyond_start[0])
    assert 0 <= fitted <= 1
    checkpoint = load(run.path).checkpoint
    own = checkpoint.model
    assert isinstance(own, CellTransformer)

    def error(weight: float) -> float:
        own.head.beyond_start.fill_(weight)
        return float(np.square(checkpoint.predict(rows)[:, 0] - rows.value).sum())

    errors = [error(weight) for weight in np.linspace(0, 1, 51)]
    assert error(fitted) <= min(errors) * (1 + 1e-6)


def test_mutants_that_are_no_pairs_have_an_answer_without_columns(loaded: Predictor) -> None:
    table = MutantTable.build(np.array([0, 1, 2, 3]), np.array([0, 1, 4]))
    assert np.isfinite(loaded.checkpoint.predict(table)).all()


def test_a_batch_that_nobody_described_is_refused(loaded: Predictor) -> None:
    _, screen = head_of(loaded)
    table = MutantTable.build(np.array([0, 1]), np.array([0, 2]))
    with pytest.raises(ConfigError, match="not described by the screen"):
        screen(MutantBatch.from_table(table))


@pytest.mark.parametrize(
    "split", ["random", *(pytest.param(name, marks=pytest.mark.slow) for name in ("one-unseen", "unseen"))]
)
def test_values_and_listing_of_hidden_crosses_change_no_prediction(tmp_path: Path, split: str) -> None:
    dataset, words = screened_dataset(N), [f"split.name={split}"]
    crosses = strain_crosses(grid_of(dataset))
    side = side_of(prepare(compose([*WORDS, *words]), dataset), crosses)
    other = permuted(dataset, (side != TRAIN) & (side != VALIDATION))
    first, second = (
        load(trained(tmp_path / name, each, *words).path) for name, each in (("a", dataset), ("b", other))
    )
    np.testing.assert_array_equal(first.checkpoint.predict(crosses), second.checkpoint.predict(crosses))
    third = load(trained(tmp_path / "c", permuted(dataset, side == TRAIN), *words).path)
    assert not np.array_equal(first.checkpoint.predict(crosses), third.checkpoint.predict(crosses))


def test_a_users_pairs_change_predictions_of_others_and_never_of_themselves(loaded: Predictor) -> None:
    itself, low, high = with_a_users_pair(loaded, WORDS, screened_dataset(N))
    np.testing.assert_array_equal(low[itself], high[itself])
    assert not np.array_equal(low, high)


def test_an_explanation_counts_what_the_screen_says(loaded: Predictor) -> None:
    """Contributions sum to the prediction less that of the wild type, and the start is one of them."""
    (one,) = members_of([Opened("run", loaded, None)])
    crosses = strain_crosses(grid_of(screened_dataset(N)))
    for row in (3, 40):
        table = crosses.take(np.array([row]))
        found = carried(one, table, 0)
        start = found.integrated["weighted sum of the screen's columns"]
        assert start != 0
        assert SCREEN in found.integrated
        batch = one.checkpoint.looked_up(MutantBatch.from_table(table))
        with torch.no_grad():
            expected = float(one.model(one.wild_type, batch).mean[0, 0])
        scale, mean = one.checkpoint.sd[0], one.checkpoint.mean[0]
        assert found.network == pytest.approx(mean + scale * expected, abs=1e-6)
        assert sum(found.integrated.values()) == pytest.approx(found.network - found.baseline, abs=1e-4)


def test_trees_beside_a_screen_are_refused() -> None:
    config = compose([*WORDS, "model.trees.bags=1"])
    with pytest.raises(ConfigError, match=r"model\.head\.screen=true with model\.trees\.bags=1"):
        train(config, dataset=screened_dataset(N))


def test_a_phenotype_without_pairs_describes_none(tmp_path: Path) -> None:
    table = MutantTable.build(
        np.array([*range(20), *np.stack([np.zeros(19, int), np.arange(1, 20)], 1).ravel()]),
        np.array([*range(21), *range(22, 60, 2)]),
        phenotype=np.repeat([0, 1], [20, 19]),
        value=np.random.default_rng(0).standard_normal(39).astype(np.float32),
    )
    dataset = replace(tiny_dataset(), table=table)
    with pytest.raises(ConfigError, match=r"describes pairs by fitness, of which no training row is a pair"):
        train(
            compose(
                [
                    *WORDS,
                    "data.name=tiny-growth",
                    "data.phenotypes=[fitness,epsilon]",
                    f"run.folder={tmp_path}/run",
                ]
            ),
            dataset=dataset,
        )


def test_an_ensemble_describes_pairs_once_and_keeps_its_members_weights(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", None, "training.members=2", "training.epochs=2")
    crosses = strain_crosses(grid_of(screened_dataset(N))).take(np.arange(40))
    checkpoint = load(run.path).checkpoint
    single = [replace(checkpoint, model=member).predict(crosses) for member in checkpoint.model.members]  # type: ignore[union-attr]
    np.testing.assert_allclose(checkpoint.predict(crosses)[:, 0], np.mean(single, axis=0)[:, 0], atol=1e-6)


def test_components_are_those_of_their_definition() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((400, 6)) @ rng.standard_normal((6, 6))).astype(np.float32)
    x[:, 3] = 2.0
    x[rng.random(x.shape) < 0.1] = np.nan
    made = Components.of(x, 0)
    known = ~np.isnan(x)
    mean = np.nansum(x, 0) / known.sum(0)
    sd = np.sqrt(np.nansum((x - mean) ** 2, 0) / known.sum(0))
    scaled = np.where(known & (sd > 1e-5), (x - mean) / np.maximum(sd, 1e-5), 0)
    drawn = np.sign(scaled) * np.log1p(np.abs(scaled))
    centred = drawn - drawn.mean(0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left * size
    expected *= np.maximum(size**2 / len(x), 1e-6) ** -0.25
    found = made(torch.from_numpy(x)).numpy()
    assert found.shape == (400, COMPONENTS)
    # Of the six columns one is constant. Axes have no sign.
    np.testing.assert_allclose(np.abs(found[:, :5]), np.abs(expected[:, :5]), rtol=2e-2, atol=2e-4)
    np.testing.assert_allclose(found[:, 6:], 0)
    other = Components()
    other.load_state_dict(made.state_dict())
    np.testing.assert_array_equal(other(torch.from_numpy(x)).numpy(), found)


def test_before_it_is_fitted_there_is_nothing_to_read() -> None:
    screen = ScreenReadout([], 0.0)
    batch = MutantBatch.from_table(MutantTable.build(np.array([0, 1]), np.array([0, 2])))
    assert torch.equal(screen(batch)[0], screen.layers(torch.zeros(1, COMPONENTS))[0] + screen.kind.weight[0])
