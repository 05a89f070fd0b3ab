"""Atomic writes, content hashes, and the cache directory."""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import OutputError

if TYPE_CHECKING:
    from torch import Tensor


MAX_JSON = 256 << 20
"""Largest JSON file that is read."""


def cache_dir() -> Path:
    """Return the directory of files that can be rebuilt: ``$WILDTYPE_CACHE`` or ``~/.cache/wildtype``."""
    base = os.environ.get("WILDTYPE_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wildtype"


def writing_refused(error: OSError, target: Path) -> OutputError:
    """Return the error for a ``target`` that cannot be written: reason and remedy in one sentence."""
    reason = {
        errno.ENOSPC: "the disk is full; free some space",
        errno.EDQUOT: "the disk quota is used up; free some space",
        errno.EFBIG: "the file would exceed the allowed file size; raise the limit (ulimit -f)",
        errno.EROFS: "the file system is read-only; choose another place",
        errno.EACCES: "permission is denied; choose another place",
        errno.EPERM: "permission is denied; choose another place",
        errno.ENOTDIR: "a part of the path is a file, not a folder; choose another place",
        errno.EEXIST: "a file of that name is in the way; choose another place",
        errno.EISDIR: "there is a folder of that name; choose another name",
    }.get(error.errno or 0, f"{error.strerror or error}; choose another place")
    return OutputError(f"cannot write {str(target)!r}: {reason}. Nothing was written there.")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_names(directory: Path) -> None:
    """Sync the names that a directory holds, after one of them was replaced; raises ``OutputError``."""
    try:
        _sync(directory)
    except OSError as error:
        # Some network file systems have no such call for directories: there is nothing to wait for.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES):
            raise OutputError(
                f"what was written in {str(directory)!r} may not outlive a power failure "
                f"({error.strerror or error}): check the disk, and repeat the command"
            ) from error


# -------------------------------------------------------------------------------------------- temporary files

_TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}\.(?P<kind>part|old)(\..+)?"
)
FOREIGN_DAYS = 7
"""Days without a change after which a temporary file of another machine counts as left behind."""
_swept: set[Path] = set()


@functools.cache
def _machine() -> str:
    """Return a hash of this machine since its last start, and of the numbering of processes on it."""
    found = [socket.gethostname()]
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        found.append(os.readlink("/proc/self/ns/pid"))  # containers count their processes anew
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:8]


def _temporary(target: Path) -> tuple[Path, Path]:
    """Return new names beside ``target``: for what is being written, and for what it replaces."""
    # In the same directory, since a rename is atomic only within one file system; the random part keeps two
    # threads from writing to one temporary file. The rest names the writer, for `sweep`.
    mark = f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{mark}.part"), target.with_name(f".{target.name}.{mark}.old")


def sweep(directory: Path, *, exclusive: bool = False) -> None:
    """Remove what killed writers left half written in a directory, and give replaced folders their name back.

    Parameters
    ----------
    directory : Path
        Its subdirectories are left as they are.
    exclusive : bool
        Whether nobody else can be writing there; without it only the temporary files of processes that
        ended are removed, and of other machines those that did not change for ``FOREIGN_DAYS``.
    """
    with contextlib.suppress(OSError):  # a directory that cannot be read or changed is left as it is
        for entry in os.scandir(directory):
            found = _TEMPORARY.fullmatch(entry.name)
            if found is None or not (exclusive or _left_behind(found, entry.stat(follow_symlinks=False))):
                continue
            path, target = Path(entry.path), directory / found["name"]
            # Killed between the two renames of `writing_folder`: the old one is the only one.
            if found["kind"] == "old" and not target.exists():
                os.replace(path, target)
            elif entry.is_dir(follow_symlinks=False):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _left_behind(found: re.Match[str], file: os.stat_result) -> bool:
    """Whether the writer of a temporary file has ended."""
    import psutil

    if found["machine"] != _machine():
        return time.time() - file.st_mtime > FOREIGN_DAYS * 86_400
    try:
        # Numbers of processes are used again: one that began after the last change did not write it.
        return bool(psutil.Process(int(found["pid"])).create_time() > file.st_mtime + 2)
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:  # a process of somebody else
        return False


def _sweep_once(directory: Path) -> None:
    """Sweep a directory when this process first writes there."""
    if directory not in _swept:
        _swept.add(directory)
        sweep(directory)


@contextlib.contextmanager
def writing(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success it is synced and renamed, on failure removed.

    Raises
    ------
    OutputError
        One sentence naming the path and the reason (full disk, read-only, ...).
    """
    target = Path(target)
    temporary, _ = _temporary(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep_once(target.parent)
        yield temporary
        # First the data, then the name, then the directory that holds the name. After a power failure a file
        # that was renamed before its data was synced could be empty under its final name.
        _sync(temporary)
        os.replace(temporary, target)
        _sync_names(target.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise writing_refused(error, target) from error
    finally:
        # With what libraries put beside it, such as DuckDB's log of changes.
        for path in (temporary, *target.parent.glob(f"{glob.escape(temporary.name)}.*")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def writing_folder(target: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``target``; on success its files are synced and it takes the name.

    An existing folder is exchanged with the new one in one step and then removed. Where the system has no
    such step, the old one is moved aside first, and for an instant neither has the name.

    Raises
    ------
    OutputError
        One sentence naming the path and the reason.
    """
    target = Path(target)
    temporary, old = _temporary(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep_once(target.parent)
        temporary.mkdir()
        yield temporary
        for path in sorted(temporary.rglob("*")):
            _sync_names(path) if path.is_dir() else _sync(path)
        # os.replace cannot replace a folder that is not empty.
        if not (target.exists() and _exchange(temporary, target)):
            if target.exists():
                os.replace(target, old)
            os.replace(temporary, target)
        _sync_names(target.parent)
    except OSError as error:
        # The old folder was moved aside and the new one failed to take its place: put the old one back.
        if old.exists() and not target.exists():
            os.replace(old, target)
        if isinstance(error, OutputError):
            raise
        raise writing_refused(error, target) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two paths atomically (``renameat2``); False where that cannot be done."""
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return rename is not None and rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


def write_text(target: str | Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``target`` atomically; raises ``OutputError``."""
    with writing(target) as path:
        path.write_text(text, encoding="utf-8")


def write_json(target: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON to ``target`` atomically (NaN becomes null); raises
    ``OutputError``.
    """
    write_text(target, json_text(value))


def json_text(value: Any) -> str:
    """Return ``value`` as the text of an indented JSON file (NaN becomes null)."""
    return json.dumps(finite(value), indent=2, allow_nan=False) + "\n"


def write_tensors(target: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, within ``writing`` or ``writing_folder``; raises ``OSError``."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # The library makes files that their owner alone can read: the rights are those of any other file.
    target.touch()
    rights = stat.S_IMODE(target.stat().st_mode)
    try:
        # Clones: safetensors refuses tensors that share memory, such as tied weights or views.
        save_file({name: x.detach().cpu().contiguous().clone() for name, x in tensors.items()}, target)
    except SafetensorError as error:  # its text holds the number of the system's error
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(target)) from error
    target.chmod(rights)


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first tensor with an infinite entry or one that is not a number, or None."""
    floats = ((name, x) for name, x in tensors.items() if x.is_floating_point())
    return next((name for name, x in floats if not bool(x.isfinite().all())), None)


def require_regular(path: Path) -> Path:
    """Return the path of a regular file; others, such as devices and pipes, may never end.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    OSError
        If it is something else.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # what a link points to counts
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return path


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """Return the content of a JSON file.

    Raises
    ------
    OSError
        If it is missing or no regular file.
    ValueError
        If it is no JSON, or larger than ``limit`` bytes.
    """
    with require_regular(path).open("rb") as handle:
        content = handle.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it is larger than {limit / 2**20:,.0f} MiB")
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def finite(value: Any) -> Any:
    """Copy a JSON-like value with NaN and infinities replaced by None, which JSON can carry."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def sha256_of_file(path: str | Path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def content_hash(*parts: Any) -> str:
    """Return a SHA-256 over strings, bytes, JSON-like values and NumPy arrays (dtype, shape and bytes)."""
    return content_hash_of(parts)


def content_hash_of(parts: Iterable[Any]) -> str:
    """Return `content_hash` of parts that are made one after the other, and then let go."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            head, body = b"", memoryview(part)
        elif hasattr(part, "tobytes") and hasattr(part, "dtype"):
            head = f"{part.dtype.str}{part.shape}".encode()
            # The bytes where they are: an array of millions of rows is not copied to be hashed.
            body = memoryview(part.reshape(-1).view("u1") if part.flags.c_contiguous else part.tobytes())
        else:
            head, body = b"", memoryview(json.dumps(finite(part), sort_keys=True).encode())
        # The length separates the parts: ("ab", "c") and ("a", "bc") must differ.
        digest.update((len(head) + body.nbytes).to_bytes(8, "little"))
        digest.update(head)
        digest.update(body)
    return digest.hexdigest()
