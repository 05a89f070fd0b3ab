"""A model: the sum of an effect of every perturbed gene, learned as an embedding and from its features."""

from dataclasses import dataclass

from torch import nn

from wildtype.errors import ConfigError
from wildtype.models.interface import Model, Prediction, WildType
from wildtype.models.registry import register_model
from wildtype.nn.ragged import segment_sum, take_rows


@dataclass
class AdditiveConfig:
    """Settings of `Additive`: ``features`` is whether effects also depend on the features of genes."""

    name: str = "additive"
    features: bool = True


def check(config):
    """Refuse settings that do not fit."""
    if config.name != "additive":
        raise ConfigError(f"model.name={config.name!r}: these are the settings of additive")


@register_model(AdditiveConfig, check=check, training={"learning_rate": 1e-2})
class Additive(Model):
    """The sum of an effect of every perturbed gene."""

    needs = ("features",)

    def __init__(self, config, *, genes, features, phenotypes, conditions=1, relations=()):
        super().__init__()
        self.config = config
        self.effect = nn.Embedding(genes, phenotypes)
        self.of_features = nn.Linear(features, phenotypes, bias=False)

    @classmethod
    def needed(cls, config):
        """Return what the model needs of the organism."""
        return cls.needs if config.features else ()

    def encode(self, organism, stream=None):
        """Return what all mutants of a step share: the effects of all genes [n, p]."""
        effects = self.effect.weight + self.of_features(organism.features)
        return WildType(cls=effects.mean(0), genes=effects)

    def forward(self, wild_type, mutants):
        """Predict the scaled phenotypes [b, p]."""
        return Prediction(segment_sum(take_rows(wild_type.genes, mutants.gene), mutants.offsets))
