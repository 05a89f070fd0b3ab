"""`wildtype`: the entry point. Errors are one sentence, with an exit code above 0 (`--debug`: traceback)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Annotated, NoReturn

import typer

from wildtype.cli import (
    ablate,
    data,
    doctor,
    embed,
    evaluate,
    explain,
    organism,
    plot,
    predict,
    profile,
    report,
    reproduce,
    screen,
    serve,
    train,
    tune,
)
from wildtype.errors import WildtypeError
from wildtype.training.waiting import wait_passively

app = typer.Typer(
    name="wildtype",
    help="Predict what a cell does when genes are removed, added or overexpressed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.add_typer(
    data.app, name="data", help="Organisms and datasets: list, fetch, build, ingest, query, import, verify."
)
app.add_typer(
    organism.app, name="organism", help="Organisms: list, import from your files, show, export, template."
)
app.command("train")(train.command)
app.command("ablate")(ablate.command)
app.command("tune")(tune.command)
app.command("evaluate")(evaluate.command)
app.command("predict")(predict.command)
app.command("screen")(screen.command)
app.command("embed")(embed.command)
app.command("explain")(explain.command)
app.command("report")(report.command)
app.command("plot")(plot.command)
app.command("reproduce")(reproduce.command)
app.add_typer(profile.app, name="profile", help="Where the time of a training run goes.")
app.command("serve")(serve.command)
app.command("doctor")(doctor.command)


def _version(requested: bool) -> None:
    if requested:
        from wildtype import __version__

        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    # The environment also reaches processes that a command starts, such as workers of a screen.
    if debug:
        os.environ["WILDTYPE_DEBUG"] = "1"


TERMINATED = 128 + signal.SIGTERM
BY_SIGNAL = "wildtype: stopped by a signal of the system (SIGTERM)"
GRACE = 10.0
"""Seconds after SIGTERM in which a command may clean up; batch systems kill it after 30."""


def main() -> None:
    """Run the command line and exit."""
    threading.excepthook = _in_a_thread
    wait_passively(os.environ)  # before torch is loaded, which reads it once
    arguments = sys.argv[1:]
    # Typer accepts an option of the program only before the command; users append it to a failed one.
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    try:
        with _ended_by_sigterm():
            app(args=arguments)
    except (WildtypeError, OSError, MemoryError, KeyboardInterrupt) as error:
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
    if isinstance(error, MemoryError):
        return "out of memory: choose a smaller batch or data.tokens=measured"
    if isinstance(error, OSError) and not isinstance(error, WildtypeError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    # Messages of other libraries may span lines; a log line must hold the whole sentence.
    return " ".join(str(error).split())
