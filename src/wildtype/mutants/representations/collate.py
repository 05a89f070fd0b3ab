"""Batches of torch_geometric samples: one big disjoint graph, or one shared graph and many masks.

Legend: n genes · e edges of a relation · B mutants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from wildtype.errors import ShapeError
from wildtype.mutants.representations.pyg import MutantData

FOLLOWED = ("perturbation_indices", "removed_ids")
_RAGGED = ("perturbation_indices", "perturbation_kind")


def pyg_batch(samples: Sequence[MutantData]) -> Any:
    """Return samples as one disjoint graph, a torch_geometric ``Batch``; ``to_data_list`` is its inverse.

    ``perturbation_indices_batch`` and ``removed_ids_batch`` say which mutant each perturbed gene belongs to;
    ``perturbation_indices`` are rows of the batch's gene features.

    Raises
    ------
    ShapeError
        If there are no samples.
    """
    from torch_geometric.data import Batch

    _refuse_none(samples)
    return Batch.from_data_list(list(samples), follow_batch=list(FOLLOWED))


def lazy_batch(samples: Sequence[MutantData]) -> Any:
    """Return samples of ``lazy_subgraph`` as one shared graph and the masks of all mutants, a ``HeteroData``.

    Features and edges are those of the first sample, by reference. Masks are concatenated mutant by mutant:
    ``mask`` [B·n] of nodes, [B·e] of edges. ``perturbation_indices`` are rows of the shared features, and
    ``perturbation_indices_batch`` says whose they are; ``num_graphs`` is B.

    Raises
    ------
    ShapeError
        If there are no samples, they have no masks, or they do not share their edges.
    """
    from torch_geometric.data import HeteroData

    _refuse_none(samples)
    out, first = HeteroData(), samples[0]
    for store in first.stores:
        key = store._key
        into = out if key is None else out[key]
        for name, value in store.items():
            if name in _RAGGED or name == "mask" or key is None:
                into[name] = torch.cat([_stored(sample, key)[name] for sample in samples])
            else:
                into[name] = value
            if name == "edge_index" and any(
                sample[key].edge_index.data_ptr() != value.data_ptr() for sample in samples
            ):
                raise ShapeError(f"the samples do not share the edges {key}: make them from one wiring")
        if key is not None and "mask" not in store:
            raise ShapeError(f"the samples have no mask of {key}: make them as lazy_subgraph")
    counts = torch.tensor([len(sample["gene"].perturbation_indices) for sample in samples])
    out["gene"].perturbation_indices_batch = torch.repeat_interleave(torch.arange(len(samples)), counts)
    out.num_graphs = len(samples)
    return out


def _stored(sample: MutantData, key: Any) -> Any:
    return sample if key is None else sample[key]


def _refuse_none(samples: Sequence[MutantData]) -> None:
    if not samples:
        raise ShapeError("samples: received none, expected at least one mutant")
