"""Latents as a table, nearest latents, and explanations of models whose head cannot be taken apart."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from math import factorial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.command import assert_one_sentence, wildtype
from tests.inference.explaining.models import checkpoint_of, model_like, opened
from tests.tiny import tiny_dataset
from tests.training.test_oversmoothing import settings
from wildtype.errors import ConfigError, GeneSetError, UnknownGeneError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.embed import Embedding
from wildtype.inference.explaining.explain import ExplanationRequest, explain
from wildtype.inference.explaining.members import Opened
from wildtype.inference.explaining.mutant import SUBSETS
from wildtype.inference.explaining.subsets import shapley, subsets_of
from wildtype.inference.predictor import load
from wildtype.mutants.batch import MutantBatch

MODELS = ("cell_transformer", "dango", "difference_gnn")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each model."""
    folder, found = tmp_path_factory.mktemp("runs"), {}
    for model in MODELS:
        config = compose(settings(model, "training.epochs=1", f"run.folder={folder / model}"))
        found[model] = train(config, dataset=tiny_dataset()).path
    return found


@pytest.mark.parametrize("model", MODELS)
def test_latents_are_what_outputs_are_read_off(model: str, runs: dict[str, Path]) -> None:
    predictor = load(runs[model])
    genes = predictor.genes.names
    sets = [[genes[0], genes[3]], [genes[5], genes[1], genes[7]]]
    embedding = Embedding(predictor.core)
    table = embedding.table(sets, measured=7)
    frame = embedding.frame(table)
    assert len(frame) == 9
    assert frame["genes"][0] == f"{genes[0]},{genes[3]}"
    assert [c for c in frame if c.startswith("z_S.")] == [f"z_S.{i}" for i in range(8)]
    assert (frame.filter(like="h_CLS.").nunique() == 1).all()
    assert not frame["genes"][2:].duplicated().any()
    z = torch.from_numpy(embedding.latents(table)["z_S"]).float()
    network = embedding.model
    if model == "dango":  # one linear map
        outputs = network.head.score(z)
    elif model == "difference_gnn":
        local = network.local_head
        wild = network.encode(embedding.checkpoint.organism)
        batch = MutantBatch.from_table(table)
        own = local.score(local.latent(wild.genes[batch.gene], batch.offsets))
        outputs = 0.5 * network.global_head(z) + 0.5 * own
    else:
        return  # the head reads more than z_S; tests/models compares z_S with its definition
    expected = network(network.encode(embedding.checkpoint.organism), MutantBatch.from_table(table)).mean
    torch.testing.assert_close(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_nearest_are_those_of_highest_cosine(model: str, runs: dict[str, Path]) -> None:
    embedding = Embedding(load(runs[model]).core, seed=3)
    table = embedding.table([], measured=4)
    found = embedding.nearest(table, 3, among=30)
    others = embedding.table([], measured=30)
    mine, theirs = (embedding.latents(part)["z_S"] for part in (table, others))
    mine, theirs = mine - theirs.mean(0), theirs - theirs.mean(0)
    names = embedding.frame(others)["genes"].tolist()
    for i, genes in enumerate(embedding.frame(table)["genes"]):
        scores = {
            name: float(mine[i] @ z / np.linalg.norm(mine[i]) / np.linalg.norm(z))
            for name, z in zip(names, theirs, strict=True)
            if name != genes
        }
        rows = found[found["genes"] == genes]
        best = sorted(scores.values(), reverse=True)[:3]
        np.testing.assert_allclose(rows["cosine"], best, rtol=1e-6)
        assert rows["rank"].tolist() == [1, 2, 3]
        assert genes not in rows["nearest"].tolist()
        for _, row in rows.iterrows():
            assert row["shared"] == len(set(row["nearest"].split(",")) & set(genes.split(",")))
    assert found.filter(like="_measured").notna().any(axis=1).all()


def test_embedding_that_makes_no_sense_is_one_sentence(runs: dict[str, Path]) -> None:
    predictor = load(runs["dango"])
    with pytest.raises(ConfigError, match="member=2: the run has 1"):
        Embedding(predictor.core, member=2)
    with pytest.raises(ConfigError, match="no condition 'dark'"):
        Embedding(predictor.core, condition="dark")
    embedding = Embedding(predictor.core)
    table = embedding.table([], measured=2)
    with pytest.raises(ConfigError, match="no latent 'z'; it has z_S, h_CLS"):
        embedding.frame(table, latent="z")
    with pytest.raises(ConfigError, match="nearest=0"):
        embedding.nearest(table, 0)


def test_the_commands(runs: dict[str, Path], tmp_path: Path) -> None:
    run, target = str(runs["difference_gnn"]), tmp_path / "z.csv"
    assert wildtype("embed", run, "--measured", "5", "--latent", "z_S", "-o", str(target)).returncode == 0
    assert pd.read_csv(target).shape == (5, 10)
    said = wildtype("embed", run, "--measured", "2", "--nearest", "2", "--json")
    assert len(json.loads(said.stdout)) == 4
    assert_one_sentence(wildtype("embed", run), "nothing to embed")
    genes = load(run).genes.names
    said = wildtype("explain", run, "--only", "mutants", "--set", f"{genes[0]},{genes[3]}")
    assert "Shapley value" in said.stdout


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_shapley_values_are_the_mean_over_all_orders(k: int) -> None:
    values = np.random.default_rng(k).normal(size=2**k)
    expected = np.zeros(k)
    for order in itertools.permutations(range(k)):
        inside = 0
        for i in order:
            expected[i] += (values[inside | 1 << i] - values[inside]) / factorial(k)
            inside |= 1 << i
    found = shapley(values, k)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)


def test_all_subsets_of_a_mutant() -> None:
    table = tiny_dataset().table
    row = int(np.flatnonzero(table.order == 2)[0])
    one = table.take([row])
    a, b = one.gene.tolist()
    assert [list(genes) for genes in subsets_of(one).sets()] == [[], [a], [b], [a, b]]


@pytest.mark.parametrize("model", MODELS[1:])
def test_predecessors_are_explained(model: str, runs: dict[str, Path]) -> None:
    predictor = load(runs[model])
    genes = predictor.genes.names
    sets = [[genes[0], genes[3], genes[4]]]
    found = explain([Opened(str(runs[model]), predictor, None)], ExplanationRequest(sets=sets, mutants=60))
    (mutant,) = found.mutants
    assert mutant.method == SUBSETS
    total = sum(one.integrated.mean for one in mutant.perturbed)
    assert total == pytest.approx(mutant.predicted.mean - mutant.baseline.mean, abs=1e-9)
    expected = predictor.predict(sets)[mutant.phenotype][0]
    assert mutant.predicted.mean == pytest.approx(expected, abs=1e-5)
    assert found.latents is not None
    assert found.remarks["heads"] == ("the model has no attention over the genes of the cell",)
    assert any("fewer than 2 genes" in note for note in mutant.notes) == (model == "dango")
    many = [genes[:13]]
    with pytest.raises(GeneSetError, match="a mutant of 13 genes has too many subsets"):
        explain([Opened("x", predictor, None)], ExplanationRequest(sets=many, sections=("mutants",)))


def test_attention_is_the_softmax_of_queries_and_keys_by_gene_name(runs: dict[str, Path]) -> None:
    model = load(runs["cell_transformer"])
    network, organism = model.checkpoint.model, model.checkpoint.organism
    names, config = list(model.genes.names), model.checkpoint.model.config
    q, k = list(network.queries_and_keys(organism))[config.layers - 1]
    found = model.attention(config.layers - 1, config.heads - 1)
    assert found.index.tolist() == found.columns.tolist() == names
    logits = q[-1, 1:].double() @ k[-1, 1:].double().T / q.shape[-1] ** 0.5
    np.testing.assert_allclose(found.to_numpy(), logits.softmax(-1).detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    named = model.attention(config.layers - 1, config.heads - 1, genes=[names[5], names[2]])
    pd.testing.assert_frame_equal(named, found.iloc[[5, 2]])
    assert model.attention(genes=[]).shape == (0, len(names))


def test_attention_that_is_not_there_is_refused_in_a_sentence(runs: dict[str, Path]) -> None:
    model = load(runs["cell_transformer"])
    config = model.checkpoint.model.config
    for wrong in ({"layer": config.layers}, {"head": -1}, {"member": 2}):
        ((what, value),) = wrong.items()
        with pytest.raises(ConfigError, match=f"{what}={value}"):
            model.attention(**wrong)
    with pytest.raises(UnknownGeneError, match="nobody"):
        model.attention(genes=["nobody"])
    with pytest.raises(GeneSetError, match="give a list"):
        model.attention(genes=model.genes.names[0])
    for other in ("dango", "difference_gnn"):
        with pytest.raises(ConfigError, match=f"a {other} has no attention between genes"):
            load(runs[other]).attention()


def test_attention_of_a_model_without_layers_is_refused(runs: dict[str, Path]) -> None:
    run = runs["cell_transformer"]
    config = replace(checkpoint_of(run).model.config, layers=0)
    with pytest.raises(ConfigError, match=r"no encoder layers \(model\.layers=0\)"):
        opened(run, model_like(run, config)).predictor.attention()
