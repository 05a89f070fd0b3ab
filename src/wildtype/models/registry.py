"""Every neural model by name: where its settings stand, and how it is made."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wildtype.models.interface import Model, Output

MODELS: dict[str, tuple[str, str]] = {
    "cell_transformer": ("CellTransformerConfig", "CellTransformer"),
    "dango": ("DangoConfig", "Dango"),
    "difference_gnn": ("DifferenceGNNConfig", "DifferenceGNN"),
}
"""Class of the settings, and of the model, by the name of their room."""


def config_class(name: str) -> type[Any]:
    """Return the dataclass of a model's settings, without loading torch.

    Raises
    ------
    ConfigError
        If there is no model of that name; the message names those there are.
    """
    if name not in MODELS:
        raise ConfigError(f"there is no model {name!r}; known models: {', '.join(MODELS)}")
    found: type[Any] = getattr(importlib.import_module(f"wildtype.models.{name}.config"), MODELS[name][0])
    return found


def check(config: Any) -> None:
    """Refuse settings of a model that do not fit each other; raises ``ConfigError`` naming the setting."""
    config_class(config.name)
    importlib.import_module(f"wildtype.models.{config.name}.config").check(config)


def make_model(
    config: Any,
    *,
    genes: int,
    features: int,
    phenotypes: int | Sequence[Output],
    conditions: int = 1,
    relations: Sequence[str] = (),
    channels: int = 0,
    traits: int = 0,
) -> Model:
    """Return a model with initial weights drawn from torch's stream.

    Parameters
    ----------
    config : dataclass
        Settings; ``config.name`` says of which model.
    genes, features : int
        Number of genes n and of features per gene f.
    phenotypes : int or sequence of Output
        The p outputs; a number stands for so many scalars.
    conditions : int
        Number of conditions.
    relations : sequence of str
        Relations of the organism that have edges, in order.
    channels, traits : int
        Channels of similarity of genes and traits of each, for models that look up evidence (0: none is).

    Raises
    ------
    ConfigError
        If settings do not fit each other or the relations, or the model cannot give a number per gene.
    """
    check(config)
    if config.name != "cell_transformer" and not isinstance(phenotypes, int):
        for output in phenotypes:
            if output.form == "gene":
                raise ConfigError(
                    f"model {config.name!r} gives no number per gene, which {output.name!r} has: choose "
                    f"model=cell_transformer or other phenotypes"
                )
        phenotypes = len(phenotypes)
    room = importlib.import_module(f"wildtype.models.{config.name}.model")
    model: Model = getattr(room, MODELS[config.name][1])(
        config,
        genes=genes,
        features=features,
        phenotypes=phenotypes,
        conditions=conditions,
        relations=relations,
        **({"channels": channels, "traits": traits} if channels else {}),
    )
    return model
