"""`njit`: numba's, with its cache of compiled code in a folder that nobody else can write.

Whoever can write a file of that cache can run any code in the process that loads it. By itself numba keeps
the files beside the source, or wherever it can write.
"""

from __future__ import annotations

import functools
import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wildtype.files import cache_dir

FOLDER = "compiled"
CHOSEN = "NUMBA_CACHE_DIR"
"""Variable by which a user chooses another folder."""


def njit(*signature: Any, **options: Any) -> Any:
    """Return numba's decorator; with ``cache=True`` code is kept on disk where that is safe."""
    import numba

    folder = _folder() if options.get("cache") else None
    decorate = numba.njit(*signature, **options | {"cache": folder is not None})

    def compiled(function: Callable[..., Any]) -> Any:
        # numba chooses the folder of a function while it is decorated. Afterwards functions of the user's
        # own programs find the setting as it was.
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder or before)
        try:
            return decorate(function)
        finally:
            numba.config.CACHE_DIR = before

    return compiled


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
