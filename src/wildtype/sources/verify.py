"""Check that files on disk are unchanged: publishers' files, and organisms and datasets in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wildtype.datasets.storage import read_dataset
from wildtype.errors import DatasetError, SourceError
from wildtype.files import cache_dir, sha256_of_file
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.storage import read_organism
from wildtype.sources.download import INCOMING
from wildtype.sources.fetch import RECORD, confirms, default_folder, recorded, unpacked_sha256
from wildtype.sources.publishers import owners
from wildtype.unpacking import GZIP_MAGIC

State = Literal["ok", "unchanged", "not known", "damaged"]


@dataclass(frozen=True)
class Verified:
    """The result of the check of one file, dataset or organism.

    Attributes
    ----------
    kind, name : str
        ``file``, ``dataset`` or ``organism``, and its name.
    state : str
        ``ok`` (fits the publisher's checksum, or the hash it was stored with), ``unchanged`` (as it was
        fetched; no checksum is published), ``not known`` (nothing to compare it with) or ``damaged``.
    publisher : str
        Whose file it is; empty where no publisher's file has that name.
    remark : str
        What is wrong and what to do.
    """

    kind: str
    name: str
    state: State
    publisher: str = ""
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the same in plain values."""
        return dict(vars(self))


def verify(
    folder: str | Path | None = None, *, report: Callable[[Verified], None] = lambda one: None
) -> list[Verified]:
    """Check every file of a folder, and every organism and dataset in the cache, against what is known.

    Parameters
    ----------
    folder : path, optional
        Folder of publishers' files; that of the cache if not given.
    report : callable
        Called with every result as it is found.

    Returns
    -------
    list of Verified
        Files first, then organisms and datasets, each in order of their names.

    Raises
    ------
    SourceError
        If `folder` is given and is no folder.
    """
    if folder is not None and not Path(folder).is_dir():
        raise SourceError(f"{str(folder)!r} is not a folder: name one that holds publishers' files")
    done = []
    for one in _everything(default_folder() if folder is None else Path(folder)):
        done.append(one)
        report(one)
    return done


def _everything(folder: Path) -> Iterator[Verified]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and inside.parts[0] != INCOMING and path.name != RECORD:
            yield _verify_file(path, str(inside))
    for path in sorted((cache_dir() / "organisms").glob("[!.]*/organism.json")):
        yield _stored("organism", path.parent.name, lambda path=path: read_organism(path.parent))  # type: ignore[misc]
    datasets = cache_dir() / "datasets"
    for path in sorted(datasets.rglob("dataset.json")):
        name = str(path.parent.relative_to(datasets))
        if not any(part.startswith(".") for part in path.parent.relative_to(datasets).parts):  # half-written
            yield _stored("dataset", name, lambda path=path: _rehash(path.parent))  # type: ignore[misc]


def _verify_file(path: Path, name: str) -> Verified:
    known, entry = owners(path), recorded(path)
    publisher = str(entry.get("publisher") or ", ".join(dict.fromkeys(owner.name for owner, _ in known)))
    try:
        found = sha256_of_file(path)
        if any(confirms(remote, path, found) for _, remote in known):
            return Verified("file", name, "ok", publisher)
        if entry:
            if entry.get("sha256") == found:
                return Verified("file", name, "ok" if entry.get("confirmed") else "unchanged", publisher)
            return Verified("file", name, "damaged", publisher, "it is not what was fetched: fetch it again")
        # A checksum of an archive says nothing about its member, and so cannot show damage.
        published = [remote.sha256 for _, remote in known if remote.sha256 and not remote.member]
        if published:
            remark = f"its sha256 is {found}, published is {published[0]}: fetch it again"
            return Verified("file", name, "damaged", publisher, remark)
        with open(path, "rb") as handle:
            packed = handle.read(2) == GZIP_MAGIC
        if packed and not unpacked_sha256(path):  # gzip carries its own checksum
            return Verified("file", name, "damaged", publisher, "it is not a whole gzip file: fetch it again")
    except OSError as error:
        return Verified("file", name, "damaged", publisher, f"it cannot be read ({error.strerror or error})")
    return Verified("file", name, "not known", publisher)


def _stored(kind: str, name: str, read: Callable[[], object]) -> Verified:
    try:
        read()
    except (DatasetError, OSError, ValueError, KeyError, TypeError) as error:
        return Verified(kind, name, "damaged", remark=str(error))
    return Verified(kind, name, "ok")


def _rehash(folder: Path) -> None:
    """Read a dataset on the gene list that it was stored with, and compare its content hash."""
    record = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    # The stored gene list, not the present organism: the dataset is checked, not its organism.
    organism = Organism(record["organism"], GeneIndex.from_json(record["genes"]))
    found = read_dataset(folder, organism).sha256
    if found != record["sha256"]:
        raise DatasetError(
            f"the dataset at {folder} has the content hash {found[:12]}, recorded is "
            f"{str(record['sha256'])[:12]}: remove the folder and build it again"
        )
