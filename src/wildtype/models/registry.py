"""Every neural model by name: its settings and its class. Names and settings load without torch.

A model is registered beside its class. One that comes with the package lives in ``models/<name>/``, whose
``__init__`` registers it; a user's model is a plug-in:

    @register_model(MySettings)
    class MyModel(Model): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from wildtype.errors import ConfigError
from wildtype.plugins import Registry
from wildtype.settings import check_settings, from_record

if TYPE_CHECKING:
    from wildtype.models.interface import Model, Output

    M = TypeVar("M", bound=type[Model])

DEFAULT_MODEL = "cell_transformer"
"""Model of ``fit`` and ``train`` unless another is named."""


def _nothing(config: Any) -> None:
    """Accept all settings."""


def _as_they_are(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored settings as they are."""
    return record


@dataclass(frozen=True)
class ModelDescription:
    """A model, as everything outside its folder knows it.

    All that is special about it stands in its class: what it needs, how it is built, how its batches are
    made, what is fitted after training. See `interface.Model` for the steps that a class may replace.

    Attributes
    ----------
    settings : type
        Dataclass of its settings; the default of the field ``name`` is the model's name.
    model : callable
        Returns its class; importing torch is left to this call.
    check : callable
        Refuses settings that do not fit each other; raises ``ConfigError`` naming the setting and the remedy.
    training : mapping of str to object
        Training settings that suit it, where they differ from the defaults.
    reference_implementation : callable or None
        Returns, for a model of this kind, one in torch_geometric that computes the same with its weights.
    gradients : bool
        Whether it is trained by gradients, as `interface.Model.gradients`; known without importing torch.
    stored : callable
        Returns stored settings of an earlier version in today's names.
    default_up_to : int
        Most rows of a dataset of the user's own of which it is the default model; 0: of none.
    """

    settings: type[Any]
    model: Callable[[], type[Model]]
    check: Callable[[Any], None] = _nothing
    training: Mapping[str, Any] = field(default_factory=dict)
    reference_implementation: Callable[[Any], Model] | None = None
    gradients: bool = True
    stored: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_they_are
    default_up_to: int = 0

    @property
    def name(self) -> str:
        """The model's name.

        Raises
        ------
        ConfigError
            If the settings are no dataclass with a name.
        """
        named = [f.default for f in fields(self.settings) if f.name == "name"] if _is_class(self) else []
        if not named or not isinstance(named[0], str) or not named[0].isidentifier():
            raise ConfigError(
                f"settings {self.settings!r} have no name: give the dataclass a field "
                f"as in name: str = 'my_model'"
            )
        return named[0]


def _is_class(description: ModelDescription) -> bool:
    return isinstance(description.settings, type) and is_dataclass(description.settings)


MODELS: Registry[ModelDescription] = Registry(
    "model",
    "wildtype.models",
    {
        name: f"wildtype.models.{name}"
        for name in ("cell_transformer", "pair_screen", "gaussian_process", "dango", "difference_gnn")
    },
)
"""Every model by name; entry points of this group come in when their name is asked for."""


def register_model(
    settings: type[Any], *, check: Callable[[Any], None] = _nothing, training: Mapping[str, Any] | None = None
) -> Callable[[M], M]:
    """Register the class below as the model whose name the settings hold.

    Parameters
    ----------
    settings, check, training
        As in `ModelDescription`.

    Raises
    ------
    ConfigError
        If the name is missing or taken, or the model needs what there is not.
    """

    def register(model: M) -> M:
        from wildtype.models.interface import check_needs

        description = ModelDescription(
            settings, lambda: model, check, training or {}, gradients=model.gradients
        )
        # Before registering: a refused class must leave no name behind.
        check_needs(description.name, model.needs)
        MODELS.register(description.name, description, model.__module__)
        return model

    return register


def model_for_rows(rows: int) -> str | None:
    """Return the default model of a dataset with so few rows; None where none is for so few.

    Models of plug-ins do not take part.
    """
    able = {name: MODELS.find(name).default_up_to for name in MODELS}
    return min((name for name in able if rows <= able[name]), key=lambda name: able[name], default=None)


def config_class(name: str) -> type[Any]:
    """Return the dataclass of a model's settings; raises ``ConfigError`` naming the known models."""
    return MODELS.find(name).settings


def settings_of_model(name: str, values: Mapping[str, Any]) -> Any:
    """Return the settings of a model from plain values; those that are not given have their defaults.

    Raises
    ------
    ConfigError
        If there is no such model.
    OmegaConfBaseException
        If there is no such setting, or a value is of another type.
    """
    return from_record(config_class(name), MODELS.find(name).stored(values))


def model_class(name: str) -> type[Model]:
    """Return the class of a model; raises ``ConfigError`` naming the known models."""
    return MODELS.find(name).model()


def check(config: Any) -> None:
    """Refuse settings of a model out of range or that do not fit each other; raises ``ConfigError``."""
    check_settings(config, "model.")
    MODELS.find(config.name).check(config)


def require_gradients(name: str, what: str) -> None:
    """Refuse a model that is not trained by gradients, where ``what`` is about training steps.

    Raises
    ------
    ConfigError
        Naming the models that are.
    """
    if not MODELS.find(name).gradients:
        able = [other for other in MODELS if MODELS.find(other).gradients]
        raise ConfigError(
            f"model {name!r} is fitted without gradients and has no training steps, which {what} needs: "
            f"choose model={' or '.join(able)}"
        )


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
    reactions: int = 0,
    metabolites: int = 0,
) -> Model:
    """Return a model with initial weights drawn from torch's stream.

    Parameters
    ----------
    config : dataclass
        Settings; ``config.name`` names the model.
    genes, features : int
        Number of genes n and of features per gene f.
    phenotypes : int or sequence of Output
        The p outputs; a number means that many scalars.
    conditions : int
        Number of conditions.
    relations : sequence of str
        Relations of the organism that have edges, in order.
    channels, traits : int
        Channels of similarity of genes and traits of each, for models that look up evidence (0: none is).
    reactions, metabolites : int
        Of the organism's metabolism; 0: it has none.

    Raises
    ------
    ConfigError
        If settings do not fit each other or the relations, or the model has no output of some form.
    """
    from wildtype.models.interface import ModelInputs, Output

    check(config)
    model, outputs = model_class(config.name), Output.of(phenotypes)
    for output in outputs:
        if output.form not in model.forms:
            able = [name for name in MODELS if output.form in model_class(name).forms]
            raise ConfigError(
                f"model {config.name!r} has no output of the form {output.form!r}, which {output.name!r} "
                f"needs: choose model={' or '.join(able) or '(none has it)'}, or other phenotypes"
            )
    inputs = ModelInputs(
        genes, features, outputs, conditions, tuple(relations), channels, traits, reactions, metabolites
    )
    return model.build(config, inputs)


def reference_implementation(model: Model) -> Model:
    """Return the reference implementation of a model, on the same weights.

    Raises
    ------
    ConfigError
        If there is none, or torch_geometric is missing.
    """
    from wildtype.organism.pyg import require_pyg

    make = MODELS.find(model.config.name).reference_implementation
    if make is None:
        able = [name for name in MODELS if MODELS.find(name).reference_implementation is not None]
        raise ConfigError(
            f"model={model.config.name} has no reference implementation in torch_geometric: profile "
            f"model={' or '.join(able)}"
        )
    require_pyg()
    return make(model)
