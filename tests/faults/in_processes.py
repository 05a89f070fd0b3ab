"""One process of a training on the tiny dataset that dies at an instant, for torchrun.

torchrun … -m tests.faults.in_processes INSTANT RANK SETTING…
"""

import os
import signal
import sys
from typing import Any
from unittest import mock

from tests.tiny import tiny_dataset

INSTANTS = {
    "data": "wildtype.experiments.run.prepare",
    "rendezvous": "wildtype.training.fit.FitTask.__init__",
    "step": "wildtype.training.fit.FitTask.training_step",
    "validation": "wildtype.training.fit.FitTask.on_validation_epoch_end",
    "epoch": "wildtype.training.fit.BestCheckpoint.on_train_epoch_end",
    "after": "wildtype.experiments.run.post_fit",
}
"""The call at which a process dies, by instant."""


def die(*arguments: Any, **named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run() -> None:
    from wildtype.cli import main as program
    from wildtype.experiments import run as runs

    train = runs.train
    instant, rank, *settings = sys.argv[1:]
    sys.argv = ["wildtype", "train", *settings]
    with mock.patch.object(
        runs, "train", lambda config, **more: train(config, dataset=tiny_dataset(), **more)
    ):
        if os.environ.get("RANK") == rank:
            with mock.patch(INSTANTS[instant], die):
                program.main()
        else:
            program.main()


if __name__ == "__main__":
    run()
