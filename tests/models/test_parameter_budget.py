"""How many parameters a model may have: those that memory holds in training."""

from __future__ import annotations

import re

import pytest
from torch import nn

from wildtype.errors import ConfigError
from wildtype.models.parameter_budget import within_memory


@pytest.mark.parametrize("shape", [(10**12, 64), (10**12, 10**12)])
def test_a_tensor_that_memory_does_not_hold_is_refused_before_it_is_made(shape: tuple[int, int]) -> None:
    words = re.escape(f"a tensor of the shape {list(shape)}, larger than")
    words += ".*the most that memory holds in training: make the widths"
    with pytest.raises(ConfigError, match=words), within_memory():
        nn.Linear(*reversed(shape))


def test_layers_without_end_are_refused() -> None:
    made = []
    with pytest.raises(ConfigError, match="a larger model than 20,000 tensors"), within_memory():
        while True:
            made.append(nn.Linear(2, 2))
    assert len(made) == 10_000
