"""The same tests on every device: in bfloat16 on a CPU, and on a GPU where there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig, HeadConfig
from wildtype.models.checkpoint import load_checkpoint
from wildtype.nn.attention import attention_with_lse, attention_with_lse_reference
from wildtype.profiling.synthetic_problem import ProblemSizes, SyntheticStep, synthetic_step

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
SIZES = ProblemSizes(genes=300, relations=3, edges=3000, batch_size=64, perturbed=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("width", "trained"), [(8, True), (16, True), (16, False), (40, True)])
def test_attention_in_halves(device: str, width: int, trained: bool) -> None:
    torch.manual_seed(0)
    exact = [torch.randn(2, 3, n, width).bfloat16().double().requires_grad_(trained) for n in (70, 130, 130)]
    found = [x.detach().to(device, torch.bfloat16).requires_grad_(trained) for x in exact]
    outside = torch.tensor([0, 5])
    plain = attention_with_lse_reference(*exact, outside=outside)
    ours = attention_with_lse(*found, outside=outside.to(device))
    for x, y in zip(ours, plain, strict=True):
        torch.testing.assert_close(x.double().cpu(), y, rtol=2e-2, atol=2e-2)
    if trained:
        through = [torch.randn_like(y) for y in plain]
        wanted = torch.autograd.grad(plain, exact, through)
        given = torch.autograd.grad(ours, found, [t.to(x) for t, x in zip(through, ours, strict=True)])
        for x, y in zip(given, wanted, strict=True):
            assert (x.double().cpu() - y).norm() < 2e-2 * y.norm()


def step(device: str, bf16: bool) -> SyntheticStep:
    config = CellTransformerConfig(
        width=32,
        layers=2,
        heads=4,
        features=False,
        dropout=0.0,
        head=HeadConfig(heads=2, additive=False),
        evidence=EvidenceConfig(tokens=0),
    )
    found = synthetic_step(config, SIZES, device=device, bf16=bf16)
    for module in found.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return found


@pytest.mark.parametrize(
    ("device", "bf16"),
    [("cpu", True), pytest.param("cuda", False, marks=GPU), pytest.param("cuda", True, marks=GPU)],
)
def test_a_training_step(device: str, bf16: bool) -> None:
    """The loss and the direction of its gradient; in float32 also each part of it."""
    plain, found = step("cpu", False), step(device, bf16)
    assert float(found.step()) == pytest.approx(float(plain.step()), rel=2e-2 if bf16 else 1e-4)
    wanted, given = (
        torch.cat([p.grad.flatten().double().cpu() for p in x.model.parameters() if p.grad is not None])
        for x in (plain, found)
    )
    assert (given - wanted).norm() < (0.1 if bf16 else 1e-3) * wanted.norm()


@GPU
def test_a_run_on_a_gpu_predicts_on_a_cpu(tmp_path: Path) -> None:
    words = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=2",
             "data.name=tiny-growth", "training.device=cuda", "baselines=[]", "run.progress=false",
             "model.pretraining.steps=3", "run.replicates=10", f"run.folder={tmp_path / 'run'}"]  # fmt: skip
    config = compose(words)
    dataset = tiny_dataset()
    train(config, dataset=dataset)
    predicted = load_checkpoint(tmp_path / "run").predict(dataset.table)
    assert np.isfinite(predicted).all()
