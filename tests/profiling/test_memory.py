from __future__ import annotations

import numpy as np
import pytest

from wildtype.profiling.memory import CLEAR, PeakMemory


def test_peak_sees_what_was_freed_again() -> None:
    with PeakMemory() as memory:
        block = np.ones(64 * 2**20 // 8)
        del block
    if not memory.exact:
        pytest.skip(f"{CLEAR} cannot be written here: the peak is that of the whole process")
    assert 60 < memory.peak - memory.before < 200
    with PeakMemory() as after:
        pass
    assert after.peak - after.before < 30
