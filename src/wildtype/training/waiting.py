"""How threads of OpenMP wait for each other: asleep, so that other jobs have their cores.

By default they spin for a while, since the next loop may come soon. Beside another job each thread that spins
takes a core from one that computes. torch, scikit-learn and LightGBM each load an OpenMP of their own, GNU's,
which reads the policy once, when it is loaded.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

POLICY = "OMP_WAIT_POLICY"
SET_BY_USER = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Variables by which a user chooses how threads wait."""
ADVICE = (
    "threads of OpenMP spin while they wait, and slow other jobs on this machine down: set "
    "OMP_WAIT_POLICY=passive before torch is imported, as the command line does"
)


def spinning(threads: int) -> bool:
    """Return whether threads of OpenMP will spin while they wait, and nobody chose that."""
    return threads > 1 and not any(name in os.environ for name in SET_BY_USER)


def wait_passively(environment: MutableMapping[str, str]) -> None:
    """Let threads of OpenMP sleep while they wait, unless the user chose; call it before torch is loaded."""
    if not any(name in environment for name in SET_BY_USER):
        environment[POLICY] = "passive"
