"""What is known of a publisher's files before any is read: names, addresses, checksums, licence, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wildtype.datasets.records import Publication
from wildtype.errors import MissingFileError


@dataclass(frozen=True)
class RemoteFile:
    """One file as its publisher gives it out.

    Attributes
    ----------
    name : str
        Name under which a folder of publishers' files holds it.
    urls : tuple of str
        Where it can be fetched, https only, best first; empty where no such address is known.
    sha256 : str
        Of the file as downloaded; empty where it is not known or changes with every release.
    aliases : tuple of str
        Other names under which the same content is handed on; a ``.gz`` of any name is accepted too.
    member : str
        Where the address is an archive: the file inside it.
    gated : str
        Where scripts are refused: what a person does instead.
    agent : str
        User agent to send where the host refuses the default one.
    """

    name: str
    urls: tuple[str, ...] = ()
    sha256: str = ""
    aliases: tuple[str, ...] = ()
    member: str = ""
    gated: str = ""
    agent: str = ""

    def find(self, folder: str | Path) -> Path | None:
        """Return the file in `folder` under any of its names, or None."""
        for name in (self.name, *self.aliases):
            for path in (Path(folder) / name, Path(folder) / f"{name}.gz"):
                if path.is_file():
                    return path
        return None

    def require(self, folder: str | Path) -> Path:
        """Return the file in `folder`; raises ``MissingFileError`` naming it and what to do."""
        path = self.find(folder)
        if path is None:
            remedy = self.gated or (
                f"fetch it from {self.urls[0]}" if self.urls else "ask its publisher for it"
            )
            raise MissingFileError(
                f"{self.name} is not in {str(folder)!r}: {remedy}, and put it there under that name"
            )
        return path


@dataclass(frozen=True)
class Publisher:
    """A body of files that belong together.

    Attributes
    ----------
    name : str
        Key in the catalogue: ``kuzmin2018``, ``string``, ``sgd``.
    title : str
        What it is, one line.
    publication : Publication
        What to cite.
    licence : str
        As far as known; ``not stated`` where it is not.
    files : tuple of RemoteFile
        The files.
    published : mapping of str to int
        Counts that the publisher or the paper states, for comparison with what was read.
    notes : tuple of str
        Traps, and facts that nobody has confirmed, marked so.
    """

    name: str
    title: str
    publication: Publication
    licence: str
    files: tuple[RemoteFile, ...]
    published: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
