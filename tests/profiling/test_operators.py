"""Operators and reads of a step, counted exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from wildtype.phases import phase
from wildtype.profiling.operators import BACKWARD, OperatorCounter, count_operators

X = torch.arange(12.0).reshape(4, 3) - 5


class Double(torch.autograd.Function):
    """Twice its input; its backward reads a value."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        gradient.sum().item()
        return gradient * 2


class Training:
    """A small model whose step says its phases."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.randn(3, 3, generator=generator).requires_grad_()
        self.optimizer = torch.optim.AdamW([self.weight])
        self.steps = 0
        self.losses: list[torch.Tensor] = []

    def __call__(self) -> None:
        self.steps += 1
        self.optimizer.zero_grad()
        with phase("head"):
            y = X @ self.weight
        with phase("loss"):
            loss = y[y.detach() > 0].square().sum()
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            self.optimizer.step()
        self.losses.append(loss.detach())


def reads(step: Callable[[], object]) -> list[tuple[str, str, float]]:
    """What reads, in which function, how often."""
    return [
        (row["what"], row["where"].rpartition(" in ")[2], row["calls"])
        for row in count_operators(step).reads_json()
    ]


def test_operators_of_forward_backward_and_optimiser_stand_in_their_phases() -> None:
    step = Training()
    step()
    counters = count_operators(step).counters(top=100)
    calls = {name: {row["name"]: row["calls"] for row in part["top"]} for name, part in counters.items()}
    assert calls["head"] == {"aten::mm": 1}
    assert calls["backward"]["aten::mm"] == 1
    assert calls["loss"]["aten::index"] == 1
    assert calls["optimizer"]["aten::addcdiv_"] == 1
    assert calls["unattributed"] == {"aten::detach": 1}
    assert counters["head"]["operators"] == 1
    assert all(part["operators"] == sum(calls[name].values()) for name, part in counters.items())
    assert all(row["seconds"] > 0 for row in counters["head"]["top"])


def test_counting_changes_no_result() -> None:
    plain, watched = Training(), Training()
    for _ in range(3):
        plain()
        count_operators(watched)
    assert torch.equal(torch.stack(plain.losses), torch.stack(watched.losses))
    assert torch.equal(plain.weight, watched.weight)


def test_counts_of_several_steps_are_means() -> None:
    counter, step = OperatorCounter(), Training()
    for _ in range(4):
        with counter:
            step()
        step()  # not watched
    counts = counter.counts(4)
    assert counts.operators["head"]["aten::mm"].calls == 1
    assert counts.operators["head"]["aten::mm"].allocated_mib == pytest.approx(48 / 2**20)
    assert sum(counts.reads.values()) == 2


def test_the_record_gets_counters_and_reads() -> None:
    def step() -> None:
        for x in X.flatten():
            x.item()

    record = json.loads(json.dumps(count_operators(step, lambda: "collate").to_json(top=1)))
    assert set(record) == {"counters", "reads"}
    assert set(record["counters"]) == {"collate"}
    counters = record["counters"]["collate"]
    assert set(counters) == {
        "operators",
        "scalar_reads",
        "allocated_mib",
        "seconds",
        "copies",
        "float64",
        "top",
        "slowest",
    }
    assert counters["scalar_reads"] == 12
    (top,) = counters["top"]
    assert set(top) == {"name", "calls", "seconds"}
    assert top["calls"] == 12
    line = step.__code__.co_firstlineno + 2
    assert record["reads"] == [
        {"where": f"test_operators.py:{line} in step", "what": "aten::item", "calls": 12.0}
    ]


def by_item() -> None:
    X.sum().item()


def by_float() -> None:
    float(X[0, 0])


def by_truth() -> None:
    if X[0, 0] > 0:
        raise AssertionError


def by_cpu() -> None:
    X.cpu()


def by_numpy() -> None:
    X.numpy()


def by_list() -> None:
    X.tolist()


def by_mask() -> None:
    X[X > 0]


def by_put() -> None:
    X.clone()[X > 4] = torch.ones(2)


def by_nonzero() -> None:
    X.nonzero()


def by_where() -> None:
    torch.where(X > 0)


def by_select() -> None:
    X.masked_select(X > 0)


def by_unique() -> None:
    X.unique()


def by_repeat() -> None:
    X.repeat_interleave(torch.ones(4, dtype=torch.int64), 0)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (by_item, "aten::item"),
        (by_float, "aten::item"),
        (by_truth, "aten::item"),
        (by_cpu, "Tensor.cpu"),
        (by_numpy, "Tensor.numpy"),
        (by_list, "Tensor.tolist"),
        (by_mask, "aten::index with a boolean mask"),
        (by_put, "aten::index_put_ with a boolean mask"),
        (by_nonzero, "aten::nonzero"),
        (by_where, "aten::nonzero"),
        (by_select, "aten::masked_select"),
        (by_unique, "aten::_unique2"),
        (by_repeat, "aten::repeat_interleave"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_every_way_of_reading_is_found_at_its_line(step: Callable[[], None], what: str) -> None:
    assert reads(step) == [(what, step.__name__, 1.0)]
    (row,) = count_operators(step).reads_json()
    assert row["where"] == f"test_operators.py:{step.__code__.co_firstlineno + 1} in {step.__name__}"


@pytest.mark.parametrize(
    "step",
    [
        lambda: X @ X.T,
        lambda: X[[0, 2]],
        lambda: X[1:, 0],
        lambda: X.clone().masked_fill_(X > 0, 0.0),
        lambda: X.clone().__setitem__(X > 0, 0.0),
        lambda: X.repeat_interleave(2, 0),
        lambda: torch.repeat_interleave(X, torch.full((4,), 2), 0, output_size=8),
        lambda: X.to("cpu", torch.float64),
        lambda: X.clone().copy_(X, non_blocking=True),
    ],
)
def test_what_reads_no_value_is_no_read(step: Callable[[], object]) -> None:
    assert reads(step) == []


def test_copies_between_devices_are_reads() -> None:
    away = torch.empty(3, device="meta")
    (read,) = count_operators(lambda: X[0].to("meta")).reads
    assert (read.what, read.on_device) == ("aten::_to_copy between devices", True)
    assert reads(lambda: X[0].to("meta", non_blocking=True)) == []
    assert reads(lambda: away.copy_(X[0])) == [
        ("aten::copy_ between devices", "test_copies_between_devices_are_reads", 1.0)
    ]
    counter = OperatorCounter()
    with pytest.raises(NotImplementedError), counter:
        away.cpu()
    assert "Tensor.cpu" not in {read.what for read in counter.reads}  # the operator counts, not the call


def test_reads_of_backward_are_named_where_there_is_a_line() -> None:
    x = X.clone().requires_grad_()

    def step() -> None:
        Double.apply(x)[X > 0].sum().backward()

    found = reads(step)
    assert ("aten::index with a boolean mask", "step", 1.0) in found
    assert ("aten::item", "backward", 1.0) in found
    assert [what.partition(" ")[2] for what, where, _ in found if where == BACKWARD] == [
        "with a boolean mask"
    ]


def test_optimisers_step_counters_are_no_reads_and_clipping_is() -> None:
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)
    optimizer = torch.optim.AdamW([weight])
    optimizer.step()
    counts = count_operators(optimizer.step, lambda: "optimizer")
    assert counts.operators["optimizer"]["aten::_local_scalar_dense"].calls == 1
    assert counts.reads == {}
    assert counts.counters()["optimizer"]["scalar_reads"] == 0

    def clip() -> None:
        torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)

    assert reads(clip) == [("aten::item", "clip", 1.0)]


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: torch.zeros(256, 256), 256 * 256 * 4),
        (lambda: X.view(-1)[3:].reshape(3, 3).T, 0),
        (lambda: X.add_(0.0), 0),
        (lambda: X.expand(5, 4, 3), 0),
        (lambda: (X + 1).view(-1), 48),
        (lambda: X.sort(), 48 + 96),
        (lambda: torch.tensor([1.0, 2.0]), 8),
    ],
)
def test_allocated_is_new_storage_only(make: Callable[[], object], size: int) -> None:
    assert count_operators(make, lambda: "head").counters()["head"]["allocated_mib"] * 2**20 == size


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_allocate_what_they_store(layout: torch.layout) -> None:
    counts = count_operators(lambda: torch.eye(1000).to_sparse(layout=layout), lambda: "head")
    dense = 4 * 1000**2
    stored = 1000 * (4 + 8 + 8)
    allocated = sum(total.allocated_mib for total in counts.operators["head"].values()) * 2**20
    assert stored <= allocated - dense < 0.1 * dense


def test_a_failing_step_leaves_nothing_watched() -> None:
    counter = OperatorCounter(lambda: "head")

    def fail() -> None:
        X.sum()
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"), counter:
        fail()
    X.sum()
    assert counter.counts().operators["head"]["aten::sum"].calls == 1
