"""How long processes exchange, and wait for the slowest."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.profiling.processes import of_processes


def test_the_slowest_of_a_step_waits_for_nobody() -> None:
    # Process 0 is last in the first two steps and process 2 in the third: it has the shortest time in each.
    found = of_processes([np.array([1.0, 2.0, 9.0]), np.array([4.0, 2.5, 5.0]), np.array([3.0, 6.0, 3.0])])
    assert found["count"] == 3
    assert found["exchange"] == pytest.approx((1 + 2 + 3) / 3)
    assert found["gradient_sync"] == pytest.approx([4.0, 11.5 / 3, 4.0])
    assert found["wait"] == pytest.approx([2.0, (3 + 0.5 + 2) / 3, 2.0])
    assert found["slowest"] == pytest.approx([2 / 3, 0.0, 1 / 3])


@pytest.mark.parametrize("steps", [0, 4])
def test_without_an_exchange_there_is_nothing_to_wait_for(steps: int) -> None:
    found = of_processes([np.zeros(steps)] * 2)
    assert found == {"count": 2, "gradient_sync": None, "exchange": None, "wait": None, "slowest": None}
