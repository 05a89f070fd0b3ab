"""The command line, run in this process: a fresh interpreter would take seconds to load what it needs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from unittest import mock

from wildtype.cli.main import main


@dataclass
class CommandResult:
    """What a command printed, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


def wildtype(*words: str, stdin: str | None = None) -> CommandResult:
    """Run ``wildtype WORDS``."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["wildtype", *words]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin or "")),
        mock.patch.dict(os.environ),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return CommandResult(code, out.getvalue(), err.getvalue())


def assert_one_sentence(said: CommandResult, *needles: str) -> None:
    """Check that a command failed with one sentence that holds ``needles``."""
    assert said.returncode == 1, said.stderr
    lines = [line for line in said.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, said.stderr
    assert lines[0].startswith("wildtype: ")
    assert "Traceback" not in said.stderr
    for needle in needles:
        assert needle in lines[0]
