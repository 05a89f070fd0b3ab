"""The Gaussian process against its plain definition, and as a model of small tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch

import wildtype as wt
from tests.screened import screened_dataset
from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError
from wildtype.evidence.label_features import LabelFeatures
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.experiments.data import prepare
from wildtype.experiments.fitting import post_fit
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.setup import build
from wildtype.experiments.stored import Run
from wildtype.models.gaussian_process.kernel import LEVEL, GeneSources, MutantKernel, Rows, between, describe
from wildtype.models.gaussian_process.process import GeneKernels, Measured, fit_kernel, given_rows
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

QUICK = ["model=gaussian_process", "data.name=tiny-growth", "baselines=[mean]", "run.progress=false",
         "run.replicates=20", "model.steps=10"]  # fmt: skip
KINDS = np.array([0, 0, 1, 4], np.uint8)
DOSES = np.array([np.nan, np.nan, -1.0, 0.0, 4.0], np.float32)
"""Doses may be logarithms: 0 and −1 are doses like others."""


@pytest.fixture(scope="module")
def sources() -> GeneSources:
    return GeneSources(GeneSimilarity.of(tiny_dataset().organism))


def drawn(seed: int, mutants: int = 9, most: int = 4) -> Rows:
    """Mutants of 0 to 4 genes, of several kinds, doses and conditions."""
    rng = np.random.default_rng(seed)
    order = rng.integers(0, most + 1, mutants)
    gene = np.concatenate([np.sort(rng.choice(12, k, replace=False)) for k in order])
    e = len(gene)
    parts = gene, rng.choice(KINDS, e), rng.choice(DOSES, e), np.repeat(np.arange(mutants), order)
    return Rows.of(*(torch.from_numpy(np.array(x)) for x in (*parts, rng.integers(0, 2, mutants))))


def fitted(sources: GeneSources, rows: Rows) -> MutantKernel:
    """A kernel whose weights and amplitudes all differ."""
    kernel = MutantKernel(len(sources))
    kernel.standardise(describe(rows, sources))
    stream = torch.Generator().manual_seed(0)
    for name in ("effects", "products", "related", "amplitude"):
        buffer = getattr(kernel, name)
        buffer.copy_(torch.randn(buffer.shape, generator=stream, dtype=torch.float64) / 2)
    return kernel


def measurements(rows: Rows) -> Measured:
    """Rows with random labels, as a checkpoint holds them."""
    made = Measured()
    made.gene, made.kind = rows.gene[rows.item], rows.kind[rows.item]
    dose = rows.dose[rows.item]
    made.dose, made.dosed = dose.nan_to_num(0.0), ~dose.isnan()
    made.row, made.condition = rows.row, rows.condition
    made.value = torch.randn(len(rows), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return made


def plain(kernel: MutantKernel, sources: GeneSources, left: Rows, right: Rows) -> np.ndarray:
    """The covariance by its definition: loops over mutants, perturbations and pairs of them."""
    alike = sources.between(np.arange(12), np.arange(12)).numpy()
    effects, products, related = (
        getattr(kernel, name).softmax(0).numpy() for name in ("effects", "products", "related")
    )
    amplitude, s = kernel.amplitude.exp().numpy(), float(kernel.dose_scale)

    def items(rows: Rows, mutant: int) -> list[tuple[int, int, float]]:
        of = rows.item[rows.row == mutant]
        return [(int(rows.gene[i]), int(rows.kind[i]), float(rows.dose[i])) for i in of]

    def treated(a: tuple[int, int, float], b: tuple[int, int, float]) -> float:
        if a[1] != b[1] or np.isnan(a[2]) != np.isnan(b[2]):
            return 0.5
        return 1.0 if np.isnan(a[2]) else 0.5 + 0.5 * float(np.exp(-(((a[2] - b[2]) / s) ** 2) / 2))

    def inside(of: list[tuple[int, int, float]]) -> np.ndarray:
        total = np.zeros(len(alike))
        for a, b in combinations(of, 2):
            total += alike[:, a[0], b[0]]
        return (total - kernel.centre.numpy()) / kernel.scale.numpy()

    out = np.zeros((len(left), len(right)))
    for x, y in product(range(len(left)), range(len(right))):
        first, second = items(left, x), items(right, y)
        for a, b in product(first, second):
            out[x, y] += amplitude[0] * treated(a, b) * effects @ alike[:, a[0], b[0]]
            out[x, y] += amplitude[1] * treated(a, b) * (a[0] == b[0])
        for a, b in combinations(first, 2):
            for c, d in combinations(second, 2):
                k = {(i, j): treated(i, j) * products @ alike[:, i[0], j[0]] for i in (a, b) for j in (c, d)}
                out[x, y] += amplitude[2] * (k[a, c] * k[b, d] + k[a, d] * k[b, c])
        r, q = inside(first), inside(second)
        out[x, y] += amplitude[3] * (related * r) @ q
        out[x, y] += amplitude[4] * np.exp(-(related @ (r - q) ** 2) / 2)
        out[x, y] *= 1.0 if left.condition[x] == right.condition[y] else 0.5
    return out + LEVEL


def test_the_covariance_is_that_of_its_definition(sources: GeneSources) -> None:
    left, right = drawn(0), drawn(1, 7)
    kernel = fitted(sources, right)
    assert bool(kernel.paired)
    assert float(kernel.dose_scale) != 1.0
    found = kernel(describe(left, sources), describe(right, sources), between(sources, left, right))
    np.testing.assert_allclose(found.numpy(), plain(kernel, sources, left, right), rtol=1e-10)


def test_label_columns_count_as_their_definition_says(sources: GeneSources) -> None:
    left, right = drawn(0), drawn(1, 7)
    kernel = fitted(sources, right)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 5)), rng.standard_normal((7, 5))
    with_columns = [
        describe(rows, sources, torch.from_numpy(columns)) for rows, columns in ((left, x), (right, y))
    ]
    alike, amplitude = between(sources, left, right), kernel.amplitude.exp().numpy()
    found = kernel(*with_columns, alike) - kernel(describe(left, sources), describe(right, sources), alike)
    for i, j in product(range(9), range(7)):
        more = amplitude[5] * x[i] @ y[j] / 5 + amplitude[6] * np.exp(-((x[i] - y[j]) ** 2).sum() / 10)
        shared = 1.0 if left.condition[i] == right.condition[j] else 0.5
        np.testing.assert_allclose(float(found[i, j]), shared * more, rtol=1e-9)


def measured_pairs(sources: GeneSources, value: torch.Tensor) -> Measured:
    """Pairs of 10 genes with label columns."""
    pairs = MutantTable.from_sets(combinations(range(10), 2), value=value.numpy())
    measured = Measured.of(pairs, value.numpy().astype(np.float64))
    measured.add_columns(sources, MutantTable.from_sets([(0, 11), (1, 12)]), seed=0)
    return measured


def test_columns_of_a_training_row_do_not_know_its_label(sources: GeneSources) -> None:
    value = torch.randn(45, generator=torch.Generator().manual_seed(0))
    before = measured_pairs(sources, value)
    assert before.columns.shape[1] > 10
    for row in (0, 17, 44):
        changed = value.clone()
        changed[row] += 1
        after = measured_pairs(sources, changed).columns
        assert torch.equal(after[row], before.columns[row])
        assert not torch.equal(after, before.columns)


def test_columns_of_others_come_from_all_training_rows(sources: GeneSources) -> None:
    value = torch.randn(45, generator=torch.Generator().manual_seed(0))
    measured = measured_pairs(sources, value)
    _, labels = measured.described(sources)
    assert labels is not None
    asked = MutantTable.from_sets([(0, 1), (3, 11), (12, 13)])
    graphs = sources.similarity.graphs(np.arange(10))
    plain = LabelFeatures(
        measured.rows().table(measured.value), sources.similarity.genes, graphs, centre=0.0, several=False
    )(asked)
    columns = measured.columns.numpy().astype(np.float64)
    spread = columns.std(0)
    wanted = np.where(np.isnan(plain), 0, (plain - columns.mean(0)) / np.where(spread > 1e-6, spread, np.inf))
    np.testing.assert_allclose(labels(asked).numpy(), np.clip(wanted, -4, 4), rtol=1e-5, atol=1e-6)


def test_rows_of_one_gene_have_no_label_columns(sources: GeneSources) -> None:
    table = MutantTable.from_sets([(g,) for g in range(10)], value=np.arange(10.0))
    measured = Measured.of(table, np.arange(10.0))
    measured.add_columns(sources, table, seed=0)
    assert measured.columns.shape == (10, 0)
    assert measured.described(sources)[1] is None


def test_the_covariance_is_positive_semidefinite(sources: GeneSources) -> None:
    rows = drawn(2, 40)
    kernel = fitted(sources, rows)
    mutants = describe(rows, sources)
    values = np.linalg.eigvalsh(kernel(mutants, mutants, between(sources, rows, rows)).numpy())
    assert values.min() > -1e-8 * values.max()


@pytest.mark.parametrize("orders", [(0, 1, 2, 3, 4), (2,)])
def test_variances_are_the_diagonal_of_the_covariance(sources: GeneSources, orders: tuple[int, ...]) -> None:
    rows = drawn(2, 60)
    rows = rows.take(torch.nonzero(torch.isin(rows.order, torch.tensor(orders)))[:, 0])
    kernel = fitted(sources, rows)
    columns = torch.randn(len(rows), 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mutants = describe(rows, sources, columns)
    whole = kernel(mutants, mutants, between(sources, rows, rows))
    np.testing.assert_allclose(
        kernel.variances(mutants, sources).numpy(), whole.diagonal().numpy(), rtol=1e-10
    )


@pytest.mark.parametrize("room", [1 << 20, 0])
def test_kernels_of_genes_are_those_of_all_sources_kept_or_not(sources: GeneSources, room: int) -> None:
    rows = drawn(2, 20)
    kernel = fitted(sources, rows)
    expected = kernel.mixed(sources.between(np.arange(12), rows.gene.numpy()))
    kernels = GeneKernels(kernel, sources, rows.gene, room)
    for asked in ([3, 5], [5, 4, 3, 0, 3], list(range(12))):
        for found, whole in zip(kernels(np.array(asked)), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), whole[asked].numpy(), rtol=1e-12)


def test_gradients_of_weights_and_amplitudes(sources: GeneSources) -> None:
    rows = drawn(3, 6)
    kernel, mutants, alike = fitted(sources, rows), describe(rows, sources), between(sources, rows, rows)
    names = ("effects", "products", "related", "amplitude")
    given = [getattr(kernel, name).clone().requires_grad_() for name in names]

    def covariance(*weights: torch.Tensor) -> torch.Tensor:
        for name, weight in zip(names, weights, strict=True):
            setattr(kernel, name, weight)
        return kernel.of_labels(mutants, alike)

    assert torch.autograd.gradcheck(covariance, given)


def test_predictions_are_those_of_the_textbook(sources: GeneSources) -> None:
    rows, asked = drawn(4, 12), drawn(5, 8)
    kernel = fitted(sources, rows)
    measured = measurements(rows)
    given = given_rows(kernel, measured, sources)
    assert given is not None
    mean, sd = given.predict(kernel, describe(asked, sources), sources)
    inverse = np.linalg.inv(plain(kernel, sources, rows, rows) + float(kernel.noise) * np.eye(12))
    k = plain(kernel, sources, asked, rows)
    np.testing.assert_allclose(mean.numpy(), k @ inverse @ measured.value.numpy(), rtol=1e-6, atol=1e-8)
    variance = np.diag(plain(kernel, sources, asked, asked)) - np.einsum("bm,mk,bk->b", k, inverse, k)
    np.testing.assert_allclose(sd.numpy() ** 2, variance, rtol=1e-6, atol=1e-8)


def test_less_is_known_of_mutants_far_from_every_training_row(sources: GeneSources) -> None:
    rows = drawn(6, 12)
    kernel, measured = MutantKernel(len(sources)), measurements(rows)
    kernel.standardise(describe(rows, sources))
    given = given_rows(kernel, measured, sources)
    assert given is not None
    gene, kind = torch.tensor([20, 21]), torch.zeros(2, dtype=torch.uint8)
    far = Rows.of(gene, kind, torch.full((2,), torch.nan), torch.tensor([0, 1]), torch.zeros(2).long())
    unseen = given.predict(kernel, describe(far, sources), sources)[1]
    seen = given.predict(kernel, describe(rows, sources), sources)[1]
    assert unseen.min() > seen.median()


def test_fitting_finds_the_source_that_labels_follow(sources: GeneSources) -> None:
    """Labels drawn from a process of one source are given to that source."""
    rng = np.random.default_rng(0)
    gene = torch.arange(12).repeat(20)
    dose = torch.full((240,), torch.nan)
    rows = Rows.of(
        gene, torch.zeros(240, dtype=torch.uint8), dose, torch.arange(240), torch.zeros(240).long()
    )
    wanted = len(sources.maps)  # the traits of genes
    inner = sources.between(np.arange(12), np.arange(12))[wanted].numpy()
    effect = np.linalg.cholesky(inner + 1e-6 * np.eye(12)) @ rng.standard_normal(12)
    value = torch.from_numpy(np.tile(effect, 20) + 0.1 * rng.standard_normal(240))
    mutants = describe(rows, sources)
    kernel = fit_kernel(sources, mutants, value, 60)
    assert int(kernel.effects.argmax()) == wanted
    assert kernel.noise < 0.1
    before = fit_kernel(sources, mutants, value, 0)
    assert torch.equal(before.effects, torch.zeros(len(sources), dtype=torch.float64))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("few") / "run"
    return train(compose([*QUICK, f"run.folder={folder}"]), dataset=tiny_dataset())


def test_a_run_predicts_values_with_standard_deviations_again(done: Run) -> None:
    loaded = wt.load(done.path).checkpoint
    table = tiny_dataset().select(["epsilon"]).table
    table = table.take(np.arange(2100) % len(table))  # more than a block
    mean, sd = loaded.predict_with_sd(table)
    again, _ = done.predictor.checkpoint.predict_with_sd(table)
    np.testing.assert_array_equal(mean, again)
    assert (sd > 0).all()


def test_labels_of_hidden_rows_change_no_prediction() -> None:
    pairs = tiny_dataset().select(["epsilon"])
    config = compose([*QUICK, "data.phenotypes=[epsilon]"])
    data = prepare(config, pairs)
    value = pairs.table.value.copy()
    hidden = np.concatenate([data.split.validation, data.split.test])
    value[hidden] = value[hidden][::-1] + 1
    changed = replace(pairs, table=replace(pairs.table, value=value))
    found = []
    for dataset in (pairs, changed):
        data = prepare(config, dataset)
        model, tensors = build(config, data, 0)
        post_fit(config, data, tensors, [model], lambda text: None)
        found.append(model(model.encode(tensors), MutantBatch.from_table(pairs.table)).mean)
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["training.members=2"], "members would be equal"),
        (["model.most_rows=50"], "more than model.most_rows=50: choose model=cell_transformer"),
    ],
)
def test_what_it_refuses(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        train(compose([*QUICK, *words, f"run.folder={tmp_path / 'run'}"]), dataset=tiny_dataset())


def test_it_refuses_the_grid_of_a_screen(tmp_path: Path) -> None:
    words = [*QUICK, "data.name=tiny-screen", "data.phenotypes=[epsilon]", f"run.folder={tmp_path / 'run'}"]
    with pytest.raises(ConfigError, match="choose model=pair_screen"):
        train(compose(words), dataset=screened_dataset(30))
