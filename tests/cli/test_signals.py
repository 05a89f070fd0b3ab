"""SIGTERM ends a command in a sentence, as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest

from tests.command import wildtype
from wildtype.cli import main as program


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [
        (signal.SIGTERM, 143, "wildtype: stopped by a signal of the system (SIGTERM)"),
        (signal.SIGINT, 130, "wildtype: stopped"),
    ],
)
def test_a_signal_is_one_sentence(number: int, code: int, sentence: str) -> None:
    before, threads = signal.getsignal(number), threading.active_count()
    with mock.patch.object(program, "run_command", side_effect=lambda args: os.kill(os.getpid(), number)):
        done = wildtype("train")
    assert (done.returncode, done.stderr.strip()) == (code, sentence)
    assert signal.getsignal(number) is before
    assert threading.active_count() == threads


WHILE_LOADING = """
import os, signal, sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            {what}

sys.meta_path.insert(0, Stop())
from wildtype.cli.main import main
sys.argv = ["wildtype", "--help"]
main()
"""


@pytest.mark.parametrize(
    ("what", "code", "sentence"),
    [
        ("raise KeyboardInterrupt", 130, "wildtype: stopped"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "wildtype: stopped"),
        (
            "os.kill(os.getpid(), signal.SIGTERM)",
            143,
            "wildtype: stopped by a signal of the system (SIGTERM)",
        ),
    ],
)
def test_a_signal_while_libraries_are_loaded_is_one_sentence(what: str, code: int, sentence: str) -> None:
    script = WHILE_LOADING.format(what=what)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (code, "", sentence)


DEAF = """
import ctypes, os, signal
from wildtype.cli import main as program

def wait_in_native_code(*arguments):
    ctypes.CDLL(None).sigsuspend(ctypes.create_string_buffer(b"\\xff" * 128))  # every signal is blocked

program.GRACE = 0.01
program._stop = wait_in_native_code
program.run_command = lambda args: os.kill(os.getpid(), signal.SIGTERM)
program.main()
"""


def test_a_command_that_waits_in_native_code_ends_too() -> None:
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=60)
    assert done.returncode == 143
    assert done.stderr.strip() == "wildtype: stopped by a signal of the system (SIGTERM)"


@pytest.mark.slow
def test_the_page_ends_in_a_sentence(tiny_run: Path) -> None:
    words = [
        sys.executable,
        "-c",
        "from wildtype.cli.main import main; main()",
        "serve",
        str(tiny_run),
        "--port",
        "0",
    ]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving ")
        process.terminate()
        _, said = process.communicate()
    assert process.returncode == 143
    assert said.strip().splitlines()[-1] == "wildtype: stopped by a signal of the system (SIGTERM)"
