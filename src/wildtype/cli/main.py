"""`wildtype`: the entry point. Errors are one sentence, with an exit code above 0 (`--debug`: traceback).

Libraries are loaded inside `main`, where Ctrl-C and SIGTERM already end in a sentence.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import NoReturn

from wildtype.characters import only_visible_output, visible
from wildtype.errors import WildtypeError, shown
from wildtype.memory import keep_freed_memory
from wildtype.training.waiting import wait_passively

TERMINATED = 128 + signal.SIGTERM
BY_SIGNAL = "wildtype: stopped by a signal of the system (SIGTERM)"
GRACE = 10.0
"""Seconds after SIGTERM in which a command may clean up; batch systems kill it after 30."""


def main() -> None:
    """Run the command line and exit."""
    threading.excepthook = _in_a_thread
    wait_passively(os.environ)  # before torch is loaded, which reads it once
    keep_freed_memory()
    arguments = sys.argv[1:]
    # Typer accepts an option of the program only before the command; users append it to a failed one.
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    with only_visible_output():
        _end_in_a_sentence(arguments)


def run_command(args: Sequence[str]) -> None:
    """Load the commands and run one."""
    from wildtype.cli.commands import app

    app(args=args)


def _end_in_a_sentence(arguments: Sequence[str]) -> None:
    """Run a command; print the error or the signal that ends it, and exit."""
    try:
        with _ended_by_sigterm():
            run_command(arguments)
    except (WildtypeError, OSError, MemoryError, KeyboardInterrupt, UnicodeEncodeError) as error:
        if os.environ.get("WILDTYPE_DEBUG"):
            traceback.print_exc()
        print(f"wildtype: {_sentence(error)}", file=sys.stderr)
        # Shells expect 128 + the number of the signal (SIGINT is 2).
        _leave(130 if isinstance(error, KeyboardInterrupt) else 1)
    except SystemExit as end:
        if end.code == 130:  # Typer turns KeyboardInterrupt into this exit code
            print("wildtype: stopped", file=sys.stderr)
            _leave(130)
        if end.code == TERMINATED:  # as a batch system sends it at the end of the time limit
            print(BY_SIGNAL, file=sys.stderr)
        raise


def _leave(code: int) -> NoReturn:
    """Exit, without waiting for a call of the database that could not be stopped."""
    if "duckdb" in sys.modules:
        from wildtype.datasets.store.limits import QUERY_THREAD

        if any(thread.name == QUERY_THREAD for thread in threading.enumerate()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command in a sentence, as Ctrl-C does, wherever its main thread is."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    # Python's handlers run between two instructions of Python: a main thread that waits in native code, such
    # as for another process of the run, would not hear the signal. The number of a signal that arrives is
    # also written to a socket, which a thread reads.
    heard, told = socket.socketpair()
    told.setblocking(False)
    ended = threading.Event()
    watch = threading.Thread(target=_end_if_deaf, args=(heard, ended), name="SIGTERM", daemon=True)
    handler = signal.signal(signal.SIGTERM, _stop)
    wakeup = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGTERM, handler)
        ended.set()
        told.close()
        watch.join()
        heard.close()


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)


def _end_if_deaf(heard: socket.socket, ended: threading.Event) -> None:
    """Wait for SIGTERM in this thread, and end a process whose main thread does not end by itself."""
    while number := heard.recv(1):
        if number[0] == signal.SIGTERM and not ended.wait(GRACE):
            print(BY_SIGNAL, file=sys.stderr, flush=True)
            os._exit(TERMINATED)


def _in_a_thread(error: threading.ExceptHookArgs) -> None:
    """Print in one sentence the error that ended a thread, such as a logger's when the disk is full."""
    if os.environ.get("WILDTYPE_DEBUG"):
        threading.__excepthook__(error)
    elif error.exc_value is not None:
        print(f"wildtype: in the background: {_sentence(error.exc_value)}", file=sys.stderr)


def _sentence(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if isinstance(error, UnicodeEncodeError):
        # Bytes of a path that are no UTF-8: some libraries take no such path.
        wrong = error.object[error.start : error.end]
        return (
            f"{shown(error.object)} holds {visible(wrong)}, which is no UTF-8 text: rename the file or folder"
        )
    if isinstance(error, MemoryError):
        return "out of memory: choose a smaller batch or data.tokens=measured"
    if isinstance(error, OSError) and not isinstance(error, WildtypeError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    # Messages of other libraries may span lines; a log line must hold the whole sentence.
    return " ".join(str(error).split())
