"""A step in parts, by one process or by several, is the step of the whole batch."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.experiments.test_models import SMALL, TRAINED
from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.setup import build, loaders
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import MutantLoader
from wildtype.training.micro_batches import RankLoader, known_targets, micro_batches
from wildtype.training.task import FitTask
from wildtype.training.world import World, world

STILL = {
    "cell_transformer": ["model.dropout=0", "model.feature_dropout=0", "model.evidence.dropout=0"],
    "dango": ["model.dropout=0"],
    "difference_gnn": ["model.dropout=0"],
}  # fmt: skip


def words(name: str, *more: str) -> list[str]:
    return [
        f"model={name}",
        *SMALL[name],
        *STILL[name],
        "data.name=tiny-growth",
        "baselines=[]",
        "training.epochs=2",
        "training.batch_size=50",
        "training.deterministic=true",
        "run.progress=false",
        "run.replicates=10",
        *more,
    ]


def step(name: str, count: int, *more: str) -> tuple[FitTask, MutantBatch]:
    config = compose(words(name, f"training.gradient_accumulation_steps={count}", *more))
    data = prepare(config, tiny_dataset())
    model, tensors = build(config, data, 0)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    batch = next(iter(loaders(config, data, tensors, 0).train))
    return FitTask(model.train(), tensors, config.training, 10, 0), batch


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("count", [2, 7, 1000])
def test_the_gradient_of_parts_is_that_of_the_batch(name: str, count: int) -> None:
    task, batch = step(name, count)
    value = batch.value.clone()
    value[3] = torch.nan
    batch = replace(batch, value=value)
    whole = task.objective(batch)
    whole.total.backward()
    expected = {n: p.grad.clone() for n, p in task.model.named_parameters() if p.grad is not None}
    task.zero_grad()
    split = task._accumulate(batch)
    split.total.backward()
    assert split.total.item() == pytest.approx(whole.total.item(), rel=1e-5)
    for term in whole.terms:
        assert split.terms[term].item() == pytest.approx(whole.terms[term].item(), rel=1e-5), term
        assert split.weighted[term].item() == pytest.approx(whole.weighted[term].item(), rel=1e-5), term
    scale = max(float(g.abs().max()) for g in expected.values())
    found = {n: p.grad for n, p in task.model.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for n, gradient in expected.items():
        torch.testing.assert_close(
            found[n], gradient, rtol=1e-4, atol=2e-6 * scale, msg=lambda m, n=n: f"{n}: {m}"
        )


def test_the_gradient_of_parts_in_float64() -> None:
    task, batch = step("cell_transformer", 3, "model.evidence.tokens=4")
    task.double()
    task.organism = replace(task.organism, features=task.organism.features.double())
    batch = _double(batch)
    whole, other = copy.deepcopy(task), task
    whole.objective(batch).total.backward()
    other._accumulate(batch).total.backward()
    for (name, a), b in zip(whole.model.named_parameters(), other.model.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None and b.grad is not None:
            torch.testing.assert_close(
                b.grad, a.grad, rtol=1e-9, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}"
            )


def _double(batch: MutantBatch) -> MutantBatch:
    def change(x: torch.Tensor) -> torch.Tensor:
        return x.double() if x.is_floating_point() else x

    assert batch.evidence is not None
    return replace(batch, value=batch.value.double(), evidence=batch.evidence.map(change))


@given(st.integers(1, 9), st.integers(1, 12))
def test_parts_are_the_batch(count: int, mutants: int) -> None:
    batch = next(iter(MutantLoader(tiny_dataset().table, mutants)))
    found = micro_batches(batch, count)
    assert len(found) == min(count, len(batch))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert torch.cat([part.gene for part in found]).tolist() == batch.gene.tolist()
    assert torch.cat([part.value for part in found]).tolist() == batch.value.tolist()
    assert all(part.step_targets == known_targets(batch) for part in found)


def test_parts_have_their_evidence() -> None:
    task, batch = step("cell_transformer", 1, "model.evidence.tokens=4")
    evidence = batch.evidence
    assert evidence is not None
    found = [part.evidence for part in micro_batches(batch, 4)]
    row = 0
    for part, tokens in zip(micro_batches(batch, 4), found, strict=True):
        assert tokens is not None
        own = (evidence.pairs.row >= row) & (evidence.pairs.row < row + len(part))
        for f in fields(evidence.pairs):
            expected = getattr(evidence.pairs, f.name)[own] - (row if f.name == "row" else 0)
            assert torch.equal(getattr(tokens.pairs, f.name), expected), f.name
        row += len(part)
    for record in ("one", "two", "neighbours", "genes", "equivalents"):
        whole = getattr(evidence, record)
        for f in fields(whole):
            joined = torch.cat([getattr(getattr(tokens, record), f.name) for tokens in found])
            assert torch.equal(joined, getattr(whole, f.name)), f"{record}.{f.name}"
    assert task.model is not None


@pytest.mark.parametrize("size", [1, 2, 3, 60])
def test_shares_serve_every_mutant_once(size: int) -> None:
    table = tiny_dataset().select(["epsilon"]).table
    every = [
        list(RankLoader(MutantLoader(table, 50, shuffle=True, seed=3), World(rank, size, size)))
        for rank in range(size)
    ]
    assert len({len(batches) for batches in every}) == 1
    alone = list(MutantLoader(table, 50, shuffle=True, seed=3))
    for i, batch in enumerate(alone):
        values = torch.cat([batches[i].value for batches in every])
        assert values[~values.isnan()].tolist() == batch.value.tolist()
        assert all(int(batches[i].step_targets) == len(batch) for batches in every)  # type: ignore[arg-type]
        assert all(len(batches[i]) for batches in every)


def test_accumulation_trains_the_same_model(tmp_path: Path) -> None:
    logs = []
    for count in (1, 3):
        folder = tmp_path / str(count)
        more = (
            f"training.gradient_accumulation_steps={count}",
            f"run.folder={folder}",
            "model.head.relations=false",
        )
        train(compose(words("cell_transformer", *more)), dataset=tiny_dataset())
        logs.append(pd.read_csv(folder / "logs" / "metrics.csv"))
    assert list(logs[0]) == list(logs[1])
    assert len(logs[0]) == len(logs[1])
    np.testing.assert_allclose(logs[1]["loss"], logs[0]["loss"], rtol=2e-4, equal_nan=True)
    np.testing.assert_allclose(logs[1]["share/data"], logs[0]["share/data"], rtol=2e-4, equal_nan=True)


@pytest.mark.parametrize("missing", ["RANK", "LOCAL_WORLD_SIZE"])
def test_half_a_world_is_refused(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world() == World()
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    assert world() == World(1, 4, 2, started_by="torchrun")
    assert not world().is_rank_zero
    monkeypatch.delenv(missing)
    with pytest.raises(ConfigError, match=f"{missing}=None.*torchrun"):
        world()


def test_a_part_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training.gradient_accumulation_steps=0: it must be at least 1"):
        train(
            compose(words("dango", "training.gradient_accumulation_steps=0", f"run.folder={tmp_path}")),
            dataset=tiny_dataset(),
        )
