"""Every publisher whose files can be read, found by its name or by the name of one of its files."""

from __future__ import annotations

from pathlib import Path

from wildtype.errors import SourceError, did_you_mean
from wildtype.sources.publisher import Publisher, RemoteFile


def publishers() -> dict[str, Publisher]:
    """Return every publisher by name; raises ``SourceError`` if two have one name."""
    from wildtype.sources.yeast.files import described

    return described()


def find_publisher(name: str) -> Publisher:
    """Return the publisher of that name; raises ``SourceError`` naming the nearest or all names."""
    known = publishers()
    if name not in known:
        hint = did_you_mean(name, known, f"known publishers: {', '.join(known)}")
        raise SourceError(f"there is no publisher {name!r}; {hint}")
    return known[name]


def select(name: str) -> tuple[Publisher, tuple[RemoteFile, ...]]:
    """Return the publisher and files that ``publisher`` or ``publisher/file`` names.

    Raises
    ------
    SourceError
        Naming what there is instead.
    """
    key, _, file = name.partition("/")
    publisher = find_publisher(key)
    if not file:
        return publisher, publisher.files
    chosen = tuple(remote for remote in publisher.files if file in (remote.name, *remote.aliases))
    if not chosen:
        names = ", ".join(remote.name for remote in publisher.files)
        raise SourceError(f"publisher {key!r} has no file {file!r}; it has {names}")
    return publisher, chosen


def owners(path: str | Path) -> list[tuple[Publisher, RemoteFile]]:
    """Return the publishers' files that a file's name may stand for, most often one."""
    name = Path(path).name
    return [
        (publisher, remote)
        for publisher in publishers().values()
        for remote in publisher.files
        if name.removesuffix(".gz")
        in {Path(known).name.removesuffix(".gz") for known in (remote.name, *remote.aliases)}
    ]
