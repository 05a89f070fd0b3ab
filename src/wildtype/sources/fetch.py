"""Publishers' files into one folder: fetched or copied, checked, and never half-written.

A file that a person fetched by hand may have any of its known names, be gzip-compressed, or still be in the
publisher's archive; its content is what is checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from wildtype.errors import SourceError
from wildtype.files import cache_dir, sha256_of_file, write_json, writing
from wildtype.locks import exclusive_lock
from wildtype.sources.archive import Member, archive_kind, copy_member
from wildtype.sources.download import INCOMING, Progress, Transport, download, no_progress
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.publishers import select
from wildtype.unpacking import GZIP_MAGIC

RECORD = "fetched.json"
"""Record of a folder: file name -> publisher, origin and SHA-256."""
LARGEST_UNPACKED = 8 << 30
CHUNK = 1 << 20

State = Literal["already there", "fetched", "copied", "by hand", "failed"]


@dataclass(frozen=True)
class Fetched:
    """The result for one file.

    Attributes
    ----------
    publisher, file : str
        Whose, and its name.
    state : str
        ``already there``, ``fetched``, ``copied``, ``by hand`` (no script gets it) or ``failed``.
    path : Path or None
        Where it is.
    sha256 : str
        Of the file at `path`.
    confirmed : bool
        Whether the content fits a published checksum.
    remark : str
        What to do, or why it failed.
    """

    publisher: str
    file: str
    state: State
    path: Path | None = None
    sha256: str = ""
    confirmed: bool = False
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the same in plain values."""
        return {**vars(self), "path": None if self.path is None else str(self.path)}


def default_folder() -> Path:
    """Return the folder of publishers' files in the cache."""
    return cache_dir() / "publishers"


def fetch(
    names: Sequence[str],
    folder: str | Path | None = None,
    *,
    source: str | Path | None = None,
    progress: bool = True,
    report: Callable[[Fetched], None] = lambda fetched: None,
) -> list[Fetched]:
    """Put publishers' files into a folder, from their addresses or from a folder of files fetched by hand.

    An existing file with the right checksum is kept; another is replaced after the new file has passed its
    check. Files whose host refuses scripts are reported with what a person does instead.

    Parameters
    ----------
    names : sequence of str
        ``publisher``, or ``publisher/file`` for one of its files.
    folder : path, optional
        Folder to write to; that of the cache if not given.
    source : path, optional
        Folder of files fetched by hand; nothing is downloaded then.
    progress : bool
        Whether to show progress on the terminal.
    report : callable
        Called with every file as it is done.

    Returns
    -------
    list of Fetched
        One per file.

    Raises
    ------
    SourceError
        If there is no such publisher; or, once everything else is done, naming the files that failed and the
        publishers of whom nothing was obtained.
    OutputError
        If `folder` cannot be written.
    """
    return _fetch(names, folder, source, progress, report, Transport())


def _fetch(
    names: Sequence[str],
    folder: str | Path | None,
    source: str | Path | None,
    progress: bool,
    report: Callable[[Fetched], None],
    transport: Transport,
) -> list[Fetched]:
    chosen = [select(name) for name in dict.fromkeys(names)]
    if source is not None and not Path(source).is_dir():
        raise SourceError(f"{str(source)!r} is not a folder of this machine: name one that holds the files")
    target = default_folder() if folder is None else Path(folder)
    done: list[Fetched] = []
    # Two processes would overwrite each other's record of fetched files.
    with exclusive_lock(target, "fetching files into"), _bars(progress) as bars:
        for publisher, files in chosen:
            fetcher = _Fetcher(publisher, target, None if source is None else Path(source), transport, bars)
            for remote in files:
                done.append(fetcher.obtain(remote))
                report(done[-1])
            fetcher.close()
    failed = [one for one in done if one.state == "failed"]
    for name in dict.fromkeys(one.publisher for one in done):
        own = [one for one in done if one.publisher == name]
        # Some gated files among others are normal; a publisher with nothing at all is a failure.
        if all(one.state == "by hand" for one in own):
            failed += own
    if failed:
        reasons = "; ".join(f"{one.file}: {one.remark}" for one in failed)
        raise SourceError(f"{len(failed)} of {len(done)} files were not obtained: {reasons}")
    return done


class _Fetcher:
    """Obtains the files of one publisher; an archive that holds several of them is downloaded once."""

    def __init__(
        self,
        publisher: Publisher,
        folder: Path,
        source: Path | None,
        transport: Transport,
        bars: Callable[[str], Progress],
    ) -> None:
        self.publisher, self.folder, self.source = publisher, folder, source
        self.transport, self.bars = transport, bars
        self.staging = folder / INCOMING

    def close(self) -> None:
        """Remove the archives, which are not needed any more."""
        for path in self.staging.glob("*.archive"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # unfinished parts may be there
            self.staging.rmdir()

    def obtain(self, remote: RemoteFile) -> Fetched:
        """Return the result for one file; raises ``OutputError`` only."""
        there = remote.find(self.folder)
        try:
            if there is not None:
                found = _sha256(there)
                fits, confirmed = _judge(remote, there, found)
                if fits:
                    return Fetched(self.publisher.name, remote.name, "already there", there, found, confirmed)
            result = self._download(remote) if self.source is None else self._copy(remote, self.source, there)
        except SourceError as error:
            result = Fetched(self.publisher.name, remote.name, "failed", remark=str(error))
        if there is None:
            return result
        if result.path is None:
            remark = f"the file in {str(self.folder)!r} does not fit its checksum; {result.remark}"
            return replace(result, state="failed", remark=remark)
        return replace(result, remark="the file that was there did not fit its checksum")

    def _copy(self, remote: RemoteFile, source: Path, instead_of: Path | None) -> Fetched:
        path = remote.find(source)
        archive = _find_archive(remote, source) if path is None else None
        if path is not None:  # under its own name, which says what it is: an alias may be in another format
            return self._keep(
                remote, path, instead_of or self.folder / path.name, "copied", str(path.resolve())
            )
        if archive is not None:
            return self._keep(remote, archive, self.folder / remote.name, "copied", str(archive.resolve()))
        known = ", ".join(repr(name) for name in (remote.name, *remote.aliases))
        remark = f"{str(source)!r} holds no file {known}"
        return Fetched(self.publisher.name, remote.name, "by hand", remark=remark)

    def _download(self, remote: RemoteFile) -> Fetched:
        by_hand = (
            f"{remote.gated or 'no address is known: ask its publisher'}; then run "
            f"`wildtype data fetch {self.publisher.name} --from FOLDER`"
        )
        target, reasons = self.folder / remote.name, []
        for url in remote.urls:
            try:
                if remote.member:
                    # The published checksum is that of the archive or of the member; _keep accepts either.
                    return self._keep(remote, self._archive(remote, url), target, "fetched", url)
                found = download(
                    url,
                    target,
                    sha256=remote.sha256,
                    agent=remote.agent,
                    staging=self.staging,
                    progress=self.bars(remote.name),
                    transport=self.transport,
                )
                return self._done(remote, target, "fetched", url, found, bool(remote.sha256))
            except SourceError as error:
                reasons.append(str(error))
        if not reasons:
            return Fetched(self.publisher.name, remote.name, "by hand", remark=by_hand)
        if remote.gated:
            reasons.append(by_hand)
        return Fetched(self.publisher.name, remote.name, "failed", remark="; ".join(reasons))

    def _archive(self, remote: RemoteFile, url: str) -> Path:
        """Return the archive of an address, which may be there from a file before."""
        path = self.staging / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}.archive"
        if not path.is_file():
            bar = self.bars(_name_in(url))
            download(
                url, path, agent=remote.agent, staging=self.staging, progress=bar, transport=self.transport
            )
        return path

    def _keep(self, remote: RemoteFile, path: Path, target: Path, state: State, origin: str) -> Fetched:
        """Check a file, or the archive that it is in, and put a copy at `target`."""
        whole, archived = _sha256(path), bool(remote.member) and archive_kind(path) != ""
        # The copy is hashed, not the original: what was checked is what is kept.
        with writing(target) as temporary:
            if archived:
                copy_member(path, remote.member, temporary)
            else:
                shutil.copyfile(path, temporary)
            found = _sha256(temporary)
            confirmed = confirms(remote, temporary, found) or (archived and whole == remote.sha256)
            # The checksum of an archive cannot be compared with a file that was extracted from it by hand.
            taken_out = bool(remote.member) and not archived and self.source is not None
            if remote.sha256 and not confirmed and not taken_out:
                raise SourceError(
                    f"{origin} has sha256 {whole}, expected {remote.sha256}: it was not kept; fetch it "
                    f"again, or ask its publisher whether it has changed"
                )
        return self._done(remote, target, state, origin, found, confirmed)

    def _done(
        self, remote: RemoteFile, path: Path, state: State, origin: str, found: str, confirmed: bool
    ) -> Fetched:
        entry = {"publisher": self.publisher.name, "file": remote.name, "sha256": found, "origin": origin,
                 "confirmed": confirmed}  # fmt: skip
        files = {**read_record(self.folder), path.name: entry}
        write_json(self.folder / RECORD, {"format_version": 1, "files": files})
        return Fetched(self.publisher.name, remote.name, state, path, found, confirmed)


def _sha256(path: Path) -> str:
    try:
        return sha256_of_file(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror or error}): make it readable") from error


def _judge(remote: RemoteFile, path: Path, found: str) -> tuple[bool, bool]:
    """Say whether a file that is there can stay, and whether it has the published checksum."""
    entry, confirmed = recorded(path), confirms(remote, path, found)
    if entry.get("file") == remote.name:
        return entry.get("sha256") == found, confirmed or bool(entry.get("confirmed"))
    # Without a record there is nothing to compare a member of an archive with.
    return confirmed or not remote.sha256 or bool(remote.member), confirmed


def confirms(remote: RemoteFile, path: Path, found: str) -> bool:
    """Say whether a file, or what is compressed in it, has the published checksum; `found` is its own."""
    return bool(remote.sha256) and remote.sha256 in (found, unpacked_sha256(path))


def unpacked_sha256(path: Path) -> str:
    """Return the SHA-256 of what a gzip file holds; empty for other, damaged and excessive ones."""
    digest, left = hashlib.sha256(), LARGEST_UNPACKED
    with open(path, "rb") as handle:
        if handle.read(2) != GZIP_MAGIC:
            return ""
        handle.seek(0)
        # At most CHUNK bytes are unpacked at a time, so that a decompression bomb never fills the memory.
        stream, data = zlib.decompressobj(wbits=31), b""
        try:
            while left >= 0 and (data or (data := handle.read(CHUNK))):
                if stream.eof:  # a gzip file is one or more members
                    stream = zlib.decompressobj(wbits=31)
                part = stream.decompress(data, CHUNK)
                digest.update(part)
                left -= len(part)
                # Within a member, the input beyond CHUNK; after its end, the start of the next member.
                data = stream.unconsumed_tail or stream.unused_data
        except zlib.error:
            return ""
    return digest.hexdigest() if stream.eof and left >= 0 else ""


def _name_in(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name


def _find_archive(remote: RemoteFile, source: Path) -> Path | None:
    """Return the publisher's archive under the name that its address gives it, also as browsers save it."""
    for url in remote.urls if remote.member else ():
        name = _name_in(url)
        # Browsers and systems replace a colon by an underscore or hyphen, or drop it.
        for spelled in (name, Member(name, 0).on_disk, name.replace(":", ""), name.replace(":", "-")):
            if spelled and (source / spelled).is_file():
                return source / spelled
    return None


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a folder: file name -> entry; empty if there is none."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return record if isinstance(record, dict) else {}


def recorded(path: Path) -> dict[str, Any]:
    """Return the record of one file in its folder; empty where there is none."""
    entry = read_record(path.parent).get(path.name)
    return entry if isinstance(entry, dict) else {}


@contextlib.contextmanager
def _bars(progress: bool) -> Iterator[Callable[[str], Progress]]:
    """Yield a function that makes the progress bar of a named file."""
    from rich import progress as bars

    from wildtype.terminal import PlainConsole

    console = PlainConsole(stderr=True)
    if not progress or not console.is_terminal:
        yield lambda name: no_progress
        return
    columns = (bars.TextColumn("{task.description}", markup=False), bars.BarColumn(), bars.DownloadColumn(),
               bars.TransferSpeedColumn(), bars.TimeRemainingColumn())  # fmt: skip
    with bars.Progress(*columns, console=console, transient=True) as shown:

        def make(name: str) -> Progress:
            task = shown.add_task(name, total=None)
            return lambda done, total: shown.update(task, completed=done, total=total)

        yield make
