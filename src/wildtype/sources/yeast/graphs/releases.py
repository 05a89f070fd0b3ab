"""Files whose names carry the publisher's release: the one release that a folder holds."""

from __future__ import annotations

from pathlib import Path

from wildtype.errors import SourceError


def find_release(folder: str | Path, stem: str, suffix: str) -> tuple[Path, str] | None:
    """Return the file ``<stem><release><suffix>``, plain or ``.gz``, and its release; None if there is none.

    Raises
    ------
    SourceError
        If several releases are there: which one is meant cannot be told, and they are never mixed.
    """
    found: dict[str, Path] = {}
    for ending in (suffix, f"{suffix}.gz"):
        for path in sorted(Path(folder).glob(f"{stem}*{ending}")):
            if path.is_file():
                found.setdefault(path.name.removeprefix(stem).removesuffix(ending), path)
    if len(found) > 1:
        raise SourceError(
            f"{str(folder)!r} holds {len(found)} releases of {stem}…{suffix} ({', '.join(sorted(found))}): "
            "keep one of them"
        )
    return next(((path, release) for release, path in found.items()), None)
