"""`python -m benchmarks`, run in this process."""

from __future__ import annotations

import contextlib
import io
import sys
from unittest import mock

from benchmarks.__main__ import main
from tests.command import CommandResult


def benchmarks(*words: str) -> CommandResult:
    """Run ``python -m benchmarks WORDS``."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["benchmarks", *words]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return CommandResult(code, out.getvalue(), err.getvalue())
