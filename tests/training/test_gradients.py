"""Parameters without gradients are those that a model declares, in one process as in several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.tiny import mixed_dataset, tiny_dataset
from tests.training.combinations import FACTORS
from wildtype.errors import ConfigError
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.setup import build, loaders
from wildtype.models.interface import Model
from wildtype.models.registry import MODELS
from wildtype.mutants.batch import MutantBatch
from wildtype.training.task import FitTask
from wildtype.training.world import World

SMALL = {option.name: option.words for option in FACTORS["model"]}
TRAINED = [name for name in MODELS if MODELS[name].gradients]


def step(name: str, *words: str, size: int = 1) -> tuple[FitTask, MutantBatch]:
    config = compose([f"model={name}", *SMALL[name], "data.name=tiny-growth", *words])
    data = prepare(config, tiny_dataset(12))
    model, tensors = build(config, data, 0)
    task = FitTask(model.train(), tensors, config.training, 10, 0, world=World(0, size, size))
    return task, next(iter(loaders(config, data, tensors, 0).train))


def begin(task: FitTask, epoch: int = 0) -> None:
    task.epoch = epoch
    task.on_train_epoch_start()


def names(model: Model) -> list[str]:
    unused = {id(p) for p in model.unused_parameters()}
    return [name for name, p in model.named_parameters() if id(p) in unused]


@pytest.mark.parametrize(
    ("name", "words", "epoch", "unused"),
    [
        ("cell_transformer", [], 0, []),
        ("cell_transformer", ["model.head.heads=2", "model.head.summary=partners"], 0,
         ["head.summary.attention.static.weight"]),
        ("dango", ["model.schedule=pre_then_post", "model.transition=2"], 1, []),
        ("dango", ["model.schedule=pre_then_post", "model.transition=2"], 2,
         [f"networks.{i}.reconstruct.{part}" for i in (0, 1) for part in ("weight", "bias")]),
        ("dango", ["model.schedule=linear_until_uniform", "model.transition=1"], 5, []),
        ("difference_gnn", [], 0, []),
        ("difference_gnn", ["model.wild_type=epoch"], 0, ["table", "preprocess.…"]),
        ("difference_gnn", ["model.wild_type=epoch", "model.combination=local"], 0,
         ["table", "preprocess.…", "layers.…"]),
    ],
)  # fmt: skip
def test_the_declared_ones_are_those_without_a_gradient(
    name: str, words: list[str], epoch: int, unused: list[str]
) -> None:
    task, batch = step(name, *words)
    begin(task, epoch)
    task.objective(batch).total.backward()
    without = [n for n, p in task.model.named_parameters() if p.requires_grad and p.grad is None]
    assert without == names(task.model)
    if not any(entry.endswith("…") for entry in unused):
        assert without == unused
    else:
        begins = tuple(entry.removesuffix("…") for entry in unused)
        assert without
        assert all(n.startswith(begins) for n in without)
        assert all(any(n.startswith(start) for n in without) for start in begins)
    task.on_after_backward()  # agrees


class Declares(nn.Module):
    """Declares a parameter of its own, which is used all the same."""

    def __init__(self, parameter: nn.Parameter) -> None:
        super().__init__()
        self.own = parameter

    def unused_parameters(self) -> Iterator[nn.Parameter]:
        yield self.own


def test_a_declared_parameter_with_a_gradient_is_an_error_also_in_one_process() -> None:
    task, batch = step("dango")
    task.model.declares = Declares(task.model.table.weight)  # type: ignore[union-attr,arg-type]
    begin(task)
    task.objective(batch).total.backward()
    with pytest.raises(ConfigError, match=r"model dango: the parameter table\.weight is declared unused"):
        task.on_after_backward()


def test_of_several_processes_a_parameter_without_a_gradient_must_be_declared() -> None:
    for size in (1, 2):
        task, batch = step("dango", size=size)
        task.model.idle = nn.Linear(2, 1, bias=False)
        begin(task)
        task._objective_of(task.model.encode(task.organism), batch).total.backward()
        if size == 1:
            task.on_after_backward()
        else:
            with pytest.raises(ConfigError, match=r"idle\.weight has no gradient.*unused_parameters"):
                task.on_after_backward()


def test_the_zeros_that_other_processes_wait_for_are_no_gradients() -> None:
    task, batch = step("dango", "model.schedule=pre_then_post", "model.transition=0", size=2)
    begin(task)
    loss = task.objective(batch).total + torch.stack([0 * p.sum() for p in task._unused]).sum()
    loss.backward()
    assert all(p.grad is not None for p in task.model.parameters())
    task.on_after_backward()
    assert [n for n, p in task.model.named_parameters() if p.grad is None] == names(task.model)


def test_a_share_of_a_step_without_a_profile_has_gradients_of_the_outputs_per_gene() -> None:
    config = compose(["model=cell_transformer", *SMALL["cell_transformer"], "data.name=tiny-mixed"])
    data = prepare(config, mixed_dataset(10))
    model, tensors = build(config, data, 0)
    batch = next(iter(loaders(config, data, tensors, 0).train))
    assert batch.profile is not None
    row = int((batch.profile < 0).nonzero()[0])
    alone = replace(batch.slice(row, row + 1))
    task = FitTask(model.train(), tensors, config.training, 10, 0)
    task.objective(alone).total.backward()
    assert [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None] == []


def test_the_wild_type_of_an_epoch_has_the_same_dropout_in_every_process_and_in_a_resumed_run() -> None:
    found = []
    for seed in (1, 2):
        task, _ = step("difference_gnn", "model.wild_type=epoch", "model.dropout=0.5")
        torch.manual_seed(seed)  # whatever was drawn before
        begin(task, epoch=3)
        assert task._wild_type is not None
        found.append(task._wild_type.genes)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
