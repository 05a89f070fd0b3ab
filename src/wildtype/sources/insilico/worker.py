"""One worker process of ``chunks``: reads jobs as JSON lines, writes each chunk's file, answers ``done``."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import numpy as np

from wildtype.organism import Metabolism
from wildtype.sources.insilico.chunks import write_chunk
from wildtype.sources.insilico.fba import Change, GrowthProgram, solve_all


def main(problem: str) -> None:
    """Serve jobs from standard input until it closes; ``problem`` is the file of the metabolism's arrays."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # an interrupt is the parent's to handle; it ends this process
    with np.load(problem, allow_pickle=False) as arrays:
        program = GrowthProgram(Metabolism.from_arrays(arrays))
    for line in sys.stdin:
        job = json.loads(line)
        changes = [
            Change(np.array(reaction, dtype=np.int64), np.array(lower), np.array(upper))
            for reaction, lower, upper in job["changes"]
        ]
        write_chunk(Path(job["path"]), solve_all(program, changes))
        try:
            print("done", flush=True)
        except BrokenPipeError:  # the parent is gone; what was solved is kept for its next build
            sys.stdout = None
            return


if __name__ == "__main__":
    main(sys.argv[1])
