"""What can be combined in a training by several processes, and the script that trains combinations.

    python -m tests.training.combinations FOLDER          one process
    torchrun … -m tests.training.combinations FOLDER      several

FOLDER/combinations.pickle holds their numbers, themselves and their settings, as `written` makes them:
composing settings takes as long as a training here. All are trained one after the other in the same
processes, in float64: weights of two trainings then differ by rounding alone, which float32 and AdamW
would make larger than 1e-6. Weights and losses stay in FOLDER.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.pairwise import Partial, covering_rows
from tests.tiny import mixed_dataset, tiny_dataset
from wildtype.datasets import Dataset
from wildtype.experiments import fitting
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, loaders
from wildtype.models.registry import MODELS
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches

TRANSFORMER, DANGO, GNN = ("cell_transformer",), ("dango",), ("difference_gnn",)
ALL = tuple(name for name in MODELS if MODELS[name].gradients)


@dataclass(frozen=True)
class Option:
    """One option of a factor: its settings, and the models that have it."""

    name: str
    words: tuple[str, ...] = ()
    models: tuple[str, ...] = ALL


FACTORS: dict[str, list[Option]] = {
    "model": [
        Option("cell_transformer", ("model.width=8", "model.heads=4", "model.layers=1", "model.dropout=0",
                                    "model.feature_dropout=0", "model.evidence.dropout=0"), TRANSFORMER),
        Option("dango", ("model.width=8",), DANGO),
        Option("difference_gnn", ("model.width=8", "model.layers=2", "model.gin_layers=1"), GNN),
    ],
    "schedule": [
        Option("one cycle"),
        Option("snapshots", ("training.snapshots=2",)),
        Option("warm restarts", ("training.cycles=2",)),
        Option("pre, then post", ("model.schedule=pre_then_post", "model.transition=1"), DANGO),
        Option("flipped", ("model.schedule=linear_until_flipped", "model.transition=2",
                           "training.epochs=3"), DANGO),
        Option("wild type once per epoch", ("model.wild_type=epoch",), GNN),
        Option("plateau, sampled priors", ("training.schedule=plateau", "model.prior.loss=bce",
                                           "model.prior.rows=8", "model.prior.reverse=[regulatory]"),
               TRANSFORMER),
        Option("constant rate, no encoder", ("training.schedule=constant", "model.layers=0"), TRANSFORMER),
    ],
    "readout": [
        Option("sum", ("model.head.summary=sum", "model.head.heads=2"), TRANSFORMER),
        Option("set attention", ("model.head.summary=set_attention", "model.head.heads=2"), TRANSFORMER),
        Option("own reads", ("model.head.summary=own_reads", "model.head.heads=2",
                               "model.head.relations=false"), TRANSFORMER),
        Option("direct set attention", ("model.head.direct=[mean,set_attention]", "model.head.heads=0"),
               TRANSFORMER),
        Option("plan's head and priors",
               ("model.head.summary=mean", "model.head.heads=1", "model.head.direct=[]",
                "model.head.relations=false", "model.head.scores=bilinear", "model.head.order=false",
                "model.head.foreign=absent", "model.prior.target=uniform", "model.prior.normaliser=all",
                "model.prior.mask=terms", "model.prior.reduction=sum"), TRANSFORMER),
        Option("kinds alone", ("model.head.heads=0", "model.head.direct=[]"), TRANSFORMER),
        Option("one layer", ("model.layers_head=1", "model.heads=2"), DANGO),
        Option("two layers", ("model.layers_head=2", "model.heads=4"), DANGO),
        Option("concat", ("model.combination=concat", "model.aggregation=sum",
                          "model.convolution=sage"), GNN),
        Option("gating", ("model.combination=gating", "model.aggregation=attention"), GNN),
        Option("global", ("model.combination=global", "model.aggregation=mean", "model.tile=1",
                          "model.representation=2-hop"), GNN),
        Option("local", ("model.combination=local", "model.aggregation=pairwise"), GNN),
    ],
    "execution": [Option(name, (f"execution={name}",))
                  for name in ("training", "forward_backward", "forward", "data_only")],
    "accumulation": [Option(f"{n} micro-batches", (f"training.gradient_accumulation_steps={n}",))
                     for n in (1, 2, 7)],
    "evidence": [
        Option("without evidence", ("model.evidence.tokens=0", "model.head.additive=false"), TRANSFORMER),
        Option("no measurements", (), DANGO + GNN),
        Option("evidence", ("model.evidence.tokens=4", "model.evidence.two=2", "model.evidence.neighbours=2"),
               TRANSFORMER),
        Option("a whole screen", ("model.evidence.tokens=0", "model.head.screen=true"), TRANSFORMER),
        Option("evidence one edit away", ("model.evidence.tokens=3", "model.evidence.two=0",
                                          "model.evidence.neighbours=0", "model.head.smallest=true"),
               TRANSFORMER),
    ],
    "start": [
        Option("drawn weights"),
        Option("pre-trained", ("model.pretraining.steps=2",), TRANSFORMER),
    ],
    "outputs": [
        Option("one phenotype", ("data.name=tiny-growth",)),
        Option("two phenotypes", ("data.name=tiny-growth", "data.phenotypes=[fitness,epsilon]")),
        Option("numbers per gene", ("data.name=tiny-mixed", "model.head.rank=3", "training.weighting=sd",
                                    "training.balance=heads"), TRANSFORMER),
    ],
    "ensemble": [Option("one member"), Option("two members", ("training.members=2",))],
    "processes": [Option("2"), Option("3")],
}  # fmt: skip
Combination = dict[str, str]


def _possible(partial: Partial) -> bool:
    chosen = (options[i] for options, i in zip(FACTORS.values(), partial, strict=True) if i is not None)
    models = set(ALL)
    for option in chosen:
        models &= set(option.models)
    return bool(models)  # every factor has an option of every model


def all_combinations() -> list[Combination]:
    """Return combinations in which every pair of options meets that one model has."""
    rows = covering_rows([len(options) for options in FACTORS.values()], _possible)
    return [{name: options[i].name for (name, options), i in zip(FACTORS.items(), row, strict=True)}
            for row in rows]  # fmt: skip


def words_of(row: Combination) -> list[str]:
    """Return the settings of a combination."""
    words = [f"model={row['model']}", "training.epochs=2", "training.learning_rate=0.01", "baselines=[]",
             "training.deterministic=true", "training.device=cpu", "training.patience=0",
             "run.progress=false"]  # fmt: skip
    for name, options in FACTORS.items():
        words += next(option.words for option in options if option.name == row[name])
    return words


def _dataset(row: Combination) -> Dataset:
    return mixed_dataset(10) if row["outputs"] == "numbers per gene" else tiny_dataset(12)


class _Double:
    """Serves the batches of a loader in float64."""

    def __init__(self, loader: Batches) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[MutantBatch]:
        for batch in self.loader:
            tensors = {name: _double(value) for name in ("value", "sd", "dose", "weight", "profiles")
                       if (value := getattr(batch, name)) is not None}  # fmt: skip
            evidence = None if batch.evidence is None else batch.evidence.map(_double)
            yield replace(batch, **tensors, evidence=evidence)


def _double(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


Written = list[tuple[int, Combination, TrainConfig]]


def written(rows: Sequence[Combination]) -> Written:
    """Return combinations with their numbers and settings."""
    return [(i, row, compose(words_of(row))) for i, row in enumerate(rows)]


def train_one(row: Combination, config: TrainConfig, folder: Path) -> None:
    """Train a combination in the processes that are there, and save the weights of its members."""
    data = prepare(config, _dataset(row))
    # The last batch has a single mutant: the other processes take part in its step without one.
    config = replace(
        config, training=replace(config.training, batch_size=_with_one_left(data.mutants("train")))
    )

    def in_double(*arguments, **more):  # type: ignore[no-untyped-def]
        model, tensors = build(*arguments, **more)
        for module in model.modules():
            if isinstance(module, nn.Dropout):  # processes draw different masks
                module.p = 0.0
        return model.double(), replace(tensors, features=tensors.features.double())

    def batches(*arguments, **more):  # type: ignore[no-untyped-def]
        served = loaders(*arguments, **more)
        return replace(served, train=_Double(served.train), validation=_Double(served.validation))

    with patch.object(fitting, "build", in_double), patch.object(fitting, "loaders", batches):
        members, _ = fitting.fit_members(config, data, *in_double(config, data, config.seed), folder, "")
    if os.environ.get("RANK", "0") == "0":
        save_file(_weights(members), folder / "weights.safetensors")


def _with_one_left(rows: int) -> int:
    """Return a size of batches, about a third of the rows, that leaves one row for the last."""
    return next(size for size in range(rows // 3, rows) if rows % size == 1)


def _weights(members: Sequence[nn.Module]) -> dict[str, Tensor]:
    return {
        f"{i}/{name}": x.detach().clone() for i, m in enumerate(members) for name, x in m.state_dict().items()
    }


def main(folder: Path) -> None:
    """Train all combinations that the folder names; the first that fails ends the process."""
    if "RANK" in os.environ:
        # Of processes that wait for different things, none should wait for long.
        torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    combinations: Written = pickle.loads((folder / "combinations.pickle").read_bytes())
    for number, row, config in combinations:
        (folder / str(number)).mkdir(exist_ok=True)
        train_one(row, config, folder / str(number))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
