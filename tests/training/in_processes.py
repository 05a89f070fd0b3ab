"""Trains on the tiny dataset, with the settings that the command line gives: for torchrun."""

import sys

from tests.tiny import tiny_dataset
from wildtype.config.compose import compose
from wildtype.runs.run import train

if __name__ == "__main__":
    train(compose(sys.argv[1:]), dataset=tiny_dataset())
