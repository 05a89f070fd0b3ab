"""What runs on a GPU, on a pretended one: nothing meets a tensor of the CPU, and answers are the CPU's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import attention, evidence, screen, step
from tests.pretended_gpu import GPU, pretended_gpu
from tests.tiny import similar_genes, tiny_organism
from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.inference.screening.stream import ScreenWorker, run
from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import organism_tensors
from wildtype.models.registry import settings_of_model
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.devices import device_named
from wildtype.profiling.speed import random_organism, random_predictor, screen_of
from wildtype.profiling.synthetic_problem import ProblemSizes, SyntheticStep, synthetic_step
from wildtype.seeds import generator

SIZES = ProblemSizes(genes=60, relations=3, edges=300, batch_size=8, perturbed=3)
GENES = np.arange(0, 60, 5)


def test_tensors_on_two_devices_do_not_meet() -> None:
    with pretended_gpu():
        there, here = torch.zeros(3, device="cuda"), torch.zeros(3)
        assert [x.device for x in (there, there + 1, there.cpu(), here)] == [
            GPU,
            GPU,
            here.device,
            here.device,
        ]
        with pytest.raises(RuntimeError, match="add of tensors on two devices"):
            there + here
        with pytest.raises(TypeError, match="copy it to the CPU first"):
            there.numpy()
        assert device_named("cuda:0") == GPU


@pytest.mark.parametrize("name", ["cell_transformer", "dango", "difference_gnn"])
def test_a_training_step(name: str) -> None:
    plain = made(name, "cpu")
    loss = float(plain.step())
    with pretended_gpu():
        found = made(name, "cuda")
        assert float(found.step()) == pytest.approx(loss, rel=1e-5)
        given = [None if p.grad is None else p.grad.cpu() for p in found.model.parameters()]
    for p, grad in zip(plain.model.parameters(), given, strict=True):
        assert (p.grad is None) == (grad is None)
        if grad is not None and p.grad is not None:
            torch.testing.assert_close(grad, p.grad, rtol=1e-3, atol=1e-5 * float(p.grad.abs().max()) + 1e-7)


def made(name: str, device: str) -> SyntheticStep:
    found = synthetic_step(settings_of_model(name, {}), SIZES, device=device)
    for module in found.model.modules():
        if isinstance(getattr(module, "p", None), float):  # nothing is dropped: both draw other numbers
            module.p = 0.0  # type: ignore[assignment]
    return found


def test_a_prediction_with_evidence() -> None:
    similarity, draw = similar_genes(24), np.random.default_rng(0)
    pairs = np.array(list(itertools.combinations(range(24), 2)))
    measured = MutantTable.from_matrix(pairs[::3], value=draw.normal(size=len(pairs[::3])).astype(np.float32))
    asked = MutantTable.from_matrix(pairs[1::3])
    index = EvidenceIndex(similarity, measured, 1, EvidenceSizes(tokens=8, two=4))
    torch.manual_seed(0)
    sizes = {"genes": 24, "features": 0, "phenotypes": 1, "relations": ["physical"]}
    model = CellTransformer(
        CellTransformerConfig(width=8, layers=1, heads=2, evidence=EvidenceConfig(tokens=8, two=4)),
        **sizes,  # type: ignore[arg-type]
        channels=len(similarity.channels),
        traits=len(similarity.trait_names),
    ).eval()
    organism = organism_tensors(model, tiny_organism(24), torch.zeros(24, 0), similarity).without_priors()
    batch = MutantBatch.from_table(asked)
    batch.evidence = index.tokens_of(asked)
    with torch.no_grad():
        plain = model(model.encode(organism), batch).mean
        with pretended_gpu():
            model.to("cuda")
            found = model(model.encode(organism.to("cuda")), batch.to("cuda")).mean
            assert found.device == GPU
            found = found.cpu()
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("summary", ["own_reads", "sum"])
@pytest.mark.parametrize("order", [2, 3])
def test_a_screen(summary: str, order: int) -> None:
    draw = generator(0, "a screen")
    head = {"summary": summary, "heads": 2, "direct": ["sum", "product", "set_attention"]}
    core = random_predictor(random_organism(60, 3, 600, draw), head, 8, 0, measured=200).core
    asked = screen_of(GENES, order)
    plain = run(core, asked)
    with pretended_gpu():
        found = run(core, replace(asked, device="cuda"))
    assert found.asked == plain.asked
    for a, b in zip(found.best, plain.best, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-4, atol=1e-6)


def test_what_a_device_does_not_predict_is_refused() -> None:
    draw = generator(0, "a screen")
    core = random_predictor(random_organism(60, 3, 600, draw), {"heads": 2}, 8, 0, measured=200).core
    with pytest.raises(ConfigError, match=r"device='cuda': torch sees \d+ CUDA devices"):
        ScreenWorker(core, replace(screen_of(GENES, 2), device="cuda"))
    with pretended_gpu():
        with pytest.raises(ConfigError, match="predicted mutant by mutant on the CPU, since it is small"):
            ScreenWorker(core, replace(screen_of(GENES, 1), device="cuda"))
        with pytest.raises(ConfigError, match="one process feeds a device"):
            run(core, replace(screen_of(GENES, 2), device="cuda"), processes=2)


BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "screen": lambda: screen.bench_screen(
        nodes=60, relations=3, edges=600, candidates=20, width=8, heads=2, pieces=1, device="cuda"
    ),
    "evidence": lambda: evidence.bench_evidence(genes=60, measured=300, queries=50, repeats=1, device="cuda"),
    "attention": lambda: attention.bench_attention(
        nodes=40, heads=2, width=8, relations=2, edges=200, repeats=1, device="cuda"
    ),
    "step": lambda: step.bench_step(
        nodes=60, relations=3, edges=600, width=16, layers=1, heads=4, batch_size=8, repeats=1, device="cuda"
    ),
}


@pytest.mark.parametrize("name", BENCHES)
def test_benches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bench in (attention, step):  # a new process would have no pretended GPU
        monkeypatch.setattr(bench, "peak_in_fresh_process", lambda *_: 0.0)
    with pretended_gpu():
        report = BENCHES[name]()
    if name == "screen":
        assert max(report[kind]["difference, of the largest"] for kind in ("own reads", "sum")) < 1e-5
    elif name == "evidence":
        assert report["queries_per_second"]["whole tokens on cuda"] > 0
    elif name == "attention":
        assert report["difference"]["float32, 40 nodes"]["grad_q"]["relative"] < 1e-5
    else:
        assert report["difference"]["gradients, of the largest"] < 1e-5
