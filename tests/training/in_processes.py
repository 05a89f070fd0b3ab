"""Trains on the tiny dataset, with the settings that the command line gives: for torchrun."""

import sys

from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose

if __name__ == "__main__":
    train(compose(sys.argv[1:]), dataset=tiny_dataset())
