"""Fail, or kill, at the n-th write of a command: the kernel asks before every call that changes a disk.

A command inherits a filter (seccomp) that hands such calls to this process, which answers "go on" or an
error. Calls of native code (DuckDB, Arrow, safetensors) and of child processes are counted too. Commands are
forked from one process that has imported everything, so that a round costs seconds less. Only Linux has this.

Run as a program it answers requests of `Writes`, one line of JSON each.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import importlib
import io
import json
import os
import pkgutil
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

X86_64 = {
    "write": 1, "pwrite64": 18, "writev": 20, "pwritev": 296, "pwritev2": 328, "open": 2, "creat": 85,
    "openat": 257, "rename": 82, "renameat": 264, "renameat2": 316, "mkdir": 83, "mkdirat": 258, "fsync": 74,
    "fdatasync": 75, "truncate": 76, "ftruncate": 77, "fallocate": 285, "link": 86, "linkat": 265,
    "symlink": 88, "symlinkat": 266, "sendfile": 40, "copy_file_range": 326,
}  # fmt: skip
"""Numbers of the calls that change a disk; removing is left out, which works on a full disk."""
HANDLE = {
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fallocate",
}
AT = {"openat": 0, "mkdirat": 0, "renameat": 2, "renameat2": 2, "linkat": 2, "symlinkat": 1}
"""Calls whose path follows the handle of a folder: the argument that is the handle of what is written."""
TARGET = {"rename": 1, "link": 1, "symlink": 1, "sendfile": 0, "copy_file_range": 2}
"""Other calls whose first argument is not what is written: the one that is."""
SECCOMP, PTRACER, ALLOW, ASK = 317, 0x59616D61, 0x7FFF0000, 0x7FC00000
RECEIVE, ANSWER = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, _SEND
MODES = ("count", "full", "once", "kill")
"""Count; all writes from the n-th on fail, as on a full disk; one fails; the process is killed before it."""


def supported() -> bool:
    """Whether this machine can ask about the calls of a process."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: the signal), what it printed, its writes, the one hit."""

    code: int
    out: str
    err: str
    writes: int
    hit: str

    @property
    def sentence(self) -> str:
        """The last line of its complaint."""
        lines = [line for line in self.err.splitlines() if line.startswith("wildtype: ")]
        return lines[-1] if lines else ""


class Writes:
    """Runs commands of which the n-th write below a folder fails."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.writes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            cwd=Path(__file__).parents[2],
        )

    def __enter__(self) -> Writes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def run(self, words: list[str], root: Path, mode: str = "count", n: int = 0) -> Ended:
        """Run `wildtype WORDS` in a folder; in mode ``count`` nothing fails."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"words": words, "root": str(root), "mode": mode, "n": n}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Ended(**json.loads(self.process.stdout.readline()))


# ------------------------------------------------------------------------------------- in the forking process


def _program() -> bytes:
    """Return the filter: calls of the list are asked about, those that open only where they may write."""
    load_number, load_second, load_third = (struct.pack("=HBBI", 0x20, 0, 0, at) for at in (0, 24, 32))
    code = [load_number]
    for name, number in X86_64.items():
        if name in ("open", "openat"):
            flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
            # Unequal: past the next four, to the next name.
            code.append(struct.pack("=HBBI", 0x15, 0, 4, number))
            code.append(load_third if name == "openat" else load_second)
            code.append(struct.pack("=HBBI", 0x45, 0, 1, flags))
            code.append(struct.pack("=HBBI", 0x06, 0, 0, ASK))
            code.append(struct.pack("=HBBI", 0x06, 0, 0, ALLOW))
        else:
            code.append(struct.pack("=HBBI", 0x15, 0, 1, number))
            code.append(struct.pack("=HBBI", 0x06, 0, 0, ASK))
    code.append(struct.pack("=HBBI", 0x06, 0, 0, ALLOW))
    return b"".join(code)


def _listen() -> int:
    """Put the filter on this process and all that it starts; return the handle that asks."""
    library = ctypes.CDLL(None, use_errno=True)
    code = _program()
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    library.prctl(38, 1, 0, 0, 0)  # no new rights, which an unprivileged filter requires
    handle = library.syscall(SECCOMP, 1, 1 << 3, program)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(handle)


def _child(words: list[str], root: Path, out: int, err: int, pipe: socket.socket) -> None:
    """Run the command in this forked process, which then ends."""
    code = 70
    try:
        os.setsid()
        os.chdir(root)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin = open(os.devnull)  # noqa: SIM115
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.argv = ["wildtype", *words]
        from wildtype.cli.main import main

        handle = _listen()
        socket.send_fds(pipe, [b"x"], [handle])
        os.close(handle)
        pipe.close()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            import atexit

            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
        os._exit(code)


def _text(pid: int, address: int) -> str:
    """Return the text at an address of another process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        found = b""
        while b"\0" not in found and len(found) < 4096:
            # Not across the end of a page: the next one may not be there.
            found += memory.read(min(256, 4096 - (address + len(found)) % 4096))
    return os.fsdecode(found.partition(b"\0")[0])


def _path(pid: int, name: str, arguments: tuple[int, ...]) -> str:
    """Return the file that a call would change."""
    if name in HANDLE or name in ("sendfile", "copy_file_range"):
        return os.readlink(f"/proc/{pid}/fd/{arguments[TARGET.get(name, 0)]}")
    at = AT.get(name)
    if at is None:
        path, base = _text(pid, arguments[TARGET.get(name, 0)]), f"/proc/{pid}/cwd"
    else:
        path, folder = _text(pid, arguments[at + 1]), ctypes.c_int(arguments[at] & 0xFFFFFFFF).value
        base = f"/proc/{pid}/cwd" if folder == -100 else f"/proc/{pid}/fd/{folder}"
    return path if path.startswith("/") else os.path.join(os.readlink(base), path)


def _supervise(request: dict[str, Any]) -> dict[str, Any]:
    """Run a command and answer its calls; return how it ended."""
    root, mode, n = request["root"], request["mode"], request["n"]
    mine, theirs = socket.socketpair()
    writes, hit = 0, ""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            mine.close()
            _child(request["words"], Path(root), out.fileno(), err.fileno(), theirs)
        theirs.close()
        _, handles, _, _ = socket.recv_fds(mine, 1, 1)
        mine.close()
        if not handles:
            _, status = os.waitpid(pid, 0)
            err.seek(0)
            raise RuntimeError(err.read().decode())
        ask, end = handles[0], os.pidfd_open(pid)
        poll = select.poll()
        poll.register(ask, select.POLLIN)
        poll.register(end, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if ask not in ready or not ready[ask] & select.POLLIN:
                break
            message = bytearray(80)
            try:
                fcntl.ioctl(ask, RECEIVE, message)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue
                raise
            key, caller, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", message)
            name = next(k for k, v in X86_64.items() if v == number)
            try:
                path = _path(caller, name, tuple(arguments))
            except OSError:
                path = ""
            answer = struct.pack("=QqiI", key, 0, 0, 1)
            if path.startswith(root):
                writes += 1
                if n and (writes == n or (mode == "full" and writes > n)):
                    hit = hit or f"{name} {os.path.relpath(path, root)}"
                    if mode == "kill":
                        os.kill(pid, signal.SIGKILL)
                    elif mode != "count":
                        number = errno.ENOSPC if mode == "full" else errno.EIO
                        answer = struct.pack("=QqiI", key, 0, -number, 0)
            try:
                fcntl.ioctl(ask, ANSWER, answer)
            except OSError as error:
                if error.errno != errno.ENOENT:  # it ended meanwhile
                    raise
        _, status = os.waitpid(pid, 0)
        os.close(ask)
        os.close(end)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what it started and left behind
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "out": texts[0], "err": texts[1], "writes": writes, "hit": hit}


def _serve() -> None:
    """Import what commands import, then answer requests."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import hydra  # noqa: F401
    import matplotlib.pyplot
    import numba  # noqa: F401
    import pyarrow.dataset  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    import torch.utils.tensorboard  # noqa: F401

    import wildtype

    for module in pkgutil.walk_packages(wildtype.__path__, "wildtype."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    # What commands keep in memory of presets and fonts: half a second of each.
    from wildtype.experiments.settings.compose import compose

    compose(["data=ecoli-core-growth"])
    matplotlib.pyplot.figure().add_subplot().set_title("title").figure.savefig(io.BytesIO(), format="svg")
    matplotlib.pyplot.close()

    for line in sys.stdin:
        print(json.dumps(_supervise(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
