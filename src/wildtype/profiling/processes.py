"""How long processes that train together exchange gradients, and how long they wait for the slowest.

A process is in the phase ``gradient sync`` from the end of its own backward pass to the end of the exchange.
The exchange begins for all when the last one comes to it. That one does not wait: of a step, the shortest
time of a process in the phase is the exchange itself, and what others have more is how long they waited.
Only times within a process are compared, so that clocks of machines need not agree.

Legend: P processes · s steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def of_processes(sync: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    """Return what processes exchanged and waited, seconds per step, as JSON-like values.

    Parameters
    ----------
    sync : P times float64 [s]
        Seconds of every process in ``gradient sync``, of the same steps.

    Returns
    -------
    dict
        ``count``: P. ``gradient_sync``, ``wait`` and ``slowest``, one value per process: seconds in the
        phase, seconds of them spent waiting for the slowest, and share of the steps in which it was that.
        ``exchange``: seconds of the exchange itself. All but ``count`` are None where no gradients were
        exchanged.
    """
    count = len(sync)
    times = np.stack(sync)
    if not times.any():
        return {"count": count, "gradient_sync": None, "exchange": None, "wait": None, "slowest": None}
    exchange = times.min(0)
    last = np.bincount(times.argmin(0), minlength=count) / times.shape[1]
    return {
        "count": count,
        "gradient_sync": times.mean(1).tolist(),
        "exchange": float(exchange.mean()),
        "wait": (times - exchange).mean(1).tolist(),
        "slowest": last.tolist(),
    }
