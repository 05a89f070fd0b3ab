"""Trees as arrays say what the trees that were fitted say, and survive being stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wildtype.errors import ShapeError
from wildtype.models.boosted_trees import BoostedTrees
from wildtype.nn.forest import Forest


def rows(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(m, 6)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + np.sign(x[:, 2])).astype(np.float32)
    x[draw.random(x.shape) < 0.2] = np.nan
    x[:, 3] = np.nan  # nothing is known of this column
    x[:, 5] = x[:, 0]  # and this one says nothing new
    return x, y


@pytest.mark.parametrize("held", [0, 200])
def test_a_forest_says_what_the_fitted_trees_say(held: int) -> None:
    x, y = rows(800, 0)
    held_x, held_y = rows(held, 1)
    trees = BoostedTrees(x, y, held_x, held_y, {}, bags=2, seed=0, leaves=(5,))
    forest = trees.forest
    other, _ = rows(300, 2)
    np.testing.assert_allclose(forest(torch.from_numpy(other)).numpy(), trees.predict(other), rtol=1e-12)
    assert set(forest.feature.unique().tolist()) <= {-1, 0, 1, 2, 4}
    empty = Forest()
    empty.load_state_dict(forest.state_dict())
    assert torch.equal(empty(torch.from_numpy(other)), forest(torch.from_numpy(other)))


def test_a_tree_by_hand() -> None:
    tree = (
        torch.tensor([1, -1, -1]),
        torch.tensor([[1, 2], [0, 0], [0, 0]]),
        torch.tensor([0.5, -1.0, 3.0], dtype=torch.float64),
        torch.tensor([False, False, False]),
    )
    forest = Forest.of([tree, tree], start=10.0)
    x = torch.tensor([[9.0, 0.5], [9.0, 0.6], [9.0, torch.nan]])
    assert forest(x).tolist() == [8.0, 16.0, 16.0]
    assert Forest()(x).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ShapeError, match="at least 2 columns"):
        forest(x[:, :1])
