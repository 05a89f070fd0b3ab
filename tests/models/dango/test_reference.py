from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.dango.examples import RAGGED, mutants, tiny_model, tiny_tensors
from wildtype.models.dango.reference import ReferenceDango
from wildtype.models.interface import Prediction, WildType

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize("keep_targets", [False, True])
@pytest.mark.parametrize("epoch", [0, 4, 10])
@pytest.mark.parametrize("conditions", [1, 3])
def test_predictions_losses_and_gradients_are_those_of_the_reference(
    conditions: int, epoch: int, keep_targets: bool
) -> None:
    organism = tiny_tensors()
    model = tiny_model(conditions=conditions, zeros={"regulatory": 0.3}, seed=epoch).double()
    for name, parameter in model.named_parameters():
        if name.startswith(("head", "condition")):  # biases, β and conditions are zero or nearly so at first
            nn.init.normal_(parameter, std=0.3)
    model.set_epoch(epoch)
    batch = mutants(RAGGED, conditions=conditions)
    reference = ReferenceDango.from_model(model, organism.relations, keep_targets=keep_targets)

    wild_type = model.encode(organism)
    fast = (wild_type, model(wild_type, batch))
    outputs = reference(batch)
    plain = (reference.wild_type(outputs), outputs.prediction)
    torch.testing.assert_close(fast[1].mean, plain[1].mean)
    torch.testing.assert_close(fast[0].genes, plain[0].genes)
    torch.testing.assert_close(fast[0].losses, plain[0].losses)
    assert fast[0].weights == plain[0].weights

    def gradients(wild_type: WildType, prediction: Prediction) -> dict[str, torch.Tensor]:
        model.zero_grad()
        weights = torch.linspace(-1, 1, prediction.mean.numel()).reshape(prediction.mean.shape)
        loss = (prediction.mean * weights).sum() + sum(
            wild_type.weights[name] * value for name, value in wild_type.losses.items()
        )
        loss.backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    found = gradients(*fast)
    assert len(found) == len(list(model.parameters()))
    torch.testing.assert_close(found, gradients(*plain))


def test_it_shares_the_parameters() -> None:
    model = tiny_model()
    reference = ReferenceDango.from_model(model, tiny_tensors().relations)
    assert {id(p) for p in reference.parameters()} == {id(p) for p in model.parameters()}
