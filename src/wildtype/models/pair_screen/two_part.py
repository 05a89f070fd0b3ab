"""`TwoPart`: E[ε] of a cross once more, as the chance that it is listed times what it has if it is.

Of a screen whose crosses that are not listed count as 0, E[ε] = P(listed) · E[ε | listed]. Forests of classes
and of listed crosses are fitted to other losses than that of E[ε] itself, and err otherwise: the mean of both
errs less than either (docs/log.md).

Legend: b pairs · p outputs · u training pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from wildtype.models.described_pairs import PairRows
from wildtype.models.interface import Output, RunRows
from wildtype.nn.forest import load_sizes


class TwoPart(nn.Module):
    """The product, from the outputs of a model; an empty one, as the constructor makes, changes nothing.

    Attributes
    ----------
    place : int64 [3]
        Of the outputs P(negative), P(positive) and E[ε | listed]; empty without them.
    mean, sd : float64 [2]
        Of the labels of E[ε] and of E[ε | listed], by which these outputs are scaled.
    """

    place: Tensor
    mean: Tensor
    sd: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("place", torch.zeros(0, dtype=torch.int64))
        for name in ("mean", "sd"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    @classmethod
    def of(cls, outputs: Sequence[Output], learn: PairRows, rows: RunRows) -> Self:
        """Return the product for outputs of which training labels say that it holds; else an empty one.

        It does where the pairs of one of the two classes are those with a listed value, and all others are 0.
        """
        made = cls()
        by_kind: dict[str, list[int]] = {}
        for i, output in enumerate(outputs):
            by_kind.setdefault(output.of_cross, []).append(i)
        if not {"negative", "positive", "listed"} <= by_kind.keys() or outputs[0].of_cross != "effect":
            return made
        negative, positive = by_kind["negative"][0], by_kind["positive"][0]
        value, called = (learn.labels(i)[0] for i in (0, negative))
        known = ~np.isnan(value) & ~np.isnan(called)
        interacts = (called > 0) | (learn.labels(positive)[0] > 0)
        if not known.any() or value[known & ~interacts].any():
            return made
        for listed in by_kind["listed"]:
            if np.array_equal(~np.isnan(learn.labels(listed)[0])[known], interacts[known]):
                made.place = torch.tensor([negative, positive, listed])
                made.mean = torch.from_numpy(rows.mean[[0, listed]].astype(np.float64))
                made.sd = torch.from_numpy(rows.sd[[0, listed]].astype(np.float64))
                return made
        return made

    def forward(self, found: Tensor) -> Tensor:
        """Return E[ε] [b] of outputs [b, p], scaled as they are: the mean of theirs and of the product."""
        if not len(self.place):
            return found[:, 0]
        negative, positive, listed = (found[:, int(i)].double() for i in self.place)
        chance = negative.sigmoid() + positive.sigmoid()
        product = chance * (self.mean[1] + self.sd[1] * listed)
        return (found[:, 0] + ((product - self.mean[0]) / self.sd[0]).to(found)) / 2

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        if f"{prefix}place" not in state:
            return  # models of before there was a product predict as they did
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)
