"""Publishers' files for yeast: their descriptions, and which of them a folder holds.

Citations, addresses, checksums, published counts and notes are data, in one ``publishers.toml`` for each of
genes, graphs, screens and traits. A reader asks for its publisher by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from wildtype.datasets.records import Publication, Study
from wildtype.errors import SourceError
from wildtype.files import sha256_of_file
from wildtype.sources.publisher import Publisher, RemoteFile

KINDS = ("genes", "graphs", "screens", "traits")
_CITED = ("citation", "doi", "pubmed")


@cache
def described() -> dict[str, Publisher]:
    """Return every publisher of yeast data by name; raises ``SourceError`` if two have one name."""
    out: dict[str, Publisher] = {}
    for kind in KINDS:
        text = (files(__package__) / kind / "publishers.toml").read_text("utf-8")
        for name, table in tomllib.loads(text).items():
            if name in out:
                raise SourceError(f"two publishers are called {name!r}: rename one")
            out[name] = _publisher(name, table)
    return out


def _publisher(name: str, table: dict[str, Any]) -> Publisher:
    return Publisher(
        name=name,
        title=table["title"],
        publication=Publication(**{key: table[key] for key in _CITED if key in table}),
        licence=table["licence"],
        files=tuple(_remote(file) for file in table["files"]),
        published=table.get("published", {}),
        notes=tuple(table.get("notes", ())),
    )


def _remote(file: dict[str, Any]) -> RemoteFile:
    # The constructor refuses a misspelled key, so that no address or checksum is lost without an error.
    lists = {key: tuple(value) for key, value in file.items() if isinstance(value, list)}
    return RemoteFile(**(file | lists))


def publisher(name: str) -> Publisher:
    """Return the publisher of that name; raises ``KeyError`` if ``publishers.toml`` has none."""
    return described()[name]


def study_of(publisher: Publisher, paths: Iterable[Path]) -> Study:
    """Return the study of a publisher, with the checksums of the files that were read."""
    return Study(
        name=publisher.name,
        publication=publisher.publication,
        organism="yeast",
        licence=publisher.licence,
        files={path.name: sha256_of_file(path) for path in paths},
        notes=publisher.notes,
    )


def find_copy(folder: str | Path, copies: Sequence[RemoteFile]) -> Path | None:
    """Return the first copy of one table that is in the folder, or None."""
    return next((path for copy in copies if (path := copy.find(folder)) is not None), None)


def require_copy(folder: str | Path, copies: Sequence[RemoteFile]) -> Path:
    """Return the first copy of one table that is in the folder; raises ``SourceError`` naming the first."""
    return find_copy(folder, copies) or copies[0].require(folder)


def find_release(folder: str | Path, stem: str, suffix: str) -> tuple[Path, str] | None:
    """Return the file ``<stem><release><suffix>``, plain or ``.gz``, and its release; None if there is none.

    Raises
    ------
    SourceError
        If several releases are there: it is unknown which one is meant, and releases are never mixed.
    """
    found: dict[str, Path] = {}
    for ending in (suffix, f"{suffix}.gz"):
        for path in sorted(Path(folder).glob(f"{stem}*{ending}")):
            if path.is_file():
                # The plain file comes first, so that it goes before a compressed copy of the same release.
                found.setdefault(path.name.removeprefix(stem).removesuffix(ending), path)
    if len(found) > 1:
        raise SourceError(
            f"{str(folder)!r} holds {len(found)} releases of {stem}…{suffix} ({', '.join(sorted(found))}): "
            "keep one of them"
        )
    return next(((path, release) for release, path in found.items()), None)
