"""The speed of a machine: every measurement is there, and the timed formulations are the ones they claim."""

from __future__ import annotations

import json

import pytest
import torch

from wildtype.errors import ConfigError
from wildtype.nn.devices import waits_for
from wildtype.profiling import speed
from wildtype.profiling.speed import AttentionProblem, SpeedSizes, machine_speed

TINY = SpeedSizes(
    nodes=40, edges=300, genes=60, batch_size=4, measured=200, queries=20, candidates=6, repeats=1
)


def test_four_measurements_of_a_machine() -> None:
    begun: list[str] = []
    found = json.loads(json.dumps(machine_speed(sizes=TINY, log=begun.append)))
    assert begun == ["attention", "step", "evidence", "screen"]
    assert found["device"] == "cpu"
    assert found["machine"]["cores"] > 0
    assert found["sizes"]["nodes"] == 40
    seconds = found["attention"]["seconds"]
    ratio = seconds["regularised"] / seconds["plain"]
    assert found["attention"]["ratios"]["regularised_to_plain"] == pytest.approx(ratio)
    step = found["step"]
    assert step["mutants_per_second"] * step["seconds_per_step"] == pytest.approx(4)
    assert min(found["evidence"]["queries_per_second"].values()) > 0
    assert found["screen"]["mutants_per_second"] > 0


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"device='{name}'"):
        machine_speed(name, sizes=TINY)


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    waits_for(torch.device("cuda"))()
    waits_for(torch.device("cpu"))()
    assert [str(device) for device in waited] == ["cuda"]


def test_attention_with_priors_adds_their_divergence_to_plain_attention() -> None:
    problem = AttentionProblem(nodes=30, heads=3, width=4, relations=4, edges=101, seed=1)
    operators, inputs = problem.operators(), problem.inputs(torch.float64)
    assert [op.nnz for op in operators] == [26, 25, 25, 25]
    assert [problem.head_of(relation) for relation in range(4)] == [0, 1, 0, 1]
    plain = speed.plain_attention(problem)(*inputs)
    without = speed.regularised_attention(problem, [])(*inputs)
    torch.testing.assert_close(without, plain)
    assert speed.regularised_attention(problem, operators)(*inputs) > plain
    again = AttentionProblem(30, 3, 4, 4, 101, seed=1).inputs(torch.float64)
    assert all(torch.equal(a, b) for a, b in zip(inputs, again, strict=True))
