"""Random streams that depend on (seed, purpose, step) alone, so that a resumed run repeats the same draws."""

from __future__ import annotations

import hashlib

import numpy as np


def derive(seed: int, purpose: str, step: int = 0) -> int:
    """Return a 63-bit seed for one purpose at one step: equal arguments give equal seeds on every machine."""
    # A hash, since Python's own differs between processes, and sums such as seed + step would give
    # neighbouring seeds the same streams. 63 bits fit the signed integers of torch's seeds.
    digest = hashlib.blake2b(f"{seed}/{purpose}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """Return a NumPy generator for one purpose at one step."""
    return np.random.default_rng(derive(seed, purpose, step))
