"""`njit`: numba's, with its cache of compiled code in a folder that nobody else can write.

Whoever can write a file of that cache can run any code in the process that loads it. By itself numba keeps
the files beside the source, or wherever it can write. And it compiles a function anew when the function's own
file has changed, not when one has whose functions or constants are part of its code.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from wildtype.files import cache_dir

FOLDER = "compiled"
CHOSEN = "NUMBA_CACHE_DIR"
"""Variable by which a user chooses another folder."""
UNREADABLE = EOFError, ImportError, AttributeError, LookupError, TypeError, ValueError
"""What reading the code of other sources may raise."""


def njit(signatures: Sequence[Any] = (), /, **options: Any) -> Any:
    """Return numba's decorator; with ``cache=True`` code is kept on disk where that is safe.

    With ``signatures`` a function is compiled for these and no others, and when it is decorated.
    """
    import numba

    folder = _folder() if options.pop("cache", False) else None
    decorate = numba.njit(**options)

    def compiled(function: Callable[..., Any]) -> Any:
        made = decorate(function)
        if made is function:  # NUMBA_DISABLE_JIT leaves functions as they are
            return made
        if folder is not None:
            # numba chooses the folder when the cache of a function is made. Afterwards functions of the
            # user's own programs find the setting as it was.
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder)
            try:
                made._cache = _kept_code()(function)
            finally:
                numba.config.CACHE_DIR = before
        for signature in signatures:
            made.compile(signature)
        made.disable_compile(bool(signatures))
        return made

    return compiled


@functools.cache
def _kept_code() -> type:
    """Return numba's cache of a function, for code of one state of all its sources."""
    from numba.core.caching import FunctionCache

    class KeptCode(FunctionCache):  # type: ignore[misc]
        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)
            file = self._cache_file
            file._source_stamp = (file._source_stamp, *sorted(set(_parts(function))))

        def load_overload(self, *which: Any) -> Any:
            try:
                return super().load_overload(*which)
            except UNREADABLE:
                # Code of other sources may name modules and classes that are no more: numba reads these names
                # before it compares the sources. It is compiled anew.
                self.flush()
                return None

    return KeptCode


def _parts(function: Callable[..., Any], *above: Callable[..., Any]) -> Iterator[str]:
    """Yield what else is part of a function's code: the files of what it calls, and its constants."""
    if function in above:  # a module that is loaded again knows the functions that call each other
        return
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        called: Any = getattr(value, "py_func", value)
        if callable(called):
            yield _state(
                getattr(sys.modules.get(getattr(called, "__module__", None) or ""), "__file__", None)
            )
        elif value is not None and not isinstance(value, ModuleType):
            yield f"{name} = {value!r}"
        if called is not value:
            yield from _parts(called, function, *above)


@functools.cache
def _state(file: str | None) -> str:
    """Return a file's time and size; nothing of a module without a file."""
    if file is None or not os.path.exists(file):
        return ""
    found = os.stat(file)
    return f"{file} {found.st_mtime} {found.st_size}"


@functools.cache
def _folder() -> Path | None:
    """Return the folder of compiled code; None where there is none that only this user can write."""
    if chosen := os.environ.get(CHOSEN):
        places = [Path(chosen)]
    else:
        # A cache that a group shares is no place for code, and users have one of their own.
        places = list(dict.fromkeys([cache_dir() / FOLDER, Path.home() / ".cache" / "wildtype" / FOLDER]))
    reasons = []
    for place in places:
        if not (reason := why_not_private(place)):
            return place
        reasons.append(reason)
    warnings.warn(
        f"compiled code is not kept, and every start compiles anew: {'; '.join(reasons)}. Set {CHOSEN} to a "
        f"folder that only you can write",
        stacklevel=4,
    )
    return None


def why_not_private(folder: Path) -> str:
    """Return why others could write a folder, which is made if missing; empty: only this user can."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found, above = folder.lstat(), folder.parent.resolve().stat()
        if not stat.S_ISDIR(found.st_mode):
            return f"{str(folder)!r} is a link or a file, not a folder"
        if not hasattr(os, "geteuid"):  # Windows, where a user's folders are private
            return ""
        if found.st_uid != os.geteuid():
            return f"{str(folder)!r} belongs to another user"
        # Who can rename the folder can put another in its place, unless the sticky bit keeps names.
        if above.st_uid not in (os.geteuid(), 0) or (
            above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
        ):
            return f"others can write {str(folder.parent)!r}"
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        return f"{str(folder)!r} cannot be used ({error.strerror or error})"
    return ""
