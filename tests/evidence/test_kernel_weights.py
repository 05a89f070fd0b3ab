"""The weights of kernels of genes."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.evidence.kernel_weights import kernel_weights
from wildtype.organism.gene_kernels import kernel_maps


def test_weights_find_the_kernel_that_explains_profiles(world) -> None:
    maps = kernel_maps(world.organism)
    rng = np.random.default_rng(0)
    profiles = (maps["graph complex"] @ rng.normal(size=(40, 400))).astype(np.float32)
    weights = kernel_weights(maps, np.arange(40), profiles)
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) >= 0
    assert weights["graph complex"] > 0.8
    # One gene's strains resemble each other whatever the kernel: they are not compared.
    doubled = kernel_weights(maps, np.repeat(np.arange(40), 2), np.repeat(profiles, 2, axis=0))
    for name, weight in weights.items():
        assert doubled[name] == pytest.approx(weight, abs=1e-6)


def test_without_labels_weights_are_equal_and_without_parts_there_are_none(world) -> None:
    maps = kernel_maps(world.organism)
    weights = kernel_weights(maps, np.arange(40), np.zeros((40, 40), np.float32))
    np.testing.assert_allclose(list(weights.values()), 1 / len(maps))
    assert kernel_weights({}, np.arange(4), np.ones((4, 4), np.float32)) == {}
